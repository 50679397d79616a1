"""Tenants and their keys on a real Redis."""

from __future__ import annotations

from collections.abc import Awaitable
from datetime import timedelta
from decimal import Decimal
from typing import Any

import anyio
import pytest
from redis.asyncio import Redis

from posology.budget.ledger.redis import RedisLedger
from posology.budget.tenants.store import MAX_GRACE, Issued, TenantStore
from posology.errors import (
    BudgetExhausted,
    InvalidLimit,
    InvalidQuery,
    KeyRefused,
    ModelNotAllowed,
    PosologyError,
    StoreUnavailable,
    TenantDisabled,
    TenantExists,
    TenantNotFound,
)
from posology.store import keys
from posology.store.connection import connect
from posology.types import Limits, Scope
from tests.support.spending import reservation, settled

pytestmark = pytest.mark.anyio


@pytest.fixture
def redis_url(redis_url: str) -> str:
    """A database of these tests' own: much of what others leave ends by itself, while here all is compared."""
    return f"{redis_url}?db=1"


@pytest.fixture
async def store(redis: Redis, redis_url: str) -> TenantStore:
    return TenantStore(redis, redis_url)


async def refusal(work: Awaitable[object]) -> str:
    with pytest.raises(KeyRefused) as caught:
        await work
    return str(caught.value)


async def test_a_tenant_is_created_once_with_its_limits_and_a_key(
    store: TenantStore, tenant: str
) -> None:
    asked = Limits(
        day=Decimal("1.000000001"), job=Decimal(0), models=("openai:*",), tokens_per_minute=7
    )
    issued = await store.create(tenant, asked)
    assert issued.tenant == await store.get(tenant)
    assert issued.tenant.limits == asked
    assert not issued.tenant.disabled
    assert len(issued.tenant.keys) == 1
    assert issued.tenant.keys[0].expires is None
    assert issued.tenant.created == issued.tenant.changed == issued.tenant.keys[0].created
    assert await store.of_key(issued.key) == tenant
    assert issued.key not in repr(issued)
    with pytest.raises(TenantExists) as caught:
        await store.create(tenant, Limits(day=Decimal(9)))
    assert caught.value.tenant == tenant
    assert await store.get(tenant) == issued.tenant
    assert await store.of_key(issued.key) == tenant
    assert [one.name for one in await store.all()].count(tenant) == 1


async def test_of_many_who_create_it_one_does(redis_url: str, redis: Redis, tenant: str) -> None:
    made: list[Issued] = []
    refused: list[TenantExists] = []
    before = {key async for key in redis.scan_iter(match="posology:key:*", count=1_000)}

    async def create(day: int) -> None:
        client = connect(redis_url)
        try:
            made.append(
                await TenantStore(client, redis_url).create(tenant, Limits(day=Decimal(day)))
            )
        except TenantExists as error:
            refused.append(error)
        finally:
            await client.aclose()

    async with anyio.create_task_group() as group:
        for day in range(20):
            group.start_soon(create, day)
    assert (len(made), len(refused)) == (1, 19)
    found = await TenantStore(redis, redis_url).get(tenant)
    assert found.limits == made[0].tenant.limits
    assert len(found.keys) == 1
    after = {key async for key in redis.scan_iter(match="posology:key:*", count=1_000)}
    assert after - before == {keys.api_key(found.keys[0].id)}, "those who lost left nothing behind"
    assert await redis.ttl(keys.api_key(found.keys[0].id)) == -1


async def test_the_key_itself_is_nowhere_kept(
    store: TenantStore, redis: Redis, tenant: str
) -> None:
    issued = await store.create(tenant)
    secret = issued.key.rpartition("_")[2]
    looked = 0
    async for name in redis.scan_iter(match="*", count=1_000):
        kind = await redis.type(name)
        if kind not in ("hash", "string", "set"):
            continue
        content: Any = {
            "hash": redis.hgetall, "string": redis.get, "set": redis.smembers,
        }[kind](name)  # fmt: skip
        assert secret not in str((name, await content))
        looked += 1
    assert looked >= 3


async def test_limits_change_one_by_one_whoever_changes_others(
    store: TenantStore, tenant: str
) -> None:
    before = (await store.create(tenant, Limits(total=Decimal(3)))).tenant
    changes: list[tuple[str, Any]] = [
        ("day", Decimal(1)), ("month", Decimal(2)), ("calls", 4), ("models", ("openai:*",)),
        ("requests_per_minute", 5),
    ]  # fmt: skip

    async def change(name: str, value: Any) -> None:
        await store.limit(tenant, Limits(**{name: value}), only=[name])

    async with anyio.create_task_group() as group:
        for name, value in changes:
            group.start_soon(change, name, value)
    found = await store.get(tenant)
    assert found.limits == Limits(total=Decimal(3), **dict(changes))
    assert found.changed > before.changed
    assert found.created == before.created
    assert (await store.limit(tenant, Limits(), only=["day", "models"])).limits == Limits(
        total=Decimal(3), month=Decimal(2), calls=4, requests_per_minute=5
    )
    assert (await store.limit(tenant, Limits())).limits == Limits()


@pytest.mark.parametrize(
    "bad",
    [
        Limits(day=Decimal(-1)), Limits(month=Decimal("NaN")), Limits(total=Decimal("1e400")),
        Limits(job=Decimal("0.0000000001")), Limits(calls=0), Limits(models=()),
        Limits(models=("nobody:x",)), Limits(requests_per_minute=-1),
    ],
    ids=str,
)  # fmt: skip
async def test_of_bad_limits_nothing_is_written(
    store: TenantStore, redis: Redis, tenant: str, bad: Limits
) -> None:
    before = await _everything(redis)
    with pytest.raises(PosologyError):
        await store.create(tenant, bad)
    assert await _everything(redis) == before
    await store.create(tenant)
    before = await _everything(redis)
    with pytest.raises(PosologyError):
        await store.limit(tenant, bad)
    with pytest.raises(InvalidLimit, match="grace"):
        await store.rotate(tenant, grace=MAX_GRACE + 1)
    with pytest.raises(InvalidLimit, match="grace"):
        await store.rotate(tenant, grace=float("nan"))
    assert await _everything(redis) == before


@pytest.mark.parametrize("name", ["", "a b", "a}b", "{", "a" * 65, "é", "a\n", "-a", "../x", "a:b"])
async def test_no_tenant_has_such_a_name(store: TenantStore, redis: Redis, name: str) -> None:
    before = await _everything(redis)
    for work in (store.create, store.get, store.disable, store.enable, store.rotate):
        with pytest.raises(InvalidQuery) as caught:
            await work(name)
        assert caught.value.field == "tenant"
    with pytest.raises(InvalidQuery):
        await store.limit(name, Limits())
    assert await _everything(redis) == before


async def test_what_was_not_created_is_not_there(
    store: TenantStore, redis: Redis, tenant: str
) -> None:
    before = await _everything(redis)
    for work in (store.get, store.disable, store.enable, store.rotate):
        with pytest.raises(TenantNotFound) as caught:
            await work(tenant)
        assert caught.value.tenant == tenant
    with pytest.raises(TenantNotFound):
        await store.limit(tenant, Limits(day=Decimal(1)))
    assert await _everything(redis) == before


async def test_the_scripts_of_money_obey_the_record(
    store: TenantStore, redis: Redis, redis_url: str, tenant: str
) -> None:
    ledger = RedisLedger(redis, redis_url, tenant=tenant)
    await store.create(tenant, Limits(day=Decimal("0.5"), models=("openai:gpt-4o-mini",)))
    with pytest.raises(BudgetExhausted) as caught:
        await ledger.reserve(reservation(Decimal("0.500000001")))
    assert (caught.value.scope, caught.value.cap) == ("day", Decimal("0.5"))
    with pytest.raises(ModelNotAllowed):
        await ledger.reserve(reservation(Decimal("0.1"), model="openai:gpt-4o"))
    first = reservation(Decimal("0.5"))
    await ledger.reserve(first)
    await store.disable(tenant)
    with pytest.raises(TenantDisabled):
        await ledger.reserve(reservation(Decimal(0), own="a2"))
    await ledger.settle(settled(first, Decimal("0.3")))
    await store.enable(tenant)
    await ledger.reserve(reservation(Decimal("0.2"), own="a3"))
    # below what is spent: allowed, and nothing more is spent
    await store.limit(tenant, Limits(day=Decimal("0.1")), only=["day"])
    day = (await ledger.balances())[0]
    assert (day.scope, day.cap, day.left) == (Scope.DAY, Decimal("0.1"), Decimal(0))
    with pytest.raises(BudgetExhausted):
        await ledger.reserve(reservation(Decimal("0.000000001"), own="a4"))
    await store.limit(tenant, Limits(), only=["day"])
    await ledger.reserve(reservation(Decimal(1_000), own="a4"))


async def test_a_rotation_ends_the_other_keys_at_once(
    store: TenantStore, redis: Redis, tenant: str
) -> None:
    first = await store.create(tenant)
    second = await store.rotate(tenant)
    assert [key.id for key in second.tenant.keys] == [second.key.split("_")[1]]
    assert await store.of_key(second.key) == tenant
    await refusal(store.of_key(first.key))
    assert not await redis.exists(keys.api_key(first.key.split("_")[1]))


async def test_during_grace_both_are_accepted_and_no_longer(
    store: TenantStore, redis: Redis, tenant: str
) -> None:
    first = await store.create(tenant)
    second = await store.rotate(tenant, grace=30)
    old, new = second.tenant.keys
    assert new.expires is None
    assert old.expires is not None
    assert timedelta(seconds=29) < old.expires - new.created <= timedelta(seconds=30)
    assert await store.of_key(first.key) == await store.of_key(second.key) == tenant
    # none that ends earlier gets more time
    third = await store.rotate(tenant, grace=3_000)
    assert third.tenant.keys[0].expires == old.expires
    assert len(third.tenant.keys) == 3
    assert await store.of_key(first.key) == tenant
    fourth = await store.rotate(tenant)
    for issued in (first, second, third):
        await refusal(store.of_key(issued.key))
    assert await store.of_key(fourth.key) == tenant
    assert await redis.hlen(f"{keys.prefix(tenant)}keys") == 1


async def test_a_key_ends_when_its_grace_is_over(
    redis: Redis, redis_url: str, store: TenantStore, tenant: str
) -> None:
    first = await store.create(tenant)
    second = await store.rotate(tenant, grace=60)
    seconds, _ = await redis.time()

    def later(by: int) -> TenantStore:
        return TenantStore(redis, redis_url, clock=lambda: (seconds + by) * 1000)

    assert await later(58).of_key(first.key) == tenant
    await refusal(later(62).of_key(first.key))
    assert await later(62).of_key(second.key) == tenant
    assert [key.id for key in (await later(62).get(tenant)).keys] == [second.key.split("_")[1]]
    assert 50 < await redis.ttl(keys.api_key(first.key.split("_")[1])) <= 60


async def test_of_many_rotations_one_key_is_left(redis_url: str, tenant: str) -> None:
    client = connect(redis_url)
    store = TenantStore(client, redis_url)
    made = [await store.create(tenant)]

    async def rotate() -> None:
        made.append(await store.rotate(tenant))

    try:
        async with anyio.create_task_group() as group:
            for _ in range(20):
                group.start_soon(rotate)
        accepted = []
        for issued in made:
            try:
                accepted.append(await store.of_key(issued.key))
            except KeyRefused:
                continue
        assert accepted == [tenant]
    finally:
        await client.aclose()


async def test_refusals_do_not_tell_which_keys_there_are(store: TenantStore, tenant: str) -> None:
    issued = await store.create(tenant)
    other = await store.create(f"{tenant}x")
    start, own, secret = issued.key.split("_")
    ended = issued.key
    issued = await store.rotate(tenant)
    start, own, secret = issued.key.split("_")
    await store.disable(tenant)
    told = {
        await refusal(store.of_key(text))
        for text in (
            "", "psl_", "nonsense", ended, f"{start}_{own}_{'0' * 48}", f"{start}_{'0' * 16}_{secret}",
            f"{start}_{other.key.split('_')[1]}_{secret}", issued.key.upper(), f"{issued.key} ", "\u0661",
        )
    }  # fmt: skip
    assert len(told) == 1
    # only who has the key learns that the tenant is disabled
    with pytest.raises(TenantDisabled):
        await store.of_key(issued.key)
    await store.enable(tenant)
    assert await store.of_key(issued.key) == tenant


@pytest.mark.parametrize(
    ("script", "arguments", "said"),
    [
        ("create_tenant", ["k1", "{}"], "created"),
        ("change_tenant", ['{"day": "7"}'], "changed"),
        ("rotate_key", ["k2", 0], None),
    ],
)
async def test_a_script_that_runs_twice_does_nothing_more(
    store: TenantStore,
    redis: Redis,
    tenant: str,
    script: str,
    arguments: list[Any],
    said: str | None,
) -> None:
    prefix = keys.prefix(tenant)
    if script != "create_tenant":
        await store.create(tenant)
    clocked = TenantStore(redis, "", clock=lambda: 1_800_000_000_000)
    first = await clocked._run(script, prefix, *arguments)
    before = await _everything(redis)
    again = await clocked._run(script, prefix, *arguments)
    assert await _everything(redis) == before
    assert (first == again == said) if said else (first[0] == again[0] == "rotated")


async def test_without_redis_nothing_is_known(tenant: str) -> None:
    url = "redis://:secret@127.0.0.1:1/0"
    client = connect(url, tries=0)
    store = TenantStore(client, url)
    try:
        for work in (
            store.create(tenant), store.get(tenant), store.all(), store.disable(tenant),
            store.rotate(tenant), store.of_key(f"psl_{'0' * 16}_{'0' * 48}"),
        ):  # fmt: skip
            with pytest.raises(StoreUnavailable) as caught:
                await work
            assert "secret" not in str(caught.value)
    finally:
        await client.aclose()


async def _everything(redis: Redis) -> dict[str, Any]:
    """All that the tests' Redis holds of tenants and keys."""
    found: dict[str, Any] = {}
    async for name in redis.scan_iter(match="posology:*", count=1_000):
        kind = await redis.type(name)
        if kind == "hash":
            found[name] = await redis.hgetall(name)
        elif kind == "set":
            found[name] = await redis.smembers(name)
        else:
            found[name] = kind
    return found
