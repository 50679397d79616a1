"""Calls in the tier flex through OpenAI's SDK: what they cost, and what happens when there is no capacity."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from decimal import Decimal
from itertools import count
from typing import Any

import anyio
import pytest
from redis.asyncio import Redis

from posology.budget.bounds.calls import CallBound
from posology.budget.ledger.journal import LedgerJournal
from posology.budget.ledger.redis import RedisLedger
from posology.budget.prices.book import packaged
from posology.budget.tenants.store import TenantStore
from posology.errors import BudgetError, HeadroomReserved, NoCapacity
from posology.llm.accounting import Account
from posology.llm.calls import Caller
from posology.llm.memo import call_key
from posology.llm.providers.openai import OpenAIAdapter
from posology.seams import Complete, Journal
from posology.testing import Recorded, Reply, Step, StubProvider
from posology.testing.provider.steps import NO_CAPACITY
from posology.types import (
    Attempt,
    Call,
    Completion,
    Limits,
    Opening,
    Scope,
    Usage,
)
from tests.support.calls import ASKED, call_to
from tests.support.rigs import Rig, rigs

pytestmark = pytest.mark.anyio

MODEL = "openai:gpt-6-luna"
USAGE = Usage(input=400, output=100)
PRICES = packaged()


def call() -> Call:
    return call_to(MODEL, ASKED * 50, max_tokens=300)


class Clock:
    """Sleeps at once, and counts."""

    def __init__(self) -> None:
        self.slept: list[float] = []

    async def sleep(self, seconds: float) -> None:
        self.slept.append(seconds)
        await anyio.lowlevel.checkpoint()


MakeRig = Callable[..., Rig]


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
async def rig(clock: Clock) -> AsyncIterator[MakeRig]:
    async with rigs() as made:

        def make(script: Any, *, journal: Journal | None = None, **caller: Any) -> Rig:
            given: dict[str, Any] = {
                "caller": Caller(**{"lane": "flex", "sleep": clock.sleep, **caller})
            }
            if journal is not None:
                given["journal"] = journal
            return made(adapter, script, bound=CallBound(), **given)

        yield make


def adapter(stub: StubProvider) -> OpenAIAdapter:
    return OpenAIAdapter(api_key="key", base_url=stub.openai_url)


def tiers(rig: Rig) -> list[str | None]:
    return [body.get("service_tier") for body in rig.sent]


async def test_flex_is_reserved_at_the_standard_price_and_settled_at_its_own(rig: MakeRig) -> None:
    made = rig([Reply(text="yes", usage=USAGE)])
    assert (await made.complete(call())).served == "flex"
    (attempt,) = made.account.attempts
    assert tiers(made) == ["flex"]
    assert (attempt.tier, attempt.served) == ("flex", "flex")
    assert attempt.cost == PRICES.cost(MODEL, USAGE, "flex")
    assert attempt.cost is not None
    assert attempt.cost * 2 == PRICES.cost(MODEL, USAGE)
    assert attempt.reserved == PRICES.worst(
        MODEL, input_tokens=attempt.input_bound, output_tokens=attempt.max_tokens
    )


@pytest.mark.parametrize(
    ("named", "served", "factor"), [("default", "standard", 2), ("priority", "priority", 4)]
)
async def test_what_the_reply_names_is_charged(
    named: str, served: str, factor: int, rig: MakeRig, caplog: pytest.LogCaptureFixture
) -> None:
    made = rig([Reply(text="yes", usage=USAGE, tier=named)])
    await made.complete(call())
    (attempt,) = made.account.attempts
    flex = PRICES.cost(MODEL, USAGE, "flex")
    assert flex is not None
    assert (attempt.served, attempt.cost) == (served, flex * factor)
    assert ("tier that was not asked for" in caplog.text) == (served == "priority")


async def test_a_tier_dearer_than_reserved_is_charged_in_full_and_reported(
    rig: MakeRig, caplog: pytest.LogCaptureFixture
) -> None:
    made = rig([Reply(text="yes", usage=Usage(input=10_000, output=300), tier="priority")])
    await made.complete(call())
    (attempt,) = made.account.attempts
    assert attempt.over_bound
    assert attempt.charged == PRICES.cost(MODEL, Usage(input=10_000, output=300), "priority")
    assert "tier that was not asked for" in caplog.text


async def test_a_tier_of_another_name_costs_an_unknown_amount(rig: MakeRig) -> None:
    made = rig([Reply(text="yes", usage=USAGE, tier="scale")], lane="standard")
    await made.complete(call())
    (attempt,) = made.account.attempts
    assert (attempt.served, attempt.cost) == ("unknown", None)
    assert attempt.charged == attempt.reserved
    assert tiers(made) == ["default"]


async def test_capacity_is_waited_for_within_one_call_and_costs_nothing(
    rig: MakeRig, clock: Clock
) -> None:
    made = rig([NO_CAPACITY] * 6 + [Reply(text="yes", usage=USAGE)])
    await made.complete(call())
    attempts = made.account.attempts
    # more than the tries that errors have
    assert [a.error for a in attempts] == ["NoCapacity"] * 6 + [None]
    assert {a.call for a in attempts} == {1}
    assert [a.cost for a in attempts[:6]] == [Decimal(0)] * 6
    assert len(clock.slept) == 6
    assert tiers(made) == ["flex"] * 7


async def test_after_its_time_a_call_takes_the_standard_tier_if_it_may(rig: MakeRig) -> None:
    made = rig(
        [NO_CAPACITY, Reply(text="yes", usage=USAGE)],
        lane="flex-then-standard",
        capacity_timeout=lambda: 0.0,
    )
    await made.complete(call())
    assert tiers(made) == ["flex", "default"]
    assert [(a.tier, a.served) for a in made.account.attempts] == [
        ("flex", None),
        ("standard", "standard"),
    ]
    assert made.account.cost == PRICES.cost(MODEL, USAGE)


async def test_a_call_that_lost_flex_does_not_return_to_it(rig: MakeRig) -> None:
    made = rig(
        [NO_CAPACITY, NO_CAPACITY, Reply(text="yes", usage=USAGE)],
        lane="flex-then-standard",
        capacity_timeout=lambda: 0.0,
    )
    # a 429 of the standard tier with these words is tried again there
    await made.complete(call())
    assert tiers(made) == ["flex", "default", "default"]


async def test_in_the_standard_tier_lack_of_capacity_is_an_error_like_others(rig: MakeRig) -> None:
    made = rig([NO_CAPACITY, Reply(text="yes", usage=USAGE)], lane="standard")
    await made.complete(call())
    assert tiers(made) == ["default", "default"]


async def test_without_the_standard_tier_the_provider_s_error_is_raised(rig: MakeRig) -> None:
    made = rig([NO_CAPACITY], capacity_timeout=lambda: 0.0)
    with pytest.raises(NoCapacity, match="flex-then-standard") as caught:
        await made.complete(call())
    assert caught.value.status == 429
    assert caught.value.usage == Usage()
    assert made.account.cost == 0


async def test_a_unit_gives_its_place_to_others_while_there_is_no_capacity(rig: MakeRig) -> None:
    made = rig([NO_CAPACITY], wait_timeout=0.0, requeued=True)
    with pytest.raises(HeadroomReserved) as caught:
        await made.complete(call())
    assert caught.value.scope == "capacity"
    assert caught.value.retry_after is not None


async def test_a_reply_of_one_tier_is_replayed_in_another(rig: MakeRig) -> None:
    stored: dict[str, Completion] = {}

    async def recall(key: str, /) -> Completion | None:
        return stored.get(key)

    first = rig([Reply(text="yes", usage=USAGE)], recall=recall)
    stored[call_key(call())] = await first.complete(call())
    second = rig([], lane="standard", recall=recall)
    assert (await second.complete(call())).served == "flex"
    assert not second.stub.requests


class Watched(LedgerJournal):
    """Notes the budget that is taken, after every change."""

    def __init__(self, ledger: RedisLedger, account: Account) -> None:
        super().__init__(ledger, account)
        self._watched = ledger
        self.taken: list[Decimal] = []

    async def open(self, opening: Opening) -> int:
        call = await super().open(opening)
        await self._look()
        return call

    async def close(self, attempt: Attempt, completion: Completion | None) -> None:
        await super().close(attempt, completion)
        await self._look()

    async def _look(self) -> None:
        day = next(one for one in await self._watched.balances() if one.scope is Scope.DAY)
        self.taken.append(day.spent + day.reserved)


async def test_tiers_on_one_cap_never_overshoot(
    rig: MakeRig, redis: Redis, redis_url: str, tenant: str
) -> None:
    """Calls in two tiers, some without capacity, race for the money of ten standard ones."""
    worst = PRICES.worst(MODEL, input_tokens=CallBound()(call()), output_tokens=300)
    cap = worst * 10
    await TenantStore(redis, redis_url).create(tenant, Limits(day=cap))
    ledger = RedisLedger(redis, redis_url, tenant=tenant)
    numbers = count()

    def answer(request: Recorded) -> Step:
        if request.json["service_tier"] == "flex" and next(numbers) % 3 == 0:
            return NO_CAPACITY
        return Reply(text="yes", usage=Usage(input=350, output=300))

    journal = Watched(ledger, Account())
    lanes = [
        rig(answer, journal=journal, lane=lane, wait_timeout=0.0).complete
        for lane in ("standard", "flex", "flex-then-standard")
    ]
    answered: list[str] = []
    refused = 0

    async def ask(complete: Complete) -> None:
        nonlocal refused
        try:
            answered.append((await complete(call())).served)
        except BudgetError:
            refused += 1

    async with anyio.create_task_group() as group:
        for complete in lanes * 20:
            group.start_soon(ask, complete)
    assert refused
    assert {"standard", "flex"} <= set(answered)
    assert max(journal.taken) <= cap
    day = next(one for one in await ledger.balances() if one.scope is Scope.DAY)
    charged = [
        PRICES.cost(MODEL, Usage(input=350, output=300), one) for one in ("standard", "flex")
    ]
    standard, flex = (one for one in charged if one is not None)
    assert day.reserved == 0
    assert day.spent == standard * answered.count("standard") + flex * answered.count("flex")
