"""Comparison by days and models."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from decimal import Decimal

from posology.budget.reconcile.formats.values import DAY
from posology.budget.reconcile.matching.bands import NOTHING, Band, compare
from posology.budget.reconcile.matching.theirs import Cell, Key, Theirs, day
from posology.budget.reconcile.measures import Kind, Measure
from posology.budget.reconcile.names import Naming, resolve
from posology.budget.reconcile.ours import Ours
from posology.budget.reconcile.report import Compared, Group, Side, Verdict, worst
from posology.budget.reconcile.rows import Number, size

_NOTHING_USED = Cell()


#: a day and a model's name in the report; ``None``: the whole period, and all models
_Place = tuple[str | None, str | None]
_ALL: _Place = (None, None)


@dataclass(kw_only=True, slots=True)
class _Sum:
    """Our figures of one day and model, or of all."""

    bands: dict[Measure, Band] = field(default_factory=dict)
    unknown: int = 0
    edge: int = 0

    def join(self, other: _Sum) -> None:
        for measure, band in other.bands.items():
            self.bands.setdefault(measure, Band()).join(band)
        self.unknown += other.unknown
        self.edge += other.edge

    def add(self, attempt: Ours, *, here: bool, certain: bool) -> None:
        for measure, (known, most) in attempt.figures().items():
            self.bands.setdefault(measure, Band()).add(known, most, here=here, certain=certain)
        self.unknown += here and (attempt.usage is None or attempt.cost is None)
        self.edge += not certain


@dataclass(frozen=True, kw_only=True, slots=True)
class _Part:
    """The figures of both sides for one day and model, of one kind of export."""

    kind: Kind
    ours: _Sum
    #: ``None``: it has no row
    theirs: Cell | None


class Days:
    """Compares usage and costs, each for the period of the exports.

    An attempt counts on the day on which it was started. Where it was under way within the tolerance of
    a midnight, or of the beginning or the end of the time, it may count on either side.

    Args:
        theirs: all rows of the exports.
        threshold: unexplained drift to tolerate, relative to the larger side.
        tolerance: maximum seconds between the two sides' times of an attempt.
    """

    def __init__(self, theirs: Theirs, *, threshold: Decimal, tolerance: float) -> None:
        self._theirs = theirs
        self._periods = theirs.periods
        self._threshold = threshold
        self._tolerance = tolerance
        self._days: dict[Kind, dict[Key, _Sum]] = {kind: {} for kind in self._periods}
        self._whole: dict[Kind, dict[str, _Sum]] = {kind: {} for kind in self._periods}
        self._names: set[str] = set()

    def add(self, attempt: Ours) -> None:
        """Add one of our attempts."""
        if attempt.turned_away:
            return
        first, last = attempt.started - self._tolerance, attempt.ended + self._tolerance
        for kind, period in self._periods.items():
            if last < period.start or first >= period.end:
                continue
            self._names.add(attempt.model)
            inside = period.start <= first and last < period.end
            here = period.start <= attempt.started < period.end
            whole = self._whole[kind].setdefault(attempt.model, _Sum())
            whole.add(attempt, here=here, certain=inside)
            days = _days(max(first, period.start), min(last, period.end - 1))
            home = day(attempt.started)
            for one in days:
                own = self._days[kind].setdefault((one, attempt.model), _Sum())
                own.add(
                    attempt, here=here and one == home, certain=inside and here and len(days) == 1
                )

    def result(self) -> tuple[list[Group], list[Group], list[Naming]]:
        """Return the groups, the totals, and the names that were compared as one.

        A total is of one model, where a midnight hides nothing, or of all: what is only on one side is
        a share of that.
        """
        labels, naming = resolve(self._names, self._theirs.names)
        base: dict[Measure, Number] = {}
        parts: dict[_Place, list[_Part]] = {}
        for kind, cells in self._theirs.cells.items():
            together = self._theirs.together(kind)
            ours: dict[_Place, _Sum] = {}
            theirs: dict[_Place, Cell] = {}
            own_days = self._days[kind].items()
            own_whole = [((None, name), own) for name, own in self._whole[kind].items()]
            for (one, name), own in (*own_days, *own_whole):
                model = None if together or name is None else labels[name]
                for place in _places(one, model):
                    ours.setdefault(place, _Sum()).join(own)
            for (one, name), cell in cells.items():
                model = None if together or name is None else labels[name]
                for place in {*_places(one, model), *_places(None, model)}:
                    theirs.setdefault(place, Cell()).add(cell.figures, cell.rounding, cell.rows)
            for place in {*ours, *theirs, _ALL}:
                part = _Part(kind=kind, ours=ours.get(place, _Sum()), theirs=theirs.get(place))
                parts.setdefault(place, []).append(part)
        for part in parts[_ALL]:
            for c in self._compared(part.kind, part.ours, part.theirs or _NOTHING_USED, {}):
                base[c.measure] = max(size(c.ours), size(c.theirs))
        found = [self._group(place, parts[place], base) for place in sorted(parts, key=_order)]
        groups = [group for group in found if group.day is not None]
        return groups, [group for group in found if group.day is None], naming

    def _group(
        self,
        place: _Place,
        parts: Iterable[_Part],
        base: Mapping[Measure, Number],
    ) -> Group:
        compared: list[Compared] = []
        sums: list[_Sum] = []
        ours = theirs = False
        for part in parts:
            own, cell = part.ours, part.theirs
            ours |= any(band.known for band in own.bands.values()) or own.unknown > 0
            theirs |= cell is not None
            one_sided = cell is None or not own.bands
            shares = base if one_sided else {}
            compared += self._compared(part.kind, own, cell or _NOTHING_USED, shares)
            sums.append(own)
        side = Side.BOTH if ours and theirs else Side.THEIRS if theirs else Side.OURS
        return self._made(place, tuple(compared), side, sums)

    def _compared(
        self, kind: Kind, own: _Sum, cell: Cell, base: Mapping[Measure, Number]
    ) -> tuple[Compared, ...]:
        told = cell.figures if cell.rows else self._theirs.measures(kind)
        return tuple(
            compare(
                measure,
                own.bands.get(measure, NOTHING),
                cell.figures.get(measure, 0),
                threshold=self._threshold,
                rounding=cell.rounding,
                base=base.get(measure),
            )
            for measure in Measure
            if measure in told
        )

    def _made(
        self,
        place: _Place,
        compared: tuple[Compared, ...],
        side: Side,
        sums: list[_Sum],
    ) -> Group:
        return Group(
            provider=self._theirs.provider,
            day=place[0],
            model=place[1],
            side=side,
            compared=compared,
            unknown=max((own.unknown for own in sums), default=0),
            edge=max((own.edge for own in sums), default=0),
            verdict=worst(tuple(c.verdict for c in compared)),
            hint=_hint(compared, side),
        )


def _days(first: float, last: float) -> list[str]:
    start = int(first // DAY)
    return [day(number * DAY) for number in range(start, int(max(first, last) // DAY) + 1)]


def _places(one: str | None, model: str | None) -> tuple[_Place, ...]:
    """Return the groups of an amount: its day, and the totals of its model and of all."""
    return ((one, model),) if one is not None or model is None else ((None, model), _ALL)


def _order(place: _Place) -> tuple[bool, str, bool, str]:
    one, model = place
    return one is None, one or "", one is None and model is None, model or ""


def _hint(compared: tuple[Compared, ...], side: Side) -> str:
    verdicts = {c.measure: c.verdict for c in compared}
    if Verdict.DRIFT not in verdicts.values():
        return ""
    if side is Side.THEIRS:
        return "not in our ledger: another application, or another tenant"
    if side is Side.OURS:
        return "not in the export: it may be incomplete or filtered"
    usage = [verdict for measure, verdict in verdicts.items() if measure is not Measure.COST]
    if verdicts.get(Measure.COST) is Verdict.DRIFT and usage and Verdict.DRIFT not in usage:
        return "tokens agree, dollars do not: compare the prices"
    if all(c.unexplained >= 0 for c in compared):
        return "theirs is larger: calls outside the ledger, or of another application"
    if all(c.unexplained <= 0 for c in compared):
        return "theirs is smaller: the export may be incomplete or filtered"
    return "theirs is larger in some figures and smaller in others"
