"""Takeover of a folder that an earlier version wrote, in which the folders themselves were the records.

::

    UPLOADS/tenants/TENANT/{pending,ended}/INGEST/    record.json, the file TENANT/NAME, and cancel once it was cancelled
    UPLOADS/tables/TENANT/{pending,ended}/TABLE/      record.json, plan.json, digest (of the plan), run.jsonl (the replies),
                                                      table.json (the rows), and cancel

Each step may be repeated, and an old folder is removed once its item is in Redis. A process of the earlier version holds
``service.lock`` and ``tables.lock``, and one that adds to a tenant's folder a lock there.
"""

from __future__ import annotations

import fcntl
import os
import shutil
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager, suppress
from datetime import datetime
from pathlib import Path
from typing import TypeVar

from anyio import to_thread
from pydantic import BaseModel, ValidationError

from orchestrator.ingest.uploads.uploads import KIND, Uploads, key_of
from orchestrator.tables.served.tables import KIND as TABLE_KIND
from orchestrator.tables.served.tables import Tables, is_complete
from orchestrator.work.files import FolderFiles, make_private
from orchestrator.work.store import WorkStore
from posology.durable import sync_folder
from posology.errors import InvalidQuery
from posology.published.ingests import IngestOutput
from posology.published.tables.orders import TableOrder, TableState
from posology.store import keys

_Record = TypeVar("_Record", bound=BaseModel)
_RECORD = "record.json"


class Busy(Exception):
    """Another process has the lock."""


async def take_over(uploads: Uploads, tables: Tables) -> None:
    """Take over the ingests and tables of an old folder, if there is one; those in use by an earlier version are left for later.

    Raises:
        StoreUnavailable: Redis is out of reach.
        OSError: the disk fails.
    """
    if not isinstance(uploads.files, FolderFiles):
        return
    folder = uploads.files.folder

    async def ingest(entry: Path, tenant: str) -> bool:
        return await _take_ingest(uploads, entry, folder / KIND / tenant, tenant)

    async def table(entry: Path, tenant: str) -> bool:
        return await _take_table(tables, entry, folder / TABLE_KIND / tenant, tenant)

    await _take_all(folder / "tenants", folder / "service.lock", "upload.lock", ingest)
    await _take_all(folder / "tables", folder / "tables.lock", "tables.lock", table)


async def _take_all(
    old: Path, service: Path, lock: str, take: Callable[[Path, str], Awaitable[bool]]
) -> None:
    if not await to_thread.run_sync(old.is_dir):
        return
    with suppress(Busy), locked(service):
        for own in filter(_is_tenant, _folders(old)):
            with suppress(Busy), locked(own / lock):
                entries = [*_folders(own / "pending"), *_folders(own / "ended")]
                taken = [await take(entry, own.name) for entry in entries]
                for entry in (entry for entry, done in zip(entries, taken, strict=True) if done):
                    await to_thread.run_sync(shutil.rmtree, entry)
                # records of another version stay for it
                if all(taken):
                    await to_thread.run_sync(shutil.rmtree, own)
        # unless one of a tenant is left
        with suppress(OSError):
            await to_thread.run_sync(old.rmdir)
            await to_thread.run_sync(service.unlink)


@contextmanager
def locked(path: Path) -> Iterator[None]:
    """Hold a kernel lock, which is free when its process dies.

    Raises:
        Busy: another process holds it.
    """
    file = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
    try:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise Busy(str(path)) from None
        yield
    finally:
        os.close(file)


async def _take_ingest(uploads: Uploads, entry: Path, place: Path, tenant: str) -> bool:
    if (record := _read(entry, IngestOutput)) is None:
        return False
    content = record.model_dump_json()
    if record.ended is not None:
        past = _at(uploads.work, record.ended)
        await past.offer(tenant, record.id, content, ended=record.state)
    else:
        await to_thread.run_sync(_move, entry / tenant, place / record.id)
        await uploads.work.offer(tenant, record.id, content, key=key_of(record), size=record.bytes)
        await _cancel(uploads.work, entry, tenant)
    await uploads.work.enlist(tenant)
    return True


async def _take_table(tables: Tables, entry: Path, place: Path, tenant: str) -> bool:
    if (record := _read(entry, TableOrder)) is None:
        return False
    size = await to_thread.run_sync(_move_table, entry, place / record.id)
    digest, content = _text(entry / "digest"), record.model_dump_json()
    # before the table, since its reader must find all of them; a row that was cut off by a crash is none
    rows = _text(entry / "run.jsonl").split("\n")[:-1]
    if not (record.state is TableState.SUCCEEDED and is_complete(await tables.table(record))):
        await tables.work.prepare(tenant, record.id, rows)
    if record.ended is not None:
        past = _at(tables.work, record.ended)
        await past.offer(tenant, record.id, content, key=digest, size=size, ended=record.state)
    else:
        await tables.work.offer(tenant, record.id, content, key=digest, size=size)
        await _cancel(tables.work, entry, tenant)
    await tables.work.enlist(tenant)
    return True


async def _cancel(work: WorkStore, entry: Path, tenant: str) -> None:
    if (entry / "cancel").exists():
        await work.cancel(tenant, entry.name)


def _at(work: WorkStore, time: datetime) -> WorkStore:
    """Return a store for changes that were made at a time: ended items expire by it."""
    milliseconds = int(time.timestamp() * 1000)
    return WorkStore(work.redis, work.url, work.kind, clock=lambda: milliseconds)


def _move(source: Path, place: Path) -> None:
    """Move bytes into a folder, unless that was done."""
    if source.exists():
        make_private(place)
        source.rename(place / source.name)
        for folder in (place, place.parent, place.parent.parent):
            sync_folder(folder)


def _move_table(entry: Path, place: Path) -> int:
    """Move the plan and the rows of a table, unless that was done; return their bytes."""
    for name in ("plan.json", "table.json"):
        _move(entry / name, place)
    return sum(path.stat().st_size for path in place.glob("*"))


def _is_tenant(folder: Path) -> bool:
    """Return whether a folder may be a tenant's: others are not ours, such as lost+found."""
    try:
        keys.prefix(folder.name)
    except InvalidQuery:
        return False
    return True


def _text(path: Path) -> str:
    return path.read_text(encoding="utf-8") if path.exists() else ""


def _folders(folder: Path) -> Iterator[Path]:
    if folder.is_dir():
        yield from sorted(path for path in folder.iterdir() if path.is_dir())


def _read(entry: Path, form: type[_Record]) -> _Record | None:
    try:
        return form.model_validate_json((entry / _RECORD).read_bytes())
    except (FileNotFoundError, ValidationError):
        return None
