"""Selective Context: drop what a language model predicts well (Li 2023), regardless of the question.

Units are words, phrases or sentences, measured by the mean self-information of their words. All units of the
context above one percentile stay. Two things differ from the paper. The language model is the index's, or any causal
one; phrases and sentences are scored at ingest, so no model runs at question time. Words and phrases
stay only with the protected parts of their clause (negations, numbers and doses), which count against the share.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import dataclass
from itertools import chain
from typing import TYPE_CHECKING

import numpy as np

from posology.errors import ConfigurationError
from posology.types import Compressed, Retrieval, Sentence
from strategies.compression.parts import Parts
from strategies.compression.reduction import Layout, spans_of
from strategies.compression.results import of_sentences, of_spans, rounded_up, share_of
from strategies.compression.self_information.cache import RememberedScorer
from strategies.compression.wording.phrases import segment
from strategies.compression.wording.runs import choose_runs
from strategies.compression.wording.words import Words, spans

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from strategies.compression.self_information.annotator import Scorer

NAME = "selective_context"
SENTENCE_NAME = "selective_context_sentence"
WORD_NAME = "selective_context_word"
#: Default share that stays: LeanContext's tables 1 and 2 drop half ("SC (reduction = 0.50)").
DEFAULT_KEEP = 0.5
#: Seconds a sentence on one core: phrases, sentences, and words by n-grams.
_PHRASE_SECONDS, _SENTENCE_SECONDS, _WORD_SECONDS = 2e-5, 1e-5, 6e-4
#: Estimated seconds a sentence for words by a causal model of GPT-2's size, on two cores, nothing cached.
_CAUSAL_SECONDS = 0.05


@dataclass(frozen=True, kw_only=True, slots=True)
class SelectiveContext:
    """Compressor that filters phrases, as LeanContext's baseline does; the percentile counts words.

    A passage without :class:`~posology.types.Phrases` (of an index without an annotator) stays whole, unless the
    share is 0.
    """

    name: str = NAME

    @property
    def extractive(self) -> bool:
        """Return True: it shows the sources' own words."""
        return True

    def __call__(self, retrieval: Retrieval, keep: float | None) -> Compressed:
        """Compress the passages of a retrieval.

        Args:
            retrieval: passages with their phrases.
            keep: maximum share of their words that stays, 0 to 1; ``None``: :data:`DEFAULT_KEEP`.

        Raises:
            ValueError: ``keep`` is not 0 to 1.
        """
        share = share_of(keep, DEFAULT_KEEP)
        left: list[list[Sentence]] = [
            list(one.sentences) if share and one.phrases is None else []
            for one in retrieval.passages
        ]
        count = sum(len(one.sentences) for one in retrieval.passages)
        layout = Layout.of(retrieval.passages, np.zeros(count, np.bool_)) if share else None
        if layout is not None:
            for place, span in spans_of(
                _most_informative(layout, share), layout, retrieval.passages
            ):
                left[place].append(span)
        return of_spans(retrieval, left, compressor=self.name)

    def expected_ratio(self, keep: float | None) -> float:
        """Return the share itself."""
        return share_of(keep, DEFAULT_KEEP)

    def seconds(self, retrieval: Retrieval, keep: float | None) -> float:  # noqa: ARG002 - hardly matters
        """Return seconds proportional to the sentences."""
        return _PHRASE_SECONDS * sum(len(one.sentences) for one in retrieval.passages)


@dataclass(frozen=True, kw_only=True, slots=True)
class SelectiveSentences:
    """Compressor that filters whole sentences by the mean self-information of their words.

    Sentences without :class:`~posology.types.Phrases` stay, as with :class:`SelectiveContext`.
    """

    name: str = SENTENCE_NAME

    @property
    def extractive(self) -> bool:
        """Return True: it shows the sources' own words."""
        return True

    def __call__(self, retrieval: Retrieval, keep: float | None) -> Compressed:
        """Compress the passages of a retrieval.

        Args:
            retrieval: passages with their phrases.
            keep: share of their sentences, rounded up to whole ones; ``None``: :data:`DEFAULT_KEEP`.

        Raises:
            ValueError: ``keep`` is not 0 to 1.
        """
        share = share_of(keep, DEFAULT_KEEP)
        count = sum(len(one.sentences) for one in retrieval.passages)
        layout = Layout.of(retrieval.passages, np.zeros(count, np.bool_))
        kept = np.full(count, share > 0)
        if layout is not None:
            words, bits = (
                np.bincount(layout.sentence, weights=each, minlength=count)
                for each in (layout.words, layout.bits)
            )
            known = np.flatnonzero(words)
            order = known[np.argsort(-bits[known] / words[known], kind="stable")]
            kept[order[rounded_up(share, len(known)) :]] = False
        return of_sentences(retrieval, kept, compressor=self.name)

    def expected_ratio(self, keep: float | None) -> float:
        """Return the share itself."""
        return share_of(keep, DEFAULT_KEEP)

    def seconds(self, retrieval: Retrieval, keep: float | None) -> float:  # noqa: ARG002 - hardly matters
        """Return seconds proportional to the sentences."""
        return _SENTENCE_SECONDS * sum(len(one.sentences) for one in retrieval.passages)


class SelectiveWords:
    """Compressor that filters words ("tokens" in the paper, which for its model are word pieces).

    A language model scores the words at question time. Wrap a slow one in
    :class:`~strategies.compression.self_information.cache.RememberedScorer`.

    Args:
        scorer: loads the language model, once, on first use.
        seconds: seconds a sentence on two cores.
    """

    name = WORD_NAME
    extractive = True

    def __init__(self, scorer: Callable[[], Scorer], *, seconds: float = _WORD_SECONDS) -> None:
        self._make = scorer
        self._scorer: Scorer | None = None
        self._lock = threading.Lock()
        self._seconds = seconds

    def __call__(self, retrieval: Retrieval, keep: float | None) -> Compressed:
        """Compress the passages of a retrieval.

        Args:
            retrieval: passages.
            keep: maximum share of their words that stays, 0 to 1; ``None``: :data:`DEFAULT_KEEP`.

        Raises:
            ValueError: ``keep`` is not 0 to 1.
            ScorerUnavailable: the language model does not load.
        """
        share = share_of(keep, DEFAULT_KEEP)
        passages = retrieval.passages
        if share in (0, 1) or not passages:
            whole = [one.sentences if share else () for one in passages]
            return of_spans(retrieval, whole, compressor=self.name)
        scorer = self._loaded()
        texts = [one.passage.text for one in passages]
        segments = [segment(one.passage.text, one.sentences) for one in passages]
        words = [[Words.of(one.passage.text, s) for s in one.sentences] for one in passages]
        bits = [
            part
            for own, told in zip(words, scorer.bits(texts, segments), strict=True)
            for part in np.split(told, np.cumsum([len(one) for one in own])[:-1])
            if own
        ]
        kept = iter(choose_runs(list(chain.from_iterable(words)), bits, share))
        left = [
            list(chain.from_iterable(spans(text, one, next(kept)) for one in own))
            for text, own in zip(texts, words, strict=True)
        ]
        return of_spans(retrieval, left, compressor=self.name)

    def expected_ratio(self, keep: float | None) -> float:
        """Return the share itself."""
        return share_of(keep, DEFAULT_KEEP)

    def seconds(self, retrieval: Retrieval, keep: float | None) -> float:
        """Return seconds proportional to the sentences; 0 if all or nothing stays."""
        if share_of(keep, DEFAULT_KEEP) in (0, 1):
            return 0.0
        return self._seconds * sum(len(one.sentences) for one in retrieval.passages)

    def _loaded(self) -> Scorer:
        # of several concurrent first questions, one loads
        with self._lock:
            if self._scorer is None:
                self._scorer = self._make()
            return self._scorer


def make_words(parts: Parts) -> SelectiveWords:
    """Return the filter of words by the configured causal model, or else by the index's language model.

    Raises:
        ConfigurationError: neither is available.
    """
    model = parts.models.get(WORD_NAME)
    if model is None:
        if parts.scorer is None:
            raise ConfigurationError(
                f"{WORD_NAME} needs a language model. Set POSOLOGY_COMPRESSOR_MODEL={WORD_NAME}=NAME with the "
                f"name or folder of a causal one, or choose {NAME}."
            )
        return SelectiveWords(parts.scorer)

    def load_remembered() -> Scorer:
        from strategies.compression.self_information.causal import load

        scorer = load(model)
        return RememberedScorer(scorer, parts.memory()) if parts.memory else scorer

    return SelectiveWords(load_remembered, seconds=_CAUSAL_SECONDS)


def _most_informative(layout: Layout, share: float) -> NDArray[np.bool_]:
    """Return the most informative phrases, with the protected ones of their clauses, within a share of the words.

    A larger share keeps all that a smaller one keeps.
    """
    if share == 1:
        return np.ones(len(layout.words), np.bool_)
    order = np.argsort(-layout.bits / layout.words, kind="stable")
    rank = np.empty(len(order), np.intp)
    rank[order] = np.arange(len(order))
    # protected phrases come with the first chosen phrase of their clause
    opening = np.full(layout.clause[-1] + 1, len(order))
    np.minimum.at(opening, layout.clause, rank)
    rank = np.where(layout.protected, opening[layout.clause], rank)
    words = np.cumsum(np.bincount(rank, weights=layout.words, minlength=len(order)))
    fits = int(np.searchsorted(words, share * words[-1] + 1e-9, side="right"))
    return rank < fits
