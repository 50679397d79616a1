"""Workers that have no index, or not the models that others have."""

from __future__ import annotations

import pytest

from orchestrator.api.app import create_app
from orchestrator.jobs.batches import Batches
from orchestrator.jobs.store import JobStore
from orchestrator.logs.events import EVENTS
from orchestrator.settings import Settings
from posology.errors import (
    IndexMissing,
    MissingKey,
    ModelUnavailable,
    PosologyError,
    ScorerUnavailable,
    VersionGone,
)
from posology.published.calls import ErrorBody
from posology.types import JobState, Query, Retrieval
from tests.integration.jobs_store.helpers import Bench, failed
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
    unit = await bench.sent()
    job = unit.job
    blind = runner(bench, model(reply), shelf=shelf(), name="blind")
    assert await blind.run(unit) == ()
    assert await bench.state(job) is JobState.RUNNING
    assert await bench.sweep_all() == [unit], "it is sent again"
    await runner(bench, model(reply), name="seeing").run(unit)
    out = await bench.get(job)
    assert (out.state, out.losses) == (JobState.SUCCEEDED, 0)


class NoKey(NoShelf):
    """What a worker finds whose environment has no key of a provider."""

    missing = MissingKey(variable="OPENAI_API_KEY")


async def test_a_missing_key_is_the_operators_to_set(
    bench: Bench, caplog: pytest.LogCaptureFixture
) -> None:
    unit = await bench.sent()
    job = unit.job
    caplog.set_level("INFO", EVENTS)
    await runner(bench, model(reply), shelf=NoKey()).run(unit)
    error = (await bench.get(job)).error
    assert error is not None
    assert error.message.startswith("the operator must fix this and restart the service: ")
    assert "`posology keys set openai`" in error.message
    assert error.details == {"variable": "OPENAI_API_KEY"}
    (failed,) = [line for line in caplog.records if line.message == "job failed"]
    assert failed.__dict__["fields"]["variable"] == "OPENAI_API_KEY"


class NoVersion(NoShelf):
    """What any worker finds where a question names a version that nobody has."""

    missing = VersionGone(index="/index", version=99_999, days=30.0)


async def test_a_version_that_nobody_has_fails_its_job_at_once(bench: Bench) -> None:
    unit = await bench.sent(index_version=99_999)
    job = unit.job
    await runner(bench, model(reply), shelf=NoVersion()).run(unit)
    out = await bench.get(job)
    assert (failed(out).type, out.runs) == ("VersionGone", 1)


@pytest.mark.parametrize(
    ("asked", "shelf", "error"),
    [
        ({}, NoShelf, ("IndexMissing", 5)),
        ({"prompts": "0123456789abcdef", "strategy": "direct"}, Shelf, ("PromptsMismatch", 4)),
    ],
)
async def test_where_no_worker_has_what_a_job_needs_the_job_says_so(
    bench: Bench, asked: dict[str, str], shelf: type[Shelf], error: tuple[str, int]
) -> None:
    unit = await bench.sent(**asked)
    job = unit.job
    blind = runner(bench, model(reply), shelf=shelf())
    for _ in range(RETURNS + 1):
        assert not (await bench.state(job)).over
        await blind.run(unit)
    out = await bench.get(job)
    assert (failed(out).type, failed(out).exit_code) == error
    assert out.spending.attempts == ()


@pytest.mark.parametrize(
    ("kind", "withheld"),
    [("MissingKey", True), ("IndexMissing", True), ("ProviderUnreachable", False), ("VersionGone", False),
     ("UnpricedModel", False), ("PosologyError", False)],
)  # fmt: skip
async def test_tenants_are_not_told_how_to_set_the_service_up(
    bench: Bench, kind: str, withheld: bool
) -> None:
    said = ErrorBody(
        type=kind,
        message="set ANTHROPIC_API_KEY",
        exit_code=4,
        details={"variable": "ANTHROPIC_API_KEY"},
        spending=None,
    )
    batches = Batches(bench.store, Settings())
    batch = await batches.submit(['{"question": "Does it?"}'], tenant=bench.tenant)
    unit = await bench.next()
    await bench.worker().fail(await bench.claimed(unit.job), said)
    silent = JobStore(bench.redis, bench.url, clock=bench.clock, advice=False)
    told = (await bench.get(unit.job)).error
    (row,) = await Batches(silent, Settings()).rows(batch.id, tenant=bench.tenant)
    job = await silent.get(unit.job, tenant=bench.tenant)
    assert told is not None
    assert told.message == said.message
    for error in (row.error, job.error):
        assert error is not None
        assert error.type == kind
        assert ("ANTHROPIC" in error.model_dump_json()) is not withheld


@pytest.mark.parametrize("auth", ["keys", "open"])
async def test_an_api_with_keys_withholds_it(redis_url: str, auth: str) -> None:
    given = {"POSOLOGY_REDIS_URL": redis_url, "POSOLOGY_AUTH": auth}
    app = create_app(Settings.model_validate(given))
    async with app.router.lifespan_context(app):
        assert app.state.context.jobs().advice is (auth == "open")
