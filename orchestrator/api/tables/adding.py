"""A table that is requested: its articles, its estimate, and its place in the folder."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import UTC, datetime

import anyio
from anyio import to_thread

from orchestrator.api.adding.files import MIB, disk
from orchestrator.api.context import Context
from orchestrator.api.problems import RETRY_AFTER, RequestProblem
from orchestrator.logs.events import note
from orchestrator.models import Models
from orchestrator.tables.rows import open_run
from orchestrator.tables.served.articles import read_articles
from orchestrator.tables.served.folder import Adding, NoRoom, NoSpace, Tables
from orchestrator.tables.served.plan import Plan
from orchestrator.tables.served.request import TableRequest
from orchestrator.training.paid.run import prepare
from orchestrator.work.files import Busy
from posology.errors import InvalidQuery
from posology.published.tables.forms import TableEstimate
from posology.published.tables.orders import TableOrder, TableState


async def add_table(
    api: Context, tables: Tables, tenant: str, asked: TableRequest
) -> tuple[TableOrder, bool]:
    """Let a table wait to be read.

    Args:
        api: the app.
        tables: the folder.
        tenant: pays for the calls.
        asked: the request, with every default filled in.

    Returns:
        The table, and whether it waits because of this request: the same one may be in progress, or complete.

    Raises:
        PassageNotFound: the index does not hold a document.
        InvalidQuery: the search finds nothing, or the articles have too many passages.
        BudgetError: the tenant cannot pay for a call, or may not use the model.
        UnpricedModel: the model has no price.
        RequestProblem: the tenant has no room for it, or the estimate takes too long.
    """
    literature = api.literature()
    index = await literature.index()
    ids, version = await _sources(api, tenant, asked)
    room = api.settings.tables_mib * MIB
    async with api.estimates.of(tenant):
        name, papers = await to_thread.run_sync(read_articles, index, ids, version)
        plan = Plan(request=asked, papers=papers)
        async with _adding(tables, tenant, plan, room) as adding:
            if adding.known is not None and adding.stands:
                return adding.known, False
            await api.jobs().admission.admit([plan.request.reading().model], tenant=tenant)
            estimate = await _estimate(api, tenant, plan, adding)
            order = _order(tenant, name, plan, adding, estimate)
            with disk():
                await to_thread.run_sync(tables.complete, adding, order)
    note("table requested", tenant=tenant, table=order.id, documents=order.documents)
    return order, True


async def _sources(
    api: Context, tenant: str, asked: TableRequest
) -> tuple[tuple[str, ...], int | None]:
    """Return the ids of a request's documents, and the number of the index version to read; ``None``: the newest."""
    search = asked.search
    if search is None:
        return asked.documents, None
    query = search.to_query()
    async with api.searches.of(tenant):
        found = await api.literature().search(search, query, tenant=tenant, store=api.jobs())
    if not found.passages:
        raise InvalidQuery("the search finds no passages", field="search")
    return tuple(one.passage.id for one in found.passages), search.index_version


@asynccontextmanager
async def _adding(tables: Tables, tenant: str, plan: Plan, room: int) -> AsyncIterator[Adding]:
    """Add a table during the block.

    Raises:
        RequestProblem: the tenant has no room for it, or adds another one.
    """
    opening = tables.adding(tenant, plan, room)
    try:
        with disk():
            adding = await to_thread.run_sync(opening.__enter__)
    except NoRoom as full:
        raise RequestProblem(
            429,
            "TablesFull",
            "Too many tables of the tenant wait",
            str(full),
            headers={"Retry-After": "60"},
        ) from None
    except NoSpace as full:
        raise RequestProblem(
            507, "TablesTooLarge", "The tenant's tables have no space for another one", str(full)
        ) from None
    except Busy:
        raise RequestProblem(
            429,
            "TooManyTables",
            "Another table of the tenant is being added",
            "another table of this tenant is being added: retry later",
            headers={"Retry-After": str(RETRY_AFTER)},
        ) from None
    try:
        yield adding
    finally:
        with anyio.CancelScope(shield=True):
            await to_thread.run_sync(opening.__exit__, None, None, None)


async def _estimate(api: Context, tenant: str, plan: Plan, adding: Adding) -> TableEstimate:
    """Estimate the calls that are left. Nothing is spent.

    Raises:
        UnpricedModel: the model has no price.
        RequestProblem: it takes too long.
    """
    settings, wanted, limit = api.settings, plan.wanted(), api.limits.estimate
    models = Models(settings.embedder, settings.embedding)
    terms = plan.terms(tenant, settings=settings, models=models, redis=api.jobs().url)
    try:
        with anyio.fail_after(limit), open_run(adding.run) as run:
            paid, quote = await prepare(terms, wanted.reading.model, lambda _: wanted.plan(run))
    except TimeoutError:
        raise RequestProblem(
            422,
            "TableTooLong",
            "The estimate of the table takes too long",
            f"the estimate was not made within {limit:g} s: send fewer documents",
            limit=limit,
        ) from None
    return wanted.estimate(quote, len(paid.todo))


def _order(
    tenant: str, index: str, plan: Plan, adding: Adding, estimate: TableEstimate
) -> TableOrder:
    reading = plan.request.reading()
    return TableOrder(
        id=adding.id,
        tenant=tenant,
        state=TableState.WAITING,
        model=reading.model,
        fields=tuple(one.name for one in reading.fields),
        index=index,
        documents=len(plan.papers.documents),
        done=estimate.read,
        cells=estimate.read * len(reading.fields),
        values=None,
        runs=0,
        submitted=datetime.now(UTC),
        started=None,
        ended=None,
        spent_usd=estimate.spent_usd,
        cap_usd=plan.request.max_cost_usd,
        estimate=estimate,
        error=None,
    )
