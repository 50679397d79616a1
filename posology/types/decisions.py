"""What is decided for a question: the dose of context that it gets, and why."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Any

from posology.types.answers import Rung
from posology.types.compression import Saving
from posology.types.literature import Query, Retrieval

#: in the place of a strategy: nothing that is left pays for any
DECLINE = "decline"


@dataclass(frozen=True, kw_only=True, slots=True)
class Dose:
    """How a question is answered: by which strategy, and of how much context."""

    #: ``direct``, ``compressed``, ``briefcontext``, or :data:`DECLINE`
    strategy: str
    #: how many of the retrieved passages are read, best first; ``None``: all
    passages: int | None = None
    #: share that the compressor keeps, 0 to 1; ``None``: nothing is compressed, or as much as it finds right
    keep: float | None = None
    #: name of the compressor; ``None``: nothing is compressed, or the configured one does it
    compressor: str | None = None
    #: passages that each call of a ladder shows, made only where the call before was refused; empty: one
    #: call shows all
    rungs: tuple[int, ...] = ()
    #: whether a rung shows what the rungs before it showed, too
    overlapping: bool = True
    #: whether the policy is asked again when the last rung is refused
    escalate: bool = False


@dataclass(frozen=True, kw_only=True, slots=True)
class Offer:
    """A dose that was considered, and its price."""

    dose: Dose
    #: dollars without which it cannot be begun: of a ladder its first rung, else all of its calls at worst
    worst: Decimal
    #: whether what was left paid for it
    fits: bool


@dataclass(frozen=True, kw_only=True, slots=True, eq=False)
class Situation:
    """All that a policy may look at."""

    query: Query
    retrieval: Retrieval
    #: dollars that may still be spent; ``None``: no limit applies
    remaining: Decimal | None = None
    #: what a dose costs at worst; asked only where a limit applies, and always with the same answer
    quote: Callable[[Dose], Decimal] | None = None
    #: what compressing for a dose saves and costs, always with the same answer; it gives ``None`` where nothing
    #: can be saved, or nobody knows what
    saving: Callable[[Dose], Saving | None] | None = None
    #: rungs of a ladder that were refused to the last
    tried: tuple[Rung, ...] = ()


@dataclass(frozen=True, kw_only=True, slots=True)
class Decision:
    """Which dose a question gets, and why: enough to decide the same way again."""

    dose: Dose
    #: the policy that decided
    policy: str
    #: a sentence for a reader
    reason: str
    #: what the policy looked at, as numbers, strings and truth values
    features: Mapping[str, Any] = field(default_factory=dict)
    #: how it came about, a sentence a step
    steps: tuple[str, ...] = ()
    #: what was left, in dollars; ``None``: no limit applied
    remaining: Decimal | None = None
    #: the doses that were priced, in the order in which they were considered
    offers: tuple[Offer, ...] = ()
    #: of what decided and of what it decided on: policy, index, prompts, prices, …
    versions: Mapping[str, str] = field(default_factory=dict)
    #: what was decided when the last rung of the ladder was refused
    then: Decision | None = None

    @property
    def strategy(self) -> str:
        """The strategy that answers."""
        return self.dose.strategy

    @property
    def declined(self) -> bool:
        """Whether nothing that is left pays for any dose."""
        return self.dose.strategy == DECLINE
