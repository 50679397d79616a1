"""A paid run: plan, price, buy, and keep every reply. An interrupted run resumes from its file."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Any, Generic, TypeVar

from orchestrator.budget import Budget, open_budget
from orchestrator.connections import Connections
from orchestrator.models import Models
from orchestrator.question.estimates.costs import Dollars
from orchestrator.service import open_connections
from orchestrator.settings import Settings
from orchestrator.spending import balance_fields
from orchestrator.training.paid.calls import Buyer, Purchase, buy_all
from orchestrator.training.paid.rows import Paid, Row, RowFile
from posology.llm.providers.places import MOST
from posology.published.money import BalanceOutput
from posology.types import Balance

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
            "balances": tuple(
                BalanceOutput(**balance_fields(self.terms.tenant, one)) for one in self.balances
            ),
        }


class PaidRun(ABC, Generic[_Content, _Item]):
    """A planned run. Subclasses define its rows, the price and the calls of an item.

    Args:
        file: keeps every reply.
        todo: items without a complete reply in the file.
    """

    def __init__(self, file: RowFile[_Content], todo: Sequence[_Item]) -> None:
        self.file = file
        self.todo = todo

    @abstractmethod
    def begin(self) -> Sequence[Row]:
        """Return the rows that describe the replies after them."""

    @abstractmethod
    async def price(self, connections: Connections, settings: Settings) -> Costs:
        """Estimate the calls of all items by the prices and bounds of their reservations.

        Raises:
            UnpricedModel: the model has no price.
        """

    @abstractmethod
    async def ask(self, item: _Item, buyer: Buyer) -> None:
        """Make the calls of an item and write each reply to the file.

        Raises:
            PosologyError: a call failed.
        """

    async def buy(self, purchase: Purchase, tick: Callable[[int], None] = lambda _: None) -> None:
        """Make the calls of all items. The file keeps each reply before the next call is awaited.

        Args:
            purchase: how calls are paid for.
            tick: called with 1 for each item that has ended.

        Raises:
            PosologyError: an error that concerns all calls, such as a spent budget. Calls in progress have ended,
                and their replies are in the file.
        """
        self.file.write(*self.begin())
        buyer = Buyer(purchase, spent=self.file.content.spent, failed=self.file.write)

        async def work(item: _Item) -> None:
            await self.ask(item, buyer)

        await buy_all(work, self.todo, at_once=purchase.at_once, tick=tick)


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
        PosologyError: the plan failed.
    """
    async with terms.open() as (budget, connections):
        prices = connections.prices
        # fails early for a model without a price
        prices.worst(model, input_tokens=1, output_tokens=1)
        run = await plan(connections)
        free = prices.cost(model, None) == 0
        costs = Costs(calls=len(run.todo))
        if not free:
            costs = await run.price(connections, terms.settings)
        balances = tuple(await budget.ledger.balances())
    quote = Quote(
        costs=costs, free=free, spent=run.file.content.spent, terms=terms, balances=balances
    )
    return run, quote


async def buy(terms: Terms, run: PaidRun[Any, Any], tick: Callable[[int], None]) -> None:
    """Make the calls of a run through the tenant's budget; see :meth:`PaidRun.buy`."""
    async with terms.open() as (budget, connections):
        purchase = Purchase(
            completes=connections.complete,
            ledger=budget.ledger,
            cap=terms.cap,
            at_once=terms.settings.concurrency or MOST,
        )
        await run.buy(purchase, tick)
