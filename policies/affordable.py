"""What a question can have for the money that is left: the wanted dose, or the next smaller one.

It steps down from BriefContext to compressed RAG, which keeps ever less, from there to direct RAG over ever fewer
passages, and at last declines, naming the price of the cheapest. Direct RAG over the same passages comes right after
the compressed RAG that reads them: it is cheaper where the compressor asks a model, and then it is what is shown whole
for less. Every dose that was priced is in the record, so that the same can be decided again from it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal
from itertools import islice

from posology.types import DECLINE, Dose, Offer

#: of the order of stepping down; it grows when the same prices give another dose
VERSION = "2"
#: dollars that a dose costs at worst, or a ladder's first rung
Quote = Callable[[Dose], Decimal]


@dataclass(frozen=True, kw_only=True, slots=True)
class Afforded:
    """The dose that is paid for, and what was considered before."""

    dose: Dose
    #: in order; the last one is ``dose`` unless nothing fits
    offers: tuple[Offer, ...]
    #: a sentence
    reason: str


def options(wanted: Dose, *, passages: int, compressed: Sequence[Dose] = ()) -> Iterator[Dose]:
    """What may be given, the wanted dose first, then in the order of stepping down.

    Args:
        wanted: what would be given if money were no object.
        passages: how many were retrieved.
        compressed: what compressed RAG there is below the wanted dose, most first.
    """
    yield wanted
    smaller = iter(compressed)
    if wanted.strategy == "briefcontext":
        yield from islice(smaller, 1)
        yield Dose(strategy="direct")
    elif wanted.strategy == "compressed":
        yield whole(wanted)
    yield from smaller
    shown = passages if wanted.strategy == "briefcontext" else _least(wanted, passages)
    while shown > 1:
        shown //= 2
        yield Dose(strategy="direct", passages=shown)


def whole(dose: Dose) -> Dose:
    """Direct RAG over the same passages, by the same calls."""
    return replace(dose, strategy="direct", keep=None, compressor=None)


def afford(
    wanted: Dose,
    *,
    remaining: Decimal,
    quote: Quote,
    passages: int,
    compressed: Sequence[Dose] = (),
    alternatives: bool = True,
) -> Afforded:
    """The first dose that ``remaining`` pays for at its worst.

    Args:
        wanted: what would be given if money were no object.
        remaining: dollars.
        quote: the price of a dose; asked once a dose that is considered.
        passages: how many were retrieved.
        compressed: what compressed RAG there is below the wanted dose, most first.
        alternatives: whether anything else than the wanted dose will do.
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


def describe(dose: Dose) -> str:
    """A dose in a few words."""
    said = dose.strategy
    if dose.compressor is not None:
        said += f" by {dose.compressor}"
    if dose.keep is not None:
        said += f" keeping {dose.keep:.0%} of the sentences"
    if dose.rungs:
        return f"{said}, by {_listed(dose.rungs)} passages"
    if dose.passages is not None:
        said += f" over {dose.passages} passage{'s' if dose.passages != 1 else ''}"
    return said


def _least(wanted: Dose, passages: int) -> int:
    """Passages that the wanted dose begins with."""
    return wanted.rungs[0] if wanted.rungs else wanted.passages or passages


def _listed(rungs: tuple[int, ...]) -> str:
    return ", ".join(map(str, rungs))


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
    """Those that cost less than all before them: a reader need not be told of the others."""
    least: Decimal | None = None
    for offer in offers:
        if least is None or offer.worst < least:
            least = offer.worst
            yield offer
