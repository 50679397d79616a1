"""Provence as a compressor and as a re-ranker: one model, one forward pass."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import TYPE_CHECKING

import numpy as np

from posology.devices import find_device
from posology.errors import ConfigurationError
from posology.types import Compressed, Retrieval
from strategies.compression.parts import Parts
from strategies.compression.provence.judge import Judge, Judgement
from strategies.compression.results import checked, of_sentences, rounded_up, share_of

if TYPE_CHECKING:
    from numpy.typing import NDArray

NAME = "provence"
#: A token that is likelier kept than this is kept. The paper uses 0.1 and 0.5, on all of its data sets; at 0.1
#: answers hardly suffer.
THRESHOLD = 0.1
#: "Sentence rounding": a sentence is selected where more than this share of its tokens is kept.
ROUNDING = 0.5
#: Share of the context that is left, by threshold: of BioASQ's PubMed abstracts, the paper's medical set (table 9,
#: with re-ranking). At 0 all is left, at 1 nothing.
_LEFT = {0.0: 1.0, 0.1: 0.51, 0.5: 0.326, 1.0: 0.0}


class Provence:
    """Keeps the sentences that bear on the question, from none to all of them (Provence, section 3).

    A model reads question and passage together and labels each token. Passages keep their order, and those of
    which no sentence is kept are left out; the title of the others is shown in any case.

    Args:
        judge: the model.
        threshold: see :data:`THRESHOLD`.

    Raises:
        ValueError: the threshold is not 0 to 1.
        ConfigurationError: the model's pruning head was never trained.
    """

    def __init__(self, judge: Judge, *, threshold: float = THRESHOLD) -> None:
        if not 0 <= threshold <= 1:
            raise ValueError(f"a threshold is 0 to 1, not {threshold}")
        if not judge.checkpoint.prunes:
            raise ConfigurationError(
                f"{judge.checkpoint.name} is a re-ranker that has not learned to prune: train it with "
                "`posology compressor train`"
            )
        self._judge = judge
        self._threshold = threshold

    @property
    def name(self) -> str:
        """Which compressor it is."""
        return NAME

    @property
    def extractive(self) -> bool:
        """It shows the sources' own words."""
        return True

    def __call__(self, retrieval: Retrieval, keep: float | None) -> Compressed:
        """Compress the passages of a retrieval.

        Args:
            retrieval: question and passages.
            keep: share of all sentences, rounded up to whole ones, that are left: the likeliest; ``None``: those
                that the model keeps, by the threshold and sentence rounding.

        Raises:
            ValueError: ``keep`` is not 0 to 1.
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
        """The kept share; without one, what is left of PubMed abstracts at the threshold, by the paper."""
        chosen = float(np.interp(self._threshold, list(_LEFT), list(_LEFT.values())))
        return share_of(keep, chosen)

    def seconds(self, retrieval: Retrieval, keep: float | None) -> float:
        """Grows with the model and the text; of what is judged already, nothing."""
        if checked(keep) in (0.0, 1.0):
            return 0.0
        return self._judge.seconds(retrieval.query.text, retrieval.passages)


class ProvenceReranker:
    """Scores passages by the ranking head, in the pass that also prunes them.

    Args:
        judge: the model.

    Raises:
        ConfigurationError: the model's ranking head was never trained.
    """

    def __init__(self, judge: Judge) -> None:
        if not judge.checkpoint.ranks:
            raise ConfigurationError(f"{judge.checkpoint.name} has not learned to rank")
        self._judge = judge

    @property
    def name(self) -> str:
        """Method and model."""
        return f"{NAME}:{self._judge.checkpoint.name}"

    def __call__(self, retrieval: Retrieval) -> NDArray[np.float32]:
        """One score a passage, shape ``(len(retrieval.passages),)``; the larger the better."""
        judged = self._judge(retrieval.query.text, retrieval.passages)
        return np.array([one.score for one in judged], dtype=np.float32)


def kept(
    judged: Sequence[Judgement], counts: Sequence[int], threshold: float
) -> list[NDArray[np.bool_]]:
    """Which sentences of each passage have more than half of their tokens above a threshold."""
    return [
        one.shares(threshold, count) > ROUNDING for one, count in zip(judged, counts, strict=True)
    ]


def likeliest(
    judged: Sequence[Judgement], counts: Sequence[int], keep: float
) -> list[NDArray[np.bool_]]:
    """Which sentences of each passage are among the likeliest of all, by the mean of their tokens.

    Of equal ones the first: exactly a share of all, rounded up.
    """
    means = [one.means(count) for one, count in zip(judged, counts, strict=True)]
    total = sum(counts)
    flags = np.zeros(total, np.bool_)
    if total:
        flags[np.argsort(-np.concatenate(means), kind="stable")[: rounded_up(keep, total)]] = True
    return list(np.split(flags, np.cumsum(counts)[:-1])) if counts else []


@lru_cache(maxsize=2)
def judge(model: str) -> Judge:
    """The judge of a model, loaded once in a process, so that who prunes and who re-ranks share it. Blocking.

    It runs on the accelerator where there is one.

    Args:
        model: a folder, or a hub name whose files are in the local cache.

    Raises:
        ModelUnavailable: its files cannot be loaded.
    """
    from strategies.compression.provence.checkpoint import load

    device = find_device()
    return Judge(load(model, device=device), device=device)


def make(parts: Parts) -> Provence:
    """The compressor of the model that ``parts`` names for :data:`NAME`.

    Raises:
        ConfigurationError: none is named, or it does not load.
    """
    return Provence(judge(_named(parts)))


def make_reranker(parts: Parts) -> ProvenceReranker:
    """The re-ranker of the same model.

    Raises:
        ConfigurationError: none is named, or it does not load.
    """
    return ProvenceReranker(judge(_named(parts)))


def _named(parts: Parts) -> str:
    if NAME not in parts.models:
        raise ConfigurationError(
            f"set POSOLOGY_COMPRESSOR_MODEL={NAME}=…: a folder that `posology compressor train` wrote, or a hub name such as "
            "naver/provence-reranker-debertav3-v1, whose licence is not commercial"
        )
    return parts.models[NAME]
