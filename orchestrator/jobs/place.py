"""Where the jobs are: as configured, else on the stack that runs here."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import AbstractContextManager, asynccontextmanager, nullcontext
from pathlib import Path
from typing import TYPE_CHECKING

from orchestrator.settings import LogFormat, Settings
from orchestrator.stack.folder import read_stack
from posology.errors import ConfigurationError

if TYPE_CHECKING:
    from orchestrator.jobs.admission import Room
    from orchestrator.jobs.store import JobStore


def store_url(settings: Settings) -> str:
    """The address of the Redis that keeps the jobs, with its password.

    Raises:
        ConfigurationError: none is configured, and no stack runs.
    """
    url = known_store(settings)
    if url is None:
        raise ConfigurationError(
            f"no stack runs on {settings.home}: run `posology up`, or set POSOLOGY_REDIS_URL"
        )
    return url


def known_store(settings: Settings) -> str | None:
    """The same; ``None`` where none is configured, and no stack runs."""
    if settings.redis_url is not None:
        return settings.redis_url.get_secret_value()
    stack = read_stack(Path(settings.home))
    return None if stack is None else stack.redis_url


def outage(settings: Settings, address: str) -> str | None:
    """Return what to do about a Redis that does not answer; ``None``: it is not that of the stack that runs here.

    Args:
        settings: have the stack's folder.
        address: of the Redis, without its password.
    """
    from posology.store.connection import shown

    stack = read_stack(Path(settings.home))
    if stack is None or shown(stack.redis_url) != address:
        return None
    return hung(address)


def hung(address: str) -> str:
    """Say that the Redis of a running stack does not answer, and what to do."""
    return (
        f"the running stack's Redis at {address} does not answer: see `posology logs`, or stop the stack with Ctrl-C "
        "and start it again"
    )


def room(settings: Settings) -> Room:
    """Return the room of tenants without limits of their own."""
    from orchestrator.jobs.admission import Room

    return Room(queued=settings.max_queued, stored=settings.max_stored)


@asynccontextmanager
async def open_jobs(settings: Settings) -> AsyncIterator[JobStore]:
    """Open the job store for a command.

    Args:
        settings: with the address.

    Raises:
        ConfigurationError: no address is configured, or it is invalid.
    """
    url = store_url(settings)
    from orchestrator.jobs.store import open_store
    from orchestrator.prices import price_book
    from posology.store.connection import FEW_TRIES

    with _logged(settings):
        async with open_store(
            url,
            retention=settings.retention,
            patience=FEW_TRIES,
            prices=price_book(settings),
            room=room(settings),
        ) as store:
            yield store


def _logged(settings: Settings) -> AbstractContextManager[None]:
    """Return a block whose events are logged: with the stack's, or on standard error if JSON is asked for."""
    from orchestrator.logs.commands import logged

    if settings.redis_url is None:
        return logged(settings.log_level.value, Path(settings.home) / "log")
    if settings.log_format is LogFormat.JSON:
        return logged(settings.log_level.value, None)
    return nullcontext()
