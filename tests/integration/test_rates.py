"""A tenant's minute on a real Redis: what is granted, to how many, and what stays granted while a call waits."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Any

import anyio
import pytest
from redis.asyncio import Redis

from posology.budget.tenants.meter import Meters, RedisMeter, until_room
from posology.errors import (
    BudgetExhausted,
    CallTooLarge,
    HeadroomReserved,
    PosologyError,
    ProviderOverloaded,
    StoreUnavailable,
)
from posology.llm.admission import Headroom, RateLimit
from posology.llm.calls import CallState
from posology.llm.retry import Retry, RetryPolicy
from posology.seams import Complete
from posology.store import keys
from posology.store.connection import connect
from posology.testing.model import ScriptedModel
from posology.types import Call, Completion, Limits, Scope
from tests.support.adapters import attempting
from tests.support.calls import call_to

pytestmark = pytest.mark.anyio


def a_call(text: str = "Does it help?", *, max_tokens: int = 100) -> Call:
    return call_to("openai:gpt-4o-mini", text, max_tokens=max_tokens)


def fifty(call: Call) -> int:
    return 50 * len(call.messages)


@dataclass(slots=True)
class Budget:
    """A ledger that has no money yet for the first so many tries, then sends."""

    tries: int
    error: PosologyError | None = None
    inner: Complete = field(default_factory=lambda: ScriptedModel(lambda _: "yes"))
    asked: int = 0
    sent: int = 0

    async def __call__(self, call: Call) -> Completion:
        self.asked += 1
        if self.asked <= self.tries:
            raise HeadroomReserved("wait", scope="day", asked=Decimal(1), place=0)
        if self.error is not None:
            raise self.error
        self.sent += 1
        return await self.inner(call)


async def limit(redis: Redis, tenant: str, **fields: int) -> None:
    mapping: Any = fields
    await redis.hset(f"{keys.prefix(tenant)}tenant", mapping=mapping)


async def keys_of(redis: Redis, tenant: str) -> list[str]:
    return [name for name in map(str, await redis.keys("*")) if tenant in name]


def rates(
    redis: Redis, url: str, tenant: str, inner: Complete | None = None, **options: Any
) -> RateLimit:
    meter = Meters(redis, url).of(tenant)
    sending = inner or ScriptedModel(lambda _: "yes")
    return RateLimit(attempting(sending), meter=meter, bound=fifty, **options)


async def granted(one: RateLimit, calls: int, *, make: Callable[[], Call] = a_call) -> int:
    """How many of some calls at once are sent."""
    passed = 0

    async def ask() -> None:
        nonlocal passed
        try:
            await one(make(), CallState())
        except HeadroomReserved:
            return
        passed += 1

    async with anyio.create_task_group() as group:
        for _ in range(calls):
            group.start_soon(ask)
    return passed


async def test_exactly_as_many_requests_pass_as_the_minute_has(
    redis: Redis, redis_url: str, tenant: str
) -> None:
    """Threads with loops and connections of their own, as processes have."""
    await limit(redis, tenant, rpm=23)
    counts: list[int] = []

    async def race() -> None:
        async with connect(redis_url) as own:
            asking = rates(own, redis_url, tenant)
            counts.append(await granted(asking, 40))

    threads = [threading.Thread(target=anyio.run, args=(race,)) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        await anyio.to_thread.run_sync(thread.join)
    assert len(counts) == 4
    assert sum(counts) == 23
    assert await redis.llen(f"{keys.prefix(tenant)}rates:requests") == 23


async def test_processes_that_race_for_requests_and_tokens_get_no_more_than_there_is(
    redis: Redis, redis_url: str, tenant: str
) -> None:
    await limit(redis, tenant, rpm=20, tpm=1_500)
    # each has a lock of its own, as processes have
    several = [rates(redis, redis_url, tenant) for _ in range(8)]
    counts: list[int] = []

    async def one(each: RateLimit) -> None:
        counts.append(await granted(each, 10))

    async with anyio.create_task_group() as group:
        for each in several:
            group.start_soon(one, each)
    # 150 tokens each: they are what is short
    assert sum(counts) == 10
    assert await redis.get(f"{keys.prefix(tenant)}rates:{{tokens}}") == "1500"
    assert await redis.llen(f"{keys.prefix(tenant)}rates:requests") == 10


async def test_tokens_are_counted_by_their_bounds(
    redis: Redis, redis_url: str, tenant: str
) -> None:
    await limit(redis, tenant, tpm=1_000)
    # 150 tokens each
    assert await granted(rates(redis, redis_url, tenant), 20) == 6
    # what fits still passes, when those who wait have left
    await redis.delete(f"{keys.prefix(tenant)}rates:queue")
    small = rates(redis, redis_url, tenant)
    assert await granted(small, 3, make=lambda: a_call(max_tokens=1)) == 1


async def test_no_request_is_taken_where_the_tokens_are_used_up(
    redis: Redis, redis_url: str, tenant: str
) -> None:
    await limit(redis, tenant, rpm=10, tpm=300)
    assert await granted(rates(redis, redis_url, tenant), 2) == 2
    with pytest.raises(HeadroomReserved) as refused:
        await rates(redis, redis_url, tenant)(a_call(), CallState())
    assert (refused.value.scope, refused.value.asked) == ("tokens", None)
    assert await redis.llen(f"{keys.prefix(tenant)}rates:requests") == 2


async def test_no_tokens_are_taken_where_the_requests_are_used_up(
    redis: Redis, redis_url: str, tenant: str
) -> None:
    await limit(redis, tenant, rpm=1, tpm=1_000)
    assert await granted(rates(redis, redis_url, tenant), 1) == 1
    with pytest.raises(HeadroomReserved) as refused:
        await rates(redis, redis_url, tenant)(a_call(), CallState())
    assert refused.value.scope == "requests"
    assert refused.value.retry_after == pytest.approx(60, abs=5)
    assert await redis.get(f"{keys.prefix(tenant)}rates:{{tokens}}") == "150"


async def test_a_call_that_the_minute_never_has_room_for_is_refused_at_once(
    redis: Redis, redis_url: str, tenant: str
) -> None:
    await limit(redis, tenant, tpm=100)
    with pytest.raises(CallTooLarge) as refused:
        await rates(redis, redis_url, tenant)(a_call(max_tokens=51), CallState())
    assert (refused.value.tokens, refused.value.limit) == (101, 100)
    assert await granted(rates(redis, redis_url, tenant), 1, make=lambda: a_call(max_tokens=50))


async def test_who_has_no_limits_touches_nothing(redis: Redis, redis_url: str, tenant: str) -> None:
    assert await granted(rates(redis, redis_url, tenant), 5) == 5
    assert await redis.keys(f"{keys.prefix(tenant)}*") == []


async def test_all_keys_share_the_tenants_slot_and_are_forgotten(
    redis: Redis, redis_url: str, tenant: str
) -> None:
    await limit(redis, tenant, rpm=1, tpm=1_000)
    await granted(rates(redis, redis_url, tenant), 3)
    prefix = keys.prefix(tenant)
    found = {name.removeprefix(prefix) for name in await keys_of(redis, tenant)}
    assert found == {
        "tenant", "rates:requests", "rates:{tokens}", "rates:queue", "rates:queue:seen"
    }  # fmt: skip
    assert all(name.startswith(prefix) for name in await keys_of(redis, tenant))
    for name in found - {"tenant"}:
        assert 0 < await redis.ttl(prefix + name) <= 120, name


async def test_a_changed_limit_counts_what_was_taken_before(
    redis: Redis, redis_url: str, tenant: str
) -> None:
    for rpm, tpm, passed in ((2, 10_000, 2), (5, 10_000, 3), (100, 900, 1), (3, 10_000, 0)):
        await limit(redis, tenant, rpm=rpm, tpm=tpm)
        await redis.delete(f"{keys.prefix(tenant)}rates:queue")
        # a reader of its own knows no older limits
        assert await granted(rates(redis, redis_url, tenant), 10) == passed, (rpm, tpm)


async def test_what_was_granted_is_kept_while_the_call_waits_for_money(
    redis: Redis, redis_url: str, tenant: str
) -> None:
    await limit(redis, tenant, rpm=10, tpm=10_000)
    budget = Budget(tries=5)
    waiting = Headroom(rates(redis, redis_url, tenant, budget), wait_timeout=20)
    state = CallState()
    await waiting(a_call(), state)
    assert (budget.asked, budget.sent) == (6, 1)
    assert await redis.llen(f"{keys.prefix(tenant)}rates:requests") == 1
    # the next attempt at the same call is a request of its own
    await waiting(a_call(), state)
    assert await redis.llen(f"{keys.prefix(tenant)}rates:requests") == 2
    assert await redis.get(f"{keys.prefix(tenant)}rates:{{tokens}}") == "300"


async def test_what_was_granted_outlasts_being_handed_back(
    redis: Redis, redis_url: str, tenant: str
) -> None:
    """A unit that waits for money is taken up again and again, by any process: it takes from the minute once."""
    await limit(redis, tenant, rpm=10, tpm=10_000)
    budget = Budget(tries=3)
    for _ in range(4):
        one = rates(redis, redis_url, tenant, budget, owner="job_1|answer")
        with suppress(HeadroomReserved):
            await one(a_call(), CallState())
    assert (budget.asked, budget.sent) == (4, 1)
    assert await redis.llen(f"{keys.prefix(tenant)}rates:requests") == 1
    # what was kept is one attempt's
    await rates(redis, redis_url, tenant, budget, owner="job_1|answer")(a_call(), CallState())
    assert await redis.llen(f"{keys.prefix(tenant)}rates:requests") == 2
    assert not [name for name in await keys_of(redis, tenant) if ":granted:" in name]


class Overtaken(RedisMeter):
    """Another process takes the minute's last request after this one has looked for room."""

    async def _hit(
        self, wanted: Mapping[Scope, int], limits: Limits
    ) -> tuple[list[Scope], Scope | None]:
        return await self._hit_each(wanted, limits)


async def test_tokens_that_were_granted_without_a_request_are_kept(
    redis: Redis, redis_url: str, tenant: str
) -> None:
    await limit(redis, tenant, rpm=1, tpm=10_000)
    assert await granted(rates(redis, redis_url, tenant), 1) == 1
    meter = Overtaken(redis, redis_url, tenant=tenant)
    sending = attempting(ScriptedModel(lambda _: "yes"))
    for _ in range(3):
        # a unit that is parked and taken up again, each time by another process
        late = RateLimit(sending, meter=meter, bound=fifty, owner="job_1|answer")
        with pytest.raises(HeadroomReserved):
            await late(a_call(), CallState())
    # of the first call and, once, of this one
    assert await redis.get(f"{keys.prefix(tenant)}rates:{{tokens}}") == "300"


async def test_a_grant_is_none_after_its_minute(redis: Redis, redis_url: str, tenant: str) -> None:
    await limit(redis, tenant, rpm=10)
    now = 0.0
    one = rates(redis, redis_url, tenant, Budget(tries=2), clock=lambda: now)
    taken, state = [], CallState()
    for at in (0.0, 59.0, 61.0):
        now = at
        with pytest.raises(HeadroomReserved) if at < 60 else anyio.CancelScope():
            await one(a_call(), state)
        taken.append(await redis.llen(f"{keys.prefix(tenant)}rates:requests"))
    assert taken == [1, 1, 2]


async def test_every_attempt_takes_its_share(redis: Redis, redis_url: str, tenant: str) -> None:
    await limit(redis, tenant, rpm=10)
    busy = ProviderOverloaded("later", provider="openai", model="openai:gpt-4o-mini", status=503)
    model = ScriptedModel([busy, busy, "yes"])
    policy = RetryPolicy(attempts=3, base=0.001, deadline=10)
    await Retry(rates(redis, redis_url, tenant, model), policy=policy)(a_call())
    assert await redis.llen(f"{keys.prefix(tenant)}rates:requests") == 3


async def test_what_is_refused_for_good_keeps_no_grant(
    redis: Redis, redis_url: str, tenant: str
) -> None:
    await limit(redis, tenant, rpm=10)
    spent = BudgetExhausted(
        "no", scope="day", cap=Decimal(1), spent=Decimal(1), reserved=Decimal(0), asked=Decimal(1),
        resets=None,
    )  # fmt: skip
    state = CallState()
    with pytest.raises(BudgetExhausted):
        await rates(redis, redis_url, tenant, Budget(tries=0, error=spent))(a_call(), state)
    assert state.granted == {}


async def test_calls_are_served_in_the_order_in_which_they_came(
    redis: Redis, redis_url: str, tenant: str
) -> None:
    """A large call is not overtaken by small ones for ever."""
    await limit(redis, tenant, tpm=200)
    assert await granted(rates(redis, redis_url, tenant), 1) == 1
    large, small = (rates(redis, redis_url, tenant, owner=name) for name in ("large", "small"))
    with pytest.raises(HeadroomReserved) as first:
        await large(a_call(), CallState())
    assert (first.value.scope, first.value.place) == ("tokens", 0)
    for _ in range(2):
        # there would be room for it
        with pytest.raises(HeadroomReserved) as second:
            await small(a_call(max_tokens=0), CallState())
        assert (second.value.scope, second.value.place) == ("turn", 1)
    await redis.delete(f"{keys.prefix(tenant)}rates:{{tokens}}")
    await large(a_call(), CallState())
    assert await redis.zcard(f"{keys.prefix(tenant)}rates:queue") == 1
    await small(a_call(max_tokens=0), CallState())
    assert await redis.zcard(f"{keys.prefix(tenant)}rates:queue") == 0


async def test_a_store_that_is_away_lets_nothing_pass(tenant: str) -> None:
    sent = ScriptedModel(lambda _: "yes")
    async with connect("redis://127.0.0.1:1/0", tries=0) as away:
        with pytest.raises(StoreUnavailable):
            await rates(away, "redis://127.0.0.1:1/0", tenant, sent)(a_call(), CallState())
    assert sent.calls == []


async def test_a_store_that_goes_away_between_limits_and_take_lets_nothing_pass(
    redis: Redis, redis_url: str, tenant: str
) -> None:
    await limit(redis, tenant, rpm=10)
    sent = ScriptedModel(lambda _: "yes")

    async with connect("redis://127.0.0.1:1/0", tries=0) as away:

        class HalfAway(RedisMeter):
            async def limits(self) -> Any:
                return await Meters(redis, redis_url).of(tenant).limits()

        meter = HalfAway(away, "redis://127.0.0.1:1/0", tenant=tenant)
        with pytest.raises(StoreUnavailable):
            await RateLimit(attempting(sent), meter=meter, bound=fifty)(a_call(), CallState())
    assert sent.calls == []


async def test_another_tenants_minute_is_its_own(redis: Redis, redis_url: str, tenant: str) -> None:
    other = f"{tenant}-2"
    await limit(redis, tenant, rpm=1)
    await limit(redis, other, rpm=2)
    assert await granted(rates(redis, redis_url, tenant), 5) == 1
    assert await granted(rates(redis, redis_url, other), 5) == 2


@pytest.mark.parametrize(
    ("cost", "previous", "expires", "current", "ends", "seconds"),
    [
        # this window alone is full: it has to end, and then to fade
        (100, 0, 0.0, 1000, 119.0, 65.0),
        (1000, 0, 0.0, 1000, 119.0, 119.0),
        # the last one fades: 400 of 600 may weigh still
        (500, 600, 45.0, 100, 105.0, 5.0),
        (10, 600, 10.0, 100, 70.0, 0.0),
    ],
)
def test_the_time_until_there_is_room(
    cost: int, previous: int, expires: float, current: int, ends: float, seconds: float
) -> None:
    found = until_room(cost, 1000, previous, expires, current, ends)
    assert found == pytest.approx(seconds)


async def test_room_comes_when_it_was_told(redis: Redis, redis_url: str, tenant: str) -> None:
    """As if most of the minute had passed: the library's own keys, set back."""
    await limit(redis, tenant, tpm=1_000)
    window = f"{keys.prefix(tenant)}rates:{{tokens}}"
    began = time.monotonic()
    # 9 s after its beginning
    await redis.set(window, 160, px=111_000)
    await redis.set(f"{window}/-1", 1_000, px=51_000)
    one = rates(redis, redis_url, tenant, owner="me")
    started = time.monotonic()
    with pytest.raises(HeadroomReserved) as refused:
        await one(a_call(max_tokens=0), CallState())
    told = refused.value.retry_after
    assert told is not None
    # of the last minute's 1,000 tokens 790 may weigh still
    room = 51 - 60 * 0.79
    assert room - (time.monotonic() - began) - 0.3 < told < room + 0.3
    await Headroom(one, wait_timeout=60)(a_call(max_tokens=0), CallState())
    assert told - 0.3 < time.monotonic() - started < told + 30
