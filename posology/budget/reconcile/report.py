"""Report of a reconciliation: figures of both sides, and their differences."""

from __future__ import annotations

from dataclasses import dataclass
from decimal import Decimal
from enum import StrEnum

from posology.budget.reconcile.measures import Kind, Measure
from posology.budget.reconcile.names import Naming
from posology.budget.reconcile.rows import File, Number


class Verdict(StrEnum):
    """Assessment of a difference."""

    EQUAL = "equal"
    #: explained by attempts of unknown usage, midnight or rounding
    EXPLAINED = "explained"
    #: no more than the threshold
    WITHIN = "within"
    DRIFT = "drift"


class Side(StrEnum):
    """Side that has a request."""

    BOTH = "both"
    OURS = "ours"
    THEIRS = "theirs"


#: worst last
ORDER = tuple(Verdict)


@dataclass(frozen=True, kw_only=True, slots=True)
class Compared:
    """One figure on both sides."""

    measure: Measure
    #: what our ledger knows
    ours: Number
    #: what it can be at least, and at most
    least: Number
    most: Number
    theirs: Number
    #: theirs less ours
    drift: Number
    #: what of the drift lies outside what ours can be; negative where theirs is too little
    unexplained: Number
    #: what is unexplained, as a share of the larger side; ``None``: both are 0
    relative: Decimal | None
    verdict: Verdict


@dataclass(frozen=True, kw_only=True, slots=True)
class Group:
    """A day and a model."""

    provider: str
    #: UTC; ``None``: the whole time
    day: str | None
    #: ``None``: all together; of a day, because the export does not tell them apart
    model: str | None
    side: Side
    compared: tuple[Compared, ...]
    #: our attempts of unknown usage or cost
    unknown: int
    #: our attempts that may belong to the day, or the time, before or after
    edge: int
    verdict: Verdict
    #: what it looks like; empty: nothing to say
    hint: str = ""


@dataclass(frozen=True, kw_only=True, slots=True)
class Field:
    """One figure of one request that differs."""

    measure: Measure
    ours: Number
    theirs: Number
    #: what of it lies outside what ours can be
    unexplained: Number


class Flaw(StrEnum):
    """Kind of mismatch of a request."""

    #: the export has it, the ledger has not
    ONLY_THEIRS = "only_theirs"
    #: the ledger has it, the export has not
    ONLY_OURS = "only_ours"
    #: the export has it twice
    TWICE = "twice"
    #: both have it, with other figures
    DIFFERS = "differs"


@dataclass(frozen=True, kw_only=True, slots=True)
class Mismatch:
    """A request on which the two sides do not agree."""

    flaw: Flaw
    #: id of the provider; ``None``: it was not received
    request_id: str | None
    #: our attempt; ``None``: there is none
    attempt: str | None
    model: str | None
    #: file and line; empty where the export has not got it
    where: str
    fields: tuple[Field, ...]


@dataclass(frozen=True, kw_only=True, slots=True)
class Requests:
    """Result for an export with one row per request."""

    matched: int
    only_ours: int
    only_theirs: int
    twice: int
    differing: int
    #: rows that attempts of ours explain which ended without telling the provider's id
    explained: int
    #: attempts of unknown usage that the export has not got: they were not billed
    unbilled: int
    #: sums over all of them; ``unexplained`` adds up without regard to the sign
    totals: tuple[Compared, ...]
    #: the first of them
    mismatches: tuple[Mismatch, ...]
    verdict: Verdict


@dataclass(frozen=True, kw_only=True, slots=True)
class Period:
    """The time for which something was compared."""

    provider: str
    kind: Kind
    #: POSIX seconds
    start: float
    #: POSIX seconds, exclusive
    end: float


@dataclass(frozen=True, kw_only=True, slots=True)
class Reconciliation:
    """All of it."""

    providers: tuple[str, ...]
    tenants: tuple[str, ...]
    files: tuple[File, ...]
    periods: tuple[Period, ...]
    #: the share up to which a drift is let pass
    threshold: Decimal
    #: seconds by which the two sides may put an attempt to another time
    tolerance: float
    #: attempts of ours that were looked at
    attempts: int
    groups: tuple[Group, ...]
    #: over the whole time: of each model, and of all of a provider
    totals: tuple[Group, ...]
    requests: Requests | None
    names: tuple[Naming, ...]
    notes: tuple[str, ...]

    @property
    def agrees(self) -> bool:
        """Whether nothing drifts by more than the threshold."""
        found = [group.verdict for group in (*self.groups, *self.totals)]
        if self.requests is not None:
            found.append(self.requests.verdict)
        return Verdict.DRIFT not in found

    @property
    def drift(self) -> Decimal | None:
        """Dollars that stay unexplained; the most of all totals, ``None``: dollars were not compared."""
        compared = [c for group in self.totals for c in group.compared]
        if self.requests is not None:
            compared += self.requests.totals
        found = [Decimal(c.unexplained) for c in compared if c.measure is Measure.COST]
        return max(found, key=abs) if found else None

    @property
    def drifting(self) -> int:
        """Days of a model, models as a whole, and requests that drift."""
        drift = [group for group in self.groups if group.verdict is Verdict.DRIFT]
        models = {(group.provider, group.model) for group in drift}
        # a midnight may hide on each day what is there in the whole time
        groups = len(drift) + sum(
            group.verdict is Verdict.DRIFT and (group.provider, group.model) not in models
            for group in self.totals
            if group.model is not None
        )
        if self.requests is None or self.requests.verdict is not Verdict.DRIFT:
            return groups
        found = self.requests
        return groups + found.only_ours + found.only_theirs + found.twice + found.differing


def worst(verdicts: tuple[Verdict, ...]) -> Verdict:
    """The worst of some; equal where there is none."""
    return max(verdicts, key=ORDER.index, default=Verdict.EQUAL)
