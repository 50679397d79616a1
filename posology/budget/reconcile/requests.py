"""Comparison request by request."""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter, defaultdict
from collections.abc import Iterator
from decimal import Decimal
from itertools import islice

from posology.budget.reconcile.bands import DAY, Band, Span, compare, worst
from posology.budget.reconcile.names import family
from posology.budget.reconcile.ours import Ours
from posology.budget.reconcile.report import (
    Compared,
    Field,
    Flaw,
    Measure,
    Mismatch,
    Number,
    Requests,
    size,
)
from posology.budget.reconcile.rows import LEAST, UNKNOWN, Row

#: maximum mismatches listed; all are counted
MOST = 1_000


class ByRequest:
    """Compares exports with one row for each request: first all our attempts, then the rows.

    A row is matched by the provider's id, or by our id, which the provider got as well. A row with
    neither may be of an attempt that ended without a reply: of its model, in its time, within its bounds.

    Args:
        asked: rows of another time are left out.
        threshold: unexplained drift to tolerate, relative to the sum of all rows.
        tolerance: maximum seconds between the two sides' times of an attempt.
    """

    def __init__(self, *, asked: Span, threshold: Decimal, tolerance: float) -> None:
        self._asked, self._threshold, self._tolerance = asked, threshold, tolerance
        self._times: Span | None = None
        self._by_request: dict[str, Ours] = {}
        self._by_attempt: dict[str, Ours] = {}
        self.providers: set[str] = set()
        self._seen: set[str] = set()
        self._strangers: list[Row] = []
        self._ours: defaultdict[Measure, Band] = defaultdict(Band)
        self._theirs: defaultdict[Measure, Number] = defaultdict(int)
        #: unexplained drift, as sums of absolute values
        self._gross: defaultdict[Measure, Number] = defaultdict(int)
        self._counts = Counter[Flaw]()
        self._mismatches: list[Mismatch] = []

    def add(self, attempt: Ours) -> None:
        """Add one of our attempts."""
        self._by_attempt[attempt.id] = attempt
        if attempt.request_id is not None:
            self._by_request[attempt.request_id] = attempt

    def row(self, row: Row, provider: str) -> bool:
        """Add a row of theirs; return whether it is in the period."""
        if row.span != UNKNOWN:
            if not self._asked.has(row.span.start):
                return False
            self._times = row.span.joined(self._times)
        self.providers.add(provider)
        for measure, theirs in ((Measure.REQUESTS, 1), *row.figures.items()):
            self._theirs[measure] += theirs
        attempt = (
            self._by_request.get(row.id)
            or self._by_attempt.get(row.client_id)
            or self._by_attempt.get(row.id)
        )
        if attempt is None:
            self._strangers.append(row)
        elif attempt.id in self._seen:
            self._differ(Flaw.TWICE, row, attempt, _stranger(row))
        else:
            self._seen.add(attempt.id)
            self._match(row, attempt)
        return True

    @property
    def period(self) -> Span:
        """Return the period in which our requests should be in the export: whole days, unless it was asked for."""
        times = self._times
        if times is None:
            started = [self._by_attempt[one].started for one in self._seen] or [0.0]
            times = Span(start=min(started), end=max(started))
        days = Span(start=times.start // DAY * DAY, end=(times.end // DAY + 1) * DAY)
        return days.within(self._asked)

    def result(self) -> Requests:
        """Return the result for all requests."""
        period = self.period
        missing = [
            attempt
            for attempt in self._by_attempt.values()
            if attempt.id not in self._seen
            and attempt.provider in self.providers
            and not attempt.turned_away
            and period.has(attempt.started)
        ]
        silent = [attempt for attempt in missing if attempt.usage is None]
        explained = self._explain(silent)
        for attempt in missing:
            if attempt.usage is not None:
                self._miss(attempt, period)
        ours, theirs, gross = self._ours, self._theirs, self._gross
        totals = tuple(
            compare(m, ours[m], theirs[m], threshold=self._threshold, gross=gross[m])
            for m in [m for m in Measure if m in (theirs or LEAST)]
        )
        return Requests(
            matched=len(self._seen),
            only_ours=self._counts[Flaw.ONLY_OURS],
            only_theirs=self._counts[Flaw.ONLY_THEIRS],
            twice=self._counts[Flaw.TWICE],
            differing=self._counts[Flaw.DIFFERS],
            explained=explained,
            unbilled=len(silent) - explained,
            totals=totals,
            mismatches=tuple(self._mismatches),
            verdict=worst(totals),
        )

    def _match(self, row: Row, attempt: Ours) -> None:
        figures = attempt.figures() or dict.fromkeys(row.figures, (0, 0))
        compared = []
        for measure, (known, most) in figures.items():
            if measure in row.figures or measure is Measure.REQUESTS:
                self._ours[measure].add(known, most)
            if measure in row.figures:
                band, theirs = Band.of(known, most), row.figures[measure]
                compared.append(compare(measure, band, theirs, rounding=row.rounding))
        if differing := [one for one in compared if one.unexplained]:
            self._differ(Flaw.DIFFERS, row, attempt, differing)

    def _miss(self, attempt: Ours, period: Span) -> None:
        first, last = attempt.started - self._tolerance, attempt.ended + self._tolerance
        # near the beginning or the end it may be in the export of an adjacent day
        certain = period.has(first) and period.has(last)
        for measure, (known, most) in attempt.figures().items():
            self._ours[measure].add(known, most, here=certain, certain=certain)
        if certain:
            compared = [
                compare(measure, Band.of(*figure), 0)
                for measure, figure in attempt.figures().items()
                if measure in self._theirs
            ]
            self._differ(Flaw.ONLY_OURS, None, attempt, compared)

    def _explain(self, silent: list[Ours]) -> int:
        """Match unknown rows with attempts that may be theirs, and return their number."""
        by_family: dict[str, list[Ours]] = {}
        for attempt in silent:
            by_family.setdefault(family(attempt.model), []).append(attempt)
        free = {name: _Free(some, self._tolerance) for name, some in by_family.items()}
        explained = 0
        for row in sorted(self._strangers, key=lambda row: row.span.start):
            names = list(free) if row.model is None else [family(row.model)]
            near = (a for n in names if n in free for a in free[n].near(row))
            found = next((a for a in near if self._may_be(row, a)), None)
            if found is None:
                self._differ(Flaw.ONLY_THEIRS, row, None, _stranger(row))
                continue
            free[family(found.model)].take(found)
            explained += 1
            for measure, (known, most) in found.figures().items():
                self._ours[measure].add(known, most)
        return explained

    def _may_be(self, row: Row, attempt: Ours) -> bool:
        first, last = attempt.started - self._tolerance, attempt.ended + self._tolerance
        if row.span != UNKNOWN and not first <= row.span.start <= last:
            return False
        figures = attempt.figures()
        return all(n <= figures[m][1] for m, n in row.figures.items() if m in figures)

    def _differ(
        self, flaw: Flaw, row: Row | None, attempt: Ours | None, compared: list[Compared]
    ) -> None:
        for one in compared:
            if one.unexplained:
                self._gross[one.measure] += size(one.unexplained)
        self._counts[flaw] += 1
        if len(self._mismatches) >= MOST:
            return
        fields = tuple(
            Field(measure=c.measure, ours=c.ours, theirs=c.theirs, unexplained=c.unexplained)
            for c in compared
            if c.measure is not Measure.REQUESTS or flaw is Flaw.ONLY_OURS
        )
        self._mismatches.append(
            Mismatch(
                flaw=flaw,
                request_id=row.id if row else attempt.request_id if attempt else None,
                attempt=attempt.id if attempt else None,
                model=(row.model if row else None) or (attempt.model if attempt else None),
                where=row.where if row else "",
                fields=fields,
            )
        )


class _Free:
    """Attempts without a reply that no row has explained, by the time of their start.

    Args:
        attempts: in any order.
        tolerance: maximum seconds between the two sides' times of an attempt.
    """

    def __init__(self, attempts: list[Ours], tolerance: float) -> None:
        self._all = sorted(attempts, key=_started)
        self._tolerance = tolerance
        self._longest = max(one.ended - one.started for one in attempts)
        self._taken: set[str] = set()
        #: all before it are taken
        self._first = 0

    def near(self, row: Row) -> Iterator[Ours]:
        """Yield those that may be under way at a row's time, the earliest first; all, if that is unknown."""
        first = self._first
        if row.span != UNKNOWN:
            earliest = row.span.start - self._tolerance - self._longest
            first = max(first, bisect_left(self._all, earliest, key=_started))
        for attempt in islice(self._all, first, None):
            if row.span != UNKNOWN and attempt.started - self._tolerance > row.span.start:
                return
            if attempt.id not in self._taken:
                yield attempt

    def take(self, attempt: Ours) -> None:
        """Leave an attempt out from now on."""
        self._taken.add(attempt.id)
        while self._first < len(self._all) and self._all[self._first].id in self._taken:
            self._first += 1


def _started(attempt: Ours) -> float:
    return attempt.started


def _stranger(row: Row) -> list[Compared]:
    """Return all figures of a row that we lack."""
    figures = {Measure.REQUESTS: 1, **row.figures}
    return [compare(measure, Band(), theirs) for measure, theirs in figures.items()]
