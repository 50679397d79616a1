"""Windows and leases: in one process and in Redis."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from datetime import UTC, datetime
from decimal import Decimal

import pytest

from posology.budget.ledger.base import Ledger
from posology.llm.pace import FLEX_TIMEOUT
from posology.types import Limits, Scope
from tests.contract.ledger.asking import DAY, NANO, busy, exhausted, kinds, stand
from tests.integration.ledger.helpers import LEASE, Desk, asked, ended, fold, last_words

pytestmark = pytest.mark.anyio


class TestWindows:
    @pytest.mark.parametrize(
        ("reserved", "settled"),
        [
            ("2026-01-15T23:59:59.999", "2026-01-16T00:00:00.000"),
            ("2026-01-31T23:59:59.999", "2026-02-01T00:00:00.000"),
            ("2026-12-31T23:59:59.999", "2027-01-01T00:00:00.000"),
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

    async def test_a_flex_call_is_live_for_as_long_as_it_may_take(
        self, desk: Desk, ledger: Ledger
    ) -> None:
        await desk.limit(Limits(day=Decimal("1.5")))
        flex = asked("a")
        await ledger.reserve(replace(flex, opening=replace(flex.opening, tier="flex")))
        desk.clock.forward(FLEX_TIMEOUT)
        assert await ledger.sweep() == []
        # extensions for shorter calls beside it do not shorten it
        assert await ledger.extend(["a"]) == 1
        desk.clock.forward(LEASE - 0.001)
        assert await ledger.sweep() == []
        # what it holds comes free when it is settled: others wait, and are not refused for good
        assert await busy(ledger, "b") == "day"
        await ledger.settle(ended("a", "0.5"))
        await ledger.reserve(asked("b"))

    async def test_a_lease_covers_a_long_reply_of_a_slow_server(self, desk: Desk) -> None:
        ledger = desk.ledger(floor=10.0)
        long = asked("a")
        await ledger.reserve(replace(long, opening=replace(long.opening, max_tokens=32_000)))
        desk.clock.forward(3_200)
        assert await ledger.sweep() == []
        desk.clock.forward(LEASE)
        assert await ledger.sweep() == ["a"]

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


def _ms(at: str) -> int:
    return round(datetime.fromisoformat(at).replace(tzinfo=UTC).timestamp() * 1000)
