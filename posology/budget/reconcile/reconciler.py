"""Reconciler: reads a provider's exports and our attempts, and compares them."""

from __future__ import annotations

from collections.abc import Sequence
from decimal import Decimal
from math import inf
from pathlib import Path

from posology.budget.reconcile import exports
from posology.budget.reconcile.bands import Span
from posology.budget.reconcile.days import Days
from posology.budget.reconcile.exports import Export
from posology.budget.reconcile.ours import Ours
from posology.budget.reconcile.report import (
    File,
    Kind,
    Measure,
    ReconcileOutput,
    Verdict,
)
from posology.budget.reconcile.requests import ByRequest
from posology.errors import BadFile

#: default relative drift to tolerate
THRESHOLD = Decimal("0.01")
#: default seconds between the two sides' times of an attempt
TOLERANCE = 60.0


class Reconciler:
    """Compares exports with attempts. It is used once: exports, attempts, result.

    Args:
        paths: the exports; several pages, days and providers may be among them.
        provider: of files that do not name theirs; files of another provider are refused.
        since: POSIX seconds; ``None``: from the first row on.
        until: POSIX seconds, exclusive; ``None``: to the last row.
        threshold: relative unexplained drift to tolerate, e.g. 0.01.
        tolerance: maximum seconds between the two sides' times of an attempt.

    Raises:
        BadFile: a file cannot be read, is of no known format, or is given twice.
        BadRecord: a row of it cannot be read.
    """

    def __init__(
        self,
        paths: Sequence[Path],
        *,
        provider: str | None = None,
        since: float | None = None,
        until: float | None = None,
        threshold: Decimal = THRESHOLD,
        tolerance: float = TOLERANCE,
    ) -> None:
        exports.once(paths)
        self._threshold, self._tolerance = threshold, tolerance
        start, end = -inf if since is None else since, inf if until is None else until
        self._asked = Span(start=start, end=end)
        self._files: list[File] = []
        self._requests: list[Export] = []
        self._days: dict[str, Days] = {}
        self._by_request = ByRequest(asked=self._asked, threshold=threshold, tolerance=tolerance)
        self._attempts = 0
        for path in paths:
            found = exports.inspect(path, provider=provider)
            if found.kind is Kind.REQUESTS:
                self._requests.append(found)
                continue
            new = Days(found.provider, asked=self._asked, threshold=threshold, tolerance=tolerance)
            days = self._days.setdefault(found.provider, new)
            self._files.append(_file(found, days.read(found.kind, found.rows())))
            if days.timeless:
                reason = "it has no row in the period: give the days with --since and --until"
                raise BadFile(reason, path=str(path))

    @property
    def since(self) -> float | None:
        """POSIX seconds before which our attempts are ignored; ``None``: none are."""
        starts = [span.start for days in self._days.values() for span in days.periods.values()]
        starts += [self._asked.start] if self._requests or self._asked.start > -inf else []
        start = min(starts, default=-inf)
        return None if start == -inf else start - self._tolerance

    def add(self, attempt: Ours) -> None:
        """Add one of our attempts."""
        self._attempts += 1
        if attempt.provider in self._days:
            self._days[attempt.provider].add(attempt)
        if self._requests:
            self._by_request.add(attempt)

    def result(self, tenants: Sequence[str], notes: Sequence[str] = ()) -> ReconcileOutput:
        """Read the remaining rows, and compare.

        Args:
            tenants: whose attempts were given.
            notes: what else there is to say.

        Raises:
            BadFile: an export of requests has none.
            BadRecord: a row of it cannot be read.
        """
        results = [(provider, days, days.result()) for provider, days in self._days.items()]
        groups = [group for _, _, found in results for group in found[0]]
        totals = [group for _, _, found in results for group in found[1]]
        periods = [
            span.published(provider, kind)
            for provider, days, _ in results
            for kind, span in days.periods.items()
        ]
        requests = None
        if self._requests:
            self._files += [_file(export, self._read(export)) for export in self._requests]
            requests = self._by_request.result()
            providers = " and ".join(sorted(self._by_request.providers))
            periods.append(self._by_request.period.published(providers, Kind.REQUESTS))
        drift = [group for group in (*groups, *totals) if group.verdict is Verdict.DRIFT]
        # a midnight may hide on each day what is there in the whole time
        days = sum(group.day is not None for group in drift)
        models = {(one.provider, one.model) for one in drift if one.day is None and one.model}
        models -= {(one.provider, one.model) for one in drift if one.day is not None}
        drifting = days + len(models)
        figures = [one for group in totals for one in group.compared]
        agrees = not drift
        if requests is not None:
            figures += requests.totals
            if requests.verdict is Verdict.DRIFT:
                agrees = False
                drifting += requests.only_ours + requests.only_theirs
                drifting += requests.twice + requests.differing
        amounts = [Decimal(one.unexplained) for one in figures if one.measure is Measure.COST]
        return ReconcileOutput(
            agrees=agrees,
            providers=tuple(sorted({file.provider for file in self._files})),
            tenants=tuple(tenants),
            attempts=self._attempts,
            periods=tuple(periods),
            threshold=self._threshold,
            tolerance_seconds=self._tolerance,
            unexplained_usd=max(amounts, key=abs, default=None),
            drifting=drifting,
            totals=tuple(totals),
            groups=tuple(groups),
            requests=requests,
            names=tuple(naming for _, _, found in results for naming in found[2]),
            files=tuple(self._files),
            notes=(*notes, *(note for _, days, _ in results for note in days.notes())),
        )

    def _read(self, export: Export) -> int:
        rows = sum(self._by_request.row(row, export.provider) for row in export.rows())
        if not rows:
            raise BadFile("it has no request in the period", path=str(export.path))
        return rows


def _file(export: Export, rows: int) -> File:
    return File(
        path=str(export.path),
        format=export.format,
        provider=export.provider,
        kind=export.kind,
        rows=rows,
    )
