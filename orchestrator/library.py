"""Posology as a library: open an index, ask, and answer batches, in the caller's process."""

from __future__ import annotations

import json
import time
from collections.abc import Awaitable, Callable, Iterable
from contextlib import AsyncExitStack, ExitStack
from dataclasses import dataclass, field
from decimal import Decimal
from functools import partial
from pathlib import Path
from types import TracebackType
from typing import Any, Self, TypeVar

import anyio
from anyio import to_thread
from anyio.from_thread import BlockingPortal, start_blocking_portal

from orchestrator.budget import Budget, open_budget
from orchestrator.environment import prepare_libraries
from orchestrator.jobs.rows import Row, check_defaults, read_row
from orchestrator.question.estimates.rows import Estimates
from orchestrator.question.passages import search_output
from orchestrator.question.report import ask_output, error_body
from orchestrator.question.request import AskRequest, JobRequest, Request, SearchRequest
from orchestrator.question.sent import QuoteRequest
from orchestrator.retrieval import find_quote, read_passage
from orchestrator.service import Service, open_service
from orchestrator.settings import Settings, load_settings
from posology.budget.ledger.journal import LedgerJournal
from posology.client.rows import Row as Asked
from posology.client.rows import lines
from posology.errors import ConfigurationError, InvalidQuery, PosologyError, UnpricedModel
from posology.index.search.filters import NONE
from posology.llm.accounting import Account
from posology.llm.models.names import parse
from posology.published.answers import AskOutput, PassageOutput
from posology.published.estimates import EstimateOutput
from posology.published.jobs import BatchRow
from posology.published.literature import QuoteSearch, SearchOutput
from posology.store.keys import new_id
from posology.types import JobState

_Found = TypeVar("_Found")


@dataclass(kw_only=True)
class _Run:
    """Questions that share a cap."""

    #: dollars; ``None``: the tenant's limits alone
    cap: Decimal | None
    accounts: list[Account] = field(default_factory=list)
    #: id under which the ledger counts it; ``None``: there is one question
    id: str | None = None

    @property
    def charged(self) -> Decimal:
        return sum((one.charged for one in self.accounts), Decimal(0))


class AsyncPosology:
    """Answers questions from an index in this process, within budgets.

    Use it in an ``async with`` statement. Concurrent tasks of one event loop may share it. Everything that is not an
    argument is configured as for the commands, by environment variables and ``posology.toml``. Spending goes to the
    tenant's ledger in Redis if one is configured or a stack runs; else it is counted until the process ends.

    Args:
        index: folder or address of the index; ``None``: as configured.
        model: model that answers unless a question names another, ``provider:name``; ``None``: as configured.
        tenant: tenant that pays; ``None``: as configured.
    """

    def __init__(
        self,
        index: str | Path | None = None,
        *,
        model: str | None = None,
        tenant: str | None = None,
    ) -> None:
        self._index = index
        self._given = {"model": model, "tenant": tenant}
        self._stack = AsyncExitStack()
        self._opened: tuple[Settings, Budget, Service] | None = None
        #: dollars charged so far, for questions that failed as well
        self.charged_usd = Decimal(0)

    async def __aenter__(self) -> Self:
        """Open the index and load its encoder.

        Raises:
            ConfigurationError: a setting is invalid, or no index is given or configured.
            IndexFault: there is no usable index, or another embedder made it.
            StoreUnavailable: the configured Redis does not answer.
        """
        prepare_libraries()
        given = {name: value for name, value in self._given.items() if value is not None}
        settings = load_settings().model_copy(update=given)
        parse(settings.model)
        async with AsyncExitStack() as stack:
            budget = await stack.enter_async_context(open_budget(settings))
            await budget.ledger.job_limit()
            service = await stack.enter_async_context(
                open_service(settings, self._index, meter=budget.meter)
            )
            self._opened = settings, budget, service
            self._stack = stack.pop_all()
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        await self.aclose()

    async def aclose(self) -> None:
        """Close all connections."""
        self._opened = None
        await self._stack.aclose()

    @property
    def is_open(self) -> bool:
        """Whether questions can be asked."""
        return self._opened is not None

    def check(self, collection: str | None) -> None:
        """Check that a request is for the open index.

        Raises:
            InvalidQuery: it names another collection.
        """
        self._open()[2].check(collection)

    async def ask(self, question: str, **request: Any) -> AskOutput:
        """Answer one question, or refuse.

        Args:
            question: the question.
            request: other fields of a request, such as ``max_cost_usd``, ``k``, ``model``, ``form`` or ``filters``; see
                :class:`~orchestrator.question.request.AskRequest`.

        Raises:
            InvalidQuery: a field is wrong.
            BudgetError: the budget does not pay for an answer; the cap holds whatever happens.
            ProviderError: the model could not be called.
        """
        settings, _, _ = self._open()
        asked = AskRequest.parse({"question": question, **request})
        return await self._answer(
            asked.to_request(settings), _Run(cap=asked.max_cost_usd), Account()
        )

    async def batch(
        self,
        rows: str | Path | Iterable[Asked],
        *,
        max_cost_usd: Decimal | str | float | None = None,
        **defaults: Any,
    ) -> tuple[BatchRow, ...]:
        """Answer many questions concurrently, and return them in their order. A row's error is in the row.

        Args:
            rows: path of a file of JSON Lines, or requests as mappings or lines of JSON, each with a ``question`` and
                perhaps an ``id`` and other fields.
            max_cost_usd: maximum cost of all rows together, dollars; ``None``: each row's own.
            defaults: values of fields that a row omits.

        Raises:
            InvalidQuery: a default is wrong.
            BadFile: the file cannot be read.
        """
        settings, _, _ = self._open()
        whole = AskRequest.parse({"question": "?", "max_cost_usd": max_cost_usd}).max_cost_usd
        check_defaults(defaults, settings)
        given = [line for line in lines(rows) if line.strip()]
        read = [read_row(n, n + 1, line, defaults, settings) for n, line in enumerate(given)]
        done: list[BatchRow | None] = [None] * len(read)
        shared = None if whole is None else _Run(cap=whole, id=new_id("run"))
        limiter = anyio.CapacityLimiter(settings.worker_concurrency)

        async def one(row: Row) -> None:
            async with limiter:
                done[row.number] = await self._row(row, shared)

        async with anyio.create_task_group() as group:
            for row in read:
                group.start_soon(one, row)
        return tuple(row for row in done if row is not None)

    async def search(self, query: str, **request: Any) -> SearchOutput:
        """Retrieve passages. Only a paid embedder's vector of the query costs anything.

        Args:
            query: the question, or words.
            request: other fields, such as ``k``, ``mode`` or ``filters``; see
                :class:`~orchestrator.question.request.SearchRequest`.

        Raises:
            InvalidQuery: a field is wrong.
        """
        settings, budget, service = self._open()
        asked = SearchRequest.parse({"query": query, **request})
        service.check(asked.collection)
        started = anyio.current_time()
        spend = service.pipeline.spend(LedgerJournal(budget.ledger, Account()), settings.tenant)
        found = await service.search(
            asked.to_query(),
            k=asked.k,
            mode=asked.mode,
            retracted=asked.retracted,
            filters=asked.filters.to_filters() if asked.filters else NONE,
            spend=spend,
            version=asked.index_version,
        )
        seconds = anyio.current_time() - started
        return search_output(found, mode=asked.mode, k=asked.k, seconds=seconds)

    async def passage(self, passage: str, *, version: int | None = None) -> PassageOutput:
        """Return a passage with its text and metadata.

        Args:
            passage: its id, e.g. ``pmid:10051933``, or a PMID.
            version: number of the index version; ``None``: the newest.

        Raises:
            PassageNotFound: the index does not hold it.
            VersionGone: the index no longer keeps that version.
        """
        _, _, service = self._open()
        return await to_thread.run_sync(read_passage, service.index, passage, version)

    async def find_quote(self, quote: str, *, version: int | None = None) -> QuoteSearch:
        """Return the passages that contain a quote or nearly do, and what differs; no model is called.

        Args:
            quote: a sentence or a few, at most 2,000 characters.
            version: number of the index version; ``None``: the newest.

        Raises:
            InvalidQuery: the quote is empty or too long.
            VersionGone: the index no longer keeps that version.
        """
        _, _, service = self._open()
        asked = QuoteRequest.parse({"quote": quote, "index_version": version})
        return await to_thread.run_sync(find_quote, service.index, asked.quote, asked.index_version)

    async def estimate(self, question: str, **request: Any) -> EstimateOutput:
        """Estimate the cost of a question by each strategy; no model is called.

        Args:
            question: the question.
            request: other fields, as for :meth:`ask`.

        Raises:
            InvalidQuery: a field is wrong.
            UnpricedModel: the price of the model is unknown.
        """
        settings, _, service = self._open()
        started = time.perf_counter()
        asked = JobRequest.parse({"question": question, **request}).settled(settings)
        estimates = Estimates(service=service, estimator=service.estimator, settings=settings)
        found = await estimates([Row(number=0, id=None, request=asked, error=None)])
        if (error := found[0].error) is not None:
            if error.type == InvalidQuery.__name__:
                raise InvalidQuery(error.message, field=str(error.details["field"]))
            raise UnpricedModel(model=str(error.details["model"]))
        return estimates.output(found, started=started)

    def _open(self) -> tuple[Settings, Budget, Service]:
        if self._opened is None:
            raise _closed()
        return self._opened

    async def _row(self, row: Row, shared: _Run | None) -> BatchRow:
        own = None if row.id is None else json.loads(row.id)
        state, result, error = None, None, row.error
        account = Account()
        if row.request is not None:
            cap = row.request.max_cost_usd
            try:
                if shared is not None and cap is not None:
                    raise InvalidQuery(
                        "give max_cost_usd to the batch or to its rows, not to both",
                        field="max_cost_usd",
                    )
                run = shared or _Run(cap=cap)
                asked = row.request
                result = await self._answer(asked.as_settled(), run, account, asked.collection)
                state = JobState.SUCCEEDED
            except PosologyError as failed:
                state, error = JobState.FAILED, error_body(failed, account)
        return BatchRow(row=row.number, id=own, job=None, state=state, result=result, error=error)

    async def _answer(
        self, request: Request, run: _Run, account: Account, collection: str | None = None
    ) -> AskOutput:
        _, budget, service = self._open()
        service.check(collection)
        run.accounts.append(account)
        journal = LedgerJournal(budget.ledger, account, cap=run.cap, run=run.id)
        try:
            report = await service.ask(
                request, account, journal, remaining=budget.remaining(run, run.cap)
            )
        finally:
            self.charged_usd += account.charged
        return ask_output(report)


class Posology:
    """An :class:`AsyncPosology` whose methods block, for programs without an event loop.

    It has an event loop in a thread of its own. Use it in a ``with`` statement, or call :meth:`close`. Every method does
    what the method of that name does there, and raises the same errors. Threads may share it.

    Args:
        index: folder or address of the index; ``None``: as configured.
        model: model that answers unless a question names another, ``provider:name``; ``None``: as configured.
        tenant: tenant that pays; ``None``: as configured.

    Raises:
        PosologyError: as opening an :class:`AsyncPosology`.
    """

    def __init__(
        self,
        index: str | Path | None = None,
        *,
        model: str | None = None,
        tenant: str | None = None,
    ) -> None:
        self._inner = AsyncPosology(index, model=model, tenant=tenant)
        with ExitStack() as stack:
            self._portal: BlockingPortal = stack.enter_context(start_blocking_portal())
            self._portal.call(self._inner.__aenter__)
            stack.callback(lambda: self._portal.call(self._inner.aclose))
            self._stack = stack.pop_all()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    @property
    def charged_usd(self) -> Decimal:
        """Dollars charged so far, for questions that failed as well."""
        return self._inner.charged_usd

    def close(self) -> None:
        """Close all connections, and end the thread."""
        self._stack.close()

    def ask(self, question: str, **request: Any) -> AskOutput:
        """Answer one question, or refuse; see :meth:`AsyncPosology.ask`."""
        return self._call(partial(self._inner.ask, question, **request))

    def batch(
        self,
        rows: str | Path | Iterable[Asked],
        *,
        max_cost_usd: Decimal | str | float | None = None,
        **defaults: Any,
    ) -> tuple[BatchRow, ...]:
        """Answer many questions, and return them in their order; see :meth:`AsyncPosology.batch`."""
        return self._call(partial(self._inner.batch, rows, max_cost_usd=max_cost_usd, **defaults))

    def search(self, query: str, **request: Any) -> SearchOutput:
        """Retrieve passages; see :meth:`AsyncPosology.search`."""
        return self._call(partial(self._inner.search, query, **request))

    def passage(self, passage: str, *, version: int | None = None) -> PassageOutput:
        """Return a passage in full; see :meth:`AsyncPosology.passage`."""
        return self._call(partial(self._inner.passage, passage, version=version))

    def estimate(self, question: str, **request: Any) -> EstimateOutput:
        """Estimate the cost of a question; see :meth:`AsyncPosology.estimate`."""
        return self._call(partial(self._inner.estimate, question, **request))

    def _call(self, ask: Callable[[], Awaitable[_Found]]) -> _Found:
        if not self._inner.is_open:
            raise _closed()
        return self._portal.call(ask)


def _closed() -> ConfigurationError:
    return ConfigurationError("the index is not open: use a with statement")
