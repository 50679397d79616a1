"""Ranges of our figures: known values, and the effect of attempts with unknown usage."""

from __future__ import annotations

from dataclasses import dataclass
from decimal import Decimal

from posology.budget.reconcile.formats.values import plain
from posology.budget.reconcile.measures import Measure
from posology.budget.reconcile.report import Compared, Verdict
from posology.budget.reconcile.rows import Number, size


@dataclass(kw_only=True, slots=True)
class Band:
    """A sum of ours, a part of which may be unknown."""

    known: Number = 0
    least: Number = 0
    most: Number = 0

    def add(self, known: Number, most: Number, *, here: bool, certain: bool) -> None:
        """Add an attempt's figure.

        Args:
            known: what is known of it.
            most: what it is at most.
            here: whether it belongs here by when it was started; else it only may.
            certain: whether it can belong nowhere else.
        """
        if here:
            self.known += known
        if certain:
            self.least += known
        self.most += most

    def join(self, other: Band) -> None:
        """Add another sum."""
        self.known += other.known
        self.least += other.least
        self.most += other.most


NOTHING = Band()


def compare(
    measure: Measure,
    ours: Band,
    theirs: Number,
    *,
    threshold: Decimal,
    rounding: Decimal = Decimal(0),
    base: Number | None = None,
) -> Compared:
    """Compare one figure of both sides.

    Args:
        measure: the figure.
        ours: our range.
        theirs: their value.
        threshold: unexplained drift to tolerate, relative to the base.
        rounding: maximum rounding of theirs, dollars.
        base: base of relative values; ``None``: the larger side.
    """
    slack = rounding if measure is Measure.COST else 0
    over, under = theirs - ours.most - slack, theirs - ours.least + slack
    unexplained: Number = over if over > 0 else under if under < 0 else _zero(theirs - ours.known)
    whole = max(size(ours.known), size(theirs)) if base is None else base
    relative = Decimal(size(unexplained)) / Decimal(whole) if whole else None
    drift = theirs - ours.known
    if not drift:
        verdict = Verdict.EQUAL
    elif not unexplained:
        verdict = Verdict.EXPLAINED
    elif relative is not None and relative <= threshold:
        verdict = Verdict.WITHIN
    else:
        verdict = Verdict.DRIFT
    return Compared(
        measure=measure,
        ours=_plain(ours.known),
        least=_plain(ours.least),
        most=_plain(ours.most),
        theirs=_plain(theirs),
        drift=_plain(drift),
        unexplained=_plain(unexplained),
        relative=None if relative is None else plain(relative),
        verdict=verdict,
    )


def _plain(number: Number) -> Number:
    return plain(number) if isinstance(number, Decimal) else number


def _zero(like: Number) -> Number:
    return Decimal(0) if isinstance(like, Decimal) else 0
