"""What a refusal of the ledger advises."""

from __future__ import annotations

from decimal import Decimal

from posology.budget.ledger.refusals import exhausted


def test_a_refusal_names_the_least_raise_that_pays_for_the_call() -> None:
    # in nano-dollars: a cap of $0.0001, of which $0.00004 is spent
    error = exhausted(["day", 100_000, 40_000, 0, ""], Decimal("0.0006464"))
    assert error.message.endswith("may cost $0.0006464: raise the limit by at least $0.0005864")
    assert error.cap + Decimal("0.0005864") - error.spent == error.asked


def test_where_nothing_is_missing_no_amount_is_named() -> None:
    error = exhausted(["day", 100_000, 100_000, 0, ""], Decimal(0))
    assert error.message.endswith("may cost $0: raise the limit")
