"""Reconciler: reads a provider's exports and our attempts, and compares them."""

from __future__ import annotations

from collections.abc import Sequence
from decimal import Decimal
from pathlib import Path

from posology.budget.reconcile.formats import exports
from posology.budget.reconcile.formats.exports import Export
from posology.budget.reconcile.matching.groups import Days
from posology.budget.reconcile.matching.requests import ByRequest
from posology.budget.reconcile.matching.theirs import Theirs
from posology.budget.reconcile.measures import Kind
from posology.budget.reconcile.names import Naming
from posology.budget.reconcile.ours import Ours
from posology.budget.reconcile.report import Group, Period, Reconciliation
from posology.budget.reconcile.rows import File
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
        self._since, self._until = since, until
        self._files: list[File] = []
        self._requests: list[Export] = []
        self._theirs: dict[str, Theirs] = {}
        for path in paths:
            found = exports.inspect(path, provider=provider)
            if found.kind is Kind.REQUESTS:
                self._requests.append(found)
                continue
            theirs = self._theirs.setdefault(
                found.provider, Theirs(found.provider, since=since, until=until)
            )
            self._files.append(_file(found, theirs.add(found.kind, found.rows())))
            if theirs.timeless is not None:
                raise BadFile(
                    "it has no row in the period: give the days with --since and --until",
                    path=str(path),
                )
        self._days = {
            name: Days(theirs, threshold=threshold, tolerance=tolerance)
            for name, theirs in self._theirs.items()
        }
        self._by_request = ByRequest(
            threshold=threshold, tolerance=tolerance, since=since, until=until
        )
        self._attempts = 0

    @property
    def since(self) -> float | None:
        """POSIX seconds before which our attempts are ignored; ``None``: none are."""
        if self._requests and self._since is None:
            return None
        starts = [p.start for theirs in self._theirs.values() for p in theirs.periods.values()]
        starts += [] if self._since is None else [self._since]
        return min(starts) - self._tolerance if starts else None

    def add(self, attempt: Ours) -> None:
        """Add one of our attempts."""
        self._attempts += 1
        if attempt.provider in self._days:
            self._days[attempt.provider].add(attempt)
        if self._requests:
            self._by_request.add(attempt)

    def result(self, tenants: Sequence[str], notes: Sequence[str] = ()) -> Reconciliation:
        """Read the remaining rows, and compare.

        Args:
            tenants: whose attempts were given.
            notes: what else there is to say.

        Raises:
            BadFile: an export of requests has none.
            BadRecord: a row of it cannot be read.
        """
        groups: list[Group] = []
        totals: list[Group] = []
        names: list[Naming] = []
        periods: list[Period] = []
        said: list[str] = list(notes)
        for provider, days in self._days.items():
            theirs = self._theirs[provider]
            compared, summed, together = days.result()
            groups += compared
            totals += summed
            names += together
            periods += theirs.periods.values()
            said += _said(theirs)
        requests = None
        if self._requests:
            for export in self._requests:
                self._files.append(_file(export, self._read(export)))
            requests = self._by_request.result()
            periods.append(self._by_request.period)
        return Reconciliation(
            providers=tuple(sorted({file.provider for file in self._files})),
            tenants=tuple(tenants),
            files=tuple(self._files),
            periods=tuple(periods),
            threshold=self._threshold,
            tolerance=self._tolerance,
            attempts=self._attempts,
            groups=tuple(groups),
            totals=tuple(totals),
            requests=requests,
            names=tuple(names),
            notes=tuple(said),
        )

    def _read(self, export: Export) -> int:
        rows = 0
        for row in export.requests():
            rows += self._by_request.row(row, export.provider)
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


def _said(theirs: Theirs) -> list[str]:
    """Return remarks on the limits of these exports."""
    said = [
        f"{theirs.provider}'s {kind} is not grouped by model: only days were compared"
        for kind in theirs.cells
        if theirs.together(kind)
    ]
    if Kind.COST not in theirs.cells:
        said.append(f"{theirs.provider}'s dollars were not compared: there is no export of costs")
    if Kind.USAGE not in theirs.cells:
        said.append(f"{theirs.provider}'s tokens were not compared: there is no export of usage")
    return said
