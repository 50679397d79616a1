"""Takeover of a folder that an earlier version wrote, in which the folders themselves were the records.

::

    UPLOADS/tenants/TENANT/pending/INGEST/    record.json, the file TENANT/NAME, and cancel once it was cancelled
    UPLOADS/tenants/TENANT/ended/INGEST/      record.json

Each step may be repeated, and an old folder is removed once its ingest is in Redis. A process of the earlier version holds
``service.lock``, and a file that arrives there ``upload.lock``.
"""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from contextlib import suppress
from datetime import datetime
from pathlib import Path

from anyio import to_thread
from pydantic import ValidationError

from orchestrator.ingest.uploads.uploads import KIND, Uploads, key_of
from orchestrator.work.files import Busy, FolderFiles, locked, make_private, sync
from orchestrator.work.store import WorkStore
from posology.published.ingests import IngestOutput

_PENDING, _ENDED = "pending", "ended"


async def take_over(uploads: Uploads) -> None:
    """Take over the ingests of an old folder, if there is one; those in use by an earlier version are left for later.

    Raises:
        StoreUnavailable: Redis is out of reach.
        OSError: the disk fails.
    """
    files = uploads.files
    if not isinstance(files, FolderFiles) or not (files.folder / "tenants").is_dir():
        return
    with suppress(Busy), locked(files.folder / "service.lock"):
        for own in _entries(files.folder / "tenants"):
            with suppress(Busy), locked(own / "upload.lock"):
                await _take_tenant(uploads, files.folder, own)
        with suppress(OSError):
            (files.folder / "tenants").rmdir()
            (files.folder / "service.lock").unlink()


async def _take_tenant(uploads: Uploads, folder: Path, own: Path) -> None:
    work = uploads.work
    for entry in (*_entries(own / _PENDING), *_entries(own / _ENDED)):
        record = _read(entry)
        if record is None:
            # of another version: it stays for it
            continue
        if record.ended is not None:
            past = at_time(work, record.ended)
            await past.offer(own.name, record.id, record.model_dump_json(), ended=record.state)
        else:
            place = folder / KIND / own.name / record.id
            await to_thread.run_sync(_move, entry / own.name, place)
            await work.offer(
                own.name, record.id, record.model_dump_json(), key=key_of(record), size=record.bytes
            )
            if (entry / "cancel").exists():
                await work.cancel(own.name, record.id)
        shutil.rmtree(entry)
    await work.enlist(own.name)
    # all but the last need to be empty
    with suppress(OSError):
        shutil.rmtree(own / "arriving", ignore_errors=True)
        for name in (_PENDING, _ENDED):
            if (own / name).is_dir():
                (own / name).rmdir()
        shutil.rmtree(own)


def at_time(work: WorkStore, time: datetime) -> WorkStore:
    """Return a store for changes that were made at a time: ended items expire by it."""
    milliseconds = int(time.timestamp() * 1000)
    return WorkStore(work.redis, work.url, work.kind, clock=lambda: milliseconds)


def _move(source: Path, place: Path) -> None:
    """Move a folder of bytes into another one, unless that was done."""
    if source.exists():
        make_private(place)
        source.rename(place / source.name)
        for folder in (place, place.parent, place.parent.parent):
            sync(folder)


def _entries(folder: Path) -> Iterator[Path]:
    if folder.is_dir():
        yield from sorted(path for path in folder.iterdir() if path.is_dir())


def _read(entry: Path) -> IngestOutput | None:
    try:
        return IngestOutput.model_validate_json((entry / "record.json").read_bytes())
    except (FileNotFoundError, ValidationError):
        return None
