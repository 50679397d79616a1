"""The client against a served API."""

from __future__ import annotations

import gzip
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import anyio
import httpx2
import pytest

from orchestrator.jobs.store import JobStore
from posology.client import ApiError, ApiUnreachable, Client
from posology.errors import (
    BadFile,
    BatchNotFound,
    IdempotencyConflict,
    InvalidQuery,
    JobNotFound,
    ProviderUnreachable,
)
from posology.store.connection import connect
from posology.types import Form, JobState
from tests.integration.conftest import Finish, Served

pytestmark = pytest.mark.anyio

QUESTION = "Does aspirin reduce the risk of preeclampsia?"


@asynccontextmanager
async def opened(redis_url: str) -> AsyncIterator[JobStore]:
    redis = connect(redis_url)
    try:
        yield JobStore(redis, redis_url)
    finally:
        await redis.aclose()


class Flaky(httpx2.AsyncBaseTransport):
    """The network, but it loses the replies that it is told to, after they were sent."""

    def __init__(self, *lost: int) -> None:
        self._inner = httpx2.AsyncHTTPTransport()
        self._lost = set(lost)
        self.requests: list[httpx2.Request] = []

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        self.requests.append(request)
        response = await self._inner.handle_async_request(request)
        if len(self.requests) in self._lost:
            await response.aread()
            await response.aclose()
            raise httpx2.ReadError("cut", request=request)
        return response

    async def aclose(self) -> None:
        await self._inner.aclose()


class Cut(httpx2.AsyncBaseTransport):
    """The network, but every stream of events is cut after its first event."""

    def __init__(self) -> None:
        self._inner = httpx2.AsyncHTTPTransport()
        self.last_ids: list[str | None] = []

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        response = await self._inner.handle_async_request(request)
        if not request.url.path.endswith("/events") or response.status_code != 200:
            return response
        self.last_ids.append(request.headers.get("last-event-id"))
        return httpx2.Response(200, headers=response.headers, stream=_OneEvent(response))

    async def aclose(self) -> None:
        await self._inner.aclose()


class _OneEvent(httpx2.AsyncByteStream):
    def __init__(self, response: httpx2.Response) -> None:
        self._response = response

    async def __aiter__(self) -> AsyncIterator[bytes]:
        seen = b""
        async for piece in self._response.aiter_raw():
            seen += piece
            if b"\r\n\r\n" in seen:
                yield seen.partition(b"\r\n\r\n")[0] + b"\r\n\r\nid: 9"
                raise httpx2.ReadError("cut")

    async def aclose(self) -> None:
        await self._response.aclose()


async def test_a_job_is_submitted_watched_and_awaited(
    served: Served, redis_url: str, tenant: str, finish: Finish
) -> None:
    async with opened(redis_url) as store, Client(served.url, tenant=tenant) as client:
        job = await client.submit(QUESTION, form=Form.YES_NO_MAYBE, k=3)
        assert job.request["k"] == 3
        assert await client.submit({"question": QUESTION}) != job, "no key was given: another job"
        assert await client.get(job.id) == job
        async with anyio.create_task_group() as group:
            ended: list[Any] = []

            async def wait() -> None:
                ended.append(await client.wait(job.id))

            group.start_soon(wait)
            await anyio.sleep(0.1)
            assert await finish(store, tenant) == job.id
        assert ended == [await store.get(job.id, tenant=tenant)]
        assert ended[0].result.status == "refused"
        told = [event.type async for event in client.events(job.id)]
        assert told == ["state", "state", "call", "state"]


async def test_a_cut_stream_is_taken_up_where_it_was(
    served: Served, redis_url: str, tenant: str, finish: Finish
) -> None:
    cut = Cut()
    async with (
        opened(redis_url) as store,
        Client(served.url, tenant=tenant, transport=cut) as client,
    ):
        job = await client.submit(QUESTION)
        await finish(store, tenant)
        found = [event async for event in client.events(job.id)]
        whole = [event async for event in store.events(job.id, tenant=tenant)]
        assert found == whole
        assert cut.last_ids == [None, *[event.id for event in whole[:-1]]]
        rest = [event async for event in client.events(job.id, after=whole[1].id)]
        assert rest == whole[2:]


async def test_a_lost_reply_makes_no_second_job(served: Served, tenant: str) -> None:
    flaky = Flaky(1, 2)
    async with Client(served.url, tenant=tenant, transport=flaky) as client:
        job = await client.submit(QUESTION)
        assert len(flaky.requests) == 3
        assert len({request.headers["idempotency-key"] for request in flaky.requests}) == 1
        assert [found.id async for found in client.jobs()] == [job.id]


async def test_a_retry_is_sent_once(served: Served, tenant: str) -> None:
    flaky = Flaky(3)
    async with Client(served.url, tenant=tenant, transport=flaky) as client:
        job = await client.submit(QUESTION)
        await client.cancel(job.id)
        with pytest.raises(ApiUnreachable, match="ReadError"):
            await client.retry(job.id)
        assert len(flaky.requests) == 3
        assert (await client.get(job.id)).state is JobState.QUEUED


async def test_the_services_errors_are_the_same_here(served: Served, tenant: str) -> None:
    async with Client(served.url, tenant=tenant) as client:
        with pytest.raises(InvalidQuery) as empty:
            await client.submit("")
        assert empty.value.field == "question"
        job = await client.submit(QUESTION, key="a")
        with pytest.raises(IdempotencyConflict) as conflict:
            await client.submit("Does it?", key="a")
        assert conflict.value.job == job.id
        for name in ("job_1", "a?b#c", "ä"):
            with pytest.raises(JobNotFound) as missing:
                await client.wait(name)
            assert missing.value.job == name
        with pytest.raises(ApiError) as elsewhere:
            await client.get("../healthz")
        assert elsewhere.value.status == 404
        with pytest.raises(BatchNotFound) as gone:
            await client.batch("batch_1")
        assert gone.value.batch == "batch_1"


async def test_a_batch_goes_out_as_file_or_rows_and_comes_back_in_order(
    served: Served, redis_url: str, tenant: str, finish: Finish, tmp_path: Path
) -> None:
    rows = [{"id": i, "question": f"Is it {i}?\u2028"} if i % 3 else {"id": i} for i in range(7)]
    plain, zipped = tmp_path / "rows.jsonl", tmp_path / "rows.jsonl.gz"
    plain.write_text("".join(json.dumps(row) + "\n" for row in rows))
    zipped.write_bytes(gzip.compress(plain.read_bytes()))
    flaky = Flaky(1)
    async with (
        opened(redis_url) as store,
        Client(served.url, tenant=tenant, transport=flaky) as client,
    ):
        batch = await client.submit_batch(rows, k=4, model=None)
        assert (batch.total, batch.rejected) == (7, 3)
        for again in (plain, str(plain), zipped, map(json.dumps, rows)):
            same = await client.submit_batch(again, key="b", k=4)
        assert len([job async for job in client.jobs()]) == 8
        while await finish(store, tenant):
            pass
        assert (await client.batch(same.id)).over
        found = [row async for row in client.batch_rows(same.id, page=3)]
        assert [row.id for row in found] == list(range(7))
        assert [row.error is None for row in found] == [bool(i % 3) for i in range(7)]
        with pytest.raises(IdempotencyConflict):
            await client.submit_batch(rows[:2], key="b", k=4)
        with pytest.raises(InvalidQuery):
            await client.submit_batch(rows, k=0)
        with pytest.raises(BadFile):
            await client.submit_batch(tmp_path / "none.jsonl")
        damaged = bytearray(zipped.read_bytes())
        damaged[10:] = b"\xff" * len(damaged[10:])
        zipped.write_bytes(damaged)
        with pytest.raises(BadFile):
            await client.submit_batch(zipped)


async def test_a_question_is_asked_and_answered_in_one_call(
    served: Served, redis_url: str, tenant: str, finish: Finish
) -> None:
    async with opened(redis_url) as store, Client(served.url, tenant=tenant) as client:
        job = await client.submit(QUESTION, wait=0.1)
        assert not job.state.over
        await finish(store, tenant)
        for state in ("succeeded", "failed"):
            found: list[Any] = []

            async def ask() -> None:
                try:
                    found.append(await client.ask(QUESTION, k=3))  # noqa: B023 - ends in the loop
                except ProviderUnreachable as error:
                    found.append(error)  # noqa: B023 - ends in the loop

            async with anyio.create_task_group() as group:
                group.start_soon(ask)
                with anyio.fail_after(90):
                    while not await finish(store, tenant, state=state):  # noqa: ASYNC110 - the call's doing
                        await anyio.sleep(0.02)
            if state == "succeeded":
                assert found[0].status == "refused"
            else:
                assert type(found[0]) is ProviderUnreachable
