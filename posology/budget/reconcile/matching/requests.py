"""Comparison request by request."""

from __future__ import annotations

from collections.abc import Iterator
from decimal import Decimal

from posology.budget.reconcile.formats.values import DAY, plain
from posology.budget.reconcile.matching.bands import Band, compare
from posology.budget.reconcile.measures import LEAST, Kind, Measure
from posology.budget.reconcile.names import family
from posology.budget.reconcile.ours import Ours
from posology.budget.reconcile.report import (
    Compared,
    Field,
    Flaw,
    Mismatch,
    Period,
    Requests,
    Verdict,
    worst,
)
from posology.budget.reconcile.rows import Number, RequestRow, size

#: maximum mismatches listed; all are counted
MOST = 1_000


class ByRequest:
    """Compares an export with one row for each request.

    A row is matched by the provider's id, or by our id, which the provider got as well. A row with
    neither may be of an attempt that ended without a reply: of its model, in its time, within its bounds.

    Args:
        threshold: unexplained drift to tolerate, relative to the sum of all rows.
        tolerance: maximum seconds between the two sides' times of an attempt.
        since: POSIX seconds; ``None``: from the day of the first row on.
        until: POSIX seconds, exclusive; ``None``: to the end of the last row's day.
    """

    def __init__(
        self,
        *,
        threshold: Decimal,
        tolerance: float,
        since: float | None = None,
        until: float | None = None,
    ) -> None:
        self._threshold, self._tolerance = threshold, tolerance
        self._since, self._until = since, until
        self._first: float | None = None
        self._last: float | None = None
        self._by_request: dict[str, Ours] = {}
        self._by_attempt: dict[str, Ours] = {}
        self._providers: set[str] = set()
        self._seen: set[str] = set()
        self._strangers: list[RequestRow] = []
        self._sums: dict[Measure, Band] = {}
        self._theirs: dict[Measure, Number] = {}
        self._gross: dict[Measure, Number] = {}
        self._counts = dict.fromkeys(Flaw, 0)
        self._matched = 0
        self._mismatches: list[Mismatch] = []

    def add(self, attempt: Ours) -> None:
        """Add one of our attempts; all are added before the first row."""
        self._by_attempt[attempt.id] = attempt
        if attempt.request_id is not None:
            self._by_request[attempt.request_id] = attempt

    def row(self, row: RequestRow, provider: str) -> bool:
        """Add a row of theirs; return whether it is in the period."""
        if row.at is not None:
            if (self._since is not None and row.at < self._since) or (
                self._until is not None and row.at >= self._until
            ):
                return False
            self._first = row.at if self._first is None else min(self._first, row.at)
            self._last = row.at if self._last is None else max(self._last, row.at)
        self._providers.add(provider)
        attempt = (
            self._by_request.get(row.id)
            or self._by_attempt.get(row.client_id or "")
            or self._by_attempt.get(row.id)
        )
        if attempt is None:
            self._strangers.append(row)
        elif attempt.id in self._seen:
            self._count_theirs(row)
            self._tell(Flaw.TWICE, row, attempt, self._alone(row))
        else:
            self._seen.add(attempt.id)
            self._match(row, attempt)
        return True

    @property
    def period(self) -> Period:
        """Return the period in which our requests should be in the export."""
        first, last = self._first, self._last
        if first is None or last is None:
            started = [self._by_attempt[one].started for one in self._seen] or [0.0]
            first, last = min(started), max(started)
        since = first // DAY * DAY if self._since is None else self._since
        until = (last // DAY + 1) * DAY if self._until is None else self._until
        providers = " and ".join(sorted(self._providers))
        return Period(provider=providers, kind=Kind.REQUESTS, start=since, end=until)

    def result(self) -> Requests:
        """Return the result for all requests."""
        period = self.period
        missing = [
            attempt
            for attempt in self._by_attempt.values()
            if attempt.id not in self._seen
            and attempt.provider in self._providers
            and not attempt.turned_away
            and period.start <= attempt.started < period.end
        ]
        silent = [attempt for attempt in missing if attempt.usage is None]
        explained = self._explain(silent)
        for attempt in missing:
            if attempt.usage is not None:
                self._miss(attempt, period)
        totals = tuple(self._totals())
        counts = self._counts
        return Requests(
            matched=self._matched,
            only_ours=counts[Flaw.ONLY_OURS],
            only_theirs=counts[Flaw.ONLY_THEIRS],
            twice=counts[Flaw.TWICE],
            differing=counts[Flaw.DIFFERS],
            explained=explained,
            unbilled=len(silent) - explained,
            totals=totals,
            mismatches=tuple(self._mismatches),
            verdict=worst(tuple(total.verdict for total in totals)),
        )

    def _match(self, row: RequestRow, attempt: Ours) -> None:
        self._matched += 1
        self._count_theirs(row)
        figures = attempt.figures() or dict.fromkeys(row.figures, (0, 0))
        differing = []
        for measure, theirs in row.figures.items():
            if measure not in figures:
                continue
            known, most = figures[measure]
            self._count_ours(measure, known, most)
            found = compare(
                measure,
                Band(known=known, least=known, most=most),
                theirs,
                threshold=Decimal(0),
                rounding=row.rounding,
            )
            if found.unexplained:
                differing.append(self._differs(found))
        self._count_ours(Measure.REQUESTS, *figures.get(Measure.REQUESTS, (0, 0)))
        if differing:
            self._tell(Flaw.DIFFERS, row, attempt, tuple(differing))

    def _differs(self, found: Compared) -> Field:
        self._gross[found.measure] = self._gross.get(found.measure, 0) + size(found.unexplained)
        return Field(
            measure=found.measure,
            ours=found.ours,
            theirs=found.theirs,
            unexplained=found.unexplained,
        )

    def _miss(self, attempt: Ours, period: Period) -> None:
        edge = (
            attempt.started - self._tolerance < period.start
            or attempt.ended + self._tolerance >= period.end
        )
        if edge:
            # it may be in the export of an adjacent day
            for measure, (_, most) in attempt.figures().items():
                self._sums.setdefault(measure, Band()).most += most
            return
        fields = []
        for measure, (known, most) in attempt.figures().items():
            self._count_ours(measure, known, most)
            if measure in self._theirs:
                found = compare(
                    measure, Band(known=known, least=known, most=most), 0, threshold=Decimal(0)
                )
                fields.append(self._differs(found))
        self._tell(Flaw.ONLY_OURS, None, attempt, tuple(fields))

    def _explain(self, silent: list[Ours]) -> int:
        """Match unknown rows with attempts that may be theirs; report the rest."""
        free: dict[str, list[Ours]] = {}
        for attempt in sorted(silent, key=lambda attempt: attempt.started):
            free.setdefault(family(attempt.model), []).append(attempt)
        explained = 0
        for row in sorted(self._strangers, key=lambda row: row.at or 0.0):
            self._count_theirs(row)
            names = list(free) if row.model is None else [family(row.model)]
            found = next((a for n in names for a in free.get(n, ()) if self._may_be(row, a)), None)
            if found is None:
                self._tell(Flaw.ONLY_THEIRS, row, None, self._alone(row))
                continue
            free[family(found.model)].remove(found)
            explained += 1
            for measure, (known, most) in found.figures().items():
                self._count_ours(measure, known, most)
        return explained

    def _may_be(self, row: RequestRow, attempt: Ours) -> bool:
        if row.at is not None and not (
            attempt.started - self._tolerance <= row.at <= attempt.ended + self._tolerance
        ):
            return False
        figures = attempt.figures()
        return all(n <= figures[m][1] for m, n in row.figures.items() if m in figures)

    def _alone(self, row: RequestRow) -> tuple[Field, ...]:
        """Return all figures of a row that we lack."""
        fields = []
        for measure, theirs in ((Measure.REQUESTS, 1), *row.figures.items()):
            self._gross[measure] = self._gross.get(measure, 0) + size(theirs)
            if measure is not Measure.REQUESTS:
                fields.append(Field(measure=measure, ours=0, theirs=theirs, unexplained=theirs))
        return tuple(fields)

    def _count_theirs(self, row: RequestRow) -> None:
        for measure, theirs in ((Measure.REQUESTS, 1), *row.figures.items()):
            self._theirs[measure] = self._theirs.get(measure, 0) + theirs

    def _count_ours(self, measure: Measure, known: Number, most: Number) -> None:
        self._sums.setdefault(measure, Band()).add(known, most, here=True, certain=True)

    def _totals(self) -> Iterator[Compared]:
        told = set(self._theirs) or set(LEAST)
        for measure in Measure:
            if measure not in told:
                continue
            ours, theirs = self._sums.get(measure, Band()), self._theirs.get(measure, 0)
            found = compare(measure, ours, theirs, threshold=self._threshold)
            gross = self._gross.get(measure, 0)
            whole = max(size(ours.known), size(theirs))
            relative = plain(Decimal(gross) / Decimal(whole)) if whole else None
            yield Compared(
                measure=measure,
                ours=found.ours,
                least=found.least,
                most=found.most,
                theirs=theirs,
                drift=found.drift,
                unexplained=plain(gross) if isinstance(gross, Decimal) else gross,
                relative=relative,
                verdict=self._verdict(found, gross, relative),
            )

    def _verdict(self, found: Compared, gross: Number, relative: Decimal | None) -> Verdict:
        if gross:
            within = relative is not None and relative <= self._threshold
            return Verdict.WITHIN if within else Verdict.DRIFT
        return Verdict.EXPLAINED if found.drift else Verdict.EQUAL

    def _tell(
        self, flaw: Flaw, row: RequestRow | None, attempt: Ours | None, fields: tuple[Field, ...]
    ) -> None:
        self._counts[flaw] += 1
        if len(self._mismatches) >= MOST:
            return
        self._mismatches.append(
            Mismatch(
                flaw=flaw,
                request_id=row.id if row else attempt.request_id if attempt else None,
                attempt=attempt.id if attempt else None,
                model=(row.model if row else None) or (attempt.model if attempt else None),
                where=f"{row.path}:{row.line}" if row else "",
                fields=fields,
            )
        )
