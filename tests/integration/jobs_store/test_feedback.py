"""What users say of answers, and the copy of the Q-table that learns from it."""

from __future__ import annotations

import asyncio
import json
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from orchestrator.jobs.feedback import Cell, Summed, cell_of, collect, give
from orchestrator.jobs.records import WHOLE
from orchestrator.question.sent import FeedbackRequest
from posology.errors import JobNotFound, JobNotSucceeded
from posology.published.decisions import DecisionOutput
from posology.published.jobs import JobOutput
from posology.store import keys
from posology.types import Decision, Dose, JobState
from tests.integration.jobs_store.helpers import (
    DIRECT,
    RETENTION,
    Bench,
    answer,
    open_bench,
    refused,
)
from tests.integration.jobs_store.test_transitions import REACH
from tests.support.examples import examples

pytestmark = pytest.mark.anyio

TABLE = "1f0c2a9e5b7d4836"
FEATURES = {"passages": 8, "qtable.state": 3, "qtable.distance": 0.25, "qtable.table": TABLE}
COMPRESSED = Decision(
    dose=Dose(strategy="compressed", keep=0.1), policy="qtable", reason="it pays", features=FEATURES
)
WHOLLY = replace(COMPRESSED, dose=Dose(strategy="direct"))


async def judged_by(bench: Bench, job: str, score: float, comment: str | None = None) -> JobOutput:
    said = FeedbackRequest(score=score, comment=comment)
    return await give(bench.store, job, said, tenant=bench.tenant)


async def succeeded(bench: Bench, decision: Decision, *, shown: float | None = 0.25) -> str:
    held = await bench.running()
    await bench.worker().decide(held, decision, calls=1)
    result = answer().model_copy(update={"strategy": decision.strategy, "shown": shown})
    await bench.worker().succeed(held, result)
    return held.unit.job


async def learned(bench: Bench, table: str = TABLE) -> tuple[Summed, ...]:
    return (await collect(bench.store, table, tenant=bench.tenant)).cells


def summed(score: float, *, state: int = 3, keep: float = 0.1, shown: float = 0.25) -> Summed:
    return Summed(
        state=state,
        keep=round(keep * WHOLE),
        count=1,
        score=round(score * WHOLE),
        shown=round(shown * WHOLE),
    )


async def test_what_is_said_is_kept_and_learned(bench: Bench) -> None:
    job = await succeeded(bench, COMPRESSED)
    bench.clock.forward(60)
    out = await judged_by(bench, job, 0.75, "Half of it 🙂 is right.")
    assert out.feedback is not None
    assert (out.feedback.score, out.feedback.comment) == (0.75, "Half of it 🙂 is right.")
    assert out.feedback.at.timestamp() * 1000 == bench.clock.now
    assert (out.feedback.table, out.feedback.state) == (TABLE, 3)
    assert (out.feedback.keep, out.feedback.shown) == (0.1, 0.25)
    assert await bench.get(job) == out
    assert await learned(bench) == (summed(0.75),)


async def test_direct_rag_by_the_table_teaches_it_too(bench: Bench) -> None:
    await judged_by(bench, await succeeded(bench, WHOLLY, shown=None), 0.5)
    assert await learned(bench) == (summed(0.5, keep=1, shown=1),)


async def test_what_no_table_decided_is_kept_alone(bench: Bench) -> None:
    job = await succeeded(bench, DIRECT)
    out = await judged_by(bench, job, 0.5)
    assert out.feedback is not None
    assert (out.feedback.score, out.feedback.table, out.feedback.keep) == (0.5, None, None)
    names = [n async for n in bench.redis.scan_iter(match=bench.key("qtable*"))]
    assert names == []


@pytest.mark.parametrize("state", [S for S in JobState if S is not JobState.SUCCEEDED])
async def test_only_an_answer_is_judged(bench: Bench, state: JobState) -> None:
    job = await REACH[state](bench)
    assert await bench.state(job) is state
    assert await refused(judged_by(bench, job, 1)) is JobNotSucceeded
    # nor by a script that comes late
    assert await bench.store.run("feedback", keys.prefix(bench.tenant), job, "{}", "") == "gone"
    assert (await bench.get(job)).feedback is None


async def test_a_job_of_nobody_or_of_another_cannot_be_judged(bench: Bench) -> None:
    job = await succeeded(bench, COMPRESSED)
    said = FeedbackRequest(score=1)
    for name, whose in ((keys.new_id("job"), bench.tenant), (job, f"{bench.tenant}-other")):
        assert await refused(give(bench.store, name, said, tenant=whose)) is JobNotFound
    assert await learned(bench) == ()


async def test_what_was_learned_outlives_the_job(bench: Bench) -> None:
    job = await succeeded(bench, COMPRESSED)
    await judged_by(bench, job, 1)
    bench.clock.forward(RETENTION + 1)
    await bench.sweep()
    assert await refused(judged_by(bench, job, 0)) is JobNotFound
    assert await bench.keys_of(job) == set()
    assert await learned(bench) == (summed(1),)


async def test_of_many_at_once_the_last_counts_once(bench: Bench) -> None:
    job = await succeeded(bench, COMPRESSED)
    scores = [i / 40 for i in range(41)]
    await asyncio.gather(*(judged_by(bench, job, score) for score in scores))
    found = (await bench.get(job)).feedback
    assert found is not None
    assert await learned(bench) == (summed(found.score),)


async def test_the_script_may_run_twice(bench: Bench) -> None:
    job = await succeeded(bench, COMPRESSED)
    cell = {"table": TABLE, "state": 0, "keep": 0, "score": 5, "shown": 7}
    for _ in range(2):
        said = await bench.store.run(
            "feedback", keys.prefix(bench.tenant), job, '{"score": 0}', json.dumps(cell)
        )
        assert said == "kept"
    assert await learned(bench) == (Summed(state=0, keep=0, count=1, score=5, shown=7),)


@examples(15)
@given(
    said=st.lists(
        st.tuples(st.integers(0, 3), st.floats(0, 1, allow_subnormal=False)),
        min_size=1,
        max_size=12,
    )
)
def test_the_copy_is_the_sum_of_what_stands(
    redis_url: str, tenant: str, said: list[tuple[int, float]]
) -> None:
    async def run() -> None:
        async with open_bench(redis_url, f"{tenant}-{keys.new_id('x')}") as bench:
            decisions = [
                replace(COMPRESSED, features=FEATURES | {"qtable.state": i % 2}) for i in range(4)
            ]
            jobs = [
                await succeeded(bench, decision, shown=i / 10)
                for i, decision in enumerate(decisions)
            ]
            last: dict[int, float] = {}
            for place, score in said:
                await judged_by(bench, jobs[place], score)
                last[place] = score
            found = {cell.state: cell for cell in await learned(bench)}
            for state in (0, 1):
                mine = {i: score for i, score in last.items() if i % 2 == state}
                if not mine:
                    assert state not in found
                    continue
                assert found[state].count == len(mine)
                assert found[state].score == sum(round(score * WHOLE) for score in mine.values())
                assert found[state].shown == sum(i * WHOLE // 10 for i in mine)

    asyncio.run(run())


# what an answer teaches


def taught(decision: Decision, **result: Any) -> Cell | None:
    given_ = {"strategy": decision.strategy, "shown": 0.3} | result
    return cell_of(DecisionOutput.of(decision), answer().model_copy(update=given_), 0.5)


def test_an_answer_teaches_what_was_done_and_what_came_of_it() -> None:
    assert taught(COMPRESSED) == Cell(
        table=TABLE, state=3, keep=100_000, score=500_000, shown=300_000
    )


def test_without_a_count_it_was_shown_the_share_that_was_asked_for() -> None:
    found = taught(COMPRESSED, shown=None)
    assert found is not None
    assert found.shown == 100_000
    ladder = replace(COMPRESSED, dose=replace(COMPRESSED.dose, rungs=(2, 4, 8)))
    assert taught(ladder, shown=None) is None
    assert taught(ladder, shown=0.05) is not None


@pytest.mark.parametrize(
    "decision",
    [
        DIRECT,
        replace(COMPRESSED, features={"qtable.table": TABLE}),
        replace(COMPRESSED, features=FEATURES | {"qtable.state": None}),
        replace(COMPRESSED, features=FEATURES | {"qtable.state": True}),
        replace(COMPRESSED, features=FEATURES | {"qtable.table": "a:b}"}),
        replace(COMPRESSED, dose=Dose(strategy="compressed", keep=0.1, passages=4)),
        replace(COMPRESSED, dose=Dose(strategy="compressed")),
        replace(COMPRESSED, dose=Dose(strategy="briefcontext")),
        replace(COMPRESSED, then=DIRECT),
    ],
)
def test_what_says_nothing_of_an_action_teaches_nothing(decision: Decision) -> None:
    assert taught(decision) is None


def test_what_another_strategy_answered_teaches_nothing() -> None:
    assert taught(COMPRESSED, strategy="briefcontext") is None
