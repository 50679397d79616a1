"""Collections: answers from the index that a question names, for the tenants that may read it, and for no others."""

from __future__ import annotations

import json
import re
import threading
from collections.abc import AsyncIterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx2
import pytest
from anyio import to_thread
from redis.asyncio import Redis
from starlette.requests import Request
from typer.testing import CliRunner, Result

from orchestrator import service
from orchestrator.api.app import create_app
from orchestrator.api.context import Limits
from orchestrator.api.mcp.service import ServiceDesk
from orchestrator.api.mcp.tools import OFFERS
from orchestrator.cli.app import app
from orchestrator.ingest.uploads import process
from orchestrator.ingest.uploads.process import open_stores
from orchestrator.jobs.store import JobStore
from orchestrator.library import AsyncPosology
from orchestrator.models import Models
from orchestrator.settings import Settings, load_settings
from orchestrator.tables.served.reader import TableReader
from orchestrator.watches.store import WatchStore
from posology.budget.ledger.redis import RedisLedger
from posology.budget.tenants.store import TenantStore
from posology.errors import CollectionNotFound, ConfigurationError, IndexMissing, InvalidQuery
from posology.index.places import Place
from posology.index.store import Index
from posology.published.jobs import JobEvent, JobOutput
from posology.store import keys
from posology.types import JobState, WatchState
from posology.types import Limits as TenantLimits
from tests.support.commands import published
from tests.support.console_bench import token
from tests.support.indices import groups, index_of
from workers.process import Process

QUESTION = "Does zyxomab cure lattice fever?"
SECRET = "Zyxomab cured lattice fever in nine patients."
TRIALS = [{"id": "trial:1", "text": SECRET, "title": "Zyxomab"}]
GUIDES = [{"id": "guide:1", "text": "Zyxomab is advised against lattice fever.", "title": "Advice"}]


@dataclass(kw_only=True, slots=True)
class World:
    """A service with two collections, a worker, a tenant that may read them, and one that may not."""

    http: httpx2.AsyncClient
    process: Process
    store: JobStore
    tenants: TenantStore
    settings: Settings
    api: Any
    mine: str
    other: str
    keys: dict[str, str]

    async def send(
        self, tenant: str, method: str, path: str, body: Any = None, **more: Any
    ) -> httpx2.Response:
        headers = {"Authorization": f"Bearer {self.keys[tenant]}", **more.pop("headers", {})}
        if body is not None:
            more["content"] = body if isinstance(body, str) else json.dumps(body)
            kind = "application/x-ndjson" if path.startswith("/v1/batches") else "application/json"
            headers["Content-Type"] = kind
        return await self.http.request(method, path, headers=headers, **more)

    async def job(self, *, key: str | None = None, tenant: str = "", **fields: Any) -> JobOutput:
        headers = {} if key is None else {"Idempotency-Key": key}
        body = {"question": QUESTION, **fields}
        reply = await self.send(tenant or self.mine, "POST", "/v1/jobs", body, headers=headers)
        assert reply.status_code in (200, 202), reply.text
        return JobOutput.model_validate_json(reply.content)

    async def work(self) -> None:
        """What a worker does until nothing waits."""
        for tenant in (self.mine, self.other):
            while (unit := await self.process._work.take(tenant)) is not None:
                for following in await self.process.runner.run(unit):
                    await self.process.runner.run(following)

    async def answered(self, **fields: Any) -> JobOutput:
        made = await self.job(**fields)
        await self.work()
        return await self.store.get(made.id, tenant=self.mine)

    async def grant(self, *collections: str) -> None:
        to = TenantLimits(collections=collections)
        await self.tenants.limit(self.mine, to, only=("collections",))

    async def spent(self) -> list[tuple[Any, Any]]:
        ledger = RedisLedger(self.store.redis, self.store.url, tenant=self.mine)
        return [(one.spent, one.reserved) for one in await ledger.balances()]


@pytest.fixture(scope="module")
def places(tiny_encoder: Path, tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    rows = {"index": groups(2), "trials": TRIALS, "guidelines": GUIDES}
    return {
        name: str(index_of(tmp_path_factory.mktemp(name), tiny_encoder, some))
        for name, some in rows.items()
    }


@pytest.fixture
async def world(
    redis: Redis, redis_url: str, tenant: str, places: dict[str, str], tiny_encoder: Path,
    tmp_path: Path,
) -> AsyncIterator[World]:  # fmt: skip
    settings = Settings.model_validate(
        {
            "POSOLOGY_INDEX": places["index"],
            "POSOLOGY_COLLECTIONS": f"trials={places['trials']}, guidelines={places['guidelines']}",
            "POSOLOGY_EMBEDDER": str(tiny_encoder),
            "POSOLOGY_REDIS_URL": redis_url,
            "POSOLOGY_AUTH": "keys",
            "POSOLOGY_UPLOADS": str(tmp_path / "uploads"),
        }
    )
    store, tenants = JobStore(redis, redis_url), TenantStore(redis, redis_url)
    served = create_app(settings, store, limits=Limits(completion=0.05))
    granted = {f"{tenant}-a": ("trials", "guidelines", "gone"), f"{tenant}-b": ()}
    issued = {
        name: (await tenants.create(name, TenantLimits(collections=some))).key
        for name, some in granted.items()
    }
    transport = httpx2.ASGITransport(served, raise_app_exceptions=False)
    async with (
        httpx2.AsyncClient(transport=transport, base_url="http://localhost", timeout=90) as http,
        Process(settings, lambda _: None) as process,
    ):
        yield World(
            http=http, process=process, store=store, tenants=tenants, settings=settings, api=served.state.context,
            mine=f"{tenant}-a", other=f"{tenant}-b", keys=issued,
        )  # fmt: skip
        await served.state.context.aclose()


@pytest.mark.anyio
async def test_a_question_is_answered_from_its_collection(world: World) -> None:
    found = {
        name: await world.answered(collection=name) if name else await world.answered()
        for name in ("trials", "guidelines", None)
    }
    cited = {
        name: {one.passage.id for one in job.result.retrieved} if job.result else job.error
        for name, job in found.items()
    }
    assert cited["trials"] == {"trial:1"}
    assert cited["guidelines"] == {"guide:1"}
    assert cited[None] == {"pmid:1", "pmid:2"}
    assert found["trials"].request["collection"] == "trials"
    # a record of an earlier version, which has no such field, means the default index
    assert "collection" not in found[None].request
    # the encoder is loaded once, and each index is opened once
    services = world.process.service
    assert await services("trials") is await services("trials")
    assert len({id((await services(name)).index) for name in found}) == 3


@pytest.mark.anyio
async def test_the_collection_is_part_of_a_question(world: World) -> None:
    made = await world.job(key="7", collection="trials")
    assert (await world.job(key="7", collection="trials")).id == made.id
    for other in ({"collection": "guidelines"}, {}):
        reply = await world.send(
            world.mine, "POST", "/v1/jobs", {"question": QUESTION, **other}, headers={"Idempotency-Key": "7"}
        )  # fmt: skip
        assert reply.status_code == 409
    # a follow-up is of the same literature, unless it says
    done = await world.job(parent=made.id, question="And in children?")
    assert done.request["collection"] == "trials"
    moved = await world.job(parent=made.id, question="And in children?", collection="guidelines")
    assert moved.request["collection"] == "guidelines"


def doors(collection: str) -> dict[tuple[str, str], tuple[str, Any]]:
    """The paths and bodies of all operations that take a collection."""
    asked = {"question": QUESTION, "collection": collection}
    row = json.dumps(asked)
    chat = {
        "model": "posology",
        "messages": [{"role": "user", "content": QUESTION}],
        "posology": {"collection": collection},
    }
    at = f"collection={collection}"
    return {
        ("POST", "/v1/jobs"): ("/v1/jobs", asked),
        ("POST", "/v1/ask"): ("/v1/ask?wait=0.01", asked),
        ("POST", "/v1/batches"): ("/v1/batches", f"{json.dumps({'question': QUESTION})}\n{row}\n"),
        ("POST", "/v1/batches?"): (f"/v1/batches?{at}", json.dumps({"question": QUESTION})),
        ("POST", "/v1/watches"): ("/v1/watches", asked),
        ("POST", "/v1/estimate"): ("/v1/estimate", asked),
        ("POST", "/v1/estimate[]"): ("/v1/estimate", [asked]),
        ("POST", "/v1/tables"): ("/v1/tables", {"documents": ["trial:1"], "collection": collection}),
        ("POST", "/v1/tables?"): ("/v1/tables", {"search": {"query": "x", "collection": collection}}),
        ("POST", "/v1/chat/completions"): ("/v1/chat/completions", chat),
        ("POST", "/v1/search"): ("/v1/search", {"query": QUESTION, "collection": collection}),
        ("POST", "/v1/quotes"): ("/v1/quotes", {"quote": SECRET, "collection": collection}),
        ("GET", "/v1/passages/{passage}"): (f"/v1/passages/trial:1?{at}", None),
        ("GET", "/v1/index"): (f"/v1/index?{at}", None),
        ("GET", "/v1/answers/affected"): (f"/v1/answers/affected?{at}", None),
    }  # fmt: skip


def taking(document: Any) -> set[tuple[str, str]]:
    """The operations that take a collection, by a parameter or in the body."""

    def named(schema: Any) -> bool:
        text = json.dumps(schema)
        forms = [name for name in document["components"]["schemas"] if f'/{name}"' in text]
        return any(
            "collection" in document["components"]["schemas"][name].get("properties", {})
            for name in forms
        )

    return {
        (method.upper(), path)
        for path, item in document["paths"].items()
        for method, operation in item.items()
        if any(one["name"] == "collection" for one in operation.get("parameters", ()))
        or named(operation.get("requestBody", {}))
    }  # fmt: skip


@pytest.mark.anyio
async def test_no_door_tells_another_tenant_of_a_collection(world: World) -> None:
    """What may not be read and what does not exist are one error, with nothing stored, at every operation."""
    known, unknown = doors("trials"), doors("nonesuch")
    document = (await world.http.get("/openapi.json")).json()
    assert taking(document) <= set(known)
    before = [name async for name in world.store.redis.scan_iter(f"{keys.prefix(world.other)}*")]
    for door, (path, body) in known.items():
        got = await world.send(world.other, "POST" if body else "GET", path, body)
        none, other_body = unknown[door]
        wanted = await world.send(world.other, "POST" if body else "GET", none, other_body)
        refused = 400 if "chat" in path else 422
        assert got.status_code == wanted.status_code == refused, (door, got.text)
        told = [one.text.replace(name, "NAME") for one, name in ((got, "trials"), (wanted, "nonesuch"))]  # fmt: skip
        instance = [json.loads(one) for one in told]
        for one in instance:
            one.pop("instance", None)
        assert instance[0] == instance[1], door
        assert "no collection 'NAME'" in told[0], door
        # so that it could have been read
        mine = await world.send(world.mine, "POST" if body else "GET", path, body)
        assert "no collection" not in mine.text, (door, mine.text)
    after = [name async for name in world.store.redis.scan_iter(f"{keys.prefix(world.other)}*")]
    assert sorted(before) == sorted(after)
    # granted, but of no place
    gone = await world.send(world.mine, "GET", "/v1/index?collection=gone")
    assert (gone.status_code, gone.json()["collection"]) == (422, "gone")
    listed = [(await world.send(one, "GET", "/v1/index")).json() for one in (world.mine, world.other)]  # fmt: skip
    assert [one["collections"] for one in listed] == [["trials", "guidelines"], []]


@pytest.mark.anyio
async def test_tools_of_assistants_ask_for_the_grant(world: World) -> None:
    given: dict[str, dict[str, Any]] = {
        "search": {"query": QUESTION},
        "ask": {"question": QUESTION},
        "get_passage": {"passage": "trial:1"},
        "verify_quote": {"passage": "trial:1", "quote": SECRET},
        "find_quote": {"quote": SECRET},
        "check_retraction": {"passages": ["trial:1"]},
        "estimate": {"question": QUESTION},
    }
    assert set(given) == set(OFFERS)

    async def told(_: JobEvent) -> None:
        """Events are of no interest."""

    for name, offer in OFFERS.items():
        asked = offer.parse({**given[name], "collection": "trials"})
        with pytest.raises(CollectionNotFound):
            await offer.work(
                ServiceDesk(api=world.api, tenant=world.other, request=Request({"type": "http"})),
                asked,
                told,
            )
        if name != "ask":
            done = await offer.work(
                ServiceDesk(api=world.api, tenant=world.mine, request=Request({"type": "http"})),
                asked,
                told,
            )
            assert "nine patients" in done.text or name in ("check_retraction", "estimate")


@pytest.mark.anyio
async def test_a_grant_that_ends_stops_queued_jobs_and_watches(world: World) -> None:
    made = await world.job(collection="trials", model="openai:gpt-4o-mini")
    kept = await world.job(collection="guidelines")
    watches = WatchStore(world.store)
    body = {"question": QUESTION, "collection": "trials"}
    reply = await world.send(world.mine, "POST", "/v1/watches", body)
    assert reply.json()["request"]["collection"] == "trials"
    await world.grant("guidelines")
    await world.work()
    failed = await world.store.get(made.id, tenant=world.mine)
    assert (failed.state, failed.error and failed.error.type) == (JobState.FAILED, "CollectionNotFound")  # fmt: skip
    assert set(await world.spent()) == {(0, 0)}
    assert (await world.store.get(kept.id, tenant=world.mine)).state is JobState.SUCCEEDED
    # trying again changes nothing until the grant is back
    await world.store.retry(made.id, tenant=world.mine)
    await world.work()
    assert (await world.store.get(made.id, tenant=world.mine)).state is JobState.FAILED
    await world.process._watcher().sweep()
    watch = await watches.get(reply.json()["id"], tenant=world.mine)
    assert watch.error is not None
    assert watch.error.startswith("CollectionNotFound")
    assert watch.state is WatchState.ACTIVE
    batch = await world.send(world.mine, "POST", "/v1/batches", json.dumps(body))
    assert batch.status_code == 422
    # what was read before stays the tenant's
    assert (await world.send(world.mine, "GET", f"/v1/jobs/{made.id}")).status_code == 200


@pytest.mark.anyio
async def test_a_grant_that_ends_stops_a_waiting_table(world: World) -> None:
    body = {"documents": ["trial:1"], "collection": "trials", "model": "offline:extractive"}
    reply = await world.send(world.mine, "POST", "/v1/tables", body)
    assert reply.status_code == 202, reply.text
    await world.grant()
    async with open_stores(world.settings) as stores:
        reader = TableReader(
            tables=stores.tables,
            settings=world.settings,
            models=Models(world.settings.embedder, world.settings.embedding),
            stop=threading.Event(),
            redis=stores.redis,
        )
        while (claim := await reader.claim()) is not None:
            assert await reader.read(claim)
    table = (await world.send(world.mine, "GET", f"/v1/tables/{reply.json()['id']}")).json()
    assert (table["state"], table["error"]["type"]) == ("failed", "CollectionNotFound")


@pytest.mark.anyio
async def test_the_console_keeps_the_collection(world: World) -> None:
    made = await world.answered(collection="trials")
    begun = await world.http.get("/console/sign-in")
    given = {"form_token": token(begun), "key": world.keys[world.mine], "to": "/console"}
    await world.http.post("/console/sign-in", data=given)
    job = await world.http.get(f"/console/jobs/{made.id}")
    (link,) = set(re.findall(r'href="(/console/literature/passages/[^"]+)"', job.text))
    assert SECRET in (await world.http.get(link.replace("&amp;", "&"))).text
    assert "follow" in job.text
    form = await world.http.get(f"/console/ask?parent={made.id}&question=And+in+children%3F")
    assert 'name="collection" type="text" value="trials"' in form.text
    replayed = await world.http.get(f"/console/jobs/{made.id}/replay?retrieve=1")
    assert replayed.status_code == 200
    assert '<p class="empty">None.</p>' in replayed.text
    await world.grant()
    gone = await world.http.get(link.replace("&amp;", "&"))
    assert (gone.status_code, SECRET in gone.text) == (422, False)


@pytest.mark.anyio
async def test_a_watch_looks_at_its_collection(world: World) -> None:
    body = {"question": QUESTION, "collection": "trials"}
    watch = (await world.send(world.mine, "POST", "/v1/watches", body)).json()["id"]
    watcher, watches = world.process._watcher(), WatchStore(world.store)
    for _ in range(2):
        due = f"{keys.prefix(world.mine)}watches:due"
        await world.store.redis.zadd(due, {watch: 0})
        await watcher.sweep()
        await world.work()
    out = await watches.get(watch, tenant=world.mine)
    assert (out.asked, out.error) == (1, None)
    assert out.answer is not None
    assert {one.passage.id for one in out.answer.evidence} == {"trial:1"}


@pytest.mark.anyio
async def test_answers_are_compared_with_their_own_collection(world: World, places: Any) -> None:
    # all three indices have one name, as folders often do
    assert len({Path(one).name for one in places.values()}) == 1
    for name in ("trials", None):
        await world.answered(**({"collection": name} if name else {}))
    counts = []
    for query in ("", "?collection=trials", "?collection=guidelines"):
        reply = await world.send(world.mine, "GET", f"/v1/answers/affected{query}")
        found = reply.json()
        counts.append((found["checked"], found["skipped"], len(found["answers"])))
    assert counts == [(1, 1, 0), (1, 1, 0), (0, 2, 0)]


@pytest.mark.anyio
async def test_what_a_collection_cannot_do_is_refused(world: World) -> None:
    body = {"question": QUESTION, "collection": "trials"}
    live = await world.send(world.mine, "POST", "/v1/ask?live=true", body)
    assert (live.status_code, live.json()["field"]) == (422, "collection")
    several = [body, {**body, "collection": "guidelines"}]
    mixed = await world.send(world.mine, "POST", "/v1/estimate", several)
    assert (mixed.status_code, mixed.json()["field"]) == (422, "collection")
    for wrong in ("Trials", "", "a b", "x" * 65, "../trials"):
        bad = await world.send(world.mine, "POST", "/v1/jobs", {**body, "collection": wrong})
        assert (bad.status_code, bad.json()["field"]) == (422, "collection")


@pytest.mark.anyio
async def test_a_process_keeps_few_collections_open(
    world: World, places: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(service, "OPEN", 1)
    services, opened, real = world.process.service, list[Place](), Index.open

    def counted(place: Place) -> Index:
        opened.append(place)
        return real(place)

    monkeypatch.setattr(Index, "open", counted)
    default = await services()
    first = await services("trials")
    await services("guidelines")
    assert await services("trials") is not first
    assert await services() is default
    assert len(opened) == 4
    with pytest.raises(IndexMissing, match="POSOLOGY_COLLECTIONS"):
        await services("gone")


@pytest.mark.anyio
async def test_a_library_has_one_index(
    places: dict[str, str], tiny_encoder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("POSOLOGY_COLLECTIONS", f"trials={places['trials']}")
    monkeypatch.setenv("POSOLOGY_EMBEDDER", str(tiny_encoder))
    async with AsyncPosology("trials") as library:
        found = await library.search(QUESTION, collection="trials")
        assert [hit.passage.id for hit in found.hits] == ["trial:1"]
        with pytest.raises(InvalidQuery, match="--index guidelines"):
            await library.search(QUESTION, collection="guidelines")
        with pytest.raises(InvalidQuery, match="collection"):
            await library.estimate(QUESTION, collection="guidelines")
        (row,) = await library.batch([{"question": QUESTION, "collection": "guidelines"}])
        assert row.error is not None
        assert row.error.type == "InvalidQuery"
    settings = await to_thread.run_sync(Settings)
    assert settings.collection_places == {"trials": places["trials"]}


def test_the_commands_name_a_collection(
    redis_url: str, tenant: str, places: dict[str, str], tiny_encoder: Path
) -> None:
    given = {
        "POSOLOGY_REDIS_URL": redis_url,
        "POSOLOGY_INDEX": places["index"],
        "POSOLOGY_COLLECTIONS": f"trials={places['trials']}",
        "POSOLOGY_EMBEDDER": str(tiny_encoder),
    }

    def cli(*arguments: str) -> Result:
        return CliRunner().invoke(app, list(arguments), env=given)

    granted = ("--collection", "trials", "--collection", "guidelines", "--json")
    made = published(cli("tenants", "create", tenant, *granted), "tenant")
    assert made["limits"]["collections"] == ["trials", "guidelines"]
    job = cli("submit", QUESTION, "--index", "trials", "--tenant", tenant, "--json")
    assert published(job, "job")["request"]["collection"] == "trials"
    assert cli("submit", QUESTION, "--index", "other", "--tenant", tenant).exit_code == 3
    # other limits leave it as it is
    assert published(cli("tenants", "set", tenant, "--day", "1", "--json"), "tenant")["limits"]["collections"]  # fmt: skip
    assert cli("tenants", "set", tenant, "--collection", "Trials").exit_code == 3
    emptied = published(cli("tenants", "set", tenant, "--collection", "none", "--json"), "tenant")
    assert emptied["limits"]["collections"] == []
    assert cli("watch", QUESTION, "--index", "trials", "--tenant", tenant).exit_code == 3
    found = published(cli("search", QUESTION, "--index", "trials", "--json"), "search")
    assert [hit["passage"]["id"] for hit in found["hits"]] == ["trial:1"]


def test_uploads_are_ingested_into_a_collection_by_its_name(
    monkeypatch: pytest.MonkeyPatch, places: dict[str, str]
) -> None:
    served: list[str | None] = []
    monkeypatch.setattr(process, "serve", lambda settings, _: served.append(settings.index))
    given = {"POSOLOGY_COLLECTIONS": f"trials={places['trials']}"}
    done = CliRunner().invoke(app, ["ingest-uploads", "--index", "trials"], env=given)
    assert (done.exit_code, served) == (0, [places["trials"]])


@pytest.mark.parametrize("text", ["trials", "trials=", "=x", "a=x,a=y", "Trials=x", "none=x"])
def test_a_wrong_setting_is_named(text: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("POSOLOGY_COLLECTIONS", text)
    with pytest.raises(ConfigurationError, match="POSOLOGY_COLLECTIONS"):
        load_settings()
