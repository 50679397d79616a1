"""A store, an index and reports with which the console has something on every page."""

from __future__ import annotations

from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path
from urllib.parse import quote

from anyio import to_thread
from redis.asyncio import Redis

from evals.load.pages import fill, pages
from orchestrator.jobs.batches import Batches
from orchestrator.jobs.store import JobStore
from orchestrator.question import qtables
from orchestrator.question.decider import Decider
from orchestrator.question.request import JobRequest
from orchestrator.settings import Settings
from orchestrator.webhooks.outbox import Outbox, Place
from orchestrator.webhooks.store import WebhookStore
from posology.budget.tenants.store import TenantStore
from posology.index.store import Index
from posology.store import keys
from posology.store.keys import DEFAULT_TENANT
from posology.types import Limits
from tests.integration.jobs_store.helpers import MODEL
from tests.support.console import QUESTION, answered, make_index, run_job
from tests.support.reports import make_reports
from tests.unit.policies.tables import retrieval, table


@dataclass(frozen=True, kw_only=True, slots=True)
class Full:
    """A configuration whose console has something on every page."""

    settings: Settings
    paths: dict[str, str]


async def make_full(
    redis: Redis, url: str, folder: Path, encoder: str, *, jobs: int, extra: str
) -> Full:
    """Fill a store and a folder; texts end with ``extra``."""
    await redis.flushdb()
    place = await to_thread.run_sync(lambda: make_index(folder, encoder, hostile=bool(extra)))
    reports = make_reports(folder / "reports", extra)
    learned = folder / "qtable.json"
    embedder = Index.open(str(place)).meta.embedder
    rewards = table(compressor="pruner", embedder=embedder)
    qtables.save(rewards, learned)
    settings = Settings.model_validate(
        {
            "POSOLOGY_REDIS_URL": url, "POSOLOGY_INDEX": str(place), "POSOLOGY_EMBEDDER": encoder,
            "POSOLOGY_REPORTS": str(reports), "POSOLOGY_QTABLE": str(learned), "POSOLOGY_MODEL": MODEL,
        }
    )  # fmt: skip
    store = JobStore(redis, url)
    tenants = TenantStore(redis, url)
    for name in (DEFAULT_TENANT, "acme"):
        await tenants.create(name, Limits(day=Decimal(5), month=Decimal(100)))
    job = ""
    for number in range(12):
        question = f"{QUESTION} ({number}){extra}"
        job = await run_job(store, DEFAULT_TENANT, question=question, out=answered(extra))
    asked = JobRequest(question=f"{QUESTION}{extra}", model=MODEL).settled(settings).as_settled()
    found = retrieval((1, 0, 0, 0), (1, 0.2, 0, 0), (0, 1, 0, 0))
    decision = await Decider(table=rewards)(asked, found)
    replayed = await run_job(
        store, DEFAULT_TENANT, question=f"{QUESTION}{extra}", out=answered(extra), decision=decision
    )
    rows = [f'{{"question": "Question {n}?"}}' for n in range(40)]
    batch = await Batches(store, settings).submit(rows, tenant=DEFAULT_TENANT)
    webhook = await _make_webhook(store, extra)
    # last: a worker takes all that wait, and a full queue takes no more
    await fill(store, DEFAULT_TENANT, jobs, f"Does it help?{extra}")
    await redis.zadd(keys.WORKERS, {f"jobs-1{extra}:17": 1.9e12, f"jobs-2{extra}:17": 1.7e12})
    paths = pages(
        job=job,
        replayed=replayed,
        batch=batch.id,
        webhook=webhook,
        tenant="acme",
        run="router-or-direct",
        report="2026-w44.json",
        passage=quote("x/\"'<b>é" if extra else "pmid:28657417", safe=""),
    )
    return Full(settings=settings, paths=paths)


async def _make_webhook(store: JobStore, extra: str) -> str:
    """An endpoint that has failed, and another that waits; reasons end with ``extra``."""
    webhooks, outbox = WebhookStore(store), Outbox(store)
    await webhooks.create("https://example.org/posology?token=abc", tenant=DEFAULT_TENANT)
    made, _ = await webhooks.create("https://example.org/hook", tenant=DEFAULT_TENANT)
    for said in ("delivered", *["failed"] * 25):
        await webhooks.test(made.id, tenant=DEFAULT_TENANT)
        place = Place(tenant=DEFAULT_TENANT, webhook=made.id)
        for due in await outbox.take(place, most=8, seconds=60.0, patience=600.0):
            reason = "" if said == "delivered" else f"status 500: Internal Server Error{extra}"
            await outbox.settle(
                DEFAULT_TENANT, due, said, delay=0.0, status=500, error=reason, hold=(0.0, 0.0)
            )
    await webhooks.pause(made.id, tenant=DEFAULT_TENANT)
    return made.id
