"""The commands around tenants, on a real Redis."""

from __future__ import annotations

import json
import re
import shlex
from decimal import Decimal
from pathlib import Path
from typing import Any

import anyio
import pytest
from redis import Redis as SyncRedis
from typer.testing import CliRunner, Result

from orchestrator.cli.app import app
from orchestrator.settings import load_settings
from posology.budget.ledger.redis import RedisLedger
from posology.errors import ConfigurationError
from posology.store import keys
from posology.store.connection import connect
from tests.support.commands import SCHEMAS, Cli, published
from tests.support.spending import reservation, settled


@pytest.fixture
def cli(redis_url: str) -> Cli:
    def run(*arguments: str, **env: str) -> Result:
        environment = {"POSOLOGY_REDIS_URL": redis_url, "COLUMNS": "160", **env}
        return CliRunner().invoke(app, ["tenants", *arguments], env=environment)

    return run


def test_a_new_tenant_may_use_the_configured_models_alone(cli: Cli, tenant: str) -> None:
    def allowed(name: str, *options: str, **env: str) -> Any:
        made = cli("create", name, "--day", "5", "--json", *options, **env)
        return published(made, "tenant")["limits"]["models"]

    assert allowed(f"{tenant}-a") == ["offline:extractive"]
    embedder = {"POSOLOGY_EMBEDDER": "openai:text-embedding-3-small"}
    assert allowed(f"{tenant}-b", POSOLOGY_MODEL="openai:gpt-4o-mini", **embedder) == [
        "openai:gpt-4o-mini",
        "openai:text-embedding-3-small",
    ]
    assert allowed(f"{tenant}-c", POSOLOGY_EMBEDDER="medcpt") == ["offline:extractive"]
    assert allowed(f"{tenant}-d", "--model", "none") is None
    assert allowed(f"{tenant}-e", "--model", "openai:*") == ["openai:*"]
    # a change of other limits leaves them as they are
    changed = published(cli("set", f"{tenant}-d", "--day", "1", "--json"), "tenant")
    assert changed["limits"]["models"] is None


def test_a_tenants_life_on_the_command_line(cli: Cli, tenant: str) -> None:
    made = cli(
        "create", tenant, "--day", "5", "--job", "0.25", "--model", "openai:*", "--rpm", "60"
    )
    assert made.exit_code == 0, made.output
    assert made.stdout.startswith("psl_"), "the key alone, for a script to take it"
    assert made.stdout.count("\n") == 1
    assert made.stdout.strip() not in made.stderr
    assert "shown only once" in made.stderr
    shown = cli("show", tenant)
    for words in (tenant, "enabled", "$5", "$0.25", "openai:*", "60", "no limit", "UTC"):
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
    first, second = (key["id"] for key in rotated["keys"])
    left = published(cli("revoke-key", tenant, first, "--json"), "tenant")
    assert [key["id"] for key in left["keys"]] == [second]
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
    assert "total budget of $1: $1.5 spent" in made.stderr
    assert "day budget" not in made.stderr
    lowered = cli("set", tenant, "--day", "1.5")
    assert lowered.exit_code == 0
    assert "day budget of $1.5: $1.5 spent" in lowered.stderr
    out = published(cli("show", tenant, "--json"), "tenant")
    day = out["balances"][0]
    assert (day["cap_usd"], day["spent_usd"], day["left_usd"]) == ("1.5", "1.5", "0")


@pytest.mark.parametrize(
    ("arguments", "status", "words"),
    [
        (["create", "a b"], 3, "a b"),
        (["create", "T", "--day", "-1"], 3, "day"),
        (["create", "T", "--month", "1e400"], 3, "month"),
        (["create", "T", "--rpm", "1.5"], 3, "requests_per_minute"),
        (["create", "T", "--model", "gpt"], 4, "'gpt'"),
        (["create", "T", "--model", "none", "--model", "openai:*"], 4, "'none'"),
        (["show", "T"], 12, "no tenant"),
        (["set", "T", "--day", "1"], 12, "tenants create"),
        (["set", "T"], 2, "--day"),
        (["disable", "T"], 12, "no tenant"),
        (["enable", "T"], 12, "no tenant"),
        (["rotate-key", "T"], 12, "no tenant"),
        (["rotate-key", "T", "--grace", "-1"], 3, "grace"),
        (["revoke-key", "T", "0"], 12, "no tenant"),
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


def test_the_pages_commands_do_what_it_says(cli: Cli, redis_url: str) -> None:
    page = (SCHEMAS.parent / "how-to" / "tenants.md").read_text(encoding="utf-8")
    ran = 0
    with SyncRedis.from_url(redis_url) as redis:
        # another run of this test may have made it
        redis.delete(f"{keys.prefix('acme')}tenant", f"{keys.prefix('acme')}keys")
    for block in re.findall(r"^```console\n(.*?)^```", page, re.MULTILINE | re.DOTALL):
        for part in re.split(r"^\$ ", block, flags=re.MULTILINE)[1:]:
            line, _, wanted = part.partition("\n")
            if not line.startswith("posology tenants "):
                continue
            result = cli(*shlex.split(line)[2:])
            assert result.exit_code == 0, result.output
            assert result.stdout.startswith(wanted.strip().rstrip("…"))
            ran += 1
    assert ran == 5


def test_the_page_names_every_option(cli: Cli) -> None:
    page = (SCHEMAS.parent / "how-to" / "tenants.md").read_text(encoding="utf-8")
    for command in ("create", "rotate-key"):
        options = set(re.findall(r"--[a-z]+", cli(command, "--help").stdout)) - {"--help"}
        assert options
        assert {option for option in options if option not in page} == set()


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("POSOLOGY_AUTH", "nobody"),
        ("POSOLOGY_AUTH", "Keys "),
        ("POSOLOGY_METRICS_KEY", "short-one"),
    ],
)
def test_a_wrong_setting_is_named_and_its_value_is_not(
    monkeypatch: pytest.MonkeyPatch, name: str, value: str
) -> None:
    monkeypatch.setenv(name, value)
    with pytest.raises(ConfigurationError) as caught:
        load_settings()
    assert name in str(caught.value)
    assert value not in str(caught.value)
