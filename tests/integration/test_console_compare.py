"""The console's pages that decide again: replays of jobs, and two policies on the same questions."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from anyio import to_thread
from redis.asyncio import Redis

from orchestrator.question import qtables
from orchestrator.settings import Settings
from posology.index.manifest import Applied, Manifest, State
from posology.index.store import Index
from tests.support.console import HOSTILE, QUESTION, answered, make_index, run_job
from tests.support.console_bench import Console, check, open_console, token
from tests.unit.policies.tables import table

pytestmark = pytest.mark.anyio


@pytest.fixture(scope="module")
def index(tiny_encoder: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_index(tmp_path_factory.mktemp("compare"), str(tiny_encoder))


async def test_a_job_is_replayed_from_its_record(user: Console, tenant: str) -> None:
    job = await run_job(user.store, tenant, question=HOSTILE, out=answered(HOSTILE))
    assert f"/console/jobs/{job}/replay" in (await user.http.get(f"/console/jobs/{job}")).text
    page = await user.http.get(f"/console/jobs/{job}/replay")
    check(page)
    # the record names prompts that are no longer those
    assert "version of prompts" in page.text or "cannot be replayed" in page.text
    assert "No model was called." in page.text
    # nothing to retrieve from
    assert "retrieve=1" not in page.text
    assert (await user.http.get(f"/console/jobs/{job}/replay?retrieve=1")).status_code == 503


async def test_two_policies_are_compared_and_nothing_is_spent(
    redis: Redis, redis_url: str, tenant: str, index: Path, tiny_encoder: Path
) -> None:
    more = {"POSOLOGY_INDEX": str(index), "POSOLOGY_EMBEDDER": str(tiny_encoder)}
    async with open_console(redis, redis_url, tenant, **more) as b:
        await b.sign_in()
        page = await b.http.get("/console/compare")
        check(page)
        assert "None is configured." in page.text
        given = {
            "form_token": token(page), "first": "direct", "second": "briefcontext",
            "questions": f"{QUESTION}\n\nDoes it harm? {HOSTILE}\n",
        }  # fmt: skip
        found = await b.http.post("/console/compare", data=given)
        assert found.status_code == 200
        check(found)
        assert "2 questions, 2 with different doses" in found.text
        for wrong in (
            {"first": "x"},
            {"second": HOSTILE},
            {"questions": " "},
            {"questions": "Why?\n" * 21},
        ):
            refused = await b.http.post("/console/compare", data=given | wrong)
            assert refused.status_code == 422, wrong
            check(refused)
        for wrong in ({"form_token": "0" * 64}, {"form_token": ""}):
            assert (await b.http.post("/console/compare", data=given | wrong)).status_code == 403
        headers = {"origin": "https://evil.example"}
        assert (await b.http.post("/console/compare", data=given, headers=headers)).status_code == 403  # fmt: skip
        assert (await b.store.page(tenant=tenant)).jobs == ()


async def test_a_replay_may_retrieve_again(
    redis: Redis, redis_url: str, tenant: str, index: Path, tiny_encoder: Path
) -> None:
    more = {"POSOLOGY_INDEX": str(index), "POSOLOGY_EMBEDDER": str(tiny_encoder)}
    async with open_console(redis, redis_url, tenant, **more) as b:
        await b.sign_in()
        job = await run_job(b.store, tenant, out=answered())
        page = await b.http.get(f"/console/jobs/{job}/replay")
        assert "?retrieve=1" in page.text
        again = await b.http.get(f"/console/jobs/{job}/replay?retrieve=1")
        assert again.status_code == 200
        check(again)
        assert "retrieved again" in again.text


async def test_the_q_table_is_drawn(
    redis: Redis, redis_url: str, tenant: str, tmp_path: Path
) -> None:
    learned = table(visits=np.array([[9] * 10, [0] * 10, [9] * 10])[:, : len(table().actions)])
    file = tmp_path / "qtable.json"
    await to_thread.run_sync(qtables.save, learned, file)
    async with open_console(redis, redis_url, tenant, POSOLOGY_QTABLE=str(file)) as b:
        await b.sign_in()
        page = await b.http.get("/console/compare")
        check(page)
        assert learned.digest in page.text
        assert len(re.findall(r"\d\*", page.text)) == 2
        assert " q7" in page.text
        assert "fallback" in page.text
        file.write_text("{}")
        broken = await b.http.get("/console/compare")
        assert broken.status_code == 200
        assert 'class="bad"' in broken.text


async def test_contents_are_counted_once_beside_the_page(
    redis: Redis, redis_url: str, tenant: str, index: Path
) -> None:
    async with open_console(redis, redis_url, tenant, POSOLOGY_INDEX=str(index)) as b:
        await b.sign_in()
        first = await b.http.get("/console/literature/contents")
        check(first)
        assert "are being counted" in first.text
        second = await b.http.get("/console/literature/contents")
        check(second)
        for part in ("<td>2017</td>", "Randomized Controlled Trial", "Passages by collection"):
            assert part in second.text
        page = await b.http.get("/console/literature")
        assert "No file was applied" in page.text
        assert Index.open(str(index)).view().count() == 3
        assert Settings().reports is None


async def test_the_state_of_syncs_is_shown(
    redis: Redis, redis_url: str, tenant: str, index: Path
) -> None:
    def write() -> None:
        opened = Index.open(str(index))
        given: dict[str, Any] = {"size": 1, "mtime_ns": 1, "md5": "0" * 32}
        Manifest(opened.connection, opened.uri).write(
            Applied(name="pubmed26n0001.xml.gz", state=State.APPLIED, records=30_000, bad=2,
                    broken=HOSTILE, applied="2026-11-01T04:00:00+00:00", version=2, **given),
            Applied(name=f"pubmed26n0002{HOSTILE}.xml.gz", state=State.BEGUN, **given),
        )  # fmt: skip

    await to_thread.run_sync(write)
    async with open_console(redis, redis_url, tenant, POSOLOGY_INDEX=str(index)) as b:
        await b.sign_in()
        page = await b.http.get("/console/literature")
        check(page)
        assert "2 files applied, the last pubmed26n0001.xml.gz on 2026-11-01." in page.text
        assert "has left 1 file unpublished: pubmed26n0002" in page.text
        assert "30,000" in page.text
