"""Dollars of the calls of one question: low, expected and worst."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal
from functools import partial
from itertools import takewhile
from typing import TYPE_CHECKING

from anyio import to_thread

from orchestrator.compressors import Compressors, make_compressors
from orchestrator.question.estimates.caching import expected_usage
from orchestrator.question.estimates.savings import Machine, Weighing
from orchestrator.question.estimates.tokens import Counting, packaged_counter
from orchestrator.question.estimates.typical import LOW, Guessing, Typical
from orchestrator.settings import DEFAULT_COMPRESSOR, Settings
from policies.affordable import following
from posology.errors import UnpricedModel
from posology.llm.second import allowance
from posology.seams import Bound, Prices
from posology.types import Call, Dose, PlannedCall, Task, Tier, Usage
from strategies import Choose, make
from strategies.evidence import truncate_task
from strategies.ladder import step_tasks
from strategies.support.judging import plan_judging
from strategies.support.repair import plan_repair

if TYPE_CHECKING:
    from orchestrator.connections import Connections


@dataclass(frozen=True, kw_only=True, slots=True)
class Dollars:
    """Dollars, with ``low <= expected <= worst``."""

    #: every call is answered in a few words, and no partition has a finding
    low: Decimal = Decimal(0)
    #: best estimate
    expected: Decimal = Decimal(0)
    #: Maximum cost, second calls included: those that would exceed it are not made. A budget of this refuses no call,
    #: unless attempts fail or are lost.
    worst: Decimal = Decimal(0)

    def __add__(self, other: Dollars) -> Dollars:
        return Dollars(
            low=self.low + other.low,
            expected=self.expected + other.expected,
            worst=self.worst + other.worst,
        )


@dataclass(frozen=True, kw_only=True, slots=True)
class Estimate:
    """Calls, tokens and dollars of one strategy for one question."""

    strategy: str
    #: most calls, without repairs
    calls: int
    #: expected input tokens of all calls
    input: int
    #: expected output tokens of all calls
    output: int
    dollars: Dollars
    #: groups of calls that wait for the replies of the group before: batches one after another
    waves: int = 1


class Estimator:
    """Estimates costs without calling a model. Concurrent callers may share it.

    Args:
        prices: prices of calls.
        bound: most input tokens of a call.
        counting: expected input tokens of a call.
        typical: expected lengths of replies.
        choose: returns compressors; ``None``: those without configuration, the pruner by default.
        machine: machine that compresses; ``None``: its time costs nothing.
        seconds: predicted seconds of a compression, above which its call is bounded without it; ``None``: no limit.
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
        seconds: float | None = None,
    ) -> None:
        self._prices = prices
        self._seconds = seconds
        self._choose = choose or Compressors(DEFAULT_COMPRESSOR)
        self._guess = Guessing(counting=counting, typical=typical, bound=bound)
        #: expected and actual savings of compressors, by the same prices
        self.weighing = Weighing(
            prices=prices, guess=self._guess, choose=self._choose, machine=machine
        )

    @property
    def prices(self) -> str:
        """Version of the prices."""
        return self._prices.version

    def with_history(self, typical: Typical) -> Estimator:
        """Return an estimator that expects replies like those of one tenant's own calls."""
        return Estimator(
            prices=self._prices,
            bound=self._guess.bound,
            counting=self._guess.counting,
            typical=typical,
            choose=self._choose,
            machine=self.weighing.machine,
            seconds=self._seconds,
        )

    def free(self, *models: str) -> bool:
        """Return whether models cost nothing at any usage."""
        return all(self._prices.cost(model, None) == 0 for model in models)

    def check(self, *models: str, tier: Tier = "standard") -> None:
        """Check that the prices of models are known in a service tier.

        Raises:
            UnpricedModel: one is unknown.
        """
        for model in models:
            self._prices.worst(model, input_tokens=1, output_tokens=1, tier=tier)

    async def __call__(
        self,
        task: Task,
        dose: Dose,
        *,
        partition_size: int | None = None,
        repair: bool = False,
        judge: str | None = None,
    ) -> Estimate:
        """Estimate one dose for one question.

        Args:
            task: the question with all passages that the dose may read, see
                :meth:`~orchestrator.question.pipeline.Pipeline.foreseen`.
            dose: the dose.
            partition_size: passages a partition; ``None``: the strategy's default.
            repair: whether an answer with sentences that are not supported is sent back once.
            judge: language model that judges the answer's sentences; ``None``: none does.

        Raises:
            InputError: no such strategy.
            UnpricedModel: the model's price is unknown.
        """
        self.check(task.model, *([judge] if judge else ()), tier=task.tier)
        # bounds of long texts take milliseconds, which would block the event loop
        work = partial(
            self._estimate, task, dose, partition_size=partition_size, repair=repair, judge=judge
        )
        return await to_thread.run_sync(work, abandon_on_cancel=True)

    def vectors(self, estimate: Estimate, calls: Sequence[Call]) -> Estimate:
        """Add the calls that embed the question to an estimate. Blocking.

        Raises:
            UnpricedModel: the price of such a call is unknown.
        """
        planned = [
            PlannedCall(
                call=call, input=self._guess.counting.text(call.messages, call.model), output=0
            )
            for call in calls
        ]
        more = self._sum(estimate.strategy, planned)
        return replace(
            estimate,
            calls=estimate.calls + more.calls,
            input=estimate.input + more.input,
            dollars=estimate.dollars + more.dollars,
        )

    def calls(
        self, name: str, calls: Sequence[Call], tier: Tier, *, output: Callable[[Call], float]
    ) -> Estimate:
        """Estimate calls whose messages are known. Blocking.

        Args:
            name: name of the strategy that makes them.
            calls: the calls.
            tier: service tier that they are sent in.
            output: returns the expected output tokens of a call, if the tenant has made no such call.

        Raises:
            UnpricedModel: the model's price is unknown.
        """
        planned = [
            PlannedCall(
                call=call,
                input=self._guess.input(call),
                output=self._guess.output(call, default=output(call)),
            )
            for call in calls
        ]
        return self._sum(name, [_sent(one, tier) for one in planned])

    def quote(self, task: Task, dose: Dose, *, partition_size: int | None = None) -> Decimal:
        """Return the dollars without which a dose cannot begin: the reservations of all calls, or of a first step.

        Second calls are paid for from what is left of these, as far as it goes. Blocking.

        Raises:
            UnpricedModel: the model's price is unknown.
        """
        strategy = make(
            dose, choose=self._choose, partition_size=partition_size, seconds=self._seconds
        )
        calls = strategy.calls(truncate_task(task, dose), self._guess)
        first = takewhile(lambda one: one.step == 0, calls)
        return sum((self._first(_sent(one, task.tier)) for one in first), Decimal(0))

    def _estimate(
        self,
        task: Task,
        dose: Dose,
        *,
        partition_size: int | None,
        repair: bool,
        judge: str | None,
    ) -> Estimate:
        strategy = make(
            dose, choose=self._choose, partition_size=partition_size, seconds=self._seconds
        )
        read = truncate_task(task, dose)
        planned = list(strategy.calls(read, self._guess))
        waves = _waves(planned)
        if dose.escalate and dose.rungs and planned:
            share = self._guess.reached(task.model, len(step_tasks(read, dose)))
            then = following(dose, len(task.retrieval.passages))
            escalated = make(
                then, choose=self._choose, partition_size=partition_size, seconds=self._seconds
            )
            more = list(escalated.calls(truncate_task(task, then), self._guess))
            planned += (replace(one, share=one.share * share) for one in more)
            waves += _waves(more)
        after = plan_repair(planned, self._guess) if repair else None
        if judge is not None:
            after = plan_judging(planned, self._guess, model=judge, effort=task.effort)
        if after is not None:
            planned.append(after)
            waves += 1
        found = self._sum(dose.strategy, [_sent(one, task.tier) for one in planned])
        return replace(found, waves=waves)

    def _sum(self, name: str, planned: Sequence[PlannedCall]) -> Estimate:
        return Estimate(
            strategy=name,
            calls=len(planned),
            input=round(sum(one.share * one.input for one in planned)),
            output=round(sum(one.share * self._output(one) for one in planned)),
            dollars=sum((self._dollars(one) for one in planned), Dollars()),
        )

    def _dollars(self, planned: PlannedCall) -> Dollars:
        call = planned.call
        worst, bound = self._worst(planned)
        read = min(round(planned.input), bound)
        output = self._output(planned)
        expected = self._cost(call, expected_usage(planned, read=read, output=output))
        if planned.share < 1:
            share = Decimal(str(planned.share))
            return Dollars(expected=expected * share, worst=worst)
        least = min(round(self._guess.counting.low(call)), read)
        refused = Usage(input=least, output=min(LOW.get(call.stage, 1), output))
        low = self._cost(call, refused)
        # where a price falls with the length of the input, more tokens may cost less
        return Dollars(low=min(low, expected), expected=expected, worst=worst)

    def _output(self, planned: PlannedCall) -> int:
        return min(round(planned.output), planned.call.max_tokens)

    def _worst(self, planned: PlannedCall) -> tuple[Decimal, int]:
        """Return the dollars that a call and a second one cost at most, and the bound of the call's own input."""
        most, longest = Decimal(0), 0
        for call in planned.worst_cases or (planned.call,):
            bound = self._guess.bound(call)
            most = max(most, allowance(call, self._reserved(call, bound)))
            longest = max(longest, bound)
        return most, longest

    def _first(self, planned: PlannedCall) -> Decimal:
        """Return the dollars reserved for a call."""
        cases = planned.worst_cases or (planned.call,)
        return max(self._reserved(call, self._guess.bound(call)) for call in cases)

    def _reserved(self, call: Call, bound: int) -> Decimal:
        return self._prices.worst(
            call.model,
            input_tokens=bound,
            output_tokens=call.max_tokens,
            tier=call.tier,
            caches=bool(call.cached),
        )

    def _cost(self, call: Call, usage: Usage) -> Decimal:
        cost = self._prices.cost(call.model, usage, call.tier)
        if cost is None:
            raise UnpricedModel(model=call.model, tier=call.tier)
        return cost


def _waves(planned: Sequence[PlannedCall]) -> int:
    """Return how many of a strategy's calls wait for one another: steps of a ladder, and stages within a step."""
    return len({(one.step, one.call.stage) for one in planned})


def _sent(planned: PlannedCall, tier: Tier) -> PlannedCall:
    """Return a planned call as it is sent in a service tier."""
    cases = tuple(replace(one, tier=tier) for one in planned.worst_cases)
    return replace(planned, call=replace(planned.call, tier=tier), worst_cases=cases)


def make_estimator(
    settings: Settings, connections: Connections, choose: Choose | None = None
) -> Estimator:
    """Build an estimator with the prices and bounds by which calls are reserved.

    Args:
        settings: the settings.
        connections: has the prices and bounds.
        choose: returns compressors; ``None``: as configured.
    """
    counting = Counting(packaged_counter(), native_schema=settings.native_schema)
    return Estimator(
        prices=connections.prices,
        bound=connections.bound,
        counting=counting,
        typical=Typical(),
        choose=choose or make_compressors(settings),
        machine=make_machine(settings),
        seconds=settings.compression_seconds,
    )


def make_machine(settings: Settings) -> Machine | None:
    """Return the configured machine that compresses; ``None``: its time costs nothing."""
    if settings.machine_dollars_per_hour is None:
        return None
    return Machine(
        dollars_per_hour=settings.machine_dollars_per_hour,
        utilisation=settings.machine_utilisation,
    )
