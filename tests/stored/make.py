"""Makes the dump of a version from its running product: ``python -m tests.stored.make tests/stored/VERSION.jsonl``.

Run it in the checkout of a release. To make that of an earlier one, run it in its checkout with
``PYTHONPATH=.:LATER`` where ``LATER`` is a checkout that has this file.
"""

from __future__ import annotations

import asyncio
import json
import os
import signal
import socket
import sys
import tempfile
import time
from collections.abc import Callable, Mapping
from contextlib import AsyncExitStack, suppress
from decimal import Decimal
from pathlib import Path
from typing import Any

import httpx2
from redis import Redis

from orchestrator.ingest.ingest import run_ingest
from orchestrator.ingest.writer import Target
from orchestrator.settings import Settings
from orchestrator.stack.options import StackOptions
from orchestrator.stack.up import running_stack
from posology.budget.ledger.redis import RedisLedger
from posology.budget.tenants.store import TenantStore
from posology.store.connection import connect
from posology.testing import (
    BatchBook,
    BatchFaults,
    Cut,
    Hang,
    Recorded,
    Reply,
    Status,
    Step,
    StubProvider,
    echo,
    save_tiny_encoder,
)
from posology.testing.provider.faults import estimate
from posology.types import Attempt, Limits, Opening, Outcome, PromptId, Reservation, Stage, Usage
from posology.version import __version__
from tests.stored.dump import Written, dump

MODEL = "openai:gpt-4o-mini"
#: seconds: no job expires while the dump is made, or read by the clock of the dump
_LONG = 13 * 86_400
#: of the tenants; the second may pay for one call at its bound, and then for none
LIMITS = {
    "acme": Limits(day=Decimal(1), month=Decimal(2), total=Decimal(5), job=Decimal("0.5"), calls=20,
                   requests_per_minute=600, models=(MODEL,), queued=50, stored=100, may_ingest=True),
    "spent": Limits(total=Decimal("0.0007")),
    "gone": Limits(),
}  # fmt: skip


class Provider:
    """Replies to all but what a question says is held, refused or lost."""

    def __init__(self) -> None:
        self._held: str | None = None
        self._lost = False

    def __call__(self, request: Recorded) -> Step:
        """Return the step of a request."""
        text = json.dumps(request.json["messages"])
        extracts = '"findings"' in json.dumps(request.json.get("response_format"))
        reply = Reply(text=echo, usage=estimate)
        if "held part" in text and extracts:
            self._held = self._held or text
        held = ("held answer" in text, text == self._held, "held summary" in text and not extracts)
        if any(held):
            return Hang(seconds=3_600)
        if "refused call" in text:
            return Status(code=400)
        if "lost reply" in text and not self._lost:
            self._lost = True
            return Cut(of=reply)
        return reply


class Maker:
    """A tenant's client, and the Redis behind it.

    Args:
        http: of the API.
        redis: of the stack.
        keys: API keys by tenant.
    """

    def __init__(self, http: httpx2.AsyncClient, redis: Any, keys: Mapping[str, str]) -> None:
        self._http, self.redis, self._keys = http, redis, keys
        self.named: dict[str, str] = {}

    async def send(
        self, method: str, path: str, *, tenant: str = "acme", key: str | None = None, **body: Any
    ) -> Any:
        """Send a request, and return what it returns."""
        headers = {"Authorization": f"Bearer {self._keys[tenant]}"}
        if key is not None:
            headers["Idempotency-Key"] = key
        if "content" in body:
            headers["Content-Type"] = body.pop("kind")
        reply = await self._http.request(method, path, headers=headers, timeout=60, **body)
        reply.raise_for_status()
        return reply.json() if reply.content else None

    async def ask(self, name: str, question: str, *, tenant: str = "acme", **more: Any) -> str:
        """Submit a question, and return the job."""
        body = {"question": question, "k": 4, "deadline_seconds": _LONG, **more}
        made = await self.send("POST", "/v1/jobs", tenant=tenant, key=f"key-{name}", json=body)
        self.named[name] = made["id"]
        return str(made["id"])

    async def over(self, *names: str, tenant: str = "acme") -> None:
        """Wait until jobs have ended."""
        keys = [f"posology:{{{tenant}}}:job:{self.named[name]}" for name in names]
        ends = {"succeeded", "failed", "cancelled", "expired"}
        await self.until(lambda: all(self.redis.hget(key, "state") in ends for key in keys))

    async def until(self, done: Callable[[], object]) -> None:
        """Wait for something in Redis."""
        deadline = time.monotonic() + 180
        while not await asyncio.to_thread(done):
            if time.monotonic() > deadline:
                raise TimeoutError(f"not in time: {self.named}")
            await asyncio.sleep(0.05)

    def in_call(self, name: str) -> bool:
        """Whether a call of a job is open."""
        return bool(self.redis.scard(f"posology:{{acme}}:job:{self.named[name]}:open"))

    def lost(self, name: str) -> bool:
        """Whether a worker of a job was lost."""
        return bool(self.redis.hget(f"posology:{{acme}}:job:{self.named[name]}", "losses") != "0")

    def signal(self, number: signal.Signals) -> None:
        """Send a signal to the workers."""
        for name in self.redis.zrange("posology:workers", 0, -1):
            # one that was killed is named until its heartbeat is too old
            with suppress(ProcessLookupError):
                os.kill(int(name.rpartition(":")[2]), number)


async def make(path: Path) -> None:
    """Run the product until every kind of record is there, and dump its Redis."""
    with tempfile.TemporaryDirectory() as place:
        folder, provider = Path(place), Provider()
        (folder / "batches").mkdir()
        book = BatchBook(provider, BatchFaults(polls=None), folder=folder / "batches")
        async with AsyncExitStack() as stack:
            stub = stack.enter_context(StubProvider(provider, batches=book))
            options = await asyncio.to_thread(_options, folder, stub)
            info = await stack.enter_async_context(running_stack(options))
            keys = await _tenants(info.redis_url)
            redis = stack.enter_context(Redis.from_url(info.redis_url, decode_responses=True))
            url = str(info.api_url)
            http = await stack.enter_async_context(httpx2.AsyncClient(base_url=url))
            maker = Maker(http, redis, keys)
            await _ended(maker)
            await _paid_in_process(info.redis_url)
            await _held(maker)
            seconds, micros = redis.time()
            written = Written(
                version=__version__,
                at=seconds * 1000 + micros // 1000,
                named={**maker.named, **{f"{name} key": key for name, key in keys.items()}},
                provider={one.name: one.read_text(encoding="utf-8") for one in sorted((folder / "batches").glob("*.json"))},
            )  # fmt: skip
            dump(redis, written, path, hide={place: "/stored", socket.gethostname(): "host"})
            # what hangs at the provider is not waited for
            maker.signal(signal.SIGKILL)


def _options(folder: Path, stub: StubProvider) -> StackOptions:
    encoder = save_tiny_encoder(folder / "encoder")
    rows = folder / "rows.jsonl"
    texts = [f"Aspirin lowered the risk of stroke in trial {n}." for n in range(8)]
    rows.write_text(
        "".join(f"{json.dumps({'id': f't:{n}', 'text': t})}\n" for n, t in enumerate(texts))
    )
    index = str(folder / "index")
    run_ingest([rows], Settings(), Target(place=index, embedder=str(encoder)))
    return StackOptions(
        environment=os.environ, folder=folder / "stack", workers=1, concurrency=12, port=0, uploads=True,
        index=index,
        overrides={
            "POSOLOGY_CONFIG": "off", "POSOLOGY_EMBEDDER": str(encoder), "POSOLOGY_MODEL": MODEL,
            "POSOLOGY_AUTH": "keys", "POSOLOGY_UPLOADS": str(folder / "uploads"),
            "POSOLOGY_TOKEN_CODES": "false", "POSOLOGY_SUPPORT": "off", "POSOLOGY_LEASE": "5",
            "POSOLOGY_BATCH_WAIT": "5", "POSOLOGY_WEBHOOK_NETWORKS": "127.0.0.0/8",
            "OPENAI_API_KEY": "stub", "OPENAI_BASE_URL": stub.openai_url,
        },
    )  # fmt: skip


async def _tenants(url: str) -> dict[str, str]:
    redis = connect(url)
    try:
        store = TenantStore(redis, url)
        keys = {name: (await store.create(name, limits)).key for name, limits in LIMITS.items()}
        await store.disable("gone")
    finally:
        await redis.aclose()
    return keys


async def _ended(maker: Maker) -> None:
    """Jobs that end, each in another way, and what belongs to them."""
    # nothing listens there: messages wait for their next attempt
    await maker.send("POST", "/v1/webhooks", json={"url": "http://127.0.0.1:9/hook"})
    question = "Did aspirin lower the risk of stroke?"
    await maker.ask("answered", question)
    await maker.ask("parted", question, strategy="briefcontext", k=6, partition_size=2)
    await maker.ask("repeated", f"{question} By a lost reply?")
    await maker.ask("failed", f"{question} By a refused call?")
    await maker.ask("expired", f"{question} By a held answer, late?", deadline_seconds=2)
    job = await maker.ask("cancelled", f"{question} By a held answer, never?")
    await maker.until(lambda: maker.in_call("cancelled"))
    await maker.send("DELETE", f"/v1/jobs/{job}")
    lines = f'{{"id": "first", "question": "{question}"}}\n{{"question": ""}}\n'
    kind = "application/x-ndjson"
    made = await maker.send("POST", "/v1/batches", key="key-batch", content=lines, kind=kind)
    maker.named["batch"] = made["id"]
    file = json.dumps({"id": "up:1", "text": "Statins lowered the risk of stroke."})
    kind = "application/octet-stream"
    await maker.send("POST", "/v1/index/files?name=mine.jsonl", content=file, kind=kind)
    table = {"documents": ["t:0", "t:1"], "preset": "pico"}
    made = await maker.send("POST", "/v1/tables", json=table)
    maker.named["table"] = made["id"]
    await maker.over("answered", "parted", "repeated", "failed", "expired")
    said = {"score": 0.5, "comment": "As the trial says."}
    job = maker.named["answered"]
    await maker.send("POST", f"/v1/jobs/{job}/feedback", json=said)
    await maker.ask("afforded", question, tenant="spent")
    await maker.over("afforded", tenant="spent")


async def _paid_in_process(url: str) -> None:
    """Runs that are no jobs: settled, released, lost, and lost but reported later."""
    redis = connect(url)
    try:
        ledger = RedisLedger(redis, url, tenant="acme", lease=0.05)
        ends = {name: _opening(name) for name in ("settled", "released", "lost", "late")}
        for name, opening in ends.items():
            await ledger.reserve(Reservation(opening=opening, call=1, job="run_1", ticket=name))
        await ledger.settle(_attempt(ends["settled"]))
        await ledger.release(ends["released"].id)
        while await redis.exists("posology:{acme}:money:leases"):
            await ledger.sweep()
            await asyncio.sleep(0.05)
        await ledger.settle(_attempt(ends["late"]))
    finally:
        await redis.aclose()


def _opening(name: str) -> Opening:
    return Opening(
        id=f"run-{name}", call=None, attempt=1, stage=Stage.ANSWER, model=MODEL,
        prompt=PromptId(name="answer", digest="0" * 16), key=name, started=time.time(),
        reserved=Decimal("0.01"),
    )  # fmt: skip


def _attempt(opening: Opening) -> Attempt:
    return Attempt(
        id=opening.id, call=1, attempt=1, stage=opening.stage, model=MODEL, prompt=opening.prompt,
        outcome=Outcome.OK, error=None, usage=Usage(input=10, output=1), cost=Decimal("0.001"),
        started=opening.started, latency=0.5, request_id=None, reserved=opening.reserved,
    )  # fmt: skip


async def _held(maker: Maker) -> None:
    """Jobs in every state before the end: their workers are gone for a while, then stopped."""
    question = "Did aspirin lower the risk of stroke?"
    running = ("running", "extracting", "reducing", "cancelling")
    await maker.ask("running", f"{question} By a held answer, one?")
    await maker.ask("cancelling", f"{question} By a held answer, two?")
    for name, what in (("extracting", "held part"), ("reducing", "held summary")):
        text = f"{question} By a {what}?"
        await maker.ask(name, text, strategy="briefcontext", k=6, partition_size=2)
    await maker.until(lambda: all(maker.in_call(name) for name in running))
    maker.signal(signal.SIGKILL)
    await maker.until(lambda: all(maker.lost(name) and maker.in_call(name) for name in running))
    lane = "/v1/batches?tier=batch&k=4"
    kind = "application/x-ndjson"
    lines = "".join(f'{{"question": "{question} Case {n}."}}\n' for n in range(2))
    made = await maker.send("POST", lane, key="key-lane", content=lines, kind=kind)
    maker.named["lane"] = made["id"]
    sent = "posology:{acme}:lane:batch:pb_*[0-9a-f]"
    await maker.until(lambda: any(maker.redis.hget(name, "state") == "sent" for name in maker.redis.scan_iter(match=sent, count=1_000, _type="hash")))  # fmt: skip
    await maker.ask("wanted", f"{question} In the next batch?", tier="batch")
    await maker.until(lambda: maker.redis.zcard("posology:{acme}:lane:wanted"))
    maker.signal(signal.SIGSTOP)
    if not maker.redis.zcard("posology:{acme}:lane:wanted"):
        raise RuntimeError("the next batch was sent already: make the dump again")
    job = maker.named["cancelling"]
    await maker.send("DELETE", f"/v1/jobs/{job}")
    for name in ("queued", "queued too"):
        await maker.ask(name, f"{question} Later, {name}?")


def main() -> None:
    """Make the dump at the path that the command line names."""
    asyncio.run(make(Path(sys.argv[1])))


if __name__ == "__main__":
    main()
