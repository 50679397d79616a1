"""State of the app for its routes, and authentication."""

from __future__ import annotations

import hmac
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Annotated

import anyio
from fastapi import Depends, Header, Request, Security
from fastapi.security import HTTPAuthorizationCredentials, HTTPBearer

from orchestrator.api.literature import Estimating, Literature
from orchestrator.api.places import Places
from orchestrator.api.problems import RequestProblem
from orchestrator.api.traffic import TENANT, Traffic
from orchestrator.ingest.uploads.uploads import INGESTS, Uploads
from orchestrator.jobs.batches import Batches
from orchestrator.jobs.store import JobStore
from orchestrator.oidc import provider_of
from orchestrator.question.sent import unknown_field
from orchestrator.service import OPEN, place_of
from orchestrator.settings import Auth, Settings
from orchestrator.tables.served.tables import TABLES, Tables
from orchestrator.work.files import Files, open_files
from orchestrator.work.store import WorkStore
from posology.budget.tenants.grants import check_grants
from posology.budget.tenants.store import TenantStore, refused
from posology.errors import CollectionNotFound, KeyRefused
from posology.store import keys
from posology.store.keys import DEFAULT_TENANT

if TYPE_CHECKING:
    from orchestrator.oidc.provider import Provider


@dataclass(frozen=True, kw_only=True, slots=True)
class Limits:
    """Limits of one request."""

    #: maximum bytes of a job's body
    job_bytes: int = 1024 * 1024
    #: maximum bytes of a batch, also unpacked
    batch_bytes: int = 64 * 1024 * 1024
    #: maximum rows of a batch
    batch_rows: int = 100_000
    #: seconds within which a batch must have arrived
    upload: float = 300.0
    #: maximum batches that are received or submitted, and those that wait for another of their tenant
    batches: int = 8
    #: the same of one tenant; one of them at a time
    tenant_batches: int = 3
    #: maximum concurrent event streams; each uses a connection to Redis
    streams: int = 256
    #: maximum concurrent event streams of one tenant
    tenant_streams: int = 32
    #: maximum estimates that wait or are made
    estimates: int = 8
    #: maximum uploads of files that are received, and those that wait for another of their tenant
    files: int = 64
    #: the same of one tenant; one of them at a time
    tenant_files: int = 8
    #: seconds within which a file must have arrived
    file_seconds: float = 3_600.0
    #: seconds for one estimate, after those before it
    estimate: float = 60.0
    #: maximum concurrent requests that wait for the end of a job; each uses a connection to Redis
    waits: int = 256
    #: the same of one tenant
    tenant_waits: int = 32
    #: seconds that a chat completion waits for its answer: less than the 600 s after which OpenAI's clients ask again
    completion: float = 590.0
    #: seconds that a tool of assistants waits for its answer
    tool: float = 45.0
    #: seconds after which the cancellation of a batch is answered although it is not complete
    cancellation: float = 10.0
    #: maximum searches that wait or are made
    searches: int = 64
    #: the same of one tenant
    tenant_searches: int = 8
    #: maximum requests that read a passage, or look for a quote in it, or wait for another of their tenant
    reads: int = 256
    #: the same of one tenant; one of them at a time
    tenant_reads: int = 32
    #: seconds between comments that keep an event stream open
    keep_alive: float = 15.0
    #: seconds within which Redis must answer a health check
    health: float = 2.0


def _in_turn(name: str, what: str, total: int, known: int) -> Places:
    """Return places for requests of which each tenant has one at work, and others that wait for it."""
    return Places(name, what, total=total, each=1, queue=known - 1)


@dataclass(kw_only=True, slots=True)
class Context:
    """State of one app."""

    settings: Settings
    limits: Limits
    #: set while the app runs
    store: JobStore | None = None
    traffic: Traffic = field(default_factory=Traffic)
    streams: Places = field(init=False)
    uploads: Places = field(init=False)
    files: Places = field(init=False)
    estimates: Places = field(init=False)
    waits: Places = field(init=False)
    searches: Places = field(init=False)
    reads: Places = field(init=False)
    #: whose tokens count beside keys; ``None``: keys alone
    oidc: Provider | None = field(init=False)
    #: held by the audit of a ledger that runs
    audits: anyio.Semaphore = field(default_factory=lambda: anyio.Semaphore(1))
    _literature: Literature | None = None
    #: open indices of collections; those that were used last stand at the end
    _collections: dict[str, Literature] = field(default_factory=dict)
    _estimating: Estimating | None = None
    _batches: Batches | None = None
    _tenants: TenantStore | None = None
    #: bytes of uploads; ``None``: the service takes none
    _bytes: Files | None = None

    def __post_init__(self) -> None:
        most = self.limits
        self.oidc = provider_of(self.settings)
        self.streams = Places(
            "TooManyStreams", "event streams", total=most.streams, each=most.tenant_streams
        )
        self.uploads = _in_turn(
            "TooManyBatches", "uploads of batches", most.batches, most.tenant_batches
        )
        self.files = _in_turn("TooManyUploads", "uploads of files", most.files, most.tenant_files)
        self.reads = _in_turn(
            "TooManyReads", "requests for passages", most.reads, most.tenant_reads
        )
        if self.settings.uploads is not None:
            self._bytes = open_files(place_of(self.settings, self.settings.uploads))
        self.waits = Places(
            "TooManyWaits", "requests for answers", total=most.waits, each=most.tenant_waits
        )
        self.searches = Places(
            "TooManySearches", "searches", total=most.searches, each=most.tenant_searches
        )
        self.estimates = Places("TooManyEstimates", "estimates", total=most.estimates, each=1)

    def jobs(self) -> JobStore:
        """Return the job store."""
        if self.store is None:
            raise RuntimeError("the app is not running: its lifespan opens the store")
        return self.store

    @property
    def uploaded(self) -> Uploads | None:
        """The uploaded files; ``None``: the service takes none."""
        if self._bytes is None:
            return None
        store = self.jobs()
        return Uploads(WorkStore(store.redis, store.url, INGESTS), self._bytes)

    @property
    def tables(self) -> Tables | None:
        """The tables, whose bytes are beside uploads; ``None``: the service makes none."""
        if self._bytes is None:
            return None
        store = self.jobs()
        return Tables(WorkStore(store.redis, store.url, TABLES), self._bytes)

    def batches(self) -> Batches:
        """Return the batches of the job store."""
        if self._batches is None:
            self._batches = Batches(self.jobs(), self.settings)
        return self._batches

    def literature(self) -> Literature:
        """Return the index of the service, which is opened on first use."""
        if self._literature is None:
            self._literature = Literature(lambda: self.settings)
        return self._literature

    async def readable(self, tenant: str, collection: str | None) -> Literature:
        """Return the index of a collection that a tenant may read, opened on first use; ``None``: the default index.

        Raises:
            CollectionNotFound: there is no such collection, or the tenant may not read it.
            RequestProblem: there is no default index.
        """
        if collection is None:
            self.literature().require()
            return self.literature()
        store, places = self.jobs(), self.settings.collection_places
        await check_grants(store.redis, store.url, tenant, [collection])
        if collection not in places:
            raise CollectionNotFound(collection=collection)
        known = self._collections.pop(collection, None)
        if known is None:
            known = Literature(
                lambda: self.settings, collection=collection, beside=self.literature()
            )
        self._collections[collection] = known
        for name in list(self._collections)[:-OPEN]:
            # requests under way keep it
            del self._collections[name]
        return known

    def estimating(self) -> Estimating:
        """Return the estimates of the service's index."""
        if self._estimating is None:
            self._estimating = Estimating(
                self.settings, self.literature(), self.estimates, self.limits.estimate
            )
        return self._estimating

    async def aclose(self) -> None:
        """Close connections to paid embedders."""
        if self._literature is not None:
            await self._literature.aclose()

    def tenants(self) -> TenantStore:
        """Return the tenants of the job store's Redis."""
        if self._tenants is None:
            store = self.jobs()
            self._tenants = TenantStore(store.redis, store.url)
        return self._tenants


async def tenant_of(request: Request, api: Context) -> str:
    """Return the tenant of a request that no route of FastAPI serves.

    Raises:
        KeyRefused: the key is unknown or missing.
        TenantDisabled: the tenant is disabled.
        RequestProblem: the header names another tenant than the key's.
        InvalidQuery: the tenant's name is invalid.
    """
    return await _tenant(
        request, api, await _KEY(request), request.headers.get("X-Posology-Tenant")
    )


def _context(request: Request) -> Context:
    found = request.app.state.context
    assert isinstance(found, Context)
    return found


Posology = Annotated[Context, Depends(_context)]
_KEY = HTTPBearer(
    auto_error=False,
    scheme_name="key",
    bearerFormat="psl_ID_SECRET",
    description="API key of a tenant, from `posology tenants create`, or an access token of the service's OpenID Connect "
    "provider. A service without keys takes any text.",
)
_KEYED = "posology.keyed"
Given = Annotated[HTTPAuthorizationCredentials | None, Security(_KEY)]


async def _tenant(
    request: Request,
    api: Posology,
    given: Given,
    x_posology_tenant: Annotated[
        str | None,
        Header(
            description="Tenant of the request. With an API key it is the key's tenant; omit the header or "
            "repeat that name. With an access token of several tenants it chooses one. Default: `default` without keys.",
            examples=["acme"],
        ),
    ] = None,
) -> str:
    """Return the tenant of a request.

    A key is looked up for each request, so that a revoked key stops at once. A key also counts if the API is
    open; any other text counts as none there, since many clients cannot send none.

    Raises:
        KeyRefused: the key is wrong or has ended, or the API asks for keys, and it is unknown or missing.
        TenantDisabled: the tenant is disabled.
        RequestProblem: the header names another tenant than the key's, or the token's provider cannot be reached.
        InvalidQuery: the tenant's name is invalid.
    """
    owner = None if given is None else await _owner(api, given.credentials, x_posology_tenant)
    tenant = _named(api, owner, x_posology_tenant)
    request.scope[TENANT], request.scope[_KEYED] = tenant, owner is not None
    return tenant


async def _owner(api: Context, bearer: str, chosen: str | None) -> str | None:
    """Return the tenant of a key or an access token; ``None``: it is neither.

    Args:
        api: the app.
        bearer: what the request sent.
        chosen: tenant that the header names, which chooses among those of a token.
    """
    if api.oidc is None or not api.oidc.is_token(bearer):
        return await api.tenants().of_bearer(bearer)
    allowed = api.oidc.options.rights(await api.oidc.program(bearer)).tenants
    if chosen is None and len(allowed) > 1:
        raise RequestProblem(
            422, "TenantNotChosen", "The access token has several tenants",
            f"name one in X-Posology-Tenant: {', '.join(allowed)}",
        )  # fmt: skip
    tenant = chosen or next(iter(allowed), None)
    if tenant not in allowed:
        raise RequestProblem(
            403, "NotYourTenant", "The access token does not have this tenant",
            "no group of the access token stands for this tenant: ask the operator of this service",
        )  # fmt: skip
    await api.tenants().admit(tenant)
    return tenant


def is_keyed(request: Request) -> bool:
    """Return whether a key has proven the tenant of a request; else its name is no more than a claim."""
    return bool(request.scope.get(_KEYED))


def _named(api: Context, owner: str | None, x_posology_tenant: str | None) -> str:
    """Return the tenant: that of the key, else the one that the header names."""
    if owner is not None:
        if x_posology_tenant not in (None, owner):
            raise RequestProblem(
                403,
                "NotYourTenant",
                "The API key belongs to another tenant",
                "X-Posology-Tenant names another tenant than the API key's: omit the header",
            )
        return owner
    if api.settings.auth is Auth.KEYS:
        raise refused()
    tenant = DEFAULT_TENANT if x_posology_tenant is None else x_posology_tenant
    keys.prefix(tenant)
    return tenant


async def known_parameters(request: Request) -> None:
    """Reject query parameters that the operation does not have: a misspelt default would otherwise be ignored.

    Raises:
        InvalidQuery: naming the first of them.
    """
    if not request.query_params:
        return
    path = request.app.openapi()["paths"][request.scope["route"].path_format]
    parameters = path[request.method.lower()].get("parameters", [])
    known = [parameter["name"] for parameter in parameters if parameter["in"] == "query"]
    for name in request.query_params:
        if name not in known:
            raise unknown_field(name, known)


async def operator(api: Posology, given: Given) -> None:
    """Authenticate an operator, who may read the metrics of all tenants.

    Raises:
        KeyRefused: the API asks for keys, and the key is not ``POSOLOGY_METRICS_KEY``.
    """
    if api.settings.auth is not Auth.KEYS:
        return
    wanted = api.settings.metrics_key
    if (
        given is None
        or wanted is None
        or not hmac.compare_digest(given.credentials.encode(), wanted.get_secret_value().encode())
    ):
        # one error for all, so that it reveals nothing
        raise KeyRefused(
            "the key for metrics is missing or wrong: send the value of the service's setting "
            "POSOLOGY_METRICS_KEY as `Authorization: Bearer KEY`"
        )


Tenant = Annotated[str, Depends(_tenant)]
