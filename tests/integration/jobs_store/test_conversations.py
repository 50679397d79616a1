"""Questions that continue that of an earlier job, on a real Redis."""

from __future__ import annotations

import json

import pytest

from orchestrator.jobs.batches import Batches
from orchestrator.question.request import JobRequest
from orchestrator.settings import Settings
from posology.errors import InvalidQuery
from posology.store import keys
from tests.integration.jobs_store.helpers import Bench, request

pytestmark = pytest.mark.anyio

FIRST = "Does metformin help women with polycystic ovary syndrome?"


async def asked(bench: Bench, question: str, parent: str | None = None) -> tuple[str, str]:
    """A job, and the question that it asks."""
    job = (await bench.store.submit(request(question, parent=parent), tenant=bench.tenant)).job
    out = await bench.get(job)
    assert out.request.get("parent") == parent
    assert ("parent" in out.request) == (parent is not None)
    assert out.question == out.request["question"]
    return job, str(out.question)


async def test_a_question_that_continues_its_parent_is_asked_with_it(bench: Bench) -> None:
    first, _ = await asked(bench, FIRST)
    second, question = await asked(bench, "And in adolescents?", first)
    assert question == f"{FIRST} And in adolescents?"
    _, question = await asked(bench, "What dose?", second)
    assert question == f"{FIRST} And in adolescents? What dose?"
    _, question = await asked(bench, "Does aspirin prevent colorectal cancer?", second)
    assert question == "Does aspirin prevent colorectal cancer?"


async def test_the_same_follow_up_with_a_key_is_one_job(bench: Bench) -> None:
    first, _ = await asked(bench, FIRST)
    follow_up = request("And in adolescents?", parent=first)
    made = [await bench.store.submit(follow_up, tenant=bench.tenant, key="k") for _ in range(2)]
    assert made[0].job == made[1].job
    assert [one.created for one in made] == [True, False]


async def test_a_job_of_another_tenant_is_no_parent(bench: Bench) -> None:
    first, _ = await asked(bench, FIRST)
    told = []
    for parent, tenant in ((first, f"{bench.tenant}x"), (keys.new_id("job"), bench.tenant)):
        with pytest.raises(InvalidQuery) as caught:
            await bench.store.submit(request("And in adults?", parent=parent), tenant=tenant)
        assert caught.value.field == "parent"
        told.append(str(caught.value).replace(parent, "ID"))
    assert told[0] == told[1]


async def test_rows_of_a_batch_continue_nothing(bench: Bench) -> None:
    first, _ = await asked(bench, FIRST)
    row = {"question": "And in adults?", "parent": first, "model": "offline:extractive"}
    out = await Batches(bench.store, Settings()).submit([json.dumps(row)], tenant=bench.tenant)
    assert out.rejected == 1
    with pytest.raises(InvalidQuery, match="parent"):
        JobRequest.parse({"question": FIRST, "parent": "job_x"})
