"""What compressing saves and what it costs itself: expected, before it is decided, and as it was.

Source: TCRA-LLM, section 5.3: a machine's time is paid for by the hour, the idle rest included. Seconds are those
that a compressor states of itself, so that equal questions are decided alike; what a record says are those it took.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from decimal import Decimal

from orchestrator.compressors import Choose
from orchestrator.question.estimates.plans import Guessing, label
from posology.seams import Prices, Rewriter
from posology.types import Compression, Dose, Message, Retrieval, Role, Saving, Task, Usage
from strategies import make
from strategies.compression.summarization.cost import machine_dollars
from strategies.evidence import dosed, words
from strategies.ladder import Ladder

_NOTHING = Decimal(0)


@dataclass(frozen=True, kw_only=True, slots=True)
class Machine:
    """The machine that compresses."""

    dollars_per_hour: Decimal
    #: share of its hours that it works at all, over 0 to 1
    utilisation: float = 0.5

    def dollars(self, seconds: float) -> Decimal:
        """What it costs for so long."""
        return machine_dollars(seconds, self.dollars_per_hour, self.utilisation)


@dataclass(frozen=True, kw_only=True, slots=True)
class Spared:
    """What compressing saved of an answer, and what it cost."""

    #: of what was to be read, and of what was shown; by words, scaled to the model's tokens
    tokens: int
    shown: int
    #: dollars of the tokens that were not shown; ``None``: the price is not known
    saved: Decimal | None
    #: dollars of the compressor's calls; ``None``: their usage or price is not known
    calls: Decimal | None
    #: dollars of its machine; ``None``: it is not counted
    machine: Decimal | None


@dataclass(frozen=True, kw_only=True, slots=True)
class Weighing:
    """Weighs compressors. Blocking."""

    prices: Prices
    guess: Guessing
    choose: Choose
    #: ``None``: its time is not counted
    machine: Machine | None = None

    def expected(self, task: Task, dose: Dose) -> Saving | None:
        """What compressing for a dose will save and cost; of a ladder each rung as likely as it is climbed.

        Args:
            task: with all that was retrieved.
            dose: of compressed RAG.

        Returns:
            ``None`` where the model costs nothing, so that nothing can be saved, or nobody knows what it costs.
        """
        if not self.prices.cost(task.model, Usage(input=1_000_000)):
            return None
        compressor = self.choose(dose.compressor)
        found = [
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
        seconds = [one.seconds for one in found if one.seconds is not None]
        return Saving(
            compressor=compressor.name,
            tokens=sum(one.tokens for one in found),
            whole=sum((one.whole for one in found), _NOTHING),
            left=compressor.expected_ratio(dose.keep),
            cost=sum((one.cost for one in found), _NOTHING),
            seconds=sum(seconds) if seconds else None,
        )

    def actual(self, retrieval: Retrieval, took: Compression, model: str) -> Spared:
        """What it did save and cost.

        Args:
            retrieval: what was compressed.
            took: what it took and left.
            model: that answered, ``provider:name``.
        """
        there = words(retrieval.passages)
        each = self._tokens(retrieval, model) / there if there else 0.0
        tokens, shown = round(took.words * each), round(took.shown * each)
        whole, left = self._input(model, tokens), self._input(model, shown)
        asked = took.usage != Usage()
        return Spared(
            tokens=tokens,
            shown=shown,
            saved=None if whole is None or left is None else whole - left,
            calls=self.prices.cost(model, took.usage) if asked else _NOTHING,
            # while a model is waited for, the machine serves others
            machine=None
            if self.machine is None
            else self.machine.dollars(0.0 if asked else took.seconds),
        )

    def _parts(self, task: Task, dose: Dose) -> Sequence[tuple[Task, float]]:
        task = dosed(task, dose)
        strategy = make(replace(dose, strategy="direct", keep=None, compressor=None))
        if not isinstance(strategy, Ladder):
            return [(task, 1.0)]
        reached = self.guess.typical.reached
        return [(one, reached(task.model, rung)) for rung, one in enumerate(strategy.tasks(task))]

    def _one(self, task: Task, compressor: object, keep: float | None) -> Saving:
        tokens = self._tokens(task.retrieval, task.model)
        seconds: float | None = None
        cost = _NOTHING
        if isinstance(compressor, Rewriter):
            cost = self._asked(task, compressor, keep, tokens)
        else:
            seconds = compressor.seconds(task.retrieval, keep)  # type: ignore[attr-defined]
            cost = self.machine.dollars(seconds) if self.machine else _NOTHING
        return Saving(
            compressor="",
            tokens=round(tokens),
            whole=self._input(task.model, round(tokens)) or _NOTHING,
            left=1.0,
            cost=cost,
            seconds=seconds,
        )

    def _asked(self, task: Task, rewriter: Rewriter, keep: float | None, tokens: float) -> Decimal:
        """Dollars of a rewriter's calls, at best guess."""
        calls = rewriter.calls(task, keep)
        before = tokens * rewriter.expected_ratio(keep) / max(1, len(calls))
        total = _NOTHING
        for call in calls:
            said = min(self.guess.typical.output(label(call), before=before), call.max_tokens)
            read = self.guess.counting.expected(call)
            cost = self.prices.cost(call.model, Usage(input=round(read), output=round(said)))
            total += cost or _NOTHING
        return total

    def _tokens(self, retrieval: Retrieval, model: str) -> float:
        """Tokens of the passages' texts; what stands around them is shown whether compressed or not."""
        texts = [one.passage.text for one in retrieval.passages]
        return self.guess.counting.text([Message(role=Role.USER, content=t) for t in texts], model)

    def _input(self, model: str, tokens: int) -> Decimal | None:
        return self.prices.cost(model, Usage(input=tokens))
