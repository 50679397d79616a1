"""Provence as a compressor and as a re-ranker: one model, one forward pass."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import TYPE_CHECKING

import numpy as np

from posology.devices import find_device
from posology.errors import ConfigurationError
from posology.types import Compressed, Retrieval, Retrieved
from strategies.compression.parts import Parts
from strategies.compression.provence.judge import CHARACTERS, CheckpointJudge, Judge, Judgement
from strategies.compression.results import checked, of_sentences, rounded_up, share_of

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from posology.reading.crossencoder import CrossEncoder

#: seconds per token on two cores with AVX512-VNNI, see ``python -m evals.compressors``
SECONDS_A_TOKEN = 6e-5
NAME = "provence"
#: Tokens with a higher probability are kept. The paper uses 0.1 and 0.5 on all of its data sets; at 0.1 answers
#: are hardly affected.
THRESHOLD = 0.1
#: "Sentence rounding": a sentence is selected if more than this share of its tokens is kept.
ROUNDING = 0.5
#: Remaining share of the context by threshold, on PubMed abstracts of BioASQ, the paper's medical data set (table 9,
#: with re-ranking). At 0 everything remains, at 1 nothing.
_LEFT = {0.0: 1.0, 0.1: 0.51, 0.5: 0.326, 1.0: 0.0}


class Provence:
    """Compressor that keeps the sentences relevant to the question, from none to all (Provence, section 3).

    A model reads question and passage together and labels each token. Passages keep their order; passages without a
    kept sentence are left out. The titles of the others always remain.

    Args:
        judge: the model.
        threshold: see :data:`THRESHOLD`.

    Raises:
        ValueError: the threshold is not from 0 to 1.
        ConfigurationError: the model has no trained pruning head.
    """

    def __init__(self, judge: Judge, *, threshold: float = THRESHOLD) -> None:
        if not 0 <= threshold <= 1:
            raise ValueError(f"threshold must be from 0 to 1 (got {threshold})")
        if not judge.prunes:
            raise ConfigurationError(
                f"{judge.name} has no trained pruning head. Train it with `posology compressor train`."
            )
        self._judge = judge
        self._threshold = threshold

    @property
    def name(self) -> str:
        """Return the name of the compressor."""
        return NAME

    @property
    def extractive(self) -> bool:
        """Return true: only words of the sources are shown."""
        return True

    def __call__(self, retrieval: Retrieval, keep: float | None) -> Compressed:
        """Compress the passages of a retrieval.

        Args:
            retrieval: question and passages.
            keep: share of all sentences to keep, rounded up: those with the highest probability; ``None``: those
                above the threshold, by sentence rounding.

        Raises:
            ValueError: ``keep`` is not from 0 to 1.
        """
        keep = checked(keep)
        passages = retrieval.passages
        counts = [len(one.sentences) for one in passages]
        if keep in (0.0, 1.0):
            chosen = [np.full(count, keep == 1.0) for count in counts]
        else:
            judged = self._judge(retrieval.query.text, passages)
            if keep is None:
                chosen = kept(judged, counts, self._threshold)
            else:
                chosen = likeliest(judged, counts, keep)
        flags = np.concatenate([np.zeros(0, np.bool_), *chosen])
        return of_sentences(retrieval, flags, compressor=self.name)

    def expected_ratio(self, keep: float | None) -> float:
        """Return ``keep``; for ``None``, the paper's ratio for PubMed abstracts at the threshold."""
        chosen = float(np.interp(self._threshold, list(_LEFT), list(_LEFT.values())))
        return share_of(keep, chosen)

    def seconds(self, retrieval: Retrieval, keep: float | None) -> float:
        """Estimate the seconds by model and text size; judged passages take none."""
        if checked(keep) in (0.0, 1.0):
            return 0.0
        return self._judge.seconds(retrieval.query.text, retrieval.passages)


class ProvenceReranker:
    """Re-ranker by the ranking head, in the same pass that prunes.

    Args:
        judge: the model.

    Raises:
        ConfigurationError: the model has no trained ranking head.
    """

    def __init__(self, judge: Judge) -> None:
        if not judge.ranks:
            raise ConfigurationError(f"{judge.name} has no trained ranking head")
        self._judge = judge

    @property
    def name(self) -> str:
        """Return the method and the model."""
        return f"{NAME}:{self._judge.name}"

    def __call__(self, retrieval: Retrieval) -> NDArray[np.float32]:
        """Return a score for each passage, shape ``(len(retrieval.passages),)``; higher is better."""
        judged = self._judge(retrieval.query.text, retrieval.passages)
        return np.array([one.score for one in judged], dtype=np.float32)


def kept(
    judged: Sequence[Judgement], counts: Sequence[int], threshold: float
) -> list[NDArray[np.bool_]]:
    """Return, for each passage, which sentences have more than half of their tokens above a threshold."""
    return [
        one.shares(threshold, count) > ROUNDING for one, count in zip(judged, counts, strict=True)
    ]


def likeliest(
    judged: Sequence[Judgement], counts: Sequence[int], keep: float
) -> list[NDArray[np.bool_]]:
    """Return, for each passage, which sentences are among the most probable of all, by their tokens' mean.

    Exactly a share of all sentences, rounded up; ties go to the first.
    """
    means = [one.means(count) for one, count in zip(judged, counts, strict=True)]
    total = sum(counts)
    flags = np.zeros(total, np.bool_)
    if total:
        flags[np.argsort(-np.concatenate(means), kind="stable")[: rounded_up(keep, total)]] = True
    return list(np.split(flags, np.cumsum(counts)[:-1])) if counts else []


@lru_cache(maxsize=2)
def judge(model: str | None) -> Judge:
    """Return the judge of a model, loaded once per process: pruner and re-ranker share it. Blocking.

    A checkpoint runs on the accelerator, if there is one.

    Args:
        model: a folder, or a Hugging Face name in the local cache; ``None``: the packaged cross-encoder.

    Raises:
        ModelUnavailable: its files cannot be loaded.
    """
    if model is None:
        from posology.reading.crossencoder import CrossEncoder

        return PackagedJudge(CrossEncoder.packaged())
    from strategies.compression.provence.checkpoint import load

    device = find_device()
    return CheckpointJudge(load(model, device=device), device=device)


def make(parts: Parts) -> Provence:
    """Return the compressor with the model that ``parts`` names for :data:`NAME`, else the packaged one.

    Raises:
        ConfigurationError: the model cannot be loaded, or does not prune.
    """
    return Provence(judge(parts.models.get(NAME)))


def make_reranker(parts: Parts) -> ProvenceReranker:
    """Return the re-ranker with the same model.

    Raises:
        ConfigurationError: the model cannot be loaded, or does not rank.
    """
    return ProvenceReranker(judge(parts.models.get(NAME)))


class PackagedJudge(Judge):
    """Judges by the packaged cross-encoder's heads of tokens and ranking.

    Args:
        encoder: the cross-encoder.
    """

    def __init__(self, encoder: CrossEncoder) -> None:
        super().__init__(name=encoder.name, prunes=True, ranks=True)
        self._encoder = encoder

    def _seconds(self, characters: int) -> float:
        return SECONDS_A_TOKEN * characters / CHARACTERS

    def _judge(self, query: str, passages: Sequence[Retrieved]) -> list[Judgement]:
        from posology.index.embedders.sentence_transformer import heading
        from posology.reading.crossencoder import RANK, RELEVANT
        from posology.reading.pairs import HEADING, pairs

        windows = [
            (i, pair)
            for i, one in enumerate(passages)
            for pair in pairs(query, one.passage.text, one.sentences, heading=heading(one.passage))
        ]
        scores = self._encoder.scores([pair for _, pair in windows])
        judgements = []
        for i, one in enumerate(passages):
            own = [(p, s) for (at, p), s in zip(windows, scores, strict=True) if at == i]
            # without sentences there is nothing to keep
            sentence = np.concatenate([p.sentence for p, _ in own])
            odds = np.concatenate([s.tokens[:, RELEVANT] for _, s in own])
            judgements.append(
                Judgement(
                    score=max(float(s.text[RANK]) for _, s in own),
                    kept=(1 / (1 + np.exp(-odds))).astype(np.float32),
                    sentence=np.where(len(one.sentences) > 0, sentence, HEADING).astype(np.int32),
                )
            )
        return judgements
