"""The folder of tables, beside that of uploads: requests, replies and tables.

::

    UPLOADS/tables.lock                        held by the process that reads
    UPLOADS/tables/TENANT/tables.lock          held while a table of the tenant is added or leftovers are cleared
    UPLOADS/tables/TENANT/arriving/TABLE/      one that is not complete
    UPLOADS/tables/TENANT/pending/TABLE/       one that waits or is read
    UPLOADS/tables/TENANT/ended/TABLE/         one that has ended

A table is a folder with ``record.json``, ``plan.json`` (the request and the documents), ``digest`` (of the plan),
``run.jsonl`` (the replies), ``table.json`` (its rows) and ``cancel`` (it was cancelled). Records are replaced and folders are
moved by one ``rename`` each. The reading process writes what is pending, and the API what is new or continues.
"""

from __future__ import annotations

import errno
import os
import re
import shutil
from collections import Counter
from collections.abc import Collection, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

from pydantic import ValidationError

from orchestrator.tables.served.plan import Plan
from orchestrator.work.files import Busy, locked, make_private, sync
from posology.errors import TableNotFound
from posology.published.tables.forms import TableOutput
from posology.published.tables.orders import TableOrder, TableState
from posology.store import keys

#: maximum tables of a tenant that wait, and that are kept after their end
MAX_WAITING, MAX_KEPT = 20, 200
#: bytes that must be free before calls are made: some hundred replies
_ROOM = 1024 * 1024
_ID = re.compile(r"table_[0-9a-f]{28}")
_RECORD, _PLAN, _DIGEST = "record.json", "plan.json", "digest"
_RUN, _TABLE, _CANCEL = "run.jsonl", "table.json", "cancel"
_ARRIVING, _PENDING, _ENDED = "arriving", "pending", "ended"
#: in the order of a search: a table moves from the first to the second, and back when it continues
_PLACES = (_PENDING, _ENDED, _PENDING)


class NoRoom(Exception):
    """Too many tables of a tenant wait."""


class NoSpace(Exception):
    """A tenant's tables have no space for another one.

    Args:
        reason: the limit, and its numbers.
    """


class Tables:
    """The folder. Blocking; it may be shared by threads and processes.

    Args:
        uploads: the folder of uploads; created when it is first written, for its user alone.
    """

    def __init__(self, uploads: Path) -> None:
        self._uploads = uploads
        self._tables = uploads / "tables"

    @contextmanager
    def adding(self, tenant: str, plan: Plan, room: int) -> Iterator[Adding]:
        """Add a table during the block; unless it is completed there, nothing of it is left.

        Args:
            tenant: a valid name.
            plan: the request and its documents.
            room: maximum bytes of the tenant's tables, with those that have ended.

        Raises:
            Busy: another process adds a table of the tenant; of this process, one at a time must ask.
            NoRoom: too many tables of the tenant wait.
            NoSpace: the tenant's tables have too many bytes for another one.
            OSError: the folder cannot be written.
        """
        own = self._own(tenant)
        make_private(own)
        arriving = own / _ARRIVING
        with locked(own / "tables.lock"):
            # left by a process that was killed
            shutil.rmtree(arriving, ignore_errors=True)
            digest, content = plan.digest(), plan.dump()
            every = self.all(tenant)
            known = next((one for one in every if self._digest(one) == digest), None)
            stands = known is not None and self._stands(known)
            if not stands:
                waiting = sum(not one.over for one in every)
                if waiting >= MAX_WAITING:
                    raise NoRoom(
                        f"{waiting} of {MAX_WAITING} tables wait: wait until tables are read, or cancel one"
                    )
                # one that ended early must keep what was paid for
                if known is None and (used := _size(own) + len(content)) > room:
                    raise NoSpace(
                        f"the tenant's tables would have {used} bytes of at most {room}: wait until tables expire, or send "
                        "fewer documents"
                    )
            made = keys.new_id("table")
            folder = arriving / made
            folder.mkdir(parents=True)
            try:
                (folder / _DIGEST).write_text(digest, encoding="ascii")
                (folder / _PLAN).write_bytes(content)
                if known is not None:
                    # its replies cost nothing, so the estimate is without them
                    with suppress(FileNotFoundError):
                        shutil.copyfile(self.run(known), folder / _RUN)
                table = made if known is None else known.id
                yield Adding(id=table, known=known, stands=stands, folder=folder)
            finally:
                shutil.rmtree(arriving, ignore_errors=True)

    def complete(self, adding: Adding, order: TableOrder) -> None:
        """Let a table wait to be read, within its block; one that ended early continues with its replies."""
        own = self._own(order.tenant)
        folder = adding.folder
        if adding.known is not None:
            folder = own / _ENDED / adding.id
            (adding.folder / _PLAN).replace(folder / _PLAN)
            (folder / _CANCEL).unlink(missing_ok=True)
        _write(folder, order)
        self._move(folder, own / _PENDING)

    def get(self, table: str, *, tenant: str) -> TableOrder:
        """Return a table as it is now.

        Raises:
            TableNotFound: the tenant has none of that id, or it has expired.
        """
        if _ID.fullmatch(table):
            own = self._own(tenant)
            for place in _PLACES:
                if (found := _read(own / place / table)) is not None:
                    return found
        raise TableNotFound(f"there is no table {table}, or it has expired", table=table)

    def all(self, tenant: str) -> list[TableOrder]:
        """Return a tenant's tables, newest first."""
        own = self._own(tenant)
        known: dict[str, TableOrder] = {}
        for place in _PLACES:
            known |= {one.id: one for one in _records(own / place)}
        return [known[one] for one in sorted(known, reverse=True)]

    def waiting(self) -> list[TableOrder]:
        """Return the tables of all tenants that have not ended, oldest first."""
        found = (one for own in _entries(self._tables) for one in _records(own / _PENDING))
        return sorted(found, key=lambda one: one.id)

    def cancel(self, order: TableOrder) -> TableOrder:
        """Cancel a table, unless it has ended; return it as it is then.

        Raises:
            TableNotFound: it has expired meanwhile.
        """
        own = self._own(order.tenant)
        for place in _PLACES:
            found = _read(own / place / order.id)
            if found is not None and not found.over:
                with suppress(FileNotFoundError):
                    (own / place / order.id / _CANCEL).touch()
        return self.get(order.id, tenant=order.tenant)

    def counts(self) -> Counter[TableState]:
        """Return the number of tables of all tenants that have not ended, by state."""
        return Counter(one.state for one in self.waiting())

    def is_cancelled(self, order: TableOrder) -> bool:
        """Return whether a table that has not ended was cancelled."""
        return (self._folder(order) / _CANCEL).exists()

    def plan(self, order: TableOrder) -> Plan:
        """Return the plan of a table that has not ended."""
        return Plan.read((self._folder(order) / _PLAN).read_bytes())

    def run(self, order: TableOrder) -> Path:
        """Return the path of the file of a table's replies."""
        return self._folder(order) / _RUN

    def table(self, order: TableOrder) -> TableOutput | None:
        """Return the rows of a table that has ended; ``None``: there are none, or it continues."""
        try:
            content = (self._folder(order) / _TABLE).read_bytes()
        except FileNotFoundError:
            return None
        return TableOutput.model_validate_json(content)

    def save(self, order: TableOrder) -> None:
        """Record the state of a table that has not ended. Only the reading process does this."""
        _write(self._folder(order), order)

    def check_room(self, order: TableOrder) -> None:
        """Check that the disk has room for replies: those that cannot be kept would be paid for again.

        Raises:
            OSError: it has none.
        """
        path = self._folder(order) / "room"
        try:
            with path.open("wb", buffering=0) as file:
                # no file system compresses these
                if file.write(os.urandom(_ROOM)) < _ROOM:
                    raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
                os.fsync(file.fileno())
        finally:
            path.unlink(missing_ok=True)

    def end(self, order: TableOrder, table: TableOutput | None) -> None:
        """Record the end of a table, and its rows; ``None``: those of before stay. Only the reading process does this."""
        own = self._own(order.tenant)
        folder = own / _PENDING / order.id
        if table is not None:
            made = folder / f"{_TABLE}.new"
            made.write_bytes(table.model_dump_json().encode())
            made.rename(folder / _TABLE)
        # on a full disk, it has not moved
        _prepare(folder, order)
        # the record comes last: once it has ended, the API may let it continue
        _publish(self._move(folder, own / _ENDED))

    def sweep(self, before: datetime, busy: Collection[str] = ()) -> None:
        """Forget tables that ended before a time, and of a tenant's others all but the newest; clear what a crash left.

        Only the reading process does this.

        Args:
            before: tables that ended before this time are forgotten.
            busy: tenants with a table that is being read: what looks like left by a crash may be its end.
        """
        for own in _entries(self._tables):
            if not (own / _ENDED).is_dir():
                continue
            with suppress(Busy), locked(own / "tables.lock"):
                ended = sorted(_records(own / _ENDED), key=lambda one: one.id, reverse=True)
                for place, one in enumerate(ended):
                    folder = own / _ENDED / one.id
                    if one.ended is None:
                        # a process was killed between the last two steps, or the disk failed
                        if own.name not in busy:
                            self._move(folder, own / _PENDING)
                    elif place >= MAX_KEPT or one.ended < before:
                        shutil.rmtree(folder, ignore_errors=True)
                    else:
                        (folder / _PLAN).unlink(missing_ok=True)

    @contextmanager
    def serving(self) -> Iterator[None]:
        """Be the process that reads tables during the block.

        Raises:
            Busy: another process is.
            OSError: the folder cannot be written.
        """
        make_private(self._uploads)
        with locked(self._uploads / "tables.lock"):
            yield

    def _move(self, folder: Path, place: Path) -> Path:
        place.mkdir(exist_ok=True)
        moved = folder.rename(place / folder.name)
        sync(place)
        return moved

    def _stands(self, order: TableOrder) -> bool:
        if not order.over:
            return True
        table = self.table(order)
        complete = table is not None and not any(row.error for row in table.rows)
        return complete and order.state is TableState.SUCCEEDED

    def _digest(self, order: TableOrder) -> str | None:
        own = self._own(order.tenant)
        # its record may say that it has not ended when it has moved
        for place in _PLACES:
            with suppress(FileNotFoundError):
                return (own / place / order.id / _DIGEST).read_text(encoding="ascii")
        return None

    def _folder(self, order: TableOrder) -> Path:
        return self._own(order.tenant) / (_ENDED if order.over else _PENDING) / order.id

    def _own(self, tenant: str) -> Path:
        keys.prefix(tenant)
        return self._tables / tenant


@dataclass(frozen=True, kw_only=True, slots=True)
class Adding:
    """A table that is added."""

    id: str
    #: the same table, which was requested before; ``None``: it is new
    known: TableOrder | None
    #: whether that one is in progress or complete, so that the request changes nothing
    stands: bool
    #: its folder until it is complete, with the replies of ``known``
    folder: Path

    @property
    def run(self) -> Path:
        """Return the path of a file of replies for an estimate."""
        return self.folder / _RUN


def _entries(folder: Path) -> list[Path]:
    try:
        return [one for one in folder.iterdir() if one.is_dir()]
    except FileNotFoundError:
        return []


def _size(folder: Path) -> int:
    found = 0
    for place, _, names in os.walk(folder):
        for name in names:
            # folders move meanwhile
            with suppress(FileNotFoundError):
                found += (Path(place) / name).stat().st_size
    return found


def _records(folder: Path) -> Iterator[TableOrder]:
    for entry in _entries(folder):
        if (found := _read(entry)) is not None:
            yield found


def _read(folder: Path) -> TableOrder | None:
    try:
        found = TableOrder.model_validate_json((folder / _RECORD).read_bytes())
    except (FileNotFoundError, ValidationError):
        # it has moved or expired, or is of another version of Posology
        return None
    if not found.over and (folder / _CANCEL).exists():
        return found.model_copy(update={"state": TableState.CANCELLING})
    return found


def _write(folder: Path, order: TableOrder) -> None:
    _prepare(folder, order)
    _publish(folder)


def _prepare(folder: Path, order: TableOrder) -> None:
    """Write a record beside the one that is read."""
    made = folder / f"{_RECORD}.new"
    with made.open("wb") as file:
        file.write(order.model_dump_json().encode())
        file.flush()
        os.fsync(file.fileno())


def _publish(folder: Path) -> None:
    """Replace the record by the one that was prepared."""
    (folder / f"{_RECORD}.new").rename(folder / _RECORD)
    sync(folder)
