"""The console's pages on a real Redis: who sees them, what guards them, and that no text is obeyed."""

from __future__ import annotations

import json
import re
from decimal import Decimal
from pathlib import Path

import anyio
import httpx2
import pytest
from fastapi import FastAPI
from redis.asyncio import Redis
from starlette.types import Receive, Scope, Send

from orchestrator.api.app import create_app
from orchestrator.console.sessions import FAILURES, MOST, Session, Sessions, place
from orchestrator.question.request import JobRequest
from orchestrator.settings import Settings
from posology.budget.tenants.store import TenantStore
from posology.index.store import Index
from posology.store import keys
from tests.support.console import HOSTILE, QUESTION, QUOTE, answered, make_index, run_job
from tests.support.console_bench import CONSOLE_KEY, HEAVY, Console, check, open_console, token

pytestmark = pytest.mark.anyio


async def test_without_a_session_every_page_leads_to_the_sign_in(visitor: Console) -> None:
    for path in ("/console/jobs?state=failed", "/console/jobs/job_1", "/console/jobs/job_1/events"):  # fmt: skip
        reply = await visitor.http.get(path)
        assert reply.status_code == 303
        assert reply.headers["location"].startswith("/console/sign-in?to=%2Fconsole%2Fjobs")
    part = await visitor.http.post("/console/ask/estimate", headers={"hx-request": "true"})
    assert part.headers["hx-redirect"] == "/console/sign-in"
    wrong = await visitor.sign_in("psl_" + "0" * 16 + "_" + "0" * 48)
    assert wrong.status_code == 401
    assert "not accepted" in wrong.text
    right = await visitor.sign_in(to="/console/jobs?state=failed")
    assert right.status_code == 303
    assert right.headers["location"] == "/console/jobs?state=failed"
    assert (await visitor.http.get("/console/jobs")).status_code == 200


async def test_the_cookie_is_for_the_console_alone_and_no_script(
    visitor: Console, redis: Redis
) -> None:
    cookie = (await visitor.sign_in()).headers["set-cookie"].lower()
    for part in ("httponly", "samesite=strict", "path=/console", "max-age="):
        assert part in cookie
    assert "secure" not in cookie
    value = visitor.http.cookies["posology_console"]
    assert visitor.issued.key not in value
    # the API's operations do not know it, and it is not stored as it is
    assert (await visitor.http.get("/v1/jobs", headers={"cookie": cookie})).status_code == 401
    names = [name async for name in redis.scan_iter(match="posology:console:*")]
    assert names
    assert not any(value in name for name in names)


async def test_keys_are_not_guessed(visitor: Console, redis: Redis) -> None:
    # those of a person who types
    for _ in range(3):
        assert (await visitor.sign_in("wrong")).status_code == 401
        assert (await visitor.sign_in()).status_code == 303
    visitor.http.cookies.clear()
    page = await visitor.http.get("/console/sign-in")
    given = {"form_token": token(page), "key": "wrong"}
    statuses: list[int] = []

    async def guess() -> None:
        statuses.append((await visitor.http.post("/console/sign-in", data=given)).status_code)

    async with anyio.create_task_group() as group:
        for _ in range(40):
            group.start_soon(guess)
    # of all that race, as many as are allowed are looked at
    assert (statuses.count(401), statuses.count(429)) == (FAILURES - 3, 40 - (FAILURES - 3))
    refused = await visitor.http.post("/console/sign-in", data=given | {"key": CONSOLE_KEY})
    assert refused.status_code == 429
    assert int(refused.headers["retry-after"]) > 0
    # another address is not kept out
    other = httpx2.ASGITransport(visitor.app, client=("192.0.2.7", 1))
    async with httpx2.AsyncClient(transport=other, base_url="http://localhost") as http:
        there = Console(http=http, store=visitor.store, issued=visitor.issued, app=visitor.app)
        assert (await there.sign_in()).status_code == 303
        await redis.delete(keys.console_failures("127.0.0.1"))
        assert (await visitor.sign_in()).status_code == 303


@pytest.mark.parametrize(
    ("address", "counted"),
    [("192.0.2.7", "192.0.2.7"), ("2001:db8:1:2:3:4:5:6", "2001:db8:1:2::"), ("::ffff:192.0.2.7", "192.0.2.7"),
     ("::1", "::"), ("unknown", "unknown")],
)  # fmt: skip
def test_addresses_that_one_client_has_are_counted_as_one(address: str, counted: str) -> None:
    assert place(address) == counted


async def test_a_sign_in_that_outlasts_its_window_leaves_a_count_that_ends(
    redis: Redis, redis_url: str
) -> None:
    sessions, name = Sessions(redis, redis_url), keys.console_failures("192.0.2.7")
    async with sessions.trying("192.0.2.7"):
        assert await redis.get(name) in ("1", b"1")
        await redis.delete(name)
    assert await redis.get(name) in ("0", b"0")
    assert await redis.ttl(name) > 0


async def test_a_tenant_has_only_so_many_sessions(
    visitor: Console, redis: Redis, redis_url: str, tenant: str
) -> None:
    sessions = Sessions(redis, redis_url)
    operators = await sessions.begin(Session(tenant=None, key="k"))
    made = [await sessions.begin(Session(tenant=tenant, key="k")) for _ in range(MOST + 2)]
    await sessions.end(made[-1])
    made.append(await sessions.begin(Session(tenant=tenant, key="k")))
    found = [await sessions.find(one) is not None for one in made]
    assert found == [False, False, *[True] * (MOST - 1), False, True]
    assert await sessions.find(operators) is not None
    assert (await visitor.sign_in()).status_code == 303


@pytest.mark.parametrize(
    ("address", "more", "secure"),
    [
        ("https://localhost", {}, True),
        ("http://localhost:8000", {}, False),
        ("http://127.0.0.1:8000", {}, False),
        ("http://[::1]:8000", {}, False),
        # a proxy ends TLS, and its headers are not believed
        ("http://console.example", {}, True),
        ("http://10.0.0.7:8000", {}, True),
        ("http://localhost.evil.example", {}, True),
        ("http://console.example", {"POSOLOGY_CONSOLE_SECURE": "false"}, False),
        ("http://localhost", {"POSOLOGY_CONSOLE_SECURE": "true"}, True),
    ],
)
async def test_the_cookie_goes_over_tls_alone_unless_the_console_is_on_this_machine(
    redis: Redis, redis_url: str, tenant: str, address: str, more: dict[str, str], secure: bool
) -> None:
    async with open_console(redis, redis_url, tenant, **more) as b:
        b.http.base_url = httpx2.URL(address)
        page = await b.http.get("/console/sign-in")
        assert ("secure" in page.headers["set-cookie"].lower()) == secure
        if secure and not address.startswith("https:"):
            # a browser keeps no such cookie
            b.http.cookies.clear()
            refused = await b.http.post("/console/sign-in", data={"key": b.issued.key})
            assert refused.status_code == 403
            assert "POSOLOGY_CONSOLE_SECURE=false" in refused.text


async def test_a_session_ends_with_its_key_its_tenant_and_by_signing_out(
    visitor: Console, redis: Redis, redis_url: str, tenant: str
) -> None:
    tenants = TenantStore(redis, redis_url)
    await visitor.sign_in()
    page = await visitor.http.get("/console/jobs")
    held = visitor.http.cookies["posology_console"]
    out = await visitor.http.post("/console/sign-out", data={"form_token": token(page)})
    assert out.status_code == 303
    # also for someone who kept the cookie
    visitor.http.cookies.set("posology_console", held, path="/console")
    assert (await visitor.http.get("/console/jobs")).status_code == 303
    await visitor.sign_in()
    await tenants.disable(tenant)
    assert (await visitor.http.get("/console/jobs")).status_code == 303
    await tenants.enable(tenant)
    assert (await visitor.http.get("/console/jobs")).status_code == 200
    await tenants.rotate(tenant)
    assert (await visitor.http.get("/console/jobs")).status_code == 303


async def test_forms_of_other_sites_and_without_token_are_refused(
    user: Console, tenant: str
) -> None:
    job = await run_job(user.store, tenant)
    path, good = f"/console/jobs/{job}/cancel", token(await user.http.get("/console/jobs"))
    foreign = (
        {"origin": "https://evil.example"}, {"origin": "null"}, {"sec-fetch-site": "cross-site"},
        {"sec-fetch-site": "same-site"},
    )  # fmt: skip
    for headers in foreign:
        reply = await user.http.post(path, data={"form_token": good}, headers=headers)
        assert reply.status_code == 403, headers
    for given in ({"x": "1"}, {"form_token": ""}, {"form_token": "0" * 64}):
        assert (await user.http.post(path, data=given)).status_code == 403
    assert (await user.http.post(path, content=b"{}", headers={"content-type": "text/plain"})).status_code == 415  # fmt: skip
    # the token of another session, which an attacker has
    async with httpx2.AsyncClient(
        transport=user.http._transport, base_url="http://localhost"
    ) as other:
        theirs = token(await other.get("/console/sign-in"))
    assert (await user.http.post(path, data={"form_token": theirs})).status_code == 403
    assert (await user.store.state(job, tenant=tenant)).value == "running"
    assert (await user.http.get(path)).status_code == 404
    done = await user.http.post(path, data={"form_token": good}, headers={"origin": "http://localhost", "sec-fetch-site": "same-origin"})  # fmt: skip
    assert done.status_code == 303
    assert (await user.store.state(job, tenant=tenant)).value in ("cancelling", "cancelled")


@pytest.mark.parametrize(
    "to",
    ["https://evil.example", "//evil.example/console", "/\\evil.example", "/console/../v1/jobs\r\nX: y",
     "/consolex", "javascript:alert(1)", "/v1/jobs"],
)  # fmt: skip
async def test_a_sign_in_leads_nowhere_else(visitor: Console, to: str) -> None:
    assert (await visitor.sign_in(to=to)).headers["location"] == "/console"


async def test_without_keys_the_console_is_for_its_own_machine(
    redis: Redis, redis_url: str, tenant: str
) -> None:
    async with open_console(redis, redis_url, tenant, auth=None) as b:
        page = await b.http.get("/console/jobs")
        assert page.status_code == 200
        assert "Sign out" not in page.text
        for host in ("evil.example", "evil.example:8000"):
            assert (await b.http.get("/console/jobs", headers={"host": host})).status_code == 421
        assert (await b.http.get("/console/jobs", headers={"sec-fetch-site": "cross-site"})).status_code == 403  # fmt: skip
        for name in ("x-forwarded-for", "via", "x-forwarded-host", "cf-connecting-ip"):
            proxied = await b.http.get("/console/jobs", headers={name: "1.1 nginx"})
            assert proxied.status_code == 403
        assert "POSOLOGY_AUTH=keys" in proxied.text
        # as nginx asks a service behind it
        assert await _in_version(b.app, "1.0") == 403
        assert await _in_version(b.app, "1.1") == 200
        transport = httpx2.ASGITransport(b.http._transport.app, client=("192.0.2.1", 1))  # type: ignore[attr-defined]
        async with httpx2.AsyncClient(transport=transport, base_url="http://127.0.0.1") as far:
            assert (await far.get("/console/jobs")).status_code == 403
            assert (await far.get("/console/sign-in")).status_code == 403


async def _in_version(app: FastAPI, version: str) -> int:
    async def spoken(scope: Scope, receive: Receive, send: Send) -> None:
        await app({**scope, "http_version": version}, receive, send)

    async with httpx2.AsyncClient(
        transport=httpx2.ASGITransport(spoken), base_url="http://127.0.0.1"
    ) as http:
        return (await http.get("/console/jobs")).status_code


async def test_a_job_is_its_tenants_alone(redis: Redis, redis_url: str, tenant: str) -> None:
    async with (
        open_console(redis, redis_url, tenant) as ours,
        open_console(redis, redis_url, f"{tenant}b") as theirs,
    ):
        job = await run_job(theirs.store, f"{tenant}b", out=answered())
        await ours.sign_in()
        await theirs.sign_in()
        good = token(await ours.http.get("/console/jobs"))
        for path in ("", "/events", "/export/ris", "/replay"):
            there = await theirs.http.get(f"/console/jobs/{job}{path}")
            assert there.status_code == 200, path
            strange = await ours.http.get(f"/console/jobs/{job}{path}")
            absent = await ours.http.get(f"/console/jobs/job_0{path}")
            assert strange.status_code == absent.status_code == 404
            assert strange.text.replace(job, "job_0") == absent.text
        for change in ("cancel", "retry"):
            reply = await ours.http.post(f"/console/jobs/{job}/{change}", data={"form_token": good})
            assert reply.status_code == 404
        assert job not in (await ours.http.get("/console/jobs")).text


async def test_an_operators_session_has_no_jobs(visitor: Console, tenant: str) -> None:
    assert (await visitor.sign_in(CONSOLE_KEY)).status_code == 303
    page = await visitor.http.get("/console/jobs")
    assert page.status_code == 403
    assert "sign in with a tenant" in page.text
    # another key of operators ends it
    app = create_app(Settings.model_validate({"POSOLOGY_AUTH": "keys", "POSOLOGY_CONSOLE_KEY": CONSOLE_KEY + "2"}), visitor.store)  # fmt: skip
    transport = httpx2.ASGITransport(app)
    async with httpx2.AsyncClient(transport=transport, base_url="http://localhost", cookies=visitor.http.cookies) as other:  # fmt: skip
        assert (await other.get("/console/jobs")).status_code == 303


async def test_a_jobs_page_tells_its_whole_story(user: Console, tenant: str) -> None:
    job = await run_job(user.store, tenant, out=answered())
    assert QUESTION in (await user.http.get("/console/jobs")).text
    text = (await user.http.get(f"/console/jobs/{job}")).text
    for part in (
        f"<mark>{QUOTE}</mark>", "RETRACTED", "https://pubmed.ncbi.nlm.nih.gov/28657417/", "Sources disagree",
        "the quote says 12 %, the sentence 21 %", "Why this dose", "IoU 0.50", "invented", "1 of 2 retrieved passages",
        'class="lost"', "bound", "high risk [1]", "cohort", "1994",
    ):  # fmt: skip
        assert part in text, part
    for form in ("ris", "bibtex", "csl", "csv", "markdown"):
        reply = await user.http.get(f"/console/jobs/{job}/export/{form}")
        assert reply.status_code == 200
        assert "attachment" in reply.headers["content-disposition"]
    assert (await user.http.get(f"/console/jobs/{job}/export/exe")).status_code == 422


async def test_hostile_text_is_inert_and_pages_stay_light(user: Console, tenant: str) -> None:
    job = await run_job(user.store, tenant, question=HOSTILE, out=answered(HOSTILE))
    for path in ("/console/jobs", f"/console/jobs/{job}", f"/console/jobs/{HOSTILE[:80]}", "/console/jobs?state=%3Cscript%3E"):  # fmt: skip
        reply = await user.http.get(path)
        check(reply)
        assert len(reply.content) < HEAVY


async def test_no_list_is_read_whole(user: Console, tenant: str) -> None:
    for number in range(35):
        await run_job(user.store, tenant, question=f"Question {number}?")
    first = await user.http.get("/console/jobs")
    assert first.text.count("/console/jobs/job_") == 30
    older = re.search(r'href="(/console/jobs\?cursor=[^"]+)"', first.text)
    assert older is not None
    assert (await user.http.get(older[1])).text.count("/console/jobs/job_") == 5


async def test_static_files_are_found_by_their_digests(visitor: Console) -> None:
    page = await visitor.http.get("/console/sign-in")
    found = set(re.findall(r'"(/console/static/[0-9a-f]{16}/[^"]+)"', page.text))
    assert len(found) == 5
    for path in found:
        reply = await visitor.http.get(path)
        assert reply.status_code == 200
        assert "immutable" in reply.headers["cache-control"]
    assert (
        await visitor.http.get("/console/static/0000000000000000/console.css")
    ).status_code == 404
    assert (
        await visitor.http.get("/console/static/0000000000000000/..%2Fpages.py")
    ).status_code == 404


async def test_a_follow_up_is_shown_as_it_will_be_asked_and_may_be_changed(
    user: Console, tenant: str
) -> None:
    given = {
        "question": QUESTION,
        "model": "offline:extractive",
        "k": 4,
        "filters": {"since": 2010},
    }
    asked = JobRequest.parse(given).settled(Settings())
    first = (await user.store.submit(asked, tenant=tenant)).job
    follow_up = {"question": "And in children?", "parent": first}
    page = await user.http.get("/console/ask", params=follow_up)
    check(page)
    assert f"{QUESTION} And in children?</textarea>" in page.text
    for name, value in (("parent", first), ("k", "4"), ("since", "2010")):
        assert re.search(rf'name="{name}"[^>]* value="{value}"', page.text), name
    sent = {"form_token": token(page), "question": f"{QUESTION} And in infants?", "parent": first}
    made = await user.http.post("/console/ask", data=sent)
    job = await user.store.get(made.headers["location"].rpartition("/")[2], tenant=tenant)
    assert job.question == f"{QUESTION} And in infants?"
    assert job.request["parent"] == first
    shown = await user.http.get(f"/console/jobs/{job.id}")
    assert f'a follow-up of <a href="/console/jobs/{first}">' in shown.text
    theirs = (await user.store.submit(asked, tenant=f"{tenant}x")).job
    for parent in (theirs, keys.new_id("job"), "nonsense"):
        refused = await user.http.get("/console/ask", params=follow_up | {"parent": parent})
        assert refused.status_code == 422
        assert f"{QUESTION} And" not in refused.text


async def test_a_question_is_asked_once_however_often_its_form_is_sent(
    user: Console, tenant: str
) -> None:
    page = await user.http.get("/console/ask", params={"question": HOSTILE})
    check(page)
    key = re.search(r'name="key" value="([^"]+)"', page.text)
    assert key is not None
    given = {
        "form_token": token(page), "key": key[1], "question": QUESTION, "form": "yes_no", "model": "", "k": "4",
        "strategy": "direct", "policy": "", "max_cost_usd": "0.05", "since": "2010",
        "publication_types": "Review, Meta-Analysis",
    }  # fmt: skip
    first = await user.http.post("/console/ask", data=given)
    assert first.status_code == 303
    assert first.headers["location"] == (await user.http.post("/console/ask", data=given)).headers["location"]  # fmt: skip
    job = await user.store.get(first.headers["location"].rpartition("/")[2], tenant=tenant)
    assert job.request["k"] == 4
    assert job.request["strategy"] == "direct"
    assert job.request["filters"]["publication_types"] == ["Review", "Meta-Analysis"]
    assert job.cap_usd == Decimal("0.05")
    for wrong in ({"k": "many"}, {"question": " "}, {"max_cost_usd": "-1"}, {"model": "x:y"}):
        refused = await user.http.post("/console/ask", data=given | wrong)
        assert refused.status_code == 422
        assert 'role="alert"' in refused.text
        assert "Review, Meta-Analysis" in refused.text, "what was written is not lost"
    # this process has no index
    for headers in ({}, {"hx-request": "true"}):
        reply = await user.http.post("/console/ask/estimate", data=given, headers=headers)
        assert "needs an index" in reply.text
        assert ("<html" in reply.text) == (not headers)


async def test_money_shows_limits_spending_and_the_ledger_page_by_page(
    user: Console, tenant: str
) -> None:
    empty = await user.http.get("/console/money")
    check(empty)
    assert "Nothing was spent" in empty.text
    for _ in range(12):
        await run_job(user.store, tenant, out=answered())
    page = await user.http.get("/console/money")
    check(page)
    # twelve at their cost, and twelve lost at their bounds
    for part in ("$0.0360 spent", "$99.9640 left of $100.0000", "12 attempts of unknown cost", "openai:gpt-4o-mini"):  # fmt: skip
        assert part in page.text, part
    first = await user.http.get("/console/money/ledger")
    check(first)
    assert first.text.count("<tr") == 41
    older = re.search(r'href="(/console/money/ledger\?before=[^"]+)"', first.text)
    assert older is not None
    assert (await user.http.get(older[1])).text.count("<tr") == 9
    assert (await user.http.get("/console/money/ledger?before=x")).status_code == 422


async def test_a_batch_is_uploaded_followed_cancelled_and_downloaded(
    redis: Redis, redis_url: str, tenant: str
) -> None:
    async with (
        open_console(redis, redis_url, tenant) as b,
        open_console(redis, redis_url, f"{tenant}b") as strange,
    ):
        await b.sign_in()
        await strange.sign_in()
        rows = [{"id": n, "question": HOSTILE if n == 3 else f"Question {n}?"} for n in range(40)]
        body = "".join(f"{json.dumps(row)}\n" for row in rows) + '{"id": "bad"}\n'
        page = await b.http.get("/console/batches")
        check(page)
        headers = {"content-type": "application/x-ndjson", "x-form-token": token(page)}
        for wrong in ({"x-form-token": "0" * 64}, {"origin": "https://evil.example"}):
            refused = await b.http.post("/console/batches/upload", content=body, headers=headers | wrong)  # fmt: skip
            assert refused.status_code == 403
        broken = await b.http.post("/console/batches/upload", content=body, headers=headers | {"content-type": "text/plain"})  # fmt: skip
        assert broken.status_code == 415
        assert "send application/x-ndjson" in broken.json()["detail"]
        sent = [await b.http.post("/console/batches/upload?key=k1&model=offline:extractive", content=body, headers=headers) for _ in range(2)]  # fmt: skip
        assert sent[0].json() == sent[1].json()
        path = sent[0].json()["page"]
        shown = await b.http.get(path)
        check(shown)
        assert "1 row rejected" in shown.text
        assert shown.text.count("/console/jobs/job_") == 30
        more = re.search(r'href="(/console/batches/[^"]+\?after=29)"', shown.text)
        assert more is not None
        rest = await b.http.get(more[1])
        assert rest.text.count("/console/jobs/job_") == 10
        assert "InvalidQuery" in rest.text
        for form in ("jsonl", "csv", "ris"):
            download = await b.http.get(f"{path}/download/{form}")
            assert download.status_code == 200
            assert "attachment" in download.headers["content-disposition"]
        assert len((await b.http.get(f"{path}/download/jsonl")).text.splitlines()) == 41
        good = token(await strange.http.get("/console/batches"))
        for reply in (
            await strange.http.get(path),
            await strange.http.get(f"{path}/download/csv"),
            await strange.http.post(f"{path}/cancel", data={"form_token": good}),
        ):
            assert reply.status_code == 404
        done = await b.http.post(f"{path}/cancel", data={"form_token": token(shown)})
        assert done.status_code == 303
        assert "cancelled" in (await b.http.get(path)).text
        assert (await b.http.get("/console/batches")).text.count("/console/batches/batch_") == 1
        assert (await b.http.get(f"{path}?after=x")).status_code == 422


@pytest.fixture(scope="module")
def index(tiny_encoder: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An index with the passage that the answers quote, and a hostile one."""
    return make_index(tmp_path_factory.mktemp("console"), str(tiny_encoder))


async def test_the_literature_is_shown_and_quotes_are_marked_in_it(
    redis: Redis, redis_url: str, tenant: str, index: Path, tiny_encoder: Path
) -> None:
    more = {"POSOLOGY_INDEX": str(index), "POSOLOGY_EMBEDDER": str(tiny_encoder)}
    version = Index.open(str(index)).view().version
    async with open_console(redis, redis_url, tenant, **more) as b:
        await b.sign_in()
        page = await b.http.get("/console/literature")
        check(page)
        assert version in page.text
        named = await b.http.get("/console/literature", params={"passage": "x/\"'<b>é"})
        assert named.status_code == 303
        check(await b.http.get(named.headers["location"]))
        for path in ("pmid:1", "pmid:28657417?version=x", "pmid:28657417?version=999999", "%00"):
            reply = await b.http.get(f"/console/literature/passages/{path}")
            assert reply.status_code in (404, 422), path
        out = answered()
        job = await run_job(b.store, tenant, out=out.model_copy(update={"index": version}))
        text = (await b.http.get(f"/console/jobs/{job}")).text
        assert f"<mark>{QUOTE}</mark>" in text
        assert "The whole passage" in text
        away = await run_job(b.store, tenant, out=out)
        assert "The surroundings of each quote" in (await b.http.get(f"/console/jobs/{away}")).text
        changed = await b.http.get("/console/literature/changed")
        check(changed)
        assert "2 stored answers of the last 30 days" in changed.text
        given = {"form_token": token(page), "question": QUESTION, "model": "offline:extractive"}
        ask = await b.http.get("/console/ask")
        assert "Estimate the cost" in ask.text
        given["form_token"] = token(ask)
        for headers in ({}, {"hx-request": "true"}):
            reply = await b.http.post("/console/ask/estimate", data=given, headers=headers)
            assert reply.status_code == 200
            assert "expected $0" in reply.text
            assert ("<html" in reply.text) == (not headers)


async def test_a_tenant_opens_no_page_of_operators(user: Console, tenant: str) -> None:
    for path in (
        "tenants", f"tenants/{tenant}", f"tenants/{tenant}b", "workers", "reconciliations", "reconciliations/a.json",
        "compare/a", "compare/a/figures/grades.svg",
    ):  # fmt: skip
        assert (await user.http.get(f"/console/{path}")).status_code == 403
    given = {"form_token": token(await user.http.get("/console/jobs")), "to": "disabled"}
    for change in ("rotate", "switch", "limits", "revoke", "audit"):
        reply = await user.http.post(f"/console/tenants/{tenant}/{change}", data=given)
        assert reply.status_code == 403
    made = await user.http.post("/console/tenants", data={**given, "name": f"{tenant}c"})
    assert made.status_code == 403


async def test_operators_see_tenants_and_workers(
    chief: Console, redis: Redis, redis_url: str, tenant: str
) -> None:
    assert (await chief.http.get("/console")).headers["location"] == "/console/tenants"
    await redis.zadd(keys.WORKERS, {"host:1": 1.0})
    for path in ("tenants", f"tenants/{tenant}", "workers"):
        check(await chief.http.get(f"/console/{path}"))
    assert "silent" in (await chief.http.get("/console/workers")).text
    assert tenant in (await chief.http.get("/console/tenants")).text
    page = await chief.http.get(f"/console/tenants/{tenant}")
    assert chief.issued.key not in page.text
    given = {"form_token": token(page), "to": "disabled", "grace": "1"}
    switched = await chief.http.post(f"/console/tenants/{tenant}/switch", data=given)
    assert switched.status_code == 303
    assert (await TenantStore(redis, redis_url).get(tenant)).disabled
    wrong = await chief.http.post(f"/console/tenants/{tenant}/rotate", data=given)
    assert wrong.status_code == 422
    assert (await chief.http.get("/console/tenants/no-such-tenant")).status_code == 404
    assert (await chief.http.get("/console/tenants?cursor=x")).status_code == 422


async def test_tenants_are_read_some_at_a_time(redis: Redis, redis_url: str, tenant: str) -> None:
    store = TenantStore(redis, redis_url)
    made = {f"{tenant}-{number}" for number in range(200)}
    await redis.sadd(keys.REGISTERED, *made)
    cursor: int | None = 0
    seen = set[str]()
    while cursor is not None:
        some, cursor = await store.some(cursor, limit=20)
        assert len(some) < 100
        seen |= {one.name for one in some}
    # names without a record are no tenants
    assert not made & seen
    await redis.srem(keys.REGISTERED, *made)
