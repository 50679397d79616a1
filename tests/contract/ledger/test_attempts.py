"""What attempts cost, once and by which scope: in one process and in Redis."""

from __future__ import annotations

from datetime import UTC, datetime
from decimal import Decimal
from typing import Any

import pytest

from orchestrator.budget import Budget
from posology.budget.ledger.base import MAX_CAP, Ledger, nano
from posology.llm.accounting import Account
from posology.types import Limits, Outcome, Scope
from tests.contract.ledger.asking import NANO, busy, exhausted, kinds, stand
from tests.integration.ledger.helpers import LEASE, Desk, asked, ended, fold, open_desk

pytestmark = pytest.mark.anyio


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
        look = Budget(ledger=ledger, meter=None).remaining
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
        look = Budget(ledger=ledger, meter=None).remaining(Account(), None)
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
