"""Compressed contexts, and the cost and effect of compression."""

from __future__ import annotations

from dataclasses import dataclass, field
from decimal import Decimal

from posology.types.calls import Usage
from posology.types.literature import Excerpt


@dataclass(frozen=True, kw_only=True, slots=True)
class Compressed:
    """The result of a compressor."""

    #: passages that keep some text, in order, each with its kept spans
    excerpts: tuple[Excerpt, ...]
    #: number of sentences kept whole
    kept: int
    #: number of sentences before
    sentences: int
    #: name of the compressor that ran, which may differ from the requested one
    compressor: str
    #: usage of the compressor's own calls; ``None``: a provider reported none
    usage: Usage | None = field(default_factory=Usage)
    #: remarks for the reader of the answer, in whole sentences
    remarks: tuple[str, ...] = ()

    @property
    def extractive(self) -> bool:
        """Whether all of its text is quoted from the sources."""
        return all(excerpt.summary is None for excerpt in self.excerpts)


@dataclass(frozen=True, kw_only=True, slots=True)
class Compression:
    """The cost and effect of compression, for the record of an answer."""

    #: name of the compressor
    compressor: str
    #: whether all of its text is quoted from the sources
    extractive: bool
    #: number of sentences kept whole, and before
    kept: int
    sentences: int
    #: number of words shown, summaries included, and before
    shown: int
    words: int
    #: seconds, its own calls included; not compared
    seconds: float = field(compare=False)
    #: usage of its own calls; ``None``: a provider reported none
    usage: Usage | None

    def __add__(self, other: Compression) -> Compression:
        """Return the sum, as for two steps of a ladder."""
        known = self.usage is not None and other.usage is not None
        names = dict.fromkeys((self.compressor, other.compressor))
        return Compression(
            compressor=", ".join(names),
            extractive=self.extractive and other.extractive,
            kept=self.kept + other.kept,
            sentences=self.sentences + other.sentences,
            shown=self.shown + other.shown,
            words=self.words + other.words,
            seconds=self.seconds + other.seconds,
            usage=self.usage + other.usage if known else None,  # type: ignore[operator]
        )


@dataclass(frozen=True, kw_only=True, slots=True)
class Saving:
    """The expected saving of compression, and its own cost."""

    #: name of the compressor
    compressor: str
    #: tokens of the passages, by the model's tokenizer
    tokens: int
    #: dollars for them as input, uncompressed
    whole: Decimal
    #: share of their words that is kept, 0 to 1
    left: float
    #: dollars of the compressor: machine time and calls
    cost: Decimal
    #: seconds of machine time; ``None``: none, it calls a model
    seconds: float | None
