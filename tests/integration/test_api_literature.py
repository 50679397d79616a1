"""Searches, passages and the index over HTTP."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from decimal import Decimal
from functools import partial
from pathlib import Path

import anyio
import httpx2
import pytest
from anyio import to_thread
from redis.asyncio import Redis
from typer.testing import CliRunner

from orchestrator.api.app import create_app
from orchestrator.api.context import Limits
from orchestrator.cli.app import app as command
from orchestrator.ingest.ingest import run_ingest
from orchestrator.ingest.writer import Target
from orchestrator.jobs.store import JobStore
from orchestrator.settings import Settings
from posology.budget.ledger.redis import RedisLedger
from posology.budget.tenants.store import TenantStore
from posology.client import Client
from posology.errors import BudgetExhausted, InvalidQuery, PassageNotFound, VersionGone
from posology.index.store import Index
from posology.published.answers import PassageOutput
from posology.published.literature import IndexStatus, QuoteSearch, SearchOutput
from posology.testing import Recorded, Reply, StubProvider, Vectors
from posology.types import Limits as TenantLimits
from tests.integration.test_api import problem
from tests.support.indices import index_of, write_rows

pytestmark = pytest.mark.anyio
QUERY = "Does aspirin lower the risk of stroke?"
ROWS = [
    {"id": "t:0", "text": "Aspirin lowered the risk of stroke in adults.", "year": 2001,
     "title": "Aspirin and stroke", "journal": "J Example", "mesh": ["Aspirin"]},
    {"id": "t:1/a b?#é'", "text": "Aspirin lowered the risk of gout in adults.", "year": 2015},
    {"id": "t:2", "text": "Aspirin lowered the risk of asthma.", "year": 2020, "retracted": True},
]  # fmt: skip


@pytest.fixture(scope="module")
def index(tiny_encoder: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return index_of(tmp_path_factory.mktemp("literature"), tiny_encoder, ROWS)


@asynccontextmanager
async def serving(
    redis: Redis, url: str, tenant: str, settings: Mapping[str, str], limits: Limits | None = None
) -> AsyncIterator[httpx2.AsyncClient]:
    app = create_app(Settings.model_validate(settings), JobStore(redis, url), limits=limits)
    transport = httpx2.ASGITransport(app, raise_app_exceptions=False)
    async with httpx2.AsyncClient(
        transport=transport,
        base_url="http://localhost",
        headers={"X-Posology-Tenant": tenant} if tenant else {},
        timeout=90,
    ) as client:
        yield client
        await app.state.context.aclose()


@pytest.fixture
def given(index: Path, tiny_encoder: Path) -> dict[str, str]:
    return {"POSOLOGY_INDEX": str(index), "POSOLOGY_EMBEDDER": str(tiny_encoder)}


@pytest.fixture
async def client(
    redis: Redis, redis_url: str, tenant: str, given: dict[str, str]
) -> AsyncIterator[httpx2.AsyncClient]:
    async with serving(redis, redis_url, tenant, given) as opened:
        yield opened


async def test_a_search_is_that_of_the_command(
    client: httpx2.AsyncClient, given: dict[str, str]
) -> None:
    shown = await to_thread.run_sync(
        lambda: CliRunner().invoke(
            command,
            ["search", QUERY, "--json", "--since", "2001", "--retracted", "--k", "2"],
            env=given,
        )
    )
    assert shown.exit_code == 0, shown.output
    asked = {"query": QUERY, "k": 2, "retracted": True, "filters": {"since": 2001}}
    reply = await client.post("/v1/search", json=asked)
    assert reply.status_code == 200, reply.text
    found = SearchOutput.model_validate_json(reply.content)
    wanted = SearchOutput.model_validate_json(shown.stdout)
    assert found.model_copy(update={"seconds": wanted.seconds}) == wanted
    assert found.hits[0].passage.id == "t:0"
    plain = (await client.post("/v1/search", json={"query": QUERY})).json()
    assert plain["k"] == 10
    assert "t:2" not in plain["fused"], "retracted passages are found on request only"
    words = await client.post("/v1/search", json={"query": "gout", "mode": "bm25", "k": 1})
    assert words.json()["bm25"] == ["t:1/a b?#é'"]


async def test_a_search_is_exported_as_by_the_command(
    client: httpx2.AsyncClient, given: dict[str, str]
) -> None:
    asked = {"query": QUERY, "k": 2, "retracted": True}
    exports: dict[str, str] = {}
    for form in ("markdown", "ris", "bibtex", "csl", "csv", "table"):
        reply = await client.post(f"/v1/search?format={form}", json=asked)
        assert reply.status_code == 200, reply.text
        exports[form] = reply.text
        options = ["search", QUERY, "--k", "2", "--retracted", "--format", form]
        printed = await to_thread.run_sync(partial(CliRunner().invoke, command, options, env=given))
        assert printed.stdout_bytes.decode() == reply.text, form
    accepted = await client.post("/v1/search", json=asked, headers={"Accept": "text/csv"})
    assert accepted.text == exports["csv"]
    hits = (await client.post("/v1/search", json=asked)).json()["hits"]
    assert [item["id"] for item in json.loads(exports["csl"])] == [
        hit["passage"]["id"] for hit in hits
    ]


@pytest.mark.parametrize(
    ("quote", "places", "code"),
    [
        (
            "Aspirin lowered the risk of stroke in adults",
            # the other passages say the same of gout and asthma
            [
                ("t:0", None, []),
                ("t:1/a b?#é'", "differs", [("stroke", "gout")]),
                ("t:2", "differs", [("stroke in adults", "asthma")]),
            ],
            0,
        ),
        (
            "Aspirin raised the risk of asthma.",
            [("t:2", "differs", [("raised", "lowered")])],
            1,
        ),
        ("Statins harm nobody at all, ever.", [], 1),
        ("…", [], 1),
    ],
)
async def test_a_quote_is_found_as_by_the_command(
    client: httpx2.AsyncClient,
    given: dict[str, str],
    quote: str,
    places: list[tuple[str, str | None, list[tuple[str, str]]]],
    code: int,
) -> None:
    reply = await client.post("/v1/quotes", json={"quote": quote})
    assert reply.status_code == 200, reply.text
    found = QuoteSearch.model_validate_json(reply.content)
    assert [
        (one.passage.id, one.reason, [(each.quote, each.passage) for each in one.differences])
        for one in found.places
    ] == places
    run = partial(CliRunner().invoke, command, ["quote", quote, "--json"], env=given)
    printed = await to_thread.run_sync(run)
    assert (QuoteSearch.model_validate_json(printed.stdout), printed.exit_code) == (found, code)


async def test_a_quote_has_words_and_a_bound(client: httpx2.AsyncClient) -> None:
    for quote, message in (("  ", "the quote is empty"), ("a" * 2_001, "at most 2000")):
        reply = await client.post("/v1/quotes", json={"quote": quote})
        assert reply.status_code == 422
        assert (reply.json()["type"].rpartition(":")[2], reply.json()["field"]) == (
            "invalid-query",
            "quote",
        )
        assert message in reply.json()["detail"]


@pytest.mark.parametrize(
    ("body", "status", "name", "field"),
    [
        ({"query": ""}, 422, "invalid-query", "query"),
        ({"query": "a", "filter": {}}, 422, "invalid-query", "filter"),
        (
            {"query": "a", "filters": {"since": 2002, "until": 2001}},
            422,
            "invalid-query",
            "filters",
        ),
        ({"query": "a", "index_version": 10**9}, 422, "version-gone", "version"),
    ],
)
async def test_a_search_that_is_impossible_is_refused(
    client: httpx2.AsyncClient, body: dict[str, object], status: int, name: str, field: str
) -> None:
    found = problem(await client.post("/v1/search", json=body), status, name)
    assert field in (found.get("field"), *found)


async def test_a_passage_is_shown_in_full(client: httpx2.AsyncClient) -> None:
    reply = await client.get("/v1/passages/t:0")
    out = PassageOutput.model_validate_json(reply.content)
    assert out.text == ROWS[0]["text"]
    assert (out.passage.title, out.passage.year, out.mesh) == (
        "Aspirin and stroke", 2001, ("Aspirin",)
    )  # fmt: skip
    odd = await client.get("/v1/passages/t%3A1%2Fa%20b%3F%23%C3%A9%27")
    assert odd.json()["passage"]["id"] == ROWS[1]["id"]
    number = int(out.index.partition("@")[2])
    same = await client.get(f"/v1/passages/t:0?version={number}")
    assert same.json() == reply.json()
    for name in ("t:9", "t:0'", "' OR 1=1 --", "%00", "t:0%00", "x" * 900):
        missing = problem(await client.get(f"/v1/passages/{name}"), 404, "passage-not-found")
        assert missing["passage"]
    gone = await client.get("/v1/passages/t:0?version=99999")
    assert problem(gone, 422, "version-gone")["version"] == 99999
    for query in ("version=0", "version=x", "versoin=1"):
        problem(await client.get(f"/v1/passages/t:0?{query}"), 422, "invalid-query")


async def test_the_index_is_described_and_a_new_version_is_seen(
    redis: Redis, redis_url: str, tenant: str, tiny_encoder: Path, tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    monkeypatch.setattr("posology.index.reader.FRESH", 0.0)
    place = str(tmp_path / "index")
    given = {"POSOLOGY_INDEX": place, "POSOLOGY_EMBEDDER": str(tiny_encoder)}

    def ingest(count: int) -> None:
        index_of(tmp_path, tiny_encoder, ROWS[:count])

    await to_thread.run_sync(ingest, 1)
    async with serving(redis, redis_url, tenant, given) as client:
        before = IndexStatus.model_validate_json((await client.get("/v1/index")).content)
        assert (before.passages, before.retracted, before.growth) == (1, 0, None)
        assert before.versions[-1].index == before.index
        assert before.versions[-1].until is None
        assert place not in (await client.get("/v1/index")).text, "no path of the machine is told"
        await to_thread.run_sync(ingest, 3)
        after = IndexStatus.model_validate_json((await client.get("/v1/index")).content)
        assert (after.passages, after.retracted) == (3, 1)
        assert [one.number for one in after.versions][:-1] == [
            one.number for one in before.versions
        ]
        assert after.versions[-2].until is not None
        old = before.versions[-1].number
        problem(await client.get(f"/v1/passages/t:2?version={old}"), 404, "passage-not-found")
        assert (await client.get("/v1/passages/t:2")).status_code == 200
        found = await client.post("/v1/search", json={"query": QUERY, "index_version": old})
        assert found.json()["index"] == before.index


async def test_without_an_index_the_remedy_is_named(
    redis: Redis, redis_url: str, tenant: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    nothing: dict[str, str] = {}
    for settings in (nothing, {"POSOLOGY_INDEX": str(tmp_path / "none")}):
        async with serving(redis, redis_url, tenant, settings) as client:
            for reply in (
                await client.post("/v1/search", json={"query": QUERY}),
                await client.get("/v1/passages/t:0"),
                await client.get("/v1/index"),
            ):
                name = "index-missing" if settings else "no-index"
                found = problem(reply, 503, name)
                assert settings or "POSOLOGY_INDEX" in found["detail"]
                assert str(tmp_path) not in reply.text


async def test_only_so_many_searches_wait(
    redis: Redis, redis_url: str, tenant: str, given: dict[str, str]
) -> None:
    limits = Limits(searches=3, tenant_searches=2)
    async with serving(redis, redis_url, tenant, given, limits) as client:
        found: list[int] = []

        async def search(who: str) -> None:
            reply = await client.post(
                "/v1/search", json={"query": QUERY}, headers={"X-Posology-Tenant": who}
            )
            found.append(reply.status_code)

        async with anyio.create_task_group() as group:
            for who in ("a", "a", "a", "b", "b"):
                group.start_soon(search, f"{tenant}{who}")
        assert sorted(found) == [200, 200, 200, 429, 503]
        await search(f"{tenant}a")
        assert found[-1] == 200


async def test_with_keys_nobody_else_reads_the_literature(
    redis: Redis, redis_url: str, tenant: str, given: dict[str, str]
) -> None:
    issued = await TenantStore(redis, redis_url).create(tenant)
    async with serving(redis, redis_url, "", {**given, "POSOLOGY_AUTH": "keys"}) as client:
        key = {"Authorization": f"Bearer {issued.key}"}
        for method, path, body in (
            ("POST", "/v1/search", {"query": QUERY}),
            ("GET", "/v1/passages/t:0", None),
            ("GET", "/v1/index", None),
        ):
            for headers in ({}, {"X-Posology-Tenant": tenant}, {"Authorization": "Bearer x"}):
                refused = await client.request(method, path, json=body, headers=headers)
                problem(refused, 401, "key-refused")
            other = {**key, "X-Posology-Tenant": "other"}
            refused = await client.request(method, path, json=body, headers=other)
            problem(refused, 403, "not-your-tenant")
            assert (await client.request(method, path, json=body, headers=key)).status_code == 200


async def test_a_paid_vector_is_charged_to_the_tenant_once(
    redis: Redis, redis_url: str, tenant: str, tmp_path: Path
) -> None:
    def answer(request: Recorded) -> Reply | Vectors:
        assert request.path.endswith("/embeddings")
        return Vectors()

    with StubProvider(answer) as stub:
        given = {
            "POSOLOGY_INDEX": str(tmp_path / "index"),
            "POSOLOGY_EMBEDDER": "openai:text-embedding-3-small@64",
            "POSOLOGY_HOME": str(tmp_path / "home"),
        }
        with pytest.MonkeyPatch.context() as patch:
            patch.setenv("OPENAI_API_KEY", "sk-test")
            patch.setenv("OPENAI_BASE_URL", stub.openai_url)
            settings = Settings.model_validate(given)
            rows = write_rows(tmp_path / "rows.jsonl", ROWS)
            target = Target(place=given["POSOLOGY_INDEX"], embedder=given["POSOLOGY_EMBEDDER"])
            await to_thread.run_sync(run_ingest, [rows], settings, target)
            sent = len(stub.requests)
            app = create_app(settings, JobStore(redis, redis_url))
        transport = httpx2.ASGITransport(app)
        poor = f"{tenant}-poor"
        await TenantStore(redis, redis_url).create(poor, TenantLimits(day=Decimal("1e-9")))
        async with (
            Client("http://localhost", tenant=tenant, transport=transport) as client,
            Client("http://localhost", tenant=poor, transport=transport) as without,
        ):
            found = await client.search(QUERY, k=2)
            assert len(found.dense) == 2
            assert len(stub.requests) == sent + 1
            await client.search(QUERY)
            assert len(stub.requests) == sent + 1, "a stored vector is not bought again"
            (scope, *_) = await RedisLedger(redis, redis_url, tenant=tenant).balances()
            words = len(QUERY.split()) + 2
            assert scope.spent == Decimal("0.02") * words / 1_000_000
            assert scope.reserved == 0
            with pytest.raises(BudgetExhausted):
                await without.search("Something else?")
            assert len(stub.requests) == sent + 1
        await app.state.context.aclose()


async def test_the_client_reads_the_literature(
    redis: Redis, redis_url: str, tenant: str, given: dict[str, str]
) -> None:
    app = create_app(Settings.model_validate(given), JobStore(redis, redis_url))
    async with Client(
        "http://localhost", tenant=tenant, transport=httpx2.ASGITransport(app)
    ) as client:
        found = await client.search(QUERY, k=1, filters={"until": 2001})
        assert [hit.passage.id for hit in found.hits] == ["t:0"]
        passage = await client.passage(str(ROWS[1]["id"]))
        assert passage.text == ROWS[1]["text"]
        status = await client.index()
        assert status.passages == 3
        assert status.index == found.index == passage.index
        estimated = await client.estimate(["Is it so?", {"question": "And so?", "k": 1}])
        assert [one.passages for one in estimated.questions] == [2, 1]
        with pytest.raises(PassageNotFound) as missing:
            await client.passage("t:9")
        assert missing.value.passage == "t:9"
        with pytest.raises(VersionGone):
            await client.passage("t:0", version=99_999)
        with pytest.raises(InvalidQuery) as empty:
            await client.search(" ")
        assert empty.value.field == "query"
        assert Index.open(given["POSOLOGY_INDEX"]).version == status.index
