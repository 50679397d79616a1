"""Permission to add literature over HTTP, and its arrival in the folder of uploads."""

from __future__ import annotations

import errno
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager

import anyio
from anyio import to_thread
from fastapi import Request

from orchestrator.api.context import Context, Posology, Tenant, is_keyed
from orchestrator.api.origins import is_local
from orchestrator.api.problems import RETRY_AFTER, RequestProblem
from orchestrator.ingest.uploads.folder import Arrival, Busy, NoRoom, Room, Uploads
from posology import errors

MIB = 1024 * 1024
#: header of an accepted request, in the OpenAPI document
LOCATION = {"Location": {"schema": {"type": "string"}, "description": "Path of the ingest."}}


async def allowed(request: Request, api: Posology, tenant: Tenant) -> str:
    """Return the tenant, if it may add literature.

    Without a key, the request must come from this machine, and a setting must allow it: the name of the tenant is then
    no more than a claim.

    Raises:
        IngestNotAllowed: it may not, or the service takes no uploads.
    """
    if api.settings.uploads is None:
        raise errors.IngestNotAllowed("this service takes no uploads", tenant=tenant)
    if not is_keyed(request):
        if api.settings.open_uploads and is_local(request):
            return tenant
        raise errors.IngestNotAllowed(
            "without an API key, this service takes no uploads: send a key", tenant=tenant
        )
    try:
        known = await api.tenants().get(tenant)
    except errors.TenantNotFound:
        known = None
    if known is None or not known.limits.may_ingest:
        raise errors.IngestNotAllowed(
            f"the tenant {tenant} may not add literature to the index: ask the operator of this service",
            tenant=tenant,
        )
    return tenant


@asynccontextmanager
async def arriving(api: Context, tenant: str, name: str) -> AsyncIterator[tuple[Uploads, Arrival]]:
    """Receive a file during the block; unless it is completed there, nothing of it is left.

    Raises:
        RequestProblem: the tenant has no room for it, or sends another one.
    """
    uploads = api.uploaded
    assert uploads is not None, "the request is allowed"
    room = Room(size=api.settings.uploads_mib * MIB)
    opening = uploads.arriving(tenant, name, room)
    try:
        with disk():
            arrival = await to_thread.run_sync(opening.__enter__)
    except NoRoom as full:
        raise no_room(full) from None
    except Busy:
        raise RequestProblem(
            429,
            "TooManyUploads",
            "Too many uploads of files are under way",
            "another upload of this tenant is under way: retry later",
            headers={"Retry-After": str(RETRY_AFTER)},
        ) from None
    try:
        yield uploads, arrival
    finally:
        with anyio.CancelScope(shield=True):
            await to_thread.run_sync(opening.__exit__, None, None, None)


@contextmanager
def disk() -> Iterator[None]:
    """Translate the error of a full or read-only disk."""
    try:
        yield
    except OSError as error:
        if error.errno not in (errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EROFS):
            raise
        raise RequestProblem(
            507,
            "DiskFull",
            "The service has no room for the file",
            "the disk for uploads is full or read-only: ask the operator of this service",
            headers={"Connection": "close"},
        ) from None


def no_room(full: NoRoom) -> RequestProblem:
    """Return the problem of a tenant whose uploads leave no room."""
    return RequestProblem(
        429,
        "UploadsFull",
        "The tenant's uploads wait to be ingested and leave no room",
        f"{full}: wait until files are ingested",
        headers={"Retry-After": "60", "Connection": "close"},
    )
