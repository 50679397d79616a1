"""Cells of an evidence table: a value stands only if sentences of the document bear it out."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from enum import StrEnum

from posology.text.figures import Figure, blanked, figures
from posology.text.numbering import without_names
from posology.types import Backing, Citation, Excerpt
from posology.types.tables import Confidence, Document, Field, FieldKind, Screening
from prompts.tables.cells import CellReply
from strategies.citing import Claim, cite, named


class Gap(StrEnum):
    """The reason why a cell has no value."""

    NOT_REPORTED = "not reported by the document"
    NO_QUOTE = "the reply names no sentence of the document"
    UNVERIFIED = "the named sentences do not have its numbers, drugs or words"
    NO_NUMBER = "the reply is not a number"
    NO_CHOICE = "the reply is none of the choices"
    UNANSWERED = "the reply leaves the field out"
    DECLINED = "the provider's safety system declined"
    FAILED = "the document was not read"


@dataclass(frozen=True, kw_only=True, slots=True)
class Cell:
    """The value of one field in one document. A value has at least one verified quote."""

    field: Field
    #: ``None``: there is none, see :attr:`gap`
    value: str | None = None
    citations: tuple[Citation, ...] = ()
    #: as the reader states it; ``None``: there is no value
    confidence: Confidence | None = None
    #: why there is no value; ``None``: there is one
    gap: Gap | None = None
    #: value that was refused, in the reader's words; ``None``: none was
    refused: str | None = None
    #: verdict of the quotes on the value; ``None``: not judged
    backing: Backing | None = None
    #: probability that the quotes support it, 0 to 1; ``None``: not judged, or it repeats a quote word for word
    probability: float | None = None
    #: other values that other parts of the document report
    others: tuple[Cell, ...] = ()


@dataclass(frozen=True, kw_only=True, slots=True)
class TableRow:
    """One document of a table."""

    document: Document
    #: one for each field, in their order
    cells: tuple[Cell, ...]

    @property
    def decision(self) -> Screening | None:
        """Decision by the criteria; ``None``: the table has none.

        One that is verified as not met excludes; include needs all as met. A verdict without a quote counts as unclear.
        """
        found = [cell.value for cell in self.cells if cell.field.criterion]
        if not found:
            return None
        if "not met" in found:
            return Screening.EXCLUDE
        return Screening.INCLUDE if set(found) == {"met"} else Screening.UNSURE

    @property
    def reasons(self) -> tuple[str, ...]:
        """Names of the criteria that the decision rests on: those not met, or else those that are unclear."""
        criteria = [cell for cell in self.cells if cell.field.criterion]
        against = tuple(cell.field.name for cell in criteria if cell.value == "not met")
        return against or tuple(cell.field.name for cell in criteria if cell.value != "met")


def verified(field: Field, reply: CellReply | None, excerpts: Sequence[Excerpt]) -> Cell:
    """Return the cell of a field by a reply.

    Args:
        field: the field.
        reply: what a reader says of it; ``None``: nothing.
        excerpts: what it was shown, in the order of their labels.
    """
    if reply is None:
        return Cell(field=field, gap=Gap.UNANSWERED)
    text, within = without_names(" ".join((reply.value or "").split()))
    if not text:
        return Cell(field=field, gap=Gap.NOT_REPORTED)
    value = _choice(field, text)
    if value is None:
        return Cell(field=field, gap=Gap.NO_CHOICE, refused=text)
    if field.kind is FieldKind.NUMBER and not figures(value):
        return Cell(field=field, gap=Gap.NO_NUMBER, refused=text)
    names = (*reply.sentences, *within)
    there, _ = named(names, excerpts)
    if not there:
        return Cell(field=field, gap=Gap.NO_QUOTE, refused=text)
    if field.kind is not FieldKind.CHOICE:
        there = cite(Claim(text=value, names=names), excerpts).citations
    if not there:
        return Cell(field=field, gap=Gap.UNVERIFIED, refused=text)
    return Cell(field=field, value=value, citations=there, confidence=reply.confidence)


def merged(parts: Sequence[Cell]) -> Cell:
    """Return the cell of a document by those of its parts, in order.

    Equal values, whose numbers are compared by value, become one with the quotes of all. Of different values, the one stands that most parts report, then the one
    with the higher confidence, then the first; the others are kept beside it. Without a value, the first reason stands that
    is more than "not reported".
    """
    groups: dict[tuple[tuple[Figure, ...], str], list[Cell]] = {}
    for one in parts:
        if one.value is not None:
            words = " ".join(blanked(one.value).casefold().split())
            groups.setdefault((figures(one.value), words), []).append(one)
    if not groups:
        return next((one for one in parts if one.gap is not Gap.NOT_REPORTED), parts[0])
    order = sorted(groups.values(), key=lambda some: (-len(some), min(map(_rank, some))))
    first, *rest = (
        replace(
            min(some, key=_rank),
            citations=tuple(dict.fromkeys(c for one in some for c in one.citations)),
        )
        for some in order
    )
    return replace(first, others=tuple(rest))


def _rank(cell: Cell) -> int:
    return ("high", "medium", "low").index(cell.confidence or "low")


def _choice(field: Field, said: str) -> str | None:
    """Return a value as the field writes it; ``None``: it is none of the choices."""
    if field.kind is not FieldKind.CHOICE:
        return said
    return next((one for one in field.choices if one.casefold() == said.casefold()), None)
