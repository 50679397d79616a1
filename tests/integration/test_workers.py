"""Jobs through a real Redis and real Celery workers, which are killed and told to stop."""

from __future__ import annotations

import base64
import json
import os
import pickle
import signal
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

import anyio
import pytest
from anyio.from_thread import BlockingPortal, start_blocking_portal
from redis import Redis

from orchestrator.jobs.store import JobStore, open_store
from orchestrator.question.request import MAX_DEADLINE, JobRequest
from orchestrator.settings import DEFAULT_REDIS, Settings
from orchestrator.stack.folder import StackInfo
from orchestrator.stack.options import StackOptions
from orchestrator.stack.up import running_stack
from posology.budget.books.audit import Auditor
from posology.budget.ledger.base import dollars
from posology.published.jobs import JobOutput
from posology.store import keys
from posology.store.keys import DEFAULT_TENANT
from posology.testing.provider.faults import Faults
from posology.testing.provider.load import LoadStub
from posology.types import JobState, Outcome, Stage
from tests.support.holders import holder
from workers.app import VISIBILITY_TIMEOUT, make_app
from workers.engine.maintenance import CALLS, JOBS, units_of
from workers.engine.units import Unit

pytestmark = pytest.mark.anyio

MODEL = "openai:gpt-4o-mini"
PASSAGES = 16


@pytest.fixture(scope="module")
def index(tiny_encoder: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    from orchestrator.ingest.ingest import run_ingest
    from orchestrator.ingest.writer import Target

    folder = tmp_path_factory.mktemp("worker-index")
    rows = folder / "rows.jsonl"
    texts = [f"Aspirin lowered the risk of stroke in group {n} of adults." for n in range(PASSAGES)]
    rows.write_text(
        "".join(json.dumps({"id": f"t:{n}", "text": t}) + "\n" for n, t in enumerate(texts)),
        encoding="utf-8",
    )
    place = folder / "index"
    run_ingest([rows], Settings(), Target(place=str(place), embedder=str(tiny_encoder)))
    return place


#: seconds
LEASE = 8
#: seconds by which a busy machine may be late
_LATE = 30.0


@dataclass(frozen=True, kw_only=True, slots=True)
class Stack:
    """What runs, and where it spends."""

    info: StackInfo
    stub: LoadStub

    @property
    def worker_pids(self) -> list[int]:
        with Redis.from_url(self.info.redis_url, decode_responses=True) as redis:
            names: Any = redis.zrange(keys.WORKERS, 0, -1)
        return [int(name.rpartition(":")[2]) for name in names]


@contextmanager
def _stack(
    index: Path, encoder: Path, folder: Path, *, latency: float, workers: int = 1, **settings: str
) -> Iterator[Stack]:
    with LoadStub(Faults(latency=(latency, latency))) as stub:
        overrides = {
            "POSOLOGY_EMBEDDER": str(encoder),
            "OPENAI_API_KEY": "sk-test",
            "OPENAI_BASE_URL": stub.openai_url,
            "POSOLOGY_LEASE": str(LEASE),
            **settings,
        }
        options = StackOptions(
            environment=os.environ,
            folder=folder,
            workers=workers,
            concurrency=20,
            api=False,
            index=str(index),
            overrides=overrides,
        )
        with (
            start_blocking_portal() as portal,
            portal.wrap_async_context_manager(running_stack(options)) as info,
        ):
            yield Stack(info=info, stub=stub)


@pytest.fixture(scope="module")
def stack(
    index: Path, tiny_encoder: Path, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Stack]:
    folder = tmp_path_factory.mktemp("stack")
    with _stack(index, tiny_encoder, folder, latency=3.0) as stack:
        yield stack


def _request(**fields: Any) -> JobRequest:
    question = {"question": "Did aspirin lower the risk of stroke?", "model": MODEL, "k": PASSAGES}
    return JobRequest.model_validate(question | fields).settled(Settings())


async def _until(store: JobStore, job: str, done: Any, seconds: float = 90.0) -> JobOutput:
    with anyio.fail_after(seconds):
        while not done(found := await store.get(job)):  # noqa: ASYNC110 - another process changes it
            await anyio.sleep(0.02)
    return found


async def test_a_question_is_answered_through_the_queue(stack: Stack) -> None:
    async with open_store(stack.info.redis_url) as store:
        job = await store.wait((await store.submit(_request())).job)
    assert job.state is JobState.SUCCEEDED, job.error
    assert job.result is not None
    assert job.result.evidence[0].quote.startswith("Aspirin lowered the risk of stroke")
    assert [a.outcome for a in job.result.spending.attempts] == [Outcome.OK]
    assert job.runs == 1


async def test_partitions_are_read_at_the_same_time_and_reduced_once(stack: Stack) -> None:
    stack.stub.reset()
    async with open_store(stack.info.redis_url) as store:
        request = _request(strategy="briefcontext", partition_size=1)
        job = await store.wait((await store.submit(request)).job)
    assert job.state is JobState.SUCCEEDED, job.error
    assert job.progress is not None
    assert (job.progress.partitions, job.progress.read, job.progress.failed) == (16, 16, 0)
    assert job.result is not None
    assert job.result.coverage is not None
    assert job.result.coverage.calls == PASSAGES + 1
    stages = [a.stage for a in job.spending.attempts]
    assert (stages.count(Stage.EXTRACT), stages.count(Stage.REDUCE)) == (PASSAGES, 1)
    assert stack.stub.stats()["peak_in_flight"] == PASSAGES
    billed = {entry["client_id"] for entry in stack.stub.ledger()}
    assert billed == {attempt.id for attempt in job.spending.attempts}


@pytest.mark.slow
async def test_cancel_stops_calls_at_once_and_the_account_is_exact(
    index: Path, tiny_encoder: Path, tmp_path: Path
) -> None:
    places = 4
    with _stack(
        index, tiny_encoder, tmp_path, latency=1.5, POSOLOGY_CONCURRENCY=str(places)
    ) as stack:
        async with open_store(stack.info.redis_url) as store:
            request = _request(strategy="briefcontext", partition_size=1)
            job = (await store.submit(request)).job
            await _until(store, job, lambda found: len(found.spending.attempts) >= places)
            asked = await store.cancel(job)
            at = time.time()
            assert asked.state in (JobState.CANCELLING, JobState.CANCELLED)
            over = await store.wait(job)
        ledger = stack.stub.ledger()
    assert over.state is JobState.CANCELLED
    assert max(attempt.started for attempt in over.spending.attempts) <= at
    assert all(entry["finished"] for entry in ledger), "what was on its way settled"
    assert {e["client_id"] for e in ledger} == {a.id for a in over.spending.attempts}
    assert over.unknown_costs == 0
    told = over.cancellation
    assert told is not None
    assert told.calls_planned == PASSAGES + 1
    assert told.calls_made == len(ledger) < PASSAGES
    assert told.calls_saved == PASSAGES + 1 - len(ledger)
    assert told.cost_saved_usd is not None
    assert told.cost_saved_usd > 0


@pytest.mark.slow
async def test_the_work_of_a_killed_worker_is_taken_up(
    index: Path, tiny_encoder: Path, tmp_path: Path
) -> None:
    with _stack(index, tiny_encoder, tmp_path, latency=5.0, workers=2) as stack:
        async with open_store(stack.info.redis_url) as store:
            jobs = [(await store.submit(_request())).job for _ in range(8)]
            for job in jobs:
                await _until(store, job, lambda found: found.state is JobState.RUNNING)
            with anyio.fail_after(90):
                while stack.stub.stats()["in_flight"] < len(jobs):  # noqa: ASYNC110 - as above
                    await anyio.sleep(0.02)
            os.kill(await holder(store, jobs[0]), signal.SIGKILL)
            killed = time.time()
            done = [await store.wait(each) for each in jobs]
            audit = await Auditor(store.redis, store.url, DEFAULT_TENANT).verify()
            name = f"{keys.prefix(DEFAULT_TENANT)}ledger"
            entries = cast("list[tuple[str, dict[str, str]]]", await store.redis.xrange(name))
        ledger = stack.stub.ledger()
    assert all(one.state is JobState.SUCCEEDED for one in done)
    # what it had reserved is charged at its bound within the lease, and the books agree
    losses = [int(entry["at"]) / 1000 for _, entry in entries if entry["kind"] == "lose"]
    assert losses
    assert max(losses) < killed + LEASE + _LATE
    assert (audit.right, audit.open) == (True, 0)
    assert audit.unknown == len(losses)
    spent = sum(int(entry["spent"]) for _, entry in entries)
    assert dollars(spent) == sum(one.charged_usd for one in done)
    again = [one for one in done if one.losses]
    assert again, "the killed worker held some"
    for one in again:
        assert one.runs == 2
        lost, good = one.spending.attempts
        assert (lost.outcome, lost.usage, good.outcome) == (Outcome.LOST, None, Outcome.OK)
        assert good.started < killed + 120
        assert one.unknown_costs == 1
    finished = {e["client_id"] for e in ledger if e["finished"]}
    account = {a.id for one in done for a in one.spending.attempts}
    assert finished == account


@pytest.mark.slow
@pytest.mark.parametrize(
    ("grace", "signals", "attempts"),
    [
        ("30", (signal.SIGTERM,), 1),
        ("0", (signal.SIGTERM,), 2),
        ("30", (signal.SIGTERM, signal.SIGQUIT), 2),
        ("30", (signal.SIGINT, signal.SIGINT), 2),
    ],
    ids=["in time", "out of time", "hastened", "Ctrl-C twice"],
)
async def test_a_worker_that_is_told_to_stop_finishes_or_hands_back(
    grace: str,
    signals: tuple[signal.Signals, ...],
    attempts: int,
    index: Path,
    tiny_encoder: Path,
    tmp_path: Path,
) -> None:
    with _stack(index, tiny_encoder, tmp_path, latency=3.0, POSOLOGY_SHUTDOWN_GRACE=grace) as stack:
        async with open_store(stack.info.redis_url) as store:
            job = (await store.submit(_request())).job
            await _until(store, job, lambda _: stack.stub.stats()["in_flight"] == 1)
            (pid,) = stack.worker_pids
            for number in signals:
                os.kill(pid, number)
                await anyio.sleep(0.2)
            over = await store.wait(job)
        ledger = stack.stub.ledger()
    assert over.state is JobState.SUCCEEDED, over.error
    assert len(over.spending.attempts) == attempts
    assert {e["client_id"] for e in ledger} == {a.id for a in over.spending.attempts}
    if attempts == 2:
        assert over.spending.attempts[0].outcome is Outcome.CANCELLED
    # what is handed back is no loss
    assert over.losses == 0


def test_messages_carry_ids_only(stack: Stack) -> None:
    from workers import tasks

    with Redis.from_url(stack.info.redis_url, decode_responses=True) as redis:
        app = make_app(Settings.model_validate({"POSOLOGY_REDIS_URL": stack.info.redis_url}))
        names = [f"extract:{n}" for n in range(6)]
        units = [Unit(tenant="nobody", job="job_0", name=name) for name in names]
        # a queue that nobody consumes
        with app.connection() as connection:
            for group in (names[: tasks.GROUP], names[tasks.GROUP :]):
                app.send_task(
                    "posology.extract", args=["nobody", "job_0", group], queue="test.ids",
                    connection=connection,
                )  # fmt: skip
        messages: Any = redis.lrange("test.ids", 0, -1)
        redis.delete("test.ids")
    assert sorted((u for m in messages for u in units_of(m)), key=lambda u: u.name) == units


async def test_a_pickle_from_the_broker_is_not_run(stack: Stack, tmp_path: Path) -> None:
    mark = tmp_path / "run"

    class Evil:
        def __reduce__(self) -> tuple[Any, ...]:
            return os.mkdir, (str(mark),)

    body = base64.b64encode(pickle.dumps(((Evil(),), {}, {}))).decode()
    message = {
        "body": body,
        "content-encoding": "binary",
        "content-type": "application/x-python-serialize",
        "headers": {"lang": "py", "task": "posology.answer", "id": "evil", "root_id": "evil"},
        "properties": {
            "correlation_id": "evil",
            "delivery_mode": 2,
            "delivery_info": {"exchange": "", "routing_key": JOBS},
            "priority": 0,
            "body_encoding": "base64",
            "delivery_tag": "evil",
        },
    }
    with Redis.from_url(stack.info.redis_url) as redis:
        redis.lpush(JOBS, json.dumps(message))
        async with open_store(stack.info.redis_url) as store:
            # the worker goes on, and has seen the message before this job's
            job = await store.wait((await store.submit(_request())).job)
        assert job.state is JobState.SUCCEEDED
        assert redis.llen(JOBS) == 0
    assert not mark.exists()


def test_the_application_is_set_up_for_redelivery() -> None:
    app = make_app(Settings())
    assert app.conf.accept_content == ["json"]
    assert app.conf.task_serializer == app.conf.result_serializer == "json"
    assert app.conf.task_acks_late
    assert app.conf.task_reject_on_worker_lost
    assert app.conf.worker_pool == "threads"
    assert app.conf.worker_prefetch_multiplier == 1
    assert app.conf.broker_url == DEFAULT_REDIS
    assert app.conf.broker_transport_options["visibility_timeout"] == VISIBILITY_TIMEOUT
    assert VISIBILITY_TIMEOUT > MAX_DEADLINE


def test_workers_send_events_of_tasks_if_they_are_asked_for() -> None:
    assert not make_app(Settings()).conf.worker_send_task_events
    asked = make_app(Settings.model_validate({"POSOLOGY_TASK_EVENTS": "true"}))
    assert asked.conf.worker_send_task_events
    assert asked.conf.task_send_sent_event


def test_task_names_and_queues_are_explicit() -> None:
    from workers import tasks

    names = {tasks.answer.name, tasks.extract.name, tasks.reduce.name}
    assert names == {f"posology.{kind}" for kind in tasks.QUEUES}
    assert tasks.QUEUES == {"answer": JOBS, "extract": CALLS, "reduce": CALLS}


def test_a_worker_starts_without_models_and_index() -> None:
    import subprocess
    import sys

    heavy = ("torch", "lancedb", "transformers", "sentence_transformers", "openai", "anthropic")
    code = f"import sys, workers.tasks; print([m for m in {heavy} if m in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_the_portal_is_of_the_fast_loop() -> None:
    import uvloop

    with start_blocking_portal("asyncio", {"use_uvloop": True}) as portal:
        assert isinstance(portal, BlockingPortal)
        assert isinstance(portal.call(_loop), uvloop.Loop)


async def _loop() -> object:
    import asyncio

    return asyncio.get_running_loop()
