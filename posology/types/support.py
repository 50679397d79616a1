"""Support: whether the quotes behind a sentence of an answer say what it says."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class Backing(StrEnum):
    """What the quotes behind a sentence say of it."""

    SUPPORTED = "supported"
    #: neither clearly supported nor clearly not, or rules and judge disagree
    UNCLEAR = "unclear"
    UNSUPPORTED = "unsupported"
    CONTRADICTED = "contradicted"


class Rule(StrEnum):
    """A rule that a sentence can fail beside its quotes."""

    #: shares neither content words nor a number with them
    SUBJECT = "subject"
    #: a number with comparison and unit that they lack
    NUMBER = "number"
    DRUG = "drug"
    #: a name with digits, such as IL-6
    NAME = "name"
    #: negates what they state, or the reverse
    NEGATION = "negation"
    #: an increase where they have a decrease of the same thing, and the like
    DIRECTION = "direction"
    #: other people or animals than theirs
    POPULATION = "population"


@dataclass(frozen=True, kw_only=True, slots=True)
class SentenceSupport:
    """The support of one sentence of an answer."""

    #: first code point of the sentence in the answer's text
    start: int
    #: one past its last code point
    end: int
    backing: Backing
    #: probability that its quotes support it, 0 to 1; ``None``: not judged, or it repeats a quote word for word
    probability: float | None
    #: places of its quotes among the answer's citations, from 0
    citations: tuple[int, ...] = ()
    #: rules that it fails
    failed: tuple[Rule, ...] = ()
    #: whether a rule fails what the judge supports, or the judge contradicts what passes every rule
    disagrees: bool = False

    @property
    def stands(self) -> bool:
        """Whether its quotes support it, or may."""
        return self.backing in (Backing.SUPPORTED, Backing.UNCLEAR)


@dataclass(frozen=True, kw_only=True, slots=True)
class Support:
    """The support of every sentence of an answer."""

    #: identity of the judge; ``None``: none was asked, so that rules alone decided
    judge: str | None
    #: in the order of the text
    sentences: tuple[SentenceSupport, ...]
    #: number of sentences that were removed because their quotes do not support them
    removed: int = 0

    @property
    def unsupported(self) -> int:
        """Return the number of shown sentences that their quotes do not support, or contradict."""
        return sum(not one.stands for one in self.sentences)
