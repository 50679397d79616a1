"""API keys at the API, on a real Redis."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import httpx2
import pytest
from redis.asyncio import Redis

from orchestrator.api.app import create_app
from orchestrator.jobs.store import JobStore
from orchestrator.settings import Settings
from posology.budget.tenants.store import TenantStore
from posology.client import Client
from posology.errors import KeyRefused, TenantDisabled

pytestmark = pytest.mark.anyio
METRICS_KEY = "of-the-operator-alone"


@pytest.fixture
async def store(redis: Redis, redis_url: str) -> TenantStore:
    return TenantStore(redis, redis_url)


@asynccontextmanager
async def api(
    redis: Redis, url: str, auth: str | None = "keys"
) -> AsyncIterator[httpx2.AsyncClient]:
    given = {"POSOLOGY_METRICS_KEY": METRICS_KEY} | (
        {} if auth is None else {"POSOLOGY_AUTH": auth}
    )
    served = create_app(Settings.model_validate(given), JobStore(redis, url))
    transport = httpx2.ASGITransport(served, raise_app_exceptions=False)
    async with httpx2.AsyncClient(transport=transport, base_url="http://localhost") as client:
        yield client


def bearer(key: str, **headers: str) -> dict[str, str]:
    return {"Authorization": f"Bearer {key}", **headers}


async def test_with_keys_the_tenant_is_the_keys(
    store: TenantStore, redis: Redis, redis_url: str, tenant: str
) -> None:
    issued = await store.create(tenant)
    async with api(redis, redis_url) as client:
        made = await client.post(
            "/v1/jobs", json={"question": "Does it?"}, headers=bearer(issued.key)
        )
        assert made.status_code == 202, made.text
        assert made.json()["tenant"] == tenant
        same = bearer(issued.key, **{"X-Posology-Tenant": tenant})
        assert len((await client.get("/v1/jobs", headers=same)).json()["jobs"]) == 1
        for other in (f"{tenant}x", "default", "a b", ""):
            refused = await client.get(
                "/v1/jobs", headers=bearer(issued.key, **{"X-Posology-Tenant": other})
            )
            assert refused.status_code == 403
            assert refused.json()["type"] == "urn:posology:problem:not-your-tenant"
            assert tenant not in refused.text


async def test_without_a_key_that_is_one_it_is_refused_alike(
    store: TenantStore, redis: Redis, redis_url: str, tenant: str
) -> None:
    issued = await store.create(tenant)
    _, own, secret = issued.key.split("_")
    said = set()
    async with api(redis, redis_url) as client:
        for headers in (
            {}, {"X-Posology-Tenant": tenant}, {"Authorization": ""}, {"Authorization": "Bearer"},
            {"Authorization": issued.key}, {"Authorization": f"Basic {issued.key}"},
            bearer(f"psl_{own}_{'0' * 48}"), bearer(f"psl_{'0' * 16}_{secret}"), bearer("x" * 5_000),
            bearer(METRICS_KEY),
        ):  # fmt: skip
            for method, path in (
                ("GET", "/v1/jobs"),
                ("POST", "/v1/jobs"),
                ("DELETE", "/v1/jobs/x"),
            ):
                refused = await client.request(method, path, headers=headers)
                assert refused.status_code == 401
                assert refused.headers["www-authenticate"] == "Bearer"
                assert refused.headers["content-type"] == "application/problem+json"
                said.add(refused.text)
        assert len(said) == 1
        lower = await client.get("/v1/jobs", headers={"authorization": f"bearer {issued.key}"})
        assert lower.status_code == 200, "the scheme's case does not matter"


async def test_a_rotation_and_a_disabling_take_effect_at_the_next_request(
    store: TenantStore, redis: Redis, redis_url: str, tenant: str
) -> None:
    issued = await store.create(tenant)
    async with api(redis, redis_url) as client:

        async def status(key: str) -> int:
            return (await client.get("/v1/jobs", headers=bearer(key))).status_code

        assert await status(issued.key) == 200
        fresh = await store.rotate(tenant)
        assert (await status(issued.key), await status(fresh.key)) == (401, 200)
        await store.disable(tenant)
        refused = await client.get("/v1/jobs", headers=bearer(fresh.key))
        assert (refused.status_code, refused.json()["tenant"]) == (403, tenant)
        assert await status(issued.key) == 401, "an ended key learns nothing"
        await store.enable(tenant)
        assert await status(fresh.key) == 200


async def test_open_believes_the_header_and_honours_a_key(
    store: TenantStore, redis: Redis, redis_url: str, tenant: str
) -> None:
    issued = await store.create(tenant)
    for auth in ("open", None):
        async with api(redis, redis_url, auth) as client:
            question = {"question": "Does it?"}
            header = {"X-Posology-Tenant": f"{tenant}x"}
            believed = await client.post("/v1/jobs", json=question, headers=header)
            assert believed.json()["tenant"] == f"{tenant}x"
            keyed = await client.post("/v1/jobs", json=question, headers=bearer(issued.key))
            assert keyed.json()["tenant"] == tenant
            both = await client.get("/v1/jobs", headers=bearer(issued.key, **header))
            assert both.status_code == 403
            # a tenant's key that is wrong, or has ended, is no other tenant's
            wrong = await client.get("/v1/jobs", headers=bearer(f"{issued.key[:-4]}0000"))
            assert wrong.status_code == 401
            assert (await client.get("/metrics")).status_code == 200


@pytest.mark.parametrize(
    "text",
    [
        "none",
        "sk-anything",
        "asdf",
        "psl_",
        "psl_x",
        f"psl_{'0' * 16}_{'0' * 48}",
        "é",
        "x" * 5_000,
    ],
)
async def test_open_takes_any_text_as_no_key(
    store: TenantStore, redis: Redis, redis_url: str, tenant: str, text: str
) -> None:
    for auth in ("open", None):
        async with api(redis, redis_url, auth) as client:
            named = {
                b"Authorization": f"Bearer {text}".encode(),
                b"X-Posology-Tenant": tenant.encode(),
            }
            headers = httpx2.Headers(named)
            for path in ("/v1/models", "/v1/jobs", "/v1/spend", "/metrics"):
                assert (await client.get(path, headers=headers)).status_code == 200, path
            job = await client.post("/v1/jobs", json={"question": "Does it?"}, headers=headers)
            assert job.json()["tenant"] == tenant
            # pages of other sites are refused as before
            headers["Origin"] = "https://evil.example"
            assert (await client.get("/v1/models", headers=headers)).status_code == 403
    async with api(redis, redis_url) as client:
        assert (await client.get("/v1/models", headers=headers)).status_code == 401


async def test_figures_of_all_tenants_are_the_operators(
    store: TenantStore, redis: Redis, redis_url: str, tenant: str
) -> None:
    issued = await store.create(tenant)
    async with api(redis, redis_url) as client:
        for headers in ({}, bearer(issued.key), bearer("x"), {"Authorization": METRICS_KEY}):
            refused = await client.get("/metrics", headers=headers)
            assert refused.status_code == 401
            assert "posology_jobs" not in refused.text
            assert "POSOLOGY_METRICS_KEY" in refused.json()["detail"]
            assert "psl_" not in refused.text
        given = await client.get("/metrics", headers=bearer(METRICS_KEY))
        assert given.status_code == 200
        assert "posology_jobs" in given.text
        for path in ("/healthz", "/openapi.json"):
            assert (await client.get(path)).status_code == 200
    served = create_app(
        Settings.model_validate({"POSOLOGY_AUTH": "keys"}), JobStore(redis, redis_url)
    )
    async with httpx2.AsyncClient(
        transport=httpx2.ASGITransport(served), base_url="http://localhost"
    ) as client:
        for key in ("", "None", METRICS_KEY):
            assert (await client.get("/metrics", headers=bearer(key))).status_code == 401


async def test_the_document_says_whether_a_key_must_be(redis: Redis, redis_url: str) -> None:
    for auth, wanted in (("keys", [{"key": []}]), (None, [{"key": []}, {}])):
        async with api(redis, redis_url, auth) as client:
            found = (await client.get("/openapi.json")).json()
        operation = found["paths"]["/v1/jobs"]["post"]
        assert operation["security"] == wanted
        assert {"401", "403"} <= set(operation["responses"])
        assert found["components"]["securitySchemes"]["key"]["scheme"] == "bearer"
        assert "security" not in found["paths"]["/healthz"]["get"]


async def test_the_client_sends_the_key(
    store: TenantStore, redis: Redis, redis_url: str, tenant: str
) -> None:
    issued = await store.create(tenant)
    served = create_app(
        Settings.model_validate({"POSOLOGY_AUTH": "keys"}), JobStore(redis, redis_url)
    )

    def client(**who: str) -> Client:
        return Client("http://api", transport=httpx2.ASGITransport(served), **who)  # type: ignore[arg-type]  # by name

    async with client(api_key=issued.key) as keyed:
        job = await keyed.submit("Does it?")
        assert job.tenant == tenant
        assert issued.key not in repr(vars(keyed))
        await store.disable(tenant)
        with pytest.raises(TenantDisabled) as caught:
            await keyed.get(job.id)
        assert caught.value.tenant == tenant
    for who in ({}, {"tenant": tenant}, {"api_key": "psl_x"}):
        async with client(**who) as unkeyed:
            with pytest.raises(KeyRefused, match="Authorization"):
                await unkeyed.get(job.id)
    for key in (f"{issued.key}\n", "psl_é"):
        with pytest.raises(KeyRefused) as refused:
            client(api_key=key)
        assert key.strip() not in str(refused.value)
