"""Which endpoints senders look at, and in which order messages of a tenant are sent."""

from __future__ import annotations

import json
import logging
import os
import subprocess
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import anyio
import pytest
from anyio.abc import SocketAttribute

from orchestrator.jobs import metrics
from orchestrator.stack.redis_server import find_server
from orchestrator.webhooks.delivery import Delivery
from orchestrator.webhooks.metrics import Backlog
from orchestrator.webhooks.outbox import Place
from posology.published.webhooks.messages import WebhookEvent
from posology.store import keys
from posology.store.connection import connect
from tests.integration.jobs_store.helpers import ERROR
from tests.support.desk import HERE, Desk, commands, open_desk
from workers.engine.webhooks import PATIENCE, Sender

pytestmark = pytest.mark.anyio


async def forever(step: Any) -> None:
    while True:
        await step()


async def test_a_look_costs_one_command_however_many_tenants_have_endpoints(desk: Desk) -> None:
    await desk.listen()
    for number in range(30):
        await desk.store.create(desk.receiver.url, tenant=f"{desk.bench.tenant}-{number}")
    await desk.finished()

    async def look() -> None:
        found = await desk.outbox.due()
        assert found == [Place(tenant=desk.bench.tenant, webhook=desk.webhook)]

    await look()
    assert await commands(desk.bench, look) == ["EVALSHA"]
    assert len(await desk.send()) == 1
    assert await desk.outbox.due() == []


async def test_an_endpoint_is_due_when_its_next_message_is(desk: Desk) -> None:
    await desk.listen()
    place = Place(tenant=desk.bench.tenant, webhook=desk.webhook)
    member = f"{place.tenant}|{place.webhook}"

    async def until() -> float | None:
        at = await desk.bench.redis.zscore(keys.DUE, member)
        return None if at is None else (at - desk.bench.clock.now) / 1000

    assert await until() is None
    await desk.finished()
    assert await until() == 0
    (taken,) = await desk.outbox.take(place, most=8, seconds=60.0, patience=600.0)
    assert await until() == 60
    await desk.outbox.settle(
        place.tenant, taken, "again", delay=5.0, status=500, error="no", hold=(7.0, 60.0)
    )
    assert await until() == 7, "the endpoint rests"
    desk.bench.clock.forward(7)
    (taken,) = await desk.outbox.take(place, most=8, seconds=60.0, patience=600.0)
    await desk.outbox.settle(
        place.tenant, taken, "failed", delay=0.0, status=500, error="no", hold=(7.0, 60.0)
    )
    assert await until() is None
    await desk.store.redeliver(place.webhook, tenant=place.tenant)
    assert await until() == 0
    await desk.store.delete(place.webhook, tenant=place.tenant)
    assert await until() is None


async def test_messages_that_the_version_before_queued_are_found(desk: Desk) -> None:
    """It kept no list of endpoints that are due, and one of its processes may still run beside this version."""
    await desk.listen()
    await desk.finished()
    redis = desk.bench.redis
    await redis.delete(keys.DUE, keys.LOOKED)
    came = anyio.Event()

    async def arrived() -> None:
        came.set()

    desk.receiver.before = arrived
    delivery = Delivery(HERE)
    async with anyio.create_task_group() as group:
        group.start_soon(Sender(desk.outbox, delivery, pause=0.01).run, forever)
        with anyio.fail_after(90):
            await came.wait()
        group.cancel_scope.cancel()
    await delivery.aclose()
    assert len(desk.receiver.received) == 1
    # the other processes leave the next look to it
    assert not await desk.outbox.is_turn(30.0)
    assert 0 < await redis.pttl(keys.LOOKED) <= 30_000


async def test_a_backlog_at_one_endpoint_delays_no_other_of_the_tenant(desk: Desk) -> None:
    slow = await desk.listen()
    await desk.store.create(f"{desk.receiver.url}2", tenant=desk.bench.tenant)
    jobs = [await desk.finished() for _ in range(20)]
    came = anyio.Event()

    async def before() -> None:
        paths = [one.path for one in desk.receiver.received]
        if paths.count("/hook2") == len(jobs):
            came.set()
        # which request this is for cannot be told: those to the first endpoint are never answered
        if desk.receiver.received[-1].path == "/hook":
            await anyio.sleep_forever()

    desk.receiver.before = before
    delivery = Delivery(HERE)
    async with anyio.create_task_group() as group:
        group.start_soon(Sender(desk.outbox, delivery, pause=0.01).run, forever)
        with anyio.fail_after(90):
            await came.wait()
        group.cancel_scope.cancel()
    await delivery.aclose()
    shown = await desk.store.get(slow, tenant=desk.bench.tenant)
    assert (shown.queued, shown.tried) == (len(jobs), None), "the first attempts are under way"


async def test_a_message_without_a_place_is_left_to_another_process(desk: Desk) -> None:
    """Its lease would run while it waits, and end before it is sent: then it would arrive twice."""
    await desk.listen()
    await desk.store.create(f"{desk.receiver.url}2", tenant=desk.bench.tenant)
    await desk.finished()
    first, second = [one for one in await desk.outbox.due() if one.tenant == desk.bench.tenant]
    asked, waiting = anyio.Event(), anyio.Event()

    async def silent() -> None:
        asked.set()
        await anyio.sleep_forever()

    desk.receiver.before = silent
    delivery = Delivery(HERE)
    sender = Sender(desk.outbox, delivery, places=1)

    async def wait() -> None:
        waiting.set()
        await sender.step(second)

    async with anyio.create_task_group() as group:
        group.start_soon(sender.step, first)
        with anyio.fail_after(90):
            await asked.wait()
            group.start_soon(wait)
            await waiting.wait()
            await anyio.wait_all_tasks_blocked()
        (left,) = await desk.outbox.take(second, most=8, seconds=60.0, patience=PATIENCE)
        assert left.tries == 1
        group.cancel_scope.cancel()
    await delivery.aclose()


async def test_a_message_of_a_newer_version_waits_for_it(
    desk: Desk, caplog: pytest.LogCaptureFixture
) -> None:
    await desk.listen()
    first, second = await desk.finished(), await desk.finished()
    tenant, redis = desk.bench.tenant, desk.bench.redis
    name = f"{keys.prefix(tenant)}webhook:{desk.webhook}:about:{first}"
    known = (await redis.lrange(name, 0, 0))[0]
    await redis.lset(name, 0, json.dumps(json.loads(known) | {"type": "moon.rose"}))
    with caplog.at_level(logging.WARNING):
        (got,) = await desk.send()
    assert got.message["data"]["job"] == second
    assert any(
        "webhook of unknown type" in one.getMessage() and "moon.rose" in str(one.__dict__)
        for one in caplog.records
    )
    shown = await desk.shown()
    assert (shown.queued, shown.failed, shown.error) == (1, 0, None), "no fault of the endpoint"
    # ten looks of this version use no attempt up, and the version that knows the type delivers
    for _ in range(10):
        desk.bench.clock.forward(61)
        assert await desk.send() == []
    left = json.loads((await redis.lrange(name, 0, 0))[0])
    assert left["tries"] == 0
    await redis.lset(name, 0, json.dumps(left | {"type": "job.ended"}))
    desk.bench.clock.forward(61)
    (got,) = await desk.send()
    assert got.message["data"]["job"] == first


async def test_what_a_newer_version_wrote_hides_nothing_else(desk: Desk) -> None:
    await desk.listen()
    tenant, redis = desk.bench.tenant, desk.bench.redis
    name = f"{keys.prefix(tenant)}webhooks"
    record = json.loads(await redis.hget(name, desk.webhook) or "")
    record["events"].append("moon.rose")
    await redis.hset(name, desk.webhook, json.dumps(record))
    assert WebhookEvent.JOB_ENDED in (await desk.shown()).events
    desk.receiver.says(410)
    await desk.finished()
    await desk.send()
    failed = f"{keys.prefix(tenant)}webhook:{desk.webhook}:failed"
    (given_up,) = await redis.lrange(failed, 0, -1)
    await redis.lpush(failed, json.dumps(json.loads(given_up) | {"type": "moon.rose"}))
    (failure,) = (await desk.store.failures(desk.webhook, tenant=tenant)).failures
    assert failure.type == "job.ended"


async def test_waiting_messages_are_counted_with_the_age_of_the_oldest(
    desk: Desk,
) -> None:
    # messages of other tests' tenants would be counted, too
    await desk.bench.redis.flushdb()
    await desk.listen()
    bench, tenant = desk.bench, desk.bench.tenant
    since = f"{keys.prefix(tenant)}webhook:{desk.webhook}:since"

    async def ages() -> list[float]:
        """Seconds for which each subject's first message waits."""
        found: Any = await bench.redis.zrange(since, 0, -1, withscores=True)
        return [(bench.clock.now - score) / 1000 for _, score in found]

    held = await bench.running()
    await bench.worker().fail(held, ERROR)
    bench.clock.forward(30)
    await bench.store.retry(held.unit.job, tenant=tenant)
    await bench.store.cancel(held.unit.job, tenant=tenant)
    assert await ages() == [30], "one subject: its second message comes behind the first"
    assert (await desk.shown()).queued == 2
    before = await metrics.read(bench.store)
    assert before.webhooks.pending == 2
    assert before.webhooks.oldest > 1e6, "the clock of the messages stands in 2023"
    desk.receiver.says(500)
    await desk.send()
    bench.clock.forward(10)
    assert await ages() == [40]
    await desk.send()
    assert await ages() == []
    after = await metrics.read(bench.store)
    grew = after.counters - before.counters
    assert (grew["webhooks|delivered"], grew["webhooks|failed"]) == (2, 1)
    assert after.webhooks == Backlog(pending=0, oldest=0.0)
    # a process of the version before leaves the time of what it delivers
    await bench.redis.zadd(since, {"job_gone": 1.0})
    await desk.outbox.plan(tenant, held=60)
    assert await ages() == []
    # given up, and a paused endpoint's messages have no age
    desk.receiver.says(410)
    await desk.finished()
    await desk.send()
    assert (await metrics.read(bench.store)).counters["webhooks|given_up"] == 1
    await desk.store.redeliver(desk.webhook, tenant=tenant)
    assert (await metrics.read(bench.store)).webhooks.oldest > 0
    await desk.store.pause(desk.webhook, tenant=tenant)
    assert (await metrics.read(bench.store)).webhooks == Backlog(pending=1, oldest=0.0)


async def test_a_clock_that_is_put_back_holds_up_no_new_message(desk: Desk, tenant: str) -> None:
    await desk.listen()
    desk.receiver.says(500)
    await desk.finished()
    await desk.send()
    desk.receiver.says(204)
    waiting = await desk.finished()
    desk.bench.clock.forward(-3 * 3_600)
    fresh = await desk.finished()
    # the hold of the endpoint, and the time of the message, are those of the old time
    assert await desk.send() == []
    for place in await desk.outbox.plan(tenant, held=60):
        await desk.sender.step(place)
    assert {got.message["data"]["job"] for got in desk.receiver.received[1:]} == {waiting, fresh}


@pytest.fixture
async def cluster(tmp_path: Path, redis_url: str) -> AsyncIterator[str]:
    """A node of a cluster that has all slots but that of the list of due endpoints."""
    async with await anyio.create_tcp_listener(local_host="127.0.0.1") as listener:
        port = listener.extra(SocketAttribute.local_port)
    socket = tmp_path / "redis.sock"
    settings = ["--cluster-enabled", "yes", "--cluster-require-full-coverage", "no", "--save", ""]
    command = [str(find_server(os.environ.get("PATH"))), "--port", str(port), "--bind", "127.0.0.1",
               "--unixsocket", str(socket), "--dir", str(tmp_path), *settings]  # fmt: skip
    async with await anyio.open_process(command, stdout=subprocess.DEVNULL) as process:
        try:
            with anyio.fail_after(90):
                while not socket.exists():  # noqa: ASYNC110 - another process makes it
                    await anyio.sleep(0.02)
                async with connect(f"unix://{socket}") as client:
                    redis: Any = client
                    elsewhere = await redis.execute_command("CLUSTER", "KEYSLOT", keys.DUE)
                    slots = (slot for slot in range(16_384) if slot != elsewhere)
                    await redis.execute_command("CLUSTER", "ADDSLOTS", *slots)
                    state = ""
                    while "cluster_state:ok" not in state:
                        await anyio.sleep(0.02)
                        state = str(await redis.execute_command("CLUSTER", "INFO"))
            yield f"unix://{socket}"
        finally:
            process.terminate()


async def test_in_a_cluster_messages_are_found_by_the_look_at_all_endpoints(
    cluster: str, tenant: str
) -> None:
    async with open_desk(cluster, tenant) as desk:
        await desk.listen()
        job = await desk.finished()
        (place,) = await desk.outbox.plan(tenant, held=60)
        assert place == Place(tenant=tenant, webhook=desk.webhook)
        assert await desk.sender.step(place) == 1
        (got,) = desk.receiver.received
        assert got.message["data"]["job"] == job
        assert await desk.outbox.plan(tenant, held=60) == []
