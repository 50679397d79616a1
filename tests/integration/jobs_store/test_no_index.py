"""Workers that have no index."""

from __future__ import annotations

import pytest

from orchestrator.runner import RETURNS
from posology.errors import IndexMissing
from posology.types import JobState, Query, Retrieval
from tests.integration.jobs_store.helpers import Bench
from tests.integration.jobs_store.local import Shelf, model, reply, runner

pytestmark = pytest.mark.anyio


class NoShelf(Shelf):
    """What a worker finds whose volume is not mounted."""

    async def retrieve(self, query: Query, *, k: int, **_: object) -> Retrieval:
        raise IndexMissing("there is no index at /index", index="/index")


async def test_a_worker_without_an_index_leaves_its_jobs_to_others(bench: Bench) -> None:
    job = await bench.submit()
    unit = await bench.worker().take(bench.tenant)
    assert unit is not None
    blind = runner(bench, model(reply), shelf=NoShelf(), name="blind")
    assert await blind.run(unit) == ()
    assert await bench.state(job) is JobState.RUNNING
    assert await bench.sweep_all() == [unit], "it is sent again"
    await runner(bench, model(reply), name="seeing").run(unit)
    out = await bench.store.get(job, tenant=bench.tenant)
    assert (out.state, out.losses) == (JobState.SUCCEEDED, 0)


async def test_where_no_worker_has_an_index_the_job_says_so(bench: Bench) -> None:
    job = await bench.submit()
    unit = await bench.worker().take(bench.tenant)
    assert unit is not None
    blind = runner(bench, model(reply), shelf=NoShelf())
    for _ in range(RETURNS + 1):
        await blind.run(unit)
    out = await bench.store.get(job, tenant=bench.tenant)
    assert out.state is JobState.FAILED
    assert out.error is not None
    assert (out.error.type, out.error.exit_code) == ("IndexMissing", 5)
    assert out.spending.attempts == ()
