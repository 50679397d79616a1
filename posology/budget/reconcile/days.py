"""Comparison by days and models."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from decimal import Decimal
from functools import cached_property, lru_cache
from math import isfinite

from posology.budget.reconcile.bands import DAY, Band, Span, compare, worst
from posology.budget.reconcile.names import Naming, resolve
from posology.budget.reconcile.ours import Ours
from posology.budget.reconcile.report import (
    Compared,
    Group,
    Kind,
    Measure,
    Number,
    Side,
    Verdict,
    size,
)
from posology.budget.reconcile.rows import LEAST, Row

#: a day and a model's name in the report; ``None``: the whole period, and all models
_Place = tuple[str | None, str | None]
_ALL: _Place = (None, None)


@dataclass(kw_only=True, slots=True)
class _Sum:
    """The figures of both sides for one day and model, or for all."""

    ours: dict[Measure, Band] = field(default_factory=dict)
    #: number of our attempts with unknown usage or cost
    unknown: int = 0
    #: number of our attempts that may belong elsewhere
    edge: int = 0
    #: only figures that all of its rows have
    theirs: Mapping[Measure, Number] = field(default_factory=dict)
    #: dollars
    rounding: Decimal = Decimal(0)
    #: number of their rows
    rows: int = 0

    def add(self, attempt: Ours, *, here: bool, certain: bool) -> None:
        for measure, (known, most) in attempt.figures().items():
            self.ours.setdefault(measure, Band()).add(known, most, here=here, certain=certain)
        self.unknown += here and (attempt.usage is None or attempt.cost is None)
        self.edge += not certain

    def join(self, other: _Sum) -> None:
        for measure, band in other.ours.items():
            self.ours.setdefault(measure, Band()).join(band)
        self.unknown += other.unknown
        self.edge += other.edge
        if not self.rows:
            self.theirs = dict(other.theirs)
        elif other.rows:
            more = other.theirs
            self.theirs = {m: n + more[m] for m, n in self.theirs.items() if m in more}
        self.rounding += other.rounding
        self.rows += other.rows


class Days:
    """Compares usage and costs with one provider, each for the period of the exports: all rows, then our attempts.

    An attempt counts on the day on which it was started. Where it was under way within the tolerance of
    a midnight, or of the beginning or the end of the time, it may count on either side.

    Args:
        provider: name of the provider.
        asked: rows that begin at another time are left out.
        threshold: unexplained drift to tolerate, relative to the larger side.
        tolerance: maximum seconds between the two sides' times of an attempt.
    """

    def __init__(self, provider: str, *, asked: Span, threshold: Decimal, tolerance: float) -> None:
        self._provider, self._asked = provider, asked
        self._threshold, self._tolerance = threshold, tolerance
        #: period of the rows of each kind; ``None``: it has none
        self._spans: dict[Kind, Span | None] = {}
        #: by kind, day and the provider's name of a model; ``None``: all models
        self._theirs: defaultdict[tuple[Kind, str, str | None], _Sum] = defaultdict(_Sum)
        #: by kind, day and our name of a model; ``None``: the whole period
        self._ours: defaultdict[tuple[Kind, str | None, str], _Sum] = defaultdict(_Sum)

    def read(self, kind: Kind, rows: Iterable[Row]) -> int:
        """Add rows; return the number with figures in the period.

        Args:
            kind: of the export, even where it has no row: then nothing was used.
            rows: of that kind, and maybe of others.
        """
        self._spans.setdefault(kind, None)
        taken = 0
        for row in rows:
            if not self._asked.has(row.span.start):
                continue
            what = row.kind if row.figures else kind
            self._spans[what] = row.span.joined(self._spans.get(what))
            if row.figures:
                place = (what, day(row.span.start), row.model)
                one = _Sum(theirs=row.figures, rounding=row.rounding, rows=1)
                self._theirs[place].join(one)
                taken += 1
        return taken

    @property
    def timeless(self) -> bool:
        """Whether there is an export without a period."""
        asked = isfinite(self._asked.start) and isfinite(self._asked.end)
        return not asked and None in self._spans.values()

    @cached_property
    def periods(self) -> Mapping[Kind, Span]:
        """Return the period of each kind of export: as requested, or from the first row to the last."""
        return {kind: (span or Span()).within(self._asked) for kind, span in self._spans.items()}

    def add(self, attempt: Ours) -> None:
        """Add one of our attempts."""
        if attempt.turned_away:
            return
        first, last = attempt.started - self._tolerance, attempt.ended + self._tolerance
        for kind, period in self.periods.items():
            if last < period.start or first >= period.end:
                continue
            inside = period.has(first) and period.has(last)
            here = period.has(attempt.started)
            days = _days(max(first, period.start), min(last, period.end - 1))
            home, sure = day(attempt.started), inside and here and len(days) == 1
            self._ours[kind, None, attempt.model].add(attempt, here=here, certain=inside)
            for one in days:
                own = self._ours[kind, one, attempt.model]
                own.add(attempt, here=here and one == home, certain=sure)

    def result(self) -> tuple[list[Group], list[Group], list[Naming]]:
        """Return the groups, the totals, and the names that were compared as one.

        A total is of one model, where a midnight hides nothing, or of all: what is only on one side is
        a share of that.
        """
        theirs = {name for _, _, name in self._theirs if name is not None}
        labels, naming = resolve({name for _, _, name in self._ours}, theirs)
        sums: dict[_Place, dict[Kind, _Sum]] = {_ALL: {kind: _Sum() for kind in self._spans}}

        def join(kind: Kind, name: str | None, one: _Sum, days: Iterable[str | None]) -> None:
            model = None if name is None or kind in self._together else labels[name]
            for place in {place for each in days for place in _places(each, model)}:
                sums.setdefault(place, {}).setdefault(kind, _Sum()).join(one)

        for (kind, own_day, asked), own in self._ours.items():
            join(kind, asked, own, [own_day])
        for (kind, their_day, served), cell in self._theirs.items():
            join(kind, served, cell, [their_day, None])
        base: dict[Measure, Number] = {}
        for kind, total in sums[_ALL].items():
            for c in self._compared(kind, total, {}):
                base[c.measure] = max(size(c.ours), size(c.theirs))
        found = [self._group(place, sums[place], base) for place in sorted(sums, key=_order)]
        groups = [group for group in found if group.day is not None]
        return groups, [group for group in found if group.day is None], naming

    def notes(self) -> list[str]:
        """Return remarks on the limits of these exports."""
        said = [
            f"{self._provider}'s {kind} is not grouped by model: only days were compared"
            for kind in self._spans
            if kind in self._together
        ]
        missing = {Kind.COST: ("dollars", "costs"), Kind.USAGE: ("tokens", "usage")}
        return said + [
            f"{self._provider}'s {figures} were not compared: there is no export of {export}"
            for kind, (figures, export) in missing.items()
            if kind not in self._spans
        ]

    @cached_property
    def _together(self) -> set[Kind]:
        """Return the kinds that are not grouped by model."""
        return {kind for kind, _, name in self._theirs if name is None}

    def _group(
        self, place: _Place, sums: Mapping[Kind, _Sum], base: Mapping[Measure, Number]
    ) -> Group:
        compared: list[Compared] = []
        for kind in self._spans:
            if one := sums.get(kind):
                is_shared = not one.rows or not one.ours
                compared += self._compared(kind, one, base if is_shared else {})
        ours = any(one.unknown or any(b.known for b in one.ours.values()) for one in sums.values())
        theirs = any(one.rows for one in sums.values())
        side = Side.BOTH if ours and theirs else Side.THEIRS if theirs else Side.OURS
        return Group(
            provider=self._provider,
            day=place[0],
            model=place[1],
            side=side,
            compared=tuple(compared),
            unknown=max(one.unknown for one in sums.values()),
            edge=max(one.edge for one in sums.values()),
            verdict=worst(compared),
            hint=_hint(compared, side),
        )

    def _compared(
        self, kind: Kind, one: _Sum, base: Mapping[Measure, Number]
    ) -> Iterable[Compared]:
        told = one.theirs if one.rows else self._measures(kind)
        for measure in Measure:
            if measure in told:
                yield compare(
                    measure,
                    one.ours.get(measure, Band()),
                    one.theirs.get(measure, 0),
                    threshold=self._threshold,
                    rounding=one.rounding,
                    base=base.get(measure),
                )

    def _measures(self, kind: Kind) -> set[Measure]:
        """Return the figures that all rows of a kind have."""
        told = [set(cell.theirs) for (what, _, _), cell in self._theirs.items() if what is kind]
        return set.intersection(*told) if told else {Measure.COST} if kind is Kind.COST else LEAST


@lru_cache(maxsize=1_000)
def _day(number: int) -> str:
    return f"{datetime.fromtimestamp(number * DAY, UTC):%Y-%m-%d}"


def day(at: float) -> str:
    """Return the UTC day of a time."""
    return _day(int(at // DAY))


def _days(first: float, last: float) -> list[str]:
    return [_day(number) for number in range(int(first // DAY), int(max(first, last) // DAY) + 1)]


def _places(one: str | None, model: str | None) -> tuple[_Place, ...]:
    """Return the groups of an amount: its day, and the totals of its model and of all."""
    return ((one, model),) if one is not None or model is None else ((None, model), _ALL)


def _order(place: _Place) -> tuple[bool, str, bool, str]:
    one, model = place
    return one is None, one or "", one is None and model is None, model or ""


def _hint(compared: Iterable[Compared], side: Side) -> str:
    verdicts = {c.measure: c.verdict for c in compared}
    if Verdict.DRIFT not in verdicts.values():
        return ""
    if side is Side.THEIRS:
        return "not in our ledger: another application, or another tenant"
    if side is Side.OURS:
        return "not in the export: it may be incomplete or filtered"
    cost = verdicts.pop(Measure.COST, None)
    if cost is Verdict.DRIFT and verdicts and Verdict.DRIFT not in verdicts.values():
        return "tokens agree, dollars do not: compare the prices"
    if all(c.unexplained >= 0 for c in compared):
        return "theirs is larger: calls outside the ledger, or of another application"
    if all(c.unexplained <= 0 for c in compared):
        return "theirs is smaller: the export may be incomplete or filtered"
    return "theirs is larger in some figures and smaller in others"
