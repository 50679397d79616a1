"""Waits for jobs and batches, patiently, also for a Redis that went away."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import TypeVar

import anyio

from orchestrator.cli.jobs.files import Sink
from orchestrator.jobs.batches import Batches
from orchestrator.jobs.place import open_jobs, store_url
from orchestrator.jobs.store import JobStore
from orchestrator.settings import Settings
from posology.errors import ConfigurationError, StoreUnavailable
from posology.published.jobs import BatchOutput, BatchRow, JobEvent, JobOutput

#: default seconds to wait for an unreachable Redis
PATIENCE = 600.0

#: seconds between looks
_LOOK = 0.5
#: rows asked for at once
_PAGE = 100
_Found = TypeVar("_Found")
Tell = Callable[[str], None]


class Patience:
    """Tries again while Redis is unreachable, up to a time; whatever is tried may be repeated.

    Args:
        seconds: that one outage may last.
        tell: gets a line when it begins and when it ends.
    """

    def __init__(self, seconds: float, tell: Tell) -> None:
        self._seconds = seconds
        self._tell = tell
        #: whether Redis has ever answered; before that there is nothing to wait for
        self.begun = False
        self._since: float | None = None

    def reached(self) -> None:
        """Redis has answered."""
        self.begun = True
        if self._since is not None:
            self._since = None
            self._tell("Redis is back: continuing")

    async def __call__(self, work: Callable[[], Awaitable[_Found]]) -> _Found:
        """Do it until it can be done.

        Raises:
            StoreUnavailable: Redis did not answer at first, or did not come back.
        """
        while True:
            try:
                return await work()
            except StoreUnavailable as error:
                if not self.begun:
                    raise
                now = anyio.current_time()
                if self._since is None:
                    self._since = now
                    self._tell(
                        f"{error}. Waiting for up to {self._seconds:g} s; nothing is lost meanwhile"
                    )
                if now - self._since >= self._seconds:
                    raise
                await anyio.sleep(min(1.0, self._seconds))


@asynccontextmanager
async def open_again(settings: Settings, patience: Patience) -> AsyncIterator[JobStore]:
    """Open the job store; wait for a stack that has stopped as for a Redis.

    Raises:
        ConfigurationError: no address is configured, and no stack was running.
        StoreUnavailable: the stack is gone.
    """
    try:
        # at every try: a stack that is started again may have another address
        store_url(settings)
    except ConfigurationError as error:
        if patience.begun:
            raise StoreUnavailable(error.message, address=settings.home) from None
        raise
    async with open_jobs(settings) as store:
        yield store


async def follow(
    settings: Settings,
    job: str,
    *,
    tenant: str,
    patience: Patience,
    show: Callable[[JobEvent], None],
) -> JobOutput:
    """A job when it is over, and each of its events once, whatever becomes of Redis meanwhile.

    Raises:
        JobNotFound: the tenant has no such job, or its record has expired.
        StoreUnavailable: Redis did not answer at first, or did not come back.
    """
    after = "0"

    async def attempt() -> JobOutput:
        nonlocal after
        async with open_again(settings, patience) as store:
            async for event in store.events(job, tenant=tenant, after=after):
                patience.reached()
                after = event.id
                show(event)
            return await store.get(job, tenant=tenant)

    return await patience(attempt)


async def collect(
    batches: Batches,
    batch: str,
    *,
    tenant: str,
    sink: Sink,
    show: Callable[[BatchOutput], None],
) -> BatchOutput:
    """Write rows, in order, until all are written.

    Args:
        batches: where the batch is.
        batch: its id.
        tenant: name of the tenant.
        sink: where the rows go; those that are there already are not asked for.
        show: gets the batch as it is, at every look.

    Raises:
        BatchNotFound: the tenant has no such batch, or its record has expired.
        StoreUnavailable: Redis is unreachable; what was written is kept.
    """
    while True:
        now = await batches.get(batch, tenant=tenant)
        show(now)
        # a row alone first: while it is not over, its successors need not be looked at
        limit = 1
        while sink.rows < now.total:
            page = await batches.rows(batch, tenant=tenant, after=sink.rows - 1, limit=limit)
            ready = _over(page)
            # the disk may take its time, in which nothing else waits
            sink.write(ready)
            if len(ready) < len(page) or not page:
                break
            limit = _PAGE
        if sink.rows >= now.total:
            now = await batches.get(batch, tenant=tenant)
            show(now)
            return now
        await anyio.sleep(_LOOK)


def _over(page: list[BatchRow]) -> list[BatchRow]:
    """The rows before the first that is not over."""
    for i, row in enumerate(page):
        if row.result is None and row.error is None:
            return page[:i]
    return page
