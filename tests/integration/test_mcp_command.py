"""The command ``posology mcp``: the protocol's own client over standard input and output."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import anyio
import pytest
from mcp.client.client import Client
from mcp.client.stdio import StdioServerParameters

from orchestrator.api.app import create_app
from orchestrator.jobs.store import JobStore
from orchestrator.settings import Settings
from posology.budget.tenants.store import TenantStore
from posology.published.answers import AskOutput, Status
from posology.store import keys
from posology.store.connection import connect
from posology.types import Limits
from tests.integration.conftest import Serve
from tests.integration.jobs_store.helpers import DIRECT, answer
from tests.support.indices import groups, index_of
from workers.engine.claims import WorkStore

pytestmark = pytest.mark.anyio

QUESTION = "Did aspirin lower the risk of stroke?"
COMMAND = "from orchestrator.cli.app import main; main()"


@asynccontextmanager
async def assistant(folder: Path, *words: str, **more: str) -> AsyncIterator[Client]:
    """The client of a laptop, which starts the command."""
    root = str(Path(__file__).parents[2])
    server = StdioServerParameters(
        command=sys.executable,
        args=["-c", COMMAND, "mcp", *words],
        env={"PYTHONPATH": root, "POSOLOGY_CONFIG": "off", "HOME": str(folder), **more},
        cwd=folder,
    )
    async with Client(server) as client:
        yield client


@pytest.mark.slow
async def test_the_offline_reader_answers_without_a_key(tiny_encoder: Path, tmp_path: Path) -> None:
    place = str(index_of(tmp_path, tiny_encoder, groups(4)))
    encoder = {"POSOLOGY_EMBEDDER": str(tiny_encoder)}
    with anyio.fail_after(240):
        async with assistant(tmp_path, "--index", place, **encoder) as client:
            names = {tool.name for tool in (await client.list_tools()).tools}
            # no worker checks watches
            assert (names >= {"ask", "search"}, "watch" in names) == (True, False)
            found = await client.call_tool("ask", {"question": QUESTION, "k": 4})
            out = AskOutput.model_validate_json(json.dumps(found.structured_content))
            quote = out.evidence[0]
            check = await client.call_tool(
                "verify_quote", {"passage": quote.passage.id, "quote": quote.quote}
            )
            absent = await client.call_tool("get_passage", {"passage": "pmid:99"})
    assert out.status is Status.ANSWERED
    assert check.structured_content["verified"]
    # the user's own machine says what is wrong
    assert absent.is_error
    assert "pmid:99" in absent.structured_content["detail"]


async def test_a_service_elsewhere_answers_by_its_key(
    redis_url: str, tenant: str, serve: Serve, tmp_path: Path
) -> None:
    redis = connect(redis_url)
    issued = await TenantStore(redis, redis_url).create(tenant, Limits())
    store = JobStore(redis, redis_url)
    settings = {"POSOLOGY_REDIS_URL": redis_url, "POSOLOGY_AUTH": "keys"}
    stages: list[str | None] = []

    async def told(progress: float, total: float | None, message: str | None) -> None:
        stages.append(message)

    async def work() -> None:
        worker = WorkStore(store, worker=keys.worker(1))
        while (unit := await worker.take(tenant)) is None:  # noqa: ASYNC110 - the client's doing
            await anyio.sleep(0.01)
        held = await worker.claim(unit, delivery=keys.new_id("delivery"))
        assert held is not None
        await worker.decide(held, DIRECT, calls=1)
        await worker.succeed(held, answer("Aspirin lowered it."))

    try:
        with anyio.fail_after(240), serve(create_app(Settings.model_validate(settings))) as url:
            async with (
                assistant(tmp_path, "--url", url, POSOLOGY_API_KEY=issued.key) as client,
                anyio.create_task_group() as group,
            ):
                group.start_soon(work)
                found = await client.call_tool(
                    "ask", {"question": QUESTION, "k": 3}, progress_callback=told
                )
                made = await client.call_tool("watch", {"question": QUESTION, "every": "day"})
                watch = {"watch": made.structured_content["id"]}
                again = await client.call_tool("get_watch", watch)
                ended = await client.call_tool("end_watch", watch)
                listed = await client.call_tool("list_watches", {})
            async with assistant(tmp_path, "--url", url, POSOLOGY_API_KEY="psl_none_none") as wrong:
                refused = await wrong.call_tool("ask", {"question": QUESTION})
            (job,) = (await store.page(tenant=tenant)).jobs
    finally:
        await redis.aclose()
    assert "Aspirin lowered it." in str(found.content)
    assert (found.meta or {})["posology/job"] == job.id
    assert "Strategy direct" in stages
    assert made.structured_content == again.structured_content
    states = [one["state"] for one in listed.structured_content["watches"]]
    assert states == [ended.structured_content["state"]] == ["ended"]
    assert refused.structured_content["type"] == "urn:posology:problem:key-refused"


def test_without_an_index_the_command_says_so(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-c", COMMAND, "mcp", "--index", "absent"],
        capture_output=True,
        text=True,
        check=False,
        cwd=tmp_path,
        env={"PYTHONPATH": str(Path(__file__).parents[2]), "POSOLOGY_CONFIG": "off", "HOME": str(tmp_path)},
        stdin=subprocess.DEVNULL,
    )  # fmt: skip
    assert done.returncode == 5
    assert "absent" in done.stderr
    assert done.stdout == ""
