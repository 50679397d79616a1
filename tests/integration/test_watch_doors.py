"""Watches over HTTP, by both clients, by commands and in the console, on a real Redis and without workers."""

from __future__ import annotations

import json
from decimal import Decimal
from pathlib import Path

import pytest
from redis.asyncio import Redis

from orchestrator.watches.store import WatchStore
from posology.client import Client, SyncClient
from posology.errors import InvalidQuery, WatchEnded, WatchNotFound
from posology.types import WatchState
from tests.integration.conftest import Served
from tests.integration.jobs_store.helpers import request
from tests.integration.test_api import api, problem
from tests.integration.test_uploads import serving
from tests.support.answers import a_change
from tests.support.commands import Cli, published
from tests.support.console_bench import Console, check, token

QUESTION = "Does aspirin reduce the risk of preeclampsia?"
NONE = "watch_0199a1b2c3d45f6e7a8b9c0d1e2f"


@pytest.mark.anyio
async def test_a_watch_over_http(redis_url: str, tenant: str) -> None:
    body = {"question": QUESTION, "every": 3_600, "max_cost_usd": 0.05}
    async with api(redis_url, tenant) as (client, _):
        made = await client.post("/v1/watches", json=body)
        assert made.status_code == 201
        watch, again = made.json(), await client.post("/v1/watches", json=body)
        assert (again.status_code, again.json()) == (200, watch)
        assert (watch["every_seconds"], watch["request"]["max_cost_usd"]) == (3_600, "0.05")
        place = f"/v1/watches/{watch['id']}"
        assert (await client.get(place)).json() == watch
        (listed,) = (await client.get("/v1/watches")).json()["watches"]
        assert listed == {name: value for name, value in watch.items() if name in listed}
        assert (await client.post(f"{place}/pause")).json()["state"] == "paused"
        assert (await client.post(f"{place}/resume")).json()["state"] == "active"
        assert (await client.delete(place)).json()["state"] == "ended"
        problem(await client.post(f"{place}/resume"), 409, "watch-ended")
        problem(await client.get(f"/v1/watches/{NONE}"), 404, "watch-not-found")
        for wrong in ({"every": "year"}, {"every": "3600"}, {"every": 60}, {"index_version": 1}, {"question": ""}):  # fmt: skip
            problem(await client.post("/v1/watches", json=body | wrong), 422, "invalid-query")


@pytest.mark.anyio
async def test_a_live_watch_over_http_is_for_those_who_may_add_literature(
    redis: Redis, redis_url: str, tenant: str, tmp_path: Path
) -> None:
    body = {"question": QUESTION, "live": {"service": "europepmc", "max_records": 20}}
    given = {"POSOLOGY_UPLOADS": str(tmp_path / "uploads")}
    async with serving(redis, redis_url, given, tenant=tenant) as client:
        problem(await client.post("/v1/watches", json=body), 403, "ingest-not-allowed")
    given["POSOLOGY_OPEN_UPLOADS"] = "true"
    async with serving(redis, redis_url, given, tenant=tenant) as client:
        made = await client.post("/v1/watches", json=body)
        assert made.status_code == 201
        assert made.json()["live"] == {**body["live"], "query": None, "full_text": False}  # type: ignore[dict-item]
        for wrong in ({"collection": "trials"}, {"live": {"max_records": 501}}, {"live": {"url": "http://x"}}):  # fmt: skip
            problem(await client.post("/v1/watches", json=body | wrong), 422, "invalid-query")
    async with serving(redis, redis_url, given, tenant=tenant, address="10.0.0.9") as client:
        problem(await client.post("/v1/watches", json=body), 403, "ingest-not-allowed")


@pytest.mark.anyio
async def test_a_watch_by_the_client(served: Served, tenant: str) -> None:
    async with Client(served.url, tenant=tenant) as client:
        made = await client.create_watch(
            QUESTION, every="day", max_cost_usd=Decimal("0.05"), form="yes_no"
        )
        assert await client.watch(made.id) == made
        assert [one.id for one in await client.watches()] == [made.id]
        assert (await client.pause_watch(made.id)).state is WatchState.PAUSED
        assert (await client.resume_watch(made.id)).state is WatchState.ACTIVE
        assert (await client.end_watch(made.id)).next is None
        with pytest.raises(WatchEnded):
            await client.pause_watch(made.id)
        with pytest.raises(WatchNotFound):
            await client.watch(NONE)
        with pytest.raises(InvalidQuery, match="every"):
            await client.create_watch(QUESTION, every="year")


def test_a_watch_by_the_blocking_client(served: Served, tenant: str) -> None:
    with SyncClient(served.url, tenant=tenant) as client:
        made = client.create_watch(QUESTION)
        assert client.watch(made.id) == made
        assert [one.id for one in client.watches()] == [made.id]
        assert client.pause_watch(made.id).state is WatchState.PAUSED
        assert client.resume_watch(made.id).state is WatchState.ACTIVE
        assert client.end_watch(made.id).state is WatchState.ENDED


def test_a_watch_by_commands(cli: Cli) -> None:
    made = cli("watch", QUESTION, "--every", "day", "--max-cost", "0.05", "--k", "4")
    watch = made.stdout.strip()
    assert watch.startswith("watch_")
    shown = published(cli("watches", "show", watch, "--json"), "watch")
    assert (shown["every_seconds"], shown["request"]["k"]) == (86_400, 4)
    assert watch in cli("watches", "list").stdout
    (listed,) = published(cli("watches", "list", "--json"), "watches")["watches"]
    assert listed["id"] == watch
    assert "paused" in cli("watches", "pause", watch).stdout
    assert "active" in cli("watches", "resume", watch).stdout
    assert json.loads(cli("watches", "end", watch, "--json").stdout)["state"] == "ended"
    assert cli("watches", "resume", watch).exit_code == 8
    assert cli("watches", "show", NONE).exit_code == 8
    live = cli("watch", QUESTION, "--live", "--service", "europepmc", "--max", "30").stdout.strip()
    assert (
        "europepmc: the question's words, at most 30 records" in cli("watches", "show", live).stdout
    )
    assert cli("watch", QUESTION, "--max", "30").exit_code == 2
    assert cli("watch", QUESTION, "--live", "--max", "501").exit_code == 3
    assert cli("watch", QUESTION, "--every", "60").exit_code == 3
    assert cli("watch", QUESTION, "--every", "7200").exit_code == 0


@pytest.mark.anyio
async def test_a_watch_in_the_console(user: Console, tenant: str) -> None:
    empty = await user.http.get("/console/watches")
    check(empty)
    assert "No watches" in empty.text
    watches = WatchStore(user.store)
    watch, _ = await watches.create(request("<b>Does it help?</b>"), 3_600, tenant=tenant)
    taken = await watches.take(watch.id, tenant=tenant)
    assert taken is not None
    await watches.step(taken, {"error": "<i>no</i>"}, look=taken.next, change=a_change())
    page = await user.http.get("/console/watches")
    check(page)
    assert watch.id in page.text
    page = await user.http.get(f"/console/watches/{watch.id}")
    check(page)
    assert "answered → refused" in page.text
    assert "<b>Does" not in page.text
    assert "<i>no" not in page.text
    for to in (WatchState.PAUSED, WatchState.ACTIVE, WatchState.ENDED):
        given = {"form_token": token(page), "to": to.value}
        done = await user.http.post(f"/console/watches/{watch.id}/turn", data=given)
        assert done.status_code == 303
        assert (await watches.get(watch.id, tenant=tenant)).state is to
    wrong = {"form_token": token(page), "to": "gone"}
    refused = await user.http.post(f"/console/watches/{watch.id}/turn", data=wrong)
    assert refused.status_code == 422
