"""What the tests ask a ledger, and what it says."""

from __future__ import annotations

import pytest

from posology.budget.ledger.base import Ledger
from posology.errors import BudgetExhausted, HeadroomReserved
from posology.types import Scope
from tests.integration.ledger.helpers import Desk, asked

NANO = 1_000_000_000
DAY = 86_400


async def kinds(desk: Desk) -> list[str]:
    return [entry["kind"] for entry in await desk.entries()]


async def stand(ledger: Ledger, scope: Scope = Scope.TOTAL, run: str | None = None) -> list[str]:
    """What is spent and what is reserved in a scope."""
    (found,) = (b for b in await ledger.balances(run) if b.scope is scope)
    return [f"{found.spent:f}", f"{found.reserved:f}"]


async def busy(ledger: Ledger, *args: str, **more: str | None) -> str:
    """The scope that holds a call up."""
    with pytest.raises(HeadroomReserved) as caught:
        await ledger.reserve(asked(*args, **more))  # type: ignore[arg-type]
    return caught.value.scope


async def exhausted(ledger: Ledger, *args: str, **more: str | None) -> BudgetExhausted:
    with pytest.raises(BudgetExhausted) as caught:
        await ledger.reserve(asked(*args, **more))  # type: ignore[arg-type]
    return caught.value
