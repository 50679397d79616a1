"""Endpoints of webhooks over HTTP and by commands, on a real Redis and without workers."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from orchestrator.cli.app import app
from orchestrator.webhooks.outbox import Outbox
from tests.integration.test_api import api, problem

URL = "https://example.org/hook"


@pytest.mark.anyio
async def test_an_endpoint_over_http(redis_url: str, tenant: str) -> None:
    async with api(redis_url, tenant) as (client, store):
        made = (await client.post("/v1/webhooks", json={"url": URL})).json()
        secret, place = made.pop("secret"), f"/v1/webhooks/{made['id']}"
        assert secret.startswith("whsec_")
        assert (await client.get("/v1/webhooks")).json() == {"webhooks": [made]}
        assert (await client.get(place)).json() == made
        tested = await client.post(f"{place}/test")
        assert tested.status_code == 202
        assert (await client.get(place)).json()["queued"] == 1
        outbox = Outbox(store)
        (owed,) = await outbox.plan(tenant, held=60)
        (due,) = await outbox.take(owed, most=5, seconds=60, patience=60)
        assert due.message == tested.json()["message"]
        await outbox.settle(tenant, due, "failed", delay=0, status=503, error="no", hold=(0.0, 0.0))
        page = (await client.get(f"{place}/failures?limit=1")).json()
        assert [one["message"] for one in page["failures"]] == [due.message]
        assert (await client.get(f"{place}/failures?after={page['next']}")).json() == {
            "failures": [], "next": None,
        }  # fmt: skip
        assert (await client.post(f"{place}/redeliver")).json() == {"queued": 1}
        rotated = (await client.post(f"{place}/rotate?overlap_seconds=60")).json()
        assert rotated["secrets"] == 2
        assert rotated["secret"] != secret
        problem(await client.post(f"{place}/rotate?overlap_seconds=-1"), 422, "invalid-query")
        assert (await client.delete(place)).status_code == 204
        problem(await client.get(place), 404, "webhook-not-found")
        for body in (
            {"url": "http://example.org"}, {"url": URL, "events": []}, {"url": URL, "events": ["all"]}, {},
        ):  # fmt: skip
            problem(await client.post("/v1/webhooks", json=body), 422, "invalid-query")


def test_an_endpoint_by_commands(
    redis_url: str, tenant: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)

    def webhook(*arguments: str) -> Result:
        environment = {"POSOLOGY_REDIS_URL": redis_url, "POSOLOGY_TENANT": tenant, "COLUMNS": "200"}
        return CliRunner().invoke(app, ["webhook", *arguments], env=environment)

    made = webhook("create", URL, "--event", "job.ended", "--event", "batch.ended")
    # scripts read the secret alone
    assert made.stdout.startswith("whsec_")
    assert made.stdout.count("\n") == 1
    assert "job.ended" not in made.stdout
    (shown,) = json.loads(webhook("list", "--json").stdout)["webhooks"]
    assert shown["events"] == ["job.ended", "batch.ended"]
    own = shown["id"]
    assert own in webhook("list").stdout
    assert webhook("test", own).stdout.startswith("msg_")
    assert json.loads(webhook("show", own, "--json").stdout)["queued"] == 1
    assert webhook("failures", own).exit_code == 0
    assert webhook("redeliver", own).stdout == "0 messages queued\n"
    new = json.loads(webhook("rotate", own, "--overlap", "0", "--json").stdout)
    assert new["secret"] not in made.stdout
    assert webhook("delete", own).exit_code == 0
    assert webhook("show", own).exit_code == 8
    assert webhook("create", URL, "--event", "all").exit_code == 3
    assert webhook("create", "https://127.0.0.1/").exit_code == 3
