"""Ranges of our figures and of times, and the comparison of one figure of both sides."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import UTC, datetime
from decimal import Context, Decimal
from math import inf

from posology.budget.reconcile.report import (
    Compared,
    ComparedPeriod,
    Kind,
    Measure,
    Number,
    Verdict,
    size,
)

DAY = 86_400.0
#: precision for the longest amount with all its decimals
EXACT = Context(prec=60)


@dataclass(frozen=True, kw_only=True, slots=True)
class Span:
    """A time, POSIX seconds; infinite: without a beginning or an end."""

    start: float = -inf
    #: exclusive
    end: float = inf

    def has(self, at: float) -> bool:
        """Whether a time is in it."""
        return self.start <= at < self.end

    def joined(self, other: Span | None) -> Span:
        """Return the time from the earlier beginning to the later end."""
        if other is None:
            return self
        return Span(start=min(self.start, other.start), end=max(self.end, other.end))

    def within(self, other: Span) -> Span:
        """Return the other time, with the beginning and the end of this one where it has none."""
        start = self.start if other.start == -inf else other.start
        return Span(start=start, end=self.end if other.end == inf else other.end)

    def published(self, provider: str, kind: Kind) -> ComparedPeriod:
        """Return its published form."""
        start, end = (datetime.fromtimestamp(at, UTC) for at in (self.start, self.end))
        return ComparedPeriod(provider=provider, kind=kind, start=start, end=end)


@dataclass(kw_only=True, slots=True)
class Band:
    """A sum of ours, a part of which may be unknown."""

    known: Number = 0
    least: Number = 0
    most: Number = 0

    @classmethod
    def of(cls, known: Number, most: Number) -> Band:
        """Return the range of one attempt's figure."""
        return cls(known=known, least=known, most=most)

    def add(self, known: Number, most: Number, *, here: bool = True, certain: bool = True) -> None:
        """Add an attempt's figure.

        Args:
            known: what is known of it.
            most: what it is at most.
            here: whether it belongs here by when it was started; else it only may.
            certain: whether it can belong nowhere else.
        """
        self.known += known if here else 0
        self.least += known if certain else 0
        self.most += most

    def join(self, other: Band) -> None:
        """Add another sum."""
        self.known += other.known
        self.least += other.least
        self.most += other.most


def compare(
    measure: Measure,
    ours: Band,
    theirs: Number,
    *,
    threshold: Decimal = Decimal(0),
    rounding: Decimal = Decimal(0),
    base: Number | None = None,
    gross: Number | None = None,
) -> Compared:
    """Compare one figure of both sides.

    Args:
        measure: the figure.
        ours: our range.
        theirs: their value.
        threshold: unexplained drift to tolerate, relative to the base.
        rounding: maximum rounding of theirs, dollars.
        base: base of relative values; ``None``: the larger side.
        gross: unexplained drift as a sum of absolute values; ``None``: what lies outside our range.
    """
    slack = rounding if measure is Measure.COST else 0
    drift = theirs - ours.known
    over, under = theirs - ours.most - slack, theirs - ours.least + slack
    outside = over if over > 0 else under if under < 0 else drift - drift
    unexplained = outside if gross is None else gross
    whole = max(size(ours.known), size(theirs)) if base is None else base
    relative = plain(Decimal(size(unexplained)) / Decimal(whole)) if whole else None
    if unexplained:
        passes = relative is not None and relative <= threshold
        verdict = Verdict.WITHIN if passes else Verdict.DRIFT
    else:
        verdict = Verdict.EXPLAINED if drift else Verdict.EQUAL
    return Compared(
        measure=measure,
        ours=_plain(ours.known),
        least=_plain(ours.least),
        most=_plain(ours.most),
        theirs=_plain(theirs),
        drift=_plain(drift),
        unexplained=_plain(unexplained),
        relative=relative,
        verdict=verdict,
    )


def worst(compared: Iterable[Compared]) -> Verdict:
    """Return the worst verdict; equal if there is none."""
    return max((one.verdict for one in compared), key=tuple(Verdict).index, default=Verdict.EQUAL)


def plain(amount: Decimal) -> Decimal:
    """Return an amount without trailing zeros or an exponent."""
    short = amount.normalize(EXACT)
    return short.quantize(Decimal(1)) if int(short.as_tuple().exponent) > 0 else short


def _plain(number: Number) -> Number:
    return plain(number) if isinstance(number, Decimal) else number
