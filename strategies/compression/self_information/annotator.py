"""The annotator: phrases, and what their words tell on average."""

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

#: of the phrases and of what is computed of them; raise it when either changes
VERSION = 2


class Scorer(Protocol):
    """A language model that says what each word tells. Blocking."""

    @property
    def name(self) -> str:
        """Identity of its method and model."""
        ...

    def learn(self, texts: Iterable[str]) -> None:
        """Read what is to be scored, where it needs to."""
        ...

    def dump(self) -> bytes | None:
        """What it has learned; ``None``: nothing, its name says it all."""
        ...

    def restore(self, learned: bytes) -> None:
        """Take up what :meth:`dump` gave.

        Raises:
            ValueError: it is something else.
        """
        ...

    def bits(self, texts: Sequence[str], segments: Sequence[Segments]) -> list[NDArray[np.float32]]:
        """Of each text, the bits of each of its words, in order."""
        ...


class SelfInformationAnnotator:
    """Mean self-information of each phrase's words: Selective Context's measure (Li 2023), at ingest.

    As a :class:`~posology.seams.Annotator`.
    """

    def __init__(self, scorer: Scorer) -> None:
        self._scorer = scorer

    @property
    def name(self) -> str:
        """Of the language model, and of how phrases are found."""
        return f"self-information-{VERSION}:{self._scorer.name}"

    def learn(self, passages: Iterable[Passage]) -> None:
        """Read what is to be annotated; a model that is pre-trained reads none of it."""
        self._scorer.learn(passage.text for passage in passages)

    def dump(self) -> bytes | None:
        """What it has learned; ``None``: nothing."""
        return self._scorer.dump()

    def restore(self, learned: bytes) -> None:
        """Take up what :meth:`dump` gave.

        Raises:
            ValueError: it is something else.
        """
        self._scorer.restore(learned)

    def __call__(
        self, passages: Sequence[Passage], sentences: Sequence[Sequence[Sentence]]
    ) -> list[Phrases]:
        """One :class:`~posology.types.Phrases` a passage."""
        texts = [passage.text for passage in passages]
        segments = [segment(text, spans) for text, spans in zip(texts, sentences, strict=True)]
        scored = self._scorer.bits(texts, segments)
        return [_phrases(found, bits) for found, bits in zip(segments, scored, strict=True)]


class NgramScorer:
    """The n-gram model of the corpus that is ingested: embedded, quick, and it knows the corpus's words.

    As a :class:`Scorer`; until it has learned, no word is known to it.
    """

    def __init__(self, *, order: int = ORDER, least: int = LEAST) -> None:
        """Choose its size.

        Args:
            order: words of the longest n-grams, 1 to 3.
            least: n-grams that came less often are left out.
        """
        self._order, self._least = order, least
        self._model = learn((), order=order, least=least)

    @property
    def name(self) -> str:
        """``ngram``, the order, and how often an n-gram must have come."""
        return f"ngram-{self._order}-{self._least}"

    def learn(self, texts: Iterable[str]) -> None:
        """Count n-grams."""
        found = learn(texts, order=self._order, least=self._least)
        # what is kept of it is rounded: whoever learns and whoever remembers must say the same
        self._model = NgramModel.from_bytes(found.to_bytes())

    def dump(self) -> bytes:
        """The counts, as probabilities."""
        return self._model.to_bytes()

    def restore(self, learned: bytes) -> None:
        """Take up what :meth:`dump` gave.

        Raises:
            ValueError: it is something else.
        """
        self._model = NgramModel.from_bytes(learned)

    def bits(self, texts: Sequence[str], segments: Sequence[Segments]) -> list[NDArray[np.float32]]:
        """Of each text, the bits of each of its words, each sentence by itself."""
        words: list[str] = []
        firsts: list[int] = []
        for text, found in zip(texts, segments, strict=True):
            firsts.extend(len(words) + first for first in found.sentences)
            words.extend(text[a:b] for a, b in zip(found.starts, found.ends, strict=True))
        bits = self._model.bits(words, firsts)
        ends = np.cumsum([len(found.starts) for found in segments])
        return np.split(bits, ends[:-1]) if segments else []


def make_annotator(model: str | None = None) -> SelfInformationAnnotator:
    """The annotator by a language model. Blocking: a causal model is loaded.

    Args:
        model: of Hugging Face, by its name on the hub or its folder; ``None``: the n-gram model.

    Raises:
        ScorerUnavailable: its files cannot be loaded.
    """
    if model is None:
        return SelfInformationAnnotator(NgramScorer())
    from strategies.compression.self_information.causal import load

    return SelfInformationAnnotator(load(model))


def _phrases(found: Segments, bits: NDArray[np.float32]) -> Phrases:
    firsts = np.array(found.phrases, dtype=np.int32)
    starts = np.array(found.starts, dtype=np.int32)
    ends = np.array(found.ends, dtype=np.int32)
    sizes = np.diff(firsts, append=np.int32(len(starts)))
    sums = np.add.reduceat(bits, firsts) if len(firsts) else bits
    return Phrases(
        starts=starts[firsts],
        ends=ends[firsts + sizes - 1],
        words=sizes.astype(np.int32),
        information=(sums / sizes).astype(np.float32),
        clauses=np.array(found.clauses, dtype=np.int32),
        protected=np.array(found.protected, dtype=np.bool_),
    )
