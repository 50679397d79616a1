"""Literature's vectors, where they are bought: by the tenant who pays for the ingest, estimated before."""

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
from anyio.from_thread import start_blocking_portal

from orchestrator.budget import open_purse
from orchestrator.question.embedding import remembering
from orchestrator.question.estimates.costs import Dollars
from orchestrator.question.estimates.tokens import Counting, packaged_counter
from orchestrator.service import open_connections
from orchestrator.settings import Settings
from posology.budget.ledger.journal import LedgerJournal
from posology.corpus.files import expand, read
from posology.corpus.items import Record
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

#: records that are estimated together
LOT = 512


@dataclass(frozen=True, kw_only=True, slots=True)
class Payer:
    """Who pays for an ingest."""

    #: ``None``: as configured
    tenant: str | None = None
    #: dollars for all calls of this run; ``None``: the tenant's limits alone
    cap: Decimal | None = None
    #: lists every attempt
    account: Account = field(default_factory=Account)
    #: whether passages' own vectors are given, so that those of sentences alone are bought
    given: bool = False


@dataclass(frozen=True, kw_only=True, slots=True)
class IngestEstimate:
    """What the vectors of an ingest will cost, as far as they were not bought before."""

    embedder: str
    tenant: str
    #: that are new, or have changed
    passages: int = 0
    calls: int = 0
    #: tokens, at best guess
    input: int = 0
    dollars: Dollars = field(default_factory=Dollars)
    #: dollars; ``None``: no limit
    cap: Decimal | None = None
    #: dollars that the tenant has left, by scope, where there is a limit
    left: tuple[tuple[str, Decimal], ...] = ()


@contextmanager
def paying(
    embedder: OpenAIEmbedder, settings: Settings, models: Models, payer: Payer
) -> Iterator[Bought]:
    """An embedder that pays for what it is asked, for blocking code, while this is open. Blocking.

    Args:
        embedder: whose vectors are bought; what was bought before comes from the memory that settings name.
        settings: say how providers are reached, and where money is counted.
        models: of this process.
        payer: who pays.

    Raises:
        UnpricedModel: nobody knows what the model costs.
        MissingKey: the provider needs a key that is not set.
    """
    paid = remembering(embedder, settings)
    assert isinstance(paid, OpenAIEmbedder)
    tenant = payer.tenant or settings.tenant
    with (
        start_blocking_portal() as portal,
        portal.wrap_async_context_manager(open_purse(settings, tenant)) as purse,
        portal.wrap_async_context_manager(
            open_connections(settings, models, purse.meter)
        ) as connections,
    ):
        journal = LedgerJournal(purse.ledger, payer.account, cap=payer.cap)
        complete = portal.call(connections.complete, paid.model, journal)
        connections.prices.worst(paid.model, input_tokens=1, output_tokens=0)

        scopes: list[anyio.CancelScope] = []

        async def encode(texts: Sequence[str]) -> NDArray[np.float32] | None:
            with anyio.CancelScope() as scope:
                scopes.append(scope)
                return await paid.encode(texts, complete, tenant=tenant)
            # only whoever waits no more has it cancelled
            return None

        def stop() -> None:
            for scope in scopes:
                scope.cancel()

        def buy(texts: Sequence[str]) -> NDArray[np.float32]:
            scopes.clear()
            under_way = portal.start_task_soon(encode, texts)
            try:
                vectors = under_way.result()
            except BaseException:
                # Ctrl-C in this thread: calls under way are cancelled, settled and listed as such, before their
                # connections and the ledger are closed
                if not under_way.done():
                    portal.call(stop)
                    wait([under_way])
                raise
            assert vectors is not None
            return vectors

        yield Bought(paid, buy, given=payer.given)


async def estimate(
    changed: Iterable[Sequence[Record]],
    embedder: OpenAIEmbedder,
    settings: Settings,
    models: Models,
    payer: Payer,
) -> IngestEstimate:
    """What an ingest will cost. Nothing is spent.

    Args:
        changed: the records that are to be encoded, some at a time, see :func:`changed_of`; read while others wait.
        embedder: whose vectors are bought.
        settings: say where money is counted.
        models: of this process.
        payer: who pays.

    Raises:
        UnpricedModel: nobody knows what the model costs.
    """
    paid = remembering(embedder, settings)
    assert isinstance(paid, OpenAIEmbedder)
    tenant = payer.tenant or settings.tenant
    async with (
        open_purse(settings, tenant) as purse,
        open_connections(settings, models, purse.meter) as connections,
    ):
        counting = Counting(packaged_counter(), native_schema=settings.native_schema)
        found = IngestEstimate(embedder=paid.name, tenant=tenant, cap=payer.cap)
        for records in changed:
            found = _added(found, records, paid, connections, counting, given=payer.given)
        balances = await purse.ledger.balances()
    left = [(str(one.scope), one.left) for one in balances]
    return replace(
        found, left=tuple((scope, amount) for scope, amount in left if amount is not None)
    )


def changed_of(paths: Sequence[Path], index: Index | None) -> Iterator[Sequence[Record]]:
    """The records of files that an index lacks, or has with another content, some at a time. Blocking.

    Args:
        paths: files and folders; they are read once more for it.
        index: its passages that have not changed are left out. ``None``: there is none yet.
    """
    for records in _lots(_records(paths)):
        yield _changed(records, index)


def estimate_lines(found: IngestEstimate) -> Iterator[str]:
    """What is said of an estimate before anything is spent."""
    from orchestrator.cli.terminal import money

    calls = "1 call" if found.calls == 1 else f"{found.calls:,} calls"
    yield (
        f"{found.passages:,} passages are new or have changed: {calls} to {found.embedder}, "
        f"about {found.input:,} tokens; what was bought before is not bought again"
    )
    if not found.dollars.worst:
        yield "nothing is to be paid for"
        return
    yield f"{money(found.dollars.expected)} expected, {money(found.dollars.worst)} at worst"
    for scope, amount in found.left:
        yield f"{scope} of {found.tenant}: {money(amount)} left{_fits(found, amount)}"
    if found.cap is not None:
        yield f"--max-cost: {money(found.cap)}{_fits(found, found.cap)}"


def _fits(found: IngestEstimate, amount: Decimal) -> str:
    if amount >= found.dollars.worst:
        return ": the worst fits"
    if amount >= found.dollars.expected:
        return ": the expected fits, the worst does not"
    return ": not even the expected fits; what it pays for is kept"


def _records(paths: Sequence[Path]) -> Iterator[Record]:
    for file in expand(paths):
        if isinstance(file, Path):
            yield from (item for item in read(file) if isinstance(item, Record))


def _lots(records: Iterable[Record]) -> Iterator[list[Record]]:
    rows = iter(records)
    while lot := list(islice(rows, LOT)):
        yield lot


def _changed(records: Sequence[Record], index: Index | None) -> list[Record]:
    latest = {record.passage.id: record for record in records}
    known = index.digests(list(latest)) if index is not None else {}
    return [one for one in latest.values() if known.get(one.passage.id) != digest(one.passage)]


def _added(
    found: IngestEstimate,
    records: Sequence[Record],
    paid: OpenAIEmbedder,
    connections: Connections,
    counting: Counting,
    *,
    given: bool,
) -> IngestEstimate:
    passages = [record.passage for record in records]
    texts = texts_of(passages, [split(passage.text) for passage in passages], given=given)
    calls, prices = paid.missing(texts, tenant=found.tenant), connections.prices
    tokens, dollars = 0, found.dollars
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
        found,
        passages=found.passages + len(passages),
        calls=found.calls + len(calls),
        input=found.input + tokens,
        dollars=dollars,
    )
