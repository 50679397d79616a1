"""Bought vectors of passages: cost estimate, and calls that a tenant pays for."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import wait
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from decimal import Decimal
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING

import anyio
from anyio.from_thread import BlockingPortal, start_blocking_portal

from orchestrator.budget import open_budget
from orchestrator.question.embedding import remembering
from orchestrator.question.estimates.costs import Dollars
from orchestrator.question.estimates.tokens import Counting, packaged_counter
from orchestrator.service import open_connections
from orchestrator.settings import Settings
from posology.budget.ledger.journal import LedgerJournal
from posology.corpus.files import read
from posology.corpus.folders import expand
from posology.corpus.items import Record
from posology.corpus.references.columns import GUESSED, Columns
from posology.errors import UnpricedModel
from posology.index.embedders.paid.embedder import Bought, OpenAIEmbedder, texts_of
from posology.index.schema import digest
from posology.llm.accounting import Account
from posology.text.sentences import split
from posology.types import Usage

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from orchestrator.connections import Connections
    from orchestrator.models import Models
    from posology.index.store import Index
    from posology.seams import Complete

#: records estimated together
LOT = 512


@dataclass(frozen=True, kw_only=True, slots=True)
class Payer:
    """The tenant that pays for an ingest, and its limit."""

    #: ``None``: as configured
    tenant: str | None = None
    #: dollars for all calls of this run; ``None``: only the tenant's limits apply
    cap: Decimal | None = None
    #: account of every attempt
    account: Account = field(default_factory=Account)
    #: whether passage vectors are given, so that only sentence vectors are bought
    given: bool = False


@dataclass(frozen=True, kw_only=True, slots=True)
class IngestEstimate:
    """Cost estimate of the vectors of an ingest that were not bought before."""

    embedder: str
    tenant: str
    #: new or changed passages
    passages: int = 0
    calls: int = 0
    #: estimated input tokens
    input: int = 0
    dollars: Dollars = field(default_factory=Dollars)
    #: limit of the run in dollars; ``None``: no limit
    cap: Decimal | None = None
    #: remaining budget of the tenant in dollars, by scope with a limit
    left: tuple[tuple[str, Decimal], ...] = ()


@contextmanager
def paying(
    embedder: OpenAIEmbedder, settings: Settings, models: Models, payer: Payer
) -> Iterator[Bought]:
    """Open an embedder that buys vectors, for blocking code. Blocking.

    Args:
        embedder: the embedder; vectors bought before come from the configured cache.
        settings: the configuration.
        models: the models of this process.
        payer: the tenant that pays.

    Raises:
        UnpricedModel: the model has no known price.
        MissingKey: the provider's API key is not set.
    """
    paid = remembering(embedder, settings)
    assert isinstance(paid, OpenAIEmbedder)
    tenant = payer.tenant or settings.tenant
    with (
        start_blocking_portal() as portal,
        portal.wrap_async_context_manager(open_budget(settings, tenant)) as budget,
        portal.wrap_async_context_manager(
            open_connections(settings, models, budget.meter)
        ) as connections,
    ):
        journal = LedgerJournal(budget.ledger, payer.account, cap=payer.cap)
        complete = portal.call(connections.complete, paid.model, journal)
        connections.prices.worst(paid.model, input_tokens=1, output_tokens=0)
        purchase = _Purchase(portal, paid, complete, tenant)
        yield Bought(paid, purchase.buy, given=payer.given)


class _Purchase:
    """Buys vectors through an event loop in another thread; the calling thread waits.

    Args:
        portal: to the event loop.
        embedder: encodes texts.
        complete: sends calls, and pays for them.
        tenant: whose vectors are cached.
    """

    def __init__(
        self, portal: BlockingPortal, embedder: OpenAIEmbedder, complete: Complete, tenant: str
    ) -> None:
        self._portal = portal
        self._embedder = embedder
        self._complete = complete
        self._tenant = tenant
        self._scopes: list[anyio.CancelScope] = []

    def buy(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """Return the vectors of texts."""
        self._scopes.clear()
        in_flight = self._portal.start_task_soon(self._encode, texts)
        try:
            vectors = in_flight.result()
        except BaseException:
            # Ctrl-C in this thread: calls in flight are cancelled, settled and listed as such, before their connections
            # and the ledger are closed
            if not in_flight.done():
                self._portal.call(self._cancel)
                wait([in_flight])
            raise
        assert vectors is not None
        return vectors

    async def _encode(self, texts: Sequence[str]) -> NDArray[np.float32] | None:
        with anyio.CancelScope() as scope:
            self._scopes.append(scope)
            return await self._embedder.encode(texts, self._complete, tenant=self._tenant)
        # cancelled, so the caller no longer waits
        return None

    def _cancel(self) -> None:
        for scope in self._scopes:
            scope.cancel()


async def estimate(
    changed: Iterable[Sequence[Record]],
    embedder: OpenAIEmbedder,
    settings: Settings,
    models: Models,
    payer: Payer,
) -> IngestEstimate:
    """Estimate the cost of an ingest. Nothing is spent.

    Args:
        changed: chunks of the records to encode, see :func:`changed_of`; they are read in this thread.
        embedder: the embedder whose vectors are bought.
        settings: the configuration.
        models: the models of this process.
        payer: the tenant that pays.

    Raises:
        UnpricedModel: the model has no known price.
    """
    paid = remembering(embedder, settings)
    assert isinstance(paid, OpenAIEmbedder)
    tenant = payer.tenant or settings.tenant
    async with (
        open_budget(settings, tenant) as budget,
        open_connections(settings, models, budget.meter) as connections,
    ):
        counting = Counting(packaged_counter(), native_schema=settings.native_schema)
        found = IngestEstimate(embedder=paid.name, tenant=tenant, cap=payer.cap)
        for records in changed:
            found = _added(found, records, paid, connections, counting, given=payer.given)
        balances = await budget.ledger.balances()
    left = [(str(one.scope), one.left) for one in balances]
    return replace(
        found, left=tuple((scope, amount) for scope, amount in left if amount is not None)
    )


def changed_of(
    paths: Sequence[Path], index: Index | None, *, columns: Columns = GUESSED
) -> Iterator[Sequence[Record]]:
    """Yield chunks of the records that are new to an index, or have changed. Blocking.

    Args:
        paths: files and folders, which are read completely.
        index: the index; ``None``: there is none yet.
        columns: names of columns of tables.
    """
    for records in _lots(_records(paths, columns)):
        yield _changed(records, index)


def estimate_lines(estimate: IngestEstimate) -> Iterator[str]:
    """Yield an estimate as lines of text."""
    from orchestrator.rendering.words import money

    calls = "1 call" if estimate.calls == 1 else f"{estimate.calls:,} calls"
    yield (
        f"{estimate.passages:,} new or changed passages: {calls} to {estimate.embedder}, "
        f"about {estimate.input:,} tokens; cached vectors are not bought again"
    )
    if not estimate.dollars.worst:
        yield "no cost"
        return
    yield f"{money(estimate.dollars.expected)} expected, {money(estimate.dollars.worst)} at worst"
    for scope, amount in estimate.left:
        yield f"{scope} budget of {estimate.tenant}: {money(amount)} remaining{_fits(estimate, amount)}"
    if estimate.cap is not None:
        yield f"--max-cost: {money(estimate.cap)}{_fits(estimate, estimate.cap)}"


def _fits(estimate: IngestEstimate, amount: Decimal) -> str:
    if amount >= estimate.dollars.worst:
        return ": covers the worst case"
    if amount >= estimate.dollars.expected:
        return ": covers the expected cost, not the worst case"
    return ": does not cover the expected cost; vectors bought until then are kept"


def _records(paths: Sequence[Path], columns: Columns) -> Iterator[Record]:
    for file in expand(paths):
        if isinstance(file, Path):
            yield from (item for item in read(file, columns=columns) if isinstance(item, Record))


def _lots(records: Iterable[Record]) -> Iterator[list[Record]]:
    rows = iter(records)
    while lot := list(islice(rows, LOT)):
        yield lot


def _changed(records: Sequence[Record], index: Index | None) -> list[Record]:
    latest = {record.passage.id: record for record in records}
    known = index.digests(list(latest)) if index is not None else {}
    return [one for one in latest.values() if known.get(one.passage.id) != digest(one.passage)]


def _added(
    estimate: IngestEstimate,
    records: Sequence[Record],
    paid: OpenAIEmbedder,
    connections: Connections,
    counting: Counting,
    *,
    given: bool,
) -> IngestEstimate:
    passages = [record.passage for record in records]
    texts = texts_of(passages, [split(passage.text) for passage in passages], given=given)
    calls, prices = paid.missing(texts, tenant=estimate.tenant), connections.prices
    tokens, dollars = 0, estimate.dollars
    for call in calls:
        bound = connections.bound(call)
        read = min(round(counting.text(call.messages, call.model)), bound)
        expected = prices.cost(call.model, Usage(input=read))
        if expected is None:
            raise UnpricedModel(model=call.model)
        worst = prices.worst(call.model, input_tokens=bound, output_tokens=0)
        dollars += Dollars(low=min(expected, worst), expected=min(expected, worst), worst=worst)
        tokens += read
    return replace(
        estimate,
        passages=estimate.passages + len(passages),
        calls=estimate.calls + len(calls),
        input=estimate.input + tokens,
        dollars=dollars,
    )
