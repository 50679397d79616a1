"""Jobs that run out of money, wait for it, or lose it, on a real Redis and without a queue."""

from __future__ import annotations

import json
from collections.abc import Awaitable
from decimal import Decimal
from typing import Any, cast

import anyio
import pytest

from orchestrator.jobs.batches import Batches
from orchestrator.jobs.store import JobStore
from orchestrator.settings import Settings
from posology.budget.ledger.base import dollars, nano
from posology.errors import (
    BudgetError,
    BudgetExhausted,
    HeadroomReserved,
    ModelNotAllowed,
    TenantDisabled,
    UnpricedModel,
)
from posology.published.jobs import JobOutput
from posology.store import keys
from posology.testing.model import ScriptedModel
from posology.testing.prices import FlatPrices
from posology.types import Call, Extraction, JobState, Outcome, Stage, Usage
from tests.integration.jobs_store.helpers import BOUND, MODEL, Bench, failed, request, succeeded
from tests.integration.jobs_store.local import Gate, Wires, carrying, of, reply
from workers.engine import fairness

pytestmark = pytest.mark.anyio

#: a call reserves 1,000 tokens in and 500 out
PRICES, RESERVED = FlatPrices(token=Decimal("0.001")), Decimal("1.5")
#: what a call comes to
CHEAP, DEAR = Usage(input=100, output=10), Usage(input=1_000, output=500)


def wires(model: Any, *, wait_timeout: float = 10.0, dear: str | None = None) -> Wires:
    """What connects to a model.

    Args:
        model: replies.
        wait_timeout: seconds to wait for headroom.
        dear: a word; a call that shows it is bound by far more tokens.
    """

    def bound(call: Call) -> int:
        shown = " ".join(excerpt.passage.text for excerpt in call.excerpts)
        return 100_000 if dear is not None and dear in shown else 1_000

    return Wires(model, prices=PRICES, bound=bound, wait_timeout=wait_timeout)


async def run(bench: Bench, model: Any, *, dear: str | None = None, **fields: Any) -> JobOutput:
    given = {"strategy": "briefcontext", "partition_size": 2, "k": 6, **fields}
    job = (await bench.store.submit(request(**given), tenant=bench.tenant)).job
    return await carrying(bench, model, wires=wires(model, dear=dear)).finish(job)


NOTHING = Decimal(0)


async def money(bench: Bench) -> tuple[Decimal, Decimal]:
    """The tenant's dollars that are spent, and that are reserved."""
    found = await cast(
        "Awaitable[list[str | None]]",
        bench.redis.hmget(bench.key("money"), ["spent:total", "reserved:total"]),
    )
    return dollars(found[0] or 0), dollars(found[1] or 0)


async def test_partitions_wait_for_each_other_where_the_cap_pays_for_two_at_once(
    bench: Bench,
) -> None:
    model = ScriptedModel(reply, usage=CHEAP, latency=0.05)
    out = await run(bench, model, max_cost_usd="3.2")
    result = succeeded(out)
    assert result.coverage is not None
    assert not result.coverage.partial
    assert len(out.spending.attempts) == 4
    assert out.cap_usd == Decimal("3.2")
    assert (out.charged_usd, out.reserved_usd) == (Decimal("0.44"), NOTHING)
    assert await money(bench) == (Decimal("0.44"), NOTHING)


async def test_a_cap_that_pays_for_nothing_spends_nothing(bench: Bench) -> None:
    model = ScriptedModel(reply)
    out = await run(bench, model, max_cost_usd="1.49")
    assert failed(out).type == "NothingAffordable"
    assert failed(out).exit_code == BudgetExhausted.exit_code
    assert not model.calls
    assert not out.spending.attempts
    assert await money(bench) == (NOTHING, NOTHING)


async def test_what_cannot_be_paid_for_is_told_in_a_partial_answer(bench: Bench) -> None:
    model = ScriptedModel(reply, usage=CHEAP)
    out = await run(bench, model, max_cost_usd="10", dear="Drug 2")
    result = succeeded(out)
    assert result.coverage is not None
    assert result.coverage.partial
    assert result.coverage.failed == 1
    assert any("budget" in note for note in result.notes)
    assert [call.stage for call in model.calls].count(Stage.EXTRACT) == 2


async def test_a_job_whose_reduce_cannot_be_paid_for_fails_and_says_what_is_left(
    bench: Bench,
) -> None:
    model = ScriptedModel(reply, usage=DEAR)
    out = await run(bench, model, max_cost_usd="4.5")
    assert failed(out).type == "BudgetExhausted"
    assert failed(out).details["scope"] == "job"
    assert Decimal(str(failed(out).details["spent"])) == Decimal("4.5")
    assert out.charged_usd == out.cap_usd == Decimal("4.5")
    # with more money it goes on from there, and pays for nothing twice
    prefix = keys.prefix(bench.tenant)
    await bench.redis.hset(f"{prefix}job:{out.id}", "cap_nano", nano(Decimal(6)))
    await bench.retry(out.id)
    again = await carrying(bench, model, wires=wires(model)).finish(out.id)
    assert again.state is JobState.SUCCEEDED
    assert [call.stage for call in model.calls].count(Stage.EXTRACT) == 3
    assert again.charged_usd == Decimal(6)


async def test_an_attempt_that_nobody_closed_is_billed_unknown_until_the_truth_comes(
    bench: Bench,
) -> None:
    held = await bench.calling("a1")
    assert await money(bench) == (NOTHING, BOUND)
    await bench.lost()
    assert await money(bench) == (BOUND, NOTHING)
    await bench.close(held, "a1", cost=Decimal("0.0005"))
    await bench.close(held, "a1", cost=Decimal("0.0005"))
    assert await money(bench) == (Decimal("0.0005"), NOTHING)
    entries = await bench.redis.xrange(bench.key("ledger"))
    kinds = [entry["kind"] for _, entry in cast("list[tuple[str, dict[str, str]]]", entries)]
    assert kinds == ["reserve", "lose", "correct"]
    out = await bench.get(held.unit.job)
    assert (out.charged_usd, out.unknown_costs) == (Decimal("0.0005"), 0)


async def test_the_truth_about_a_forgotten_job_still_counts(bench: Bench) -> None:
    held = await bench.calling("a1")
    await bench.redis.delete(
        bench.key(f"job:{held.unit.job}"),
        bench.key(f"job:{held.unit.job}:calls"),
    )
    await bench.close(held, "a1", cost=Decimal("0.0007"))
    assert await money(bench) == (Decimal("0.0007"), NOTHING)
    assert not await bench.redis.exists(bench.key(f"job:{held.unit.job}"))


async def test_what_redis_has_lost_is_told(bench: Bench, caplog: pytest.LogCaptureFixture) -> None:
    held = await bench.calling("a1")
    await bench.close(held, "a1")
    await bench.close(held, "a1")
    assert "no reservation" not in caplog.text
    await bench.open(held, "a2")
    await bench.redis.delete(*await bench.keys_of(held.unit.job), bench.key("money:open"))
    await bench.close(held, "a2", cost=Decimal("0.0007"))
    assert "a2" in caplog.text
    assert "0.0007" in caplog.text


async def test_a_unit_that_waits_too_long_is_handed_back_and_goes_on_later(bench: Bench) -> None:
    await bench.limit(day=Decimal("1.5"))
    other = await bench.calling("a1")
    job = (await bench.store.submit(request(strategy="direct"), tenant=bench.tenant)).job
    model = ScriptedModel(reply, usage=CHEAP)
    local = carrying(bench, model, wires=wires(model, wait_timeout=0.05))
    await local.until_nothing_is_sent()
    assert not model.calls
    assert not local.runner.claimed
    assert await bench.state(job) is JobState.RUNNING
    await bench.close(other, "a1", cost=Decimal(0))
    bench.clock.forward(1)
    out = await local.finish(job)
    assert out.state is JobState.SUCCEEDED
    assert (out.losses, len(out.spending.attempts)) == (0, 1)


async def test_who_is_handed_back_comes_to_the_same_place(bench: Bench) -> None:
    """Else a dear call, for which others have to end, would begin anew each time behind small ones."""
    await bench.limit(total=Decimal("0.0045"))
    first, second = await bench.running(), await bench.running()
    await bench.open(first, "a1")
    await bench.open(first, "a2")
    with pytest.raises(HeadroomReserved) as caught:
        await bench.open(second, "b1", key="b")
    await fairness.park(bench.worker(), second, caught.value)
    third = await bench.running()
    with pytest.raises(HeadroomReserved):
        await bench.open(third, "c1", key="c")
    bench.clock.forward(1)
    unit = await bench.next()
    again = await bench.claimed(unit.job, unit.name)
    assert again.unit == second.unit
    with pytest.raises(HeadroomReserved) as caught:
        await bench.open(again, "b2", key="b")
    assert caught.value.place == 0
    with pytest.raises(HeadroomReserved) as caught:
        await bench.open(third, "c2", key="c")
    assert caught.value.place == 1
    await bench.close(first, "a1", cost=Decimal(0))
    await bench.open(again, "b3", key="b")


async def test_a_partition_that_ends_leaves_no_reservation(bench: Bench) -> None:
    job = await bench.extracting(2)
    held = await bench.claimed(job, "extract:0")
    await bench.open(held, "a1")
    await bench.worker().extracted(held, Extraction(partition=0))
    assert await money(bench) == (BOUND, NOTHING)


@pytest.mark.parametrize(
    ("refusal", "limits"),
    [
        (TenantDisabled, {"disabled": "1"}),
        (ModelNotAllowed, {"models": "|anthropic:*|openai:gpt-4o|"}),
    ],
)
async def test_what_a_tenant_may_not_do_is_refused_at_the_door_and_to_the_worker(
    bench: Bench, refusal: type[BudgetError], limits: dict[str, str]
) -> None:
    job = (await bench.store.submit(request(strategy="direct"), tenant=bench.tenant)).job
    await bench.limit(**limits)
    model = ScriptedModel(reply)
    out = await carrying(bench, model).finish(job)
    assert failed(out).type == refusal.__name__
    with pytest.raises(refusal):
        await priced(bench).submit(request(), tenant=bench.tenant)
    assert not model.calls


def priced(bench: Bench) -> JobStore:
    return JobStore(bench.redis, bench.url, clock=bench.clock, prices=PRICES)


async def test_who_has_spent_everything_is_refused_at_the_door(bench: Bench) -> None:
    store = priced(bench)
    first = await store.submit(request(), tenant=bench.tenant, key="k1")
    await bench.limit(day=Decimal("0.1"))
    held = await bench.calling("a1")
    await bench.close(held, "a1", cost=Decimal("0.09"))
    with pytest.raises(BudgetExhausted) as caught:
        await store.submit(request(), tenant=bench.tenant, key="k2")
    assert (caught.value.scope, caught.value.spent) == ("day", Decimal("0.09"))
    assert caught.value.resets is not None
    assert caught.value.resets.timestamp() * 1000 > bench.clock()
    # what was submitted is still found by its key, and the refused key is free
    assert (await store.submit(request(), tenant=bench.tenant, key="k1")).job == first.job
    rows = [json.dumps({"question": "Does it help?", "model": MODEL})]
    batches = Batches(store, Settings())
    with pytest.raises(BudgetExhausted):
        await batches.submit(rows, tenant=bench.tenant, key="b")
    await bench.limit(day=Decimal(1))
    assert (await store.submit(request(), tenant=bench.tenant, key="k2")).created
    made = await batches.submit(rows, tenant=bench.tenant, key="b")
    assert made.total == 1
    # and a batch, too, is found by its key when all is spent
    await bench.limit(day=Decimal("0.09"))
    assert (await batches.submit(rows, tenant=bench.tenant, key="b")).id == made.id


async def test_a_job_may_not_cost_more_than_the_tenant_lets_any_job(bench: Bench) -> None:
    await bench.limit(job=Decimal("0.5"))
    caps = []
    for wanted in (None, "0.2", "0.7"):
        fields = {} if wanted is None else {"max_cost_usd": wanted}
        job = (await bench.store.submit(request(**fields), tenant=bench.tenant)).job
        caps.append((await bench.get(job)).cap_usd)
    assert caps == [Decimal("0.5"), Decimal("0.2"), Decimal("0.5")]


async def test_a_model_without_a_price_is_refused(bench: Bench) -> None:
    store = JobStore(bench.redis, bench.url, clock=bench.clock, prices=FlatPrices(token=None))
    with pytest.raises(UnpricedModel):
        await store.submit(request(), tenant=bench.tenant)
    model = ScriptedModel(reply)
    job = (await bench.store.submit(request(strategy="direct"), tenant=bench.tenant)).job
    wired = Wires(model, prices=FlatPrices(token=None))
    out = await carrying(bench, model, wires=wired).finish(job)
    assert failed(out).type == "UnpricedModel"
    assert not model.calls


async def test_a_cancelled_job_frees_what_it_reserved_and_pays_what_was_under_way(
    bench: Bench,
) -> None:
    job = (await bench.store.submit(request(strategy="direct"), tenant=bench.tenant)).job
    gate = Gate(ScriptedModel(reply, usage=CHEAP), holds=of(Stage.ANSWER))
    local = carrying(bench, gate, wires=wires(gate))
    async with anyio.create_task_group() as group:
        group.start_soon(local.until_nothing_is_sent)
        await gate.until(1)
        assert (await bench.cancel(job)).reserved_usd == RESERVED
        gate.opened.set()
    out = await bench.get(job)
    assert out.state is JobState.CANCELLED
    assert [a.outcome for a in out.spending.attempts] == [Outcome.OK]
    assert await money(bench) == (Decimal("0.11"), NOTHING)
