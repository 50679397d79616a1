"""Files over HTTP: who may send them, what is taken, and what becomes of them."""

from __future__ import annotations

import gc
import gzip
import json
import os
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager
from functools import partial
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import anyio
import httpx2
import pytest
from anyio.from_thread import BlockingPortal, start_blocking_portal
from redis import Redis as SyncRedis
from redis.asyncio import Redis
from typer.testing import CliRunner

from orchestrator.api.app import create_app
from orchestrator.api.context import Limits as ApiLimits
from orchestrator.cli.app import app as cli
from orchestrator.ingest.uploads.process import Ingesting, Keeper, open_stores
from orchestrator.ingest.uploads.service import Ingester
from orchestrator.ingest.uploads.uploads import Uploads
from orchestrator.jobs.store import JobStore
from orchestrator.models import Models
from orchestrator.settings import Settings
from orchestrator.work.items import Limits
from posology.budget.tenants.store import TenantStore
from posology.client import Client, SyncClient
from posology.errors import BadFile, IngestNotAllowed, IngestNotFound, InvalidQuery
from posology.index.store import Index
from posology.published.ingests import IngestOutput, IngestPage, IngestState
from posology.store.connection import connect
from posology.types import Limits as TenantLimits
from tests.integration.test_api import problem
from tests.support import s3
from tests.support.waiting import until

pytestmark = pytest.mark.anyio
ROOT = Path(__file__).parents[2]
FILES = "/v1/index/files"
BYTES = {"content-type": "application/octet-stream"}
ROWS = "".join(
    json.dumps({"id": f"t:{n}", "text": f"Aspirin lowered the risk of disease {n} in adults."})
    + "\n"
    for n in range(4)
).encode()
Serve = Callable[[Any], Any]


@pytest.fixture(autouse=True)
def _alone(redis_url: str) -> None:
    """No test ingests what another one left."""
    with SyncRedis.from_url(redis_url) as client:
        client.flushdb()


@pytest.fixture
def given(tmp_path: Path, tiny_encoder: Path, redis_url: str) -> dict[str, str]:
    return {
        "POSOLOGY_INDEX": str(tmp_path / "index"),
        "POSOLOGY_EMBEDDER": str(tiny_encoder),
        "POSOLOGY_UPLOADS": str(tmp_path / "uploads"),
        "POSOLOGY_OPEN_UPLOADS": "true",
        "POSOLOGY_REDIS_URL": redis_url,
        "POSOLOGY_TOKEN_CODES": "false",
    }


@asynccontextmanager
async def serving(
    redis: Redis,
    url: str,
    settings: dict[str, str],
    *,
    tenant: str | None = None,
    key: str | None = None,
    limits: ApiLimits | None = None,
    address: str = "127.0.0.1",
) -> AsyncIterator[httpx2.AsyncClient]:
    app = create_app(Settings.model_validate(settings), JobStore(redis, url), limits=limits)
    transport = httpx2.ASGITransport(app, raise_app_exceptions=False, client=(address, 1))
    headers = {} if tenant is None else {"X-Posology-Tenant": tenant}
    if key is not None:
        headers["Authorization"] = f"Bearer {key}"
    async with httpx2.AsyncClient(
        transport=transport, base_url="http://localhost", headers=headers, timeout=90
    ) as client:
        yield client
        await app.state.context.aclose()


async def ingest_all(settings: dict[str, str], turn: float = 30.0) -> None:
    """What the ingesting process does until nothing waits."""
    loaded = Settings.model_validate(settings)
    work = Ingesting(settings=loaded, models=Models(loaded.embedder, loaded.embedding))
    async with open_stores(loaded) as stores:
        serving_ = Ingester(stores.uploads, work, threading.Event(), lease=loaded.lease, turn=turn)
        assert not await serving_.run_waiting()


def nothing_is_left(settings: dict[str, str]) -> None:
    folder = Path(settings["POSOLOGY_UPLOADS"])
    assert [p for p in folder.rglob("*") if p.is_file() and not p.name.endswith(".lock")] == []


async def test_a_file_becomes_passages(
    redis: Redis, redis_url: str, tenant: str, given: dict[str, str]
) -> None:
    async with serving(redis, redis_url, given, tenant=tenant) as client:
        content = gzip.compress(ROWS + b"rubbish\n")
        name = {"name": "abstracts.jsonl.gz"}
        made = await client.post(FILES, params=name, content=content, headers=BYTES)
        assert made.status_code == 202, made.text
        ingest = IngestOutput.model_validate_json(made.content)
        assert ingest.state is IngestState.WAITING
        assert made.headers["location"] == f"/v1/index/ingests/{ingest.id}"
        again = await client.post(FILES, params=name, content=content, headers=BYTES)
        assert again.status_code == 200
        assert again.json() == made.json()
        await ingest_all(given)
        found = IngestOutput.model_validate_json(
            (await client.get(made.headers["location"])).content
        )
        assert found.state is IngestState.SUCCEEDED
        assert (found.done, found.total, found.written, found.bad) == (5, 5, 4, 1)
        assert [one.line for one in found.rejected] == [5]
        assert given["POSOLOGY_UPLOADS"] not in found.model_dump_json()
        passage = await client.get("/v1/passages/t:3")
        assert passage.json()["text"] == "Aspirin lowered the risk of disease 3 in adults."
        page = IngestPage.model_validate_json((await client.get("/v1/index/ingests")).content)
        assert page.ingests == (found,)
        metrics = (await client.get("/metrics")).text
        assert 'posology_ingests{state="succeeded"} 1.0' in metrics
        assert "posology_ingesting_process_up 0.0" in metrics


async def test_an_ingest_is_cancelled_by_its_tenant_alone(
    redis: Redis, redis_url: str, tenant: str, given: dict[str, str]
) -> None:
    async with (
        serving(redis, redis_url, given, tenant=tenant) as mine,
        serving(redis, redis_url, given, tenant=f"{tenant}-b") as theirs,
    ):
        made = await mine.post(FILES, params={"name": "a.jsonl"}, content=ROWS, headers=BYTES)
        at = made.headers["location"]
        refused = await theirs.delete(at)
        assert problem(refused, 404, "ingest-not-found")
        asked = await mine.delete(at)
        assert (asked.status_code, asked.json()) == (202, made.json())
        await ingest_all(given)
        ended = await mine.delete(at)
        assert (ended.status_code, ended.json()["state"]) == (200, "cancelled")
        absent = await mine.delete("/v1/index/ingests/ingest_0")
        assert problem(absent, 404, "ingest-not-found")
    assert not await anyio.Path(given["POSOLOGY_INDEX"]).exists()


def test_operators_list_and_cancel_ingests_of_all_tenants(
    given: dict[str, str], tenant: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("POSOLOGY_UPLOADS", "POSOLOGY_REDIS_URL"):
        monkeypatch.setenv(name, given[name])
    runner = CliRunner()
    with opened(given) as (portal, uploads):
        made = portal.call(sent, uploads, tenant, "a.jsonl", ROWS)
        listed = runner.invoke(cli, ["uploads", "list"])
        assert listed.stdout.split()[:3] == [made.id, tenant, "waiting"]
        cancelled = runner.invoke(cli, ["uploads", "cancel", made.id])
        assert (cancelled.exit_code, cancelled.stdout) == (
            0,
            f"{made.id} of {tenant} is cancelled\n",
        )
        item = portal.call(uploads.work.get, tenant, made.id)
    assert item is not None
    assert item.cancelled
    absent = runner.invoke(cli, ["uploads", "cancel", "ingest_0"])
    assert absent.exit_code == IngestNotFound.exit_code


async def test_a_long_file_is_ingested_in_turns_with_others(
    redis: Redis, redis_url: str, tenant: str, given: dict[str, str]
) -> None:
    """Nothing is read twice into the index, and nothing is left out."""
    rows = [{"id": f"l:{n}", "text": f"Salt helped {n} of them."} for n in range(600)]
    long = gzip.compress("".join(json.dumps(row) + "\n" for row in rows).encode())
    async with (
        serving(redis, redis_url, given, tenant=tenant) as mine,
        serving(redis, redis_url, given, tenant=f"{tenant}-b") as theirs,
    ):
        first = await mine.post(FILES, params={"name": "a.jsonl.gz"}, content=long, headers=BYTES)
        note = await theirs.post(FILES, params={"name": "b.jsonl"}, content=ROWS, headers=BYTES)
        await ingest_all(given, turn=0)
        ended = [
            IngestOutput.model_validate_json((await client.get(made.headers["location"])).content)
            for client, made in ((mine, first), (theirs, note))
        ]
    assert [(one.state, one.done, one.total) for one in ended] == [
        (IngestState.SUCCEEDED, 600, 600),
        (IngestState.SUCCEEDED, 4, 4),
    ]
    long_ended, note_ended = (one.ended for one in ended)
    assert long_ended is not None
    assert note_ended is not None
    assert note_ended < long_ended
    assert len(Index.open(given["POSOLOGY_INDEX"]).view().ids()) == 604


async def test_an_upload_leaves_no_index_open(
    redis: Redis, redis_url: str, tenant: str, given: dict[str, str]
) -> None:
    def left_open() -> int:
        return sum(type(one) is Index for one in gc.get_objects())

    async with serving(redis, redis_url, given, tenant=tenant) as client:
        for name in ("a.jsonl", "b.jsonl"):
            await client.post(FILES, params={"name": name}, content=ROWS, headers=BYTES)
    gc.collect()
    before = left_open()
    # LanceDB's caches of an index stay as long as it does, whatever Python's own collector does
    gc.disable()
    try:
        await ingest_all(given)
        assert left_open() == before
    finally:
        gc.enable()


async def test_texts_of_one_name_from_two_tenants_do_not_replace_each_other(
    redis: Redis, redis_url: str, tenant: str, given: dict[str, str]
) -> None:
    for name in (f"{tenant}-a", f"{tenant}-b"):
        async with serving(redis, redis_url, given, tenant=name) as client:
            text = f"Aspirin helped {name}."
            made = await client.post(
                FILES, params={"name": "note.txt"}, content=text, headers=BYTES
            )
            assert made.status_code == 202
    await ingest_all(given)
    view = Index.open(given["POSOLOGY_INDEX"]).view()
    ids = [f"file:{tenant}-a/note.txt#1", f"file:{tenant}-b/note.txt#1"]
    texts = [found.passage.text for found in view.fetch(ids)]
    assert texts == [f"Aspirin helped {tenant}-a.", f"Aspirin helped {tenant}-b."]


@pytest.mark.parametrize(
    "name",
    ["../../etc/cron.d/a.jsonl", "/etc/a.jsonl", "..\\a.jsonl", "a.jsonl\0", "con.jsonl", ".a.jsonl", "a\n.jsonl",
     "", "x" * 300 + ".jsonl"],
)  # fmt: skip
async def test_a_hostile_name_is_refused_before_anything_is_written(
    redis: Redis, redis_url: str, tenant: str, given: dict[str, str], name: str
) -> None:
    async with serving(redis, redis_url, given, tenant=tenant) as client:
        refused = await client.post(FILES, params={"name": name}, content=ROWS, headers=BYTES)
        assert problem(refused, 422, "invalid-query")["field"] == "name"
    nothing_is_left(given)


@pytest.mark.parametrize(
    ("name", "content", "status", "kind"),
    [("a.jsonl", b"", 422, "bad-file"),
     ("a.xlsx", b"PK", 422, "bad-file"),
     ("photo.jpg", b"\xff\xd8", 422, "bad-file"),
     ("a", b"Aspirin", 422, "bad-file"),
     ("a.xml", b"<html></html>", 422, "bad-file"),
     ("a.xml", b'<!DOCTYPE x [<!ENTITY y SYSTEM "file:///etc/passwd">]><x>&y;</x>', 422, "bad-file"),
     ("a.jsonl", b"x" * (1024 * 1024 + 1), 413, "body-too-large")],
)  # fmt: skip
async def test_what_is_no_literature_or_too_large_leaves_nothing(
    redis: Redis, redis_url: str, tenant: str, given: dict[str, str],
    name: str, content: bytes, status: int, kind: str,
) -> None:  # fmt: skip
    given["POSOLOGY_UPLOAD_MIB"] = "1"
    async with serving(redis, redis_url, given, tenant=tenant) as client:
        refused = await client.post(FILES, params={"name": name}, content=content, headers=BYTES)
        found = problem(refused, status, kind)
        assert given["POSOLOGY_UPLOADS"] not in json.dumps(found)
    nothing_is_left(given)


async def test_an_undeclared_size_is_limited_too(
    redis: Redis, redis_url: str, tenant: str, given: dict[str, str]
) -> None:
    given["POSOLOGY_UPLOAD_MIB"] = "1"

    async def endless() -> AsyncIterator[bytes]:
        while True:
            yield b"x" * 65_536

    async with serving(redis, redis_url, given, tenant=tenant) as client:
        name = {"name": "a.jsonl"}
        refused = await client.post(FILES, params=name, content=endless(), headers=BYTES)
        problem(refused, 413, "body-too-large")
    nothing_is_left(given)


async def test_files_that_wait_leave_room_for_so_many_bytes(
    redis: Redis, redis_url: str, tenant: str, given: dict[str, str]
) -> None:
    given |= {"POSOLOGY_UPLOADS_MIB": "1"}
    async with serving(redis, redis_url, given, tenant=tenant) as client:
        first = await client.post(
            FILES, params={"name": "a.txt"}, content=b"x" * 700_000, headers=BYTES
        )
        assert first.status_code == 202
        full = await client.post(
            FILES, params={"name": "b.txt"}, content=b"x" * 700_000, headers=BYTES
        )
        assert "348576" in problem(full, 429, "uploads-full")["detail"]
        assert full.headers["retry-after"] == "60"


@pytest.mark.parametrize(
    ("headers", "status", "kind"),
    [({"content-type": "text/plain"}, 415, "unsupported-media-type"),
     ({"content-type": "multipart/form-data; boundary=x"}, 415, "unsupported-media-type"),
     ({}, 415, "unsupported-media-type"),
     ({**BYTES, "content-encoding": "gzip"}, 415, "unsupported-encoding")],
)  # fmt: skip
async def test_other_bodies_are_refused(
    redis: Redis, redis_url: str, tenant: str, given: dict[str, str],
    headers: dict[str, str], status: int, kind: str,
) -> None:  # fmt: skip
    async with serving(redis, redis_url, given, tenant=tenant) as client:
        refused = await client.post(
            FILES, params={"name": "a.jsonl"}, content=ROWS, headers=headers
        )
        problem(refused, status, kind)
    nothing_is_left(given)


async def send(client: httpx2.AsyncClient, **headers: str) -> httpx2.Response:
    return await client.post(
        FILES, params={"name": "a.jsonl"}, content=ROWS, headers={**BYTES, **headers}
    )


async def test_with_keys_only_tenants_who_may_send_files(
    redis: Redis, redis_url: str, tenant: str, given: dict[str, str]
) -> None:
    given |= {"POSOLOGY_AUTH": "keys"}
    tenants = TenantStore(redis, redis_url)
    issued = await tenants.create(tenant)
    async with serving(redis, redis_url, given) as client:
        problem(await send(client), 401, "key-refused")
    # from another machine: with a key, that makes no difference
    async with serving(redis, redis_url, given, key=issued.key, address="192.0.2.7") as client:
        refused = problem(await send(client), 403, "ingest-not-allowed")
        assert refused["tenant"] == tenant
        nothing_is_left(given)
        may = await tenants.limit(tenant, TenantLimits(may_ingest=True), only=("may_ingest",))
        assert may.limits.may_ingest
        assert (await send(client)).status_code == 202
        await tenants.limit(tenant, TenantLimits(), only=("may_ingest",))
        problem(await send(client), 403, "ingest-not-allowed")
        # it still sees what it sent
        (sent,) = (await client.get("/v1/index/ingests")).json()["ingests"]
        own = f"/v1/index/ingests/{sent['id']}"
        assert (await client.get(own)).json() == sent
    other = await tenants.create(f"{tenant}-other")
    async with serving(redis, redis_url, given, key=other.key) as client:
        assert (await client.get("/v1/index/ingests")).json()["ingests"] == []
        # an id of another's is an id of nothing
        made_up = "ingest_0199a1b2c3d45f6e7a8b9c0d1e2f"
        theirs = problem(await client.get(own), 404, "ingest-not-found")
        none = problem(await client.get(f"/v1/index/ingests/{made_up}"), 404, "ingest-not-found")
        assert json.dumps(theirs).replace(sent["id"], made_up) == json.dumps(none)


async def test_without_keys_only_this_machine_sends_files_and_only_if_a_setting_allows_it(
    redis: Redis, redis_url: str, tenant: str, given: dict[str, str]
) -> None:
    async with serving(redis, redis_url, given, tenant=tenant, address="192.0.2.7") as client:
        problem(await send(client), 403, "ingest-not-allowed")
    async with serving(redis, redis_url, given, tenant=tenant) as client:
        # a proxy on this machine speaks for another one
        for name in ("x-forwarded-for", "x-forwarded-proto", "x-real-ip", "forwarded", "via"):
            problem(await send(client, **{name: "127.0.0.1"}), 403, "ingest-not-allowed")
        assert (await send(client)).status_code == 202
    for off in ({"POSOLOGY_OPEN_UPLOADS": "false"}, {"POSOLOGY_UPLOADS": ""}):
        settings = {name: value for name, value in (given | off).items() if value}
        async with serving(redis, redis_url, settings, tenant=tenant) as client:
            problem(await send(client), 403, "ingest-not-allowed")
    async with serving(redis, redis_url, settings, tenant=tenant) as client:
        assert (await client.get("/v1/index/ingests")).json() == {"ingests": []}
        missing = await client.get("/v1/index/ingests/ingest_0199a1b2c3d45f6e7a8b9c0d1e2f")
        problem(missing, 404, "ingest-not-found")


async def test_with_a_key_an_open_api_asks_for_the_permission(
    redis: Redis, redis_url: str, tenant: str, given: dict[str, str]
) -> None:
    issued = await TenantStore(redis, redis_url).create(tenant)
    async with serving(redis, redis_url, given, key=issued.key) as client:
        problem(await send(client), 403, "ingest-not-allowed")


async def test_a_bearer_that_is_no_key_proves_no_tenant(
    redis: Redis, redis_url: str, tenant: str, given: dict[str, str]
) -> None:
    await TenantStore(redis, redis_url).create(tenant, TenantLimits(may_ingest=True))
    claim = {"X-Posology-Tenant": tenant, "Authorization": "Bearer sk-anything"}
    # from another machine, as without the bearer
    async with serving(redis, redis_url, given, address="192.0.2.7") as client:
        problem(await send(client, **claim), 403, "ingest-not-allowed")
    async with serving(redis, redis_url, given) as client:
        assert (await send(client, **claim)).status_code == 202


async def test_two_at_once(
    redis: Redis, redis_url: str, tenant: str, given: dict[str, str]
) -> None:
    began, sent = anyio.Event(), anyio.Event()
    done: dict[str, httpx2.Response] = {}

    async def slow() -> AsyncIterator[bytes]:
        yield ROWS[:100]
        began.set()
        await sent.wait()
        yield ROWS[100:]

    async with (
        serving(redis, redis_url, given, tenant=tenant) as client,
        serving(redis, redis_url, given, tenant=f"{tenant}-other") as other,
    ):

        async def post(name: str, content: Any) -> None:
            done[name] = await client.post(
                FILES, params={"name": name}, content=content, headers=BYTES
            )

        async with anyio.create_task_group() as group:
            group.start_soon(post, "slow.jsonl", slow())
            await began.wait()
            # of the same tenant, the second one waits for the first in the same process of the API
            group.start_soon(post, "quick.jsonl", ROWS)
            assert (await send(other)).status_code == 202, "another tenant does not wait"
            async with serving(redis, redis_url, given, tenant=tenant) as process:
                assert (await send(process)).status_code == 202, "nor another process"
            assert not done
            sent.set()
        assert {name: reply.status_code for name, reply in done.items()} == {
            "slow.jsonl": 202,
            "quick.jsonl": 202,
        }
        await ingest_all(given)
        page = IngestPage.model_validate_json((await client.get("/v1/index/ingests")).content)
        assert {one.state for one in page.ingests} == {IngestState.SUCCEEDED}
        assert sum(one.written for one in page.ingests) + sum(
            one.unchanged for one in page.ingests
        ) == 3 * len(ROWS.splitlines())
    assert Index.open(given["POSOLOGY_INDEX"]).view().count() == len(ROWS.splitlines())


def test_an_upload_that_is_cut_leaves_nothing(
    given: dict[str, str], serve: Serve, tenant: str
) -> None:
    folder = Path(given["POSOLOGY_UPLOADS"])

    def arriving() -> list[Path]:
        return [p for p in folder.rglob("a.jsonl") if p.is_file()]

    with serve(create_app(Settings.model_validate(given))) as url:
        place = urlsplit(url)
        head = (
            f"POST {FILES}?name=a.jsonl HTTP/1.1\r\nHost: localhost\r\nX-Posology-Tenant: {tenant}\r\n"
            "Content-Type: application/octet-stream\r\nContent-Length: 100000\r\n\r\n"
        )
        with socket.create_connection((place.hostname, place.port), timeout=60) as connection:
            connection.sendall(head.encode() + ROWS)
            until(lambda: bool(arriving()))
        until(lambda: not arriving())
        with SyncClient(url, tenant=tenant) as client:
            assert client.ingests() == ()
    nothing_is_left(given)


def test_both_clients_upload_and_wait(
    given: dict[str, str], serve: Serve, tenant: str, tmp_path: Path
) -> None:
    file = tmp_path / "rows.jsonl"
    file.write_bytes(ROWS)
    with serve(create_app(Settings.model_validate(given))) as url:
        with SyncClient(url, tenant=tenant) as client:
            made = client.upload(file)
            assert (made.name, made.bytes) == ("rows.jsonl", len(ROWS))
            assert client.ingest(made.id) == made
            anyio.run(ingest_all, given)
            assert client.wait_ingest(made.id).written == 4
            with pytest.raises(InvalidQuery):
                client.upload(file, name="../rows.jsonl")
            (tmp_path / "empty.jsonl").touch()
            with pytest.raises(BadFile, match="empty"):
                client.upload(tmp_path / "empty.jsonl")
            with pytest.raises(BadFile, match="No such file"):
                client.upload(tmp_path / "missing.jsonl")
            with pytest.raises(IngestNotFound):
                client.ingest("ingest_0199a1b2c3d45f6e7a8b9c0d1e2f")

        async def other() -> None:
            async with Client(url, tenant=tenant) as client:
                assert [one.name for one in await client.ingests()] == ["rows.jsonl"]

        anyio.run(other)
    without = {name: value for name, value in given.items() if name != "POSOLOGY_OPEN_UPLOADS"}
    with (
        serve(create_app(Settings.model_validate(without))) as url,
        SyncClient(url, tenant=tenant) as client,
        pytest.raises(IngestNotAllowed),
    ):
        client.upload(file)


@contextmanager
def ingesting(settings: dict[str, str], log: Path) -> Iterator[subprocess.Popen[bytes]]:
    """The ingesting process, which gives way to the test."""
    with (
        log.open("ab") as out,
        subprocess.Popen(
            ["nice", sys.executable, "-m", "orchestrator.ingest.uploads.process"],
            cwd=ROOT,
            env={**os.environ, **settings},
            stdout=out,
            stderr=out,
        ) as process,
    ):
        try:
            yield process
        finally:
            process.kill()


@pytest.mark.slow
def test_a_killed_ingest_resumes(given: dict[str, str], tenant: str, tmp_path: Path) -> None:
    rows = 3_000
    text = "".join(
        json.dumps({"id": f"t:{n}", "text": f"Aspirin lowered risk {n}. It did so in {n} adults."})
        + "\n"
        for n in range(rows)
    ).encode()
    given["POSOLOGY_LEASE"] = "2"
    log = tmp_path / "log"
    with opened(given) as (portal, uploads):
        made = portal.call(sent, uploads, tenant, "a.jsonl", text)

        def now() -> IngestOutput:
            return portal.call(partial(uploads.get, made.id, tenant=tenant))

        def served() -> bool:
            return portal.call(partial(uploads.work.processes, within=6)) > 0

        with ingesting(given, log) as process:
            # commits are every 500 records
            until(lambda: now().done >= 1_000 or now().over or process.poll() is not None)
            assert served()
            process.send_signal(signal.SIGKILL)
            process.wait(90)
        killed = now()
        assert killed.state is IngestState.RUNNING, log.read_text()
        assert 1_000 <= killed.done < rows
        assert killed.total == rows
        until(lambda: not served())
        with ingesting(given, log) as process, ingesting(given, tmp_path / "standby") as standby:
            until(lambda: now().over or process.poll() is not None)
            for one in (process, standby):
                one.send_signal(signal.SIGTERM)
                assert one.wait(90) == 0, log.read_text()
        assert not served()
        ended = now()
    assert ended.state is IngestState.SUCCEEDED, log.read_text()
    assert ended.runs == 2
    assert 0 < ended.written < rows, "what the first run had written is not written again"
    assert Index.open(given["POSOLOGY_INDEX"]).view().count() == rows
    lines = [json.loads(line) for line in log.read_text().splitlines()]
    lines += [json.loads(line) for line in (tmp_path / "standby").read_text().splitlines()]
    events = [line["event"] for line in lines if line.get("ingest") == made.id]
    assert sorted(events) == ["ingest ended", "ingest started", "ingest started"]


@pytest.mark.slow
def test_processes_that_are_killed_at_any_moment_lose_no_file(
    given: dict[str, str], tenant: str, tmp_path: Path
) -> None:
    given["POSOLOGY_LEASE"] = "2"
    log, files = tmp_path / "log", 12
    with opened(given) as (portal, uploads):
        for n in range(files):
            rows = f'{{"id": "t:{n}", "text": "Aspirin lowered risk {n} in adults."}}\n'
            portal.call(sent, uploads, f"{tenant}-{n % 3}", f"{n}.jsonl", rows.encode())

        def reach(most: int, process: subprocess.Popen[bytes]) -> None:
            until(
                lambda: (
                    portal.call(uploads.work.all_totals)["succeeded"] >= most
                    or process.poll() is not None
                )
            )

        # as soon as so many have ended: the next one has been claimed, is read, or ends
        for most in (1, 3, 6):
            with ingesting(given, log) as process:
                reach(most, process)
                process.send_signal(signal.SIGKILL)
                process.wait(90)
        with ingesting(given, log) as process:
            reach(files, process)
        assert portal.call(uploads.work.all_totals)["succeeded"] == files, log.read_text()
        assert portal.call(uploads.work.waiting) == {}
    assert Index.open(given["POSOLOGY_INDEX"]).view().count() == files


async def sent(uploads: Uploads, tenant: str, name: str, content: bytes) -> IngestOutput:
    """A file that waits, without the API."""
    async with uploads.arriving(tenant, name, Limits(items=10, bytes=10**8)) as arrival:
        arrival.write(content)
        return (await uploads.complete(arrival))[0]


@contextmanager
def opened(settings: dict[str, str]) -> Iterator[tuple[BlockingPortal, Uploads]]:
    """The uploads, for a test that waits for processes."""
    loaded = Settings.model_validate(settings)
    with (
        start_blocking_portal() as portal,
        portal.wrap_async_context_manager(open_stores(loaded)) as stores,
    ):
        yield portal, stores.uploads


async def test_files_on_object_storage(
    redis: Redis, redis_url: str, tenant: str, given: dict[str, str]
) -> None:
    with s3.running() as server:
        given |= server.environment | {"POSOLOGY_UPLOADS": f"s3://{server.bucket()}/some/uploads"}
        async with serving(redis, redis_url, given, tenant=tenant) as client:
            for name, content in (("rows.jsonl", ROWS), ("note.txt", b"Aspirin helped.")):
                made = await client.post(
                    FILES, params={"name": name}, content=content, headers=BYTES
                )
                assert made.status_code == 202, made.text
            refused = await client.post(
                FILES, params={"name": "a.jsonl"}, content=b"", headers=BYTES
            )
            problem(refused, 422, "bad-file")
            loaded = Settings.model_validate(given)
            async with open_stores(loaded) as stores:
                uploads = stores.uploads
                # both, and nothing of what was refused
                older = await anyio.to_thread.run_sync(lambda: list(uploads.files.older(-60)))
                assert [name.rpartition("/")[0] for name in older] == [f"ingest/{tenant}"] * 2
                # killed before its offer, so long ago
                await anyio.to_thread.run_sync(
                    uploads.files.write, b"x", f"ingest/{tenant}/i/a.txt"
                )
                keeper = Keeper(stores=stores, settings=loaded, process="")
                await keeper.clear(-60)
                assert len(list(uploads.files.older(-60))) == 2
                await ingest_all(given)
                assert list(uploads.files.older(-60)) == []
            page = IngestPage.model_validate_json((await client.get("/v1/index/ingests")).content)
            assert {one.state for one in page.ingests} == {IngestState.SUCCEEDED}
    ids = set(Index.open(given["POSOLOGY_INDEX"]).view().ids())
    # the ids of texts come from their names, as with a folder
    assert f"file:{tenant}/note.txt#1" in ids
    assert len(ids) == 5


async def test_without_redis_no_file_is_taken(
    tenant: str, given: dict[str, str], tmp_path: Path
) -> None:
    url = f"unix://{tmp_path}/none.sock"
    client_of_none = connect(url, tries=1, seconds=1.0)
    async with serving(client_of_none, url, given, tenant=tenant) as client:
        problem(await send(client), 503, "store-unavailable")
        problem(await client.get("/v1/index/ingests"), 503, "store-unavailable")
    nothing_is_left(given)
