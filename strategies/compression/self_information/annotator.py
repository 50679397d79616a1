"""Annotator: phrases and the mean self-information of their words."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Protocol

import numpy as np

from posology.types import Passage, Phrases, Sentence
from strategies.compression.self_information.fit import LEAST, ORDER, learn
from strategies.compression.self_information.ngram import NgramModel
from strategies.compression.wording.phrases import Segments, segment

if TYPE_CHECKING:
    from numpy.typing import NDArray

#: Version of phrases and their scores; raise it when either changes.
VERSION = 3


class Scorer(Protocol):
    """Language model that returns the bits of each word. Blocking."""

    @property
    def name(self) -> str:
        """Return the identity of its method and model."""
        ...

    def learn(self, texts: Iterable[str]) -> None:
        """Train on the texts to be scored, if it trains."""
        ...

    def dump(self) -> bytes | None:
        """Return its trained state; ``None``: none, its name identifies it."""
        ...

    def restore(self, learned: bytes) -> None:
        """Load the state of :meth:`dump`.

        Raises:
            ValueError: the bytes have another format.
        """
        ...

    def bits(self, texts: Sequence[str], segments: Sequence[Segments]) -> list[NDArray[np.float32]]:
        """Return the bits of each word of each text, in order."""
        ...


class SelfInformationAnnotator:
    """:class:`~posology.seams.Annotator` of phrases: the mean self-information of their words (Li 2023)."""

    def __init__(self, scorer: Scorer) -> None:
        self._scorer = scorer

    @property
    def name(self) -> str:
        """Return the identity of the language model and of the phrases."""
        return f"self-information-{VERSION}:{self._scorer.name}"

    def learn(self, passages: Iterable[Passage]) -> None:
        """Train on the passages to be annotated; a pre-trained model ignores them."""
        self._scorer.learn(passage.text for passage in passages)

    def dump(self) -> bytes | None:
        """Return its trained state; ``None``: none."""
        return self._scorer.dump()

    def restore(self, learned: bytes) -> None:
        """Load the state of :meth:`dump`.

        Raises:
            ValueError: the bytes have another format.
        """
        self._scorer.restore(learned)

    def __call__(
        self, passages: Sequence[Passage], sentences: Sequence[Sequence[Sentence]]
    ) -> list[Phrases]:
        """Return one :class:`~posology.types.Phrases` a passage."""
        texts = [passage.text for passage in passages]
        segments = [segment(text, spans) for text, spans in zip(texts, sentences, strict=True)]
        scored = self._scorer.bits(texts, segments)
        return [_phrases(found, bits) for found, bits in zip(segments, scored, strict=True)]


class NgramScorer:
    """:class:`Scorer` by an n-gram model of the ingested corpus; before training it knows no word."""

    def __init__(self, *, order: int = ORDER) -> None:
        """Set its size.

        Args:
            order: words of the longest n-grams, 1 to 3.
        """
        self._order = order
        self._model = learn((), order=order, least=LEAST)

    @property
    def name(self) -> str:
        """Return ``ngram`` with the order and the minimum count of an n-gram."""
        return f"ngram-{self._order}-{LEAST}"

    def learn(self, texts: Iterable[str]) -> None:
        """Count n-grams."""
        found = learn(texts, order=self._order, least=LEAST)
        # the stored state is rounded: score with the same values as after a restore
        self._model = NgramModel.from_bytes(found.to_bytes())

    def dump(self) -> bytes:
        """Return the model's probabilities."""
        return self._model.to_bytes()

    def restore(self, learned: bytes) -> None:
        """Load the state of :meth:`dump`.

        Raises:
            ValueError: the bytes have another format.
        """
        self._model = NgramModel.from_bytes(learned)

    def bits(self, texts: Sequence[str], segments: Sequence[Segments]) -> list[NDArray[np.float32]]:
        """Return the bits of each word of each text, each sentence by itself."""
        words: list[str] = []
        firsts: list[int] = []
        for text, found in zip(texts, segments, strict=True):
            firsts.extend(len(words) + first for first in found.sentences)
            words.extend(text[a:b] for a, b in zip(found.starts, found.ends, strict=True))
        bits = self._model.bits(words, firsts)
        ends = np.cumsum([len(found.starts) for found in segments])
        return np.split(bits, ends[:-1]) if segments else []


def make_annotator(model: str | None = None) -> SelfInformationAnnotator:
    """Return the annotator by a language model. Blocking: a causal model is loaded.

    Args:
        model: hub name or folder of a causal model of Hugging Face; ``None``: the n-gram model.

    Raises:
        ScorerUnavailable: the model's files cannot be loaded.
    """
    if model is None:
        return SelfInformationAnnotator(NgramScorer())
    from strategies.compression.self_information.causal import load

    return SelfInformationAnnotator(load(model))


def _phrases(segments: Segments, bits: NDArray[np.float32]) -> Phrases:
    firsts = np.array(segments.phrases, dtype=np.int32)
    starts = np.array(segments.starts, dtype=np.int32)
    ends = np.array(segments.ends, dtype=np.int32)
    sizes = np.diff(firsts, append=np.int32(len(starts)))
    sums = np.add.reduceat(bits, firsts) if len(firsts) else bits
    return Phrases(
        starts=starts[firsts],
        ends=ends[firsts + sizes - 1],
        words=sizes.astype(np.int32),
        information=(sums / sizes).astype(np.float32),
        clauses=np.array(segments.clauses, dtype=np.int32),
        protected=np.array(segments.protected, dtype=np.bool_),
    )
