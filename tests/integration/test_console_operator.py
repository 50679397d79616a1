"""The console's pages of operators, and audits: what they show, who sees it, and what their forms change."""

from __future__ import annotations

import re
from decimal import Decimal
from pathlib import Path

import pytest
from redis.asyncio import Redis

from posology.budget.tenants.store import TenantStore
from posology.store import keys
from tests.support.console import HOSTILE, answered, run_job
from tests.support.console_bench import CONSOLE_KEY, HEAVY, Console, check, open_console, token
from tests.support.reports import make_reports

pytestmark = pytest.mark.anyio

KEY = re.compile(r"psl_[0-9a-f]{16}_[0-9a-f]{48}")


async def form(b: Console, path: str) -> dict[str, str]:
    """The fields of the form of limits on a page, as a browser sends them unchanged."""
    text = (await b.http.get(path)).text
    names = r'name="((?:was_)?(?:day|month|total|job|calls|requests_per_minute|tokens_per_minute|queued|stored|models))"'
    found = dict(re.findall(names + r' value="([^"]*)"', text))
    given = re.search(r'name="form_token" value="([0-9a-f]{64})"', text)
    assert given is not None
    return {**found, "form_token": given[1]}


async def test_a_tenant_is_created_limited_and_its_keys_end(
    chief: Console, redis: Redis, redis_url: str, tenant: str
) -> None:
    store, new = TenantStore(redis, redis_url), f"{tenant}-new"
    given = await form(chief, "/console/tenants")
    # the models that are configured, as by the command
    assert given["models"] == "offline:extractive"
    given |= {"name": new, "day": "5", "calls": "8"}
    made = await chief.http.post("/console/tenants", data=given)
    check(made)
    key = KEY.search(made.text)
    assert key is not None
    found = await store.get(new)
    assert found.limits.day == Decimal(5)
    assert found.limits.calls == 8
    assert found.limits.models == ("offline:extractive",)
    again = await chief.http.post("/console/tenants", data=given)
    assert again.status_code == 422
    assert "exists already" in again.text
    assert not KEY.search(again.text)
    # a limit that a command changes meanwhile stays as it is
    path = f"/console/tenants/{new}"
    given = await form(chief, path)
    await store.limit(new, found.limits.__class__(month=Decimal(50)), only=["month"])
    changed = given | {"day": "7.5", "models": "openai:*, offline:extractive", "may_ingest": "yes"}
    assert (await chief.http.post(f"{path}/limits", data=changed)).status_code == 303
    limits = (await store.get(new)).limits
    assert (limits.day, limits.month, limits.calls) == (Decimal("7.5"), Decimal(50), 8)
    assert limits.models == ("openai:*", "offline:extractive")
    assert limits.may_ingest
    for wrong in ({"day": "many"}, {"day": HOSTILE}, {"calls": "0"}, {"models": "x:y"}):
        refused = await chief.http.post(f"{path}/limits", data=given | wrong)
        assert refused.status_code == 422, wrong
        check(refused)
        assert 'role="alert"' in refused.text
    # of two keys one ends
    later = await chief.http.post(f"{path}/rotate", data={**given, "grace": "86400"})
    second = KEY.search(later.text)
    assert second is not None
    first = key[0].split("_")[1]
    ended = await chief.http.post(f"{path}/revoke", data={**given, "key": first})
    assert ended.status_code == 303
    assert (await chief.sign_in(key[0])).status_code == 401
    assert (await chief.sign_in(second[0])).status_code == 303


async def test_a_key_that_does_not_exist_cannot_end(chief: Console, tenant: str) -> None:
    path = f"/console/tenants/{tenant}"
    given = {"form_token": token(await chief.http.get(path)), "key": HOSTILE}
    refused = await chief.http.post(f"{path}/revoke", data=given)
    assert refused.status_code == 422
    check(refused)
    absent = await chief.http.post("/console/tenants/no-such-tenant/revoke", data=given)
    assert absent.status_code == 404


async def test_every_form_of_operators_needs_its_token_and_this_origin(
    chief: Console, redis: Redis, redis_url: str, tenant: str
) -> None:
    path = f"/console/tenants/{tenant}"
    good = token(await chief.http.get(path))
    key = chief.issued.tenant.keys[0].id
    forms = {
        "/console/tenants": {"name": f"{tenant}-evil"},
        f"{path}/limits": {"day": "1", "was_day": "100"},
        f"{path}/rotate": {"grace": "0"},
        f"{path}/revoke": {"key": key},
        f"{path}/switch": {"to": "disabled"},
        f"{path}/audit": {},
    }
    for place, given in forms.items():
        for wrong in ({}, {"form_token": ""}, {"form_token": "0" * 64}):
            reply = await chief.http.post(place, data={"x": "1", **given, **wrong})
            assert reply.status_code == 403, place
        for headers in ({"origin": "https://evil.example"}, {"sec-fetch-site": "cross-site"}):
            data = {**given, "form_token": good}
            reply = await chief.http.post(place, data=data, headers=headers)
            assert reply.status_code == 403, place
    found = await TenantStore(redis, redis_url).get(tenant)
    assert found == chief.issued.tenant
    assert not await redis.exists(f"{keys.prefix(tenant)}audit")


async def test_an_audit_finds_a_counter_that_is_not_the_sum_of_its_entries(
    redis: Redis, redis_url: str, tenant: str
) -> None:
    async with (
        open_console(redis, redis_url, tenant) as b,
        open_console(redis, redis_url, f"{tenant}b") as strange,
    ):
        await b.sign_in()
        await strange.sign_in()
        await run_job(b.store, tenant, out=answered())
        page = await b.http.get("/console/money/ledger")
        check(page)
        assert "No audit was made here." in page.text
        given = {"form_token": token(page)}
        assert (await b.http.post("/console/money/ledger/audit", data=given)).status_code == 303
        page = await b.http.get("/console/money/ledger")
        check(page)
        assert '<span class="state succeeded">correct</span>' in page.text
        assert "sums of 4 entries" in page.text
        await redis.hincrby(f"{keys.prefix(tenant)}money", "spent:total", 7)
        await b.http.post("/console/money/ledger/audit", data=given)
        page = await b.http.get("/console/money/ledger")
        assert "incorrect" in page.text
        assert (
            "money spent:total: counter 3,000,007 ($0.003000), sum of entries 3,000,000 ($0.003000)"
            in page.text
        )
        # nothing of it is another tenant's, and the operator sees it
        other = await strange.http.get("/console/money/ledger")
        assert "No audit was made here." in other.text
        await b.sign_in(CONSOLE_KEY)
        assert "incorrect" in (await b.http.get(f"/console/tenants/{tenant}")).text


async def test_one_audit_of_a_ledger_runs_at_a_time(
    chief: Console, redis: Redis, tenant: str
) -> None:
    await redis.set(f"{keys.prefix(tenant)}audit:running", "1")
    path = f"/console/tenants/{tenant}"
    page = await chief.http.get(path)
    check(page)
    assert "An audit is running." in page.text
    given = {"form_token": token(page)}
    assert (await chief.http.post(f"{path}/audit", data=given)).status_code == 303
    assert not await redis.exists(f"{keys.prefix(tenant)}audit")
    # a result of another version counts as none
    await redis.set(f"{keys.prefix(tenant)}audit", '{"at": 1}')
    assert "No audit was made here." in (await chief.http.get(path)).text


async def test_workers_shows_how_attempts_ended(chief: Console, tenant: str) -> None:
    for _ in range(3):
        await run_job(chief.store, tenant, out=answered())
    page = await chief.http.get("/console/workers")
    check(page)
    assert "openai:gpt-4o-mini" in page.text
    assert "50%" in page.text
    assert re.search(r"\d+ ok, \d+ lost|\d+ lost, \d+ ok", page.text)


@pytest.mark.parametrize("extra", ["", HOSTILE])
async def test_reports_are_shown_and_their_texts_are_inert(
    redis: Redis, redis_url: str, tenant: str, tmp_path: Path, extra: str
) -> None:
    more = {"POSOLOGY_REPORTS": str(make_reports(tmp_path / "reports", extra))}
    async with open_console(redis, redis_url, tenant, **more) as b:
        await b.sign_in(CONSOLE_KEY)
        listed = await b.http.get("/console/reconciliations")
        check(listed)
        assert "$0.4200" in listed.text
        assert "it has another form or version" in listed.text
        for name in ("2026-w44.json", "2026-w45.json", "broken.json"):
            page = await b.http.get(f"/console/reconciliations/{name}")
            check(page)
            assert len(page.content) < HEAVY
        page = await b.http.get("/console/compare")
        check(page)
        assert "router-or-direct" in page.text
        assert "notes.txt" not in page.text
        run = await b.http.get("/console/compare/router-or-direct")
        check(run)
        assert len(run.content) < HEAVY
        assert "Paired differences" in run.text
        assert "-13.0 [-22.0, -4.0]" in run.text
        for name in ("accuracy", "grades", "cost"):
            path = f"/console/compare/router-or-direct/figures/{name}.svg"
            assert path in run.text
            drawn = await b.http.get(path)
            assert drawn.headers["content-type"] == "image/svg+xml"
            assert "unsafe" not in drawn.headers["content-security-policy"]
            assert "<script>" not in drawn.text
            assert "style=" not in drawn.text
        # a tenant does not see them
        await b.sign_in()
        assert "router-or-direct" not in (await b.http.get("/console/compare")).text


async def test_only_the_folders_own_reports_are_read(
    redis: Redis, redis_url: str, tenant: str, tmp_path: Path
) -> None:
    folder = make_reports(tmp_path / "reports")
    make_reports(tmp_path / "secret")
    secret = tmp_path / "secret"
    (folder / "link").symlink_to(secret / "router-or-direct")
    (folder / "link.json").symlink_to(secret / "2026-w44.json")
    (folder / "inner").mkdir()
    (folder / "inner" / "summary.json").symlink_to(secret / "router-or-direct" / "summary.json")
    async with open_console(redis, redis_url, tenant, POSOLOGY_REPORTS=str(folder)) as b:
        await b.sign_in(CONSOLE_KEY)
        for name in ("link", "inner", "..", "..%2Fsecret%2Frouter-or-direct", "%00", "notes.txt"):
            reply = await b.http.get(f"/console/compare/{name}/figures/accuracy.svg")
            assert reply.status_code == 404, name
        for name in ("link.json", "..%2Fsecret%2F2026-w44.json", "notes.txt", "broken"):
            assert (await b.http.get(f"/console/reconciliations/{name}")).status_code == 404, name
        for path in ("compare", "reconciliations"):
            assert "link" not in re.findall(r'href="/console/\w+/([^"]+)"', (await b.http.get(f"/console/{path}")).text)  # fmt: skip
    async with open_console(
        redis, redis_url, f"{tenant}b", POSOLOGY_REPORTS=str(folder / "none")
    ) as b:
        await b.sign_in(CONSOLE_KEY)
        assert (await b.http.get("/console/reconciliations")).status_code == 503
        compare = await b.http.get("/console/compare")
        assert compare.status_code == 200
        assert "the folder of POSOLOGY_REPORTS: No such file" in compare.text
