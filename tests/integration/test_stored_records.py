"""Redis as earlier versions wrote it: this version reads it all, and finishes what was begun."""

from __future__ import annotations

import json
import re
from collections.abc import AsyncIterator, Iterator, Sequence
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path
from typing import Any

import httpx2
import pytest
from redis import Redis as SyncRedis

from orchestrator.api.app import create_app
from orchestrator.connections import Connections
from orchestrator.lane.collector import LaneOptions
from orchestrator.settings import Settings, load_settings
from orchestrator.webhooks.delivery import Delivery, Result
from orchestrator.webhooks.outbox import Outbox
from posology.budget.books.audit import Auditor
from posology.budget.tenants.store import TenantStore
from posology.testing import BatchBook, Recorded, Reply, Step, StubProvider
from posology.testing.provider.echo import echo
from posology.testing.provider.faults import estimate
from posology.types import JobState, Limits, Outcome, Passage, Query, Retrieval
from tests.integration.jobs_store.helpers import LEASE, Bench, Clock, open_bench, request
from tests.integration.jobs_store.local import Local, Shelf, model, runner
from tests.stored.dump import FOLDER, Written, head, restore
from workers.engine.lane.collector import collect
from workers.engine.maintenance import units_of
from workers.engine.webhooks import Sender

pytestmark = pytest.mark.anyio

DUMPS = sorted(FOLDER.glob("*.jsonl"))
QUESTION = "Did aspirin lower the risk of stroke?"
OPEN = ("running", "extracting", "reducing", "wanted", "queued", "queued too", "cancelling")
#: as prompts show them, with the number of the sentence
_PASSAGE = re.compile(r"^\d+\.1 (.*)$", re.MULTILINE)
DAY = 86_400.0
OPTIONS = LaneOptions(wait=60.0, rows=20, poll=30.0, lease=100.0, grace=50.0)


@dataclass(kw_only=True, slots=True)
class Stored:
    """A Redis as a version left it, and a clock that shows the time of then."""

    bench: Bench
    written: Written

    def key(self, tenant: str) -> dict[str, str]:
        return {"Authorization": f"Bearer {self.written.named[f'{tenant} key']}"}

    def client(self) -> httpx2.AsyncClient:
        """A client of this version's API."""
        given = {"POSOLOGY_AUTH": "keys", "POSOLOGY_MODEL": "openai:gpt-4o-mini", "POSOLOGY_SUPPORT": "off"}  # fmt: skip
        app = create_app(Settings.model_validate(given), self.bench.store)
        return httpx2.AsyncClient(
            transport=httpx2.ASGITransport(app), base_url="http://localhost", headers=self.key("acme")
        )  # fmt: skip

    async def prompts(self) -> list[str]:
        """Prompts of calls that wait for providers' batches."""
        found: list[str] = []
        async for name in self.bench.redis.scan_iter(match="posology:{acme}:job:*:lane:lines"):
            for raw in await self.bench.redis.hvals(name):
                body = json.loads(json.loads(raw)["line"]["body"])
                found.append(body["messages"][-1]["content"])
        return found

    async def right(self) -> bool:
        """Whether the ledgers of all tenants agree with their counters."""
        audits = [
            await Auditor(self.bench.redis, self.bench.url, tenant).verify()
            for tenant in ("acme", "spent")
        ]
        return all(audit.right for audit in audits)


class ShelfOfThen(Shelf):
    """Finds for a question what the index of then had found, in that order."""

    def __init__(self, prompts: Sequence[str]) -> None:
        super().__init__()
        self._prompts = prompts

    async def retrieve(self, query: Query, *, k: int, **more: object) -> Retrieval:
        shown = [text for text in self._prompts if query.text in text] or self._prompts
        texts = _PASSAGE.findall(shown[0])
        self._passages = [Passage(id=f"t:{text.split()[-1][:-1]}", text=text) for text in texts]
        return await super().retrieve(query, k=k, **more)


@pytest.fixture(params=DUMPS, ids=lambda path: path.stem)
async def stored(redis_url: str, request: pytest.FixtureRequest) -> AsyncIterator[Stored]:
    written = head(request.param)
    with SyncRedis.from_url(redis_url, decode_responses=True) as client:
        client.flushdb()
        restore(client, request.param)
        async with open_bench(redis_url, "acme") as bench:
            bench.clock = Clock(now=written.at)
            yield Stored(bench=bench, written=written)
        client.flushdb()


@pytest.fixture
def provider(
    stored: Stored, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[StubProvider]:
    """The provider, which still has the batch of then."""

    def answer(_: Recorded) -> Step:
        return Reply(text=echo, usage=estimate)

    for name, text in stored.written.provider.items():
        (tmp_path / name).write_text(text, encoding="utf-8")
    with StubProvider(answer, batches=BatchBook(answer, folder=tmp_path)) as stub:
        monkeypatch.setenv("OPENAI_BASE_URL", stub.openai_url)
        monkeypatch.setenv("OPENAI_API_KEY", "sk-any")
        yield stub


async def test_what_has_ended_is_read(stored: Stored) -> None:
    named = stored.written.named
    async with stored.client() as http:
        jobs = {
            name: (await http.get(f"/v1/jobs/{named[name]}")).json()
            for name in ("answered", "parted", "repeated", "failed", "expired", "cancelled")
        }
        listed = (await http.get("/v1/jobs?limit=100")).json()["jobs"]
        batch = (await http.get(f"/v1/batches/{named['batch']}")).json()
        rows = (await http.get(f"/v1/batches/{named['batch']}/rows")).json()["rows"]
        spend = (await http.get("/v1/spend?by=model")).json()
    states = {name: job["state"] for name, job in jobs.items()}
    assert states == {
        "answered": "succeeded", "parted": "succeeded", "repeated": "succeeded", "failed": "failed",
        "expired": "expired", "cancelled": "cancelled",
    }  # fmt: skip
    answer = jobs["answered"]["result"]
    assert answer["answer"].startswith("Aspirin lowered the risk of stroke")
    assert answer["evidence"][0]["quote"].startswith("Aspirin lowered the risk of stroke")
    assert jobs["answered"]["feedback"]["comment"] == "As the trial says."
    assert jobs["failed"]["error"]["type"] == "RequestRejected"
    # the first reply was lost: its cost is unknown
    assert jobs["repeated"]["result"]["spending"]["usage_complete"] is False
    assert {job["id"] for job in listed} >= {job["id"] for job in jobs.values()}
    assert (batch["total"], batch["rejected"]) == (2, 1)
    assert [row["state"] for row in rows] == ["succeeded", None]
    spent = {balance["scope"]: Decimal(balance["spent_usd"]) for balance in spend["balances"]}
    assert spent["total"] > 0


async def test_keys_sign_in_and_the_same_request_is_the_same_job(stored: Stored) -> None:
    named = stored.written.named
    body = {"question": QUESTION, "k": 4, "deadline_seconds": 13 * 86_400}
    async with stored.client() as http:
        again = await http.post("/v1/jobs", json=body, headers={"Idempotency-Key": "key-answered"})
        assert (again.status_code, again.json()["id"]) == (200, named["answered"])
        changed = body | {"k": 5}
        other = await http.post(
            "/v1/jobs", json=changed, headers={"Idempotency-Key": "key-answered"}
        )
        assert other.status_code == 409
        assert (await http.get("/v1/jobs", headers=stored.key("spent"))).status_code == 200
        assert (await http.get("/v1/jobs", headers=stored.key("gone"))).status_code == 403
        theirs = f"/v1/jobs/{named['afforded']}"
        assert (await http.get(theirs)).status_code == 404


async def test_what_was_begun_is_finished(stored: Stored, provider: StubProvider) -> None:
    bench, named = stored.bench, stored.written.named
    assert await stored.right()
    connections = Connections(load_settings(), offline=lambda: pytest.fail("offline"))
    try:
        wires: Any = connections
        shelf = ShelfOfThen(await stored.prompts())
        local = Local(bench=bench, runner=runner(bench, model(), shelf=shelf, wires=wires))
        work = bench.worker("collector")
        bench.clock.forward(2 * LEASE)
        for _ in range(12):
            await local.carry(await bench.sweep_all())
            await local.until_nothing_is_sent()
            await collect(work, connections.batches, connections.prices, OPTIONS)
            bench.clock.forward(70.0)
    finally:
        await connections.aclose()
    async with stored.client() as http:
        rows = (await http.get(f"/v1/batches/{named['lane']}/rows")).json()["rows"]
    outs = [await bench.store.get(job, tenant="acme") for job in (*(named[one] for one in OPEN), *(row["job"] for row in rows))]  # fmt: skip
    states = [out.state for out in outs]
    assert states == [JobState.SUCCEEDED] * 6 + [JobState.CANCELLED] + [JobState.SUCCEEDED] * 2
    # replies that were kept are not asked for again: one part and both summaries were missing
    asked = [json.dumps(sent.json) for sent in provider.requests]
    words = ("held part", "held summary")
    assert [sum(word in text for text in asked) for word in words] == [2, 1]
    # where prompts are those of then, each call of the batch is made once; else the replies of then answer nothing, and
    # it is made anew
    billed = [entry["client_id"] for entry in provider.batches.ledger.entries()]
    assert len(billed) == len(set(billed)) in (3, 6)
    # the calls of then whose end is unknown are charged
    assert {one.outcome for one in outs[0].spending.attempts} == {Outcome.LOST, Outcome.OK}
    assert await stored.right()
    assert await bench.redis.hget("posology:{acme}:money", "reserved:total") == "0"


async def test_what_was_spent_then_counts(stored: Stored, provider: StubProvider) -> None:
    bench = stored.bench
    bench.tenant = "spent"
    connections = Connections(load_settings(), offline=lambda: pytest.fail("offline"))
    wires: Any = connections
    local = Local(bench=bench, runner=runner(bench, model(), wires=wires))
    try:
        spent = (
            await bench.store.get(stored.written.named["afforded"], tenant="spent")
        ).charged_usd
        asked = request(QUESTION, max_tokens=1_000, deadline_seconds=DAY)
        refused = await local.finish((await bench.store.submit(asked, tenant="spent")).job)
        assert refused.error is not None
        assert refused.error.type == "BudgetExhausted"
        assert Decimal(str(refused.error.details["spent"])) == spent > 0
        assert provider.requests == ()
        await TenantStore(bench.redis, bench.url).limit("spent", Limits(total=Decimal("0.01")))
        afforded = await local.finish((await bench.store.submit(asked, tenant="spent")).job)
        assert afforded.state is JobState.SUCCEEDED
    finally:
        await connections.aclose()
    assert await stored.right()


class Endpoint(Delivery):
    """Takes every message."""

    def __init__(self) -> None:
        super().__init__()
        self.got: list[dict[str, Any]] = []

    async def post(self, url: str, body: bytes, headers: dict[str, str]) -> Result:
        self.got.append(json.loads(body))
        return Result(status=204)


async def test_messages_of_webhooks_are_delivered(stored: Stored) -> None:
    bench, endpoint = stored.bench, Endpoint()
    # longer than the pause before the next attempt of any
    bench.clock.forward(3_600.0)
    outbox = Outbox(bench.store)
    sender = Sender(outbox, endpoint)
    # the version before listed no endpoint that is owed something
    while due := await outbox.plan("acme", held=60):
        for place in due:
            await sender.step(place)
        bench.clock.forward(60.0)
    await endpoint.aclose()
    told = {one["data"].get("job") for one in endpoint.got}
    assert {stored.written.named[name] for name in ("answered", "failed", "expired")} <= told


async def test_messages_of_the_broker_are_understood(stored: Stored) -> None:
    unacked = await stored.bench.redis.hgetall("unacked")
    units = [units_of(json.dumps(json.loads(raw)[0])) for raw in unacked.values()]
    assert {unit.job for unit, *_ in units} & {stored.written.named[name] for name in OPEN}
