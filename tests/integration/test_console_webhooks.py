"""The console's pages of webhooks: what they show and hide, who sees it, and what their forms change."""

from __future__ import annotations

import re

import pytest
from redis.asyncio import Redis

from orchestrator.console.webhooks.endpoints import without_secrets
from orchestrator.webhooks.outbox import Outbox
from orchestrator.webhooks.store import MAX_ENDPOINTS, WebhookStore
from posology.published.webhooks.messages import DEFAULT_EVENTS
from posology.store import keys
from tests.support.console import HOSTILE, answered, run_job
from tests.support.console_bench import CONSOLE_KEY, HEAVY, Console, check, open_console, token

pytestmark = pytest.mark.anyio

SECRET = re.compile(r"whsec_[A-Za-z0-9+/=]{40,}")
LIST = "/console/webhooks"
URL = "https://example.org/hook/T0123456789ABCDEFGHIJKLMN?token=s3cr3t-of-the-receiver"
FORMS = {"rotate": {"overlap": "3600"}, "test": {}, "redeliver": {}, "switch": {"to": "paused"}, "remove": {}}  # fmt: skip


async def added(b: Console, url: str = URL) -> str:
    """Add an endpoint by the form, and return the path of its page."""
    given = {"form_token": token(await b.http.get(LIST)), "url": url, "job.ended": "yes"}
    made = await b.http.post(LIST, data=given)
    check(made)
    assert SECRET.search(made.text), made.text
    found = re.search(r"wh_[0-9a-f]{28}", made.text)
    assert found is not None
    return f"{LIST}/{found[0]}"


async def fail_all(b: Console, error: str = "no") -> None:
    """Give up every message that is due."""
    tenant, outbox = b.issued.tenant.name, Outbox(b.store)
    for place in await outbox.plan(tenant, held=60):
        for due in await outbox.take(place, most=500, seconds=60, patience=600):
            await outbox.settle(
                tenant, due, "failed", delay=0, status=500, error=error, hold=(0.0, 0.0)
            )


async def test_an_endpoint_is_added_tested_paused_and_removed(user: Console, tenant: str) -> None:
    empty = await user.http.get(LIST)
    check(empty)
    assert "No endpoints" in empty.text
    chosen = set(re.findall(r'name="([a-z_.]+)" value="yes" checked', empty.text))
    assert chosen == {event.value for event in DEFAULT_EVENTS}
    path = await added(user)
    store = WebhookStore(user.store)
    (one,) = await store.all(tenant=tenant)
    assert [event.value for event in one.events] == ["job.ended"]
    page = await user.http.get(path)
    check(page)
    assert not SECRET.search(page.text), "the secret is shown once"
    given = {"form_token": token(page)}
    rotated = await user.http.post(f"{path}/rotate", data=given | {"overlap": "86400"})
    assert SECRET.search(rotated.text)
    assert "2 secrets sign" in rotated.text
    assert (await user.http.post(f"{path}/rotate", data=given | {"overlap": "7"})).status_code == 422  # fmt: skip
    assert (await user.http.post(f"{path}/switch", data=given | {"to": "paused"})).status_code == 303  # fmt: skip
    assert (await user.http.post(f"{path}/test", data=given)).status_code == 303
    assert ">paused<" in (await user.http.get(LIST)).text
    assert await Outbox(user.store).plan(tenant, held=60) == [], "its messages wait"
    await user.http.post(f"{path}/switch", data=given | {"to": "resumed"})
    assert len(await Outbox(user.store).plan(tenant, held=60)) == 1
    await fail_all(user, "status 500: out of order")
    failed = await user.http.get(path)
    check(failed)
    for part in ("webhook.test", "status 500: out of order"):
        assert part in failed.text
    assert (await user.http.post(f"{path}/redeliver", data=given)).status_code == 303
    again = await store.get(one.id, tenant=tenant)
    assert again.queued == 1
    removed = await user.http.post(f"{path}/remove", data=given)
    assert removed.headers["location"] == LIST
    assert await store.all(tenant=tenant) == ()
    assert (await user.http.get(path)).status_code == 404


async def test_addresses_that_cannot_be_used_are_refused_in_the_form(user: Console) -> None:
    given = {"form_token": token(await user.http.get(LIST)), "job.ended": "yes"}
    for wrong in ("", "http://example.org/", "https://127.0.0.1/", HOSTILE, "x" * 3_000):
        refused = await user.http.post(LIST, data=given | {"url": wrong})
        assert refused.status_code == 422, wrong
        check(refused)
        assert 'role="alert"' in refused.text
    nothing = await user.http.post(LIST, data={"form_token": given["form_token"], "url": URL})
    assert nothing.status_code == 422, "no type of message is chosen"
    assert URL in nothing.text.replace("&amp;", "&"), "what was written is not lost"
    for _ in range(MAX_ENDPOINTS):
        await added(user)
    full = await user.http.get(LIST)
    assert "remove another" in full.text
    assert (await user.http.post(LIST, data=given | {"url": URL})).status_code == 422


async def test_pages_hide_secrets_of_addresses_and_obey_no_text(
    user: Console, redis: Redis, tenant: str
) -> None:
    path = await added(user)
    await run_job(user.store, tenant, question=HOSTILE, out=answered(HOSTILE))
    await fail_all(user, HOSTILE)
    name = f"{keys.prefix(tenant)}webhooks"
    for page in (LIST, path):
        shown = await user.http.get(page)
        check(shown)
        for secret in ("s3cr3t", "0123456789ABCDEF", "whsec_"):
            assert secret not in shown.text, secret
        assert "https://example.org/hook/T012…?token=…" in shown.text
    # such an address is refused today, and one of before is still not shown
    record = str(await redis.hget(name, path.rpartition("/")[2]))
    await redis.hset(name, path.rpartition("/")[2], record.replace("https://", "https://me:pw@"))
    assert "me:pw" not in (await user.http.get(LIST)).text


@pytest.mark.parametrize(
    ("url", "shown"),
    [
        ("https://me:pw@example.org:8443/a/b#c", "https://example.org:8443/a/b"),
        ("https://example.org/?a=1&key&b=2", "https://example.org/?a=…&…&b=…"),
        ("https://example.org/?" + "k" * 30 + "=1", "https://example.org/?kkkk…=…"),
        ("https://[::1", "…"),
    ],
)
def test_an_address_without_its_secrets(url: str, shown: str) -> None:
    assert without_secrets(url) == shown


async def test_endpoints_are_their_tenants_alone_and_forms_need_token_and_origin(
    redis: Redis, redis_url: str, tenant: str
) -> None:
    async with (
        open_console(redis, redis_url, tenant) as b,
        open_console(redis, redis_url, f"{tenant}b") as strange,
    ):
        await b.sign_in()
        await strange.sign_in()
        path, good = await added(b), token(await b.http.get(LIST))
        before = await WebhookStore(b.store).all(tenant=tenant)
        theirs = token(await strange.http.get(LIST))
        assert (await strange.http.get(path)).status_code == 404
        for form, given in FORMS.items():
            place = f"{path}/{form}"
            reply = await strange.http.post(place, data=given | {"form_token": theirs})
            assert reply.status_code == 404, form
            for wrong in ({}, {"form_token": ""}, {"form_token": theirs}):
                assert (await b.http.post(place, data={"x": "1", **given, **wrong})).status_code == 403  # fmt: skip
            for headers in ({"origin": "https://evil.example"}, {"sec-fetch-site": "cross-site"}):
                data = {**given, "form_token": good}
                assert (await b.http.post(place, data=data, headers=headers)).status_code == 403
        evil = await b.http.post(LIST, data={"url": URL, "job.ended": "yes", "form_token": theirs})
        assert evil.status_code == 403
        assert await WebhookStore(b.store).all(tenant=tenant) == before
        await b.sign_in(CONSOLE_KEY)
        assert (await b.http.get(LIST)).status_code == 403, "an operator has no endpoints"


async def test_failures_are_read_page_by_page(user: Console, redis: Redis, tenant: str) -> None:
    path = await added(user)
    store, webhook = WebhookStore(user.store), path.rpartition("/")[2]

    async def cost() -> int:
        await user.http.get(path)
        before = int((await redis.info("stats"))["total_commands_processed"])
        check(await user.http.get(path))
        return int((await redis.info("stats"))["total_commands_processed"]) - before

    few = await cost()
    for _ in range(45):
        await store.test(webhook, tenant=tenant)
        await fail_all(user, HOSTILE)
    assert await cost() <= few + 2
    seen, at = 0, path
    while at:
        page = await user.http.get(at)
        assert len(page.content) < HEAVY
        seen += page.text.count("webhook.test</td>")
        more = re.search(rf'href="({path}\?after=[^"]+)"', page.text)
        at = more[1] if more else ""
    assert seen == 45
    assert (await user.http.get(f"{path}?after=x")).status_code == 422
