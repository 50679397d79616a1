"""The same money in one process and in Redis: every test runs over both ledgers."""

from __future__ import annotations

from collections import Counter
from collections.abc import AsyncIterator
from datetime import UTC, datetime
from decimal import Decimal
from typing import Any

import pytest

from orchestrator.money import Purse
from posology.budget.ledger.base import MAX_CAP, Ledger, nano
from posology.errors import (
    BudgetExhausted,
    HeadroomReserved,
    ModelNotAllowed,
    TenantDisabled,
)
from posology.llm.accounting import Account
from posology.types import Limits, Outcome, Scope
from tests.integration import conftest as real
from tests.integration.ledger.helpers import (
    LEASE,
    Desk,
    asked,
    ended,
    fold,
    last_words,
    open_desk,
    opening,
)

pytestmark = pytest.mark.anyio

redis_url = real.redis_url
tenant = real.tenant

NANO = 1_000_000_000
DAY = 86_400


@pytest.fixture(params=["memory", "redis"])
async def desk(request: pytest.FixtureRequest, tenant: str) -> AsyncIterator[Desk]:
    # looked up only where it is needed, so that the ledger in memory is tested without any Redis
    url = "" if request.param == "memory" else request.getfixturevalue("redis_url")
    async with open_desk(request.param, tenant, url) as opened:
        yield opened


@pytest.fixture
def ledger(desk: Desk) -> Ledger:
    return desk.ledger()


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


class TestOneAttempt:
    async def test_what_is_reserved_is_freed_when_the_cost_is_charged(self, ledger: Ledger) -> None:
        await ledger.reserve(asked("a", "0.5"))
        assert await stand(ledger) == ["0", "0.5"]
        await ledger.settle(ended("a", "0.2", "0.5"))
        assert await stand(ledger) == ["0.2", "0"]

    async def test_every_scope_is_charged(self, desk: Desk, ledger: Ledger) -> None:
        await ledger.reserve(asked("a", "0.5", cap="1"))
        await ledger.settle(ended("a", "0.2", "0.5"))
        balances = {b.scope: b for b in await ledger.balances("run_a")}
        assert {scope: b.spent for scope, b in balances.items()} == dict.fromkeys(
            (Scope.DAY, Scope.MONTH, Scope.TOTAL, Scope.JOB), Decimal("0.2")
        )
        assert balances[Scope.JOB].cap == 1
        assert balances[Scope.TOTAL].cap is None

    async def test_a_release_frees_all_and_charges_nothing(
        self, desk: Desk, ledger: Ledger
    ) -> None:
        await ledger.reserve(asked("a", "0.5"))
        await ledger.release("a")
        assert await stand(ledger) == ["0", "0"]
        assert (await desk.entries())[-1]["outcome"] == "released"

    async def test_an_unknown_cost_is_charged_at_the_bound(
        self, desk: Desk, ledger: Ledger
    ) -> None:
        await ledger.reserve(asked("a", "0.5"))
        await ledger.settle(ended("a", None, "0.5", outcome=Outcome.FAILED))
        assert await stand(ledger) == ["0.5", "0"]
        entry = (await desk.entries())[-1]
        assert (entry["known"], entry["charged"]) == ("0", str(NANO // 2))

    async def test_a_cost_above_the_bound_is_charged_in_full_and_counted(
        self, desk: Desk, ledger: Ledger
    ) -> None:
        await desk.limit(Limits(total=Decimal(1)))
        await ledger.reserve(asked("a", "1"))
        await ledger.settle(ended("a", "1.5", "1"))
        assert await stand(ledger) == ["1.5", "0"]
        assert (await desk.counters())["over"] == 1
        assert {b.scope: b.left for b in await ledger.balances()}[Scope.TOTAL] == 0
        await exhausted(ledger, "b", "0.1")

    async def test_what_nobody_reserved_is_not_charged(self, desk: Desk, ledger: Ledger) -> None:
        await ledger.settle(ended("a", "0.2"))
        await ledger.release("a")
        assert await stand(ledger) == ["0", "0"]
        assert await desk.entries() == []


class TestRepeats:
    async def test_a_repeated_reservation_changes_nothing(self, desk: Desk, ledger: Ledger) -> None:
        await desk.limit(Limits(total=Decimal(1), calls=1))
        for _ in range(3):
            await ledger.reserve(asked("a"))
        assert await stand(ledger) == ["0", "1"]
        assert await kinds(desk) == ["reserve"]

    async def test_a_repeated_settlement_changes_nothing(self, desk: Desk, ledger: Ledger) -> None:
        await ledger.reserve(asked("a"))
        await ledger.settle(ended("a", "0.25"))
        for cost in ("0.25", "0.75", None):
            await ledger.settle(ended("a", cost))
        await ledger.release("a")
        assert await stand(ledger) == ["0.25", "0"]
        assert await kinds(desk) == ["reserve", "settle"]

    async def test_a_repeated_release_changes_nothing(self, desk: Desk, ledger: Ledger) -> None:
        await ledger.reserve(asked("a"))
        await ledger.reserve(asked("b"))
        for _ in range(3):
            await ledger.release("a")
        await ledger.settle(ended("a", "0.25"))
        assert await stand(ledger) == ["0", "1"]
        assert await kinds(desk) == ["reserve", "reserve", "release"]

    async def test_a_reservation_repeated_after_its_loss_is_no_second_one(
        self, desk: Desk, ledger: Ledger
    ) -> None:
        await ledger.reserve(asked("a"))
        desk.clock.forward(LEASE)
        await ledger.sweep()
        # its reply was lost, and the store was away for longer than the lease
        await ledger.reserve(asked("a"))
        assert await stand(ledger) == ["1", "0"]
        await ledger.settle(ended("a", "0.25"))
        assert await stand(ledger) == ["0.25", "0"]
        assert await kinds(desk) == ["reserve", "lose", "correct"]


class TestScopes:
    @pytest.mark.parametrize("scope", ["day", "month", "total", "job"])
    async def test_all_or_none(self, desk: Desk, ledger: Ledger, scope: str) -> None:
        caps: dict[str, Any] = dict.fromkeys(("day", "month", "total", "job"), Decimal(5))
        caps[scope] = Decimal(1)
        await desk.limit(Limits(**caps))
        await ledger.reserve(asked("a", "0.75"))
        before = await desk.counters("run_a")
        assert await busy(ledger, "b", "0.5") == scope
        refused = await exhausted(ledger, "c", "1.5")
        assert await desk.counters("run_a") == before
        assert await kinds(desk) == ["reserve"]
        assert refused.scope == scope
        numbers = [refused.cap, refused.spent, refused.reserved, refused.asked]
        assert numbers == [Decimal(n) for n in ("1", "0", "0.75", "1.5")]

    @pytest.mark.parametrize("scope", ["day", "month", "total", "job"])
    async def test_what_is_spent_and_what_is_reserved_count_together(
        self, desk: Desk, ledger: Ledger, scope: str
    ) -> None:
        caps: dict[str, Any] = {scope: Decimal(1)}
        await desk.limit(Limits(**caps))
        await ledger.reserve(asked("a", "0.5"))
        await ledger.settle(ended("a", "0.5", "0.5"))
        await ledger.reserve(asked("b", "0.4"))
        assert await busy(ledger, "c", "0.1000001") == scope
        await ledger.leave("c", "run_a")
        await ledger.reserve(asked("d", "0.1"))

    async def test_what_is_spent_is_final_and_what_is_reserved_is_not(
        self, desk: Desk, ledger: Ledger
    ) -> None:
        await desk.limit(Limits(total=Decimal(1)))
        await ledger.reserve(asked("a", "0.6"))
        assert await busy(ledger, "b", "0.6") == "total"
        await ledger.settle(ended("a", "0.4", "0.6"))
        await ledger.reserve(asked("b", "0.6"))
        await ledger.settle(ended("b", "0.6", "0.6"))
        assert (await exhausted(ledger, "c", "0.000000001")).resets is None

    async def test_it_says_when_the_window_is_over(self, desk: Desk, ledger: Ledger) -> None:
        await desk.limit(Limits(day=Decimal(1)))
        assert (await exhausted(ledger, "a", "2")).resets == datetime(2026, 1, 16, tzinfo=UTC)
        await desk.limit(Limits(month=Decimal(1)))
        assert (await exhausted(ledger, "a", "2")).resets == datetime(2026, 2, 1, tzinfo=UTC)

    async def test_a_run_has_the_lower_of_its_cap_and_the_tenants(
        self, desk: Desk, ledger: Ledger
    ) -> None:
        await desk.limit(Limits(job=Decimal(2)))
        assert (await exhausted(ledger, "a", "3", run="run_a", cap="1")).cap == 1
        assert (await exhausted(ledger, "b", "3", run="run_b", cap="4")).cap == 2
        assert (await exhausted(ledger, "c", "3", run="run_c")).cap == 2

    async def test_what_a_run_may_cost_is_known_before_it_begins(
        self, desk: Desk, ledger: Ledger
    ) -> None:
        look = Purse(ledger=ledger, meter=None).means
        assert await look(Account(), None)() is None
        await desk.limit(Limits(job=Decimal(2)))
        assert await ledger.job_limit() == 2
        for cap, own in ((None, Decimal(2)), (Decimal(3), Decimal(2)), (Decimal(1), Decimal(1))):
            found = await look(Account(), cap)()
            assert found is not None
            assert (found.dollars, found.later, found.scope) == (own, own, Scope.JOB)

    async def test_what_a_lost_process_holds_is_found_by_whoever_asks_what_is_left(
        self, desk: Desk, ledger: Ledger
    ) -> None:
        await desk.limit(Limits(total=Decimal(1)))
        await ledger.reserve(asked("a", "0.75"))
        look = Purse(ledger=ledger, meter=None).means(Account(), None)
        held = await look()
        assert held is not None
        assert (held.dollars, held.later) == (Decimal("0.25"), Decimal(1))
        desk.clock.forward(LEASE + 1)
        lost = await look()
        assert lost is not None
        # billed or not, nobody knows: there is nothing to wait for
        assert (lost.dollars, lost.later) == (Decimal("0.25"), Decimal("0.25"))

    async def test_a_run_keeps_the_cap_that_it_began_with(self, desk: Desk, ledger: Ledger) -> None:
        await ledger.reserve(asked("a", "1", cap="1"))
        await ledger.settle(ended("a", "1"))
        assert (await exhausted(ledger, "b", "1", cap="9")).cap == 1

    async def test_what_is_free_passes_when_everything_is_spent(
        self, desk: Desk, ledger: Ledger
    ) -> None:
        await desk.limit(Limits(day=Decimal(1), month=Decimal(1), total=Decimal(1)))
        await ledger.reserve(asked("a", "1", cap="1"))
        assert await busy(ledger, "b", "1", run="run_b") == "total"
        await ledger.reserve(asked("c", "0", cap="1"))
        await ledger.settle(ended("a", "1"))
        await ledger.reserve(asked("d", "0", cap="1"))
        for attempt in "cd":
            await ledger.settle(ended(attempt, "0", "0"))
        assert await stand(ledger) == ["1", "0"]
        # no sign on a zero: another reader may not take it for a whole number
        assert {entry["reserved"] for entry in await desk.entries()} <= {
            "0",
            str(NANO),
            str(-NANO),
        }

    async def test_no_limit_but_the_account_is_kept(self, desk: Desk, ledger: Ledger) -> None:
        await ledger.reserve(asked("a", MAX_CAP))
        await ledger.settle(ended("a", MAX_CAP, MAX_CAP))
        await ledger.reserve(asked("b", "1"))
        assert await stand(ledger) == [f"{MAX_CAP:f}", "1"]

    async def test_limits_of_millions_are_exact(self, desk: Desk, ledger: Ledger) -> None:
        tick = Decimal("0.000000001")
        await desk.limit(Limits(total=MAX_CAP, month=MAX_CAP, day=MAX_CAP))
        await ledger.reserve(asked("a", MAX_CAP - 3 * tick, cap=MAX_CAP))
        assert await busy(ledger, "b", "0.000000004") == "job"
        await ledger.reserve(asked("c", 3 * tick, cap=MAX_CAP, ticket="b"))
        assert await stand(ledger) == ["0", f"{MAX_CAP:f}"]
        await ledger.settle(ended("a", MAX_CAP - 4 * tick, MAX_CAP - 3 * tick))
        await ledger.settle(ended("c", 3 * tick, 3 * tick))
        assert await stand(ledger) == [f"{MAX_CAP - tick:f}", "0"]
        assert (await exhausted(ledger, "d", "0.000000002")).spent == MAX_CAP - tick
        await ledger.reserve(asked("e", tick, cap=MAX_CAP))
        assert await desk.counters("run_a") == fold(await desk.entries())

    async def test_parts_of_a_nano_dollar_count_as_one(self, desk: Desk, ledger: Ledger) -> None:
        await desk.limit(Limits(total=Decimal("0.000000002")))
        await ledger.reserve(asked("a", "0.0000000000001"))
        await ledger.settle(ended("a", "0.0000000000001", "0.0000000000001"))
        await ledger.reserve(asked("b", "0.0000000009"))
        assert await stand(ledger) == ["0.000000001", "0.000000001"]
        assert nano(Decimal("0.0000000010001")) == 2


class TestWindows:
    @pytest.mark.parametrize(
        ("reserved", "settled"),
        [
            ("2026-01-15T23:59:59.999", "2026-01-16T00:00:00.000"),
            ("2026-01-31T23:59:59.999", "2026-02-01T00:00:00.000"),
            ("2026-12-31T23:59:59.999", "2027-01-01T00:00:00.000"),
            ("2028-02-28T23:59:59.999", "2028-02-29T00:00:00.000"),
            ("2028-02-29T23:59:59.999", "2028-03-01T00:00:00.000"),
            ("2027-02-28T23:59:59.999", "2027-03-01T00:00:00.000"),
            ("2100-02-28T23:59:59.999", "2100-03-01T00:00:00.000"),
            ("2026-01-15T12:00:00.000", "2026-04-01T00:00:00.000"),
        ],
    )
    async def test_the_window_of_the_reservation_is_charged(
        self, desk: Desk, reserved: str, settled: str
    ) -> None:
        ledger = desk.ledger(lease=200 * DAY)
        await desk.limit(Limits(day=Decimal(1), month=Decimal(1)))
        desk.clock.now = _ms(reserved)
        await ledger.reserve(asked("a"))
        desk.clock.now = _ms(settled)
        # the new window owes nothing for the old one
        assert await stand(ledger, Scope.DAY) == ["0", "0"]
        await ledger.settle(ended("a", "0.75"))
        assert await stand(ledger, Scope.DAY) == ["0", "0"]
        day, month = reserved[:10], reserved[:7]
        of_month = ["0.75", "0"] if month == settled[:7] else ["0", "0"]
        assert await stand(ledger, Scope.MONTH) == of_month
        assert await stand(ledger) == ["0.75", "0"]
        assert await desk.counters() == Counter(
            dict.fromkeys((f"spent:day:{day}", f"spent:month:{month}", "spent:total"), 3 * NANO // 4)
        )  # fmt: skip

    async def test_a_new_day_has_its_money_again(self, desk: Desk, ledger: Ledger) -> None:
        await desk.limit(Limits(day=Decimal(1), month=Decimal(2)))
        for attempt in ("a", "b"):
            await ledger.reserve(asked(attempt))
            await ledger.settle(ended(attempt, "1"))
            assert (await exhausted(ledger, "x")).scope in ("day", "month")
            desk.clock.forward(DAY)
        assert (await exhausted(ledger, "c")).scope == "month"
        desk.clock.forward(20 * DAY)
        await ledger.reserve(asked("c"))
        balances = {b.scope: b for b in await ledger.balances()}
        assert balances[Scope.MONTH].left == 1
        assert balances[Scope.MONTH].resets == datetime(2026, 3, 1, tzinfo=UTC)
        assert balances[Scope.DAY].resets == datetime(2026, 2, 7, tzinfo=UTC)

    async def test_a_loss_belongs_to_the_day_of_its_reservation(
        self, desk: Desk, ledger: Ledger
    ) -> None:
        desk.clock.now = _ms("2026-01-31T23:59:59.000")
        await ledger.reserve(asked("a"))
        desk.clock.forward(LEASE)
        await ledger.sweep()
        assert (await desk.counters())["spent:day:2026-01-31"] == NANO
        await ledger.settle(ended("a", "0.5"))
        assert (await desk.counters())["spent:day:2026-01-31"] == NANO // 2
        assert (await desk.counters())["spent:month:2026-02"] == 0


class TestLeases:
    async def test_a_lease_that_ends_is_billed_at_its_bound(
        self, desk: Desk, ledger: Ledger
    ) -> None:
        await ledger.reserve(asked("a"))
        desk.clock.forward(LEASE - 0.001)
        assert await ledger.sweep() == []
        desk.clock.forward(0.001)
        assert await ledger.sweep() == ["a"]
        assert await ledger.sweep() == []
        assert await stand(ledger) == ["1", "0"]
        entry = (await desk.entries())[-1]
        assert [entry[name] for name in ("kind", "outcome", "known", "charged", "bound")] == [
            "lose", "lost", "0", str(NANO), str(NANO),
        ]  # fmt: skip

    async def test_an_extended_lease_goes_on(self, desk: Desk, ledger: Ledger) -> None:
        await ledger.reserve(asked("a"))
        await ledger.reserve(asked("b"))
        desk.clock.forward(LEASE / 2)
        assert await ledger.extend(["a", "nobody"]) == 1
        desk.clock.forward(LEASE / 2)
        assert await ledger.sweep() == ["b"]
        assert await ledger.extend(["a", "b"]) == 1
        await ledger.settle(ended("a", "0.5"))
        assert await ledger.extend(["a"]) == 0
        assert await stand(ledger) == ["1.5", "0"]

    @pytest.mark.parametrize("cost", ["0.25", "1", None])
    async def test_late_truth_corrects_once(
        self, desk: Desk, ledger: Ledger, cost: str | None
    ) -> None:
        await ledger.reserve(asked("a", cap="3"))
        desk.clock.forward(LEASE)
        await ledger.sweep()
        for told in (cost, cost, "0.5"):
            await ledger.settle(ended("a", told))
        await ledger.release("a")
        assert await stand(ledger, Scope.JOB, "run_a") == [cost or "1", "0"]
        assert await kinds(desk) == ["reserve", "lose", "correct"]
        entry = (await desk.entries())[-1]
        assert (entry["known"], entry["reserved"]) == ("0" if cost is None else "1", "0")
        assert await desk.counters("run_a") == fold(await desk.entries())

    async def test_a_late_cost_above_the_bound_counts_as_over(
        self, desk: Desk, ledger: Ledger
    ) -> None:
        await ledger.reserve(asked("a"))
        desk.clock.forward(LEASE)
        await ledger.sweep()
        await ledger.settle(ended("a", "1.25"))
        assert await stand(ledger) == ["1.25", "0"]
        assert (await desk.counters())["over"] == 1

    async def test_what_was_never_sent_is_freed_after_its_loss_too(
        self, desk: Desk, ledger: Ledger
    ) -> None:
        await ledger.reserve(asked("a"))
        desk.clock.forward(LEASE)
        await ledger.sweep()
        for _ in range(2):
            await ledger.release("a")
        await ledger.settle(ended("a", "0.5"))
        assert await stand(ledger) == ["0", "0"]
        entries = await desk.entries()
        assert last_words(entries) == {"a": "correct"}
        assert entries[-1]["outcome"] == "released"

    async def test_after_a_day_nobody_tells_of_a_loss_any_more(
        self, desk: Desk, ledger: Ledger
    ) -> None:
        await ledger.reserve(asked("a"))
        desk.clock.forward(LEASE)
        await ledger.sweep()
        desk.clock.forward(DAY - 0.001)
        await ledger.sweep()
        desk.clock.forward(0.001)
        await ledger.sweep()
        await ledger.settle(ended("a", "0.5"))
        assert await stand(ledger) == ["1", "0"]


class TestWaiting:
    async def test_nobody_smaller_overtakes(self, desk: Desk, ledger: Ledger) -> None:
        await desk.limit(Limits(total=Decimal(2)))
        await ledger.reserve(asked("a", "1.5"))
        assert await busy(ledger, "big", "1") == "total"
        # there is room for it, but somebody waits
        assert await busy(ledger, "small", "0.1") == "turn"
        await ledger.settle(ended("a", "0.5", "1.5"))
        assert await busy(ledger, "small", "0.1") == "turn"
        await ledger.reserve(asked("big", "1"))
        await ledger.reserve(asked("small", "0.1"))

    async def test_everybody_is_served_in_turn(self, desk: Desk, ledger: Ledger) -> None:
        await desk.limit(Limits(calls=1))
        await ledger.reserve(asked("a"))
        names = ["w0", "w1", "w2", "w3"]
        for place, name in enumerate(names):
            with pytest.raises(HeadroomReserved) as caught:
                await ledger.reserve(asked(name))
            assert (caught.value.place, caught.value.scope) == (place, "calls")
        served, held = [], "a"
        for _ in names:
            await ledger.settle(ended(held, "1"))
            for name in reversed([n for n in names if n not in served]):
                try:
                    await ledger.reserve(asked(name))
                except HeadroomReserved:
                    continue
                served.append(name)
                held = name
        assert served == names

    async def test_the_dead_block_nobody_for_longer_than_five_seconds(
        self, desk: Desk, ledger: Ledger
    ) -> None:
        await desk.limit(Limits(total=Decimal(2)))
        await ledger.reserve(asked("a"))
        assert await busy(ledger, "dead", "1.5") == "total"
        desk.clock.forward(4.9)
        assert await busy(ledger, "alive", "0.5") == "turn"
        desk.clock.forward(0.1)
        await ledger.reserve(asked("alive", "0.5"))
        # it has lost its place, and may ask again
        assert await busy(ledger, "dead", "1.5") == "total"

    async def test_who_asks_again_in_time_keeps_the_place(self, desk: Desk, ledger: Ledger) -> None:
        await desk.limit(Limits(total=Decimal(2)))
        await ledger.reserve(asked("a"))
        for _ in range(4):
            assert await busy(ledger, "first", "1.5") == "total"
            desk.clock.forward(4)
            assert await busy(ledger, "second", "0.5") == "turn"

    async def test_who_leaves_makes_room(self, desk: Desk, ledger: Ledger) -> None:
        await desk.limit(Limits(total=Decimal(2)))
        await ledger.reserve(asked("a"))
        assert await busy(ledger, "gone", "1.5") == "total"
        assert await busy(ledger, "next", "0.5") == "turn"
        await ledger.leave("gone", "run_a")
        await ledger.leave("gone", "run_a")
        await ledger.reserve(asked("next", "0.5"))

    async def test_who_can_never_be_served_leaves_the_queue(
        self, desk: Desk, ledger: Ledger
    ) -> None:
        await desk.limit(Limits(total=Decimal(2)))
        await ledger.reserve(asked("a"))
        assert await busy(ledger, "big", "1.5") == "total"
        await ledger.settle(ended("a", "1"))
        assert (await exhausted(ledger, "big", "1.5")).spent == 1
        await ledger.reserve(asked("small", "0.5"))

    async def test_a_run_at_its_cap_blocks_no_other(self, desk: Desk, ledger: Ledger) -> None:
        await desk.limit(Limits(total=Decimal(9)))
        await ledger.reserve(asked("a", run="run_a", cap="1"))
        assert await busy(ledger, "a2", run="run_a", cap="1") == "job"
        await ledger.reserve(asked("b", run="run_b", cap="1"))
        # and within the run nobody overtakes
        await ledger.release("a")
        assert await busy(ledger, "a3", "0.1", run="run_a", cap="1") == "job"
        await ledger.reserve(asked("a2", run="run_a", cap="1"))

    async def test_who_waits_for_the_run_no_longer_waits_for_the_tenant(
        self, desk: Desk, ledger: Ledger
    ) -> None:
        await desk.limit(Limits(total=Decimal(2)))
        await ledger.reserve(asked("x", "2", run="run_x"))
        assert await busy(ledger, "a1", "1", run="run_a", cap="1") == "total"
        await ledger.release("x")
        # while it was on its way another call of the run came, from the tenant's point of view after it
        await ledger.leave("a1", "run_a")
        await ledger.reserve(asked("a2", "1", run="run_a", cap="1"))
        assert await busy(ledger, "a1", "1", run="run_a", cap="1") == "job"
        await ledger.reserve(asked("b", "1", run="run_b"))

    async def test_only_so_many_calls_at_once(self, desk: Desk, ledger: Ledger) -> None:
        await desk.limit(Limits(calls=2))
        await ledger.reserve(asked("a"))
        await ledger.reserve(asked("b"))
        assert await busy(ledger, "c", "0") == "calls"
        await ledger.release("a")
        await ledger.reserve(asked("c", "0"))
        assert await busy(ledger, "d") == "calls"


class TestTenant:
    async def test_only_allowed_models(self, desk: Desk, ledger: Ledger) -> None:
        await desk.limit(Limits(models=("openai:gpt-4o-mini", "anthropic:*")))
        await ledger.reserve(asked("a", model="openai:gpt-4o-mini"))
        await ledger.reserve(asked("b", model="anthropic:claude"))
        for model in (
            "openai:gpt-4o",
            "openai:gpt-4o-mini2",
            "openai:*",
            "gpt-4o-mini",
        ):
            with pytest.raises(ModelNotAllowed) as caught:
                await ledger.reserve(asked("c", model=model))
            assert caught.value.model == model
        assert await kinds(desk) == ["reserve", "reserve"]

    async def test_no_models_at_all(self, desk: Desk, ledger: Ledger) -> None:
        await desk.limit(Limits(models=()))
        with pytest.raises(ModelNotAllowed):
            await ledger.reserve(asked("a"))

    async def test_a_disabled_tenant_spends_nothing_and_settles_what_is_open(
        self, desk: Desk, ledger: Ledger
    ) -> None:
        await ledger.reserve(asked("a"))
        await desk.limit(Limits(), disabled=True)
        with pytest.raises(TenantDisabled) as caught:
            await ledger.reserve(asked("b", "0"))
        assert caught.value.tenant == desk.tenant
        await ledger.settle(ended("a", "0.5"))
        assert await stand(ledger) == ["0.5", "0"]

    async def test_only_models_that_replied_have_figures_of_their_own(
        self, desk: Desk, ledger: Ledger
    ) -> None:
        for attempt, outcome in (("a", Outcome.FAILED), ("b", Outcome.OK), ("c", Outcome.FAILED)):
            await ledger.reserve(asked(attempt))
            await ledger.settle(ended(attempt, "0.5", outcome=outcome))
        labels = [entry["label"] for entry in await desk.entries() if entry["kind"] == "settle"]
        assert labels == ["other", opening("a", "1").model, opening("a", "1").model]


async def test_both_write_the_same_entries(redis_url: str, tenant: str) -> None:
    written = []
    for kind in ("memory", "redis"):
        async with open_desk(kind, tenant, redis_url) as desk:
            ledger = desk.ledger()
            for attempt, bound in (("a", "1"), ("b", "0.25"), ("c", "2"), ("d", "0"), ("e", "1")):
                await ledger.reserve(asked(attempt, bound))
                desk.clock.forward(1)
            await ledger.settle(ended("a", "0.5"))
            await ledger.settle(ended("b", None, "0.25", outcome=Outcome.CANCELLED))
            await ledger.settle(ended("d", "0", "0"))
            await ledger.release("e")
            desk.clock.forward(LEASE)
            await ledger.sweep()
            await ledger.settle(ended("c", "2.5", "2"))
            written.append(await desk.entries())
    assert len(written[0]) == 11
    assert written[0] == written[1]


def _ms(at: str) -> int:
    return round(datetime.fromisoformat(at).replace(tzinfo=UTC).timestamp() * 1000)
