"""Whatever is sent: no 5xx, no undocumented status, nothing but what the document says."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import anyio
import httpx2
import pytest
import schemathesis
from hypothesis import HealthCheck, settings
from redis import Redis
from schemathesis.checks import not_a_server_error
from schemathesis.specs.openapi.checks import (
    content_type_conformance,
    negative_data_rejection,
    positive_data_acceptance,
)

from orchestrator.ingest.uploads.process import open_stores
from orchestrator.work.items import Limits
from posology.store import keys
from tests.integration.conftest import Served
from tests.support.examples import examples
from tests.support.indices import index_of

pytestmark = pytest.mark.slow

#: the API's own: tests/unit/api/test_document.py
schema = schemathesis.openapi.from_path(
    Path(__file__).resolve().parents[2] / "docs" / "openapi.json"
)
#: a schema cannot say all that makes a question one
NOT_ASKED: list[Any] = [positive_data_acceptance]
#: nor anything of lines that become rejected rows, or of an id that is put in afterwards
NOT_ASKED_OF_TEXT: list[Any] = [*NOT_ASKED, negative_data_rejection]
#: of chats, whose answer takes too long, which is 504
NOT_ASKED_OF_CHATS: list[Any] = [*NOT_ASKED, not_a_server_error]
#: a path with a line feed is no operation, and not found in the form of all other paths
NOT_ASKED_OF_NAMES: list[Any] = [*NOT_ASKED, content_type_conformance]
quick = settings(examples(25), derandomize=True, suppress_health_check=list(HealthCheck))


@schemathesis.serializer("application/x-ndjson", "application/jsonl")
def lines(ctx: schemathesis.SerializationContext, value: Any) -> bytes:
    """One row, or as many as a list has."""
    rows = value if isinstance(value, list) else [value]
    return b"".join(
        row if isinstance(row, bytes) else f"{json.dumps(row)}\n".encode() for row in rows
    )


@pytest.fixture(scope="module")
def target(served: Served, redis_url: str) -> Iterator[str]:
    """The API's address, while a worker seems to live."""
    with Redis.from_url(redis_url) as redis:
        redis.zadd(keys.ANSWERING, {"fuzz:1": (time.time() + 600) * 1000})
        yield served.url
        redis.delete(keys.ANSWERING)


@pytest.fixture(scope="module")
def ended(target: str, served: Served, with_index: None) -> dict[str, str]:
    """A job that is over, and its batch; an ingest and a table that wait."""
    headers = {"X-Posology-Tenant": "fuzzed"}
    with httpx2.Client(base_url=target, headers=headers, trust_env=False, timeout=60) as client:
        batch = client.post(
            "/v1/batches",
            content=b'{"question": "Does it?"}\n{}\n',
            headers={"Content-Type": "application/x-ndjson"},
        ).json()["id"]
        job = client.get(f"/v1/batches/{batch}/rows").json()["rows"][0]["job"]
        client.delete(f"/v1/jobs/{job}").raise_for_status()
        table = client.post(
            "/v1/tables", json={"documents": ["1"], "model": "offline:extractive"}
        ).json()["id"]
        hook = client.post("/v1/webhooks", json={"url": "https://example.org/"}).json()["id"]
        watch = client.post("/v1/watches", json={"question": "Does it?"}).json()["id"]

    async def sent() -> str:
        async with (
            open_stores(served.app.state.context.settings) as stores,
            stores.uploads.arriving("fuzzed", "note.txt", Limits(items=1, bytes=10)) as arrival,
        ):
            arrival.write(b"It does.")
            return (await stores.uploads.complete(arrival))[0].id

    ingest = anyio.run(sent)
    return {
        "job": job,
        "batch": batch,
        "passage": "1",
        "ingest": ingest,
        "model": "posology",
        "webhook": hook,
        "watch": watch,
        "table": table,
    }


@pytest.fixture(scope="module")
def with_index(
    served: Served, tiny_encoder: Path, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[None]:
    """The API has an index to estimate from."""
    folder = tmp_path_factory.mktemp("fuzz")
    rows = [{"id": "1", "text": "It does."}]
    place, encoder = str(index_of(folder, tiny_encoder, rows)), str(tiny_encoder)
    context = served.app.state.context
    before = context.settings
    limits = context.limits
    context.settings = before.model_copy(update={"index": place, "embedder": encoder})
    # no worker ends the jobs that chat completions wait for
    context.limits = replace(limits, completion=0.05)
    yield
    context.settings, context.limits = before, limits


def hurry(case: schemathesis.Case[Any]) -> None:
    """No worker ends the jobs that a request waits for."""
    query = case.query or {}
    if case.path == "/v1/ask" or "wait" in query:
        try:
            wait = float(query.get("wait", 50))
        except (TypeError, ValueError):
            return
        if 0.05 < wait <= 300:
            case.query = {**query, "wait": 0.05}


@schema.parametrize()
@quick
@pytest.mark.usefixtures("with_index")
def test_whatever_is_sent(case: schemathesis.Case[Any], target: str) -> None:
    unasked = {
        ("POST", "/v1/batches"): NOT_ASKED_OF_TEXT,
        ("POST", "/v1/chat/completions"): NOT_ASKED_OF_CHATS,
        ("GET", "/v1/models/{model}"): NOT_ASKED_OF_NAMES,
    }
    hurry(case)
    case.call_and_validate(
        base_url=target, excluded_checks=unasked.get((case.method, case.path), NOT_ASKED)
    )


@schema.include(path_regex=r"\{").parametrize()
@quick
@pytest.mark.usefixtures("with_index")
def test_whatever_is_sent_about_what_there_is(
    case: schemathesis.Case[Any], target: str, ended: dict[str, str]
) -> None:
    case.path_parameters = {name: ended[name] for name in case.path_parameters}
    headers = {"X-Posology-Tenant": "fuzzed"}
    case.call_and_validate(base_url=target, headers=headers, excluded_checks=NOT_ASKED_OF_TEXT)
    if case.path.endswith("/retry"):
        with httpx2.Client(base_url=target, headers=headers, trust_env=False, timeout=60) as client:
            client.delete(f"/v1/jobs/{ended['job']}")
