"""Who waits, and what a tenant may: in one process and in Redis."""

from __future__ import annotations

from dataclasses import replace
from decimal import Decimal

import pytest

from posology.budget.ledger.base import Ledger
from posology.errors import HeadroomReserved, ModelNotAllowed, TenantDisabled
from posology.types import Limits, Outcome
from tests.contract.ledger.asking import busy, exhausted, kinds, stand
from tests.integration.ledger.helpers import Desk, asked, ended, opening

pytestmark = pytest.mark.anyio


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
        # what a provider does within a day keeps no connection
        await ledger.reserve(replace(asked("e"), batch=True))
        assert await busy(ledger, "d") == "calls"
        await ledger.release("b")
        await ledger.reserve(asked("d"))


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
