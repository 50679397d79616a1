"""All that can happen to a tenant, on connections that are allowed this tenant's keys and the global ones alone."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from decimal import Decimal

import httpx2
import pytest
from redis.asyncio import Redis

from orchestrator.api.app import create_app
from orchestrator.jobs import tenants
from orchestrator.jobs.batches import Batches
from orchestrator.jobs.store import JobStore
from orchestrator.settings import Settings
from orchestrator.watches.store import WatchStore
from orchestrator.webhooks.outbox import Outbox
from posology.budget.ledger.redis import RedisLedger
from posology.budget.tenants.meter import Meters
from posology.budget.tenants.store import Issued, TenantStore
from posology.errors import HeadroomReserved
from posology.llm.calls import Caller
from posology.llm.memo import call_key
from posology.llm.stack import build
from posology.seams import Complete
from posology.store import keys
from posology.store.connection import connect
from posology.testing.model import ScriptedModel
from posology.testing.prices import FlatPrices, by_bytes
from posology.types import (
    Call,
    Excerpt,
    Extraction,
    Limits,
    Message,
    Opening,
    Outcome,
    Partition,
    Passage,
    PromptId,
    Query,
    Reservation,
    Role,
    Scope,
    Stage,
)
from tests.integration.jobs_store.helpers import DIRECT, ERROR, PARTED, answer, ended
from tests.support.answers import a_change
from workers.engine.claims import WorkStore
from workers.engine.journal import JobJournal
from workers.engine.units import ClaimedUnit, Draft, Unit

#: what only the tenant and the models may see
QUESTION = "Does zyxomab cure lattice fever?"
PASSAGE = "Zyxomab was given to nine patients."
ANSWER = "Lattice fever yields to zyxomab."
KEY = "idempotent-zyxomab"
SECRETS = (QUESTION, PASSAGE, ANSWER, KEY, "zyxomab", "lattice")
MODEL = "openai:gpt-4o-mini"
PROMPT = PromptId(name="answer", digest="0" * 16)
#: what every tenant's connection may use besides its own keys
GLOBAL = (
    keys.REGISTERED, keys.TENANTS, keys.PAST, keys.SPENDERS, keys.WAITING, keys.WAKE, keys.WORKERS, keys.ANSWERING,
    keys.SWEPT, keys.AMNESTY, keys.CLOCK, keys.PUT_BACK, keys.WEBHOOKS, keys.WATCHES, keys.DUE, keys.LOOKED, *keys.TURNS,
)  # fmt: skip
#: so short that a test can wait for its end
LEASE = 0.05


@dataclass(kw_only=True, slots=True)
class Side:
    """One tenant with an API key, on a connection of its own."""

    tenant: str
    issued: Issued
    redis: Redis
    url: str
    http: httpx2.AsyncClient
    #: ids of jobs and batches
    jobs: list[str] = field(default_factory=list)
    batches: list[str] = field(default_factory=list)
    #: ids of endpoints
    webhooks: list[str] = field(default_factory=list)
    #: ids of watches
    watches: list[str] = field(default_factory=list)
    #: events of the first job
    events: list[str] = field(default_factory=list)

    @property
    def store(self) -> JobStore:
        return JobStore(self.redis, self.url)

    @property
    def work(self) -> WorkStore:
        return WorkStore(self.store, worker=keys.worker(1))

    async def submit(self, question: str = QUESTION, *, key: str | None = None) -> str:
        headers = {} if key is None else {"Idempotency-Key": key}
        body = {"question": question, "model": MODEL}
        reply = await self.http.post("/v1/jobs", json=body, headers=headers)
        assert reply.status_code == 202, reply.text
        self.jobs.append(reply.json()["id"])
        return self.jobs[-1]

    async def held(
        self, job: str, name: str = "answer", *, work: WorkStore | None = None
    ) -> ClaimedUnit:
        """A unit, as a worker has it that was given its message."""
        while await self.work.take(self.tenant) is not None:
            pass
        unit = Unit(tenant=self.tenant, job=job, name=name)
        found = await (work or self.work).claim(unit, delivery=keys.new_id("delivery"))
        assert found is not None
        return found

    def complete(self, held: ClaimedUnit, model: ScriptedModel) -> Complete:
        journal = JobJournal(self.work, held)
        return build(
            model,
            journal=journal,
            prices=FlatPrices(),
            bound=by_bytes,
            caller=Caller(recall=journal.recall),
        )


@asynccontextmanager
async def side(admin: Redis, url: str, tenant: str, **settings: str) -> AsyncIterator[Side]:
    """A tenant whose every connection is refused all keys but its own and :data:`GLOBAL`."""
    issued = await TenantStore(admin, url).create(tenant, Limits(day=Decimal(1_000)))
    own = issued.key.split("_")[1]
    allowed = [keys.api_key(own), *GLOBAL]
    await admin.acl_setuser(
        tenant,
        enabled=True,
        nopass=True,
        categories=["+@all", "-@admin"],
        keys=[f"{keys.prefix(tenant)}*", *allowed],
    )
    restricted = url.replace("unix://", f"unix://{tenant}:x@", 1)
    redis = connect(restricted)
    given = Settings.model_validate({"POSOLOGY_AUTH": "keys", **settings})
    app = create_app(given, JobStore(redis, restricted))
    try:
        # a defect, such as a key that is refused, is raised here
        async with httpx2.AsyncClient(
            transport=httpx2.ASGITransport(app),
            base_url="http://localhost",
            headers={"Authorization": f"Bearer {issued.key}"},
        ) as http:
            yield Side(tenant=tenant, issued=issued, redis=redis, url=restricted, http=http)
    finally:
        await redis.aclose()
        await admin.acl_deluser(tenant)


def call(question: str = QUESTION) -> Call:
    """The same call whoever makes it."""
    passage = Excerpt(passage=Passage(id="p1", text=PASSAGE), sentences=())
    return Call(
        stage=Stage.ANSWER,
        model=MODEL,
        query=Query(text=question),
        excerpts=(passage,),
        messages=(Message(role=Role.USER, content=f"{question} {PASSAGE}"),),
        prompt=PROMPT,
        max_tokens=100,
    )


async def live(one: Side, seen: Callable[[], Awaitable[None]] | None = None) -> None:
    """A life in which every kind of key is made; ``seen`` is called after each of its steps."""
    for step in (
        _answered,
        _cancelled,
        _lost,
        _parted,
        _batched,
        _ran,
        _metered,
        _kept,
        _queued,
        _hooked,
        _watched,
    ):
        await step(one)
        if seen is not None:
            await seen()


async def _answered(one: Side) -> None:
    job = await one.submit(key=KEY)
    held = await one.held(job)
    await one.work.heartbeat([held])
    looked_at = {"qtable.table": "1f0c2a9e5b7d4836", "qtable.state": 3}
    await one.work.decide(held, replace(DIRECT, features=looked_at), calls=1)
    await one.complete(held, ScriptedModel([ANSWER]))(call())
    await one.work.succeed(held, answer(ANSWER))
    said = {"score": 0.5, "comment": QUESTION}
    judged = await one.http.post(f"/v1/jobs/{job}/feedback", json=said)
    assert judged.json()["feedback"]["state"] == 3
    one.events = [event.id async for event in one.store.events(job, tenant=one.tenant)]


async def _cancelled(one: Side) -> None:
    job = await one.submit()
    held = await one.held(job)
    await one.http.delete(f"/v1/jobs/{job}")
    await one.work.release(held)
    assert (await one.http.get(f"/v1/jobs/{job}")).json()["state"] == "cancelled"
    retried = await one.http.post(f"/v1/jobs/{job}/retry")
    assert retried.json()["state"] == "queued"


async def _lost(one: Side) -> None:
    """A worker goes while its calls are open; one of them tells after all, and the job fails."""
    job = await one.submit()
    work = WorkStore(one.store, worker=keys.worker(2), lease=LEASE)
    held = await one.held(job, work=work)
    journal = JobJournal(work, held)
    opened = _opening(job)
    await journal.open(opened)
    await _past_lease(one)
    await work.sweep(one.tenant, jobs_before=0, calls_before=0)
    await journal.close(ended(opened, Outcome.UNUSABLE, Decimal("0.001")), None)
    held = await one.held(job)
    await one.work.fail(held, ERROR)
    assert (await one.http.get(f"/v1/jobs/{job}")).json()["state"] == "failed"


async def _parted(one: Side) -> None:
    job = await one.submit()
    held = await one.held(job)
    parts = [Partition(index=i, first_rank=i, excerpts=call().excerpts) for i in range(2)]
    draft = Draft(rungs=(), retrieved=(), index=PASSAGE, retrieval_seconds=0.0)
    await one.work.decide(held, PARTED, calls=3, partitions=parts, draft=draft)
    first = await one.held(job, "extract:0")
    await one.work.extracted(first, Extraction(partition=0))
    # the other waits at the broker, and is lost there
    assert await one.work.sweep(one.tenant, jobs_before=2**50, calls_before=2**50)


async def _batched(one: Side) -> None:
    rows = [{"id": "lattice-1", "question": QUESTION}, {"question": ""}]
    lines = "".join(f"{json.dumps(row)}\n" for row in rows)
    headers = {"Idempotency-Key": KEY, "Content-Type": "application/x-ndjson"}
    made = await one.http.post("/v1/batches", content=lines, headers=headers)
    assert made.status_code == 202, made.text
    one.batches.append(made.json()["id"])
    found = (await one.http.get(f"/v1/batches/{one.batches[0]}/rows")).json()["rows"]
    one.jobs.append(found[0]["job"])
    await Batches(one.store, Settings()).generation(KEY, tenant=one.tenant, fresh=True)


async def _queued(one: Side) -> None:
    """Two calls want what is left for one: of the job's own cap, and of the tenant's places."""
    ledger = RedisLedger(one.redis, one.url, tenant=one.tenant)
    wanted = [
        Reservation(opening=_opening(f"{scope}{i}"), call=1, job=f"run_{scope}", ticket=f"{scope}{i}", cap=cap)
        for scope, cap in (("own", Decimal("1.5")), ("calls", None))
        for i in (1, 2)
    ]  # fmt: skip
    await ledger.reserve(wanted[0])
    with pytest.raises(HeadroomReserved):
        await ledger.reserve(wanted[1])
    await one.redis.hset(f"{keys.prefix(one.tenant)}tenant", "calls", "1")
    with pytest.raises(HeadroomReserved):
        await ledger.reserve(wanted[3])
    await one.redis.hdel(f"{keys.prefix(one.tenant)}tenant", "calls")


async def _ran(one: Side) -> None:
    """Runs that are no jobs: settled, released, and lost."""
    ledger = RedisLedger(one.redis, one.url, tenant=one.tenant, lease=LEASE)
    asked = [
        Reservation(opening=_opening(f"ran{i}"), call=1, job="run_1", ticket=f"r{i}") for i in (1, 2, 3)
    ]  # fmt: skip
    for reservation in asked:
        await ledger.reserve(reservation)
    await ledger.extend([reservation.opening.id for reservation in asked])
    await ledger.settle(ended(asked[0].opening, Outcome.OK, Decimal("0.5")))
    await ledger.release(asked[1].opening.id)
    await _past_lease(one)
    assert asked[2].opening.id in await ledger.sweep()
    await ledger.leave("r1", "run_1")
    await ledger.balances("run_1")
    assert (await one.http.get("/v1/spend?by=model")).status_code == 200


async def _metered(one: Side) -> None:
    limits = Limits(requests_per_minute=1, tokens_per_minute=100)
    meter = Meters(one.redis, one.url).of(one.tenant)
    wanted = {Scope.REQUESTS: 1, Scope.TOKENS: 50}
    for ticket in ("t1", "t2"):
        await meter.take(wanted, limits, ticket=ticket)


async def _kept(one: Side) -> None:
    """What looks after a tenant and not after one of its jobs."""
    await tenants.emptied(one.store, one.tenant)
    job = await one.submit()
    held = await one.held(job)
    await one.complete(held, ScriptedModel([ANSWER]))(call())
    await one.work.release(held)
    await one.held(job)


async def _hooked(one: Side) -> None:
    """An endpoint is owed a message, and was not sent another."""
    made = await one.http.post("/v1/webhooks", json={"url": "https://example.org/hook"})
    assert made.status_code == 201, made.text
    one.webhooks.append(made.json()["id"])
    job = await one.submit()
    await one.http.delete(f"/v1/jobs/{job}")
    outbox = Outbox(one.store)
    (place,) = await outbox.plan(one.tenant, held=60)
    (due,) = await outbox.take(place, most=1, seconds=1.0, patience=60.0)
    await outbox.settle(
        one.tenant, due, "failed", delay=0.0, status=500, error="refused", hold=(0.0, 0.0)
    )
    tested = await one.http.post(f"/v1/webhooks/{one.webhooks[0]}/test")
    assert tested.status_code == 202


async def _watched(one: Side) -> None:
    """A watch is taken, and has a change."""
    made = await one.http.post("/v1/watches", json={"question": QUESTION, "model": MODEL})
    assert made.status_code == 201, made.text
    one.watches.append(made.json()["id"])
    watches = WatchStore(one.store)
    assert await watches.tenants()
    (due,) = await watches.due(one.tenant)
    taken = await watches.take(due, tenant=one.tenant)
    assert taken is not None
    change = a_change()
    assert await watches.step(taken, {"error": None}, look=taken.next, change=change)


def _opening(own: str) -> Opening:
    return Opening(
        id=f"a-{own}",
        call=None,
        attempt=1,
        stage=Stage.ANSWER,
        model=MODEL,
        prompt=PROMPT,
        key=call_key(call()),
        started=1.0,
        reserved=Decimal(1),
    )


async def _past_lease(one: Side) -> None:
    """Let a lease end by the server's clock."""
    seconds, micros = await one.redis.time()
    until = seconds + micros / 1e6 + 2 * LEASE
    while True:
        seconds, micros = await one.redis.time()
        if seconds + micros / 1e6 > until:
            return
