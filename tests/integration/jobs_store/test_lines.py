"""Log lines of the job store: one for each event, with its ids and without its text."""

from __future__ import annotations

import logging
from decimal import Decimal
from typing import Any

import anyio
import pytest

from orchestrator.logs.events import EVENTS
from posology.budget.tenants.alerts import near_limits
from posology.errors import BudgetExhausted
from posology.store import keys
from posology.types import Outcome
from tests.integration.jobs_store.helpers import LEASE, LOSSES, Bench, answer
from workers.engine.maintenance import is_first_warning

pytestmark = pytest.mark.anyio

QUESTION = "Does zyxomab cure lattice fever?"


@pytest.fixture
def caplog(caplog: pytest.LogCaptureFixture) -> pytest.LogCaptureFixture:
    caplog.set_level(logging.DEBUG, logger=EVENTS)
    return caplog


def told(caplog: pytest.LogCaptureFixture) -> list[tuple[str, dict[str, Any]]]:
    """Events since the last look, with their fields."""
    found = [
        (one.getMessage(), vars(one)["fields"]) for one in caplog.records if one.name == EVENTS
    ]
    assert "zyxomab" not in str(found)
    caplog.clear()
    return found


async def test_a_job_that_succeeds(bench: Bench, caplog: pytest.LogCaptureFixture) -> None:
    job = await bench.submit(question=QUESTION)
    ((event, fields),) = told(caplog)
    assert (event, fields["job"], fields["tenant"]) == ("job submitted", job, bench.tenant)
    # told once, however often it is sent
    first = await bench.submit(key="k")
    assert await bench.submit(key="k") == first
    assert len(told(caplog)) == 1
    await bench.worker().take(bench.tenant)
    held = await bench.claimed(job)
    await bench.open(held, "a1")
    await bench.close(held, "a1")
    await bench.open(held, "a2", key="l")
    await bench.close(held, "a2", Outcome.FAILED, cost=None, key="l")
    await bench.worker().succeed(held, answer(QUESTION))
    found = told(caplog)
    assert [event for event, _ in found] == [
        "job started",
        "attempt settled",
        "attempt failed",
        "job succeeded",
    ]
    assert all(fields["job"] == job for _, fields in found)
    assert found[1][1]["charged_usd"] == "0.001"
    assert found[2][1]["error"] == "ProviderTimeout"


async def test_a_worker_that_is_lost(bench: Bench, caplog: pytest.LogCaptureFixture) -> None:
    held = await bench.calling("a1")
    told(caplog)
    bench.clock.forward(LEASE + 1)
    await bench.sweep()
    found = dict(told(caplog))
    assert set(found) == {"lease lost", "attempt lost"}
    assert found["lease lost"]["worker"] == "w"
    assert all(fields["job"] == held.unit.job for fields in found.values())
    # the last loss that a unit may have ends its job
    for _ in range(LOSSES):
        await bench.claimed(held.unit.job)
        bench.clock.forward(LEASE + 1)
        await bench.sweep()
    assert [event for event, _ in told(caplog)].count("job failed") == 1


async def test_a_unit_that_is_requeued(bench: Bench, caplog: pytest.LogCaptureFixture) -> None:
    held = await bench.running()
    told(caplog)
    await bench.worker().release(held)
    assert [event for event, _ in told(caplog)] == ["unit requeued"]


async def test_a_refusal(bench: Bench, caplog: pytest.LogCaptureFixture) -> None:
    held = await bench.running()
    await bench.redis.hset(bench.key("tenant"), "day", 1)
    told(caplog)
    with pytest.raises(BudgetExhausted):
        await bench.open(held, "a1")
    ((event, fields),) = told(caplog)
    assert event == "refused by a limit"
    assert (fields["error"], fields["scope"], fields["job"]) == (
        "BudgetExhausted",
        "day",
        held.unit.job,
    )


async def test_one_of_many_workers_warns_of_a_limit(bench: Bench) -> None:
    name = keys.prefix(bench.tenant)
    held = await bench.calling("a1")
    await bench.close(held, "a1", cost=Decimal("0.8"))
    for cap, near in (("1000000001", 0), ("1000000000", 1), ("0", 0), ("500000000", 1)):
        await bench.redis.hset(f"{name}tenant", "total", cap)
        found = await near_limits(bench.redis, bench.url, [bench.tenant])
        assert len(found) == near, cap
        winners: list[bool] = []

        async def warn(one: Any, winners: list[bool] = winners) -> None:
            winners.append(await is_first_warning(bench.store, one))

        async with anyio.create_task_group() as group:
            for one in found * 20:
                group.start_soon(warn, one)
        assert sum(winners) == near
        # the same limit in the same window is not reported again
        assert not any([await is_first_warning(bench.store, one) for one in found])
