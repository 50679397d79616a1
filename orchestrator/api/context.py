"""What the routes work with."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Annotated

from fastapi import Depends, Header, Request

from orchestrator.api.traffic import Traffic
from orchestrator.jobs import keys
from orchestrator.jobs.batches import Batches
from orchestrator.jobs.keys import DEFAULT_TENANT
from orchestrator.jobs.store import JobStore
from orchestrator.settings import Settings


@dataclass(frozen=True, kw_only=True, slots=True)
class Limits:
    """How much one request may take."""

    #: bytes of a job's body
    job_bytes: int = 1024 * 1024
    #: bytes of a batch, also when it is unpacked
    batch_bytes: int = 64 * 1024 * 1024
    #: rows of a batch
    batch_rows: int = 100_000
    #: event streams at once: each holds a connection to Redis
    streams: int = 256
    #: seconds between comments that keep an event stream open
    keep_alive: float = 15.0
    #: seconds within which Redis must answer a health check
    health: float = 2.0


@dataclass(kw_only=True, slots=True)
class Context:
    """One app's parts."""

    settings: Settings
    limits: Limits
    #: set while the app runs
    store: JobStore | None = None
    traffic: Traffic = field(default_factory=Traffic)
    #: event streams that are open
    streams: int = 0
    _batches: Batches | None = None

    def jobs(self) -> JobStore:
        """The store of an app that runs."""
        if self.store is None:
            raise RuntimeError("the app was not started: its lifespan opens the store")
        return self.store

    def batches(self) -> Batches:
        """The batches of the same store."""
        if self._batches is None:
            self._batches = Batches(self.jobs(), self.settings)
        return self._batches


def _context(request: Request) -> Context:
    found = request.app.state.context
    assert isinstance(found, Context)
    return found


def _tenant(
    x_posology_tenant: Annotated[
        str, Header(description="Whose jobs these are.", examples=["acme"])
    ] = DEFAULT_TENANT,
) -> str:
    """Whose request it is; the one place that decides it.

    Raises:
        InvalidQuery: no tenant can have that name.
    """
    keys.prefix(x_posology_tenant)
    return x_posology_tenant


Posology = Annotated[Context, Depends(_context)]
Tenant = Annotated[str, Depends(_tenant)]
