"""Permission to add literature over HTTP, and its arrival."""

from __future__ import annotations

import errno
import logging
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager

from fastapi import Request

from orchestrator.api.context import Context, Posology, Tenant, is_keyed
from orchestrator.api.origins import is_local
from orchestrator.api.problems import RequestProblem
from orchestrator.ingest.uploads.fetches import not_allowed, room
from orchestrator.ingest.uploads.uploads import Arrival, Uploads
from orchestrator.work.items import NoRoom
from posology import errors

_log = logging.getLogger(__name__)
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
        raise not_allowed(tenant)
    return tenant


@asynccontextmanager
async def arriving(api: Context, tenant: str, name: str) -> AsyncIterator[tuple[Uploads, Arrival]]:
    """Receive a file during the block; unless it is completed there, nothing of it is left.

    Raises:
        RequestProblem: the tenant has no room for it.
    """
    uploads = api.uploaded
    assert uploads is not None, "the request is allowed"
    limits = room(api.settings)
    try:
        # of a disk that fails, too
        with disk():
            async with uploads.arriving(tenant, name, limits) as arrival:
                yield uploads, arrival
    except NoRoom as full:
        if full.limit == "items":
            reason = f"{full.used} of {limits.items} files wait"
        else:
            left = max(limits.bytes - full.used, 0)
            reason = f"the files that wait leave room for {left} bytes"
        raise RequestProblem(
            429,
            "UploadsFull",
            "The tenant's uploads wait to be ingested and leave no room",
            f"{reason}: wait until files are ingested",
            headers={"Retry-After": "60", "Connection": "close"},
        ) from None


@contextmanager
def disk() -> Iterator[None]:
    """Translate the errors of a full or read-only disk, and of object storage, whose address is the operator's own.

    Raises:
        RequestProblem: the disk has no room.
        StoreUnavailable: object storage fails.
    """
    try:
        yield
    except errors.IndexFault as error:
        _log.error("%s", error)
        raise errors.StoreUnavailable(
            "the storage of uploads is out of reach: retry later", address=""
        ) from None
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
