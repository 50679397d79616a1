"""Stepping down: the wanted dose if the remaining budget pays for it, or the next smaller one.

Steps down from BriefContext to compressed RAG that keeps less and less, then to direct RAG over fewer and fewer
passages, and at last declines with the price of the cheapest dose. Direct RAG over the same passages comes right after
the compressed RAG that reads them: if the compressor asks a model, it is cheaper and shows everything. Every dose that
was priced is in the record, so that the decision can be replayed from it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal
from itertools import islice

from posology.types import DECLINE, READ_AGAIN, Dose, Offer

#: version of the order of stepping down; it grows when the same prices lead to another dose
VERSION = "2"
#: strategies of the router, by what a call shows: all passages whole, what a compressor selects, one partition
WHOLE, COMPRESSED, PARTITIONED = "direct", "compressed", "briefcontext"
#: Shares that are tried if the budget does not pay for more; the largest that fits is kept. From the most that
#: LeanContext's actions keep (section "Action") by halves, as passages are halved, to a tenth: of a twentieth the
#: pruner leaves .657 of SciFact's rationales instead of .769, and ranking by vectors .340 instead of .487
#: (``python -m evals.compressors``)
STEP_DOWN = (0.4, 0.2, 0.1)
#: returns the dollars of a dose at worst, or of a ladder's first step
Quote = Callable[[Dose], Decimal]


@dataclass(frozen=True, kw_only=True, slots=True)
class Afforded:
    """The dose that the budget pays for, and the doses considered before it."""

    dose: Dose
    #: priced doses in order; the last one is ``dose`` unless nothing fits
    offers: tuple[Offer, ...]
    #: a sentence
    reason: str


def options(wanted: Dose, *, passages: int, compressed: Sequence[Dose] = ()) -> Iterator[Dose]:
    """Yield the wanted dose, then smaller ones in the order of stepping down.

    A strategy other than direct and compressed RAG is taken to cost more than one call over all passages.

    Args:
        wanted: dose without regard to money.
        passages: number of retrieved passages.
        compressed: doses of compressed RAG below the wanted dose, largest first.
    """
    yield wanted
    smaller = iter(compressed)
    one_call = wanted.strategy in (WHOLE, COMPRESSED)
    if not one_call:
        yield from islice(smaller, 1)
        yield Dose(strategy=WHOLE)
    elif wanted.strategy == COMPRESSED:
        yield whole(wanted)
    yield from smaller
    shown = _least(wanted, passages) if one_call else passages
    while shown > 1:
        shown //= 2
        yield Dose(strategy=WHOLE, passages=shown)


def whole(dose: Dose) -> Dose:
    """Return direct RAG over the same passages, by the same calls."""
    return replace(dose, strategy=WHOLE, keep=None, compressor=None)


def afford(
    wanted: Dose,
    *,
    remaining: Decimal,
    quote: Quote,
    passages: int,
    compressed: Sequence[Dose] = (),
    alternatives: bool = True,
) -> Afforded:
    """Return the first dose whose worst case the remaining budget pays for.

    Args:
        wanted: dose without regard to money.
        remaining: remaining budget, dollars.
        quote: returns the worst-case price of a dose; called once for each dose that is considered.
        passages: number of retrieved passages.
        compressed: doses of compressed RAG below the wanted dose, largest first.
        alternatives: whether a smaller dose is acceptable.
    """
    offers: list[Offer] = []
    for dose in options(wanted, passages=passages, compressed=compressed):
        worst = quote(dose)
        offers.append(Offer(dose=dose, worst=worst, fits=worst <= remaining))
        if offers[-1].fits:
            return Afforded(dose=dose, offers=tuple(offers), reason=_reason(offers, remaining))
        if not alternatives:
            break
    declined = Dose(strategy=DECLINE)
    return Afforded(dose=declined, offers=tuple(offers), reason=_reason(offers, remaining))


def further(dose: Dose, read: int) -> Dose:
    """Return a ladder's dose, in one call, over its best passages and those that a second search found.

    Args:
        dose: the dose of the ladder.
        read: passages that its calls showed.
    """
    skip = max(0, read - READ_AGAIN)
    return replace(dose, passages=None, rungs=(), escalate=False, search=False, skip=skip)


def following(dose: Dose, passages: int) -> Dose:
    """Return the dose that follows a ladder that was refused to the last.

    Args:
        dose: the dose of the ladder, which escalates.
        passages: number of passages of the first search and the second.
    """
    if dose.search and passages > dose.planned:
        return further(dose, dose.planned)
    return Dose(strategy=PARTITIONED)


def describe(dose: Dose) -> str:
    """Describe a dose in a few words."""
    text = dose.strategy
    if dose.compressor is not None:
        text += f" by {dose.compressor}"
    if dose.keep is not None:
        text += f" keeping {dose.keep:.0%} of the sentences"
    if dose.rungs:
        return f"{text}, by {', '.join(map(str, dose.rungs))} passages"
    if dose.skip:
        text += f" without {dose.skip} passage{'s' if dose.skip != 1 else ''} that were read"
    if dose.passages is not None:
        text += f" over {dose.passages} passage{'s' if dose.passages != 1 else ''}"
    return text


def _least(wanted: Dose, passages: int) -> int:
    """Return the passages of the first call."""
    return wanted.rungs[0] if wanted.rungs else wanted.passages or passages


def _reason(offers: Sequence[Offer], remaining: Decimal) -> str:
    *dear, last = offers
    if last.fits and not dear:
        return f"${last.worst:f} at worst, of ${remaining:f} that are left."
    refused = "; ".join(
        f"{describe(one.dose)} ${one.worst:f}" for one in _cheaper(offers) if not one.fits
    )
    if last.fits:
        return (
            f"${remaining:f} are left, too little at worst for {refused}: stepped down to "
            f"{describe(last.dose)}, ${last.worst:f}."
        )
    return f"${remaining:f} are left, too little at worst for {refused}: declined."


def _cheaper(offers: Sequence[Offer]) -> Iterator[Offer]:
    """Yield the offers that cost less than all before them; the others do not help a reader."""
    least: Decimal | None = None
    for offer in offers:
        if least is None or offer.worst < least:
            least = offer.worst
            yield offer
