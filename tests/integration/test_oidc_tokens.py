"""Access tokens of an OpenID Connect provider at the API, and the attacks on them."""

from __future__ import annotations

import hashlib
import hmac
import json
import logging
import time
from base64 import urlsafe_b64encode
from collections.abc import AsyncIterator
from typing import Any

import httpx2
import pytest
from joserfc.jwk import OctKey
from redis.asyncio import Redis

from orchestrator.api.app import create_app
from orchestrator.jobs.store import JobStore
from orchestrator.oidc.provider import KEPT, PAUSE, Provider
from orchestrator.settings import Settings
from posology.budget.tenants.store import Issued, TenantStore
from tests.integration.conftest import Serve
from tests.support.oidc import AUDIENCE, CLIENT, SECRET, Stub, ec, rsa

pytestmark = pytest.mark.anyio


@pytest.fixture
def stub(serve: Serve) -> Any:
    made = Stub()
    with serve(made.app) as url:  # type: ignore[arg-type]  # Starlette's, of which FastAPI's is one
        made.issuer = url
        yield made


class Api:
    """An API that trusts the provider; its clock is the test's."""

    def __init__(self, http: httpx2.AsyncClient, provider: Provider, issued: Issued) -> None:
        self.http, self.provider, self.issued = http, provider, issued
        self.now = 1_000.0
        provider._clock = lambda: self.now

    async def get(self, bearer: str, tenant: str | None = None) -> httpx2.Response:
        named = {} if tenant is None else {"X-Posology-Tenant": tenant}
        return await self.http.get("/v1/jobs", headers={"Authorization": f"Bearer {bearer}", **named})  # fmt: skip


@pytest.fixture
async def api(stub: Stub, redis: Redis, redis_url: str, tenant: str) -> AsyncIterator[Api]:
    groups = f"staff={tenant},both={tenant},both={tenant}-b,gone={tenant}-gone"
    given = {**stub.settings, "POSOLOGY_AUTH": "keys", "POSOLOGY_OIDC_GROUPS": groups, "POSOLOGY_OIDC_OPERATORS": "chiefs"}  # fmt: skip
    tenants = TenantStore(redis, redis_url)
    issued = await tenants.create(tenant)
    await tenants.create(f"{tenant}-b")
    stub.groups = ["staff", "unrelated"]
    app = create_app(Settings.model_validate(given), JobStore(redis, redis_url))
    transport = httpx2.ASGITransport(app, raise_app_exceptions=False)
    async with httpx2.AsyncClient(transport=transport, base_url="http://localhost") as http:
        yield Api(http, app.state.context.oidc, issued)


def problem(reply: httpx2.Response, status: int, kind: str) -> dict[str, Any]:
    assert reply.status_code == status, reply.text
    found: dict[str, Any] = reply.json()
    assert found["type"] == f"urn:posology:problem:{kind}"
    return found


async def test_a_token_is_its_groups_tenant_and_keys_go_on(
    api: Api, stub: Stub, tenant: str
) -> None:
    made = await api.http.post(
        "/v1/jobs",
        json={"question": "Does it?"},
        headers={"Authorization": f"Bearer {stub.access()}"},
    )
    assert made.status_code == 202, made.text
    assert made.json()["tenant"] == tenant
    for token in (
        stub.access(),
        stub.access(key=ec("two")),
        stub.access(header={"alg": "PS256"}),
        stub.access(aud=["another", AUDIENCE]),
        stub.access(groups="staff"),
        # not of RFC 9068, and yet no ID token
        stub.access(header={"typ": "JWT"}),
        stub.access(header={"typ": None}, scope=None, scp=["ask"]),
        api.issued.key,
    ):
        reply = await api.get(token)
        assert reply.status_code == 200, reply.text
        assert len(reply.json()["jobs"]) == 1
    assert stub.asked == {"/.well-known/openid-configuration": 1, "/jwks": 1}


async def test_of_several_tenants_the_header_chooses(api: Api, stub: Stub, tenant: str) -> None:
    stub.groups = ["both"]
    token = stub.access()
    unclear = problem(await api.get(token), 422, "tenant-not-chosen")
    assert f"{tenant}, {tenant}-b" in unclear["detail"]
    assert (await api.get(token, tenant)).status_code == 200
    assert (await api.get(token, f"{tenant}-b")).status_code == 200
    problem(await api.get(token, "default"), 403, "not-your-tenant")
    stub.groups = ["staff"]
    problem(await api.get(stub.access(), f"{tenant}-b"), 403, "not-your-tenant")
    for groups in ([], ["chiefs"], None, {"staff": True}):
        stub.groups = groups
        problem(await api.get(stub.access()), 403, "not-your-tenant")


async def test_disabled_and_unknown_tenants_are_refused_at_once(
    api: Api, stub: Stub, redis: Redis, redis_url: str, tenant: str
) -> None:
    await TenantStore(redis, redis_url).disable(tenant)
    problem(await api.get(stub.access()), 403, "tenant-disabled")
    stub.groups = ["gone"]
    problem(await api.get(stub.access()), 401, "key-refused")


def unsigned(claims: dict[str, Any], header: dict[str, Any]) -> str:
    parts = (json.dumps(one).encode() for one in (header, claims))
    return ".".join([*(urlsafe_b64encode(one).rstrip(b"=").decode() for one in parts), ""])


def by_secret(claims: dict[str, Any], secret: bytes) -> str:
    """Joserfc itself takes no public key for a secret."""
    text = unsigned(claims, {"alg": "HS256", "kid": "one"})[:-1]
    code = hmac.new(secret, text.encode(), hashlib.sha256).digest()
    return f"{text}.{urlsafe_b64encode(code).rstrip(b'=').decode()}"


def forged(stub: Stub) -> dict[str, str]:
    """Tokens of attackers by the attack."""
    now = int(time.time())
    usual = {"iss": stub.issuer, "aud": AUDIENCE, "sub": "s", "iat": now, "exp": now + 300, "groups": ["staff"], "scope": "ask"}  # fmt: skip
    good = stub.access()
    head, body, signature = good.split(".")
    stranger = type(rsa("one")).generate_key(2048, {"kid": "one"})
    return {
        "no signature": unsigned(usual, {"alg": "none"}),
        "no signature, known key": unsigned(usual, {"alg": "None", "kid": "one"}),
        "public key as secret": by_secret(usual, rsa("one").as_pem(private=False)),
        "client's secret": stub.sign(usual, OctKey.import_key(SECRET.encode()), alg="HS256"),
        "algorithm not allowed": stub.sign(usual, alg="RS512"),
        "key of the token": stub.sign(
            usual, stranger, kid=None, jwk=stranger.as_dict(private=False)
        ),
        "address of the token": stub.sign(
            usual, stranger, kid=None, jku=f"{stub.issuer}/jwks", x5u=f"{stub.issuer}/jwks"
        ),
        "another key of that name": stub.sign(usual, stranger),
        "key of another kind": f"{head}.{body}.{stub.sign(usual, ec('two')).split('.')[2]}",
        "stripped": f"{head}.{body}.",
        "changed": f"{head}.{body[:-4]}AAAA.{signature}",
        "unknown extension": stub.sign(usual, crit=["b64"], b64=False),
        "no JSON": f"{head}.AAAA.{signature}",
        "deep": unsigned({}, {"alg": "RS256"})[:-1]
        + urlsafe_b64encode(b"[" * 20_000).decode()
        + ".x",
        "dots": "..",
        "not ASCII": "é.é.é",
        "ended": stub.access(exp=now - 120),
        "never ends": stub.access(exp=None),
        "ends at no time": stub.access(exp="tomorrow"),
        "of the future": stub.access(iat=now + 120),
        "not yet valid": stub.access(nbf=now + 120),
        "without time": stub.access(iat=None),
        "without subject": stub.access(sub=None),
        "another issuer": stub.access(iss="https://evil.example"),
        "issuer with a slash": stub.access(iss=f"{stub.issuer}/"),
        "no issuer": stub.access(iss=None),
        "another audience": stub.access(aud="another"),
        "no audience": stub.access(aud=None),
        "empty audience": stub.access(aud=[]),
        "audience within": stub.access(aud=f"{AUDIENCE} more"),
        "ID token": stub.identity("n"),
        "ID token for the API": stub.identity("n", aud=[CLIENT, AUDIENCE], scope="openid"),
        "ID token without nonce": stub.identity(None, aud=AUDIENCE),
        "ID token with a hash": stub.identity(None, aud=AUDIENCE, at_hash="x", scope="openid"),
    }


async def test_forged_and_foreign_tokens_are_refused_alike(
    api: Api, stub: Stub, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    said = set()
    for attack, token in forged(stub).items():
        reply = await api.http.get(
            "/v1/jobs", headers={b"authorization": f"Bearer {token}".encode()}
        )
        assert reply.status_code == 401, f"{attack}: {reply.text}"
        assert reply.headers["www-authenticate"] == "Bearer"
        said.add(reply.text)
        for piece in token.split("."):
            assert len(piece) < 9 or piece not in reply.text + caplog.text, attack
    assert len(said) == 1
    # and the provider was not asked for addresses that tokens name
    assert set(stub.asked) == {"/.well-known/openid-configuration", "/jwks"}
    assert (await api.get(stub.access())).status_code == 200


async def test_an_id_token_is_no_access_token_where_both_have_one_audience(
    api: Api, stub: Stub
) -> None:
    object.__setattr__(api.provider.options, "audience", CLIENT)
    for token in (
        stub.identity("n"),
        stub.identity(None),
        stub.identity("n", scope="openid"),
        stub.identity(None, scope="openid", at_hash="x"),
    ):
        problem(await api.get(token), 401, "key-refused")
    assert (await api.get(stub.access(aud=CLIENT))).status_code == 200


async def test_clocks_may_differ_by_a_minute(api: Api, stub: Stub) -> None:
    now = int(time.time())
    changed: tuple[dict[str, Any], ...] = ({"exp": now - 40}, {"iat": now + 40}, {"nbf": now + 40})
    for claims in changed:
        assert (await api.get(stub.access(**claims))).status_code == 200


async def test_what_is_no_token_is_a_key_as_before(api: Api, stub: Stub) -> None:
    for text in ("psl_a.b.c", "a.b", "a.b.c.d.e", "sk-anything", api.issued.key[:-1] + "x"):
        problem(await api.get(text), 401, "key-refused")
    assert not stub.asked


async def test_a_new_key_is_fetched_and_unknown_ones_do_not_hammer_the_provider(
    api: Api, stub: Stub
) -> None:
    assert (await api.get(stub.access())).status_code == 200
    stub.keys = [rsa("three")]
    new = stub.access(key=rsa("three"))
    # not at once: the provider has been asked just now
    problem(await api.get(new), 401, "key-refused")
    api.now += PAUSE
    assert (await api.get(new)).status_code == 200
    assert stub.asked["/jwks"] == 2
    for number in range(20):
        stranger = stub.access(key=ec("two"), header={"kid": f"unknown-{number}"})
        problem(await api.get(stranger), 401, "key-refused")
    assert stub.asked["/jwks"] == 2
    # a key that the provider withdrew
    problem(await api.get(stub.access()), 401, "key-refused")


async def test_while_the_provider_is_down_keys_and_known_tokens_go_on(
    api: Api, stub: Stub, tenant: str
) -> None:
    stub.down = 500
    for _ in range(3):
        reply = await api.get(stub.access())
        problem(reply, 503, "provider-unavailable")
        assert int(reply.headers["retry-after"]) > 0
        assert (await api.get(api.issued.key)).status_code == 200
    assert stub.asked == {"/.well-known/openid-configuration": 1}
    stub.down = 0
    api.now += PAUSE
    known = stub.access()
    assert (await api.get(known)).status_code == 200
    stub.down = 500
    api.now += KEPT - 1
    assert (await api.get(known)).status_code == 200
    problem(await api.get(stub.access(header={"kid": "unknown"})), 503, "provider-unavailable")
    # keys of yesterday may have been withdrawn
    api.now += 1
    problem(await api.get(known), 503, "provider-unavailable")
    assert (await api.get(api.issued.key)).status_code == 200


@pytest.mark.parametrize(
    "changes",
    [
        {"jwks_uri": "http://169.254.169.254/latest/meta-data"},
        {"jwks_uri": "file:///etc/passwd"},
        {"jwks_uri": None},
        {"jwks_uri": ["http://127.0.0.1"]},
        {"token_endpoint": "http://10.0.0.7/token"},
        {"authorization_endpoint": "javascript:alert(1)"},
        {"issuer": "https://evil.example"},
        {"issuer": None},
    ],
)
async def test_a_discovery_document_leads_nowhere_else(
    api: Api, stub: Stub, changes: dict[str, Any]
) -> None:
    stub.document = changes
    problem(await api.get(stub.access()), 503, "provider-unavailable")
    assert set(stub.asked) == {"/.well-known/openid-configuration"}


async def test_redirections_of_the_provider_are_not_followed(api: Api, stub: Stub) -> None:
    stub.document = {"jwks_uri": f"{stub.issuer}/moved"}
    problem(await api.get(stub.access()), 503, "provider-unavailable")
    assert set(stub.asked) == {"/.well-known/openid-configuration", "/moved"}


async def test_a_secret_among_the_keys_signs_nothing(api: Api, stub: Stub) -> None:
    secret = OctKey.import_key(b"0" * 32, {"kid": "shared"})
    stub.keys = [rsa("one"), secret]
    problem(await api.get(stub.access(key=secret, header={"alg": "HS256"})), 401, "key-refused")
    assert (await api.get(stub.access())).status_code == 200
