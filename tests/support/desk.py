"""A tenant with endpoints of webhooks, their receiver, and a process that sends."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from ipaddress import ip_network
from typing import Any

from orchestrator.webhooks.delivery import Delivery
from orchestrator.webhooks.outbox import Outbox
from orchestrator.webhooks.store import WebhookStore
from posology.published.answers import Status
from posology.published.webhooks.endpoints import WebhookOutput
from posology.published.webhooks.messages import DEFAULT_EVENTS, WebhookEvent
from tests.integration.jobs_store.helpers import DIRECT, Bench, answer, open_bench
from tests.support.receiver import Received, Receiver, receiving
from workers.engine.webhooks import Sender

HERE = (ip_network("127.0.0.0/8"),)


class Desk:
    """A tenant with jobs, a receiver, and a process that sends."""

    def __init__(self, bench: Bench, receiver: Receiver, delivery: Delivery) -> None:
        self.bench = bench
        self.receiver = receiver
        self.store = WebhookStore(bench.store, HERE)
        self.outbox = Outbox(bench.store)
        self.sender = Sender(self.outbox, delivery)
        self.secret = ""
        self.webhook = ""

    async def listen(self, *events: WebhookEvent, url: str | None = None) -> str:
        made, self.secret = await self.store.create(
            url or self.receiver.url, tenant=self.bench.tenant, events=events or DEFAULT_EVENTS
        )
        self.webhook = made.id
        return made.id

    async def send(self) -> list[Received]:
        """Send all that is due, and return what arrived."""
        before = len(self.receiver.received)
        while due := [one for one in await self.outbox.due() if one.tenant == self.bench.tenant]:
            for place in due:
                await self.sender.step(place)
        return self.receiver.received[before:]

    async def finished(self, status: Status = Status.REFUSED) -> str:
        """A job that has just been answered."""
        held = await self.bench.running()
        await self.bench.worker().decide(held, DIRECT, calls=1)
        await self.bench.open(held, f"a-{held.unit.job}")
        await self.bench.close(held, f"a-{held.unit.job}")
        await self.bench.worker().succeed(held, answer().model_copy(update={"status": status}))
        return held.unit.job

    async def shown(self) -> WebhookOutput:
        return await self.store.get(self.webhook, tenant=self.bench.tenant)


@asynccontextmanager
async def open_desk(url: str, tenant: str) -> AsyncIterator[Desk]:
    delivery = Delivery(HERE)
    async with open_bench(url, tenant) as bench, receiving() as receiver:
        try:
            yield Desk(bench, receiver, delivery)
        finally:
            await delivery.aclose()


async def commands(bench: Bench, work: Any) -> list[str]:
    """The commands that reach Redis from a client during some work, without those within scripts."""
    found: list[str] = []
    async with bench.redis.monitor() as monitor:
        await work()
        await bench.redis.echo("over")
        async for one in monitor.listen():
            if one["command"].startswith("ECHO over"):
                return found
            name = one["command"].split()[0]
            # a connection of the pool may be new
            if one["client_type"] != "lua" and name not in ("HELLO", "CLIENT"):
                found.append(name)
    raise AssertionError
