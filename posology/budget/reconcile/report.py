"""The report: the figures of both sides, and their differences."""

from __future__ import annotations

from dataclasses import dataclass
from decimal import Decimal
from enum import StrEnum

from posology.budget.reconcile.measures import Kind, Measure
from posology.budget.reconcile.names import Naming
from posology.budget.reconcile.rows import File, Number


class Verdict(StrEnum):
    """The judgement of a difference."""

    EQUAL = "equal"
    #: explained in full by attempts with unknown usage, by midnight or by rounding
    EXPLAINED = "explained"
    #: within the threshold
    WITHIN = "within"
    DRIFT = "drift"


class Side(StrEnum):
    """The side that has a request."""

    BOTH = "both"
    OURS = "ours"
    THEIRS = "theirs"


#: worst last
ORDER = tuple(Verdict)


@dataclass(frozen=True, kw_only=True, slots=True)
class Compared:
    """One figure on both sides."""

    measure: Measure
    #: known value of our ledger
    ours: Number
    #: minimum and maximum of our value
    least: Number
    most: Number
    theirs: Number
    #: theirs minus ours
    drift: Number
    #: part of the drift outside our range; negative if theirs is too small
    unexplained: Number
    #: unexplained part, relative to the larger side; ``None``: both are 0
    relative: Decimal | None
    verdict: Verdict


@dataclass(frozen=True, kw_only=True, slots=True)
class Group:
    """A day and a model."""

    provider: str
    #: UTC; ``None``: the whole time
    day: str | None
    #: ``None``: all models together; for a day, because the export is not grouped by model
    model: str | None
    side: Side
    compared: tuple[Compared, ...]
    #: number of our attempts with unknown usage or cost
    unknown: int
    #: number of our attempts that may belong to the adjacent day or period
    edge: int
    verdict: Verdict
    #: likely cause; empty: none
    hint: str = ""


@dataclass(frozen=True, kw_only=True, slots=True)
class Field:
    """One figure of one request that differs."""

    measure: Measure
    ours: Number
    theirs: Number
    #: part of it outside our range
    unexplained: Number


class Flaw(StrEnum):
    """The kind of mismatch of a request."""

    #: in the export, not in the ledger
    ONLY_THEIRS = "only_theirs"
    #: in the ledger, not in the export
    ONLY_OURS = "only_ours"
    #: twice in the export
    TWICE = "twice"
    #: in both, with different figures
    DIFFERS = "differs"


@dataclass(frozen=True, kw_only=True, slots=True)
class Mismatch:
    """A request on which the two sides disagree."""

    flaw: Flaw
    #: the provider's id; ``None``: unknown
    request_id: str | None
    #: our attempt; ``None``: there is none
    attempt: str | None
    model: str | None
    #: file and line; empty: not in the export
    where: str
    fields: tuple[Field, ...]


@dataclass(frozen=True, kw_only=True, slots=True)
class Requests:
    """The result for an export with one row for each request."""

    matched: int
    only_ours: int
    only_theirs: int
    twice: int
    differing: int
    #: rows that our attempts without a provider's id explain
    explained: int
    #: attempts with unknown usage that are not in the export: not billed
    unbilled: int
    #: totals; ``unexplained`` is a sum of absolute values
    totals: tuple[Compared, ...]
    #: the first of them
    mismatches: tuple[Mismatch, ...]
    verdict: Verdict


@dataclass(frozen=True, kw_only=True, slots=True)
class Period:
    """A compared period."""

    provider: str
    kind: Kind
    #: POSIX seconds
    start: float
    #: POSIX seconds, exclusive
    end: float


@dataclass(frozen=True, kw_only=True, slots=True)
class Reconciliation:
    """The whole report."""

    providers: tuple[str, ...]
    tenants: tuple[str, ...]
    files: tuple[File, ...]
    periods: tuple[Period, ...]
    #: relative drift to tolerate
    threshold: Decimal
    #: maximum seconds between the two sides' times of an attempt
    tolerance: float
    #: number of our attempts compared
    attempts: int
    groups: tuple[Group, ...]
    #: over the whole time: of each model, and of all of a provider
    totals: tuple[Group, ...]
    requests: Requests | None
    names: tuple[Naming, ...]
    notes: tuple[str, ...]

    @property
    def agrees(self) -> bool:
        """Whether no drift exceeds the threshold."""
        found = [group.verdict for group in (*self.groups, *self.totals)]
        if self.requests is not None:
            found.append(self.requests.verdict)
        return Verdict.DRIFT not in found

    @property
    def drift(self) -> Decimal | None:
        """Unexplained dollars, the largest of all totals; ``None``: dollars were not compared."""
        compared = [c for group in self.totals for c in group.compared]
        if self.requests is not None:
            compared += self.requests.totals
        found = [Decimal(c.unexplained) for c in compared if c.measure is Measure.COST]
        return max(found, key=abs) if found else None

    @property
    def drifting(self) -> int:
        """Number of days of a model, models as a whole, and requests that drift."""
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
    """Return the worst of some verdicts; equal if there is none."""
    return max(verdicts, key=ORDER.index, default=Verdict.EQUAL)
