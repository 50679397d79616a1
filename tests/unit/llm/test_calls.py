from __future__ import annotations

import pytest

from posology.errors import ProviderOverloaded
from posology.llm.accounting import Account
from posology.llm.retry import RetryPolicy
from posology.llm.stack import build
from posology.testing import FlatPrices, ScriptedModel
from posology.types import Call
from tests.support.calls import a_call

pytestmark = pytest.mark.anyio


async def test_every_attempt_is_sent_under_its_id_in_the_account() -> None:
    busy = ProviderOverloaded("busy", provider="openai", model="openai:m", status=503)
    model, account, counted = ScriptedModel([busy, "a", "b"]), Account(), list[Call]()

    def bound(call: Call) -> int:
        counted.append(call)
        return 7

    complete = build(
        model,
        journal=account,
        prices=FlatPrices(),
        bound=bound,
        retry=RetryPolicy(base=0.0),
    )
    for _ in range(2):
        await complete(a_call())
    assert [(a.call, a.attempt) for a in account.attempts] == [(1, 1), (1, 2), (2, 1)]
    assert model.attempt_ids == [a.id for a in account.attempts]
    # once a call, not once an attempt
    assert len(counted) == 2
