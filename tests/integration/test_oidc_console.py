"""The sign-in to the console by an OpenID Connect provider, and the attacks on it."""

from __future__ import annotations

import re
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any
from urllib.parse import parse_qs, urlsplit

import anyio
import httpx2
import pytest
from redis.asyncio import Redis

from orchestrator.console import access
from orchestrator.console.oidc import sign_in
from orchestrator.console.sessions import FAILURES
from posology.budget.tenants.store import TenantStore
from posology.store import keys
from tests.integration.conftest import Serve
from tests.support.console_bench import Console, check, open_console, token
from tests.support.oidc import CLIENT, Stub, rsa

pytestmark = pytest.mark.anyio

START = "/console/oidc/start"


@pytest.fixture
def stub(serve: Serve) -> Any:
    made = Stub()
    with serve(made.app) as url:  # type: ignore[arg-type]  # Starlette's, of which FastAPI's is one
        made.issuer = url
        yield made


@asynccontextmanager
async def opened(stub: Stub, redis: Redis, url: str, tenant: str, **more: str) -> AsyncIterator[Console]:  # fmt: skip
    groups = f"staff={tenant},both={tenant},both={tenant}-b,gone={tenant}-gone"
    given = {**stub.settings, "POSOLOGY_OIDC_GROUPS": groups, "POSOLOGY_OIDC_OPERATORS": "chiefs", **more}  # fmt: skip
    stub.groups = ["staff"]
    async with open_console(redis, url, tenant, **given) as console:
        yield console


@pytest.fixture
async def console(stub: Stub, redis: Redis, redis_url: str, tenant: str) -> AsyncIterator[Console]:
    async with opened(stub, redis, redis_url, tenant) as made:
        yield made


async def go(console: Console, stub: Stub, to: str = "/console/jobs") -> str:
    """Begin a sign-in, and return the address with which the provider sends the browser back."""
    reply = await console.http.get(START, params={"to": to})
    assert reply.status_code == 303, reply.text
    return stub.visit(reply.headers["location"])


async def enter(console: Console, stub: Stub, to: str = "/console/jobs") -> httpx2.Response:
    return await console.http.get(await go(console, stub, to))


async def is_in(console: Console) -> bool:
    return (await console.http.get("/console/money")).status_code == 200


async def test_a_person_signs_in_as_the_groups_tenant(
    console: Console, stub: Stub, tenant: str
) -> None:
    page = await console.http.get("/console/sign-in?to=%2Fconsole%2Fjobs%3Fstate%3Dfailed")
    assert "Sign in with 127.0.0.1" in page.text
    assert "/console/oidc/start?to=%2Fconsole%2Fjobs%3Fstate%3Dfailed" in page.text
    begun = await console.http.get(START, params={"to": "/console/jobs?state=failed"})
    cookie = begun.headers["set-cookie"].lower()
    for part in ("posology_oidc=", "httponly", "samesite=lax", "path=/console/oidc", "max-age=600"):
        assert part in cookie
    assert "secure" not in cookie
    asked = parse_qs(urlsplit(begun.headers["location"]).query)
    assert asked["redirect_uri"] == ["http://localhost/console/oidc/return"]
    assert len({asked[one][0] for one in ("state", "nonce", "code_challenge")}) == 3
    reply = await console.http.get(stub.visit(begun.headers["location"]))
    check(reply)
    # a page of our own leads on: a strict cookie does not come with a redirection from another site
    assert reply.status_code == 200
    assert '<meta http-equiv="refresh" content="0;url=/console/jobs?state=failed">' in reply.text
    cookies = reply.headers.get_list("set-cookie")
    (session,) = [one.lower() for one in cookies if one.startswith("posology_console=")]
    assert "samesite=strict" in session
    assert "httponly" in session
    assert [one for one in cookies if one.startswith('posology_oidc=""') and "Max-Age=0" in one]
    jobs = await console.http.get("/console/jobs")
    assert jobs.status_code == 200
    assert tenant in jobs.text
    # no operator
    assert (await console.http.get("/console/tenants")).status_code == 403
    out = await console.http.post("/console/sign-out", data={"form_token": token(jobs)})
    assert out.status_code == 303
    assert not await is_in(console)
    # keys go on
    assert (await console.sign_in()).status_code == 303
    assert await is_in(console)


async def test_operators_and_people_of_several_groups_choose(
    console: Console, stub: Stub, redis: Redis, redis_url: str, tenant: str
) -> None:
    await TenantStore(redis, redis_url).create(f"{tenant}-b")
    stub.groups = ["chiefs"]
    assert (await enter(console, stub)).status_code == 200
    assert (await console.http.get("/console/tenants")).status_code == 200
    stub.groups = ["both", "chiefs"]
    console.http.cookies.clear()
    page = await enter(console, stub, "/console/money")
    check(page)
    # nothing is open before the choice
    assert not await is_in(console)
    links = re.findall(r'href="(/console/oidc/start[^"]*)">([^<]+)<', page.text)
    assert [name for _, name in links] == [tenant, f"{tenant}-b", "Operator"]
    for link, name in links:
        # the provider is asked again, and says the same
        left = await console.http.get(link.replace("&amp;", "&"))
        reply = await console.http.get(stub.visit(left.headers["location"]))
        assert reply.status_code == 200
        assert "url=/console/money" in reply.text
        shown = await console.http.get("/console/literature")
        assert f"<span>{name.lower()}</span>" in shown.text
    # one that no group stands for is none of the choice
    stub.groups = ["both"]
    console.http.cookies.clear()
    for wrong in ("default", "*", f"{tenant}-gone", tenant[:-1], "a:b", "x" * 100):
        left = await console.http.get(START, params={"tenant": wrong})
        reply = await console.http.get(stub.visit(left.headers["location"]))
        assert reply.status_code == 403
        assert not await is_in(console)


async def test_who_has_no_group_or_a_closed_tenant_stays_out(
    console: Console, stub: Stub, redis: Redis, redis_url: str, tenant: str
) -> None:
    for groups in ([], ["unrelated"], None, ["gone"]):
        stub.groups = groups
        reply = await enter(console, stub)
        assert reply.status_code == 403
        check(reply)
        assert not await is_in(console)
    stub.groups = ["staff"]
    await enter(console, stub)
    assert await is_in(console)
    tenants = TenantStore(redis, redis_url)
    await tenants.disable(tenant)
    assert not await is_in(console)
    assert (await enter(console, stub)).status_code == 403


async def test_a_session_ends_when_the_options_change(
    console: Console, stub: Stub, redis: Redis, redis_url: str, tenant: str
) -> None:
    stub.groups = ["chiefs"]
    await enter(console, stub)
    held = console.http.cookies["posology_console"]
    for more, status in (({}, 200), ({"POSOLOGY_OIDC_OPERATORS": "others"}, 303), (None, 303)):
        given = {} if more is None else {**stub.settings, "POSOLOGY_OIDC_GROUPS": f"staff={tenant},both={tenant},both={tenant}-b,gone={tenant}-gone", "POSOLOGY_OIDC_OPERATORS": "chiefs", **more}  # fmt: skip
        async with open_console(redis, redis_url, f"{tenant}-{status}{len(given)}{len(more or 'x')}", **given) as other:  # fmt: skip
            other.http.cookies.set("posology_console", held, path="/console")
            assert (await other.http.get("/console/tenants")).status_code == status


async def test_a_return_is_of_the_browser_that_left_and_counts_once(
    console: Console, stub: Stub, redis: Redis, redis_url: str, tenant: str
) -> None:
    # even if the provider takes a code twice
    stub.lax = True
    back = await go(console, stub)
    cookie = console.http.cookies["posology_oidc"]
    async with opened(stub, redis, redis_url, f"{tenant}-v") as victim:
        for planted in (None, cookie[:-1] + "x", "1:x:y:z", "x"):
            victim.http.cookies.clear()
            if planted is not None:
                victim.http.cookies.set("posology_oidc", planted, path="/console/oidc")
            reply = await victim.http.get(back)
            assert reply.status_code == 401
            assert "posology_oidc" not in reply.text
            assert not await is_in(victim)
    assert not stub.asked["/token"]
    for changed in (back.replace("state=", "state=x"), back.replace("code=", "kode="), f"{back}&iss=https://evil.example",
                    "/console/oidc/return", "/console/oidc/return?state=%ff&code=x"):  # fmt: skip
        # the cookie stays, as in a browser that an attacker's page has not reached
        console.http.cookies.set("posology_oidc", cookie, path="/console/oidc")
        assert (await console.http.get(changed)).status_code == 401
    statuses: list[int] = []

    async def once() -> None:
        headers = {"cookie": f"posology_oidc={cookie}"}
        statuses.append((await console.http.get(back, headers=headers)).status_code)

    console.http.cookies.clear()
    async with anyio.create_task_group() as group:
        for _ in range(5):
            group.start_soon(once)
    assert sorted(statuses) == [200, 401, 401, 401, 401]
    assert stub.asked.get("/token") == 1


async def test_a_return_comes_within_ten_minutes(
    console: Console, stub: Stub, monkeypatch: pytest.MonkeyPatch
) -> None:
    back = await go(console, stub)
    cookie = console.http.cookies["posology_oidc"]
    late = time.time() + sign_in.SECONDS + 1
    monkeypatch.setattr("time.time", lambda: late)
    assert (await console.http.get(back)).status_code == 401
    # nor with another time written into the cookie
    _, rest = cookie.split(":", 1)
    console.http.cookies.set("posology_oidc", f"{int(late)}:{rest}", path="/console/oidc")
    assert (await console.http.get(back)).status_code == 401
    assert not stub.asked["/token"]


@pytest.mark.parametrize(
    "claims",
    [
        {"nonce": "another"},
        {"nonce": None},
        {"aud": "another"},
        {"aud": ["another", CLIENT]},
        {"aud": [CLIENT, "another"], "azp": "another"},
        {"azp": "another"},
        {"iss": "https://evil.example"},
        {"exp": 1},
        {"exp": None},
        {"iat": None},
        {"iat": 9_999_999_999},
        {"sub": None},
        # of another access token than the one that came with it
        {"at_hash": "AAAAAAAAAAAAAAAAAAAAAA"},
    ],
    ids=str,
)
async def test_an_id_token_for_another_use_is_refused(
    console: Console, stub: Stub, claims: dict[str, Any]
) -> None:
    stub.claims = claims
    reply = await enter(console, stub)
    assert reply.status_code == 401
    assert "not accepted" in reply.text
    assert not await is_in(console)


async def test_an_id_token_of_several_audiences_names_this_client(
    console: Console, stub: Stub
) -> None:
    stub.claims = {"aud": [CLIENT, "another"], "azp": CLIENT}
    assert (await enter(console, stub)).status_code == 200


async def test_an_id_token_that_another_signed_is_refused(
    console: Console, stub: Stub, monkeypatch: pytest.MonkeyPatch
) -> None:
    stranger = type(rsa("one")).generate_key(2048, {"kid": "one"})
    signed = stub.sign
    monkeypatch.setattr(Stub, "sign", lambda _, claims, *__, **___: signed(claims, stranger))
    assert (await enter(console, stub)).status_code == 401


@pytest.mark.parametrize(
    "to",
    ["https://evil.example", "//evil.example", "/\\evil.example", "javascript:alert(1)", "/v1/jobs", "/console/../v1/jobs",
     "/console/%2e%2e/v1/jobs", "/consolex", "/console/\r\nSet-Cookie: a=b", "", "/console/" + "x" * 5_000],
)  # fmt: skip
async def test_the_way_back_stays_within_the_console(console: Console, stub: Stub, to: str) -> None:
    reply = await enter(console, stub, to)
    assert reply.status_code == 200
    assert 'content="0;url=/console"' in reply.text


async def test_a_text_in_the_way_back_is_no_markup(console: Console, stub: Stub) -> None:
    reply = await enter(console, stub, '/console/jobs?a="><script>')
    check(reply)
    assert "&#34;&gt;&lt;script&gt;" in reply.text


async def test_a_token_that_was_planted_is_not_the_persons(console: Console, stub: Stub) -> None:
    back = await go(console, stub)
    cookie = f"posology_oidc={console.http.cookies['posology_oidc']}; posology_console=planted"
    console.http.cookies.clear()
    page = await console.http.get(back, headers={"cookie": cookie})
    assert page.status_code == 200
    assert console.http.cookies["posology_console"] != "planted"
    sessions = access.sessions(console.app.state.context)
    assert await sessions.find("planted") is None


async def test_the_cookie_goes_over_tls_alone_where_the_sessions_does(
    stub: Stub, redis: Redis, redis_url: str, tenant: str
) -> None:
    async with opened(stub, redis, redis_url, tenant) as console:
        console.http.base_url = httpx2.URL("http://console.example")
        reply = await console.http.get(START)
        assert "secure" in reply.headers["set-cookie"].lower()
        asked = parse_qs(urlsplit(reply.headers["location"]).query)
        # behind a proxy that ends TLS
        assert asked["redirect_uri"] == ["https://console.example/console/oidc/return"]


async def test_returns_that_fail_are_limited(console: Console, stub: Stub, redis: Redis) -> None:
    try:
        for _ in range(FAILURES):
            assert (
                await console.http.get("/console/oidc/return?state=x&code=y")
            ).status_code == 401
        reply = await enter(console, stub)
        assert reply.status_code == 429
        assert int(reply.headers["retry-after"]) > 0
    finally:
        await redis.delete(keys.console_failures("127.0.0.1"))


async def test_while_the_provider_is_down_keys_open_the_console(
    console: Console, stub: Stub
) -> None:
    back = await go(console, stub)
    stub.down = 500
    assert (await console.http.get(back)).status_code == 503
    console.app.state.context.oidc._known = None
    reply = await console.http.get(START)
    assert reply.status_code == 503
    check(reply)
    assert (await console.sign_in()).status_code == 303


async def test_without_a_provider_there_are_no_such_pages(visitor: Console) -> None:
    assert (await visitor.http.get(START)).status_code == 404
    assert (await visitor.http.get("/console/oidc/return?state=x&code=y")).status_code == 404
    assert "Sign in with" not in (await visitor.http.get("/console/sign-in")).text


async def test_groups_are_asked_for_where_the_provider_knows_that_scope(
    console: Console, stub: Stub
) -> None:
    stub.document = {"scopes_supported": ["openid", "groups"], "token_endpoint_auth_methods_supported": ["client_secret_post"]}  # fmt: skip
    reply = await console.http.get(START)
    scope = parse_qs(urlsplit(reply.headers["location"]).query)["scope"]
    assert scope == ["openid profile groups"]
    assert (await console.http.get(stub.visit(reply.headers["location"]))).status_code == 200
