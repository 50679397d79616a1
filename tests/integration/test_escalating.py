"""A ladder that is refused to the last: what is decided then, what ends it, and what a lost worker leaves."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from decimal import Decimal
from typing import TYPE_CHECKING

import pytest

from posology.llm.second import REPAIRED
from posology.published.jobs import JobOutput
from posology.query import make_query
from posology.seams import Complete
from posology.testing.prices import by_bytes
from posology.types import Answer, Call, Decision, Dose, JobState, Outcome, Refusal, Stage, Task
from strategies.direct import Direct
from strategies.ladder import step_tasks
from tests.integration.jobs_store.helpers import LEASE, MODEL, Bench
from tests.integration.jobs_store.local import Gate, Local, killed
from tests.support.steps import (
    BRIEF,
    COST,
    DEAR,
    DEARER,
    DECLINED,
    LADDER,
    MAX_TOKENS,
    MILLI,
    PRICES,
    QUESTION,
    Disputed,
    InProcess,
    K,
    asked,
    audited,
    considered,
    limit,
    pipeline,
    price,
    refusing,
    refusing_the_first,
    run,
    scripted,
    submit,
    unsupported_by_the_first,
    worker,
)

if TYPE_CHECKING:
    from posology.testing.model import ScriptedReply

pytestmark = pytest.mark.anyio

RUNGS = (2, 4, 8, 16)
SEARCH = "doubling:escalate=search"
FIRST = Dose(strategy="direct", rungs=RUNGS, escalate=True, search=True)
#: the best two, and all of the second search
SECOND = Dose(strategy="direct", skip=K - 2)


def escalated(decision: Decision | None) -> Decision:
    """Both decisions are in the record."""
    assert decision is not None
    assert decision.dose == Dose(strategy="direct", rungs=RUNGS, escalate=True)
    assert decision.then is not None
    assert decision.then.dose == BRIEF
    assert decision.then.features["tried"] == K
    return decision.then


async def test_a_ladder_that_was_refused_to_the_last_escalates_in_this_process() -> None:
    run = InProcess(model=scripted(refusing), cap=Decimal(1_000), policy=LADDER)
    report = await run.ask()
    then = escalated(report.decision)
    assert then.remaining == run.cap - len(RUNGS) * COST
    assert [rung.passages for rung in report.outcome.rungs] == list(RUNGS)
    assert report.outcome.strategy == "briefcontext"
    assert report.outcome.coverage is not None
    assert report.outcome.coverage.found == report.outcome.coverage.partitions == 6
    stages = [call.stage for call in run.model.calls]
    assert stages == [Stage.ANSWER] * 4 + [Stage.EXTRACT] * 6 + [Stage.REDUCE]
    run.check()


async def test_a_ladder_that_was_refused_to_the_last_escalates_through_the_records(
    bench: Bench,
) -> None:
    model = scripted(refusing)
    out = await run(bench, model, policy=LADDER, max_cost_usd="1000")
    assert out.state is JobState.SUCCEEDED
    then = escalated(out.decision.to(Decision) if out.decision else None)
    assert then.remaining == 1_000 - len(RUNGS) * COST
    assert out.result is not None
    assert out.result.decision == out.decision
    assert [rung.passages for rung in out.result.rungs] == list(RUNGS)
    assert out.result.strategy == "briefcontext"
    assert out.result.coverage is not None
    assert (out.result.coverage.partitions, out.result.coverage.found) == (6, 6)
    assert len(out.spending.attempts) == len(model.calls) == 11
    await audited(bench, out)


async def short_of_more() -> Decimal:
    """A cap that pays for the ladder, and not for BriefContext after it."""
    # the last prompt begins as those before it, and has their ends
    last = await price(Dose(strategy="direct")) * Decimal("1.1")
    cap = 3 * COST + last
    assert cap - 4 * COST < await price(BRIEF)
    return cap


async def test_where_nothing_more_is_paid_for_the_refusal_stands_and_says_so() -> None:
    run = InProcess(model=scripted(refusing), cap=await short_of_more(), policy=LADDER)
    report = await run.ask()
    then = report.decision.then
    assert then is not None
    assert then.dose == DECLINED
    assert considered(then) == (BRIEF,)
    assert isinstance(report.outcome, Refusal)
    assert [rung.passages for rung in report.outcome.rungs] == list(RUNGS)
    assert then.reason in report.outcome.notes
    assert [call.stage for call in run.model.calls] == [Stage.ANSWER] * 4
    run.check()


async def test_where_nothing_more_is_paid_for_the_job_succeeds_with_the_refusal(
    bench: Bench,
) -> None:
    model = scripted(refusing)
    out = await run(bench, model, policy=LADDER, max_cost_usd=str(await short_of_more()))
    assert out.state is JobState.SUCCEEDED
    assert out.result is not None
    assert out.result.status == "refused"
    assert out.decision is not None
    assert out.decision.then is not None
    assert out.decision.then.dose == DECLINED
    assert out.decision.then.reason in out.result.notes
    assert len(model.calls) == 4
    await audited(bench, out)


async def test_a_ladder_that_the_money_ends_does_not_escalate(bench: Bench) -> None:
    """The first rung was paid for at its worst, repair and all; the last is not, even without one."""
    query = make_query(QUESTION)
    retrieval = await Disputed().retrieve(query, k=K)
    task = Task(query=query, retrieval=retrieval, model=MODEL, max_tokens=MAX_TOKENS)
    last = Direct().call(step_tasks(task, Dose(strategy="direct", rungs=RUNGS))[-1])
    assert last is not None
    reserved = PRICES.worst(MODEL, input_tokens=by_bytes(last), output_tokens=MAX_TOKENS)
    cap = 3 * DEAR + reserved - MILLI
    assert cap >= REPAIRED * await price(Dose(strategy="direct", passages=2))
    model = scripted(refusing, usage=DEARER)
    out = await run(bench, model, policy=LADDER, max_cost_usd=str(cap))
    assert out.state is JobState.SUCCEEDED
    assert out.decision is not None
    assert out.decision.then is None
    assert out.result is not None
    assert out.result.status == "refused"
    assert [rung.passages for rung in out.result.rungs] == [2, 4, 8]
    assert any("ladder ended there because of the budget" in note for note in out.result.notes)
    await audited(bench, out)


async def lost(bench: Bench, job: str, model: Complete, *, policy: str) -> JobOutput:
    """Another worker, which is given what the sweep finds when the first one's lease has ended."""
    bench.clock.forward(LEASE)
    other = Local(bench=bench, runner=worker(bench, model, policy=policy, name="other"))
    await other.carry(await bench.sweep_all())
    return await bench.store.get(job, tenant=bench.tenant)


@pytest.mark.parametrize("rung", [2, 4])
async def test_a_ladder_whose_worker_is_lost_pays_for_no_rung_twice(
    bench: Bench, rung: int
) -> None:
    job = await submit(bench, max_cost_usd="1000")
    inner = scripted(refusing)
    gate = Gate(inner, holds=lambda call: len(call.excerpts) == RUNGS[rung - 1])
    first = Local(bench=bench, runner=worker(bench, gate, policy=LADDER))
    await killed(first.until_nothing_is_sent, lambda: gate.until(1))
    before = (await bench.store.get(job, tenant=bench.tenant)).decision
    assert before is not None
    again = scripted(refusing)
    out = await lost(bench, job, again, policy=LADDER)
    assert out.state is JobState.SUCCEEDED
    assert len(inner.calls) == rung - 1
    shown = [len(call.excerpts) for call in again.calls if call.stage is Stage.ANSWER]
    assert shown == list(RUNGS[rung - 1 :])
    paid = [a for a in out.spending.attempts if a.outcome is Outcome.OK]
    assert len(paid) == len(inner.calls) + len(again.calls) == 11
    assert out.decision is not None
    escalated(out.decision.to(Decision))
    assert out.decision.model_copy(update={"then": None}) == before
    assert out.result is not None
    assert [r.passages for r in out.result.rungs] == list(RUNGS)
    await audited(bench, out)


async def test_what_was_decided_stands_when_the_money_has_gone_meanwhile(bench: Bench) -> None:
    """A tenant's limit falls while the worker is lost: the ladder goes on as far as it is paid for."""
    job = await submit(bench)
    gate = Gate(scripted(refusing), holds=lambda call: len(call.excerpts) == RUNGS[1])
    first = Local(bench=bench, runner=worker(bench, gate, policy=LADDER))
    await killed(first.until_nothing_is_sent, lambda: gate.until(1))
    await limit(bench, total=COST)
    out = await lost(bench, job, scripted(refusing), policy=LADDER)
    assert out.state is JobState.SUCCEEDED
    assert out.result is not None
    assert [rung.passages for rung in out.result.rungs] == [2]
    assert any("ladder ended there because of the budget" in note for note in out.result.notes)


async def test_a_worker_that_is_lost_after_the_second_decision_leaves_it_standing(
    bench: Bench,
) -> None:
    """It was decided that nothing more is paid for; whoever goes on gives the refusal, and says so."""
    job = await submit(bench, max_cost_usd="1000")
    assert await bench.worker().take(bench.tenant) is not None
    held = await bench.claimed(job)
    first = (await pipeline(scripted(), policy=LADDER).prepare(asked())).decision
    then = replace(first, dose=DECLINED, reason="Nothing was left.")
    await bench.worker().decide(held, replace(first, then=then), calls=4)
    out = await lost(bench, job, scripted(refusing), policy=LADDER)
    assert out.state is JobState.SUCCEEDED, out.error
    assert out.result is not None
    assert out.result.status == "refused"
    assert "Nothing was left." in out.result.notes
    assert [rung.passages for rung in out.result.rungs] == list(RUNGS)
    assert out.decision is not None
    assert out.decision.then is not None
    assert out.decision.then.to(Decision) == then


def searched(decision: Decision | None) -> Decision:
    """Both decisions are in the record, the second one on the passages of both searches."""
    assert decision is not None
    assert decision.dose == FIRST
    assert decision.then is not None
    assert decision.then.dose == SECOND
    assert (decision.then.features["tried"], decision.then.features["passages"]) == (K, 2 * K)
    return decision.then


#: what ends a ladder without an answer that a quote supports
UNANSWERED = pytest.mark.parametrize("script", [refusing_the_first, unsupported_by_the_first])


@UNANSWERED
async def test_a_second_search_finds_what_the_first_passages_do_not_say(
    script: Callable[[Call], ScriptedReply],
) -> None:
    run = InProcess(model=scripted(script), cap=Decimal(1_000), policy=SEARCH)
    report = await run.ask()
    then = searched(report.decision)
    assert then.remaining == run.cap - len(RUNGS) * COST
    assert isinstance(report.outcome, Answer)
    last = run.model.calls[-1]
    assert [one.passage.id for one in last.excerpts] == [
        "p0",
        "p1",
        *(f"p{i}" for i in range(16, 32)),
    ]
    assert len(run.model.calls) == len(RUNGS) + 1
    assert len(report.retrieval.passages) == 2 * K
    assert [rung.passages for rung in report.outcome.rungs] == list(RUNGS)
    run.check()


@UNANSWERED
async def test_a_second_search_runs_through_the_records(
    bench: Bench, script: Callable[[Call], ScriptedReply]
) -> None:
    model = scripted(script)
    out = await run(bench, model, policy=SEARCH, max_cost_usd="1000")
    assert out.state is JobState.SUCCEEDED
    searched(out.decision.to(Decision) if out.decision else None)
    assert out.result is not None
    assert out.result.status == "answered"
    assert (len(out.result.retrieved), out.result.read) == (2 * K, 2 * K)
    assert len(out.spending.attempts) == len(model.calls) == len(RUNGS) + 1
    await audited(bench, out)


async def test_a_search_that_finds_nothing_new_leaves_briefcontext_over_all() -> None:
    run = InProcess(model=scripted(refusing), cap=Decimal(1_000), policy=SEARCH, all=K)
    report = await run.ask()
    assert report.decision.then is not None
    assert report.decision.then.dose == BRIEF
    assert report.outcome.strategy == "briefcontext"
    run.check()


async def test_a_second_search_that_is_not_paid_for_leaves_the_refusal(bench: Bench) -> None:
    model = scripted(refusing_the_first)
    cap = 3 * COST + await price(Dose(strategy="direct")) * Decimal("1.1")
    out = await run(bench, model, policy=SEARCH, max_cost_usd=str(cap))
    assert out.state is JobState.SUCCEEDED
    assert out.result is not None
    assert out.result.status == "refused"
    assert out.decision is not None
    assert out.decision.then is not None
    assert out.decision.then.dose == DECLINED
    assert out.decision.then.reason in out.result.notes
    assert [one.dose.skip for one in out.decision.then.offers] == [SECOND.skip]
    # nothing of the second search was read
    assert out.result.read == K
    assert len(model.calls) == len(RUNGS)
    await audited(bench, out)


async def test_an_answer_without_a_quote_stands_where_a_second_search_is_not_paid_for(
    bench: Bench,
) -> None:
    model = scripted(unsupported_by_the_first)
    cap = 3 * COST + await price(Dose(strategy="direct")) * Decimal("1.1")
    out = await run(bench, model, policy=SEARCH, max_cost_usd=str(cap))
    assert out.result is not None
    assert out.result.status == "unsupported"
    assert out.decision is not None
    assert out.decision.then is not None
    assert out.decision.then.reason in out.result.notes
    assert len(model.calls) == len(RUNGS)
    await audited(bench, out)


async def test_an_answer_without_a_quote_is_searched_no_further_where_a_repair_was_its_second_chance() -> (
    None
):
    run = InProcess(model=scripted(unsupported_by_the_first), cap=Decimal(1_000), policy=SEARCH)
    report = await run.ask(support="repair")
    assert report.decision.then is None
    run.check()


@pytest.mark.parametrize("call", range(1, len(RUNGS) + 2))
async def test_a_worker_that_is_lost_around_a_second_search_pays_for_no_call_twice(
    bench: Bench, call: int
) -> None:
    job = await submit(bench, max_cost_usd="1000")
    inner = scripted(refusing_the_first)
    shown = [*RUNGS, K + 2][call - 1]
    gate = Gate(inner, holds=lambda one: len(one.excerpts) == shown)
    first = Local(bench=bench, runner=worker(bench, gate, policy=SEARCH))
    await killed(first.until_nothing_is_sent, lambda: gate.until(1))
    again = scripted(refusing_the_first)
    out = await lost(bench, job, again, policy=SEARCH)
    assert out.state is JobState.SUCCEEDED
    assert len(inner.calls) == call - 1
    assert len(inner.calls) + len(again.calls) == len(RUNGS) + 1
    paid = [a for a in out.spending.attempts if a.outcome is Outcome.OK]
    assert len(paid) == len(RUNGS) + 1
    searched(out.decision.to(Decision) if out.decision else None)
    assert out.result is not None
    assert out.result.status == "answered"
    await audited(bench, out)
