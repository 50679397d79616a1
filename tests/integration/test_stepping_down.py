"""One question, ever less money: in process and through the job records, down to a refusal to begin."""

from __future__ import annotations

import math
from dataclasses import replace
from decimal import Decimal
from itertools import pairwise
from typing import TYPE_CHECKING, Any, cast

import pytest
from pydantic import BaseModel

from orchestrator.question.decider import remaining_budget
from orchestrator.question.machine import RemainingBudget
from posology.budget.ledger.base import nano
from posology.errors import HeadroomReserved
from posology.llm.accounting import Account
from posology.store import keys
from posology.testing.model import ScriptedModel
from posology.testing.prices import by_bytes
from posology.types import Call, Completion, Decision, Dose, Finish, JobState, Usage
from tests.integration.jobs_store.helpers import Bench
from tests.integration.jobs_store.local import Local, reply
from tests.support.steps import (
    BRIEF,
    CHEAPER,
    COST,
    DECLINED,
    MILLI,
    NOTHING,
    STEPS,
    InProcess,
    Step,
    asked,
    audited,
    considered,
    limit,
    pipeline,
    price,
    run,
    scripted,
    submit,
    worker,
)

if TYPE_CHECKING:
    pass


pytestmark = pytest.mark.anyio


async def falling() -> list[Step]:
    """Eleven caps, from ample to almost nothing."""
    prices = [await price(dose) for dose in CHEAPER]
    assert prices == sorted(prices, reverse=True), "else a step would be passed over"
    return [
        Step(cap=2 * prices[0], dose=BRIEF),
        Step(cap=prices[0], dose=BRIEF),
        Step(cap=prices[0] - MILLI, dose=CHEAPER[1]),
        *(Step(cap=cost, dose=dose) for cost, dose in zip(prices[1:], CHEAPER[1:], strict=True)),
        Step(cap=prices[-1] - MILLI, dose=DECLINED),
        Step(cap=MILLI, dose=DECLINED),
    ]


def holds(decision: Decision, step: Step) -> None:
    """The record says what was considered, in which order, and why it came to this."""
    assert decision.dose == step.dose
    assert decision.remaining == step.cap
    fits = [offer.fits for offer in decision.offers]
    if step.dose == DECLINED:
        assert considered(decision) == STEPS
        assert not any(fits)
    else:
        assert considered(decision) == STEPS[: STEPS.index(step.dose) + 1]
        assert fits == [False] * (len(fits) - 1) + [True]
        assert decision.offers[-1].worst <= step.cap
    assert all(offer.worst > step.cap for offer in decision.offers if not offer.fits)
    assert "briefcontext" in decision.reason or step.dose == BRIEF
    assert decision.features["preflight.iou_3"] == 0


async def test_whom_a_rewriter_is_too_dear_for_gets_the_passages_whole() -> None:
    """A rewriter's calls come on top of the one for an answer, which is to read no less at worst."""
    policy = "affordable:compressor=query_summary,saving=off"
    rewritten = Dose(strategy="compressed", compressor="query_summary")
    direct = await price(Dose(strategy="direct"))
    assert direct < await price(rewritten)
    run = InProcess(model=scripted(), cap=direct, policy=policy)
    report = await run.ask()
    assert report.decision.dose == Dose(strategy="direct")
    assert considered(report.decision) == (rewritten, Dose(strategy="direct"))
    assert "stepped down to direct, " in report.decision.reason
    assert len(run.model.calls) == 1
    run.check()
    run = InProcess(model=scripted(), cap=direct - MILLI, policy=policy)
    # asked for less, a rewriter still reads all
    assert (await run.ask()).decision.dose == Dose(strategy="direct", passages=8)


async def raise_cap(bench: Bench, job: str, dollars: Decimal) -> None:
    await bench.redis.hset(f"{keys.prefix(bench.tenant)}job:{job}", "cap_nano", nano(dollars))


async def test_eleven_caps_through_the_records(bench: Bench) -> None:
    for step in await falling():
        model = scripted()
        out = await run(bench, model, max_cost_usd=str(step.cap))
        assert out.decision is not None
        holds(out.decision.to(Decision), step)
        if step.dose == DECLINED:
            assert out.state is JobState.FAILED
            assert out.error is not None
            assert out.error.type == "NothingAffordable"
            assert Decimal(str(out.error.details["cheapest"])) == await price(STEPS[-1])
            assert Decimal(str(out.error.details["remaining"])) == step.cap
            assert not model.calls
            assert not out.spending.attempts
            assert out.charged_usd == NOTHING
        else:
            assert out.state is JobState.SUCCEEDED
            assert out.result is not None
            assert out.result.decision == out.decision
            assert out.result.strategy == step.dose.strategy
            assert out.charged_usd == COST * len(model.calls)
        await audited(bench, out)


def at_its_bound(call: Call) -> Completion:
    """A good reply that costs all that was set aside for it."""
    said = reply(call)
    assert isinstance(said, BaseModel)
    return Completion(
        text=said.model_dump_json(),
        usage=Usage(input=by_bytes(call), output=call.max_tokens),
        finish=Finish.STOP,
        served_model="m",
    )


async def test_a_limit_of_the_tenant_is_stepped_down_from_like_a_cap(bench: Bench) -> None:
    """What other jobs spent counts: the same question, again and again, from the same money."""
    fields_of: tuple[dict[str, Any], ...] = ({}, {"strategy": "compressed", "keep": 0.4})
    spent = [
        (await run(bench, ScriptedModel(at_its_bound), **fields)).charged_usd
        for fields in fields_of
    ]
    # as often by compressed RAG as it takes to begin with BriefContext, and then one question by direct RAG
    direct = await price(Dose(strategy="direct", passages=4))
    compressed = math.ceil((await price(BRIEF) - spent[0] - direct) / spent[1])
    left = spent[0] + compressed * spent[1] + direct
    await limit(bench, total=sum(spent) + left)
    given: list[str] = []
    for _ in range(40):
        out = await run(bench, ScriptedModel(at_its_bound))
        assert out.decision is not None
        await audited(bench, out)
        if out.error is not None:
            break
        given.append(out.decision.strategy)
    assert out.error is not None
    assert out.error.type == "NothingAffordable"
    order = ["briefcontext", "compressed", "direct"]
    assert list(dict.fromkeys(given)) == order
    assert given == sorted(given, key=order.index)


async def test_jobs_that_decide_at_the_same_time_may_run_out_together(bench: Bench) -> None:
    """What a whole dose costs is checked and not held (decision 27): the limit holds, and money buys no answer."""
    total = await price(BRIEF)
    await limit(bench, total=total)
    jobs = [await submit(bench) for _ in range(8)]
    local = Local(bench=bench, runner=worker(bench, ScriptedModel(at_its_bound)))
    for _ in range(20):
        await local.until_nothing_is_sent()
        bench.clock.forward(20)
    outs = [await bench.store.get(job, tenant=bench.tenant) for job in jobs]
    # each found the money, which none had set aside
    assert [out.decision and out.decision.dose for out in outs] == [BRIEF] * 8
    in_vain = [out for out in outs if out.error is not None and out.charged_usd]
    assert in_vain
    assert {out.error.type for out in in_vain if out.error} == {"BudgetExhausted"}
    assert sum(out.charged_usd for out in outs) <= total
    for out in outs:
        await audited(bench, out)


async def test_what_declined_for_want_of_money_is_decided_anew_when_tried_again(
    bench: Bench,
) -> None:
    out = await run(bench, scripted(), max_cost_usd=str(MILLI))
    assert out.state is JobState.FAILED
    await raise_cap(bench, out.id, Decimal(1_000))
    await bench.store.retry(out.id, tenant=bench.tenant)
    again = await Local(bench=bench, runner=worker(bench, scripted())).finish(out.id)
    assert again.state is JobState.SUCCEEDED
    assert again.decision is not None
    assert again.decision.dose == BRIEF


async def test_what_would_decline_while_others_hold_the_money_waits_for_it(bench: Bench) -> None:
    await limit(bench, total=await price(STEPS[-1]))
    other = await bench.running()
    await bench.open(other, "a1")
    job = await submit(bench)
    model = scripted()
    local = Local(bench=bench, runner=worker(bench, model))
    await local.until_nothing_is_sent()
    assert not model.calls
    assert await bench.state(job) is JobState.RUNNING
    assert (await bench.store.get(job, tenant=bench.tenant)).decision is None
    await bench.close(other, "a1", cost=NOTHING)
    bench.clock.forward(60)
    out = await local.finish(job)
    assert out.state is JobState.SUCCEEDED
    assert out.decision is not None
    assert out.decision.dose == STEPS[-1]
    assert out.losses == 0


async def test_the_more_wait_for_it_the_less_often_each_looks_again(bench: Bench) -> None:
    await limit(bench, total=await price(STEPS[-1]))
    other = await bench.running()
    await bench.open(other, "a1")
    for _ in range(6):
        await submit(bench)
    began = bench.clock.now
    await Local(bench=bench, runner=worker(bench, scripted())).until_nothing_is_sent()
    name = f"{keys.prefix(bench.tenant)}parked"
    parked = cast("list[str]", await bench.redis.zrange(name, 0, -1))
    scores = cast("list[float]", await bench.redis.zmscore(name, parked))
    pauses = [score - began for score in scores]
    assert len(pauses) == 6
    assert all(later - sooner >= 90 for sooner, later in pairwise(pauses[2:])), pauses


async def test_what_will_never_be_paid_for_does_not_wait(bench: Bench) -> None:
    await limit(bench, total=await price(STEPS[-1]) - MILLI)
    other = await bench.running()
    await bench.open(other, "a1")
    out = await run(bench, scripted())
    assert out.state is JobState.FAILED
    assert out.error is not None
    assert out.error.type == "NothingAffordable"


async def test_what_others_hold_is_waited_for_in_this_process_too() -> None:
    cheapest = await price(STEPS[-1])

    async def remaining() -> RemainingBudget:
        scope = remaining_budget((), cheapest)
        assert scope is not None
        return replace(scope, dollars=cheapest - MILLI)

    model = scripted()
    with pytest.raises(HeadroomReserved) as caught:
        await pipeline(model).run(asked(), Account(), tenant="t", remaining=remaining)
    assert caught.value.asked == cheapest
    assert not model.calls
