"""Decisions as JSON."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from posology.published.base import Dollars, Published
from posology.types import Dose


class OfferOutput(Published):
    """A dose that was considered, and its price."""

    dose: Dose
    """The dose."""
    worst: Dollars
    """Dollars needed to begin: the first step of a ladder, else all calls in the worst case."""
    fits: bool
    """Whether the remaining budget paid for it."""


class Decided(Published):
    """A dose and the reasons for it."""

    dose: Dose
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
