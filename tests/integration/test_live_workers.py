"""A question whose literature is fetched first, through a real stack: the API, the process that ingests, and a worker."""

from __future__ import annotations

import os
from pathlib import Path

import httpx2
import pytest
from anyio.from_thread import start_blocking_portal

from orchestrator.stack.options import StackOptions
from orchestrator.stack.up import running_stack
from posology.published.answers import AskOutput
from posology.testing.literature.stub import LiteratureStub
from tests.support.indices import index_of

pytestmark = pytest.mark.slow

QUESTION = {"question": "Does aspirin reduce stroke in adults?"}


def test_a_live_question_is_answered_from_what_was_fetched(
    tiny_encoder: Path, tmp_path: Path
) -> None:
    rows = [{"id": "t:1", "text": "Walruses rest on ice."}]
    place, encoder = str(index_of(tmp_path, tiny_encoder, rows)), str(tiny_encoder)
    # the second request is refused for a moment, as services do
    stub = LiteratureStub(faults={2: "429"})
    with stub.serving() as url:
        options = StackOptions(
            environment=os.environ,
            folder=tmp_path / "stack",
            workers=1,
            concurrency=4,
            api=True,
            port=0,
            index=place,
            uploads=True,
            overrides={
                "POSOLOGY_EMBEDDER": encoder,
                "POSOLOGY_UPLOADS": str(tmp_path / "uploads"),
                "POSOLOGY_OPEN_UPLOADS": "true",
                "POSOLOGY_TOKEN_CODES": "false",
                "POSOLOGY_EUTILS_URL": f"{url}/eutils",
                "POSOLOGY_EUROPEPMC_URL": f"{url}/europepmc",
            },
        )
        with (
            start_blocking_portal() as portal,
            portal.wrap_async_context_manager(running_stack(options)) as info,
            httpx2.Client(base_url=str(info.api_url), timeout=400) as client,
        ):
            live = {"live": "true", "max_records": "20", "wait": "300"}
            reply = client.post("/v1/ask", params=live, json=QUESTION)
            assert reply.status_code == 200, reply.text
            out = AskOutput.model_validate_json(reply.content)
            assert out.fetch is not None
            assert (out.fetch.service, out.fetch.query) == ("pubmed", "aspirin AND stroke")
            fetched = {one.passage.id for one in out.retrieved} - {"t:1"}
            assert fetched
            assert all(one.startswith("pmid:") for one in fetched)
            # the job that the worker ended names the ingest, whose record has the same provenance
            job = client.get(reply.headers["location"]).json()
            assert (job["state"], job["request"]["fetch"]) == ("succeeded", out.fetch.id)
            ingest = client.get(f"/v1/index/ingests/{out.fetch.id}").json()
            assert ingest["fetch"]["sha256"] == out.fetch.model_dump(mode="json")["sha256"]
