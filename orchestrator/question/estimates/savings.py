"""Savings and costs of compressing: expected, before a decision, and actual, after an answer.

Source: TCRA-LLM, section 5.3: a machine's time is paid for by the hour, idle time included. Expected seconds are those
that a compressor declares, so that equal questions are decided alike; a record has the measured seconds.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from decimal import Decimal

from orchestrator.question.estimates.typical import Guessing
from posology.seams import Compressor, Prices, Rewriter
from posology.types import Compression, Dose, Retrieval, Saving, Task, Tier, Usage
from strategies import Choose
from strategies.evidence import truncate_task, words
from strategies.ladder import step_tasks

_NOTHING = Decimal(0)
_HOUR = Decimal(3600)


@dataclass(frozen=True, kw_only=True, slots=True)
class Machine:
    """A machine that compresses, and its price."""

    dollars_per_hour: Decimal
    #: fraction of time that it is busy (0 < x ≤ 1)
    utilisation: float = 0.5

    def dollars(self, seconds: float) -> Decimal:
        """Return the dollars of so many busy seconds, idle time included."""
        return machine_dollars(seconds, self.dollars_per_hour, self.utilisation)


@dataclass(frozen=True, kw_only=True, slots=True)
class Savings:
    """Savings and cost of compression for one answer."""

    #: tokens of the passages, by their words scaled to the model's tokens
    tokens: int
    #: tokens that were shown, counted alike
    shown: int
    #: dollars of the tokens that were not shown; ``None``: the price is unknown
    saved: Decimal | None
    #: dollars of the compressor's calls; ``None``: their usage or price is unknown
    calls: Decimal | None
    #: dollars of its machine; ``None``: its time costs nothing
    machine: Decimal | None


@dataclass(frozen=True, kw_only=True, slots=True)
class Weighing:
    """Expected and actual savings of compressors. Blocking."""

    prices: Prices
    guess: Guessing
    choose: Choose
    #: ``None``: its time costs nothing
    machine: Machine | None = None

    def expected(self, task: Task, dose: Dose) -> Saving | None:
        """Return what compressing for a dose is expected to save and cost, each step as likely as it is reached.

        Args:
            task: the question with all retrieved passages.
            dose: a dose that takes a compressor.

        Returns:
            ``None`` if the model is free, so that nothing can be saved, or its price is unknown.
        """
        if not self.prices.cost(task.model, Usage(input=1_000_000)):
            return None
        compressor = self.choose(dose.compressor)
        steps = [
            replace(
                one,
                whole=one.whole * Decimal(str(share)),
                cost=one.cost * Decimal(str(share)),
                tokens=round(one.tokens * share),
                seconds=None if one.seconds is None else one.seconds * share,
            )
            for part, share in self._parts(task, dose)
            for one in [self._one(part, compressor, dose.keep)]
        ]
        seconds = [one.seconds for one in steps if one.seconds is not None]
        return Saving(
            compressor=compressor.name,
            tokens=sum(one.tokens for one in steps),
            whole=sum((one.whole for one in steps), _NOTHING),
            left=compressor.expected_ratio(dose.keep),
            cost=sum((one.cost for one in steps), _NOTHING),
            seconds=sum(seconds) if seconds else None,
        )

    def actual(
        self, retrieval: Retrieval, took: Compression, model: str, tier: Tier = "standard"
    ) -> Savings:
        """Return what compressing saved and cost.

        Args:
            retrieval: the passages before compression.
            took: the account of the compression.
            model: model that answered, ``provider:name``.
            tier: service tier of its calls.
        """
        there = words(retrieval.passages)
        each = self._tokens(retrieval, model) / there if there else 0.0
        tokens, shown = round(took.words * each), round(took.shown * each)
        whole, left = self._input(model, tokens, tier), self._input(model, shown, tier)
        asked = took.usage != Usage()
        return Savings(
            tokens=tokens,
            shown=shown,
            saved=None if whole is None or left is None else whole - left,
            calls=self.prices.cost(model, took.usage, tier) if asked else _NOTHING,
            # while the compressor waits for its model, the machine serves others
            machine=None
            if self.machine is None
            else self.machine.dollars(0.0 if asked else took.seconds),
        )

    def _parts(self, task: Task, dose: Dose) -> Sequence[tuple[Task, float]]:
        """Return the task of each step, and how likely the step is reached."""
        steps = step_tasks(truncate_task(task, dose), dose)
        return [(one, self.guess.reached(task.model, i)) for i, one in enumerate(steps)]

    def _one(self, task: Task, compressor: Compressor | Rewriter, keep: float | None) -> Saving:
        tokens = self._tokens(task.retrieval, task.model)
        seconds: float | None = None
        if isinstance(compressor, Rewriter):
            cost = self._asked(task, compressor, keep, tokens)
        else:
            seconds = compressor.seconds(task.retrieval, keep)
            cost = self.machine.dollars(seconds) if self.machine else _NOTHING
        return Saving(
            compressor="",
            tokens=round(tokens),
            whole=self._input(task.model, round(tokens), task.tier) or _NOTHING,
            left=1.0,
            cost=cost,
            seconds=seconds,
        )

    def _asked(self, task: Task, rewriter: Rewriter, keep: float | None, tokens: float) -> Decimal:
        """Return the expected dollars of a rewriter's calls."""
        calls = rewriter.calls(task, keep)
        default = tokens * rewriter.expected_ratio(keep) / max(1, len(calls))
        total = _NOTHING
        for call in calls:
            output = min(self.guess.output(call, default=default), call.max_tokens)
            usage = Usage(input=round(self.guess.input(call)), output=round(output))
            total += self.prices.cost(call.model, usage, task.tier) or _NOTHING
        return total

    def _tokens(self, retrieval: Retrieval, model: str) -> float:
        """Return the tokens of the passages' texts; headings are shown whether compressed or not."""
        return self.guess.tokens((one.passage.text for one in retrieval.passages), model)

    def _input(self, model: str, tokens: int, tier: Tier) -> Decimal | None:
        return self.prices.cost(model, Usage(input=tokens), tier)


def machine_dollars(seconds: float, dollars_per_hour: Decimal, utilisation: float = 1.0) -> Decimal:
    """Return the cost of machine time, idle hours included.

    Args:
        seconds: of the work, >= 0.
        dollars_per_hour: of the machine, >= 0.
        utilisation: fraction of time the machine is busy (0 < x ≤ 1).

    Raises:
        ValueError: a value is out of range.
    """
    if not 0 <= seconds < float("inf"):
        raise ValueError(f"seconds must be >= 0 (got {seconds})")
    if not (dollars_per_hour.is_finite() and dollars_per_hour >= 0):
        raise ValueError(f"dollars_per_hour must be >= 0 (got {dollars_per_hour})")
    if not 0 < utilisation <= 1:
        raise ValueError(f"utilisation must be > 0 and <= 1 (got {utilisation})")
    return Decimal(str(seconds)) * dollars_per_hour / _HOUR / Decimal(str(utilisation))
