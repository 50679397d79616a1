"""Dollars of the calls of one question: low, expected and worst."""

from __future__ import annotations

from dataclasses import dataclass, replace
from decimal import Decimal

from anyio import to_thread

from orchestrator.estimates.plans import Guessing, Planned, filler, plan
from orchestrator.estimates.tokens import Counting
from orchestrator.estimates.typical import LOW, Typical
from posology.errors import UnpricedModel
from posology.llm.structured import MAX_COMPLAINT, repair_messages
from posology.seams import Bound, Prices, Strategy
from posology.types import Call, Task, Usage

#: as much as a repair is told of what is wrong
_COMPLAINT = "7" * MAX_COMPLAINT
#: pairs of model and length whose repairs are kept
_KEPT = 64


@dataclass(frozen=True, kw_only=True, slots=True)
class Dollars:
    """What something costs. ``low <= expected <= worst``."""

    #: every call is answered in a few words, and no partition holds anything
    low: Decimal = Decimal(0)
    #: at best guess
    expected: Decimal = Decimal(0)
    #: what its reservations add up to when every reply needs a repair: with a cap of this nothing is
    #: refused, unless attempts fail or are lost
    worst: Decimal = Decimal(0)

    def __add__(self, other: Dollars) -> Dollars:
        return Dollars(
            low=self.low + other.low,
            expected=self.expected + other.expected,
            worst=self.worst + other.worst,
        )


@dataclass(frozen=True, kw_only=True, slots=True)
class Estimate:
    """What one strategy takes to answer one question."""

    strategy: str
    #: without repairs, at most
    calls: int
    #: tokens of all calls, at best guess
    input: int
    #: tokens of all calls, at best guess
    output: int
    dollars: Dollars


class Estimator:
    """Estimates without a call to a model. It may be shared by concurrent callers.

    Args:
        prices: what calls cost.
        bound: the tokens that a call's input can have at most.
        counting: a best count of them.
        typical: how long replies are.
    """

    def __init__(
        self, *, prices: Prices, bound: Bound, counting: Counting, typical: Typical
    ) -> None:
        self._prices = prices
        self._guess = Guessing(counting=counting, typical=typical, bound=bound)
        self._repairs: dict[tuple[str, int], int] = {}

    @property
    def prices(self) -> str:
        """Which prices these are."""
        return self._prices.version

    def with_history(self, typical: Typical) -> Estimator:
        """The same for a tenant whose calls are known."""
        return Estimator(
            prices=self._prices,
            bound=self._guess.bound,
            counting=self._guess.counting,
            typical=typical,
        )

    def free(self, model: str) -> bool:
        """Whether a model costs nothing at any usage."""
        return self._prices.cost(model, None) == 0

    def check(self, model: str) -> None:
        """Refuse a model whose price is unknown.

        Raises:
            UnpricedModel: it is.
        """
        self._prices.worst(model, input_tokens=1, output_tokens=1)

    async def __call__(self, task: Task, strategy: Strategy, name: str) -> Estimate:
        """Estimate one strategy for one question.

        Raises:
            UnpricedModel: nobody knows what the model costs.
        """
        self.check(task.model)
        planned = await plan(task, strategy, name, self._guess)
        # bounds of long texts take milliseconds, in which the event loop has others to serve
        return await to_thread.run_sync(self._sum, name, planned)

    def _sum(self, name: str, planned: tuple[Planned, ...]) -> Estimate:
        return Estimate(
            strategy=name,
            calls=len(planned),
            input=round(sum(one.share * one.input for one in planned)),
            output=round(sum(one.share * self._output(one) for one in planned)),
            dollars=sum((self._dollars(one) for one in planned), Dollars()),
        )

    def _dollars(self, planned: Planned) -> Dollars:
        call = planned.call
        worst, bound = self._worst(planned)
        read = min(round(planned.input), bound)
        said = self._output(planned)
        expected = self._cost(call.model, read, said)
        if planned.share < 1:
            share = Decimal(str(planned.share))
            return Dollars(expected=expected * share, worst=worst)
        least = min(round(self._guess.counting.low(call)), read)
        low = self._cost(call.model, least, min(LOW.get(call.stage, 1), said))
        # where a price falls with the length of the input, more tokens may cost less
        return Dollars(low=min(low, expected), expected=expected, worst=worst)

    def _output(self, planned: Planned) -> int:
        return min(round(planned.output), planned.call.max_tokens)

    def _worst(self, planned: Planned) -> tuple[Decimal, int]:
        """What is reserved for a call and its repair, and the bound of the call's own input."""
        most, longest = Decimal(0), 0
        for call in planned.instead or (planned.call,):
            bound = self._guess.bound(call)
            dollars = self._reserved(call, bound)
            if call.schema is not None:
                dollars += self._reserved(call, bound + self._complained(call))
            most, longest = max(most, dollars), max(longest, bound)
        return most, longest

    def _complained(self, call: Call) -> int:
        """Tokens at most that a repair takes in beyond its call: the reply, and what is wrong with it."""
        key = call.model, call.max_tokens
        if key not in self._repairs:
            if len(self._repairs) >= _KEPT:
                self._repairs.clear()
            alone = replace(call, messages=(), schema=None)
            more = repair_messages(alone, filler(call.max_tokens), _COMPLAINT)
            self._repairs[key] = self._guess.bound(replace(alone, messages=more))
        return self._repairs[key]

    def _reserved(self, call: Call, bound: int) -> Decimal:
        return self._prices.worst(call.model, input_tokens=bound, output_tokens=call.max_tokens)

    def _cost(self, model: str, read: int, said: int) -> Decimal:
        cost = self._prices.cost(model, Usage(input=read, output=said))
        if cost is None:
            raise UnpricedModel(model=model)
        return cost
