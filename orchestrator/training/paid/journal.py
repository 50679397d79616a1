"""Journal of a run's batches at a provider, beside the run's file: written before each step, read when the run resumes.

It has the provider's batches whose replies are not all kept in the run's file. An empty journal is removed.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from decimal import Decimal
from pathlib import Path
from typing import Annotated, Any, Literal, TypeAlias

from pydantic import Field, TypeAdapter

from orchestrator.training.paid.rows import Format, Row, RowFile, open_rows


class Planned(Row):
    """A batch that is about to be reserved and created: nothing of it exists before this row."""

    row: Literal["planned"] = "planned"
    #: our id of it, which the provider is given as its label
    batch: str
    #: POSIX seconds
    created: float
    #: ``provider:name``
    model: str
    #: opening of each attempt, as in the ledger, by its id
    attempts: dict[str, dict[str, Any]]


class Created(Row):
    """The provider has the batch."""

    row: Literal["created"] = "created"
    batch: str
    #: the provider's id
    provider_batch: str


class Dropped(Row):
    """An attempt that was neither reserved nor sent: the budget had no room for it."""

    row: Literal["dropped"] = "dropped"
    batch: str
    attempt: str


class Settled(Row):
    """The ledger has the end of an attempt."""

    row: Literal["settled"] = "settled"
    batch: str
    attempt: str


class Over(Row):
    """A batch whose replies are kept in the run's file, or that was never created."""

    row: Literal["over"] = "over"
    batch: str


_Line: TypeAlias = Annotated[
    Planned | Created | Dropped | Settled | Over, Field(discriminator="row")
]
_line: TypeAdapter[Planned | Created | Dropped | Settled | Over] = TypeAdapter(_Line)


@dataclass(kw_only=True, slots=True)
class Sent:
    """A batch that is not over."""

    planned: Planned
    #: openings of its attempts, by their ids
    attempts: dict[str, dict[str, Any]]
    #: ``None``: unknown whether it was created
    provider_batch: str | None = None
    #: attempts whose end is in the ledger
    settled: set[str] = field(default_factory=set)

    @property
    def open(self) -> Mapping[str, Mapping[str, Any]]:
        """Return the openings of the attempts whose end is unknown, by their ids."""
        return {name: one for name, one in self.attempts.items() if name not in self.settled}


@dataclass(kw_only=True, slots=True)
class Batches:
    """Content of a journal: the batches that are not over, the first one first, by our id."""

    sent: dict[str, Sent] = field(default_factory=dict)

    @property
    def reserved(self) -> Decimal:
        """Return the dollars that attempts whose end is unknown may cost."""
        entries = (entry for one in self.sent.values() for entry in one.open.values())
        return sum((Decimal(entry["reserved"]) for entry in entries), Decimal(0))

    @property
    def open(self) -> list[str]:
        """Return the attempts whose end is unknown."""
        return [name for one in self.sent.values() for name in one.open]

    @property
    def known(self) -> list[str]:
        """Return the provider's ids of the batches."""
        found = (one.provider_batch for one in self.sent.values())
        return [name for name in found if name is not None]

    def add(self, row: Row) -> None:
        """Add a row."""
        match row:
            case Planned():
                self.sent[row.batch] = Sent(planned=row, attempts=dict(row.attempts))
            case Created():
                self._of(row.batch).provider_batch = row.provider_batch
            case Dropped():
                self._of(row.batch).attempts.pop(row.attempt, None)
            case Settled():
                self._of(row.batch).settled.add(row.attempt)
            case Over():
                del self.sent[self._of(row.batch).planned.batch]

    def _of(self, batch: str) -> Sent:
        if batch not in self.sent:
            raise ValueError(f"the batch {batch} was not planned before")
        return self.sent[batch]


JournalFile: TypeAlias = RowFile[Batches]
_FORMAT = Format(
    parse=_line.validate_json,
    empty=Batches,
    add=Batches.add,
    mismatch="not a journal of batches",
)


def journal_path(run: Path) -> Path:
    """Return the path of the journal of a run's file."""
    return run.with_name(f"{run.name}.batches")


@contextmanager
def open_journal(run: Path) -> Iterator[JournalFile]:
    """Open the journal of a run, and remove it if all batches are over at the end.

    Raises:
        BadFile: the file cannot be read or written, is of another kind, or is locked by another process.
    """
    path = journal_path(run)
    with open_rows(path, _FORMAT) as file:
        yield file
        if not file.content.sent:
            path.unlink(missing_ok=True)
