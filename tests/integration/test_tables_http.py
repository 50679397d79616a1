"""Tables over HTTP: asked for, read beside the ingests, downloaded, cancelled, capped, and killed."""

from __future__ import annotations

import csv
import io
import itertools
import threading
from collections.abc import Iterator
from decimal import Decimal
from pathlib import Path
from typing import Any

import anyio
import httpx2
import pytest
from prometheus_client.parser import text_string_to_metric_families
from redis import Redis as SyncRedis
from redis.asyncio import Redis

from orchestrator.api.app import create_app
from orchestrator.ingest.uploads.process import open_stores
from orchestrator.jobs.store import JobStore
from orchestrator.models import Models
from orchestrator.prices import price_book
from orchestrator.settings import Settings
from orchestrator.tables.served.reader import TableReader
from orchestrator.tables.served.tables import MAX_WAITING
from orchestrator.work.items import Sweeping
from posology.budget.ledger.redis import RedisLedger
from posology.budget.tenants.store import TenantStore
from posology.client import Client, SyncClient
from posology.errors import PassageNotFound, TableNotFound, TableUnfinished
from posology.index.store import Index
from posology.published.tables.forms import TableOutput
from posology.published.tables.orders import TableOrder, TablePage, TableState
from posology.store.connection import connect
from posology.testing import Reply, StubProvider
from posology.testing.provider.echo import echo
from posology.types import Limits as TenantLimits
from posology.types import Usage
from tests.integration.test_api import problem
from tests.integration.test_uploads import Serve, ingesting, serving
from tests.support import s3
from tests.support.paid_runs import MODEL, ingest_six

pytestmark = pytest.mark.anyio
TABLES = "/v1/tables"
USED = Usage(input=400, output=60)
IDS = [f"t:{n}" for n in range(6)]


class Gate:
    """Replies at once; the call of a number waits for a test."""

    def __init__(self) -> None:
        self.number: int | None = None
        self.came, self.go = threading.Event(), threading.Event()
        self._calls = itertools.count(1)

    def __call__(self, _: object) -> Reply:
        if next(self._calls) == self.number:
            self.came.set()
            assert self.go.wait(400)
        return Reply(text=echo, usage=USED)


@pytest.fixture(scope="module")
def index(tmp_path_factory: pytest.TempPathFactory, tiny_encoder: Path) -> Path:
    return ingest_six(tmp_path_factory.mktemp("tables"), tiny_encoder)


@pytest.fixture(autouse=True)
def _alone(redis_url: str) -> None:
    """No test reads what another one left."""
    with SyncRedis.from_url(redis_url) as client:
        client.flushdb()


@pytest.fixture
def gate() -> Iterator[Gate]:
    gate = Gate()
    yield gate
    gate.go.set()


@pytest.fixture
def stub(gate: Gate) -> Iterator[StubProvider]:
    with StubProvider(gate) as stub:
        yield stub
        gate.go.set()


@pytest.fixture
def given(
    tmp_path: Path, index: Path, tiny_encoder: Path, redis_url: str, stub: StubProvider,
    monkeypatch: pytest.MonkeyPatch,
) -> dict[str, str]:  # fmt: skip
    # of the provider alone: a connection reads them from the environment
    provider = {"OPENAI_API_KEY": "sk-test", "OPENAI_BASE_URL": stub.openai_url}
    for name, value in provider.items():
        monkeypatch.setenv(name, value)
    return {
        **provider,
        "POSOLOGY_INDEX": str(index),
        "POSOLOGY_EMBEDDER": str(tiny_encoder),
        "POSOLOGY_UPLOADS": str(tmp_path / "uploads"),
        "POSOLOGY_REDIS_URL": redis_url,
        "POSOLOGY_ATTEMPTS": "1",
    }


def body(*ids: str, **more: Any) -> dict[str, Any]:
    return {"documents": list(ids or IDS), "model": MODEL, **more}


def order_of(response: httpx2.Response) -> TableOrder:
    assert response.status_code in (200, 202), response.text
    return TableOrder.model_validate_json(response.content)


async def read_all(given: dict[str, str]) -> None:
    """What the reading process does until nothing waits."""
    settings = Settings.model_validate(given)
    models = Models(settings.embedder, settings.embedding)
    async with open_stores(settings) as stores:
        reader = TableReader(
            tables=stores.tables, settings=settings, models=models, stop=threading.Event(), redis=stores.redis
        )  # fmt: skip
        while (claim := await reader.claim()) is not None:
            assert await reader.read(claim)


def check_quotes(out: TableOutput, index: Path) -> int:
    """Check that every value has quotes that are in their passages; return the number of quotes."""
    view, count = Index.open(index).view(), 0
    for row in out.rows:
        for cell in row.cells:
            assert (cell.value is None) == (not cell.quotes)
            for quote in cell.quotes:
                (found,) = view.fetch([quote.passage])
                assert found.passage.text[quote.start : quote.end] == quote.quote
                count += 1
    return count


async def test_a_table_is_read_paid_for_and_downloaded(
    redis: Redis,
    redis_url: str,
    tenant: str,
    given: dict[str, str],
    index: Path,
    stub: StubProvider,
) -> None:
    async with serving(redis, redis_url, given, tenant=tenant) as client:
        made = await client.post(TABLES, json=body(max_cost_usd="0.5"))
        order = order_of(made)
        assert (made.status_code, order.state, order.documents) == (202, TableState.WAITING, 6)
        assert order.estimate.calls == 6
        assert Decimal(0) < order.estimate.expected_usd <= order.estimate.worst_usd
        assert made.headers["location"] == f"{TABLES}/{order.id}"
        assert not stub.requests
        again = await client.post(TABLES, json=body(max_cost_usd="0.5"))
        assert (again.status_code, again.json()) == (200, made.json())
        unread = await client.get(f"{TABLES}/{order.id}/file")
        problem(unread, 409, "table-unfinished")

        await read_all(given)
        ended = order_of(await client.get(made.headers["location"]))
        assert (ended.state, ended.done, ended.cells) == (TableState.SUCCEEDED, 6, 48), ended
        assert len(stub.requests) == 6
        ledger = RedisLedger(redis, redis_url, tenant=tenant)
        assert {one.spent for one in await ledger.balances()} == {ended.spent_usd}
        json_file = await client.get(f"{TABLES}/{order.id}/file?format=json")
        out = TableOutput.model_validate_json(json_file.content)
        assert [row.document for row in out.rows] == IDS
        assert check_quotes(out, index) >= (ended.values or 0) > 0
        sheet = await client.get(f"{TABLES}/{order.id}/file")
        assert sheet.headers["content-type"].startswith("text/csv")
        rows = list(csv.DictReader(io.StringIO(sheet.text.removeprefix("\ufeff"))))
        assert [row["document"] for row in rows] == IDS
        for form in ("markdown", "xlsx"):
            file = await client.get(f"{TABLES}/{order.id}/file?format={form}")
            assert (file.status_code, bool(file.content)) == (200, True)
        page = TablePage.model_validate_json((await client.get(TABLES)).content)
        assert page.tables == (ended,)
        complete = await client.post(TABLES, json=body(max_cost_usd="0.5"))
        assert (complete.status_code, complete.json()["id"]) == (200, order.id)
        stopped = order_of(await client.delete(f"{TABLES}/{order.id}"))
        assert stopped == ended
    assert len(stub.requests) == 6


async def test_a_search_stands_for_the_articles_of_its_passages(
    redis: Redis, redis_url: str, tenant: str, given: dict[str, str]
) -> None:
    async with serving(redis, redis_url, given, tenant=tenant) as client:
        search = {"query": "aspirin stroke", "k": 3}
        found = (await client.post("/v1/search", json=search)).json()["hits"]
        made = await client.post(TABLES, json={"search": search, "model": MODEL, "preset": "pico"})
        assert order_of(made).documents == 3
        await read_all(given)
        file = await client.get(f"{made.headers['location']}/file?format=json")
        out = TableOutput.model_validate_json(file.content)
        assert [row.document for row in out.rows] == [hit["passage"]["id"] for hit in found]
        assert [row.error for row in out.rows] == [None] * 3


async def test_the_same_request_from_all_sides_makes_one_table(
    redis: Redis, redis_url: str, tenant: str, given: dict[str, str]
) -> None:
    """As from two processes: two apps share nothing but the folder and Redis."""
    statuses: list[int] = []

    async def ask(client: httpx2.AsyncClient) -> None:
        statuses.append((await client.post(TABLES, json=body("t:1"))).status_code)

    async with (
        serving(redis, redis_url, given, tenant=tenant) as one,
        serving(redis, redis_url, given, tenant=tenant) as other,
    ):
        async with anyio.create_task_group() as group:
            for client in (one, other) * 4:
                group.start_soon(ask, client)
        assert statuses.count(202) == 1
        # the others find it, or come while another one of the process estimates
        assert set(statuses) <= {200, 202, 429}
        assert len((await one.get(TABLES)).json()["tables"]) == 1


async def test_a_table_of_another_tenant_is_none(
    redis: Redis, redis_url: str, tenant: str, given: dict[str, str]
) -> None:
    async with serving(redis, redis_url, given, tenant=tenant) as client:
        mine = order_of(await client.post(TABLES, json=body()))
    async with serving(redis, redis_url, given, tenant=f"{tenant}-b") as client:
        assert (await client.get(TABLES)).json() == {"tables": []}
        none = f"table_{'0' * 28}"
        for method, path in (("GET", ""), ("GET", "/file"), ("DELETE", "")):
            theirs = await client.request(method, f"{TABLES}/{mine.id}{path}")
            nothing = await client.request(method, f"{TABLES}/{none}{path}")
            found = problem(theirs, 404, "table-not-found")
            expected = problem(nothing, 404, "table-not-found")
            assert found["detail"].replace(mine.id, none) == expected["detail"]
        same = await client.post(TABLES, json=body())
        assert same.status_code == 202
        assert order_of(same).id != mine.id
    async with open_stores(Settings.model_validate(given)) as stores:
        assert await stores.tables.get(mine.id, tenant=tenant) == mine


async def test_a_spent_cap_ends_a_table_and_a_higher_one_continues_it(
    redis: Redis, redis_url: str, tenant: str, given: dict[str, str], stub: StubProvider
) -> None:
    async with serving(redis, redis_url, given, tenant=tenant) as client:
        made = order_of(await client.post(TABLES, json=body(max_cost_usd="0.0000001")))
        await read_all(given)
        failed = order_of(await client.get(f"{TABLES}/{made.id}"))
        assert failed.state is TableState.FAILED
        assert failed.error is not None
        assert failed.error.type == "BudgetExhausted"
        assert not stub.requests
        more = await client.post(TABLES, json=body(max_cost_usd="1"))
        assert (more.status_code, order_of(more).id) == (202, made.id)
        await read_all(given)
        ended = order_of(await client.get(f"{TABLES}/{made.id}"))
        assert (ended.state, ended.error, ended.done) == (TableState.SUCCEEDED, None, 6)
    assert len(stub.requests) == 6


async def test_a_tenant_that_cannot_pay_or_may_not_is_refused(
    redis: Redis, redis_url: str, tenant: str, given: dict[str, str], stub: StubProvider
) -> None:
    settings = Settings.model_validate(given)
    store = JobStore(redis, redis_url, prices=price_book(settings))
    tenants = TenantStore(redis, redis_url)
    await tenants.create(tenant, TenantLimits(day=Decimal("0.0000001"), models=(MODEL,)))
    headers = {"X-Posology-Tenant": tenant}
    transport = httpx2.ASGITransport(create_app(settings, store), raise_app_exceptions=False)
    async with httpx2.AsyncClient(
        transport=transport, base_url="http://localhost", headers=headers, timeout=90
    ) as client:
        refused = await client.post(TABLES, json=body())
        found = problem(refused, 402, "budget-exhausted")
        assert (found["scope"], found["cap"]) == ("day", "0.0000001")
        other = await client.post(TABLES, json=body(model="openai:gpt-4o"))
        problem(other, 403, "model-not-allowed")
        assert (await client.get(TABLES)).json() == {"tables": []}
    assert not stub.requests


async def test_a_tenant_has_so_many_tables_that_wait(
    redis: Redis, redis_url: str, tenant: str, given: dict[str, str]
) -> None:
    async with serving(redis, redis_url, given, tenant=tenant) as client:
        for words in range(MAX_WAITING):
            order_of(await client.post(TABLES, json=body("t:1", part_words=200 + words)))
        full = await client.post(TABLES, json=body("t:1", part_words=1_000))
        assert "20 of 20 tables wait" in problem(full, 429, "tables-full")["detail"]
        assert int(full.headers["retry-after"]) > 0
        # one of them stands for itself, and another tenant has room
        assert (await client.post(TABLES, json=body("t:1", part_words=200))).status_code == 200
    async with serving(redis, redis_url, given, tenant=f"{tenant}-b") as client:
        assert (await client.post(TABLES, json=body("t:1"))).status_code == 202


async def test_a_tenants_tables_have_so_many_bytes(
    redis: Redis, redis_url: str, tenant: str, given: dict[str, str]
) -> None:
    given |= {"POSOLOGY_TABLES_MIB": "1"}
    async with serving(redis, redis_url, given, tenant=tenant) as client:
        order_of(await client.post(TABLES, json=body("t:1")))
        async with open_stores(Settings.model_validate(given)) as stores:
            claim = await stores.tables.work.claim(tenant, lease=60)
            assert claim is not None
            assert await stores.tables.work.append(claim, 0, ["x" * 2**20])
            await stores.tables.work.release(claim)
        full = await client.post(TABLES, json=body("t:2"))
        assert "more than 1048576" in problem(full, 507, "tables-too-large")["detail"]
        assert (await client.post(TABLES, json=body("t:1"))).status_code == 200
        families = text_string_to_metric_families((await client.get("/metrics")).text)
        found = {one.name: one.samples for one in families}
        assert sum(sample.value for sample in found["posology_tables"]) == 1
    async with serving(redis, redis_url, given, tenant=f"{tenant}-b") as client:
        assert (await client.post(TABLES, json=body("t:2"))).status_code == 202


def test_both_clients_make_tables(
    given: dict[str, str], serve: Serve, tenant: str, redis_url: str
) -> None:
    offline = "offline:extractive"
    with serve(create_app(Settings.model_validate(given))) as url:
        with SyncClient(url, tenant=tenant) as client:
            made = client.create_table(["t:2"], model=offline)
            assert client.table(made.id) == made
            with pytest.raises(TableUnfinished):
                client.download_table(made.id)
            anyio.run(read_all, given)
            ended = client.wait_table(made.id)
            assert (ended.state, ended.done, ended.spent_usd) == (
                TableState.SUCCEEDED,
                1,
                Decimal(0),
            )
            assert client.create_table(["t:2"], model=offline) == ended
            out = TableOutput.model_validate_json(client.download_table(made.id, form="json"))
            assert [row.document for row in out.rows] == ["t:2"]
            assert client.cancel_table(made.id) == ended
            with pytest.raises(TableNotFound):
                client.table(f"table_{'0' * 28}")
            with pytest.raises(PassageNotFound):
                client.create_table(["t:none"], model=offline)

        async def other() -> None:
            async with Client(url, tenant=tenant) as client:
                assert await client.tables() == (ended,)

        anyio.run(other)


async def test_a_cancelled_table_makes_no_further_call(
    redis: Redis, redis_url: str, tenant: str, given: dict[str, str], gate: Gate, stub: StubProvider
) -> None:
    given["POSOLOGY_CONCURRENCY"] = "1"
    gate.number = 3

    async def read_then_go() -> None:
        try:
            await read_all(given)
        finally:
            gate.go.set()

    async with serving(redis, redis_url, given, tenant=tenant) as client:
        made = order_of(await client.post(TABLES, json=body()))
        async with anyio.create_task_group() as group:
            group.start_soon(read_then_go)
            await anyio.to_thread.run_sync(gate.came.wait, 400)
            stopping = order_of(await client.delete(f"{TABLES}/{made.id}"))
            assert stopping.state is TableState.CANCELLING
        ended = order_of(await client.get(f"{TABLES}/{made.id}"))
        assert (ended.state, ended.done) == (TableState.CANCELLED, 2)
        file = await client.get(f"{TABLES}/{made.id}/file?format=json")
        rows = TableOutput.model_validate_json(file.content).rows
        assert [row.error is None for row in rows] == [True, True, *[False] * 4]
        ledger = RedisLedger(redis, redis_url, tenant=tenant)
        assert {one.reserved for one in await ledger.balances()} == {Decimal(0)}
        assert {one.spent for one in await ledger.balances()} == {ended.spent_usd}


@pytest.mark.slow
async def test_a_killed_process_resumes_and_pays_for_no_reply_twice(
    redis: Redis, redis_url: str, tenant: str, given: dict[str, str], gate: Gate, stub: StubProvider, tmp_path: Path
) -> None:  # fmt: skip
    given |= {"POSOLOGY_CONCURRENCY": "1", "POSOLOGY_LEASE": "2"}
    gate.number = 3
    async with serving(redis, redis_url, given, tenant=tenant) as client:
        made = order_of(await client.post(TABLES, json=body()))
        with ingesting(given, tmp_path / "log") as process:
            assert await anyio.to_thread.run_sync(gate.came.wait, 400), (
                tmp_path / "log"
            ).read_text()
            process.kill()
            process.wait()
        gate.go.set()
        assert order_of(await client.get(f"{TABLES}/{made.id}")).state is TableState.RUNNING
        async with open_stores(Settings.model_validate(given)) as stores:
            with anyio.fail_after(90):
                while not await stores.tables.work.waiting():
                    await anyio.sleep(0.1)
                    await stores.tables.work.sweep(tenant, Sweeping(lease=2))
        await read_all(given)
        ended = order_of(await client.get(f"{TABLES}/{made.id}"))
        file = await client.get(f"{TABLES}/{made.id}/file?format=json")
    assert (ended.state, ended.done, ended.runs) == (TableState.SUCCEEDED, 6, 2)
    rows = TableOutput.model_validate_json(file.content).rows
    assert [row.error for row in rows] == [None] * 6
    # the call in flight when it was killed is made again, and no other
    assert len(stub.requests) == 7


@pytest.mark.parametrize(
    ("sent", "status", "name"),
    [
        ({"model": MODEL}, 422, "invalid-query"),
        ({**body("t:1"), "search": {"query": "aspirin"}}, 422, "invalid-query"),
        (body("t:none"), 404, "passage-not-found"),
        (body("t:1", model="openai:my-own"), 422, "unpriced-model"),
        (body("t:1", criteria=[""]), 422, "invalid-query"),
        (body("t:1", preset="mine"), 422, "invalid-query"),
        (body("t:1", tier="batch"), 422, "invalid-query"),
        (body("t:1' OR '1'='1"), 404, "passage-not-found"),
        (body(*(f"t:{n}" for n in range(1_001))), 422, "invalid-query"),
    ],
)
async def test_a_wrong_request_is_refused_and_leaves_nothing(
    redis: Redis, redis_url: str, tenant: str, given: dict[str, str],
    sent: dict[str, Any], status: int, name: str,
) -> None:  # fmt: skip
    async with serving(redis, redis_url, given, tenant=tenant) as client:
        problem(await client.post(TABLES, json=sent), status, name)
        assert (await client.get(TABLES)).json() == {"tables": []}


async def test_a_table_on_object_storage(
    redis: Redis, redis_url: str, tenant: str, given: dict[str, str], stub: StubProvider
) -> None:
    with s3.running() as server:
        given |= server.environment | {"POSOLOGY_UPLOADS": f"s3://{server.bucket()}/uploads"}
        async with serving(redis, redis_url, given, tenant=tenant) as client:
            made = await client.post(TABLES, json=body())
            assert order_of(made).state is TableState.WAITING
            await read_all(given)
            assert order_of(await client.get(made.headers["location"])).done == 6
            file = await client.get(f"{made.headers['location']}/file?format=json")
            rows = TableOutput.model_validate_json(file.content).rows
            assert [row.error for row in rows] == [None] * 6
    assert len(stub.requests) == 6


async def test_without_redis_no_table_is_made(
    tenant: str, given: dict[str, str], tmp_path: Path
) -> None:
    url = f"unix://{tmp_path}/none.sock"
    async with serving(connect(url, tries=1, seconds=1.0), url, given, tenant=tenant) as client:
        problem(await client.post(TABLES, json=body()), 503, "store-unavailable")
        problem(await client.get(TABLES), 503, "store-unavailable")


async def test_without_a_folder_there_are_no_tables(
    redis: Redis, redis_url: str, tenant: str, given: dict[str, str]
) -> None:
    del given["POSOLOGY_UPLOADS"]
    async with serving(redis, redis_url, given, tenant=tenant) as client:
        problem(await client.post(TABLES, json=body()), 503, "no-tables")
