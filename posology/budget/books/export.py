"""Export of ledgers: a file with one row for each attempt, in its last state."""

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

from posology.budget.books.archive.files import written
from posology.budget.books.reader import PAGE, START, Entry, Reader, pairs
from posology.budget.books.rows import NAMES, AttemptRow, closed, under_way
from posology.budget.ledger.windows import midnight
from posology.errors import BadFile

if TYPE_CHECKING:
    import pyarrow as pa

#: maximum rows in memory
ROWS = 2_000
#: digits of an amount in Parquet, and of them decimals
_DIGITS, _SCALE = 28, 9
_TIMES = frozenset({"at", "started"})
_DOLLARS = frozenset({"reserved_usd", "cost_usd", "charged_usd"})
_COUNTS = frozenset(
    {
        "partition", "call", "attempt", "input", "cache_read", "cache_write_5m", "cache_write_1h",
        "output", "reasoning", "input_bound", "max_tokens",
    }
)  # fmt: skip
#: first characters of a cell that a spreadsheet takes for a formula; the last marks an escaped cell
_FORMULA = ("=", "+", "-", "@", "\t", "\r", "\n", "'")


@dataclass(frozen=True, kw_only=True, slots=True)
class Wanted:
    """Selection of attempts. Days are those of the charged windows, so that sums agree with the spending figures."""

    #: first day; ``None``: from the beginning
    since: date | None = None
    #: last day, inclusive; ``None``: to the end
    until: date | None = None
    #: id of a job or of a run in process; ``None``: all
    job: str | None = None

    def __call__(self, day: str, job: str) -> bool:
        """Whether an attempt is selected."""
        return (
            (self.since is None or self.since.isoformat() <= day)
            and (self.until is None or day <= self.until.isoformat())
            and (self.job is None or job == self.job)
        )

    @property
    def start(self) -> str:
        """Return an entry id before all selected entries: a day's charges are never written before the day."""
        if self.since is None:
            return START
        return f"{max(0, int(midnight(self.since).timestamp() * 1000) - 1)}-0"


async def attempts(
    redis: Redis, url: str, tenant: str, wanted: Wanted, *, size: int = PAGE
) -> AsyncIterator[AttemptRow]:
    """Yield the attempts of a tenant's ledger: ended ones, then open ones.

    Only the ids of orphaned attempts that were settled later are kept in memory.

    Args:
        redis: the connection.
        url: for messages.
        tenant: name of the tenant.
        wanted: selection.
        size: entries read at once.

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
    """Write a file, which gets its name when it is complete; return its number of rows.

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
        """Write the end after the last row; the file stays open."""


class JsonLines:
    """One JSON object for each line; amounts are strings, so that no reader rounds them."""

    def __init__(self, file: BinaryIO) -> None:
        self._file = file

    def write(self, rows: Sequence[AttemptRow]) -> None:
        """Append rows."""
        for row in rows:
            plain = {name: _plain(getattr(row, name)) for name in NAMES}
            self._file.write(json.dumps(plain, ensure_ascii=False).encode() + b"\n")

    def close(self) -> None:
        """Write nothing: there is no end."""


class Csv:
    """RFC 4180 with a header. An unknown value is an empty cell.

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
    """Typed columns: amounts are decimals with nine places, times are UTC."""

    def __init__(self, file: BinaryIO) -> None:
        import pyarrow.parquet as pq

        self._schema = schema()
        self._writer = pq.ParquetWriter(file, self._schema, compression="zstd")

    def write(self, rows: Sequence[AttemptRow]) -> None:
        """Append rows as a row group."""
        import pyarrow as pa

        columns = {name: [getattr(row, name) for row in rows] for name in NAMES}
        self._writer.write_table(pa.table(columns, schema=self._schema))

    def close(self) -> None:
        """Write the file's footer."""
        self._writer.close()


#: writers by the suffix of the file
FORMS: Mapping[str, Callable[[BinaryIO], TableForm]] = MappingProxyType(
    {".jsonl": JsonLines, ".csv": Csv, ".parquet": Parquet}
)


def schema() -> pa.Schema:
    """Return the columns of a Parquet file."""
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
