"""Writes the attempts of ledgers into a file: one row an attempt, its last word."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import date, datetime
from decimal import Decimal
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, BinaryIO, Protocol

from redis.asyncio import Redis

from posology.budget.books.files import written
from posology.budget.books.reader import PAGE, START, Entry, Reader, pairs
from posology.budget.books.rows import NAMES, AttemptRow, closed, under_way
from posology.budget.ledger.windows import midnight
from posology.errors import BadFile

if TYPE_CHECKING:
    import pyarrow as pa

#: rows that are in memory at once
ROWS = 2_000
#: digits of an amount in Parquet, and how many of them stand after the point
_DIGITS, _SCALE = 28, 9
_TIMES = frozenset({"at", "started"})
_DOLLARS = frozenset({"reserved_usd", "cost_usd", "charged_usd"})
_COUNTS = frozenset(
    {
        "partition", "call", "attempt", "input", "cache_read", "cache_write_5m", "cache_write_1h",
        "output", "reasoning", "input_bound", "max_tokens",
    }
)  # fmt: skip
#: a cell that begins so is a formula to a spreadsheet, or (the last) was made safe already
_FORMULA = ("=", "+", "-", "@", "\t", "\r", "\n", "'")


@dataclass(frozen=True, kw_only=True, slots=True)
class Wanted:
    """Attempts to export. Days are those of the charge, so that sums agree with the figures of spending."""

    #: ``None``: from the first on
    since: date | None = None
    #: inclusive; ``None``: to the last
    until: date | None = None
    #: of this job, or of this run that is none; ``None``: all
    job: str | None = None

    def __call__(self, day: str, job: str) -> bool:
        """Whether an attempt is wanted."""
        return (
            (self.since is None or self.since.isoformat() <= day)
            and (self.until is None or day <= self.until.isoformat())
            and (self.job is None or job == self.job)
        )

    @property
    def start(self) -> str:
        """A place before all that is wanted: nothing of a day's money is written before the day."""
        if self.since is None:
            return START
        return f"{max(0, int(midnight(self.since).timestamp() * 1000) - 1)}-0"


async def attempts(
    redis: Redis, url: str, tenant: str, wanted: Wanted, *, size: int = PAGE
) -> AsyncIterator[AttemptRow]:
    """The attempts in a tenant's ledger as it is now: those that have ended, then those under way.

    What is kept in memory meanwhile is the ids of attempts that were lost and then told of.

    Args:
        redis: the connection.
        url: for messages.
        tenant: whose.
        wanted: which.
        size: entries that are read at once.

    Raises:
        LedgerBusy: it is being archived: rows would be missing.
        StoreUnavailable: Redis is out of reach.
    """
    reader = Reader(redis, url, tenant, size=size)
    now = await reader.look(("HGETALL", "money:open"))

    def entries() -> AsyncIterator[Entry]:
        return reader.entries(wanted.start, now.last, archived=now.archived)

    put_right = {entry.attempt async for entry in entries() if entry.kind == "correct"}
    async for entry in entries():
        if _last_word(entry, put_right) and wanted(entry.day, entry.job):
            yield closed(entry, tenant)
    for attempt, raw in pairs(now.found[0]).items():
        reservation = json.loads(raw)
        if wanted(reservation["day"], reservation["job"]):
            yield under_way(attempt, reservation, tenant)


def _last_word(entry: Entry, put_right: set[str]) -> bool:
    if entry.kind == "lose":
        return entry.attempt not in put_right
    return entry.charged is not None


async def export(redis: Redis, url: str, path: Path, tenants: Sequence[str], wanted: Wanted) -> int:
    """Write a file, which has its name when it is complete; returns how many rows it has.

    Raises:
        BadFile: it cannot be written, or its name says no form of :data:`FORMS`.
        LedgerBusy: a ledger is being archived; there is no file then.
        StoreUnavailable: Redis is out of reach; there is no file then.
    """
    make = FORMS.get(path.suffix.lower())
    if make is None:
        raise BadFile(f"its name must end in {', '.join(FORMS)}", path=str(path))
    count, rows = 0, list[AttemptRow]()
    with written(path) as file:
        form = make(file)
        for tenant in tenants:
            async for row in attempts(redis, url, tenant, wanted):
                rows.append(row)
                count += 1
                if len(rows) >= ROWS:
                    form.write(rows)
                    rows = []
        form.write(rows)
        form.close()
    return count


class TableForm(Protocol):
    """Writes rows in one format."""

    def write(self, rows: Sequence[AttemptRow]) -> None:
        """Append rows."""

    def close(self) -> None:
        """Write what comes after the last row; the file itself stays open."""


class JsonLines:
    """A JSON object a line; amounts are strings, so that no reader rounds them."""

    def __init__(self, file: BinaryIO) -> None:
        self._file = file

    def write(self, rows: Sequence[AttemptRow]) -> None:
        """Append rows."""
        for row in rows:
            plain = {name: _plain(getattr(row, name)) for name in NAMES}
            self._file.write(json.dumps(plain, ensure_ascii=False).encode() + b"\n")

    def close(self) -> None:
        """Nothing comes after the last row."""


class Csv:
    """RFC 4180 with a header. Unknown is an empty cell.

    A spreadsheet takes a cell that begins with ``=`` for a formula, and a model's name is whatever a caller
    wrote. So text that begins with one of ``= + - @ '`` or white space gets an apostrophe before it.
    """

    def __init__(self, file: BinaryIO) -> None:
        self._text = io.TextIOWrapper(file, encoding="utf-8", newline="", write_through=True)
        self._rows = csv.writer(self._text)
        self._rows.writerow(NAMES)

    def write(self, rows: Sequence[AttemptRow]) -> None:
        """Append rows."""
        for row in rows:
            self._rows.writerow([_cell(getattr(row, name)) for name in NAMES])

    def close(self) -> None:
        """Leave the file open."""
        self._text.detach()


class Parquet:
    """Typed columns: amounts are decimals of nine places, times are UTC."""

    def __init__(self, file: BinaryIO) -> None:
        import pyarrow.parquet as pq

        self._schema = schema()
        self._writer = pq.ParquetWriter(file, self._schema, compression="zstd")

    def write(self, rows: Sequence[AttemptRow]) -> None:
        """Append rows as a group of their own."""
        import pyarrow as pa

        columns = {name: [getattr(row, name) for row in rows] for name in NAMES}
        self._writer.write_table(pa.table(columns, schema=self._schema))

    def close(self) -> None:
        """Write the directory of the groups."""
        self._writer.close()


#: by the end of a file's name
FORMS: Mapping[str, Callable[[BinaryIO], TableForm]] = MappingProxyType(
    {".jsonl": JsonLines, ".csv": Csv, ".parquet": Parquet}
)


def schema() -> pa.Schema:
    """The columns of a Parquet file."""
    import pyarrow as pa

    def kind(name: str) -> pa.DataType:
        if name in _TIMES:
            return pa.timestamp("us", tz="UTC")
        if name in _DOLLARS:
            return pa.decimal128(_DIGITS, _SCALE)
        if name in _COUNTS:
            return pa.int64()
        return {"known": pa.bool_(), "latency": pa.float64()}.get(name, pa.string())

    return pa.schema([pa.field(name, kind(name)) for name in NAMES])


def _plain(value: object) -> Any:
    match value:
        case Decimal():
            return f"{value:f}"
        case datetime():
            return value.isoformat().replace("+00:00", "Z")
        case _:
            return value


def _cell(value: object) -> object:
    match value:
        case str():
            return f"'{value}" if value.startswith(_FORMULA) else value
        case bool():
            return "true" if value else "false"
        case _:
            return _plain(value)
