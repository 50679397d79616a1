"""Mirror of a ledger in Postgres: every entry, archived or not, as a row.

The primary key of a row is its tenant and the id of its entry, so that an entry has one row. Rows and the place up
to which they go are written in one transaction: a run that is killed loses nothing, and the next one goes on there.
Two runs at once wait for each other. Amounts are ``numeric``.
"""

from __future__ import annotations

import json
from collections.abc import AsyncGenerator, AsyncIterator, Iterator, Mapping, Sequence
from contextlib import aclosing, asynccontextmanager, contextmanager
from dataclasses import asdict, dataclass
from datetime import datetime
from decimal import Decimal
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, get_args, get_type_hints

from posology.budget.books.archive.chain import records
from posology.budget.books.archive.inspection import Inspector
from posology.budget.books.archive.moving import archived_files
from posology.budget.books.reader import Entry, Look, Reader, order
from posology.budget.books.rows import NAMES, AttemptRow, closed
from posology.budget.ledger.base import dollars
from posology.errors import ConfigurationError, InvalidQuery, MirrorFailed, MirrorMismatch
from posology.store.keys import at

if TYPE_CHECKING:
    from psycopg import AsyncConnection, AsyncCursor
    from redis.asyncio import Redis

SCHEMA = "posology_ledger"
#: of the tables; another one is refused
VERSION = 1
#: entries of a transaction
BATCH = 1_000
_AMOUNT = "numeric(28,9)"
_KINDS: Mapping[type, str] = MappingProxyType(
    {
        str: "text",
        int: "bigint",
        bool: "boolean",
        float: "double precision",
        Decimal: _AMOUNT,
        datetime: "timestamp with time zone",
    }
)


def _kind(hint: Any) -> str:
    found = next((kind for kind in get_args(hint) if kind is not type(None)), hint)
    return _KINDS[found]


#: columns of the entries and their types: the key, what the entry changed, and the attempt after it
COLUMNS: Mapping[str, str] = MappingProxyType(
    {
        "tenant": "text",
        "ms": "bigint",
        "seq": "bigint",
        "reserved_change_usd": _AMOUNT,
        "spent_change_usd": _AMOUNT,
        **{n: _kind(hint) for n, hint in get_type_hints(AttemptRow).items() if n != "tenant"},
        "day": "date",
        "fields": "json",
    }
)
_NAMES = ", ".join(f'"{name}"' for name in COLUMNS)
_NEEDED = ("ms", "seq", "reserved_change_usd", "spent_change_usd", "attempt_id", "kind", "fields")
_CREATE = (
    "CREATE SCHEMA posology_ledger",
    "CREATE TABLE posology_ledger.layout (version integer PRIMARY KEY)",
    "CREATE TABLE posology_ledger.progress (tenant text PRIMARY KEY, ms bigint NOT NULL, seq bigint NOT NULL)",
    "CREATE TABLE posology_ledger.entries ({columns}, PRIMARY KEY (tenant, ms, seq))",
    "CREATE INDEX ON posology_ledger.entries (tenant, attempt_id, ms, seq)",
    "CREATE INDEX ON posology_ledger.entries (day, tenant)",
    # the last entry of each attempt; all of its entries have its day, so that a question about days reads no other entries
    """CREATE VIEW posology_ledger.attempts AS SELECT {names} FROM (SELECT DISTINCT ON (day, tenant, attempt_id) *
    FROM posology_ledger.entries ORDER BY day, tenant, attempt_id, ms DESC, seq DESC) AS entry""",
    "INSERT INTO posology_ledger.layout VALUES ({version})",
)
_COLUMNS_THERE = """
SELECT attname::text, format_type(atttypid, atttypmod) FROM pg_attribute
WHERE attrelid = to_regclass('posology_ledger.entries') AND attnum > 0 AND NOT attisdropped ORDER BY attnum"""
_BEGIN = "INSERT INTO posology_ledger.progress VALUES (%s, 0, 0) ON CONFLICT DO NOTHING"
_PROGRESS = "SELECT ms, seq FROM posology_ledger.progress WHERE tenant = %s"
_ADVANCE = "UPDATE posology_ledger.progress SET ms = %s, seq = %s WHERE tenant = %s"
_TOTALS = """
SELECT count(*), coalesce(sum(spent_change_usd), 0), coalesce(sum(reserved_change_usd), 0)
FROM posology_ledger.entries WHERE tenant = %s AND (ms, seq) <= (%s, %s)"""


@dataclass(frozen=True, kw_only=True, slots=True)
class Totals:
    """Sums of all entries of a tenant."""

    entries: int
    #: dollars
    spent: Decimal
    #: dollars
    reserved: Decimal


@dataclass(frozen=True, kw_only=True, slots=True)
class Mirrored:
    """One tenant's mirror after a run."""

    tenant: str
    #: number of entries that this run wrote
    written: int
    #: of the rows, and of the ledger when the run began
    mirror: Totals
    ledger: Totals

    @property
    def right(self) -> bool:
        """Whether both agree."""
        return self.mirror == self.ledger


@asynccontextmanager
async def open_mirror(target: str) -> AsyncIterator[AsyncConnection]:
    """Connect to a database, and create the tables where there are none.

    Args:
        target: ``postgresql://USER@HOST/DATABASE``; what it omits is taken from libpq's variables and files.

    Raises:
        ConfigurationError: psycopg is not installed, or the address is malformed.
        MirrorMismatch: the database has tables of another layout.
        MirrorFailed: Postgres is unreachable, or refuses.
    """
    try:
        import psycopg
        from psycopg.conninfo import conninfo_to_dict
    except ImportError:
        raise ConfigurationError(
            "a mirror needs the package psycopg: pip install 'posology[postgres]'"
        ) from None
    try:
        found = conninfo_to_dict(target)
    except psycopg.ProgrammingError:
        # its message may contain the password
        raise ConfigurationError("use postgresql://USER@HOST:5432/DATABASE") from None
    address = f"{found.get('host') or 'localhost'}/{found.get('dbname') or ''}"
    with _translated(address):
        async with await psycopg.AsyncConnection.connect(target, autocommit=True) as connection:
            await _prepare(connection, address)
            yield connection


@contextmanager
def _translated(address: str) -> Iterator[None]:
    import psycopg

    try:
        yield
    except psycopg.Error as error:
        reason = (str(error).strip() or type(error).__name__).splitlines()[0]
        raise MirrorFailed(f"the mirror at {address}: {reason}", address=address) from None


async def _prepare(connection: AsyncConnection, address: str) -> None:
    """Create the tables, or check that they are ours."""
    async with connection.transaction(), connection.cursor() as cursor:
        # two may come first
        await cursor.execute("SELECT pg_advisory_xact_lock(hashtext('posology_ledger'))")
        await cursor.execute("SELECT to_regnamespace('posology_ledger') IS NULL")
        if await cursor.fetchone() == (True,):
            await _create(cursor)
            return
        await cursor.execute(_COLUMNS_THERE)
        right = await cursor.fetchall() == [*COLUMNS.items()]
        if right:
            await cursor.execute("SELECT version FROM posology_ledger.layout")
            right = await cursor.fetchall() == [(VERSION,)]
    if not right:
        raise MirrorMismatch(
            f"the schema {SCHEMA} at {address} has another layout than this version's: "
            "use another database, or rename that schema",
            address=address,
        )


async def _create(cursor: AsyncCursor) -> None:
    columns = ", ".join(
        f'"{name}" {kind}{" NOT NULL" if name in _NEEDED else ""}' for name, kind in COLUMNS.items()
    )
    names = ", ".join(f'"{name}"' for name in NAMES)
    for text in _CREATE:
        made = text.format(columns=columns, names=names, version=VERSION)
        await cursor.execute(made.encode())


class Mirror:
    """Copies ledgers of one Redis into one database.

    Args:
        redis: the connection.
        url: for messages.
        connection: from :func:`open_mirror`.
        folder: of the archive; ``None``: archived entries that the mirror lacks are refused.
        batch: entries of a transaction.
    """

    def __init__(
        self,
        redis: Redis,
        url: str,
        connection: AsyncConnection,
        *,
        folder: Path | None = None,
        batch: int = BATCH,
    ) -> None:
        self._redis = redis
        self._url = url
        self._connection = connection
        self._folder = folder
        self._batch = batch
        self._address = f"{connection.info.host}/{connection.info.dbname}"

    async def __call__(self, tenant: str) -> Mirrored:
        """Write the entries that a tenant's mirror lacks, and compare number and sums.

        Raises:
            InvalidQuery: archived entries are needed, and their folder is missing or wrong.
            LedgerBusy: entries were archived meanwhile; repeat it.
            MirrorFailed: Postgres is unreachable, or refuses; repeat it.
            StoreUnavailable: Redis is unreachable; repeat it.
        """
        reader = Reader(self._redis, self._url, tenant)
        now = await reader.look(
            ("HMGET", "money", "spent:total", "reserved:total"),
            ("HMGET", "money:base", "entries"),
            ("XLEN", "ledger"),
        )
        with _translated(self._address):
            after = await self._progress(tenant)
            written, batch = 0, list[Entry]()
            async with aclosing(self._entries(reader, now, after)) as entries:
                async for entry in entries:
                    batch.append(entry)
                    if len(batch) >= self._batch:
                        written += await self._write(tenant, batch)
                        batch = []
            written += await self._write(tenant, batch)
            (spent, reserved), (archived,), held = now.found
            ledger = Totals(
                entries=int(archived or 0) + int(held),
                spent=dollars(spent or 0),
                reserved=dollars(reserved or 0),
            )
            mirror = await self._totals(tenant, now.last)
        return Mirrored(tenant=tenant, written=written, mirror=mirror, ledger=ledger)

    async def _progress(self, tenant: str) -> str:
        async with self._connection.cursor() as cursor:
            await cursor.execute(_BEGIN, (tenant,))
            await cursor.execute(_PROGRESS, (tenant,))
            ms, seq = await cursor.fetchone() or (0, 0)
        return f"{ms}-{seq}"

    async def _entries(self, reader: Reader, now: Look, after: str) -> AsyncGenerator[Entry, None]:
        """Yield all entries of a ledger after a place, first those of the archive."""
        tenant = reader.tenant
        if order(now.archived) > order(after):
            for path in await self._archive(tenant, now.archived, after):
                for record in records(path):
                    if order(after) < order(record.entry.place) <= order(now.archived):
                        yield record.entry
            after = now.archived
        async for entry in reader.entries(after, now.last, archived=now.archived):
            yield entry

    async def _archive(self, tenant: str, archived: str, after: str) -> list[Path]:
        """Return the files of the archive with entries after a place; all were inspected."""
        if self._folder is None:
            raise InvalidQuery(
                f"entries of {tenant} up to {archived} are in the archive, and not in the mirror: "
                "give its folder with --archive",
                field="archive",
            )
        found = await Inspector(self._redis, self._url, tenant, self._folder)()
        if found.problems:
            raise InvalidQuery(
                f"the archive of {tenant} in {self._folder} is wrong: run `posology ledger verify "
                f"--tenant {tenant} --archive {self._folder}`",
                field="archive",
            )
        files = archived_files(self._folder, tenant)
        return [file.path for file in files if order(file.last) > order(after)]

    async def _write(self, tenant: str, entries: Sequence[Entry]) -> int:
        """Write entries in one transaction, without those that another run has written."""
        async with self._connection.transaction(), self._connection.cursor() as cursor:
            await cursor.execute(f"{_PROGRESS} FOR UPDATE", (tenant,))
            done = await cursor.fetchone() or (0, 0)
            new = [entry for entry in entries if order(entry.place) > done]
            if not new:
                return 0
            into = f"COPY posology_ledger.entries ({_NAMES}) FROM STDIN"
            async with cursor.copy(into.encode()) as copy:
                for entry in new:
                    found = row(entry, tenant)
                    await copy.write_row([found[name] for name in COLUMNS])
            await cursor.execute(_ADVANCE, (*order(new[-1].place), tenant))
        return len(new)

    async def _totals(self, tenant: str, last: str) -> Totals:
        async with self._connection.cursor() as cursor:
            await cursor.execute(_TOTALS, (tenant, *order(last)))
            found = await cursor.fetchone()
        assert found is not None, "an aggregate has a row"
        return Totals(entries=found[0], spent=found[1], reserved=found[2])


def row(entry: Entry, tenant: str) -> dict[str, Any]:
    """Return the row of an entry: a value for each of :data:`COLUMNS`."""
    ms, seq = order(entry.place)
    values: dict[str, Any] = dict.fromkeys(COLUMNS)
    if entry.charged is None:
        values |= {
            "at": at(entry.fields["at"]), "day": entry.day, "job": entry.job,
            "attempt_id": entry.attempt, "kind": entry.kind, "reserved_usd": dollars(entry.reserved),
        }  # fmt: skip
    else:
        values |= asdict(closed(entry, tenant))
    values |= {
        "tenant": tenant, "ms": ms, "seq": seq, "reserved_change_usd": dollars(entry.reserved),
        "spent_change_usd": dollars(entry.spent), "fields": json.dumps(dict(entry.fields)),
    }  # fmt: skip
    return {name: _storable(value) for name, value in values.items()}


def _storable(value: object) -> object:
    """Return text without NUL and lone surrogates, which Postgres does not take; ``fields`` has the original."""
    if not isinstance(value, str):
        return value
    return value.replace("\0", "\ufffd").encode("utf-8", "replace").decode()
