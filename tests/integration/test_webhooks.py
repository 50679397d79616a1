"""Webhooks: events become signed requests, at least once, in order, and never to a private address."""

from __future__ import annotations

import json
import sys
from collections.abc import Awaitable, Callable
from decimal import Decimal
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import anyio
import pytest
from standardwebhooks import Webhook, WebhookVerificationError

from orchestrator.jobs.batches import Batches
from orchestrator.jobs.scripts import FAILURES, MESSAGES
from orchestrator.settings import Settings
from orchestrator.webhooks.delivery import KEPT, Delivery
from orchestrator.webhooks.store import MAX_ENDPOINTS, WebhookStore
from posology.budget.tenants.alerts import near_limits
from posology.errors import InvalidQuery, WebhookNotFound
from posology.published.answers import Status
from posology.published.webhooks.messages import DEFAULT_EVENTS, WebhookEvent
from posology.store import keys
from tests.integration.jobs_store.helpers import ERROR, answer
from tests.support.desk import HERE, Desk, commands, open_desk
from tests.support.receiver import Received
from workers.engine.maintenance import is_first_warning
from workers.engine.webhooks import PATIENCE, SCHEDULE, Sender

pytestmark = pytest.mark.anyio

ROOT = Path(__file__).resolve().parents[2]
EVERYTHING = (*DEFAULT_EVENTS, WebhookEvent.ROW_ENDED)


def verified(one: Received, secret: str) -> dict[str, Any]:
    """What the standard's own library makes of a request."""
    found: dict[str, Any] = Webhook(secret).verify(one.body, one.headers)
    return found


async def test_a_job_that_ended_is_told_with_a_signature(desk: Desk) -> None:
    await desk.listen()
    job = await desk.finished()
    (got,) = await desk.send()
    assert verified(got, desk.secret) == {
        "type": "job.ended",
        "timestamp": "2023-11-14T22:13:20Z",
        "data": {
            "tenant": desk.bench.tenant,
            "job": job,
            "batch": None,
            "row": None,
            "state": "succeeded",
            "status": "refused",
            "error": None,
            "known_cost_usd": "0.001",
            "unknown_costs": 0,
            "charged_usd": "0.001",
        },
    }
    assert got.headers["content-type"] == "application/json"
    assert got.headers["host"] == f"127.0.0.1:{desk.receiver.port}"
    with pytest.raises(WebhookVerificationError):
        Webhook("whsec_" + "A" * 43 + "=").verify(got.body, got.headers)
    shown = await desk.shown()
    assert (shown.queued, shown.delivered, shown.failed, shown.status, shown.error) == (
        0, 1, 0, 204, None,
    )  # fmt: skip
    assert await desk.send() == []


async def test_every_end_of_a_job_is_told(desk: Desk) -> None:
    await desk.listen()
    bench = desk.bench
    held = await bench.running()
    await bench.worker().fail(held, ERROR)
    waiting = await bench.submit()
    await bench.store.cancel(waiting, tenant=bench.tenant)
    late = await bench.submit()
    bench.clock.forward(1_000)
    await bench.sweep()
    got = [one.message["data"] for one in await desk.send()]
    ends = {one["job"]: (one["state"], one["status"], one["error"]) for one in got}
    assert ends == {
        held.unit.job: ("failed", None, "ProviderUnreachable"),
        waiting: ("cancelled", None, None),
        late: ("expired", None, "DeadlineExceeded"),
    }


async def test_a_batch_is_told_once_when_its_last_row_has_ended(desk: Desk) -> None:
    await desk.listen()
    store, tenant = desk.bench.store, desk.bench.tenant
    batches = Batches(store, Settings())
    rows = [b'{"question": "Does it?"}\n', b'{"question": ""}\n', b'{"question": "Did it?"}\n']
    made = await batches.submit(rows, tenant=tenant)
    for left in (1, 0):
        unit = await desk.bench.worker().take(tenant)
        assert unit is not None
        held = await desk.bench.claimed(unit.job)
        await desk.bench.worker().succeed(held, answer())
        got = await desk.send()
        assert bool(got) is (left == 0)
    assert got[0].message["type"] == "batch.ended"
    told = got[0].message["data"]
    assert told == {
        "tenant": tenant,
        "batch": made.id,
        "cancelled": False,
        "total": 3,
        "rejected": 1,
        "states": {"succeeded": 2},
        "known_cost_usd": "0",
        "unknown_costs": 0,
    }


async def test_rows_are_told_to_those_who_ask_and_a_cancelled_batch_ends(desk: Desk) -> None:
    await desk.listen(WebhookEvent.ROW_ENDED, WebhookEvent.BATCH_ENDED)
    tenant = desk.bench.tenant
    batches = Batches(desk.bench.store, Settings())
    made = await batches.submit([b'{"question": "Does it?"}\n'] * 3, tenant=tenant)
    held = await desk.bench.claimed((await batches.rows(made.id, tenant=tenant))[0].job or "")
    await batches.cancel(made.id, tenant=tenant)
    got = [one.message for one in await desk.send()]
    assert {(one["type"], one["data"].get("row")) for one in got} == {
        ("row.ended", 1), ("row.ended", 2),
    }  # fmt: skip
    await desk.bench.worker().release(held)
    batch, row = sorted(
        (one.message for one in await desk.send()), key=lambda one: -len(one["type"])
    )
    assert (batch["type"], batch["data"]["cancelled"]) == ("batch.ended", True)
    assert batch["data"]["states"] == {"cancelled": 3}
    assert (row["data"]["row"], row["data"]["batch"]) == (0, made.id)
    # one of rejected rows alone has ended when it was submitted
    empty = await batches.submit([b"no json\n"], tenant=tenant)
    (got_,) = await desk.send()
    assert (got_.message["data"]["batch"], got_.message["data"]["rejected"]) == (empty.id, 1)


async def test_a_limit_at_80_percent_is_told_once(desk: Desk) -> None:
    await desk.listen()
    bench = desk.bench
    held = await bench.running()
    await bench.open(held, "a1")
    await bench.close(held, "a1", cost=Decimal("0.8"))
    await bench.redis.hset(f"{keys.prefix(bench.tenant)}tenant", "total", "1000000000")
    (near,) = await near_limits(bench.redis, bench.url, [bench.tenant])
    assert [await is_first_warning(bench.store, near) for _ in range(3)] == [True, False, False]
    (got,) = await desk.send()
    assert got.message["data"] == {
        "tenant": bench.tenant, "scope": "total", "window": "total", "cap_usd": "1", "spent_usd": "0.8",
    }  # fmt: skip


async def test_a_retraction_is_told_without_texts(desk: Desk) -> None:
    await desk.listen()
    job = await desk.finished(Status.ANSWERED)
    change = {
        "passage": "pmid:1", "title": "Zyxomab in lattice fever", "kind": "retracted",
        "source": "retraction-watch", "by": "doi:10.1/2", "date": "2026-01-20", "lost_quotes": ["zyxomab"],
    }  # fmt: skip
    for said in ("told", "known"):
        found = await desk.bench.store.run(
            "tell_change", keys.prefix(desk.bench.tenant), job, "told:1", json.dumps(change)
        )
        assert found == said
    ended, got = await desk.send()
    assert ended.message["type"] == "job.ended"
    assert got.message["data"] == {
        "tenant": desk.bench.tenant, "job": job, "batch": None, "passage": "pmid:1", "kind": "retracted",
        "source": "retraction-watch", "by": "doi:10.1/2", "date": "2026-01-20",
    }  # fmt: skip


async def test_a_failure_is_repeated_by_the_schedule_with_the_same_id(desk: Desk) -> None:
    await desk.listen()
    await desk.finished()
    tries = len(SCHEDULE) + 1
    desk.receiver.says(*[500] * tries, body=b"out of\x1b[31m order " + b"x" * 5_000)
    waited = 0.0
    for wait in (*SCHEDULE, None):
        (got,) = await desk.send()
        verified(got, desk.secret)
        shown = await desk.shown()
        assert shown.status == 500
        assert shown.error is not None
        assert shown.error.startswith("status 500: out of [31m order x")
        assert len(shown.error) <= KEPT
        if wait is not None:
            assert shown.queued == 1
            # jitter is added to the schedule, never taken from it
            desk.bench.clock.forward(wait - 1)
            assert await desk.send() == []
            desk.bench.clock.forward(1 + 0.1 * wait + 1)
            waited += wait
    assert len(set(desk.receiver.ids)) == 1
    assert len(desk.receiver.ids) == tries
    assert waited < PATIENCE
    (failure,) = (await desk.store.failures(desk.webhook, tenant=desk.bench.tenant)).failures
    assert (failure.tries, failure.status, failure.message) == (tries, 500, desk.receiver.ids[0])
    assert (await desk.shown()).failed == 1
    # it is sent again on demand, as the same message
    assert await desk.store.redeliver(desk.webhook, tenant=desk.bench.tenant) == 1
    (again,) = await desk.send()
    assert again.headers["webhook-id"] == failure.message
    assert (await desk.store.failures(desk.webhook, tenant=desk.bench.tenant)).failures == ()


async def test_messages_about_one_job_come_in_order_and_others_overtake(desk: Desk) -> None:
    await desk.listen()
    bench = desk.bench
    held = await bench.running()
    job = held.unit.job
    await bench.worker().fail(held, ERROR)
    desk.receiver.says(503)
    (first,) = await desk.send()
    # the second end of the same job waits for the first to arrive
    await bench.store.retry(job, tenant=bench.tenant)
    await bench.store.cancel(job, tenant=bench.tenant)
    other = await bench.submit()
    await bench.store.cancel(other, tenant=bench.tenant)
    bench.clock.forward(2)
    (overtook,) = await desk.send()
    assert overtook.message["data"]["job"] == other
    bench.clock.forward(10)
    told = [one.message["data"] for one in await desk.send()]
    assert [(one["job"], one["state"]) for one in told] == [(job, "failed"), (job, "cancelled")]
    assert desk.receiver.ids[2] == first.headers["webhook-id"]


async def test_a_failing_endpoint_rests_and_asks_for_more(desk: Desk) -> None:
    await desk.listen()
    desk.receiver.says(429, retry_after="900")
    await desk.finished()
    await desk.send()
    await desk.finished()
    assert await desk.send() == [], "the endpoint rests"
    desk.bench.clock.forward(890)
    assert len(await desk.send()) == 1, "the other message"
    desk.bench.clock.forward(110)
    (got,) = await desk.send()
    assert got.headers["webhook-id"] == desk.receiver.ids[0]


async def test_an_endpoint_that_is_gone_is_disabled_until_someone_says_otherwise(
    desk: Desk,
) -> None:
    await desk.listen()
    await desk.finished()
    await desk.send()
    await desk.finished()
    desk.receiver.says(410)
    await desk.send()
    assert (await desk.shown()).disabled is not None
    await desk.finished()
    assert await desk.send() == []
    assert (await desk.shown()).queued == 0, "a disabled endpoint is owed nothing"
    assert await desk.store.redeliver(desk.webhook, tenant=desk.bench.tenant) == 1
    assert (await desk.shown()).disabled is None
    assert len(await desk.send()) == 1


async def test_two_secrets_sign_after_a_rotation_until_the_old_one_ends(desk: Desk) -> None:
    await desk.listen()
    old = desk.secret
    shown, new = await desk.store.rotate(desk.webhook, tenant=desk.bench.tenant)
    assert shown.secrets == 2
    await desk.finished()
    (got,) = await desk.send()
    assert len(got.headers["webhook-signature"].split(" ")) == 2
    assert verified(got, old) == verified(got, new)
    shown, newest = await desk.store.rotate(desk.webhook, tenant=desk.bench.tenant, overlap=0)
    assert shown.secrets == 1
    await desk.finished()
    (got,) = await desk.send()
    verified(got, newest)
    with pytest.raises(WebhookVerificationError):
        verified(got, new)
    for wrong in (-1.0, 10.0**9, float("nan")):
        with pytest.raises(InvalidQuery):
            await desk.store.rotate(desk.webhook, tenant=desk.bench.tenant, overlap=wrong)


def interrupted(desk: Desk, between: Callable[[], Awaitable[object]]) -> WebhookStore:
    """The same endpoints, with something else done by others just before each script."""
    real = desk.bench.store

    async def run(*given: Any) -> Any:
        await between()
        return await real.run(*given)

    beside = SimpleNamespace(redis=real.redis, url=real.url, run=run)
    return WebhookStore(cast("Any", beside), HERE)


async def test_a_secret_that_is_rotated_during_a_redelivery_stays(desk: Desk) -> None:
    await desk.listen()
    tenant = desk.bench.tenant
    desk.receiver.says(410)
    await desk.finished()
    await desk.send()

    async def rotate() -> None:
        _, desk.secret = await desk.store.rotate(desk.webhook, tenant=tenant, overlap=0)

    assert await interrupted(desk, rotate).redeliver(desk.webhook, tenant=tenant) == 1
    (got,) = await desk.send()
    assert verified(got, desk.secret)["type"] == "job.ended"
    with pytest.raises(WebhookNotFound):
        await desk.store.redeliver("wh_other", tenant=tenant)


async def test_a_sender_that_looks_while_an_endpoint_is_made_finds_it_later(desk: Desk) -> None:
    making = interrupted(desk, desk.outbox.tenants)
    await making.create(desk.receiver.url, tenant=desk.bench.tenant)
    assert desk.bench.tenant in await desk.outbox.tenants()


async def test_a_damaged_message_stops_no_other(
    desk: Desk, caplog: pytest.LogCaptureFixture
) -> None:
    await desk.listen()
    first, second = await desk.finished(), await desk.finished()
    name = f"{keys.prefix(desk.bench.tenant)}webhook:{desk.webhook}:about:{first}"
    damaged = json.loads((await desk.bench.redis.lrange(name, 0, 0))[0]) | {"data": {}}
    await desk.bench.redis.lset(name, 0, json.dumps(damaged))
    (got,) = await desk.send()
    assert verified(got, desk.secret)["data"]["job"] == second
    assert damaged["id"] in caplog.text
    assert (await desk.shown()).queued == 1


async def test_what_a_killed_sender_took_is_sent_by_another(desk: Desk, redis_url: str) -> None:
    """The sender is killed while the receiver has its request and has not answered."""
    await desk.listen()
    await desk.finished()
    arrived, killed = anyio.Event(), anyio.Event()

    async def before() -> None:
        arrived.set()
        await killed.wait()

    desk.receiver.before = before
    # the script's clock is the test's, so the process gets it
    program = KILLED.format(
        url=redis_url, tenant=desk.bench.tenant, webhook=desk.webhook, now=desk.bench.clock.now
    )
    process = await anyio.open_process([sys.executable, "-c", program], cwd=ROOT)
    try:
        with anyio.fail_after(90):
            await arrived.wait()
    finally:
        process.kill()
        await process.wait()
    killed.set()
    desk.receiver.before = None
    assert await desk.send() == [], "it may be on its way"
    desk.bench.clock.forward(61)
    (got,) = await desk.send()
    assert got.headers["webhook-id"] == desk.receiver.ids[0]
    assert len(desk.receiver.ids) == 2
    assert (await desk.shown()).delivered == 1


KILLED = """
import anyio
from ipaddress import ip_network
from orchestrator.jobs.store import JobStore
from orchestrator.webhooks.delivery import Delivery
from orchestrator.webhooks.outbox import Outbox, Place
from posology.store.connection import connect
from workers.engine.webhooks import Sender

async def main():
    store = JobStore(connect("{url}"), "{url}", clock=lambda: {now})
    allowed = (ip_network("127.0.0.0/8"),)
    place = Place(tenant="{tenant}", webhook="{webhook}")
    await Sender(Outbox(store), Delivery(allowed, timeout=300)).step(place)

anyio.run(main)
"""


async def test_a_full_queue_buries_what_is_too_much(desk: Desk) -> None:
    await desk.listen()
    name = f"{keys.prefix(desk.bench.tenant)}webhook:{desk.webhook}"
    await desk.bench.redis.hset(name, "queued", MESSAGES)
    # another endpoint gets the same message all the same
    await desk.store.create(f"{desk.receiver.url}2", tenant=desk.bench.tenant)
    job = await desk.finished()
    assert [one.path for one in await desk.send()] == ["/hook2"]
    (failure,) = (await desk.store.failures(desk.webhook, tenant=desk.bench.tenant)).failures
    assert (failure.subject, failure.tries) == (job, 0)
    assert "full" in failure.error
    await desk.bench.redis.lpush(f"{name}:failed", *["{}"] * FAILURES)
    await desk.finished()
    assert await desk.bench.redis.llen(f"{name}:failed") == FAILURES


async def test_a_message_that_is_too_old_is_given_up(desk: Desk) -> None:
    await desk.listen()
    await desk.finished()
    desk.bench.clock.forward(PATIENCE + 1)
    assert await desk.send() == []
    assert (await desk.shown()).failed == 1


async def test_endpoints_are_few_and_their_addresses_sound(desk: Desk) -> None:
    store, tenant = desk.store, desk.bench.tenant
    for url in (
        "ftp://example.org", "https://", "https://me:pw@example.org/", "https://example.org/#a", "nothing",
        "https://example.org/a b", "https://exämple.org/", "https://[::1", "https://example.org:99999/",
        "https://10.0.0.1/", "https://[fe80::1]/", "https://" + "a" * 2_000,
    ):  # fmt: skip
        with pytest.raises(InvalidQuery):
            await store.create(url, tenant=tenant)
    with pytest.raises(InvalidQuery, match="https"):
        await WebhookStore(desk.bench.store).create("http://example.org/", tenant=tenant)
    for events in ((), (WebhookEvent.TEST,)):
        with pytest.raises(InvalidQuery):
            await store.create(desk.receiver.url, tenant=tenant, events=events)
    made = [(await store.create(desk.receiver.url, tenant=tenant))[0] for _ in range(MAX_ENDPOINTS)]
    with pytest.raises(InvalidQuery, match="maximum"):
        await store.create(desk.receiver.url, tenant=tenant)
    assert {one.id for one in await store.all(tenant=tenant)} == {one.id for one in made}
    assert tenant in await desk.outbox.tenants()
    await desk.finished()
    for one in made:
        await store.delete(one.id, tenant=tenant)
    with pytest.raises(WebhookNotFound):
        await store.delete(made[0].id, tenant=tenant)
    assert tenant not in await desk.outbox.tenants()
    left = [
        name async for name in desk.bench.redis.scan_iter(match=f"{keys.prefix(tenant)}webhook*")
    ]
    assert left == []
    assert await desk.send() == []


async def test_a_test_reaches_its_endpoint_whatever_it_listens_to(desk: Desk) -> None:
    await desk.listen(WebhookEvent.BATCH_ENDED)
    message = await desk.store.test(desk.webhook, tenant=desk.bench.tenant)
    await desk.finished()
    (got,) = await desk.send()
    assert got.headers["webhook-id"] == message
    assert verified(got, desk.secret)["data"]["webhook"] == desk.webhook
    with pytest.raises(WebhookNotFound):
        await desk.store.test("wh_1", tenant=desk.bench.tenant)


async def test_a_sender_finds_tenants_and_a_silent_endpoint_delays_no_other(
    redis_url: str, tenant: str
) -> None:
    async with (
        open_desk(redis_url, f"{tenant}-a") as slow,
        open_desk(redis_url, f"{tenant}-b") as quick,
    ):
        for one in (slow, quick):
            await one.listen()
            await one.finished()
        asked, came = anyio.Event(), anyio.Semaphore(0)

        async def silent() -> None:
            asked.set()
            await anyio.sleep_forever()

        async def arrived() -> None:
            came.release()

        slow.receiver.before, quick.receiver.before = silent, arrived

        async def forever(step: Any) -> None:
            while True:
                await step()

        delivery = Delivery(HERE)
        sender = Sender(slow.outbox, delivery, pause=0.01)
        async with anyio.create_task_group() as group:
            group.start_soon(sender.run, forever)
            with anyio.fail_after(90):
                await asked.wait()
                for _ in range(2):
                    await came.acquire()
                    await quick.finished()
            assert len(slow.receiver.received) == 1
            group.cancel_scope.cancel()
        await delivery.aclose()


async def test_an_end_of_a_job_costs_no_round_trip(desk: Desk) -> None:
    """The same commands with endpoints and without: what is to be told is queued by the script that ends the job."""
    await desk.finished()
    without = await commands(desk.bench, desk.finished)
    await desk.listen(*EVERYTHING)
    assert await commands(desk.bench, desk.finished) == without
    assert len(await desk.send()) == 1
