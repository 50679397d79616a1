"""The runbook has every alarm, and its commands run against a real Redis."""

from __future__ import annotations

import json
import re
import shlex
from decimal import Decimal
from pathlib import Path
from typing import Any

import anyio
import pytest
import yaml
from redis import Redis as SyncRedis
from typer.testing import CliRunner, Result

from orchestrator.cli.app import app
from posology.store import keys
from posology.store.connection import connect
from tests.support.traffic import Traffic

DOCS = Path(__file__).resolve().parents[2] / "docs"
PAGE = (DOCS / "how-to" / "runbook.md").read_text(encoding="utf-8")

#: processes, which have tests of their own, and commands that the page names without their options
LONG, NAMED = {"up", "ingest-uploads", "doctor"}, {"reconcile", "ledger archive"}
#: ends that a command may have: success, something found, no such job, batch, tenant or stack
MAY = {0, 1, 3, 4, 8, 12}


def commands() -> list[str]:
    """Every `posology` command of the page that can be run as it stands."""
    fenced = re.findall(r"^posology (.+?)(?:\s+#.*)?$", PAGE, re.MULTILINE)
    inline = re.findall(r"`posology ([^`…]+?)`", PAGE.replace("\n   ", " "))
    found = list(dict.fromkeys([*fenced, *inline]))
    return [one for one in found if one.split()[0] not in LONG and one not in NAMED]


def run(command: str, url: str, tenant: str, folder: Path) -> Result:
    arguments = [{"acme": tenant, "ID": keys.new_id("job")}.get(one, one) for one in shlex.split(command)]  # fmt: skip
    environment = {"POSOLOGY_REDIS_URL": url, "POSOLOGY_TENANT": tenant, "POSOLOGY_HOME": str(folder)}  # fmt: skip
    return CliRunner().invoke(app, arguments, env=environment)


def test_every_alarm_has_its_section() -> None:
    rules = yaml.safe_load((DOCS / "monitoring" / "alerts.yml").read_text())["groups"][0]["rules"]
    told = re.findall(r"^\*\*Alarm:\*\* `(\w+)`", PAGE, re.MULTILINE)
    assert sorted(told) == sorted(rule["alert"] for rule in rules)
    assert len(commands()) > 12


@pytest.fixture
def traffic(redis_url: str, tenant: str) -> Traffic:
    """A tenant that has spent; commands run in the main thread, outside of any loop."""
    redis = connect(redis_url)
    made = Traffic(redis=redis, url=redis_url, tenant=tenant)

    async def spend() -> None:
        await made.start()
        await made.spend(20)
        await made.reserve(nano=7_500)
        await redis.aclose()

    anyio.run(spend)
    return made


@pytest.mark.parametrize("command", commands())
def test_a_command_does_something(
    command: str, traffic: Traffic, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "archive").mkdir()
    done = run(command, traffic.url, traffic.tenant, tmp_path)
    assert done.exit_code in MAY, f"{done.output}\n{done.exception!r}"
    assert done.exception is None or isinstance(done.exception, SystemExit)


def test_orphaned_money_is_what_is_reserved_and_not_in_flight(
    traffic: Traffic, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    prefix = keys.prefix(traffic.tenant)
    with SyncRedis.from_url(traffic.url, decode_responses=True) as redis:
        opened: Any = redis.hgetall(f"{prefix}money:open")
        orphan, raw = next(item for item in opened.items() if int(json.loads(item[1])["nano"]))
        redis.hdel(f"{prefix}money:open", orphan)
    checked = run("ledger verify --json", traffic.url, traffic.tenant, tmp_path)
    assert checked.exit_code == 1
    (audit,) = json.loads(checked.stdout)["tenants"]
    assert audit["orphans"] == [orphan]
    spend = json.loads(run("spend --json", traffic.url, traffic.tenant, tmp_path).stdout)
    (total,) = [one for one in spend["balances"] if one["scope"] == "total"]
    missing = Decimal(total["reserved_usd"]) - Decimal(audit["open_usd"])
    assert missing * 10**9 == int(json.loads(raw)["nano"])
