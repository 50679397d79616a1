"""Jobs in the tier flex: they wait for capacity without a worker's place, and end in time."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from posology.errors import NoCapacity
from posology.testing.model import ScriptedModel
from posology.types import Call, JobState
from tests.integration.jobs_store.helpers import PATIENCE, Bench, request
from tests.integration.jobs_store.local import Local, Wires, carrying, reply

if TYPE_CHECKING:
    from posology.testing.model import ScriptedReply

pytestmark = pytest.mark.anyio

MODEL = "openai:gpt-6-luna"


class Tiers:
    """A model whose tier flex has no capacity for a number of calls; it notes the tier of each call."""

    def __init__(self, *, without: int) -> None:
        self.without = without
        self.asked: list[str] = []

    def __call__(self, call: Call) -> ScriptedReply:
        self.asked.append(call.tier)
        if call.tier == "flex" and self.without:
            self.without -= 1
            return NoCapacity("none now", provider="openai", model=call.model)
        return reply(call)


async def submitted(bench: Bench, tier: str) -> str:
    asked = request(model=MODEL, strategy="direct", tier=tier)
    return (await bench.store.submit(asked, tenant=bench.tenant)).job


def local(bench: Bench, tiers: Tiers) -> Local:
    model = ScriptedModel(tiers)
    # a unit gives up its place at once
    return carrying(bench, model, wires=Wires(model, wait_timeout=0.0))


async def test_a_job_waits_for_capacity_without_a_place(bench: Bench) -> None:
    tiers = Tiers(without=2)
    job, there = await submitted(bench, "flex"), local(bench, tiers)
    for _ in range(2):
        assert (await there.finish(job)).state is JobState.RUNNING
        assert await bench.redis.zcard(bench.key("parked")) == 1
        bench.clock.forward(20)
    done = await there.finish(job)
    assert done.state is JobState.SUCCEEDED
    assert tiers.asked == ["flex"] * 3
    assert [a.error for a in done.spending.attempts] == ["NoCapacity", "NoCapacity", None]
    assert {a.tier for a in done.spending.attempts} == {"flex"}
    assert done.request["tier"] == "flex"


async def test_flex_has_the_first_half_of_the_time_of_a_job_that_may_take_standard(
    bench: Bench,
) -> None:
    tiers = Tiers(without=9)
    job, there = await submitted(bench, "flex-then-standard"), local(bench, tiers)
    assert (await there.finish(job)).state is JobState.RUNNING
    bench.clock.forward(PATIENCE * 0.6)
    assert (await there.finish(job)).state is JobState.SUCCEEDED
    assert tiers.asked == ["flex", "flex", "standard"]


async def test_a_job_without_capacity_until_its_end_fails_with_the_provider_s_error(
    bench: Bench,
) -> None:
    tiers = Tiers(without=9)
    job, there = await submitted(bench, "flex"), local(bench, tiers)
    assert (await there.finish(job)).state is JobState.RUNNING
    bench.clock.forward(PATIENCE * 0.9)
    done = await there.finish(job)
    assert done.state is JobState.FAILED
    assert done.error is not None
    assert done.error.type == "NoCapacity"
    assert done.spending.cost_usd is None or done.spending.cost_usd == 0
