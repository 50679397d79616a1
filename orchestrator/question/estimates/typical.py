"""How long inputs and replies are: measured defaults, corrected by the tenant's own calls."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from types import MappingProxyType
from typing import TYPE_CHECKING

from orchestrator.question.estimates.tokens import Counting
from posology.budget.spending.periods import period
from posology.llm.models.names import parse
from posology.seams import Bound
from posology.types import Call, Message, Role, Stage

if TYPE_CHECKING:
    from redis.asyncio import Redis

#: attempts that a measured default counts as: a few calls of a tenant say little
WEIGHT = 20
#: Output tokens of the offline reader, in its own tokens: 40 sample questions, 8 passages each.
OFFLINE: Mapping[Stage, float] = MappingProxyType(
    {Stage.ANSWER: 159, Stage.EXTRACT: 50, Stage.REDUCE: 194}
)
#: The same of a language model, without reasoning, in its tokens. No provider was at hand: an answer with
#: two or three quotes, 0.9 findings of 100 tokens and what stands around them, an answer with a claim or
#: two, of replies put together from experts' texts. They give way to the tenant's own figures.
MODEL: Mapping[Stage, float] = MappingProxyType(
    {Stage.ANSWER: 200, Stage.EXTRACT: 100, Stage.REDUCE: 200}
)
#: output tokens of a stage that was not measured
OTHER = 200.0
#: fewest tokens of a reply: an empty refusal, or no finding
LOW: Mapping[Stage, int] = MappingProxyType({Stage.ANSWER: 15, Stage.EXTRACT: 9, Stage.REDUCE: 20})
#: findings a partition; the offline reader's 0.5 is of the same 40 questions
FINDINGS, OFFLINE_FINDINGS = 0.9, 0.5
#: share of the questions for which some partition has a finding, so that there is a reduce call
REDUCED, OFFLINE_REDUCED = 0.9, 0.68
#: Share of the questions that the first call of a ladder refuses, so that there is a second; the offline
#: reader's is of ``evals.policy.doubling``, no provider was available.
REFUSED, OFFLINE_REFUSED = 0.3, 0.08
#: Share of those that the next call refuses, too. It is far larger: a question refused once is hard, or has no answer.
REFUSED_AGAIN, OFFLINE_REFUSED_AGAIN = 0.7, 0.9


@dataclass(frozen=True, kw_only=True, slots=True)
class Label:
    """Group of calls that a figure is about."""

    stage: str
    strategy: str
    model: str


@dataclass(frozen=True, kw_only=True, slots=True)
class Figures:
    """Sums over the attempts of known usage at some calls."""

    attempts: int
    #: tokens
    input: int
    #: tokens
    output: int


class Typical:
    """Expected lengths of replies.

    Args:
        history: figures of the tenant's own calls.
    """

    def __init__(self, history: Mapping[Label, Figures] = MappingProxyType({})) -> None:
        self._history = history

    def output(self, label: Label, *, default: float | None = None) -> float:
        """Return the expected output tokens of a call.

        Args:
            label: group of the call.
            default: expected tokens if the tenant has made no such call; ``None``: the measured default.
        """
        if default is None:
            stage = Stage(label.stage)
            default = (OFFLINE if _offline(label.model) else MODEL).get(stage, OTHER)
        own = self.own(label)
        return (default * WEIGHT + own.output) / (WEIGHT + own.attempts)

    def findings(self, extract: Label, reduce: Label, *, bare: float, block: float) -> float:
        """Return the input tokens that one partition's findings add to a reduce call.

        Args:
            extract: group of the calls that extract findings.
            reduce: group of the calls that get them.
            bare: input tokens of a reduce call without findings.
            block: input tokens of one rendered finding.
        """
        default = block * (OFFLINE_FINDINGS if _offline(extract.model) else FINDINGS)
        extracts, reduces = self.own(extract), self.own(reduce)
        found = max(0.0, reduces.input - reduces.attempts * bare)
        return (default * WEIGHT + found) / (WEIGHT + extracts.attempts)

    def found(self, model: str) -> float:
        """Return the share of the questions that have a reduce call."""
        return OFFLINE_REDUCED if _offline(model) else REDUCED

    def reached(self, model: str, step: int) -> float:
        """Return the share of the questions that reach a step of a ladder, from 0; past the last: refused by all."""
        if not step:
            return 1.0
        if _offline(model):
            return OFFLINE_REFUSED * OFFLINE_REFUSED_AGAIN ** (step - 1)
        return REFUSED * REFUSED_AGAIN ** (step - 1)

    def own(self, label: Label) -> Figures:
        """Return the tenant's own figures; zeros if no call of known usage was made."""
        return self._history.get(label, Figures(attempts=0, input=0, output=0))


def _offline(model: str) -> bool:
    return parse(model).provider == "offline"


@dataclass(frozen=True, kw_only=True, slots=True)
class Guessing:
    """A :class:`~posology.seams.Guess` by token counts and typical replies."""

    counting: Counting
    typical: Typical
    #: most input tokens of a call
    bound: Bound

    def tokens(self, texts: Iterable[str], model: str) -> float:
        """Return the expected tokens of texts."""
        return self.counting.text([Message(role=Role.USER, content=t) for t in texts], model)

    def input(self, call: Call) -> float:
        """Return the expected input tokens of a call."""
        return self.counting.expected(call)

    def output(self, call: Call, *, default: float | None = None) -> float:
        """Return the expected output tokens of a call, see :meth:`Typical.output`."""
        return self.typical.output(label(call), default=default)

    def findings(self, extract: Call, reduce: Call, *, bare: float, block: float) -> float:
        """Return the input tokens of one partition's findings, see :meth:`Typical.findings`."""
        return self.typical.findings(label(extract), label(reduce), bare=bare, block=block)

    def found(self, model: str) -> float:
        """Return the share of the questions for which a first pass finds anything."""
        return self.typical.found(model)

    def reached(self, model: str, step: int) -> float:
        """Return the share of the questions that reach a step, see :meth:`Typical.reached`."""
        return self.typical.reached(model, step)


def label(call: Call) -> Label:
    """Return the group under which the ledger's figures count a call."""
    return Label(stage=str(call.stage), strategy=call.strategy, model=call.model)


async def read_history(redis: Redis, url: str, tenant: str) -> Mapping[Label, Figures]:
    """Sum a tenant's calls by stage, strategy and model, over a report's default number of days.

    Args:
        redis: the connection.
        url: address of Redis, for messages.
        tenant: name of the tenant.

    Raises:
        StoreUnavailable: Redis is out of reach.
    """
    # imports Redis, which an estimate without tenants does not need
    from posology.budget.spending.figures import figures

    days = period(None, None, today=datetime.now(UTC).date())
    sums: dict[Label, Counter[str]] = {}
    async for one in figures(redis, url, tenant, days):
        label = Label(stage=one.stage, strategy=one.strategy, model=one.model)
        sums.setdefault(label, Counter())[one.what] += one.n
    return {label: _figures(sum_) for label, sum_ in sums.items()}


def _figures(sums: Mapping[str, int]) -> Figures:
    # an attempt of unknown usage has no tokens, and one that was refused needed none: neither is counted
    known = max(0, sums.get("attempts", 0) - sums.get("unknown", 0) - sums.get("idle", 0))
    if not known:
        return Figures(attempts=0, input=0, output=0)
    return Figures(attempts=known, input=sums.get("input", 0), output=sums.get("output", 0))
