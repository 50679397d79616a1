"""Dollars of the calls of one question: low, expected and worst."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from decimal import Decimal

from anyio import to_thread

from orchestrator.compressors import Choose, Compressors
from orchestrator.question.estimates.plans import Guessing, Planned, begin, filler, plan
from orchestrator.question.estimates.savings import Machine, Weighing
from orchestrator.question.estimates.tokens import Counting
from orchestrator.question.estimates.typical import LOW, Typical
from orchestrator.settings import DEFAULT_COMPRESSOR
from posology.errors import UnpricedModel
from posology.llm.structured import MAX_COMPLAINT, repair_messages
from posology.seams import Bound, Prices, Strategy
from posology.types import Call, Dose, Task, Usage
from strategies import make
from strategies.briefcontext.strategy import DEFAULT_SIZE, BriefContext
from strategies.compressed import NAME as COMPRESSED
from strategies.evidence import dosed
from strategies.ladder import Ladder

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


def strategy_of(dose: Dose, choose: Choose, partition_size: int | None) -> Strategy:
    """The strategy that gives a dose, by the compressor that it names. Blocking: that may load a model.

    Raises:
        InvalidQuery: there is no such compressor.
        ConfigurationError: what it is made from is missing.
    """
    compressor = choose(dose.compressor) if dose.strategy == COMPRESSED else None
    return make(dose, compressor=compressor, partition_size=partition_size)


class Estimator:
    """Estimates without a call to a model. It may be shared by concurrent callers.

    Args:
        prices: what calls cost.
        bound: the tokens that a call's input can have at most.
        counting: a best count of them.
        typical: how long replies are.
        choose: gives compressors; ``None``: those that need nothing, the pruner by default.
        machine: that compresses; ``None``: its time is not counted.
    """

    def __init__(
        self,
        *,
        prices: Prices,
        bound: Bound,
        counting: Counting,
        typical: Typical,
        choose: Choose | None = None,
        machine: Machine | None = None,
    ) -> None:
        self._prices = prices
        self._choose = choose or Compressors(DEFAULT_COMPRESSOR)
        self._guess = Guessing(counting=counting, typical=typical, bound=bound)
        #: weighs compressors by the same prices
        self.weighing = Weighing(
            prices=prices, guess=self._guess, choose=self._choose, machine=machine
        )
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
            choose=self._choose,
            machine=self.weighing.machine,
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

    async def __call__(
        self, task: Task, dose: Dose, *, partition_size: int | None = None
    ) -> Estimate:
        """Estimate one dose for one question.

        Args:
            task: with what was retrieved.
            dose: of a strategy that there is.
            partition_size: of BriefContext; ``None``: its own.

        Raises:
            UnpricedModel: nobody knows what the model costs.
        """
        self.check(task.model)
        # bounds of long texts take milliseconds, in which the event loop has others to serve
        return await to_thread.run_sync(self._estimate, task, dose, partition_size)

    def vectors(self, estimate: Estimate, calls: Sequence[Call]) -> Estimate:
        """An estimate with calls before it that embed the question. Blocking.

        Raises:
            UnpricedModel: nobody knows what such a call costs.
        """
        planned = tuple(
            Planned(call=call, input=self._guess.counting.text(call.messages, call.model), output=0)
            for call in calls
        )
        more = self._sum(estimate.strategy, planned)
        return replace(
            estimate,
            calls=estimate.calls + more.calls,
            input=estimate.input + more.input,
            dollars=estimate.dollars + more.dollars,
        )

    def quote(self, task: Task, dose: Dose, *, partition_size: int | None = None) -> Decimal:
        """Dollars without which a dose cannot be begun: of a ladder its first rung, else all at worst. Blocking.

        Raises:
            UnpricedModel: nobody knows what the model costs.
        """
        strategy = strategy_of(dose, self._choose, partition_size)
        planned = begin(dosed(task, dose), strategy, self._guess)
        return sum((self._worst(one)[0] for one in planned), Decimal(0))

    def _estimate(self, task: Task, dose: Dose, partition_size: int | None = None) -> Estimate:
        strategy = strategy_of(dose, self._choose, partition_size)
        read = dosed(task, dose)
        planned = plan(read, strategy, self._guess)
        if dose.escalate and planned and isinstance(strategy, Ladder):
            share = self._guess.typical.reached(task.model, len(strategy.tasks(read)))
            then = plan(task, BriefContext(size=partition_size or DEFAULT_SIZE), self._guess)
            planned += tuple(replace(one, share=one.share * share) for one in then)
        return self._sum(dose.strategy, planned)

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
