"""Decisions as JSON."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from posology.published.base import Dollars, Published
from posology.published.calls import UsageOutput


class StepOutput(Published):
    """One call of a ladder; it shows more passages than the call before."""

    passages: int
    """Number of passages shown."""
    first: int
    """Place of the first of them among the retrieved passages, from 0."""
    usage: UsageOutput | None
    """Tokens of the call; null: the provider did not report them."""
    refused: bool
    """Whether the reply was that the passages do not answer the question."""


class DoseOutput(Published):
    """How a question is answered: the strategy, and how much context it gets."""

    strategy: str
    """`direct`, `compressed`, `briefcontext`, or `decline`: the remaining budget pays for none."""
    passages: int | None = None
    """Number of retrieved passages that are read, best first; null: all."""
    keep: float | None = None
    """Share that the compressor keeps, 0 to 1; null: nothing is compressed, or the compressor's own share."""
    compressor: str | None = None
    """Name of the compressor; null: nothing is compressed, or the configured one is used."""
    rungs: tuple[int, ...] = ()
    """Number of passages in each step of a ladder, made only after a refusal; empty: one call shows all."""
    overlapping: bool = True
    """Whether a step repeats the passages of the steps before it."""
    escalate: bool = False
    """Whether the policy decides again after the last step is refused."""


class OfferOutput(Published):
    """A dose that was considered, and its price."""

    dose: DoseOutput
    """The dose."""
    worst: Dollars
    """Dollars needed to begin: the first step of a ladder, else all calls in the worst case."""
    fits: bool
    """Whether the remaining budget paid for it."""


class Decided(Published):
    """A dose and the reasons for it."""

    dose: DoseOutput
    """The chosen dose."""
    policy: str
    """Policy that decided."""
    reason: str
    """Reason, in a sentence."""
    features: Mapping[str, Any] = {}
    """Features that the policy used: numbers, strings and truth values."""
    steps: tuple[str, ...] = ()
    """Steps of the decision, a sentence each."""
    remaining: Dollars | None = None
    """Remaining budget in dollars; null: no limit applied."""
    offers: tuple[OfferOutput, ...] = ()
    """Doses that were priced, in the order of consideration."""
    versions: Mapping[str, str] = {}
    """Versions of policy, index, prompts, prices and other inputs."""

    @property
    def strategy(self) -> str:
        """The strategy that answers."""
        return self.dose.strategy


class EscalationOutput(Decided):
    """The decision after the last step of a ladder was refused."""

    then: None = None
    """Always null: the policy decides again only once."""


class DecisionOutput(Decided):
    """The dose of a question and the reasons for it: enough to make the same decision again."""

    then: EscalationOutput | None = None
    """Decision after the last step of the ladder was refused; null: none was needed."""
