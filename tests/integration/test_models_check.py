"""``posology models check`` against a stub provider with scripted faults."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from orchestrator.cli.app import app
from posology.testing import Recorded, Reply, Status, Step, StubProvider
from posology.types import Usage

RUNNER = CliRunner()
MODEL = "openai:gpt-6-luna"
GOOD = Usage(input=30, output=5)


def reply_to(request: Recorded, usage: Usage = GOOD) -> Reply:
    """A good reply: JSON where a schema was sent, reasoning where effort was."""
    if request.json.get("reasoning_effort", "none") != "none":
        usage = replace(usage, reasoning=30)
    schema = request.json.get("response_format", {}).get("json_schema", {}).get("name")
    texts = {
        None: "OK",
        "AnswerReply": '{"answerable": false, "answer": "", "choice": null, "quotes": []}',
        "ExtractReply": '{"found": false, "findings": []}',
    }
    return Reply(text=texts[schema], usage=usage)


@pytest.fixture
def check(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., dict[str, Any]]:
    monkeypatch.chdir(tmp_path)

    def run(
        answer: Callable[[Recorded], Step],
        *,
        model: str = MODEL,
        cap: str = "0.05",
        exit_code: int = 0,
    ) -> dict[str, Any]:
        with StubProvider(answer) as stub:
            environment = {
                "OPENAI_API_KEY": "key",
                "OPENAI_BASE_URL": stub.openai_url,
                "POSOLOGY_HOME": str(tmp_path / "home"),
                "POSOLOGY_ATTEMPTS": "1",
            }
            arguments = ["models", "check", model, "--max-cost", cap, "--json"]
            result = RUNNER.invoke(app, arguments, env=environment)
            assert result.exit_code == exit_code, result.output
            out: dict[str, Any] = json.loads(result.stdout)
            out["sent"] = len(stub.requests)
        return out

    return run


def verdicts(out: dict[str, Any]) -> dict[str, bool | None]:
    return {one["name"]: one["ok"] for one in out["findings"]}


def test_a_model_that_is_as_expected(check: Callable[..., dict[str, Any]]) -> None:
    out = check(reply_to)
    assert out["ok"]
    assert set(verdicts(out).values()) == {True}
    assert len(out["calls"]) == out["sent"] == 8
    assert float(out["cost_usd"]) <= 0.05
    assert all(call["tokens_in"] <= call["input_bound"] for call in out["calls"])


@pytest.mark.parametrize(
    ("usage", "name"),
    [
        (replace(GOOD, cache_write_5m=900), "caching"),
        (replace(GOOD, input=900_000), "bound, abstracts"),
        (replace(GOOD, output=50_000), "output"),
        (replace(GOOD, reasoning=40), "effort"),
    ],
)
def test_what_is_not_as_expected_is_named(
    check: Callable[..., dict[str, Any]], usage: Usage, name: str
) -> None:
    out = check(lambda request: reply_to(request, usage), cap="9", exit_code=4)
    assert verdicts(out)[name] is False


def test_a_reply_without_usage_is_a_fault(check: Callable[..., dict[str, Any]]) -> None:
    out = check(
        lambda request: replace(reply_to(request), usage=None),
        exit_code=4,
    )
    assert verdicts(out)["usage"] is False
    assert out["cost_usd"] is None
    assert float(out["charged_usd"]) > 0


def test_a_wrong_key_ends_the_check(check: Callable[..., dict[str, Any]]) -> None:
    out = check(lambda _: Status(code=401, message="no such key"), exit_code=4)
    assert verdicts(out)["key"] is False
    assert out["sent"] == 1


def test_a_broken_schema_is_a_fault_and_the_rest_goes_on(
    check: Callable[..., dict[str, Any]],
) -> None:
    def answer(request: Recorded) -> Step:
        named = "response_format" in request.json
        return Reply(text="no JSON", usage=GOOD) if named else reply_to(request)

    out = check(answer, exit_code=4)
    assert verdicts(out)["schema"] is False
    assert verdicts(out)["bound, languages"] is True


def test_it_never_costs_more_than_its_cap(check: Callable[..., dict[str, Any]]) -> None:
    out = check(reply_to, cap="0.0005")
    assert float(out["charged_usd"]) <= 0.0005
    assert out["sent"] < 8
    assert None in verdicts(out).values()
