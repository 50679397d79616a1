"""The blocking client: the same methods as the other one, against a served API."""

from __future__ import annotations

import inspect
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from datetime import date
from typing import Any

import anyio
import pytest

from orchestrator.jobs.store import JobStore
from posology.client import Client, SyncClient
from posology.errors import ApiUnreachable, BatchNotFound, InvalidQuery, JobNotFound, KeyRefused
from posology.store.connection import connect
from posology.types import BatchState, Grouping, JobState
from tests.integration.conftest import Finish, Served

QUESTION = "Does aspirin reduce the risk of preeclampsia?"


@pytest.fixture
def end(redis_url: str, tenant: str, finish: Finish) -> Callable[..., str | None]:
    @asynccontextmanager
    async def store() -> AsyncIterator[JobStore]:
        redis = connect(redis_url)
        try:
            yield JobStore(redis, redis_url)
        finally:
            await redis.aclose()

    async def once(how: dict[str, Any]) -> str | None:
        async with store() as opened:
            return await finish(opened, tenant, **how)

    return lambda **how: anyio.run(once, how)


def public(kind: type) -> dict[str, Any]:
    return {
        name: member
        for name, member in inspect.getmembers(kind, inspect.isfunction)
        if not name.startswith("_") or name == "__init__"
    }


def test_both_clients_have_the_same_methods_and_arguments() -> None:
    other, own = public(Client), public(SyncClient)
    own["aclose"] = own.pop("close")
    assert set(own) == set(other)
    assert len(own) > 15
    for name, method in other.items():
        theirs, ours = (inspect.signature(m, eval_str=True) for m in (method, own[name]))
        assert ours.parameters == theirs.parameters, name
        if inspect.isasyncgenfunction(method):
            # AsyncGenerator[X] is an Iterator[X]
            assert ours.return_annotation.__args__[0] is theirs.return_annotation.__args__[0], name
        else:
            assert ours.return_annotation == theirs.return_annotation, name
        assert name == "__init__" or own[name].__doc__, name


def test_a_question_goes_its_whole_way(
    served: Served, tenant: str, end: Callable[..., str | None]
) -> None:
    with SyncClient(served.url, tenant=tenant) as client:
        job = client.submit(QUESTION, key="a", k=3)
        assert client.submit(QUESTION, key="a", k=3, wait=0.1) == job
        assert end() == job.id
        assert client.ask(QUESTION, key="a", k=3).status == "refused"
        assert client.wait(job.id).state is JobState.SUCCEEDED
        assert [event.type for event in client.events(job.id)] == [
            "state",
            "state",
            "call",
            "state",
        ]
        made = [client.submit(f"{i}?").id for i in range(3)]
        assert [one.id for one in client.jobs(page=2)] == [*made[::-1], job.id]
        # an iteration that is given up frees its connection
        first = next(iter(client.jobs(page=1)))
        assert first.id == made[-1]
        assert client.cancel(made[0]).state is JobState.CANCELLED
        assert client.retry(made[0]).state is JobState.QUEUED
        assert client.get(made[0]).id == made[0]
        batch = client.submit_batch([{"question": "Is it?"}, {}])
        assert [row.error is None for row in client.batch_rows(batch.id, page=1)] == [True, False]
        assert client.cancel_batch(batch.id).over
        assert [one.id for one in client.batches()] == [batch.id]
        assert client.batch(batch.id).rejected == 1
        assert client.spend().tenant == tenant
        with pytest.raises(JobNotFound):
            client.get("job_1")
        with pytest.raises(BatchNotFound):
            client.batch("batch_1")
        with pytest.raises(InvalidQuery):
            list(client.jobs(page=0))


def test_words_and_days_are_taken_as_text_too(served: Served, tenant: str) -> None:
    with SyncClient(served.url, tenant=tenant) as client:
        job = client.cancel(client.submit(QUESTION).id)
        for cancelled in ("cancelled", JobState.CANCELLED):
            assert [one.id for one in client.jobs(state=cancelled)] == [job.id]
        assert list(client.jobs(state="failed")) == []
        batch = client.submit_batch([{}])
        for ended in ("ended", BatchState.ENDED):
            assert [one.id for one in client.batches(state=ended)] == [batch.id]
        assert list(client.batches(state="running")) == []
        days: tuple[tuple[str | date, str | date], ...] = (
            ("2026-11-01", "2026-11-03"),
            (date(2026, 11, 1), date(2026, 11, 3)),
        )
        for since, until in days:
            spent = client.spend(by="model", since=since, until=until)
            assert spent == client.spend(by=Grouping.MODEL, since=since, until=until)
            assert (spent.by, spent.since, spent.until) == (
                Grouping.MODEL,
                date(2026, 11, 1),
                date(2026, 11, 3),
            )


def test_a_wrong_word_is_the_error_of_the_service(served: Served, tenant: str) -> None:
    with SyncClient(served.url, tenant=tenant) as client:
        wrong: dict[str, Callable[[], object]] = {
            "state": lambda: list(client.jobs(state="foo")),
            "by": lambda: client.spend(by="colour"),
            "since": lambda: client.spend(since="yesterday"),
            "until": lambda: client.spend(until=""),
        }
        for field, call in wrong.items():
            with pytest.raises(InvalidQuery) as caught:
                call()
            assert caught.value.details["field"] == field
        with pytest.raises(InvalidQuery):
            list(client.batches(state="failed"))


@pytest.mark.anyio
async def test_it_works_where_an_event_loop_runs(served: Served, tenant: str) -> None:
    with SyncClient(served.url, tenant=tenant) as client:
        assert list(client.jobs()) == []


def test_a_service_that_is_away_is_an_error_as_there() -> None:
    with SyncClient("http://127.0.0.1:1", attempts=1) as client, pytest.raises(ApiUnreachable):
        client.get("job_1")
    with pytest.raises(KeyRefused):
        SyncClient(api_key="psl_é")
