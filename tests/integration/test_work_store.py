"""Leased work on a real Redis, by a clock that the test sets: leases, tokens, limits, isolation, and the ends of items."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Awaitable, Callable
from dataclasses import replace

import anyio
import pytest
from redis.asyncio import Redis

from orchestrator.work.items import Claim, Limits, NoRoom, Sweeping, of_tenants
from orchestrator.work.store import WorkStore

pytestmark = pytest.mark.anyio

#: seconds
LEASE = 10.0
RULES = Sweeping(lease=LEASE)


class Clock:
    """Milliseconds that pass when they are told to."""

    def __init__(self) -> None:
        self.now = 1_000_000

    def __call__(self) -> int:
        return self.now

    def pass_by(self, seconds: float) -> None:
        self.now += int(seconds * 1000)


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def store(redis: Redis, redis_url: str, clock: Clock) -> WorkStore:
    return WorkStore(redis, redis_url, of_tenants("test"), clock=clock)


async def claimed(store: WorkStore, tenant: str, name: str = "") -> Claim:
    claim = await store.claim(tenant, name, lease=LEASE)
    assert claim is not None
    return claim


async def lapse(store: WorkStore, clock: Clock, group: str, rules: Sweeping = RULES) -> int:
    """Let a lease pass, with sweeps as processes make them; return the number of items that returned."""
    count = 0
    for _ in range(5):
        clock.pass_by(rules.lease / 4)
        count += (await store.sweep(group, rules))[0]
    return count


async def state_of(store: WorkStore, tenant: str, name: str) -> str | None:
    item = await store.get(tenant, name)
    return None if item is None else item.state


async def test_each_item_has_one_holder_and_the_oldest_is_first(
    store: WorkStore, tenant: str
) -> None:
    names = [f"{n:02x}" for n in range(8)]
    for name in names:
        assert await store.offer(tenant, name, f"record {name}") == name
        await store.offer(tenant, name, "again")
    won: list[str] = []

    async def race() -> None:
        claim = await store.claim(tenant, lease=LEASE)
        if claim is not None:
            won.append(claim.name)
            assert (claim.record, claim.runs) == (f"record {claim.name}", 1)

    async with anyio.create_task_group() as group:
        for _ in range(24):
            group.start_soon(race)
    assert sorted(won) == names
    assert await store.totals(tenant) == {"waiting": 0, "held": 8, "bytes": 0}


async def test_items_keep_their_place(store: WorkStore, tenant: str) -> None:
    for name in "abc":
        await store.offer(tenant, name, "")
    first = await claimed(store, tenant)
    assert await store.release(first, record="later")
    again = await claimed(store, tenant)
    # a run that does not count leaves no trace
    assert (again.name, again.record, again.runs) == ("a", "later", 1)
    assert (await claimed(store, tenant)).name == "b"
    assert (await claimed(store, tenant, "c")).name == "c"
    assert await store.claim(tenant, lease=LEASE) is None


async def test_a_group_has_so_many_holders(store: WorkStore, tenant: str) -> None:
    for name in "abc":
        await store.offer(tenant, name, "")
    claims: list[Claim] = []

    async def race() -> None:
        claim = await store.claim(tenant, lease=LEASE, at_once=1)
        if claim is not None:
            claims.append(claim)

    async with anyio.create_task_group() as group:
        for _ in range(8):
            group.start_soon(race)
    assert [claim.name for claim in claims] == ["a"]
    assert await store.finish(claims[0], "done")
    assert (await claimed(store, tenant)).name == "b"


@pytest.mark.parametrize(
    ("limits", "most"),
    [(Limits(items=3), 3), (Limits(bytes=35), 3), (Limits(items=5, bytes=20), 2)],
)
async def test_limits_hold_under_concurrent_offers(
    store: WorkStore, tenant: str, limits: Limits, most: int
) -> None:
    results: Counter[bool] = Counter()

    async def race(n: int) -> None:
        try:
            await store.offer(tenant, f"{n:02x}", "", size=10, limits=limits)
        except NoRoom:
            results[False] += 1
        else:
            results[True] += 1

    async with anyio.create_task_group() as group:
        for n in range(20):
            group.start_soon(race, n)
    assert results == {True: most, False: 20 - most}
    # another tenant has its own, and an ended item needs no place
    await store.offer(f"{tenant}-b", "00", "", size=10, limits=limits)
    assert await store.finish(await claimed(store, tenant), "done", size=0)
    await store.offer(tenant, "ff", "", size=10, limits=limits)


async def test_what_is_offered_twice_is_one_item_until_it_ends(
    store: WorkStore, tenant: str
) -> None:
    full = Limits(items=1)
    assert await store.offer(tenant, "a", "", key="k", limits=full) == "a"
    # it needs no room for itself
    assert await store.offer(tenant, "b", "", key="k", limits=full) == "a"
    found = await store.of_key(tenant, "k")
    assert found is not None
    assert found.name == "a"
    assert await store.of_key(f"{tenant}-b", "k") is None
    with pytest.raises(NoRoom):
        await store.offer(tenant, "b", "", key="other", limits=full)
    assert await store.finish(await claimed(store, tenant), "done")
    assert await store.offer(tenant, "b", "", key="k") == "b"
    assert await state_of(store, tenant, "a") == "done"
    # the key is the new one's
    await store.forget(tenant, ["a"])
    found = await store.of_key(tenant, "k")
    assert found is not None
    assert found.name == "b"


async def test_an_ended_item_is_offered_again_with_its_rows(store: WorkStore, tenant: str) -> None:
    async def offer(name: str, again: str) -> str:
        return await store.offer(tenant, name, "r", key="k", size=3, again=again)

    await offer("a", "*")
    claim = await claimed(store, tenant)
    assert await store.append(claim, 0, ["one", "two"])
    assert await store.finish(claim, "failed", size=1)
    assert (await store.totals(tenant))["bytes"] == 7
    # requests that do not know it find it
    assert await offer("b", "*") == "a"
    assert await offer("a", "succeeded") == "a"
    assert await state_of(store, tenant, "a") == "failed"
    assert await offer("a", "*") == "a"
    assert (await store.totals(tenant))["bytes"] == 9
    again = await claimed(store, tenant)
    assert (again.name, again.runs) == ("a", 1)
    assert await store.rows(tenant, "a") == ["one", "two"]
    assert await store.finish(again, "succeeded", size=0, drop_rows=True)
    assert await store.rows(tenant, "a") == []
    assert (await store.totals(tenant))["bytes"] == 0


async def test_a_lease_that_ends_gives_the_item_to_another(
    store: WorkStore, tenant: str, clock: Clock
) -> None:
    await store.offer(tenant, "a", "r")
    slow = await claimed(store, tenant)
    clock.pass_by(LEASE - 1)
    assert await store.heartbeat(slow, lease=LEASE, record="half") == "held"
    assert await store.sweep(tenant, RULES) == (0, [])
    assert await store.claim(tenant, lease=LEASE) is None
    assert await lapse(store, clock, tenant) == 1
    other = await claimed(store, tenant)
    assert (other.record, other.runs) == ("half", 2)
    await store.append(other, 0, ["theirs"])
    # nothing that the slow process does changes the item
    assert await store.heartbeat(slow, lease=LEASE, record="mine") == "lost"
    assert not await store.append(slow, 1, ["mine"])
    assert not await store.release(slow, record="mine")
    assert not await store.release(slow, cause="faults", most=1, error="mine")
    assert not await store.finish(slow, "done", record="mine", drop_rows=True)
    item = await store.get(tenant, "a")
    assert item is not None
    assert (item.state, item.record, item.error) == ("held", "half", None)
    assert await store.rows(tenant, "a") == ["theirs"]
    assert await store.finish(other, "done", record="end")
    assert not await store.finish(slow, "failed", record="mine")
    assert await state_of(store, tenant, "a") == "done"


@pytest.mark.parametrize("act", ["heartbeat", "append", "finish"])
async def test_a_lease_that_ended_while_redis_was_away_goes_on_if_no_other_claims(
    store: WorkStore, tenant: str, clock: Clock, act: str
) -> None:
    """Else all processes would lose their work, and replies that were paid for, to a restart of Redis."""
    await store.offer(tenant, "a", "r")
    claim = await claimed(store, tenant)
    assert await lapse(store, clock, tenant) == 1
    if act == "append":
        assert await store.append(claim, 0, ["paid"])
    if act == "finish":
        assert await store.finish(claim, "done")
        return
    assert await store.heartbeat(claim, lease=LEASE) == "held"
    assert await store.claim(tenant, lease=LEASE) is None
    assert await store.sweep(tenant, RULES) == (0, [])
    # once it was returned, the claim is over
    assert await store.release(claim)
    assert await store.heartbeat(claim, lease=LEASE) == "lost"


async def test_every_change_may_be_repeated(redis: Redis, redis_url: str, tenant: str) -> None:
    """The client repeats a command whose reply was lost."""

    class Twice(WorkStore):
        async def _run(self, script: str, group: str, *arguments: str | int) -> list[str]:
            first = await super()._run(script, group, *arguments)
            second = await super()._run(script, group, *arguments)
            if script in ("offer", "claim", "heartbeat", "append", "finish"):
                assert second == first, script
            return second

    store = Twice(redis, redis_url, of_tenants("test"))
    tight = Limits(items=1, bytes=7)
    assert await store.offer(tenant, "a", "r", key="k", size=7, limits=tight) == "a"
    claim = await claimed(store, tenant)
    assert claim.runs == 1
    assert await store.append(claim, 0, ["one"])
    assert await store.append(claim, 1, ["two", "three"])
    assert await store.rows(tenant, "a") == ["one", "two", "three"]
    assert await store.heartbeat(claim, lease=LEASE) == "held"
    await store.release(claim)
    claim = await claimed(store, tenant)
    assert claim.runs == 1
    assert await store.finish(claim, "failed", size=2)
    assert await store.totals(tenant) == {"waiting": 0, "held": 0, "failed": 1, "bytes": 13}
    assert await store.offer(tenant, "a", "r", key="k", size=3, again="*", limits=tight) == "a"
    assert await store.totals(tenant) == {"waiting": 1, "held": 0, "failed": 0, "bytes": 14}
    await store.cancel(tenant, "a")
    await store.forget(tenant, ["a"])
    assert await store.totals(tenant) == {}


async def test_after_an_outage_of_redis_holders_have_time_for_a_heartbeat(
    store: WorkStore, tenant: str, clock: Clock
) -> None:
    for name in "ab":
        await store.offer(tenant, name, "r")
    lives, _ = await claimed(store, tenant), await claimed(store, tenant)
    clock.pass_by(600)
    # another process is the first one that is back
    assert await store.sweep(tenant, RULES) == (0, [])
    assert await store.claim(tenant, lease=LEASE) is None
    assert await store.heartbeat(lives, lease=LEASE) == "held"
    clock.pass_by(LEASE / 4)
    assert await store.sweep(tenant, RULES) == (0, [])
    clock.pass_by(LEASE / 4 + 1)
    assert await store.sweep(tenant, RULES) == (1, [])
    assert (await claimed(store, tenant)).name == "b"


async def test_failures_are_counted_by_their_cause(store: WorkStore, tenant: str) -> None:
    await store.offer(tenant, "a", "r")
    for cause, state in (("x", "waiting"), ("y", "waiting"), ("x", "failed")):
        claim = await claimed(store, tenant)
        assert await store.release(claim, cause=cause, most=2, error=f"of {cause}")
        assert await state_of(store, tenant, "a") == state
    item = await store.get(tenant, "a")
    assert item is not None
    assert (item.error, item.cause, item.runs) == ("of x", "x", 3)
    assert await store.offer(tenant, "a", "r", again="failed") == "a"
    assert (await claimed(store, tenant)).runs == 1


async def test_what_kills_its_holders_is_given_up(
    store: WorkStore, tenant: str, clock: Clock
) -> None:
    rules = replace(RULES, deaths=3, why="three died")
    await store.offer(tenant, "a", "r")
    for run in range(1, 4):
        assert (await claimed(store, tenant)).runs == run
        assert await lapse(store, clock, tenant, rules) == 1
    item = await store.get(tenant, "a")
    assert item is not None
    assert (item.state, item.error) == ("failed", "three died")


async def test_a_clock_that_was_put_back_keeps_no_lease_for_hours(
    store: WorkStore, tenant: str, clock: Clock
) -> None:
    await store.offer(tenant, "a", "r")
    claim = await claimed(store, tenant)
    clock.pass_by(-7_200)
    assert await store.sweep(tenant, RULES) == (0, [])
    assert await store.heartbeat(claim, lease=LEASE) == "held"
    assert await lapse(store, clock, tenant) == 1


async def test_a_cancelled_item_is_ended_by_its_holder_or_next(
    store: WorkStore, tenant: str, clock: Clock
) -> None:
    for name in "abc":
        await store.offer(tenant, name, "r")
    holder = await claimed(store, tenant)
    for name in "ac":
        await store.cancel(tenant, name)
        await store.cancel(f"{tenant}-b", name)
    assert await store.heartbeat(holder, lease=LEASE) == "cancelling"
    following = await claimed(store, tenant)
    assert (following.name, following.cancelled) == ("c", True)
    # neither a death nor a return forgets it
    assert await lapse(store, clock, tenant) == 2
    assert {(await claimed(store, tenant)).name for _ in range(2)} == {"a", "c"}
    assert not (await claimed(store, tenant)).cancelled
    assert await state_of(store, f"{tenant}-b", "a") is None


async def test_ended_items_expire(store: WorkStore, tenant: str, clock: Clock) -> None:
    for n in range(6):
        await store.offer(tenant, f"{n}", "r", key=f"k{n}", size=1)
        if n < 5:
            claim = await claimed(store, tenant)
            await store.append(claim, 0, ["row"])
            await store.finish(claim, "done")
            clock.pass_by(10)
    # the first two are older than 35 seconds, and of the others two stay
    rules = replace(RULES, retention=35.0, most=2)
    assert await store.sweep(tenant, rules) == (0, ["0", "1", "2"])
    assert [item.name for item in await store.all(tenant)] == ["3", "4", "5"]
    assert [item.name for item in await store.unfinished(tenant)] == ["5"]
    assert await store.rows(tenant, "0") == []
    assert await store.totals(tenant) == {"waiting": 1, "held": 0, "done": 2, "bytes": 9}
    clock.pass_by(3_600)
    assert (await store.sweep(tenant, rules))[1] == ["3", "4"]
    assert await state_of(store, tenant, "5") == "waiting", "it does not expire before its end"


async def test_what_is_forgotten_leaves_nothing(
    store: WorkStore, tenant: str, redis: Redis, clock: Clock
) -> None:
    await store.prepare(tenant, "a", ["row"])
    for name in ("a", "b"):
        await store.offer(tenant, name, "r", key=f"key of {name}", size=1)
    claim = await claimed(store, tenant)
    assert tenant in await store.groups()
    await store.forget(tenant, ["a", "b", "unknown"])
    assert tenant not in await store.groups()
    assert not await store.finish(claim, "done")
    assert not await store.append(claim, 1, ["row"])
    assert not await store.release(claim)
    assert await store.heartbeat(claim, lease=LEASE) == "lost"
    await store.cancel(tenant, "a")
    assert [key async for key in redis.scan_iter(f"*{tenant}*")] == []


async def test_rows_from_before_an_item_are_its_own(store: WorkStore, tenant: str) -> None:
    rows = [f"row {n}" for n in range(1_200)]
    # what a killed process left
    await store.prepare(tenant, "a", rows[:700])
    await store.prepare(tenant, "a", rows)
    await store.offer(tenant, "a", "r", size=5)
    assert (await store.totals(tenant))["bytes"] == 5 + sum(map(len, rows))
    claim = await claimed(store, tenant)
    # too late: a holder may have added others
    await store.prepare(tenant, "a", [*rows, "late"])
    assert await store.append(claim, 1_200, ["last"])
    assert not await store.append(claim, 1_300, ["a gap"])
    assert await store.rows(tenant, "a") == [*rows, "last"]


async def test_groups_without_items_are_taken_off_the_list(
    store: WorkStore, tenant: str, clock: Clock
) -> None:
    await store.offer(tenant, "a", "r")
    await store.enlist(f"{tenant}-b")
    await store.tidy()
    # it may be about to offer one
    assert {tenant, f"{tenant}-b"} <= set(await store.groups())
    clock.pass_by(3_601)
    await store.tidy()
    assert tenant in await store.groups()
    assert f"{tenant}-b" not in await store.groups()


async def test_processes_are_known_by_their_heartbeats(store: WorkStore, clock: Clock) -> None:
    await store.announce("one")
    clock.pass_by(10)
    await store.announce("two")
    assert await store.processes(within=15) == 2
    assert await store.processes(within=5) == 1
    await store.leave("two")
    assert await store.processes(within=5) == 0


@pytest.mark.parametrize("seed", range(5))
async def test_totals_agree_with_the_items_after_any_steps(
    store: WorkStore, tenant: str, clock: Clock, seed: int
) -> None:
    chance = random.Random(seed)
    claims: list[Claim] = []

    async def offer() -> None:
        key = chance.choice(["", "k", "l"])
        await store.offer(
            tenant, chance.choice("abcdef"), "r", key=key, size=chance.randrange(9), again=chance.choice(["", "*"])
        )  # fmt: skip

    async def claim() -> None:
        if (made := await store.claim(tenant, lease=LEASE)) is not None:
            claims.append(made)

    async def with_one(work: Callable[[Claim], Awaitable[object]]) -> None:
        if claims:
            await work(chance.choice(claims))

    async def append() -> None:
        async def more(claim: Claim) -> None:
            before = len(await store.rows(tenant, claim.name))
            await store.append(claim, before, ["x" * chance.randrange(5)])

        await with_one(more)

    steps: list[Callable[[], Awaitable[object]]] = [
        offer, offer, claim, claim, append,
        lambda: with_one(lambda one: store.finish(one, chance.choice(["done", "failed"]), drop_rows=chance.random() < 0.3)),
        lambda: with_one(lambda one: store.release(one, cause=chance.choice(["", "x"]), most=2)),
        lambda: with_one(lambda one: store.heartbeat(one, lease=LEASE)),
        lambda: store.cancel(tenant, chance.choice("abcdef")),
        lambda: store.forget(tenant, chance.choice("abcdef")),
        lambda: store.sweep(tenant, replace(RULES, deaths=3, retention=60.0)),
    ]  # fmt: skip
    for _ in range(300):
        clock.pass_by(chance.choice([0, 1, 4]))
        await chance.choice(steps)()
        items = await store.all(tenant)
        totals = Counter(await store.totals(tenant))
        rows = [row for item in items for row in await store.rows(tenant, item.name)]
        assert totals["bytes"] >= sum(map(len, rows))
        del totals["bytes"]
        assert +totals == Counter(item.state for item in items)
        # of the claims of one item, at most the last one holds
        live = [one for one in claims if (await store.heartbeat(one, lease=LEASE)) != "lost"]
        assert len({one.name for one in live}) == len(live)
