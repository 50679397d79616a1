"""What the routes work with, and whose a request is."""

from __future__ import annotations

import hmac
from dataclasses import dataclass, field
from typing import Annotated

from fastapi import Depends, Header, Request, Security
from fastapi.security import HTTPAuthorizationCredentials, HTTPBearer

from orchestrator.api.problems import RequestProblem
from orchestrator.api.traffic import Traffic
from orchestrator.jobs.batches import Batches
from orchestrator.jobs.store import JobStore
from orchestrator.settings import Auth, Settings
from posology.budget.tenants.store import TenantStore, refused
from posology.store import keys
from posology.store.keys import DEFAULT_TENANT


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
    _tenants: TenantStore | None = None

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

    def tenants(self) -> TenantStore:
        """The tenants of the same Redis."""
        if self._tenants is None:
            store = self.jobs()
            self._tenants = TenantStore(store.redis, store.url)
        return self._tenants


def _context(request: Request) -> Context:
    found = request.app.state.context
    assert isinstance(found, Context)
    return found


Posology = Annotated[Context, Depends(_context)]
_Given = Annotated[
    HTTPAuthorizationCredentials | None,
    Security(
        HTTPBearer(
            auto_error=False,
            scheme_name="key",
            bearerFormat="psl_ID_SECRET",
            description="The API key of a tenant, as `posology tenants create` shows it.",
        )
    ),
]


async def _tenant(
    api: Posology,
    given: _Given,
    x_posology_tenant: Annotated[
        str | None,
        Header(
            description="Whose jobs these are. With an API key they are its tenant's, and this is left out or "
            "says the same.",
            examples=["acme"],
        ),
    ] = None,
) -> str:
    """Whose request it is; the one place that decides it.

    A key is looked up each time: what was found before it was ended must not outlive it. Where the API is
    open, a key that is given counts nevertheless.

    Raises:
        KeyRefused: the key is nobody's, or there must be one.
        TenantDisabled: its tenant is disabled.
        RequestProblem: the header says another tenant than the key.
        InvalidQuery: no tenant can have that name.
    """
    if given is not None:
        tenant = await api.tenants().of_key(given.credentials)
        if x_posology_tenant not in (None, tenant):
            raise RequestProblem(
                403,
                "NotYourTenant",
                "The API key is of another tenant",
                "X-Posology-Tenant names another tenant than the API key's: leave it out",
            )
        return tenant
    if api.settings.auth is Auth.KEYS:
        raise refused()
    tenant = DEFAULT_TENANT if x_posology_tenant is None else x_posology_tenant
    keys.prefix(tenant)
    return tenant


async def operator(api: Posology, given: _Given) -> None:
    """Let only those pass who may see figures of all tenants: with keys, these tell of others.

    Raises:
        KeyRefused: the key is not that of ``POSOLOGY_METRICS_KEY``.
    """
    if api.settings.auth is not Auth.KEYS:
        return
    wanted = api.settings.metrics_key
    if given is None or wanted is None:
        raise refused()
    if not hmac.compare_digest(given.credentials.encode(), wanted.get_secret_value().encode()):
        raise refused()


Tenant = Annotated[str, Depends(_tenant)]
