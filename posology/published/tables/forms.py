"""Published form of evidence tables."""

from __future__ import annotations

from posology.published.base import Dollars, Published
from posology.published.money import RunCost
from posology.types import Backing
from posology.types.tables import Confidence, FieldKind, Screening


class TableField(Published):
    """A column of a table."""

    name: str
    """Name of the column."""
    question: str
    """Question that was asked of each document."""
    kind: FieldKind
    """Text, number or choice."""
    choices: tuple[str, ...]
    """Values of a choice; else empty."""


class TableQuote(Published):
    """A verified quote: a whole sentence of the document."""

    passage: str
    """Id of the passage: the document, or a part of it."""
    section: str | None
    """Heading of that part; null: none."""
    page: int | None
    """Page of the file on which the quote begins; null: unknown, as of all formats but PDF."""
    start: int
    """First code point of the quote in the passage's text."""
    end: int
    """Code point after the last one of the quote."""
    quote: str
    """The quote, word for word."""
    ocr: bool = False
    """Whether OCR read any of it from a scanned page: letters and numbers may differ from what the page shows."""


class OtherValue(Published):
    """A value that another part of the document reports."""

    value: str
    """Value that the part reports."""
    quotes: tuple[TableQuote, ...]
    """Sentences behind it."""


class TableCell(Published):
    """One field of one document. A value has at least one verified quote."""

    field: str
    """Name of the column."""
    value: str | None
    """Null: there is none, see `reason`."""
    reason: str | None
    """Why there is no value; null: there is one."""
    refused: str | None
    """Value that failed the check, in the model's words: do not use it. Null: none did."""
    confidence: Confidence | None
    """High, medium or low, as the model states it, not calibrated; null: there is no value."""
    backing: Backing | None
    """What the quotes say of the value: supported, unclear, unsupported or contradicted; null: not judged, as of choices and of values that are their quote."""
    probability: float | None
    """Probability that the quotes support it, 0 to 1; null: not judged, or it repeats a quote word for word."""
    quotes: tuple[TableQuote, ...]
    """Sentences behind the value; empty: there is none."""
    others: tuple[OtherValue, ...]
    """Different values of other parts of the document: a conflict."""


class TableRowOutput(Published):
    """One document of a table."""

    document: str
    """Id of the document."""
    title: str
    """Title of the document; empty: it has none."""
    retracted: bool
    """Whether the document was retracted."""
    decision: Screening | None
    """Decision of the screening: include, exclude or unsure; null: the table has no criteria."""
    reasons: tuple[str, ...]
    """Criteria that the decision rests on: those not met, or else those that are unclear."""
    error: str | None
    """Why the document was not read; null: it was."""
    unread_pages: int | None = None
    """Pages of its file of which nothing was read, e.g. scans without OCR; null: unknown, as of all formats but PDF."""
    cells: tuple[TableCell, ...]
    """One for each field, in their order."""


class _Documents(Published):
    """Size of a run over documents."""

    documents: int
    """Documents of the table."""
    read: int
    """Documents that are already read."""
    calls: int
    """Calls to make."""


class TableEstimate(RunCost, _Documents):
    """Cost estimate of a table; calls that already have a reply are not included."""

    low_usd: Dollars
    """Minimum: no document reports any field."""
    worst_usd: Dollars
    """Maximum: every reply has the maximum length and needs a second call."""


class TableOutput(Published):
    """An evidence table."""

    model: str
    """Model that read the documents."""
    fields: tuple[TableField, ...]
    """Columns, in their order."""
    rows: tuple[TableRowOutput, ...]
    """One for each document, in the order of the files; empty if it was only planned."""
    left_out: tuple[str, ...]
    """Records that could not be read, with the reason."""
    estimate: TableEstimate | None
    """Null: the table was read by jobs."""
    spent_usd: Dollars
    """Spent on the table."""
