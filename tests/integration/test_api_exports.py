"""Answers and batches as files of other programs, over HTTP on a real Redis."""

from __future__ import annotations

import csv
import io
import json

import httpx2
import pytest
import rispy

from orchestrator.jobs.store import JobStore
from posology.published.answers import AskOutput
from posology.store import keys
from tests.integration.jobs_store.helpers import DIRECT
from tests.integration.test_api import NDJSON, QUESTION, problem
from tests.integration.test_api_openai import ANSWER, QUOTE, REFUSAL
from workers.engine.claims import WorkStore

pytestmark = pytest.mark.anyio


async def end(store: JobStore, tenant: str, out: AskOutput) -> None:
    work = WorkStore(store, worker=keys.worker(1))
    unit = await work.take(tenant)
    assert unit is not None
    held = await work.claim(unit, delivery=keys.new_id("delivery"))
    assert held is not None
    await work.decide(held, DIRECT, calls=1)
    await work.succeed(held, out)


async def test_an_answer_is_exported(
    client: httpx2.AsyncClient, store: JobStore, tenant: str
) -> None:
    place = (await client.post("/v1/jobs", json={"question": QUESTION})).headers["location"]
    early = await client.get(f"{place}?format=ris")
    assert problem(early, 409, "job-not-succeeded")["job"] == place.rpartition("/")[2]
    assert problem(await client.get(f"{place}?format=text"), 422, "invalid-query")
    await end(store, tenant, ANSWER)

    async def export(form: str, media: str) -> str:
        named = await client.get(f"{place}?format={form}")
        assert named.headers["content-type"].partition(";")[0] == media
        if form != "table":
            accepted = await client.get(place, headers={"Accept": f"{media}, application/json"})
            assert accepted.text == named.text
        return named.text

    (entry,) = rispy.loads(await export("ris", "application/x-research-info-systems"))
    assert entry["accession_number"] == "7"
    assert "p. 3" in str(entry["notes"])
    assert (await export("bibtex", "application/x-bibtex")).startswith("@")
    (item,) = json.loads(await export("csl", "application/vnd.citationstyles.csl+json"))
    assert item["PMID"] == "7"
    (row,) = csv.DictReader(io.StringIO(await export("csv", "text/csv"), newline=""))
    assert (row["pmid"], row["quote"], row["standing"]) == ("7", QUOTE, "RETRACTED")
    assert QUOTE in await export("markdown", "text/markdown")
    assert len((await export("table", "text/markdown")).splitlines()) == 3
    for accept in ("*/*", "application/json, text/csv", "text/html"):
        assert (await client.get(place, headers={"Accept": accept})).json()["result"]


async def test_a_batch_is_exported(
    client: httpx2.AsyncClient, store: JobStore, tenant: str
) -> None:
    lines = (
        b'{"id": "a", "question": "Is it so?"}\n{"id": "=b", "question": "Is it?"}\n{"id": -5}\n'
    )
    made = await client.post("/v1/batches", content=lines, headers=NDJSON)
    rows = f"/v1/batches/{made.json()['id']}/rows?limit=1&format="
    await end(store, tenant, ANSWER)
    await end(store, tenant, REFUSAL)
    found = list(csv.DictReader(io.StringIO((await client.get(f"{rows}csv")).text, newline="")))
    assert [(row["row"], row["id"], row["status"], row["pmid"]) for row in found] == [
        ("0", "a", "answered", "7"),
        ("1", "'=b", "refused", ""),
        ("2", "-5", "InvalidQuery", ""),
    ]
    assert len((await client.get(f"{rows}table")).text.splitlines()) == 5
    (entry,) = rispy.loads((await client.get(f"{rows}ris")).text)
    assert entry["accession_number"] == "7"
    assert "p. 3" in str(entry["notes"])
