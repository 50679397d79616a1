"""A job that is cancelled between a unit's last call and its parking for a provider's batch."""

from __future__ import annotations

import logging

import pytest

from posology.budget.prices.book import packaged
from posology.seams.batches import BatchLine
from posology.testing.prices import by_bytes
from posology.types import Call, JobState, Query, Retrieval
from tests.integration.jobs_store.helpers import Bench
from tests.integration.jobs_store.local import Shelf, model, reply, runner
from workers.engine.lane.calls import LaneCalls, LaneRecords, Waits

pytestmark = pytest.mark.anyio


class Cancelling(Shelf):
    """Cancels the job, and then waits for a batch."""

    def __init__(self, bench: Bench, job: str, calls: LaneCalls) -> None:
        super().__init__()
        self._bench, self._job, self._calls = bench, job, calls

    async def retrieve(self, query: Query, *, k: int, **_: object) -> Retrieval:
        await self._bench.store.cancel(self._job, tenant=self._bench.tenant)
        raise Waits(self._calls)


async def _none(*_: str) -> None:
    return None


def _unused(_: Call) -> BatchLine:
    raise AssertionError("no call is made")


async def test_the_job_is_cancelled_and_no_error_is_reported(
    bench: Bench, caplog: pytest.LogCaptureFixture
) -> None:
    unit = await bench.sent()
    job = unit.job
    calls = LaneCalls(
        LaneRecords(recall=_none, failed=_none, flawed=_none),
        line=_unused,
        prices=packaged(),
        bound=by_bytes,
        live=None,
        tenant=bench.tenant,
    )
    with caplog.at_level(logging.WARNING):
        following = await runner(
            bench, model(reply), shelf=Cancelling(bench, job, calls), name="w"
        ).run_all([unit])
    assert following == []
    assert await bench.state(job) is JobState.CANCELLED
    assert [r.levelname for r in caplog.records] == ["WARNING"]
