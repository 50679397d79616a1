"""The index of the service, which requests share."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

import anyio
from anyio import to_thread

from orchestrator.api.problems import RequestProblem
from orchestrator.connections import Connections
from orchestrator.jobs.store import JobStore
from orchestrator.models import Models
from orchestrator.question.embedding import Spend
from orchestrator.question.request import SearchRequest
from orchestrator.service import Service, index_place, make_service
from orchestrator.settings import Settings
from posology.budget.ledger.base import LEASE
from posology.budget.ledger.journal import LedgerJournal
from posology.budget.ledger.redis import RedisLedger
from posology.budget.tenants.meter import RedisMeter
from posology.index.search.filters import NONE
from posology.index.store import Index
from posology.llm.accounting import Account
from posology.llm.calls import Caller
from posology.types import Query, Retrieval

#: searches in work at the same time: more would only share the processor
_AT_ONCE = 2
#: seconds that a paid vector waits while calls in flight have reserved the rest of a limit
_WAIT_TIMEOUT = 10.0


@dataclass(frozen=True, kw_only=True, slots=True)
class Opened:
    """An open index with its encoder, and connections to paid embedders."""

    service: Service
    connections: Connections


class Literature:
    """Opens the index and the encoder on first use.

    Args:
        settings: returns the settings.
    """

    def __init__(self, settings: Callable[[], Settings]) -> None:
        self._settings = settings
        self._opening = anyio.Lock()
        self._looking = anyio.Lock()
        self._turn = anyio.Semaphore(_AT_ONCE)
        self._opened: Opened | None = None
        self._index: Index | None = None

    def require(self) -> None:
        """Check that an index is configured.

        Raises:
            RequestProblem: 503.
        """
        if self._settings().index is None:
            raise RequestProblem(
                503,
                "NoIndex",
                "This service has no index",
                "this request needs an index: the operator must set POSOLOGY_INDEX for the API",
            )

    async def index(self) -> Index:
        """Return the index; no encoder is loaded.

        Raises:
            RequestProblem: none is configured.
            IndexFault: it cannot be read.
        """
        self.require()
        if self._opened is not None:
            return self._opened.service.index
        async with self._looking:
            if self._index is None:
                settings = self._settings()
                index = await to_thread.run_sync(Index.open, index_place(settings))
                index.keep = settings.kept_versions
                self._index = index
            return self._index

    async def opened(self) -> Opened:
        """Return the index with its encoder.

        Raises:
            RequestProblem: no index is configured.
            IndexFault: there is no usable index, or another embedder made it.
            EmbedderUnavailable: the embedder's files cannot be loaded.
        """
        self.require()
        async with self._opening:
            if self._opened is None:
                settings = self._settings()
                models = Models(settings.embedder, settings.embedding)
                offline = partial(models.offline, settings.reading)
                connections = Connections(settings, offline=offline)
                service = await make_service(settings, models, connections)
                self._opened = Opened(service=service, connections=connections)
            return self._opened

    async def search(
        self, asked: SearchRequest, query: Query, *, tenant: str, store: JobStore
    ) -> Retrieval:
        """Search, in turn with other requests. A paid vector is bought before that, so that no search waits for it.

        Args:
            asked: the request.
            query: its checked query.
            tenant: tenant that pays for a vector.
            store: its Redis has the tenant's ledger.

        Raises:
            VersionGone: the index no longer keeps the requested version.
            BudgetError: the tenant's limits do not allow the call that embeds the query.
            ProviderError: that call failed.
        """
        opened = await self.opened()
        vectors = await opened.service.encode(query, self._spend(opened, tenant, store))
        async with self._turn:
            return await opened.service.search(
                query,
                k=asked.k,
                mode=asked.mode,
                retracted=asked.retracted,
                filters=asked.filters.to_filters() if asked.filters else NONE,
                vectors=vectors,
                version=asked.index_version,
            )

    async def aclose(self) -> None:
        """Close connections."""
        if self._opened is not None:
            await self._opened.connections.aclose()

    def _spend(self, opened: Opened, tenant: str, store: JobStore) -> Spend:
        # nothing extends the lease of a request's call
        lease = max(LEASE, 2 * self._settings().call_timeout)
        ledger = RedisLedger(store.redis, store.url, tenant=tenant, lease=lease)
        caller = Caller(
            meter=RedisMeter(store.redis, store.url, tenant=tenant), wait_timeout=_WAIT_TIMEOUT
        )
        return Spend(
            tenant=tenant,
            complete=partial(
                opened.connections.complete,
                journal=LedgerJournal(ledger, Account()),
                caller=caller,
            ),
        )
