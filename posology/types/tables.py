"""Fields of evidence tables, and the documents that they are asked of."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Literal

from posology.types.literature import Passage, SentenceRole

#: how sure a reader says that it is of a value; it is not calibrated
Confidence = Literal["high", "medium", "low"]
#: values of a criterion of a screening
VERDICTS = MET, NOT_MET, UNCLEAR = ("met", "not met", "unclear")


class Screening(StrEnum):
    """The decision of a screening on a document."""

    INCLUDE = "include"
    EXCLUDE = "exclude"
    UNSURE = "unsure"


class FieldKind(StrEnum):
    """The kind of a field's values."""

    TEXT = "text"
    NUMBER = "number"
    CHOICE = "choice"


@dataclass(frozen=True, kw_only=True, slots=True)
class Cue:
    """Wording by which a reader without understanding finds the value of a field."""

    #: regular expression for one sentence, of linear time; the value of a number is its group ``value``, of a text the sentence
    pattern: str
    #: expression of the same kind for sentences that it is no cue in; empty: none
    unless: str = ""
    #: the choice that it stands for; ``None``: the field has no choices
    choice: str | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class Field:
    """A column of an evidence table."""

    #: lower case, unique in its table
    name: str
    #: what is asked of each document
    question: str
    kind: FieldKind = FieldKind.TEXT
    #: values of a ``CHOICE``; else empty
    choices: tuple[str, ...] = ()
    #: roles of the sentences that report it, for a reader that needs them; empty: any
    roles: frozenset[SentenceRole] = frozenset()
    #: for the same, the surest first; empty: it looks for an answer to the question
    cues: tuple[Cue, ...] = ()

    @property
    def criterion(self) -> bool:
        """Whether it is a criterion of a screening, whose values are :data:`VERDICTS`."""
        return self.choices == VERDICTS


@dataclass(frozen=True, kw_only=True, slots=True)
class Document:
    """A document of a table, in the passages that its reader made."""

    #: id of the article, or of the passage that is one
    id: str
    #: in order, one or more
    passages: tuple[Passage, ...]

    @classmethod
    def of(cls, passages: Sequence[Passage]) -> Document:
        """Return the document that passages are."""
        return cls(id=passages[0].parent or passages[0].id, passages=tuple(passages))

    @property
    def title(self) -> str:
        """Title of the article; empty: unknown."""
        return self.passages[0].title

    @property
    def unread_pages(self) -> int | None:
        """Pages of its file of which nothing was read; ``None``: unknown."""
        return self.passages[0].unread_pages
