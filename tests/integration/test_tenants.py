"""Tenants and their API keys on a real Redis: the store, the API, the command."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from datetime import timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any

import anyio
import httpx2
import jsonschema
import pytest
from redis.asyncio import Redis
from typer.testing import CliRunner, Result

from orchestrator.api.app import create_app
from orchestrator.cli import app
from orchestrator.jobs.store import JobStore
from orchestrator.settings import Settings
from posology.budget.redis_ledger import RedisLedger
from posology.budget.tenants import MAX_GRACE, Issued, TenantStore
from posology.client import Client
from posology.errors import (
    BudgetExhausted,
    InvalidLimit,
    InvalidQuery,
    KeyRefused,
    ModelNotAllowed,
    PosologyError,
    StoreUnavailable,
    TenantDisabled,
    TenantExists,
    TenantNotFound,
)
from posology.store import keys
from posology.store.connection import connect
from posology.types import (
    Attempt,
    Limits,
    Opening,
    Outcome,
    PromptId,
    Reservation,
    Scope,
    Stage,
)

pytestmark = [pytest.mark.anyio, pytest.mark.slow]
SCHEMAS = Path(__file__).resolve().parents[2] / "docs" / "schema"
PROMPT = PromptId(name="answer", digest="0" * 16)
METRICS_KEY = "of-the-operator-alone"


@pytest.fixture
async def redis(redis_url: str) -> AsyncIterator[Redis]:
    client = connect(redis_url)
    try:
        yield client
    finally:
        await client.aclose()


@pytest.fixture
async def store(redis: Redis, redis_url: str) -> TenantStore:
    return TenantStore(redis, redis_url)


def reservation(
    bound: Decimal, *, model: str = "openai:gpt-4o-mini", own: str = "a1"
) -> Reservation:
    opening = Opening(
        id=own,
        call=None,
        attempt=1,
        stage=Stage.ANSWER,
        model=model,
        prompt=PROMPT,
        key="k",
        started=1.0,
        reserved=bound,
    )
    return Reservation(opening=opening, call=1, job="run_1", ticket=f"run_1|{own}")


def settled(asked: Reservation, cost: Decimal) -> Attempt:
    opening = asked.opening
    return Attempt(
        id=opening.id,
        call=1,
        attempt=1,
        stage=opening.stage,
        model=opening.model,
        prompt=PROMPT,
        outcome=Outcome.OK,
        error=None,
        usage=None,
        cost=cost,
        started=1.0,
        latency=0.5,
        request_id=None,
        reserved=opening.reserved,
    )


async def refusal(work: Awaitable[object]) -> str:
    with pytest.raises(KeyRefused) as caught:
        await work
    return str(caught.value)


# the store


async def test_a_tenant_is_created_once_with_its_limits_and_a_key(
    store: TenantStore, tenant: str
) -> None:
    asked = Limits(
        day=Decimal("1.000000001"), job=Decimal(0), models=("openai:*",), tokens_per_minute=7
    )
    issued = await store.create(tenant, asked)
    assert issued.tenant == await store.get(tenant)
    assert issued.tenant.limits == asked
    assert not issued.tenant.disabled
    assert len(issued.tenant.keys) == 1
    assert issued.tenant.keys[0].expires is None
    assert issued.tenant.created == issued.tenant.changed == issued.tenant.keys[0].created
    assert await store.of_key(issued.key) == tenant
    assert issued.key not in repr(issued)
    with pytest.raises(TenantExists) as caught:
        await store.create(tenant, Limits(day=Decimal(9)))
    assert caught.value.tenant == tenant
    assert await store.get(tenant) == issued.tenant
    assert await store.of_key(issued.key) == tenant
    assert [one.name for one in await store.all()].count(tenant) == 1


async def test_of_many_who_create_it_one_does(redis_url: str, redis: Redis, tenant: str) -> None:
    made: list[Issued] = []
    refused: list[TenantExists] = []
    before = {key async for key in redis.scan_iter(match="posology:key:*", count=1_000)}

    async def create(day: int) -> None:
        client = connect(redis_url)
        try:
            made.append(
                await TenantStore(client, redis_url).create(tenant, Limits(day=Decimal(day)))
            )
        except TenantExists as error:
            refused.append(error)
        finally:
            await client.aclose()

    async with anyio.create_task_group() as group:
        for day in range(20):
            group.start_soon(create, day)
    assert (len(made), len(refused)) == (1, 19)
    found = await TenantStore(redis, redis_url).get(tenant)
    assert found.limits == made[0].tenant.limits
    assert len(found.keys) == 1
    after = {key async for key in redis.scan_iter(match="posology:key:*", count=1_000)}
    assert after - before == {keys.api_key(found.keys[0].id)}, "those who lost left nothing behind"
    assert await redis.ttl(keys.api_key(found.keys[0].id)) == -1


async def test_the_key_itself_is_nowhere_kept(
    store: TenantStore, redis: Redis, tenant: str
) -> None:
    issued = await store.create(tenant)
    secret = issued.key.rpartition("_")[2]
    looked = 0
    async for name in redis.scan_iter(match="*", count=1_000):
        kind = await redis.type(name)
        if kind not in ("hash", "string", "set"):
            continue
        content = {
            "hash": redis.hgetall, "string": redis.get, "set": redis.smembers,
        }[kind](name)  # fmt: skip
        assert secret not in f"{name} {await content}"
        looked += 1
    assert looked >= 3


async def test_limits_change_one_by_one_whoever_changes_others(
    store: TenantStore, tenant: str
) -> None:
    before = (await store.create(tenant, Limits(total=Decimal(3)))).tenant
    changes: list[tuple[str, Any]] = [
        ("day", Decimal(1)), ("month", Decimal(2)), ("calls", 4), ("models", ("openai:*",)),
        ("requests_per_minute", 5),
    ]  # fmt: skip

    async def change(name: str, value: Any) -> None:
        await store.limit(tenant, Limits(**{name: value}), only=[name])

    async with anyio.create_task_group() as group:
        for name, value in changes:
            group.start_soon(change, name, value)
    found = await store.get(tenant)
    assert found.limits == Limits(total=Decimal(3), **dict(changes))
    assert found.changed > before.changed
    assert found.created == before.created
    assert (await store.limit(tenant, Limits(), only=["day", "models"])).limits == Limits(
        total=Decimal(3), month=Decimal(2), calls=4, requests_per_minute=5
    )
    assert (await store.limit(tenant, Limits())).limits == Limits()


@pytest.mark.parametrize(
    "bad",
    [
        Limits(day=Decimal(-1)), Limits(month=Decimal("NaN")), Limits(total=Decimal("1e400")),
        Limits(job=Decimal("0.0000000001")), Limits(calls=0), Limits(models=()),
        Limits(models=("nobody:x",)), Limits(requests_per_minute=-1),
    ],
    ids=str,
)  # fmt: skip
async def test_of_bad_limits_nothing_is_written(
    store: TenantStore, redis: Redis, tenant: str, bad: Limits
) -> None:
    before = await _everything(redis)
    with pytest.raises(PosologyError):
        await store.create(tenant, bad)
    assert await _everything(redis) == before
    await store.create(tenant)
    before = await _everything(redis)
    with pytest.raises(PosologyError):
        await store.limit(tenant, bad)
    with pytest.raises(InvalidLimit, match="grace"):
        await store.rotate(tenant, grace=MAX_GRACE + 1)
    with pytest.raises(InvalidLimit, match="grace"):
        await store.rotate(tenant, grace=float("nan"))
    assert await _everything(redis) == before


@pytest.mark.parametrize("name", ["", "a b", "a}b", "{", "a" * 65, "é", "a\n", "-a", "../x", "a:b"])
async def test_no_tenant_has_such_a_name(store: TenantStore, redis: Redis, name: str) -> None:
    before = await _everything(redis)
    for work in (store.create, store.get, store.disable, store.enable, store.rotate):
        with pytest.raises(InvalidQuery) as caught:
            await work(name)
        assert caught.value.field == "tenant"
    with pytest.raises(InvalidQuery):
        await store.limit(name, Limits())
    assert await _everything(redis) == before


async def test_what_was_not_created_is_not_there(
    store: TenantStore, redis: Redis, tenant: str
) -> None:
    before = await _everything(redis)
    for work in (store.get, store.disable, store.enable, store.rotate):
        with pytest.raises(TenantNotFound) as caught:
            await work(tenant)
        assert caught.value.tenant == tenant
    with pytest.raises(TenantNotFound):
        await store.limit(tenant, Limits(day=Decimal(1)))
    assert await _everything(redis) == before


async def test_the_scripts_of_money_obey_the_record(
    store: TenantStore, redis: Redis, redis_url: str, tenant: str
) -> None:
    ledger = RedisLedger(redis, redis_url, tenant=tenant)
    await store.create(tenant, Limits(day=Decimal("0.5"), models=("openai:gpt-4o-mini",)))
    with pytest.raises(BudgetExhausted) as caught:
        await ledger.reserve(reservation(Decimal("0.500000001")))
    assert (caught.value.scope, caught.value.cap) == ("day", Decimal("0.5"))
    with pytest.raises(ModelNotAllowed):
        await ledger.reserve(reservation(Decimal("0.1"), model="openai:gpt-4o"))
    first = reservation(Decimal("0.5"))
    await ledger.reserve(first)
    await store.disable(tenant)
    with pytest.raises(TenantDisabled):
        await ledger.reserve(reservation(Decimal(0), own="a2"))
    await ledger.settle(settled(first, Decimal("0.3")))
    await store.enable(tenant)
    await ledger.reserve(reservation(Decimal("0.2"), own="a3"))
    # below what is spent: allowed, and nothing more is spent
    await store.limit(tenant, Limits(day=Decimal("0.1")), only=["day"])
    day = (await ledger.balances())[0]
    assert (day.scope, day.cap, day.left) == (Scope.DAY, Decimal("0.1"), Decimal(0))
    with pytest.raises(BudgetExhausted):
        await ledger.reserve(reservation(Decimal("0.000000001"), own="a4"))
    await store.limit(tenant, Limits(), only=["day"])
    await ledger.reserve(reservation(Decimal(1_000), own="a4"))


# keys


async def test_a_rotation_ends_the_other_keys_at_once(
    store: TenantStore, redis: Redis, tenant: str
) -> None:
    first = await store.create(tenant)
    second = await store.rotate(tenant)
    assert [key.id for key in second.tenant.keys] == [second.key.split("_")[1]]
    assert await store.of_key(second.key) == tenant
    await refusal(store.of_key(first.key))
    assert not await redis.exists(keys.api_key(first.key.split("_")[1]))


async def test_during_grace_both_are_accepted_and_no_longer(
    store: TenantStore, redis: Redis, tenant: str
) -> None:
    first = await store.create(tenant)
    second = await store.rotate(tenant, grace=30)
    old, new = second.tenant.keys
    assert new.expires is None
    assert old.expires is not None
    assert timedelta(seconds=29) < old.expires - new.created <= timedelta(seconds=30)
    assert await store.of_key(first.key) == await store.of_key(second.key) == tenant
    # none that ends earlier gets more time
    third = await store.rotate(tenant, grace=3_000)
    assert third.tenant.keys[0].expires == old.expires
    assert len(third.tenant.keys) == 3
    assert await store.of_key(first.key) == tenant
    fourth = await store.rotate(tenant)
    for issued in (first, second, third):
        await refusal(store.of_key(issued.key))
    assert await store.of_key(fourth.key) == tenant
    assert await redis.hlen(f"{keys.prefix(tenant)}keys") == 1


async def test_a_key_ends_when_its_grace_is_over(
    redis: Redis, redis_url: str, store: TenantStore, tenant: str
) -> None:
    first = await store.create(tenant)
    second = await store.rotate(tenant, grace=60)
    seconds, _ = await redis.time()

    def later(by: int) -> TenantStore:
        return TenantStore(redis, redis_url, clock=lambda: (seconds + by) * 1000)

    assert await later(58).of_key(first.key) == tenant
    await refusal(later(62).of_key(first.key))
    assert await later(62).of_key(second.key) == tenant
    assert [key.id for key in (await later(62).get(tenant)).keys] == [second.key.split("_")[1]]
    assert 50 < await redis.ttl(keys.api_key(first.key.split("_")[1])) <= 60


async def test_of_many_rotations_one_key_is_left(redis_url: str, tenant: str) -> None:
    client = connect(redis_url)
    store = TenantStore(client, redis_url)
    made = [await store.create(tenant)]

    async def rotate() -> None:
        made.append(await store.rotate(tenant))

    try:
        async with anyio.create_task_group() as group:
            for _ in range(20):
                group.start_soon(rotate)
        accepted = []
        for issued in made:
            try:
                accepted.append(await store.of_key(issued.key))
            except KeyRefused:
                continue
        assert accepted == [tenant]
    finally:
        await client.aclose()


async def test_refusals_do_not_tell_which_keys_there_are(store: TenantStore, tenant: str) -> None:
    issued = await store.create(tenant)
    other = await store.create(f"{tenant}x")
    start, own, secret = issued.key.split("_")
    ended = issued.key
    issued = await store.rotate(tenant)
    start, own, secret = issued.key.split("_")
    await store.disable(tenant)
    told = {
        await refusal(store.of_key(text))
        for text in (
            "", "psl_", "nonsense", ended, f"{start}_{own}_{'0' * 48}", f"{start}_{'0' * 16}_{secret}",
            f"{start}_{other.key.split('_')[1]}_{secret}", issued.key.upper(), f"{issued.key} ", "\u0661",
        )
    }  # fmt: skip
    assert len(told) == 1
    # only who has the key learns that the tenant is disabled
    with pytest.raises(TenantDisabled):
        await store.of_key(issued.key)
    await store.enable(tenant)
    assert await store.of_key(issued.key) == tenant


@pytest.mark.parametrize(
    ("script", "arguments", "said"),
    [
        ("create_tenant", ["k1", "{}"], "created"),
        ("change_tenant", ['{"day": "7"}'], "changed"),
        ("rotate_key", ["k2", 0], None),
    ],
)
async def test_a_script_that_runs_twice_does_nothing_more(
    store: TenantStore,
    redis: Redis,
    tenant: str,
    script: str,
    arguments: list[Any],
    said: str | None,
) -> None:
    prefix = keys.prefix(tenant)
    if script != "create_tenant":
        await store.create(tenant)
    clocked = TenantStore(redis, "", clock=lambda: 1_800_000_000_000)
    first = await clocked._run(script, prefix, *arguments)
    before = await _everything(redis)
    again = await clocked._run(script, prefix, *arguments)
    assert await _everything(redis) == before
    assert (first == again == said) if said else (first[0] == again[0] == "rotated")


async def test_without_redis_nothing_is_known(tenant: str) -> None:
    url = "redis://:secret@127.0.0.1:1/0"
    client = connect(url, patience=0)
    store = TenantStore(client, url)
    try:
        for work in (
            store.create(tenant), store.get(tenant), store.all(), store.disable(tenant),
            store.rotate(tenant), store.of_key(f"psl_{'0' * 16}_{'0' * 48}"),
        ):  # fmt: skip
            with pytest.raises(StoreUnavailable) as caught:
                await work
            assert "secret" not in str(caught.value)
    finally:
        await client.aclose()


async def _everything(redis: Redis) -> dict[str, Any]:
    """All that the tests' Redis holds of tenants and keys."""
    found: dict[str, Any] = {}
    async for name in redis.scan_iter(match="posology:*", count=1_000):
        kind = await redis.type(name)
        if kind == "hash":
            found[name] = await redis.hgetall(name)
        elif kind == "set":
            found[name] = await redis.smembers(name)
        else:
            found[name] = kind
    return found


# the API


@asynccontextmanager
async def api(
    redis: Redis, url: str, auth: str | None = "keys"
) -> AsyncIterator[httpx2.AsyncClient]:
    given = {"POSOLOGY_METRICS_KEY": METRICS_KEY} | (
        {} if auth is None else {"POSOLOGY_AUTH": auth}
    )
    served = create_app(Settings.model_validate(given), JobStore(redis, url))
    transport = httpx2.ASGITransport(served, raise_app_exceptions=False)
    async with httpx2.AsyncClient(transport=transport, base_url="http://api") as client:
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
            wrong = await client.get("/v1/jobs", headers=bearer(f"{issued.key[:-4]}0000"))
            assert wrong.status_code == 401
            assert (await client.get("/metrics")).status_code == 200


async def test_figures_of_all_tenants_are_the_operators(
    store: TenantStore, redis: Redis, redis_url: str, tenant: str
) -> None:
    issued = await store.create(tenant)
    async with api(redis, redis_url) as client:
        for headers in ({}, bearer(issued.key), bearer("x"), {"Authorization": METRICS_KEY}):
            refused = await client.get("/metrics", headers=headers)
            assert refused.status_code == 401
            assert "posology_jobs" not in refused.text
        given = await client.get("/metrics", headers=bearer(METRICS_KEY))
        assert given.status_code == 200
        assert "posology_jobs" in given.text
        for path in ("/healthz", "/openapi.json"):
            assert (await client.get(path)).status_code == 200
    served = create_app(
        Settings.model_validate({"POSOLOGY_AUTH": "keys"}), JobStore(redis, redis_url)
    )
    async with httpx2.AsyncClient(
        transport=httpx2.ASGITransport(served), base_url="http://api"
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


# the command

Cli = Callable[..., Result]


@pytest.fixture
def cli(redis_url: str) -> Cli:
    def run(*arguments: str, **env: str) -> Result:
        environment = {"POSOLOGY_REDIS_URL": redis_url, "COLUMNS": "160", **env}
        return CliRunner().invoke(app, ["tenants", *arguments], env=environment)

    return run


def published(result: Result, name: str) -> Any:
    assert result.exit_code == 0, result.output
    out = json.loads(result.stdout)
    jsonschema.validate(out, json.loads((SCHEMAS / f"{name}.json").read_text(encoding="utf-8")))
    return out


def test_a_tenants_life_on_the_command_line(cli: Cli, tenant: str) -> None:
    made = cli(
        "create", tenant, "--day", "5", "--job", "0.25", "--model", "openai:*", "--rpm", "60"
    )
    assert made.exit_code == 0, made.output
    assert made.stdout.startswith("psl_"), "the key alone, for a script to take it"
    assert made.stdout.count("\n") == 1
    assert made.stdout.strip() not in made.stderr
    assert "shown this once" in made.stderr
    shown = cli("show", tenant)
    for words in (tenant, "active", "$5", "$0.25", "openai:*", "60", "no limit", "UTC"):
        assert words in shown.stdout
    assert made.stdout.strip() not in shown.stdout
    out = published(cli("show", tenant, "--json"), "tenant")
    assert (out["limits"]["day_usd"], out["limits"]["month_usd"], out["key"]) == ("5", None, None)
    assert [one["scope"] for one in out["balances"]] == ["day", "month", "total"]
    assert out["balances"][0]["left_usd"] == "5"
    out = published(
        cli("set", tenant, "--day", "none", "--model", "none", "--tpm", "9", "--json"), "tenant"
    )
    assert out["limits"]["day_usd"] is out["limits"]["models"] is None
    assert (out["limits"]["job_usd"], out["limits"]["tokens_per_minute"]) == ("0.25", 9)
    assert published(cli("disable", tenant, "--json"), "tenant")["disabled"]
    listed = published(cli("list", "--json"), "tenants")["tenants"]
    assert [one["disabled"] for one in listed if one["name"] == tenant] == [True]
    (line,) = [line for line in cli("list").stdout.splitlines() if line.startswith(tenant)]
    assert "disabled" in line
    assert not published(cli("enable", tenant, "--json"), "tenant")["disabled"]
    rotated = published(cli("rotate-key", tenant, "--grace", "60", "--json"), "tenant")
    assert rotated["key"].startswith("psl_")
    assert [key["expires"] is None for key in rotated["keys"]] == [False, True]
    assert cli("rotate-key", tenant).stdout.startswith("psl_")
    assert len(published(cli("show", tenant, "--json"), "tenant")["keys"]) == 1


def test_a_limit_below_what_is_spent_is_told(cli: Cli, redis_url: str, tenant: str) -> None:
    async def spend() -> None:
        redis = connect(redis_url)
        try:
            ledger = RedisLedger(redis, redis_url, tenant=tenant)
            asked = reservation(Decimal(2))
            await ledger.reserve(asked)
            await ledger.settle(settled(asked, Decimal("1.5")))
        finally:
            await redis.aclose()

    anyio.run(spend)
    # what it spent before it was created counts
    made = cli("create", tenant, "--day", "2", "--total", "1")
    assert (
        "of the total's limit of $1, $1.5 are spent: no call that costs anything is made"
        in made.stderr
    )
    assert "of the day's" not in made.stderr
    lowered = cli("set", tenant, "--day", "1.5")
    assert lowered.exit_code == 0
    assert "of the day's limit of $1.5, $1.5 are spent" in lowered.stderr
    out = published(cli("show", tenant, "--json"), "tenant")
    day = out["balances"][0]
    assert (day["cap_usd"], day["spent_usd"], day["left_usd"]) == ("1.5", "1.5", "0")


@pytest.mark.parametrize(
    ("arguments", "status", "words"),
    [
        (["create", "a b"], 3, "no tenant can be called"),
        (["create", "T", "--day", "-1"], 3, "day"),
        (["create", "T", "--day", "nan"], 3, "day"),
        (["create", "T", "--month", "1e400"], 3, "month"),
        (["create", "T", "--total", "9000000.000000001"], 3, "total"),
        (["create", "T", "--job", "0.0000000001"], 3, "job"),
        (["create", "T", "--calls", "0"], 3, "calls"),
        (["create", "T", "--rpm", "1.5"], 3, "requests_per_minute"),
        (["create", "T", "--tpm", "9999999999"], 3, "tokens_per_minute"),
        (["create", "T", "--model", "gpt"], 4, "no model 'gpt'"),
        (["create", "T", "--model", "none", "--model", "openai:*"], 4, "no model 'none'"),
        (["show", "T"], 12, "no tenant"),
        (["set", "T", "--day", "1"], 12, "tenants create"),
        (["set", "T"], 2, "say which limit"),
        (["disable", "T"], 12, "no tenant"),
        (["enable", "T"], 12, "no tenant"),
        (["rotate-key", "T"], 12, "no tenant"),
        (["rotate-key", "T", "--grace", "-1"], 3, "grace"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else "",
)  # fmt: skip
def test_what_cannot_be_is_told_and_has_its_exit_status(
    cli: Cli, tenant: str, arguments: list[str], status: int, words: str
) -> None:
    given = [tenant if word == "T" else word for word in arguments]
    result = cli(*given)
    assert result.exit_code == status, result.output
    assert words in result.stderr
    assert result.stdout == ""
    if status != 2:
        error = cli(*given, "--json")
        assert error.exit_code == status
        assert json.loads(error.stdout)["error"]["exit_code"] == status
    assert tenant not in cli("list").stdout


def test_a_tenant_that_exists_is_not_created_again(cli: Cli, tenant: str) -> None:
    assert cli("create", tenant, "--day", "1").exit_code == 0
    again = cli("create", tenant, "--day", "9")
    assert (again.exit_code, again.stdout) == (12, "")
    assert published(cli("show", tenant, "--json"), "tenant")["limits"]["day_usd"] == "1"


@pytest.mark.parametrize("host", ["0.0.0.0", "::", "192.0.2.1", "example.org"])
@pytest.mark.parametrize("command", ["api", "up"])
def test_an_open_api_is_not_served_to_others_unless_that_is_meant(
    redis_url: str, command: str, host: str, tmp_path: Path
) -> None:
    environment = {"POSOLOGY_REDIS_URL": redis_url, "POSOLOGY_HOME": str(tmp_path)}
    result = CliRunner().invoke(app, [command, "--host", host], env=environment)
    assert result.exit_code == 4
    assert "POSOLOGY_AUTH=keys" in result.stderr
