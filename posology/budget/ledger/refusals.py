"""From the word of a script, or of the ledger in memory, to the error that it means."""

from __future__ import annotations

from collections.abc import Sequence
from decimal import Decimal

from posology.budget.ledger.base import dollars
from posology.errors import BudgetExhausted, HeadroomReserved, ModelNotAllowed, TenantDisabled
from posology.store.keys import at
from posology.types import Opening

_NAMES = {
    "day": "the day's budget",
    "month": "the month's budget",
    "total": "the tenant's budget",
    "job": "the job's budget",
}
#: what is held that is no money
_HELD = {
    "calls": "all places that the tenant has",
    "turn": "what others wait for who came first",
}


def refuse(said: Sequence[str | int], opening: Opening, tenant: str) -> None:
    """Raise what a refusal of an attempt means; any other word means nothing here.

    Args:
        said: a word, and where money is short: scope, cap, spent and reserved in nano-dollars, when the
            window is over in milliseconds or empty, and the place in the queue.
        opening: what was to be sent.
        tenant: whose money it is.

    Raises:
        BudgetExhausted: see :meth:`~posology.budget.ledger.base.Ledger.reserve`, as for the others.
        HeadroomReserved: see there.
        ModelNotAllowed: see there.
        TenantDisabled: see there.
    """
    refuse_at_the_door(said, opening.model, opening.reserved, tenant)
    if said[0] == "busy":
        raise busy(said[1:], opening.reserved)


def refuse_at_the_door(said: Sequence[str | int], model: str, asked: Decimal, tenant: str) -> None:
    """Raise what a refusal of a whole piece of work means; any other word means nothing here.

    Args:
        said: as for :func:`refuse`.
        model: that is to be used.
        asked: dollars that a call may cost.
        tenant: whose money it is.

    Raises:
        BudgetExhausted: what is spent leaves too little.
        ModelNotAllowed: the tenant may not use the model.
        TenantDisabled: nothing is spent for the tenant.
    """
    match said[0]:
        case "exhausted":
            raise exhausted(said[1:], asked)
        case "model":
            raise ModelNotAllowed(
                f"the tenant {tenant} may not use {model}: choose an allowed model, or have it allowed",
                model=model,
            )
        case "disabled":
            raise TenantDisabled(
                f"the tenant {tenant} is disabled: nothing is spent for it", tenant=tenant
            )


def exhausted(said: Sequence[str | int], asked: Decimal) -> BudgetExhausted:
    """The error of a scope that does not pay for a call any more."""
    scope, cap, spent, reserved = str(said[0]), *(dollars(str(n)) for n in said[1:4])
    resets = at(said[4]) if said[4] else None
    later = f", or wait until {resets:%Y-%m-%d %H:%M} UTC" if resets else ""
    return BudgetExhausted(
        f"{_NAMES[scope]} of ${shown(cap)} has ${shown(max(Decimal(0), cap - spent))} left, and this "
        f"call may cost ${shown(asked)}: raise the limit{later}",
        scope=scope,
        cap=cap,
        spent=spent,
        reserved=reserved,
        asked=asked,
        resets=resets,
    )


def busy(said: Sequence[str | int], asked: Decimal) -> HeadroomReserved:
    """The error of a scope that calls under way hold."""
    scope, place = str(said[0]), int(said[5])
    return HeadroomReserved(
        f"calls under way hold {_HELD.get(scope) or _NAMES[scope]}: it may be tried again when they "
        "have ended",
        scope=scope,
        asked=asked,
        place=place,
    )


def shown(amount: Decimal) -> str:
    """Dollars without trailing zeros, and never as a power of ten."""
    text = f"{amount:f}"
    return text.rstrip("0").rstrip(".") if "." in text else text
