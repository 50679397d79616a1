"""How long replies are: what was measured beforehand, and what the tenant's own calls say."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType

from posology.llm.models import parse
from posology.types import Stage

#: attempts that a figure from beforehand weighs as much as: a few calls say little
WEIGHT = 20
#: Output tokens of the offline reader, in its own tokens: 40 sample questions, 8 passages each.
OFFLINE: Mapping[Stage, float] = MappingProxyType(
    {Stage.ANSWER: 146, Stage.EXTRACT: 45, Stage.REDUCE: 146}
)
#: The same of a language model, without reasoning, in its tokens. No provider was at hand: an answer with
#: two or three quotes, 0.9 findings of 100 tokens and what stands around them, an answer with a claim or
#: two, of the replies that ``evals.replies`` puts together. They give way to the tenant's own figures.
MODEL: Mapping[Stage, float] = MappingProxyType(
    {Stage.ANSWER: 200, Stage.EXTRACT: 100, Stage.REDUCE: 200}
)
#: of a stage that nobody measured
OTHER = 200.0
#: Fewest tokens of a reply: a refusal without words, or that there is nothing.
LOW: Mapping[Stage, int] = MappingProxyType({Stage.ANSWER: 15, Stage.EXTRACT: 9, Stage.REDUCE: 20})
#: findings that one partition gives; the offline reader's 0.3 was measured with its replies
FINDINGS, OFFLINE_FINDINGS = 0.9, 0.3
#: share of the questions for which some partition gives a finding, so that there is a reduce call
REDUCED, OFFLINE_REDUCED = 0.9, 0.55
#: Share of the questions that are refused by the first call of a ladder, so that there is a second; the
#: offline reader's is of ``evals.doubling``, no provider was at hand.
REFUSED, OFFLINE_REFUSED = 0.3, 0.08
#: Share of those that the next call refuses, too. It is far larger: what was refused once is hard, or nowhere.
REFUSED_AGAIN, OFFLINE_REFUSED_AGAIN = 0.7, 0.9


@dataclass(frozen=True, kw_only=True, slots=True)
class Label:
    """Which calls a figure is of."""

    stage: str
    strategy: str
    model: str


@dataclass(frozen=True, kw_only=True, slots=True)
class Figures:
    """What the attempts at some calls took, those of unknown usage apart."""

    attempts: int
    #: tokens
    input: int
    #: tokens
    output: int


class Typical:
    """Lengths of replies at best guess.

    Args:
        history: of the tenant's own calls.
    """

    def __init__(self, history: Mapping[Label, Figures] = MappingProxyType({})) -> None:
        self._history = history

    def output(self, label: Label, *, before: float | None = None) -> float:
        """Tokens that a call gives out.

        Args:
            label: which calls these are.
            before: what is guessed where the tenant has made none; ``None``: what was measured beforehand.
        """
        if before is None:
            stage = Stage(label.stage)
            before = (OFFLINE if _offline(label.model) else MODEL).get(stage, OTHER)
        own = self.own(label)
        return (before * WEIGHT + own.output) / (WEIGHT + own.attempts)

    def findings(self, extract: Label, reduce: Label, *, bare: float, block: float) -> float:
        """Tokens that the findings of one partition take in a reduce call's input.

        Args:
            extract: the calls that found them.
            reduce: the calls that got them.
            bare: tokens of a reduce call without findings.
            block: tokens of one finding as it is shown.
        """
        before = block * (OFFLINE_FINDINGS if _offline(extract.model) else FINDINGS)
        read, told = self.own(extract), self.own(reduce)
        shown = max(0.0, told.input - told.attempts * bare)
        return (before * WEIGHT + shown) / (WEIGHT + read.attempts)

    def reduced(self, model: str) -> float:
        """Share of the questions that have a reduce call."""
        return OFFLINE_REDUCED if _offline(model) else REDUCED

    def reached(self, model: str, rung: int) -> float:
        """Share of the questions whose ladder comes to a call, from 0; of as many as it has: all were refused."""
        if not rung:
            return 1.0
        if _offline(model):
            return OFFLINE_REFUSED * OFFLINE_REFUSED_AGAIN ** (rung - 1)
        return REFUSED * REFUSED_AGAIN ** (rung - 1)

    def own(self, label: Label) -> Figures:
        """The tenant's own figures; zeros where there are none, or no call of theirs is known."""
        return self._history.get(label, Figures(attempts=0, input=0, output=0))


def _offline(model: str) -> bool:
    return parse(model).provider == "offline"
