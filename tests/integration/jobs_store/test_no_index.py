"""Workers that have no index, or not the models that others have."""

from __future__ import annotations

import pytest

from posology.errors import IndexMissing, ModelUnavailable, PosologyError, ScorerUnavailable
from posology.types import JobState, Query, Retrieval
from tests.integration.jobs_store.helpers import Bench
from tests.integration.jobs_store.local import Shelf, model, reply, runner
from workers.engine.runner import RETURNS

pytestmark = pytest.mark.anyio


class NoShelf(Shelf):
    """What a worker finds whose volume is not mounted."""

    missing: PosologyError = IndexMissing("there is no index at /index", index="/index")

    async def retrieve(self, query: Query, *, k: int, **_: object) -> Retrieval:
        raise self.missing


class NoModel(NoShelf):
    """What a worker finds whose folder of models is not mounted."""

    missing = ModelUnavailable("no model at /models/provence", model="/models/provence")


class NoScorer(NoShelf):
    """The same of the language model for self-information."""

    missing = ScorerUnavailable("no model at /models/gpt2", model="/models/gpt2")


@pytest.mark.parametrize("shelf", [NoShelf, NoModel, NoScorer])
async def test_a_worker_that_lacks_something_leaves_its_jobs_to_others(
    bench: Bench, shelf: type[NoShelf]
) -> None:
    job = await bench.submit()
    unit = await bench.worker().take(bench.tenant)
    assert unit is not None
    blind = runner(bench, model(reply), shelf=shelf(), name="blind")
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
