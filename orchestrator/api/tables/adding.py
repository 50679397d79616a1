"""A table that is requested: its articles, its estimate, and its place among those that wait."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime

import anyio
from anyio import to_thread

from orchestrator.api.adding.files import disk
from orchestrator.api.context import Context
from orchestrator.api.problems import RequestProblem
from orchestrator.ingest.uploads.uploads import MIB
from orchestrator.logs.events import note
from orchestrator.models import Models
from orchestrator.tables.served.articles import read_articles
from orchestrator.tables.served.plan import Plan
from orchestrator.tables.served.replies import ReplyList
from orchestrator.tables.served.request import TableRequest
from orchestrator.tables.served.tables import MAX_WAITING, Tables, new_id
from orchestrator.training.paid.run import prepare
from orchestrator.work.items import Limits, NoRoom
from posology.errors import InvalidQuery
from posology.published.tables.forms import TableEstimate
from posology.published.tables.orders import TableOrder, TableState


async def add_table(
    api: Context, tables: Tables, tenant: str, asked: TableRequest
) -> tuple[TableOrder, bool]:
    """Let a table wait to be read.

    Args:
        api: the app.
        tables: the tables of all tenants.
        tenant: pays for the calls.
        asked: the request, with every default filled in.

    Returns:
        The table, and whether it waits because of this request: the same one may be in progress, or complete.

    Raises:
        CollectionNotFound: the tenant may not read the collection.
        PassageNotFound: the index does not hold a document.
        InvalidQuery: the search finds nothing, or the articles have too many passages.
        BudgetError: the tenant cannot pay for a call, or may not use the model.
        UnpricedModel: the model has no price.
        RequestProblem: the tenant has no room for it, or the estimate takes too long.
    """
    index = await (await api.readable(tenant, asked.read)).index()
    ids, version = await _sources(api, tenant, asked)
    limits = Limits(items=MAX_WAITING, bytes=api.settings.tables_mib * MIB)
    async with api.estimates.of(tenant):
        name, papers = await to_thread.run_sync(read_articles, index, ids, version)
        plan = Plan(request=asked, papers=papers)
        digest, content = plan.digest(), plan.dump()
        known = await tables.of_plan(tenant, digest)
        with disk():
            if known is not None and await tables.stands(known):
                return known, False
        with _room(limits):
            await tables.check_room(tenant, len(content), limits, known=known is not None)
            await api.jobs().admission.admit([plan.request.reading().model], tenant=tenant)
            table = new_id() if known is None else known.id
            # the replies that it has cost nothing
            estimate = await _estimate(api, tenant, plan, await tables.replies(tenant, table))
            order = _order(table, tenant, name, plan, estimate)
            with disk():
                order, added = await tables.add(order, content, digest, limits)
    if not added:
        return order, False
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
        literature = await api.readable(tenant, search.collection)
        found = await literature.search(search, query, tenant=tenant, store=api.jobs())
    if not found.passages:
        raise InvalidQuery("the search finds no passages", field="search")
    return tuple(one.passage.id for one in found.passages), search.index_version


@contextmanager
def _room(limits: Limits) -> Iterator[None]:
    """Translate the refusal of a tenant without room.

    Raises:
        RequestProblem: the tenant has no room for another table.
    """
    try:
        yield
    except NoRoom as full:
        if full.limit == "items":
            raise RequestProblem(
                429,
                "TablesFull",
                "Too many tables of the tenant wait",
                f"{full.used} of {limits.items} tables wait: wait until tables are read, or cancel one",
                headers={"Retry-After": "60"},
            ) from None
        raise RequestProblem(
            507,
            "TablesTooLarge",
            "The tenant's tables have no space for another one",
            f"the tenant's tables have {full.used} bytes, and with this one more than {limits.bytes}: wait until tables "
            "expire, or send fewer documents",
        ) from None


async def _estimate(api: Context, tenant: str, plan: Plan, replies: ReplyList) -> TableEstimate:
    """Estimate the calls that are left. Nothing is spent.

    Raises:
        UnpricedModel: the model has no price.
        RequestProblem: it takes too long.
    """
    settings, wanted, limit = api.settings, plan.wanted(), api.limits.estimate
    models = Models(settings.embedder, settings.embedding)
    terms = plan.terms(
        tenant,
        cap=plan.request.max_cost_usd,
        settings=settings,
        models=models,
        redis=api.jobs().url,
    )
    try:
        with anyio.fail_after(limit):
            paid, quote = await prepare(terms, wanted.reading.model, lambda _: wanted.plan(replies))
    except TimeoutError:
        raise RequestProblem(
            422,
            "TableTooLong",
            "The estimate of the table takes too long",
            f"the estimate was not made within {limit:g} s: send fewer documents",
            limit=limit,
        ) from None
    return wanted.estimate(quote, len(paid.todo))


def _order(table: str, tenant: str, index: str, plan: Plan, estimate: TableEstimate) -> TableOrder:
    reading = plan.request.reading()
    return TableOrder(
        id=table,
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
