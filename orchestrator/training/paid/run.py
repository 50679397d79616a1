"""A paid run: plan, price, buy, and keep every reply. An interrupted run resumes from its file."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from decimal import Decimal
from pathlib import Path
from typing import Any, Generic, TypeVar

from orchestrator.budget import Budget, open_budget
from orchestrator.connections import Connections
from orchestrator.lane.collector import LaneOptions
from orchestrator.models import Models
from orchestrator.question.estimates.costs import Dollars
from orchestrator.service import open_connections
from orchestrator.settings import Settings
from orchestrator.spending import balance_outputs
from orchestrator.training.forms import RunTier
from orchestrator.training.paid.calls import Buyer, Buys, Purchase, buy_all
from orchestrator.training.paid.journal import journal_path, open_journal
from orchestrator.training.paid.lane import BatchBuyer, LaneTerms
from orchestrator.training.paid.rows import Paid, Row, Rows
from posology.errors import InputError
from posology.llm.models.families import check_lane
from posology.llm.providers.places import MOST
from posology.types import Balance, Tier

#: items that wait for a provider's batches at the same time
_WAITING = 5_000

_Content = TypeVar("_Content", bound=Paid)
_Item = TypeVar("_Item")


@dataclass(frozen=True, kw_only=True, slots=True)
class Terms:
    """Terms of a run: tenant, maximum cost, settings and models."""

    tenant: str
    #: dollars for all of the run's file; ``None``: only the tenant's limits apply
    cap: Decimal | None
    settings: Settings
    models: Models
    #: service tier of the calls
    tier: RunTier = "standard"

    @asynccontextmanager
    async def open(self) -> AsyncIterator[tuple[Budget, Connections]]:
        """Open the tenant's budget and the connections to providers."""
        async with (
            open_budget(self.settings, self.tenant) as budget,
            open_connections(self.settings, self.models, budget.meter) as connections,
        ):
            yield budget, connections


@dataclass(frozen=True, kw_only=True, slots=True)
class Costs:
    """Estimated cost of several calls together."""

    calls: int = 0
    #: expected input tokens
    input: int = 0
    #: expected output tokens
    output: int = 0
    dollars: Dollars = field(default_factory=Dollars)


@dataclass(frozen=True, kw_only=True, slots=True)
class Quote:
    """Price of a planned run, before anything is spent."""

    costs: Costs
    #: whether the model costs nothing
    free: bool
    #: dollars that the run's file has cost so far
    spent: Decimal
    terms: Terms
    balances: tuple[Balance, ...]

    def fields(self) -> dict[str, Any]:
        """Return the fields that all published estimates share."""
        return {
            "free": self.free,
            "input_tokens": self.costs.input,
            "output_tokens": self.costs.output,
            "low_usd": self.costs.dollars.low,
            "expected_usd": self.costs.dollars.expected,
            "worst_usd": self.costs.dollars.worst,
            "spent_usd": self.spent,
            "cap_usd": self.terms.cap,
            "balances": balance_outputs(self.terms.tenant, self.balances),
        }


class PaidRun(ABC, Generic[_Content, _Item]):
    """A planned run. Subclasses define its rows, the price and the calls of an item.

    Args:
        file: keeps every reply.
        todo: items without a complete reply in the file.
        model: ``provider:name`` of all calls.
    """

    def __init__(self, file: Rows[_Content], todo: Sequence[_Item], *, model: str) -> None:
        self.file = file
        self.todo = todo
        #: ``provider:name`` of all calls
        self.model = model

    @abstractmethod
    def begin(self) -> Sequence[Row]:
        """Return the rows that describe the replies after them."""

    @abstractmethod
    def kept(self, call: str) -> bool:
        """Return whether the file has the reply to a call, by its digest."""

    @abstractmethod
    async def price(self, connections: Connections, settings: Settings, tier: Tier) -> Costs:
        """Estimate the calls of all items by the prices and bounds of their reservations in a service tier.

        Raises:
            UnpricedModel: the model has no price.
        """

    @abstractmethod
    async def ask(self, item: _Item, buyer: Buys) -> None:
        """Make the calls of an item and keep each reply before anything else is awaited.

        Raises:
            PosologyError: a call failed.
        """

    async def buy(
        self,
        purchase: Purchase,
        tick: Callable[[int], None] = lambda _: None,
        lane: LaneTerms | None = None,
    ) -> None:
        """Make the calls of all items. The file keeps each reply before the next call is awaited.

        Args:
            purchase: how calls are paid for.
            tick: called with 1 for each item that has ended.
            lane: of calls that go into the provider's batches; ``None``: they are made one by one.

        Raises:
            PosologyError: an error that concerns all calls, such as a spent budget. Calls in progress have ended,
                and their replies are in the file.
        """
        await self.file.keep(*self.begin())
        spent, failed = self.file.content.spent, self.file.keep
        if lane is None:
            buyer = Buyer(purchase, spent=spent, failed=failed)
            await self._buy(buyer, purchase.at_once, tick)
            return
        assert self.file.path is not None, "batches need a file"
        with open_journal(self.file.path) as journal:
            batches = BatchBuyer(
                purchase, lane, journal, spent=spent, failed=failed, kept=self.kept
            )
            async with batches.working():
                await self._buy(batches, _WAITING, tick)

    async def _buy(self, buyer: Buys, at_once: int, tick: Callable[[int], None]) -> None:
        async def work(item: _Item) -> None:
            await self.ask(item, buyer)

        await buy_all(work, self.todo, at_once=at_once, tick=tick)


_Run = TypeVar("_Run", bound=PaidRun[Any, Any])


async def prepare(
    terms: Terms, model: str, plan: Callable[[Connections], Awaitable[_Run]]
) -> tuple[_Run, Quote]:
    """Plan a run and estimate its cost. Nothing is spent.

    Args:
        terms: who pays.
        model: ``provider:name`` of all calls.
        plan: makes the run.

    Raises:
        UnpricedModel: the model has no price.
        InvalidQuery: the model is not sold in the tier.
        InputError: batches of an earlier run are at the provider, and the tier is another one.
        PosologyError: the plan failed.
    """
    async with terms.open() as (budget, connections):
        prices = connections.prices
        # fails early for a model without a price
        if terms.tier == "batch":
            check_lane(model, terms.tier)
        prices.worst(model, input_tokens=1, output_tokens=1, tier=terms.tier)
        run = await plan(connections)
        check_journal(run.file.path, terms.tier)
        free = prices.cost(model, None) == 0
        costs = Costs(calls=len(run.todo))
        if not free:
            costs = await run.price(connections, terms.settings, terms.tier)
        balances = tuple(await budget.ledger.balances())
    quote = Quote(
        costs=costs, free=free, spent=run.file.content.spent, terms=terms, balances=balances
    )
    return run, quote


async def buy(terms: Terms, run: PaidRun[Any, Any], tick: Callable[[int], None]) -> None:
    """Make the calls of a run through the tenant's budget, in the tier of the terms; see :meth:`PaidRun.buy`."""
    async with terms.open() as (budget, connections):
        purchase = Purchase(
            completes=connections.complete,
            ledger=budget.ledger,
            cap=terms.cap,
            at_once=terms.settings.concurrency or MOST,
        )
        await run.buy(purchase, tick, _lane(terms, connections, run.model))


def check_journal(run: Path | None, tier: RunTier) -> None:
    """Check that a run whose batches are at a provider goes on in batches.

    Raises:
        InputError: it does not: its calls would be paid for twice.
    """
    if run is None:
        return
    path = journal_path(run)
    if tier != "batch" and path.exists():
        raise InputError(
            f"{path} has batches that are at the provider. Run the same command with --tier batch to collect them."
        )


def _lane(terms: Terms, connections: Connections, model: str) -> LaneTerms | None:
    if terms.tier != "batch":
        return None
    settings = terms.settings
    return LaneTerms(
        endpoint=connections.batches(model),
        prices=connections.prices,
        bound=connections.bound,
        options=LaneOptions(
            wait=settings.batch_wait,
            rows=settings.batch_rows,
            poll=settings.batch_poll,
            lease=settings.batch_lease,
            # nobody else creates a batch of the run
            grace=0.0,
        ),
    )
