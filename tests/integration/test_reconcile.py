"""The command: traffic through the ledger on a real Redis, held against exports of it."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime
from decimal import Decimal
from functools import partial
from pathlib import Path
from typing import Any

import jsonschema
import pytest
from typer.testing import CliRunner, Result

from orchestrator.cli.app import app
from posology.budget.books.reader import Reader
from posology.budget.ledger.redis import RedisLedger
from posology.budget.reconcile.ours import Ours, attempts
from posology.errors import DriftFound
from posology.store.connection import connect
from posology.types import Attempt, Opening, Outcome, PromptId, Reservation, Stage, Usage
from tests.support.commands import SCHEMAS, Cli
from tests.unit.budget.reconcile.making import FORMATS, billed

RUNNER = CliRunner()
#: each format has its tests in tests/unit/budget/reconcile
EACH = [("openai", "usage.json"), ("anthropic", "requests.jsonl")]
MODELS = {"openai": "openai:gpt-4o-mini", "anthropic": "anthropic:claude-sonnet-4-5"}
#: noon of the day before yesterday, so that no midnight is near and the day is over
NOON = (time.time() // 86_400 - 2) * 86_400 + 43_200


@pytest.fixture
def cli(cli: Cli) -> Cli:
    return partial(cli, "reconcile")


class Traffic:
    """Spends a tenant's money through the ledger, by a clock that stands at noon."""

    def __init__(self, url: str, tenant: str) -> None:
        self._url, self._tenant = url, tenant

    def spend(self, provider: str) -> list[Ours]:
        """Replies, refusals, failures and a process that is lost; returns what the ledger says of them."""
        return asyncio.run(self._spend(provider))

    async def _spend(self, provider: str) -> list[Ours]:
        now = NOON
        redis = connect(self._url)
        try:
            ledger = RedisLedger(
                redis, self._url, tenant=self._tenant, lease=60.0, clock=lambda: int(now * 1000)
            )
            for n in range(12):
                opening = _opening(f"{self._tenant}-{n}", MODELS[provider], now + n)
                await ledger.reserve(
                    Reservation(opening=opening, call=n, job="run_1", ticket=f"run_1|{n}")
                )
                if n < 10:
                    await ledger.settle(_ended(opening, n))
            await ledger.release(opening.id)
            now += 3_600
            assert len(await ledger.sweep()) == 1
            reader = Reader(redis, self._url, self._tenant)
            notes: list[str] = []
            return [one async for one in attempts(reader, since=None, notes=notes)]
        finally:
            await redis.aclose()


def _opening(name: str, model: str, started: float) -> Opening:
    return Opening(
        id=name,
        call=None,
        attempt=1,
        stage=Stage.ANSWER,
        model=model,
        prompt=PromptId(name="answer", digest="0" * 16),
        key=name,
        started=started,
        strategy="direct",
        input_bound=3_000,
        max_tokens=500,
        reserved=Decimal("0.0104"),
        prices="test",
    )


def _ended(opening: Opening, n: int) -> Attempt:
    # 8 was refused with a 429, of 9 nobody knows: the connection was cut
    usage = Usage(
        input=900 + n, cache_read=128 * (n % 2), cache_write_5m=n, output=40 + n, reasoning=n
    )
    found: Usage | None = {8: Usage(), 9: None}.get(n, usage)
    cost = None if found is None else Decimal(found.input) * Decimal("0.000000150")
    return Attempt(
        id=opening.id,
        call=n + 1,
        attempt=1,
        stage=opening.stage,
        model=opening.model,
        prompt=opening.prompt,
        outcome=Outcome.OK if n < 8 else Outcome.FAILED,
        error=None if n < 8 else "RateLimited" if n == 8 else "ProviderUnreachable",
        usage=found,
        cost=cost,
        started=opening.started,
        latency=0.75,
        request_id=f"req_{n}" if n < 9 else None,
        strategy=opening.strategy,
        input_bound=opening.input_bound,
        max_tokens=opening.max_tokens,
        reserved=opening.reserved,
        prices=opening.prices,
    )


@pytest.fixture
def traffic(redis_url: str, tenant: str) -> Traffic:
    return Traffic(redis_url, tenant)


def _written(folder: Path, provider: str, name: str, theirs: Sequence[Ours]) -> str:
    path = folder / f"{provider}.{name}"
    path.write_text(FORMATS[provider][name](theirs), encoding="utf-8")
    return str(path)


def _report(result: Result) -> dict[str, Any]:
    out: dict[str, Any] = json.loads(result.stdout)
    jsonschema.validate(out, json.loads((SCHEMAS / "reconcile.json").read_text(encoding="utf-8")))
    return out


@pytest.mark.parametrize(("provider", "name"), EACH)
def test_what_went_through_the_ledger_agrees_with_its_export(
    cli: Cli, traffic: Traffic, tmp_path: Path, provider: str, name: str
) -> None:
    ours = traffic.spend(provider)
    # eight replies, a refusal, a cut connection and a lost process; what was released is none
    assert (len(ours), len(billed(ours))) == (11, 8)
    path = _written(tmp_path, provider, name, ours)
    result = cli(path, "--threshold", "0", "--json")
    assert result.exit_code == 0, result.output
    out = _report(result)
    assert out["agrees"] is True
    assert out["attempts"] == 11
    if name.startswith("requests"):
        assert (out["requests"]["matched"], out["requests"]["unbilled"]) == (8, 2)
        assert {total["drift"] for total in out["requests"]["totals"]} <= {0, "0"}
    else:
        (group,) = out["groups"]
        assert group["unknown"] == 2
        assert group["day"] == f"{datetime.fromtimestamp(NOON, UTC):%Y-%m-%d}"


def test_the_last_of_all_days_may_be_asked_for(cli: Cli, traffic: Traffic, tmp_path: Path) -> None:
    provider, name = EACH[0]
    path = _written(tmp_path, provider, name, traffic.spend(provider))
    result = cli(path, "--until", "9999-12-31", "--json")
    assert _report(result)["periods"][0]["end"].startswith("9999-12-31")


@pytest.mark.parametrize(("provider", "name"), EACH)
def test_an_export_that_was_tampered_with_does_not(
    cli: Cli, traffic: Traffic, tmp_path: Path, provider: str, name: str
) -> None:
    ours = traffic.spend(provider)
    # more than the two unknown attempts can have come to
    theirs = [*billed(ours)]
    much = Usage(input=90_000, output=9_000)
    theirs[3] = replace(theirs[3], usage=much, cost=Decimal("0.5"))
    path = _written(tmp_path, provider, name, theirs)
    result = cli(path)
    assert result.exit_code == DriftFound.exit_code, result.output
    assert "DO NOT AGREE" in result.stdout
    assert result.stderr.startswith("posology: the provider's account does not agree")
    again = cli(path, "--json", "--out", "report.json")
    assert again.exit_code == DriftFound.exit_code
    out = _report(again)
    assert (out["agrees"], out["drifting"]) == (False, 1)
    written = json.loads((tmp_path / "report.json").read_text(encoding="utf-8"))
    assert written | {"posology_version": out["posology_version"]} == out
    if name.startswith("requests"):
        (mismatch,) = out["requests"]["mismatches"]
        assert (mismatch["flaw"], mismatch["request_id"]) == ("differs", "req_3")


def test_all_tenants_together_are_what_the_provider_sees(
    cli: Cli, redis_url: str, tenant: str, tmp_path: Path
) -> None:
    both = [Traffic(redis_url, f"{tenant}{n}").spend("openai") for n in "ab"]
    theirs = [replace(a, request_id=None) for ours in both for a in ours]
    path = _written(tmp_path, "openai", "usage.json", theirs)
    one = cli(path, "--tenant", f"{tenant}a", "--json")
    assert one.exit_code == DriftFound.exit_code
    assert _report(one)["groups"][0]["compared"][0]["ours"] == 8
    # the tests' Redis holds other tests' tenants, too: at least these two are among them
    everybody = _report(cli(path, "--all", "--json"))
    assert {f"{tenant}a", f"{tenant}b"} <= set(everybody["tenants"])
    assert everybody["groups"][0]["compared"][0]["ours"] >= 16


def test_what_was_moved_to_the_archive_is_read_from_its_files(
    cli: Cli, traffic: Traffic, redis_url: str, tenant: str, tmp_path: Path
) -> None:
    ours = traffic.spend("openai")
    path = _written(tmp_path, "openai", "usage.json", ours)
    # entries are placed by the server's clock, and that is now
    tomorrow = f"{datetime.fromtimestamp(time.time() + 86_400, UTC):%Y-%m-%d}"
    moved = RUNNER.invoke(
        app,
        ["ledger", "archive", "--before", tomorrow, "--out", str(tmp_path / "old"), "--json"],
        env={"POSOLOGY_REDIS_URL": redis_url, "POSOLOGY_TENANT": tenant},
    )
    assert moved.exit_code == 0, moved.output
    (file,) = [file["path"] for file in json.loads(moved.stdout)["files"]]
    without = cli(path, "--json")
    assert without.exit_code == DriftFound.exit_code
    assert any("--archive" in note for note in _report(without)["notes"])
    assert cli(path, "--threshold", "0", "--archive", file).exit_code == 0


def test_files_of_other_tenants_and_times_are_not_read(
    cli: Cli, traffic: Traffic, tenant: str, tmp_path: Path
) -> None:
    path = _written(tmp_path, "openai", "usage.json", traffic.spend("openai"))
    old, other = f"{tenant}.1-0.2-0.jsonl", f"{tenant}.eu.1-0.9999999999999-0.jsonl"
    for name in (old, other, "renamed.jsonl"):
        (tmp_path / name).write_text("no entry", encoding="utf-8")
    given = [word for name in (old, other) for word in ("--archive", str(tmp_path / name))]
    assert cli(path, "--threshold", "0", *given).exit_code == 0
    renamed = cli(path, "--archive", str(tmp_path / "renamed.jsonl"))
    assert (renamed.exit_code, "TENANT.FIRST.LAST.jsonl" in renamed.output) == (3, True)


@pytest.mark.parametrize(
    ("arguments", "code"),
    [
        (["none.json"], 3),
        (["usage.json", "usage.json"], 3),
        (["usage.json", "--provider", "anthropic"], 3),
        (["usage.json", "--since", "yesterday"], 3),
        (["usage.json", "--provider", "acme"], 2),
        (["usage.json", "--threshold", "2"], 2),
        (["usage.json", "--threshold", "nan"], 2),
        (["usage.json", "--all", "--tenant", "x"], 2),
        ([], 2),
    ],
)
def test_a_wrong_command_line_is_told(
    cli: Cli, tmp_path: Path, arguments: list[str], code: int
) -> None:
    (tmp_path / "usage.json").write_text(FORMATS["openai"]["usage.json"]([]), encoding="utf-8")
    result = cli(*arguments)
    assert result.exit_code == code, result.output
    assert "Traceback" not in result.output
