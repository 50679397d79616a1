"""Stored answers whose evidence has changed since, as JSON."""

from __future__ import annotations

from datetime import datetime
from enum import StrEnum

from posology.published.base import Published


class ChangeKind(StrEnum):
    """Kind of a change of cited evidence."""

    RETRACTED = "retracted"
    #: an expression of concern was published
    CONCERN = "concern"
    CORRECTED = "corrected"
    #: the passage has another title or text
    REPLACED = "replaced"
    #: the index no longer holds the passage
    REMOVED = "removed"


class EvidenceChange(Published):
    """A change of a passage since an answer cited it."""

    passage: str
    """Id of the cited passage."""
    title: str
    """Title of its article, as the answer cited it."""
    kind: ChangeKind
    """Kind: retracted, concern, corrected, replaced (another title or text) or removed (from the index)."""
    source: str | None = None
    """Source of a retraction, concern or correction: `record`, `notice` or the name of a file of notices; null: unknown,
    or another kind."""
    by: str | None = None
    """Id of the record or notice that states it; null: unknown, or another kind."""
    date: str | None = None
    """Date of that statement, ISO 8601; null: unknown, or another kind."""
    version: str | None = None
    """First readable version of the index with the change, e.g. `index@18`; null: unknown."""
    published: datetime | None = None
    """Time when that version was published; null: unknown."""
    digest: str | None = None
    """Digest of the present title and text of a replaced passage; null: another kind."""
    standing_quotes: tuple[str, ...] = ()
    """Cited quotes that the present text of a replaced passage still contains."""
    lost_quotes: tuple[str, ...] = ()
    """Cited quotes that the present text no longer contains; all of them if the passage was removed."""


class AffectedAnswer(Published):
    """A stored answer that cites evidence which has changed since."""

    job: str
    """Id of its job."""
    batch: str | None
    """Id of its batch; null: none."""
    row: int | None
    """Row of its batch, from 0; null: none."""
    question: str
    """The question."""
    answered: datetime | None
    """Time of the answer."""
    index: str
    """Name and version of the index that the answer used."""
    changes: tuple[EvidenceChange, ...]
    """The changes, in the order of the citations."""


class AffectedPage(Published):
    """A page of stored answers, newest first, reduced to the affected ones: it may be empty and have a next page."""

    answers: tuple[AffectedAnswer, ...]
    """The affected answers."""
    checked: int
    """Number of stored answers that were compared with the index."""
    skipped: int
    """Number of answers that were not compared, because they used an index of another name."""
    notified: int = 0
    """Number of events `evidence_changed` that this run wrote; each change is announced once for a job."""
    index: str
    """Name and version of the index that they were compared with."""
    next: str | None
    """Cursor of the next page; null: this is the last one."""
