"""What is left of a context when it was compressed, and what compressing it took."""

from __future__ import annotations

from dataclasses import dataclass, field
from decimal import Decimal

from posology.types.calls import Usage
from posology.types.literature import Excerpt


@dataclass(frozen=True, kw_only=True, slots=True)
class Compressed:
    """What a compressor leaves of a context."""

    #: passages of which anything is left, in their order, with the stretches that are left
    excerpts: tuple[Excerpt, ...]
    #: sentences that are left whole
    kept: int
    #: sentences that there were
    sentences: int
    #: name of the compressor that did it, which may be another than the one that was asked
    compressor: str
    #: of the calls that the compressor made; ``None``: a provider did not tell
    usage: Usage | None = field(default_factory=Usage)
    #: what a reader of the answer should know of it, in whole sentences
    remarks: tuple[str, ...] = ()

    @property
    def extractive(self) -> bool:
        """Whether all that is shown are the sources' own words."""
        return all(excerpt.summary is None for excerpt in self.excerpts)


@dataclass(frozen=True, kw_only=True, slots=True)
class Compression:
    """What compressing took, and what it left, for the record of an answer."""

    #: name of the compressor
    compressor: str
    #: whether all that was shown are the sources' own words
    extractive: bool
    #: sentences that were left whole, of those that there were
    kept: int
    sentences: int
    #: words that were shown, summaries included, of those that there were
    shown: int
    words: int
    #: seconds that it took, its own calls included; two that led to the same are equal, however long they took
    seconds: float = field(compare=False)
    #: of the calls that it made; ``None``: a provider did not tell
    usage: Usage | None

    def __add__(self, other: Compression) -> Compression:
        """Both together, as of two calls of a ladder."""
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
    """What compressing passages is expected to save, and what it costs itself."""

    #: name of the compressor
    compressor: str
    #: tokens of the passages, as the model counts them
    tokens: int
    #: dollars that they cost as input when they are shown whole
    whole: Decimal
    #: the share of their words that is left, 0 to 1
    left: float
    #: dollars of the compressor: its machine's, and its calls'
    cost: Decimal
    #: of its machine; ``None``: it has none, since it asks a model
    seconds: float | None
