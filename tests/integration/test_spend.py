"""Spending, in reports, over HTTP and on the command line, on a real Redis."""

from __future__ import annotations

import json
from collections import defaultdict
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any

import anyio
import httpx2
import pytest
from redis.asyncio import Redis

from orchestrator.spending import spend_output
from posology.budget.spending.figures import Spent, spent, total
from posology.budget.spending.periods import DAYS, Period
from posology.published.money import SpendOutput
from posology.store import keys
from posology.store.connection import connect
from posology.types import Grouping
from tests.support.commands import Cli, flat, published
from tests.support.traffic import Told, Traffic

YEAR = Period(since=date(2026, 1, 1), until=date(2026, 12, 31))


async def traffic_of(redis: Redis, url: str, tenant: str, seed: int, now: int = 0) -> Traffic:
    made = Traffic(redis=redis, url=url, tenant=tenant, seed=seed)
    made.now = now or made.now
    await made.start()
    await made.spend(250)
    return made


def group_of(one: Told, by: Grouping, tenant: str, models: set[str]) -> str:
    opening = one.opening
    return {
        Grouping.DAY: one.day,
        Grouping.MONTH: one.day[:7],
        Grouping.STAGE: str(opening.stage),
        Grouping.STRATEGY: opening.strategy,
        Grouping.TIER: one.tier,
        Grouping.MODEL: opening.model if opening.model in models else "other",
        Grouping.TENANT: tenant,
    }[by]


def summed(told: list[Told]) -> Spent:
    sent = [one for one in told if one.outcome != "released"]
    used = [one.usage for one in told if one.usage is not None]
    unknown = [one for one in sent if one.cost is None]
    return Spent(
        attempts=len(sent),
        charged=sum((one.charged for one in sent), Decimal(0)),
        at_bounds=sum((one.charged for one in unknown), Decimal(0)),
        unknown=len(unknown),
        input=sum(usage.total_input for usage in used),
        output=sum(usage.total_output for usage in used),
    )


@pytest.mark.anyio
@pytest.mark.parametrize("by", list(Grouping))
async def test_each_grouping_adds_up_to_what_was_spent(
    redis: Redis, redis_url: str, tenant: str, by: Grouping
) -> None:
    traffic = await traffic_of(redis, redis_url, tenant, seed=list(Grouping).index(by))
    ended = [one for one in traffic.told.values() if one.kind != "reserve"]
    models = {one.opening.model for one in ended}
    found = await spent(redis, redis_url, tenant, YEAR, by)
    assert total(list(found.values())) == summed(ended)
    if by is not Grouping.MODEL:
        expected: dict[str, list[Told]] = defaultdict(list)
        for one in ended:
            expected[group_of(one, by, tenant, models)].append(one)
        sums = {name: summed(told) for name, told in expected.items()}
        # a group in which all was released may stand there or not
        assert {name: one for name, one in found.items() if one.attempts} == {
            name: one for name, one in sums.items() if one.attempts
        }
    else:
        # a model has figures of its own from its first reply on
        assert found.keys() <= models | {"other"}
        assert len(found) > 2
    if by.of_time:
        assert list(found) == sorted(found)
    else:
        amounts = [one.charged for one in found.values()]
        assert amounts == sorted(amounts, reverse=True)


@pytest.mark.anyio
async def test_days_outside_a_report_do_not_count(
    redis: Redis, redis_url: str, tenant: str
) -> None:
    traffic = await traffic_of(redis, redis_url, tenant, seed=3)
    days = sorted({one.day for one in traffic.told.values() if one.kind != "reserve"})
    some = Period(since=date.fromisoformat(days[1]), until=date.fromisoformat(days[-2]))
    found = await spent(redis, redis_url, tenant, some, Grouping.STAGE)
    assert total(list(found.values())) == summed(
        [
            one
            for one in traffic.told.values()
            if one.kind != "reserve" and days[0] < one.day < days[-1]
        ]
    )
    assert await spent(redis, redis_url, f"{tenant}x", YEAR, Grouping.DAY) == {}


@pytest.mark.anyio
async def test_what_was_counted_without_a_tier_has_an_unknown_one(
    redis: Redis, redis_url: str, tenant: str
) -> None:
    odd = "openai:a|flex|b"
    labels = {
        f"answer|direct|{odd}": 3,
        "answer|direct|other": 5,
        f"answer|direct|flex|{odd}": 7,
        "answer|direct|batch|other": 11,
    }
    names: dict[Any, int] = {f"attempts|{label}": n for label, n in labels.items()}
    await redis.hset(f"{keys.prefix(tenant)}money:by:2026-01-30", mapping=names)
    by_tier = await spent(redis, redis_url, tenant, YEAR, Grouping.TIER)
    assert {name: one.attempts for name, one in by_tier.items()} == {
        "unknown": 8, "flex": 7, "batch": 11
    }  # fmt: skip
    by_model = await spent(redis, redis_url, tenant, YEAR, Grouping.MODEL)
    assert {name: one.attempts for name, one in by_model.items()} == {odd: 10, "other": 16}


@pytest.mark.anyio
async def test_reports_of_tenants_are_put_together(
    redis: Redis, redis_url: str, tenant: str
) -> None:
    tenants = [tenant, f"{tenant}x", f"{tenant}y"]
    made = [await traffic_of(redis, redis_url, name, seed=i) for i, name in enumerate(tenants[:2])]
    ended = [one for t in made for one in t.told.values() if one.kind != "reserve"]
    out = await spend_output(redis, redis_url, tenants, YEAR, Grouping.TENANT, single=False)
    assert {group.name for group in out.groups} == set(tenants[:2])
    stages = await spend_output(redis, redis_url, tenants, YEAR, Grouping.STAGE, single=False)
    assert out.total == stages.total
    assert out.total.charged_usd == summed(ended).charged
    assert out.tenant is None
    assert {balance.tenant for balance in out.balances} == set(tenants)
    totals = {b.tenant: b.spent_usd for b in out.balances if b.scope == "total"}
    assert totals == {
        **{group.name: group.charged_usd for group in out.groups}, tenants[2]: Decimal(0)
    }  # fmt: skip


def now() -> int:
    return int(datetime.now(UTC).timestamp() * 1000)


async def spend_something(redis: Redis, url: str, tenant: str, dollars: str = "0.25") -> None:
    """One settled call of today, and one that is under way."""
    traffic = Traffic(redis=redis, url=url, tenant=tenant, now=now())
    await traffic.start()
    await redis.hset(f"{keys.prefix(tenant)}tenant", "day", 5 * 10**9)
    attempt = await traffic.reserve(nano=10**9)
    await traffic.settle(attempt, "settle", cost=Decimal(dollars))
    await traffic.reserve(nano=2 * 10**9)


@pytest.mark.anyio
async def test_the_api_tells_a_tenant_what_it_spent(
    client: httpx2.AsyncClient, redis: Redis, redis_url: str, tenant: str
) -> None:
    await spend_something(redis, redis_url, tenant)
    reply = await client.get("/v1/spend", params={"by": "stage"})
    assert reply.status_code == 200, reply.text
    out = SpendOutput.model_validate_json(reply.content)
    assert (out.tenant, out.by) == (tenant, Grouping.STAGE)
    assert (out.until - out.since).days == DAYS - 1
    (group,) = out.groups
    assert (group.attempts, group.charged_usd, group.unknown_costs) == (1, Decimal("0.25"), 0)
    assert out.total.charged_usd == group.charged_usd
    day, month, ever = out.balances
    assert [day.scope, month.scope, ever.scope] == ["day", "month", "total"]
    assert (day.cap_usd, day.spent_usd, day.reserved_usd, day.left_usd) == (
        Decimal(5), Decimal("0.25"), Decimal(2), Decimal("2.75")
    )  # fmt: skip
    assert (month.cap_usd, month.left_usd, ever.resets) == (None, None, None)
    assert day.resets is not None
    assert day.resets.date() > out.until - timedelta(days=1)
    far = {"since": "2020-01-01", "until": "2020-12-31"}
    assert (await client.get("/v1/spend", params=far)).json()["groups"] == []


@pytest.mark.anyio
async def test_no_tenant_learns_what_another_spent(
    client: httpx2.AsyncClient, redis: Redis, redis_url: str, tenant: str
) -> None:
    other = f"{tenant}x"
    await spend_something(redis, redis_url, tenant)
    client.headers["X-Posology-Tenant"] = other
    refused = await client.get("/v1/spend", params={"tenant": tenant})
    assert (refused.status_code, refused.json()["field"]) == (422, "tenant")
    assert tenant not in refused.text.replace(other, "")
    for query in ({}, {"by": "model"}):
        reply = await client.get("/v1/spend", params=query)
        out = SpendOutput.model_validate_json(reply.content)
        assert (out.tenant, out.groups, out.total.attempts) == (other, (), 0)
        assert {balance.tenant for balance in out.balances} == {other}
        assert all(b.spent_usd == b.reserved_usd == 0 for b in out.balances)
        assert tenant not in reply.text.replace(other, "")


@pytest.mark.anyio
@pytest.mark.parametrize(
    ("query", "field"),
    [
        ({"since": "yesterday"}, "since"),
        ({"until": "2026-02-30"}, "until"),
        ({"since": "2026-01-02", "until": "2026-01-01"}, "since"),
        ({"by": "tenant"}, "by"),
        ({"by": "colour"}, "by"),
    ],
)
async def test_bad_parameters_are_told(
    client: httpx2.AsyncClient, query: dict[str, str], field: str
) -> None:
    reply = await client.get("/v1/spend", params=query)
    assert reply.status_code == 422, reply.text
    assert reply.headers["content-type"] == "application/problem+json"
    found = reply.json()
    assert (found["type"], found["field"]) == ("urn:posology:problem:invalid-query", field)


def spend_now(redis_url: str, *tenants: str) -> None:
    async def work() -> None:
        redis = connect(redis_url)
        for tenant in tenants:
            await spend_something(redis, redis_url, tenant)
        await redis.aclose()

    anyio.run(work)


def tamper(redis_url: str, tenant: str) -> None:
    async def work() -> None:
        redis = connect(redis_url)
        await redis.hincrby(f"{keys.prefix(tenant)}money", "spent:total", 10**9)
        await redis.aclose()

    anyio.run(work)


def test_the_command_tells_what_was_spent(cli: Cli, redis_url: str, tenant: str) -> None:
    spend_now(redis_url, tenant, f"{tenant}x")
    out = published(cli("spend", "--by", "day", "--json"), "spend")
    assert [group["charged_usd"] for group in out["groups"]] == ["0.25"]
    shown = flat(cli("spend", "--by", "strategy").stdout)
    assert tenant in shown
    assert "1 $0.2500 $0 0" in shown
    assert "day $5.0000 $0.2500 $2.0000 $2.7500" in shown
    assert "month no limit" in shown
    every = published(cli("spend", "--by", "tenant", "--json"), "spend")
    assert every["tenant"] is None
    assert {tenant, f"{tenant}x"} <= {group["name"] for group in every["groups"]}
    both = published(cli("spend", "--by", "model", "--all", "--json"), "spend")
    assert Decimal(both["total"]["charged_usd"]) == sum(
        Decimal(group["charged_usd"]) for group in every["groups"]
    )
    mine = published(cli("spend", "--by", "tenant", "--tenant", tenant, "--json"), "spend")
    assert [group["name"] for group in mine["groups"]] == [tenant]
    assert f"{tenant}x total" in flat(cli("spend", "--all").stdout)


def test_what_cannot_be_reported_is_told(cli: Cli) -> None:
    for arguments in (["--since", "soon"], ["--until", "2026-13-01"],
                      ["--since", "2020-01-01"]):  # fmt: skip
        result = cli("spend", *arguments)
        assert result.exit_code == 3, result.stdout
        assert arguments[0].strip("-") in result.stderr or "400 days" in result.stderr
    error = published(cli("spend", "--since", "soon", "--json"), "error")["error"]
    assert error["details"] == {"field": "since"}
    assert cli("spend", "--by", "colour").exit_code == 2
    assert cli("spend", "--all", "--tenant", "x").exit_code == 2
    assert cli("ledger", "verify", "--all", "--tenant", "x").exit_code == 2
    assert cli("spend", "--tenant", "a b").exit_code == 3


def test_the_ledger_is_verified_and_rebuilt(cli: Cli, redis_url: str, tenant: str) -> None:
    spend_now(redis_url, tenant)
    good = cli("ledger", "verify")
    assert good.exit_code == 0, good.stdout
    assert f"{tenant} correct 3 entries" in flat(good.stdout)
    assert "in flight: 1 attempt, $2.0000 reserved" in good.stdout
    tamper(redis_url, tenant)
    bad = cli("ledger", "verify", "--json")
    assert bad.exit_code == 1
    out = published(bad, "ledger")
    assert not out["right"]
    assert out["tenants"][0]["differences"] == [
        {"key": "money", "field": "spent:total", "counted": 1_250_000_000, "summed": 250_000_000}
    ]
    shown = cli("ledger", "verify", "--tenant", tenant)
    assert "INCORRECT" in shown.stdout
    assert "counter 1,250,000,000 ($1.2500), sum of entries 250,000,000" in shown.stdout
    mended = cli("ledger", "rebuild")
    assert mended.exit_code == 0, mended.stdout
    assert "corrected: money spent:total" in mended.stdout
    again = published(cli("ledger", "rebuild", "--json"), "rebuild")
    assert again["tenants"][0]["changed"] == []
    everybody = published(cli("ledger", "verify", "--all", "--json"), "ledger")
    assert tenant in {audit["tenant"] for audit in everybody["tenants"]}


def test_the_ledger_is_exported_and_archived(
    cli: Cli, redis_url: str, tenant: str, tmp_path: Path
) -> None:
    spend_now(redis_url, tenant)
    out = published(cli("ledger", "export", "a.jsonl", "--json"), "export")
    assert (out["attempts"], out["tenants"]) == (2, [tenant])
    rows = [json.loads(line) for line in (tmp_path / "a.jsonl").read_text().splitlines()]
    assert {row["cost_usd"] for row in rows} == {"0.25", None}
    assert "2 attempts written to a.csv" in cli("ledger", "export", "a.csv").stdout
    job = next(row["job"] for row in rows)
    few = published(cli("ledger", "export", "b.parquet", "--job", job, "--json"), "export")
    assert few["attempts"] == sum(row["job"] == job for row in rows)
    assert cli("ledger", "export", "a.xlsx").exit_code == 3
    assert cli("ledger", "export", "a.csv", "--since", "soon").exit_code == 3
    today = datetime.now(UTC).date()
    before = ["--before", today.isoformat(), "--out", "kept"]
    assert "no entries" in cli("ledger", "archive", *before).stdout
    later = ["--before", (today + timedelta(days=1)).isoformat(), "--out", "kept"]
    moved = published(cli("ledger", "archive", *later, "--json"), "archive")
    (file,) = moved["files"]
    assert (file["tenant"], file["entries"], file["removed"]) == (tenant, 3, 3)
    assert (tmp_path / file["path"]).exists()
    after = published(cli("ledger", "verify", "--json"), "ledger")
    assert after["right"]
    assert (after["tenants"][0]["entries"], after["tenants"][0]["archived"]) == (0, 3)
    assert after["tenants"][0]["archive"] is None
    looked = cli("ledger", "verify", "--archive", "kept")
    assert "3 entries in 1 files, 0 unchained, 0 not yet removed" in looked.stdout
    first, *rest = (tmp_path / file["path"]).read_text().splitlines(keepends=True)
    (tmp_path / file["path"]).write_text(first.replace('"job": "', '"job": "x') + "".join(rest))
    bad = cli("ledger", "verify", "--archive", "kept", "--json")
    assert bad.exit_code == 1
    (audit,) = published(bad, "ledger")["tenants"]
    assert not audit["right"]
    assert "record 1 was changed" in audit["archive"]["problems"][0]["message"]
    assert ".jsonl:1: record 1 was changed" in cli("ledger", "verify", "--archive", "kept").stdout
    assert cli("ledger", "verify", "--archive", "nowhere").exit_code == 3
    assert cli("ledger", "archive", "--before", "soon", "--out", "kept").exit_code == 3
    (tmp_path / "file").touch()
    wrong = cli("ledger", "archive", *later[:2], "--out", "file/kept")
    assert wrong.exit_code == 3
    assert "posology: " in wrong.stderr
