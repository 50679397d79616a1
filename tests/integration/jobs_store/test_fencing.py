"""What a worker may still do that was slow, was taken for lost, or lost the store's reply."""

from __future__ import annotations

from decimal import Decimal

import pytest

from posology.errors import JobCancelled, JobExpired, JobSuperseded
from posology.llm.memo import Answered
from posology.types import JobState, Outcome
from tests.integration.jobs_store.helpers import (
    ERROR,
    LEASE,
    PARTED,
    PATIENCE,
    Bench,
    answer,
    opening,
    parts,
    unread,
)
from workers.engine.journal import JobJournal
from workers.engine.units import ClaimedUnit

pytestmark = pytest.mark.anyio


async def superseded(bench: Bench) -> tuple[ClaimedUnit, ClaimedUnit]:
    """Two workers, each of which believes to hold the unit; the second does."""
    old = await bench.running()
    assert await bench.lost() == [old.unit]
    return old, await bench.claimed(old.unit.job, worker="other")


async def test_a_worker_that_was_taken_for_lost_changes_nothing(bench: Bench) -> None:
    old, new = await superseded(bench)
    job, work = old.unit.job, bench.worker()
    before = await bench.redis.hgetall(bench.key(f"job:{job}"))
    for attempt in (
        work.decide(old, PARTED, calls=3, partitions=parts(2)),
        work.succeed(old, answer("an old one")),
        work.fail(old, ERROR),
        JobJournal(work, old).open(opening(old, "z")),
    ):
        with pytest.raises(JobSuperseded):
            await attempt
    await work.release(old)
    assert (await work.heartbeat([old, new])) == {old: "superseded", new: "ok"}
    assert await bench.redis.hgetall(bench.key(f"job:{job}")) == before
    await work.succeed(new, answer("a new one"))
    out = await bench.get(job)
    assert out.result is not None
    assert out.result.answer == "a new one"


async def test_what_an_old_run_holds_is_nothing_to_the_next(bench: Bench) -> None:
    job = await bench.extracting(2)
    old, failing = [await bench.claimed(job, f"extract:{i}") for i in range(2)]
    await bench.open(old, "slow")
    await bench.worker().fail(failing, ERROR)
    await bench.retry(job)
    held = await bench.claimed(job)
    await bench.worker().decide(held, PARTED, calls=3, partitions=parts(2))
    new = await bench.claimed(job, "extract:0")
    with pytest.raises(JobSuperseded):
        await bench.worker().extracted(old, unread(0))
    # the money is spent all the same
    await bench.close(old, "slow", cost=Decimal("0.5"))
    out = await bench.get(job)
    assert (out.known_cost_usd, out.unknown_costs) == (Decimal("0.5"), 0)
    # nor does the lease of the old run end the new one
    bench.clock.forward(LEASE - 1)
    assert set((await bench.worker().heartbeat([new])).values()) == {"ok"}
    bench.clock.forward(1)
    assert await bench.sweep() == []


async def test_a_late_reply_corrects_the_account(bench: Bench) -> None:
    old, _ = await superseded_while_calling(bench)
    out = await bench.get(old.unit.job)
    assert [a.outcome for a in out.spending.attempts] == [Outcome.LOST]
    assert (out.known_cost_usd, out.unknown_costs) == (Decimal(0), 1)
    for _ in range(2):  # told twice where the store's reply was lost
        await bench.close(old, "a", cost=Decimal("0.25"))
        out = await bench.get(old.unit.job)
        assert [a.outcome for a in out.spending.attempts] == [Outcome.OK]
        assert (out.known_cost_usd, out.unknown_costs) == (Decimal("0.25"), 0)


async def superseded_while_calling(bench: Bench) -> tuple[ClaimedUnit, ClaimedUnit]:
    old = await bench.calling("a")
    await bench.lost()
    return old, await bench.claimed(old.unit.job, worker="other")


async def test_a_late_reply_is_there_for_whoever_took_over(bench: Bench) -> None:
    old, new = await superseded_while_calling(bench)
    await bench.close(old, "a", key="the call")
    # the key is the opening's: that is what the store knows of the call
    assert await JobJournal(bench.worker(), new).recall("a") is not None


async def test_what_was_answered_late_is_not_asked_again(bench: Bench) -> None:
    """The second worker looked for a reply before it came; its own attempt failed, and it tries again."""
    old, new = await superseded_while_calling(bench)
    journal = JobJournal(bench.worker(), new)
    await bench.open(new, "b", key="a")
    await bench.close(new, "b", Outcome.FAILED, key="a")
    await bench.close(old, "a", cost=Decimal("0.25"))
    before = await bench.get(old.unit.job)
    with pytest.raises(Answered) as late:
        await bench.open(new, "c", key="a")
    assert late.value.completion == await journal.recall("a")
    assert await bench.get(old.unit.job) == before
    assert await _open(bench, new) == set()
    # another call is sent
    assert await bench.open(new, "d") == 3


async def test_an_opening_is_withdrawn_whose_call_was_answered_before_it_was_repeated(
    bench: Bench,
) -> None:
    old, new = await superseded_while_calling(bench)
    # entered, but the worker does not know
    await bench.open(new, "b", key="a")
    await bench.close(old, "a", cost=Decimal("0.25"))
    with pytest.raises(Answered):
        await bench.open(new, "b", key="a")
    out = await bench.get(old.unit.job)
    assert [a.id for a in out.spending.attempts] == ["a"]
    assert await _open(bench, new) == set()


async def test_a_late_reply_of_no_use_does_not_fail_the_next_try(bench: Bench) -> None:
    held = await bench.calling("slow")
    await bench.open(held, "good", key="other")
    await bench.worker().fail(held, ERROR)
    await bench.retry(held.unit.job)
    await bench.close(held, "slow", Outcome.UNUSABLE)
    await bench.close(held, "good", key="other")
    new = JobJournal(bench.worker(), await bench.claimed(held.unit.job))
    assert await new.recall("slow") is None
    assert await new.recall("other") is not None


async def test_a_retry_replays_good_replies_and_not_those_of_no_use(bench: Bench) -> None:
    held = await bench.running()
    for attempt, outcome in (("good", Outcome.OK), ("bad", Outcome.UNUSABLE)):
        await bench.open(held, attempt, key=attempt)
        await bench.close(held, attempt, outcome, key=attempt)
    # whoever takes over in the same run replays a reply of no use, with the repair that followed it
    await bench.lost()
    held = await bench.claimed(held.unit.job)
    assert await JobJournal(bench.worker(), held).recall("bad") is not None
    await bench.worker().fail(held, ERROR)
    await bench.retry(held.unit.job)
    new = JobJournal(bench.worker(), await bench.claimed(held.unit.job))
    assert await new.recall("good") is not None
    assert await new.recall("bad") is None


async def test_a_claim_whose_reply_was_lost_is_the_same_claim(bench: Bench) -> None:
    held = await bench.running()
    work = bench.worker()
    again = await work.claim(held.unit, delivery=str(bench.deliveries))
    assert again is not None
    assert again.token == held.token
    assert await work.claim(held.unit, delivery="another") is None


async def test_an_opening_whose_reply_was_lost_is_entered_once(bench: Bench) -> None:
    held = await bench.running()
    assert await bench.open(held, "a") == await bench.open(held, "a") == 1
    assert await bench.open(held, "b") == 2
    assert await _open(bench, held) == {"a", "b"}


@pytest.mark.parametrize("ends", ["cancelled", "expired", "over", "lost"])
async def test_an_opening_whose_reply_was_lost_is_not_sent_later(bench: Bench, ends: str) -> None:
    held = await bench.running()
    job = held.unit.job
    await bench.open(held, "a")  # entered, but the worker does not know, and asks again
    error: type[Exception]
    if ends == "cancelled":
        await bench.cancel(job)
        error = JobCancelled
    elif ends == "expired":
        bench.clock.forward(PATIENCE)
        error = JobExpired
    elif ends == "over":
        bench.clock.forward(PATIENCE + 2 * LEASE + 1)
        await bench.worker().heartbeat([held])
        await bench.sweep()
        assert await bench.state(job) is JobState.EXPIRED
        error = JobSuperseded
    else:
        await bench.lost()
        error = JobSuperseded
    with pytest.raises(error):
        await bench.open(held, "a")
    # what was never sent is no attempt
    out = await bench.get(job)
    assert out.spending.attempts == ()
    assert out.unknown_costs == 0
    assert await _open(bench, held) == set()
    money = await bench.redis.hgetall(bench.key("money"))
    assert (money["reserved:total"], money.get("spent:total", "0")) == ("0", "0")


async def _open(bench: Bench, held: ClaimedUnit) -> set[str]:
    name = bench.key(f"job:{held.unit.job}:open")
    found: set[str] = await bench.redis.smembers(name)  # type: ignore[assignment]
    return found
