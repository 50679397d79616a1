"""Ingests of uploaded files as leased work: a file arrives, its bytes are stored, and its ingest waits in Redis."""

from __future__ import annotations

import hashlib
import os
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import IO

import anyio
from anyio import to_thread
from pydantic import ValidationError

from orchestrator.work.files import Files, open_private
from orchestrator.work.items import HELD, WAITING, Item, Limits, NoRoom, of_tenants
from orchestrator.work.store import WorkStore
from posology.errors import IngestNotFound
from posology.published.ingests import IngestOutput, IngestState
from posology.store import keys

#: part of the names of keys and bytes
KIND = "ingest"
INGESTS = of_tenants(KIND)
#: maximum ended ingests of a tenant whose records are kept
MAX_ENDED = 1_000
#: maximum files of a tenant that wait
MAX_FILES = 1_000
MIB = 1024 * 1024
#: the state of a record follows that of its item
_STATES = {WAITING: IngestState.WAITING, HELD: IngestState.RUNNING}


@dataclass(kw_only=True, slots=True)
class Arrival:
    """A file that arrives, in pieces."""

    id: str
    tenant: str
    name: str
    #: where it stands until it is complete
    path: Path
    file: IO[bytes]
    limits: Limits
    #: bytes of the tenant's files that wait
    used: int
    size: int = 0
    digest: hashlib._Hash = field(default_factory=hashlib.sha256)

    def write(self, piece: bytes) -> None:
        """Append a piece.

        Raises:
            NoRoom: the tenant's files would have more bytes than it may.
            OSError: the disk is full, or cannot be written.
        """
        self.size += len(piece)
        if self.used + self.size > self.limits.bytes:
            raise NoRoom("bytes", self.used)
        self.digest.update(piece)
        self.file.write(piece)


class Uploads:
    """Uploaded files and their ingests. All methods raise ``StoreUnavailable`` if Redis is out of reach.

    Args:
        work: the ingests.
        files: the bytes of those that have not ended.
    """

    def __init__(self, work: WorkStore, files: Files) -> None:
        self.work = work
        self.files = files

    @asynccontextmanager
    async def arriving(self, tenant: str, name: str, limits: Limits) -> AsyncIterator[Arrival]:
        """Receive a file during the block; unless it is completed there, nothing of it is left.

        Args:
            tenant: a valid name.
            name: see :func:`~orchestrator.ingest.uploads.names.check_name`.
            limits: of the tenant's files that wait.

        Raises:
            NoRoom: the tenant has no room for another file.
            OSError: the folder cannot be written.
        """
        totals = await self.work.totals(tenant)
        if (count := totals.get(WAITING, 0) + totals.get(HELD, 0)) >= limits.items:
            raise NoRoom("items", count)
        path = await to_thread.run_sync(self.files.arriving, name)
        try:
            file = await to_thread.run_sync(open_private, path)
            try:
                yield Arrival(
                    id=keys.new_id("ingest"), tenant=tenant, name=name, path=path, file=file, limits=limits,
                    used=totals.get("bytes", 0),
                )  # fmt: skip
            finally:
                # the bytes of one that is given up may find no room
                with suppress(OSError):
                    file.close()
        finally:
            with anyio.CancelScope(shield=True):
                await to_thread.run_sync(self.files.drop_arrival, path)

    async def complete(self, arrival: Arrival) -> tuple[IngestOutput, bool]:
        """Let a file that has arrived wait to be ingested, within its block.

        Returns:
            The ingest, and whether it is new: a file of the same name and content that waits already stands for it.

        Raises:
            NoRoom: other files of the tenant have taken the room meanwhile.
        """

        def written() -> None:
            arrival.file.flush()
            os.fsync(arrival.file.fileno())

        await to_thread.run_sync(written)
        made = new_ingest(arrival)
        key = key_of(made)
        if (known := await self.work.of_key(made.tenant, key)) is not None and not known.over:
            return await self.get(known.name, tenant=made.tenant), False
        await to_thread.run_sync(self.files.put, arrival.path, bytes_of(made))
        try:
            name = await self.work.offer(
                made.tenant, made.id, made.model_dump_json(), key=key, size=made.bytes, limits=arrival.limits
            )  # fmt: skip
        except NoRoom:
            await self.drop(made.tenant, made.id)
            raise
        if name == made.id:
            return made, True
        await self.drop(made.tenant, made.id)
        return await self.get(name, tenant=made.tenant), False

    async def get(self, ingest: str, *, tenant: str) -> IngestOutput:
        """Return an ingest as it is now.

        Raises:
            IngestNotFound: the tenant has none of that id, or its record has expired.
        """
        item = await self.work.get(tenant, ingest)
        output = None if item is None else output_of(item)
        if output is None:
            raise unknown_ingest(ingest)
        return output

    async def cancel(self, ingest: str, *, tenant: str) -> IngestOutput:
        """Ask for the end of an ingest, and return it as it is now: the ingesting process ends it. An ended one stays so.

        Raises:
            IngestNotFound: the tenant has none of that id, or its record has expired.
        """
        known = await self.get(ingest, tenant=tenant)
        await self.work.cancel(tenant, ingest)
        return known

    async def all(self, tenant: str) -> list[IngestOutput]:
        """Return a tenant's ingests, newest first."""
        outputs = map(output_of, await self.work.all(tenant))
        return [output for output in outputs if output is not None][::-1]

    async def known(self, tenant: str, sha256: str, *, after: datetime) -> IngestOutput | None:
        """Return a tenant's newest ingest of a content that was submitted after a time; ``None``: there is none."""
        recent = (output for output in await self.all(tenant) if output.submitted >= after)
        return next((output for output in recent if output.sha256 == sha256), None)

    async def pending(self) -> dict[str, list[IngestOutput]]:
        """Return the ingests that have not ended, by tenant, oldest first; tenants without any are left out."""
        return {
            tenant: [output for output in map(output_of, items) if output is not None]
            for tenant, items in (await self.work.all_unfinished()).items()
        }

    async def counts(self) -> Counter[IngestState]:
        """Return the number of ingests whose records are kept, by state."""
        totals = await self.work.all_totals()
        names = {state: state.value for state in IngestState} | {v: k for k, v in _STATES.items()}
        return Counter({state: totals[name] for state, name in names.items()})

    async def drop(self, tenant: str, ingest: str) -> None:
        """Remove the bytes of an ingest."""
        await to_thread.run_sync(self.files.drop, f"{KIND}/{tenant}/{ingest}")


def new_ingest(arrival: Arrival) -> IngestOutput:
    """Return the record of a file that has arrived."""
    return IngestOutput(
        id=arrival.id,
        tenant=arrival.tenant,
        name=arrival.name,
        bytes=arrival.size,
        sha256=arrival.digest.hexdigest(),
        state=IngestState.WAITING,
        phase=None,
        done=0,
        total=None,
        runs=0,
        submitted=datetime.now(UTC),
        started=None,
        ended=None,
        written=0,
        unchanged=0,
        replaced=0,
        bad=0,
        rejected=(),
        unread=None,
        error=None,
    )


def key_of(ingest: IngestOutput) -> str:
    """Return the key of an ingest: files of one name and content are one, until it ends."""
    return f"{ingest.sha256}:{ingest.name}"


def bytes_of(ingest: IngestOutput) -> str:
    """Return the name of an ingest's bytes: an article without an id of its own gets that of its file and folder."""
    return f"{KIND}/{ingest.tenant}/{ingest.id}/{ingest.tenant}/{ingest.name}"


def output_of(item: Item) -> IngestOutput | None:
    """Return the record of an item; ``None``: it is of another version of Posology."""
    try:
        output = IngestOutput.model_validate_json(item.record)
    except ValidationError:
        return None
    if item.over:
        return output
    return output.model_copy(update={"state": _STATES[item.state], "runs": item.runs})


def unknown_ingest(ingest: str) -> IngestNotFound:
    """Return the error for an ingest that a tenant does not have."""
    return IngestNotFound(f"there is no ingest {ingest}, or it has expired", ingest=ingest)
