"""Decisions: the dose for a question, and the reasons."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Any

from posology.described import published
from posology.types.answers import Rung
from posology.types.compression import Saving
from posology.types.literature import Query
from posology.types.retrieval import Retrieval

#: in the place of a strategy: the remaining budget pays for none
DECLINE = "decline"
#: passages that are read again beside those of a second search
READ_AGAIN = 2


@published("DoseOutput")
@dataclass(frozen=True, kw_only=True, slots=True)
class Dose:
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
    search: bool = False
    """Whether the index is searched further before the policy decides again."""
    skip: int = 0
    """Number of passages, after the best two, that are left out: they were read before, and refused."""

    @property
    def planned(self) -> int:
        """Number of passages that the steps of a ladder show together; 0: it is none."""
        return max(self.rungs, default=0) if self.overlapping else sum(self.rungs)


@dataclass(frozen=True, kw_only=True, slots=True)
class Offer:
    """A dose that was considered, and its maximum cost."""

    dose: Dose
    #: dollars needed to begin: for a ladder the maximum cost of its first step, else of all calls
    worst: Decimal
    #: whether the remaining budget covered it
    fits: bool


@dataclass(frozen=True, kw_only=True, slots=True, eq=False)
class Situation:
    """The input of a policy."""

    query: Query
    retrieval: Retrieval
    #: remaining budget, dollars; ``None``: no limit
    remaining: Decimal | None = None
    #: returns the maximum cost of a dose, dollars; used only if a limit applies; deterministic
    quote: Callable[[Dose], Decimal] | None = None
    #: returns what compression saves and costs for a dose; deterministic; ``None``: nothing, or unknown
    saving: Callable[[Dose], Saving | None] | None = None
    #: steps of a ladder that was refused to the last
    tried: tuple[Rung, ...] = ()


@dataclass(frozen=True, kw_only=True, slots=True)
class Decision:
    """The dose for a question, with all that is needed to replay the decision."""

    dose: Dose
    #: name of the policy
    policy: str
    #: one sentence for the reader
    reason: str
    #: features that the policy used: numbers, strings and booleans
    features: Mapping[str, Any] = field(default_factory=dict)
    #: steps of the decision, one sentence each
    steps: tuple[str, ...] = ()
    #: remaining budget, dollars; ``None``: no limit
    remaining: Decimal | None = None
    #: priced doses, in the order of consideration
    offers: tuple[Offer, ...] = ()
    #: versions of policy, index, prompts, prices, …
    versions: Mapping[str, str] = field(default_factory=dict)
    #: decision after the last step of the ladder was refused
    then: Decision | None = None

    @property
    def strategy(self) -> str:
        """The strategy that answers."""
        return self.dose.strategy

    @property
    def declined(self) -> bool:
        """Whether the remaining budget pays for no dose."""
        return self.dose.strategy == DECLINE
