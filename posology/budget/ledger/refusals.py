"""Errors for the refusals of the ledger's scripts and of the ledger in memory."""

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
#: limits that are not budgets
_OTHERS = {
    "calls": "the tenant's concurrent calls",
    "turn": "the turn: earlier calls wait",
}


def refuse(reply: Sequence[str | int], opening: Opening, tenant: str) -> None:
    """Raise the error of a refused attempt; other replies are ignored.

    Args:
        reply: a word; for a refusal also scope, cap, spent and reserved in nano-dollars, the end of the
            window in milliseconds or empty, and the place in the queue.
        opening: the attempt.
        tenant: name of the tenant.

    Raises:
        BudgetExhausted: see :meth:`~posology.budget.ledger.base.Ledger.reserve`, as for the others.
        HeadroomReserved: see there.
        ModelNotAllowed: see there.
        TenantDisabled: see there.
    """
    raise_if_not_admitted(reply, opening.model, opening.reserved, tenant)
    if reply[0] == "busy":
        raise busy(reply[1:], opening.reserved)


def raise_if_not_admitted(
    reply: Sequence[str | int], model: str, asked: Decimal, tenant: str
) -> None:
    """Raise the error of a job that is not admitted; other replies are ignored.

    Args:
        reply: as for :func:`refuse`.
        model: the job's model.
        asked: maximum cost of a call, dollars.
        tenant: name of the tenant.

    Raises:
        BudgetExhausted: the remaining budget is too small.
        ModelNotAllowed: the tenant may not use the model.
        TenantDisabled: the tenant is disabled.
    """
    match reply[0]:
        case "exhausted":
            raise exhausted(reply[1:], asked)
        case "model":
            raise ModelNotAllowed(
                f"the tenant {tenant} may not use {model}: choose an allowed model, or ask the operator to allow it",
                model=model,
            )
        case "disabled":
            raise TenantDisabled(
                f"the tenant {tenant} is disabled: ask the operator to enable it", tenant=tenant
            )


def exhausted(reply: Sequence[str | int], asked: Decimal) -> BudgetExhausted:
    """Return the error of a scope whose remaining budget is too small."""
    scope, cap, spent, reserved = str(reply[0]), *(dollars(str(n)) for n in reply[1:4])
    resets = at(reply[4]) if reply[4] else None
    later = f", or wait until {resets:%Y-%m-%d %H:%M} UTC" if resets else ""
    missing = asked - (cap - spent)
    by = f" by at least ${plain(missing)}" if missing > 0 else ""
    return BudgetExhausted(
        f"{_NAMES[scope]} of ${plain(cap)} has ${plain(max(Decimal(0), cap - spent))} left, and this "
        f"call may cost ${plain(asked)}: raise the limit{by}{later}",
        scope=scope,
        cap=cap,
        spent=spent,
        reserved=reserved,
        asked=asked,
        resets=resets,
    )


def busy(reply: Sequence[str | int], asked: Decimal) -> HeadroomReserved:
    """Return the error of a scope whose rest is reserved by in-flight calls."""
    scope, place = str(reply[0]), int(reply[5])
    return HeadroomReserved(
        f"in-flight calls have reserved {_OTHERS.get(scope) or f'the rest of {_NAMES[scope]}'}: retry when they "
        "have ended",
        scope=scope,
        asked=asked,
        place=place,
    )


def plain(amount: Decimal) -> str:
    """Return dollars without trailing zeros or an exponent."""
    text = f"{amount:f}"
    return text.rstrip("0").rstrip(".") if "." in text else text
