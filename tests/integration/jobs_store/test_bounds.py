"""Nothing that users do makes a script long, or a key grow for ever; a script that is repeated is recognised."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import replace
from decimal import Decimal

import pytest

from orchestrator.jobs import metrics
from orchestrator.question.estimates.typical import _figures
from posology.budget.ledger.scripts import MODELS, OTHER
from posology.store import keys
from posology.types import JobState, Outcome, Usage
from tests.integration.jobs_store.helpers import ERROR, Bench, completion, ended, opening
from tests.integration.ledger.helpers import figures
from workers.engine.journal import JobJournal
from workers.engine.units import ClaimedUnit

pytestmark = pytest.mark.anyio


async def test_a_script_looks_at_few_cancelled_jobs_at_once(bench: Bench) -> None:
    for job in [await bench.submit() for _ in range(450)]:
        await bench.cancel(job)
    last = await bench.submit()
    prefix = keys.prefix(bench.tenant)
    assert await bench.store.run("take", prefix) == "more"
    assert await bench.redis.llen(f"{prefix}waiting") > 200
    unit = await bench.next()
    assert unit.job == last
    assert await bench.worker().take(bench.tenant) is None


async def test_pages_by_state_are_in_the_order_of_submission(bench: Bench) -> None:
    jobs = [await bench.submit() for _ in range(5)]
    # the oldest changes last
    for job in reversed(jobs):
        bench.clock.forward(1)
        await bench.cancel(job)
    found: list[str] = []
    cursor = None
    while True:
        page = await bench.store.page(
            tenant=bench.tenant, state=JobState.CANCELLED, cursor=cursor, limit=2
        )
        found += [job.id for job in page.jobs]
        if page.next is None:
            break
        cursor = page.next
    assert found == sorted(jobs, reverse=True)
    name = bench.key("state:cancelled")
    # what lets Redis find a page without reading all before it
    assert await bench.redis.zcount(name, 0, 0) == len(jobs)


async def test_a_retry_whose_reply_was_lost_is_made_once(bench: Bench) -> None:
    held = await bench.running()
    job, prefix = held.unit.job, keys.prefix(bench.tenant)
    await bench.worker().fail(held, ERROR)
    assert await bench.store.run("retry", prefix, job, 1_000, "n1") == ["queued"]
    assert await bench.store.run("retry", prefix, job, 1_000, "n1") == ["queued"]
    assert await bench.redis.lrange(f"{prefix}waiting", 0, -1) == [job]
    assert await bench.store.run("retry", prefix, job, 1_000, "n2") == ["refused", "queued"]
    # a repetition that comes when the job is under way again changes nothing
    again = await bench.claimed(job)
    assert await bench.store.run("retry", prefix, job, 1_000, "n1") == ["queued"]
    assert await bench.state(job) is JobState.RUNNING
    await bench.worker().fail(again, ERROR)


async def attempt(bench: Bench, held: ClaimedUnit, name: str, model: str, outcome: Outcome) -> None:
    journal = JobJournal(bench.worker(), held)
    begun = replace(opening(held, name, key=name), model=model)
    await journal.open(begun)
    await journal.close(ended(begun, outcome, None), completion())


async def test_attempts_that_were_refused_say_nothing_of_what_calls_need(bench: Bench) -> None:
    held = await bench.running()
    await bench.open(held, "a")
    await bench.close(held, "a")
    for name in "bc":
        await bench.open(held, name)
        attempt = replace(ended(opening(held, name), Outcome.FAILED, Decimal(0)), usage=Usage())
        await JobJournal(bench.worker(), held).close(attempt, None)
    sums: Counter[str] = Counter()
    for figure in (await figures(bench.redis, bench.tenant, "2023-11-14")).values():
        for named, n in figure.items():
            sums[named.partition("|")[0]] += n
    assert (sums["attempts"], sums["idle"]) == (3, 2)
    known = _figures(sums)
    assert (known.attempts, known.input, known.output) == (1, 10, 1)


async def test_names_that_callers_make_up_have_no_figures_of_their_own(bench: Bench) -> None:
    # the figures are of all tenants of this Redis, other tests' too
    before = (await metrics.read(bench.store)).counters

    def more(counters: Mapping[str, int], name: str) -> int:
        return counters[name] - before.get(name, 0)

    held = await bench.running()
    await attempt(bench, held, "0", "openai:real", Outcome.OK)
    for i in range(20):
        await attempt(bench, held, f"bad{i}", f"openai:{i}", Outcome.FAILED)
    await attempt(bench, held, "1", "openai:real", Outcome.FAILED)
    counters = (await metrics.read(bench.store)).counters
    own = await bench.redis.hkeys(bench.key("metrics"))
    assert not any(f"openai:{i}" in name for i in range(20) for name in own)
    assert more(counters, f"attempts|answer|{OTHER}|failed") == 20
    assert more(counters, "attempts|answer|openai:real|failed") == 1
    for i in range(MODELS + 5):
        await attempt(bench, held, f"good{i}", f"openai:good{i}", Outcome.OK)
    counters = (await metrics.read(bench.store)).counters
    assert more(counters, f"attempts|answer|{OTHER}|ok") == 6
    assert more(counters, f"attempts|answer|openai:good{MODELS - 2}|ok") == 1


async def test_a_loss_is_taken_back_from_where_it_was_counted(bench: Bench) -> None:
    """The model has its first reply between the two, and figures of its own from then on."""
    held = await bench.running()
    journal = JobJournal(bench.worker(), held)
    begun = replace(opening(held, "a"), model="openai:new")
    await journal.open(begun)
    await bench.lost()
    name = f"attempts|answer|{OTHER}|lost"
    assert (await metrics.read(bench.store)).counters[name] >= 1
    before = (await metrics.read(bench.store)).counters[name]
    other = await bench.claimed(held.unit.job)
    await attempt(bench, other, "b", "openai:new", Outcome.OK)
    await journal.close(ended(begun, Outcome.OK, None), completion())
    counters = (await metrics.read(bench.store)).counters
    assert counters[name] == before - 1
    assert counters["attempts|answer|openai:new|lost"] == 0
