"""What is let in by a tenant that has spent everything, and what a unit leaves when it ends, on a real Redis."""

from __future__ import annotations

import json
import time
from decimal import Decimal

import anyio
import pytest

from orchestrator.jobs.batches import Batches
from orchestrator.jobs.store import JobStore
from orchestrator.settings import Settings
from posology.errors import BudgetExhausted, ModelNotAllowed
from posology.testing.prices import FlatPrices
from posology.types import Tier
from tests.integration.jobs_store.helpers import BOUND, ERROR, MODEL, Bench, request
from tests.integration.jobs_store.test_money import NOTHING, money

pytestmark = pytest.mark.anyio


class Priced(FlatPrices):
    """The offline reader is free, and all else is not."""

    def worst(
        self,
        model: str,
        *,
        input_tokens: int,
        output_tokens: int,
        tier: Tier = "standard",
        caches: bool = False,
    ) -> Decimal:
        if model.startswith("offline:"):
            return Decimal(0)
        return super().worst(
            model,
            input_tokens=input_tokens,
            output_tokens=output_tokens,
            tier=tier,
            caches=caches,
        )


def batches(bench: Bench) -> Batches:
    prices = Priced(token=Decimal("0.001"))
    return Batches(JobStore(bench.redis, bench.url, clock=bench.clock, prices=prices), Settings())


def rows(*models: str) -> list[str]:
    return [json.dumps({"question": "Does it help?", "model": model}) for model in models]


async def test_a_batch_is_let_in_for_the_models_that_are_allowed(bench: Bench) -> None:
    """A cheaper one beside them, which is not, fails by itself."""
    await bench.limit(models="|openai:*|")
    out = await batches(bench).submit(rows("offline:extractive", MODEL), tenant=bench.tenant)
    assert out.total == 2
    with pytest.raises(ModelNotAllowed) as caught:
        await batches(bench).submit(rows("offline:extractive"), tenant=bench.tenant)
    assert caught.value.model == "offline:extractive"
    await bench.limit(day=Decimal("0.1"))
    with pytest.raises(BudgetExhausted):
        await batches(bench).submit(rows("offline:extractive", MODEL), tenant=bench.tenant)


async def test_what_stands_open_when_a_unit_ends_its_job_is_charged_at_its_bound(
    bench: Bench,
) -> None:
    """A defect came between a reply and its entry: nobody extends a lease of it, and none ends."""
    held = await bench.calling("a1")
    await bench.worker().fail(held, ERROR)
    assert await money(bench) == (BOUND, NOTHING)
    out = await bench.get(held.unit.job)
    assert (out.unknown_costs, out.charged_usd, out.reserved_usd) == (1, BOUND, NOTHING)
    await bench.close(held, "a1", cost=Decimal("0.0005"))
    assert await money(bench) == (Decimal("0.0005"), NOTHING)


async def test_whoever_is_stopped_does_not_ask_again_without_a_pause(bench: Bench) -> None:
    held = await bench.running()
    held.stopped.set()
    started = time.monotonic()
    for _ in range(5):
        await held.sleep(60.0)
    assert 0.4 < time.monotonic() - started < 60, "five minutes were asked for"
    with anyio.fail_after(90):
        await held.sleep(0.0)


async def test_a_question_is_refused_at_once_when_no_call_for_it_can_be_reserved(
    bench: Bench,
) -> None:
    """What only the passages tell is left to the worker: with a little more, the question is accepted."""
    prices = Priced(token=Decimal("0.001"))
    store = JobStore(bench.redis, bench.url, clock=bench.clock, prices=prices)
    asked = request(max_tokens=None)
    # the bound of the shortest reply, 512 tokens; anything sent comes on top
    await bench.limit(day=Decimal("0.512"))
    with pytest.raises(BudgetExhausted) as refused:
        await store.submit(asked, tenant=bench.tenant)
    assert refused.value.asked > Decimal("0.512")
    # the question itself bounds its replies
    assert (await store.submit(request(max_tokens=400), tenant=bench.tenant)).created
    with pytest.raises(BudgetExhausted):
        await store.submit(request(max_tokens=2_000), tenant=bench.tenant)
    await bench.limit(day=Decimal("0.6"))
    assert (await store.submit(asked, tenant=bench.tenant)).created
    # a free model needs nothing
    await bench.limit(day="0")
    free = request(model="offline:extractive", max_tokens=None)
    assert (await store.submit(free, tenant=bench.tenant)).created
