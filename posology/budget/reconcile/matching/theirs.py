"""Sums of an export's rows by days and models."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from decimal import Decimal
from functools import lru_cache

from posology.budget.reconcile.formats.values import DAY
from posology.budget.reconcile.measures import LEAST, Kind, Measure
from posology.budget.reconcile.report import Period
from posology.budget.reconcile.rows import Number, Row


@dataclass(kw_only=True, slots=True)
class Cell:
    """The sums of some rows."""

    #: only figures that all of its rows have
    figures: dict[Measure, Number] = field(default_factory=dict)
    #: dollars
    rounding: Decimal = Decimal(0)
    rows: int = 0

    def add(self, figures: Mapping[Measure, Number], rounding: Decimal, rows: int = 1) -> None:
        """Add a row, or another sum."""
        if not self.rows:
            self.figures = dict(figures)
        else:
            self.figures = {m: n + figures[m] for m, n in self.figures.items() if m in figures}
        self.rounding += rounding
        self.rows += rows


#: a day and a model's name as the provider writes it; ``None``: all models together
Key = tuple[str, str | None]


class Theirs:
    """One provider's side.

    Args:
        provider: name of the provider.
        since: POSIX seconds; rows that begin earlier are left out.
        until: POSIX seconds; rows that begin then or later are left out.
    """

    def __init__(
        self, provider: str, *, since: float | None = None, until: float | None = None
    ) -> None:
        self.provider = provider
        self._since, self._until = since, until
        self._spans: dict[Kind, tuple[float, float]] = {}
        self.cells: dict[Kind, dict[Key, Cell]] = {}

    def add(self, kind: Kind, rows: Iterable[Row]) -> int:
        """Add rows; return the number with figures in the period.

        Args:
            kind: what the export tells of, even where it has no row: then that nothing was used.
            rows: of that kind, and maybe of others.
        """
        self.cells.setdefault(kind, {})
        taken = 0
        for row in rows:
            if (self._since is not None and row.start < self._since) or (
                self._until is not None and row.start >= self._until
            ):
                continue
            start, end = self._spans.get(row.kind, (row.start, row.end))
            self._spans[row.kind] = min(start, row.start), max(end, row.end)
            cells = self.cells.setdefault(row.kind, {})
            if row.figures:
                key = (day(row.start), row.model)
                cells.setdefault(key, Cell()).add(row.figures, row.rounding)
                taken += 1
        return taken

    @property
    def periods(self) -> dict[Kind, Period]:
        """Return the period of each kind of export: as requested, or from the first row to the last."""
        found = {}
        for kind in self.cells:
            start, end = self._spans.get(kind, (None, None))
            first = start if self._since is None else self._since
            last = end if self._until is None else self._until
            if first is not None and last is not None:
                found[kind] = Period(provider=self.provider, kind=kind, start=first, end=last)
        return found

    @property
    def timeless(self) -> Kind | None:
        """Return a kind of export without a period; ``None``: there is none."""
        return next((kind for kind in self.cells if kind not in self.periods), None)

    @property
    def names(self) -> set[str]:
        """Return all names of models."""
        return {name for cells in self.cells.values() for _, name in cells if name is not None}

    def together(self, kind: Kind) -> bool:
        """Whether a kind is not grouped by model."""
        return any(name is None for _, name in self.cells[kind])

    def measures(self, kind: Kind) -> tuple[Measure, ...]:
        """Return the figures that all rows of a kind have."""
        if kind is Kind.COST:
            return (Measure.COST,)
        told = [set(cell.figures) for cell in self.cells[kind].values()]
        common: Collection[Measure] = set.intersection(*told) if told else LEAST
        return tuple(measure for measure in Measure if measure in common)


def day(at: float) -> str:
    """Return the UTC day of a time."""
    return _written(int(at // DAY))


@lru_cache(maxsize=1_000)
def _written(number: int) -> str:
    return f"{datetime.fromtimestamp(number * DAY, UTC):%Y-%m-%d}"
