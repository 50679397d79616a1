"""What users say of answers, over HTTP and by the client."""

from __future__ import annotations

from typing import Any

import httpx2
import pytest

from orchestrator.jobs.store import JobStore
from posology.client import Client
from posology.errors import InvalidQuery, JobNotFound, JobNotSucceeded
from posology.published.jobs import JobOutput
from posology.store import keys
from tests.integration.conftest import Finish, Served
from tests.integration.test_api import QUESTION, problem
from tests.integration.test_client import opened

pytestmark = pytest.mark.anyio


async def test_an_answer_is_judged(
    client: httpx2.AsyncClient, store: JobStore, tenant: str, finish: Finish
) -> None:
    made = (await client.post("/v1/jobs", json={"question": QUESTION})).json()["id"]
    assert await finish(store, tenant) == made
    said = {"score": 1, "comment": "All of it."}
    reply = await client.post(f"/v1/jobs/{made}/feedback", json=said)
    assert reply.status_code == 200
    job = JobOutput.model_validate_json(reply.content)
    assert job.feedback is not None
    assert (job.feedback.score, job.feedback.comment) == (1, "All of it.")
    assert (await client.get(f"/v1/jobs/{made}")).json() == reply.json()
    again = await client.post(f"/v1/jobs/{made}/feedback", json={"score": 0.25})
    assert again.json()["feedback"]["score"] == 0.25
    assert again.json()["feedback"]["comment"] is None


@pytest.mark.parametrize(
    "said",
    [
        {"score": 1.5},
        {"score": "1"},
        {"comment": "fine"},
        {"score": 1, "comment": "x" * 2_001},
        {"score": 1, "stars": 5},
        [1],
    ],
)
async def test_what_is_no_feedback_is_refused(
    client: httpx2.AsyncClient, store: JobStore, tenant: str, finish: Finish, said: Any
) -> None:
    job = (await client.post("/v1/jobs", json={"question": QUESTION})).json()["id"]
    await finish(store, tenant)
    problem(await client.post(f"/v1/jobs/{job}/feedback", json=said), 422, "invalid-query")
    assert (await store.get(job, tenant=tenant)).feedback is None


async def test_what_has_no_answer_is_not_judged(
    client: httpx2.AsyncClient, store: JobStore, tenant: str, finish: Finish
) -> None:
    none = await client.post("/v1/jobs/job_0/feedback", json={"score": 1})
    assert problem(none, 404, "job-not-found")["job"] == "job_0"
    job = (await client.post("/v1/jobs", json={"question": QUESTION})).json()["id"]
    for state in ("queued", "failed"):
        early = await client.post(f"/v1/jobs/{job}/feedback", json={"score": 1})
        assert state in problem(early, 409, "job-not-succeeded")["detail"]
        await finish(store, tenant, state="failed")


async def test_the_client_judges(
    redis_url: str, served: Served, tenant: str, finish: Finish
) -> None:
    async with opened(redis_url) as store, Client(served.url, tenant=tenant) as client:
        job = await client.submit(QUESTION)
        with pytest.raises(JobNotSucceeded) as caught:
            await client.feedback(job.id, score=1)
        assert caught.value.job == job.id
        await finish(store, tenant)
        judged = await client.feedback(job.id, score=0.5, comment="Half.")
        assert judged.feedback is not None
        assert (judged.feedback.score, judged.feedback.comment) == (0.5, "Half.")
        assert await client.get(job.id) == judged
        with pytest.raises(InvalidQuery) as wrong:
            await client.feedback(job.id, score=2)
        assert wrong.value.field == "score"
        with pytest.raises(JobNotFound):
            await client.feedback(keys.new_id("job"), score=1)


async def test_a_lost_reply_counts_once(
    redis_url: str, served: Served, tenant: str, finish: Finish
) -> None:
    from tests.integration.test_client import Flaky

    async with opened(redis_url) as store:
        flaky = Flaky(2)
        async with Client(served.url, tenant=tenant, transport=flaky) as client:
            job = await client.submit(QUESTION)
            await finish(store, tenant)
            assert (await client.feedback(job.id, score=1)).feedback is not None
    assert [request.method for request in flaky.requests].count("POST") == 3
