"""The index of the service, which requests share, and estimates over it."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial

import anyio
from anyio import to_thread

from orchestrator.api.places import Places
from orchestrator.api.problems import RequestProblem
from orchestrator.budget import lease_for
from orchestrator.connections import Connections
from orchestrator.ingest.contents import Contents, contents_of
from orchestrator.jobs.rows import Row
from orchestrator.jobs.store import JobStore
from orchestrator.models import Models
from orchestrator.question.decisions.comparison import Comparison, Side
from orchestrator.question.decisions.forms import CompareOutput
from orchestrator.question.embedding import Spend
from orchestrator.question.estimates.rows import Estimated, Estimates, Standing
from orchestrator.question.request import SearchRequest
from orchestrator.service import Service, index_place, make_service
from orchestrator.settings import Settings
from posology import errors
from posology.budget.ledger.journal import LedgerJournal
from posology.budget.ledger.redis import RedisLedger
from posology.budget.tenants.meter import RedisMeter
from posology.index.search.filters import NONE
from posology.index.store import Index
from posology.llm.accounting import Account
from posology.llm.calls import Caller
from posology.published.estimates import EstimateOutput
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
        collection: name of the collection; ``None``: the default index.
        beside: another index, whose encoder, connections and turns this one shares; ``None``: it has its own.
    """

    def __init__(
        self,
        settings: Callable[[], Settings],
        *,
        collection: str | None = None,
        beside: Literature | None = None,
    ) -> None:
        self._settings = settings
        self._collection = collection
        self._beside = beside
        self._opening = anyio.Lock()
        self._looking = anyio.Lock()
        #: held by a search
        self.turn: anyio.Semaphore = beside.turn if beside else anyio.Semaphore(_AT_ONCE)
        self._shared: tuple[Models, Connections] | None = None
        self._opened: Opened | None = None
        self._index: Index | None = None
        self._counting = anyio.Lock()
        self._counted: tuple[str, Contents] | None = None

    def require(self) -> None:
        """Check that an index is configured.

        Raises:
            RequestProblem: 503.
        """
        if self._collection is None and self._settings().index is None:
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
                index = await to_thread.run_sync(
                    Index.open, index_place(settings, self._collection)
                )
                index.keep = settings.kept_versions
                self._index = index
            return self._index

    async def contents(self) -> Contents | None:
        """Return what the newest version holds, counted by :meth:`count`; ``None``: it is not counted yet.

        Raises:
            RequestProblem: no index is configured.
            IndexFault: it cannot be read.
        """
        index = await self.index()
        version = await to_thread.run_sync(lambda: index.version)
        known = self._counted
        return known[1] if known is not None and known[0] == version else None

    async def count(self) -> None:
        """Count what the newest version holds, which reads columns of every passage; once at a time.

        Raises:
            RequestProblem: no index is configured.
            IndexFault: it cannot be read.
        """
        index = await self.index()
        async with self._counting:
            if await self.contents() is None:
                version = await to_thread.run_sync(lambda: index.version)
                self._counted = (version, await to_thread.run_sync(contents_of, index))

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
                models, connections = (self._beside or self).share()
                service = await make_service(
                    self._settings(), models, connections, self._collection
                )
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
        async with self.turn:
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
        if self._shared is not None:
            await self._shared[1].aclose()

    def share(self) -> tuple[Models, Connections]:
        """Return the encoder, which is not loaded before it is used, and the connections."""
        if self._shared is None:
            settings = self._settings()
            models = Models(settings.embedder, settings.embedding)
            offline = partial(models.offline, settings.reading)
            self._shared = models, Connections(settings, offline=offline)
        return self._shared

    def _spend(self, opened: Opened, tenant: str, store: JobStore) -> Spend:
        lease = lease_for(self._settings())
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


class Estimating:
    """Estimates questions over the service's index; index and encoder are opened on first use.

    Args:
        settings: defaults of questions.
        literature: the index.
        places: places for requests that wait or are made.
        limit: maximum seconds for one request, after those before it.
    """

    def __init__(
        self, settings: Settings, literature: Literature, places: Places, limit: float
    ) -> None:
        self._settings = settings
        self._literature = literature
        self._places = places
        self._limit = limit
        # one at a time, so that other requests do not wait for an encoder
        self._turn = anyio.Semaphore(1)

    async def __call__(
        self,
        rows: Sequence[Row],
        standing: Standing,
        *,
        whole: bool,
        literature: Literature | None = None,
    ) -> EstimateOutput:
        """Estimate rows. If it is cancelled, it ends with the question at hand.

        Args:
            rows: rows that were read.
            standing: the tenant's balances and calls.
            whole: whether there is one question, whose error is that of the request.
            literature: the index of the rows' collection; ``None``: the default one.

        Raises:
            RequestProblem: too many requests wait, or the estimate takes too long.
            InvalidQuery: the only question cannot be asked.
            UnpricedModel: the price of its model is unknown.
        """
        async with self._places.of(standing.tenant):
            started, found, estimates = await self._found(
                rows, standing, literature or self._literature
            )
        if whole and (error := found[0].error) is not None:
            # every other error of a single question was found before
            if error.type == errors.InvalidQuery.__name__:
                raise errors.InvalidQuery(error.message, field=str(error.details["field"]))
            raise errors.UnpricedModel(model=str(error.details["model"]))
        return await to_thread.run_sync(
            lambda: estimates.output(found, started=started, standing=standing)
        )

    async def compare(
        self, first: Side, second: Side, rows: Sequence[Row], *, settings: Settings, show: int
    ) -> CompareOutput:
        """Compare two policies on the same rows; only decisions are made.

        Args:
            first: one policy.
            second: the other.
            rows: rows that were read.
            settings: defaults of the rows, with the tenant that asks.
            show: most questions to list one by one.

        Raises:
            RequestProblem: too many requests wait, or the comparison takes too long.
            PolicyMismatch: the Q-table does not fit the index.
        """
        async with self._places.of(settings.tenant):
            service = (await self._literature.opened()).service
            comparison = Comparison(
                service=service,
                decider=service.decider,
                estimator=service.estimator,
                settings=settings,
            )
            async with self._turn:
                try:
                    with anyio.fail_after(self._limit):
                        return await comparison(first, second, rows, show=show)
                except TimeoutError:
                    raise self._too_long("comparison", "policy compare") from None

    async def _found(
        self, rows: Sequence[Row], standing: Standing, literature: Literature
    ) -> tuple[float, tuple[Estimated, ...], Estimates]:
        """Return when the estimate began, the estimates, and what made them."""
        async with self._turn:
            # what is opened once is no part of anyone's time
            service = (await literature.opened()).service
            estimates = Estimates(
                service=service, estimator=service.estimator, settings=self._settings
            )
            started = time.perf_counter()
            try:
                with anyio.fail_after(self._limit):
                    return started, await estimates(rows, standing=standing), estimates
            except TimeoutError:
                raise self._too_long("estimate", "estimate") from None

    def _too_long(self, what: str, command: str) -> RequestProblem:
        return RequestProblem(
            422,
            f"{what.capitalize()}TooLong",
            f"The {what} takes too long",
            f"the {what} was not made within {self._limit:g} s: send fewer questions, or run "
            f"`posology {command}`",
            limit=self._limit,
        )
