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
from posology.testing.local_servers import llamacpp_documents
from posology.types import Usage

RUNNER = CliRunner()
MODEL = "openai:gpt-6-luna"
GOOD = Usage(input=30, output=5)


def answer_to(prompt: str) -> str:
    """A verdict where one is asked for, else a refusal."""
    asked = "Choices: " in prompt
    reply: dict[str, Any] = {
        "answerable": asked,
        "verdict": "no" if asked else None,
        "statements": [],
    }
    if asked:
        reply["statements"] = [{"text": "It does not.", "sentences": ["1.1"]}]
    return json.dumps(reply)


def reply_to(request: Recorded, usage: Usage = GOOD) -> Reply:
    """A good reply: JSON where a schema was sent, reasoning where effort was."""
    if request.json.get("reasoning_effort", "none") != "none":
        usage = replace(usage, reasoning=30)
    schema = request.json.get("response_format", {}).get("json_schema", {}).get("name")
    texts = {
        None: "OK",
        "CitedReply": answer_to(request.json["messages"][-1]["content"]),
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
        options: tuple[str, ...] = ("--thorough",),
    ) -> dict[str, Any]:
        with StubProvider(answer) as stub:
            environment = {
                "OPENAI_API_KEY": "key",
                "OPENAI_BASE_URL": stub.openai_url,
                "POSOLOGY_HOME": str(tmp_path / "home"),
                "POSOLOGY_ATTEMPTS": "1",
            }
            arguments = ["models", "check", model, "--max-cost", cap, "--json", *options]
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
    assert len(out["calls"]) == out["sent"] == 9
    assert float(out["cost_usd"]) <= 0.05
    assert all(call["tokens_in"] <= call["input_bound"] for call in out["calls"])


def test_two_calls_say_what_a_user_needs(check: Callable[..., dict[str, Any]]) -> None:
    out = check(reply_to, options=())
    assert list(verdicts(out)) == ["key", "schema", "verdict", "speed", "usage", "output"]
    assert set(verdicts(out).values()) == {True}
    assert len(out["calls"]) == out["sent"] == 2


def test_an_answer_without_a_verdict_is_a_fault(check: Callable[..., dict[str, Any]]) -> None:
    silent = '{"answerable": false, "verdict": null, "statements": []}'

    def answer(request: Recorded) -> Step:
        return Reply(text=silent, usage=GOOD) if "response_format" in request.json else reply_to(request)  # fmt: skip

    out = check(answer, options=(), exit_code=4)
    assert verdicts(out)["verdict"] is False
    assert verdicts(out)["schema"] is True


def test_a_server_of_one_s_own_says_what_it_serves(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    with StubProvider(reply_to, documents=llamacpp_documents("qwen3")) as stub:
        here = {"LLAMACPP_BASE_URL": stub.url, "POSOLOGY_HOME": str(tmp_path / "home")}
        elsewhere = here | {"LLAMACPP_BASE_URL": "http://127.0.0.1:9"}
        done = [
            RUNNER.invoke(app, ["models", "check", "--json", *more], env=environment)
            for more, environment in (
                (("llamacpp:qwen3", "--base-url", stub.url), elsewhere),
                (("llamacpp:other",), here),
            )
        ]
    good, bad = (json.loads(one.stdout) for one in done)
    assert [one.exit_code for one in done] == [0, 4]
    assert good["findings"][0]["found"].endswith("serves qwen3 (window 8,192, 1 at a time)")
    assert (good["cost_usd"], len(good["calls"])) == ("0", 2)
    assert bad["findings"][0]["found"].endswith("it serves llamacpp:qwen3")
    assert bad["calls"] == []


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
    assert out["sent"] < 9
    assert None in verdicts(out).values()


CLAUDE = "anthropic:claude-haiku-5-5"


def counting(share: float, sent: list[str]) -> Callable[[Recorded], Step]:
    """Claude, whose tokenizer counts a share of the bytes of a request's messages."""

    def answer(request: Recorded) -> Step:
        sent.append(request.path)
        if request.path.endswith("count_tokens"):
            assert set(request.json) <= {"model", "messages", "system", "thinking", "output_config"}
            length = sum(len(one["content"].encode()) for one in request.json["messages"])
            return Reply(text="", usage=Usage(input=int(share * length)))
        config = request.json.get("output_config", {})
        named = str(config.get("format", {}).get("schema", {}))
        reasoning = (
            30 if config.get("effort", "low") != "low" or "thinking" not in request.json else 0
        )
        text = "OK"
        if "answerable" in named:
            text = answer_to(request.json["messages"][-1]["content"])
        elif "findings" in named:
            text = '{"found": false, "findings": []}'
        return Reply(text=text, usage=replace(GOOD, reasoning=reasoning))

    return answer


@pytest.fixture
def claude(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., tuple[Any, list[str]]]:
    monkeypatch.chdir(tmp_path)

    def run(share: float, *, exit_code: int = 0) -> tuple[Any, list[str]]:
        sent: list[str] = []
        with StubProvider(counting(share, sent)) as stub:
            environment = {
                "ANTHROPIC_API_KEY": "key",
                "ANTHROPIC_BASE_URL": stub.anthropic_url,
                "POSOLOGY_HOME": str(tmp_path / "home"),
            }
            result = RUNNER.invoke(
                app, ["models", "check", CLAUDE, "--thorough", "--json"], env=environment
            )
            assert result.exit_code == exit_code, result.output
        return json.loads(result.stdout), sent

    return run


def shown(tmp_path: Path) -> dict[str, Any]:
    environment = {"POSOLOGY_HOME": str(tmp_path / "home")}
    result = RUNNER.invoke(app, ["models", "show", CLAUDE, "--json"], env=environment)
    assert result.exit_code == 0, result.output
    found: dict[str, Any] = json.loads(result.stdout)
    return found


def test_bounds_are_checked_by_the_free_count(
    claude: Callable[..., tuple[Any, list[str]]], tmp_path: Path
) -> None:
    assert shown(tmp_path)["measured"] is None
    out, sent = claude(0.2)
    assert sent.count("/v1/messages/count_tokens") == 5
    assert sent.count("/v1/messages") == len(out["calls"]) <= 6
    assert all(verdicts(out)[name] for name in verdicts(out) if name.startswith("bound"))
    known = shown(tmp_path)
    assert known["measured"] is not None
    assert 0 < known["measured_share"] <= 1
    assert known["raised"] == 1


def test_a_bound_that_does_not_hold_is_raised_until_the_file_is_deleted(
    claude: Callable[..., tuple[Any, list[str]]], tmp_path: Path
) -> None:
    out, _ = claude(1.5, exit_code=4)
    assert verdicts(out)["bound, abstracts"] is False
    first = shown(tmp_path)
    assert first["measured_share"] > 1
    assert first["raised"] == pytest.approx(1.1 * first["measured_share"])
    # what is reserved now holds
    again, _ = claude(1.5)
    assert verdicts(again)["bound, abstracts"] is True
    # a smaller share does not lower it
    claude(0.2)
    assert shown(tmp_path)["raised"] == first["raised"]
    (tmp_path / "home" / "measured.json").unlink()
    assert shown(tmp_path)["raised"] == 1


def test_without_the_endpoint_a_paid_call_tells(
    claude: Callable[..., tuple[Any, list[str]]], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)

    def answer(request: Recorded) -> Step:
        if request.path.endswith("count_tokens"):
            return Status(code=404)
        return counting(0.2, [])(request)

    with StubProvider(answer) as stub:
        environment = {
            "ANTHROPIC_API_KEY": "key",
            "ANTHROPIC_BASE_URL": stub.anthropic_url,
            "POSOLOGY_HOME": str(tmp_path / "home"),
        }
        result = RUNNER.invoke(
            app, ["models", "check", CLAUDE, "--thorough", "--json"], env=environment
        )
    assert result.exit_code == 0, result.output
    assert len(json.loads(result.stdout)["calls"]) == 9


@pytest.mark.parametrize(
    "text",
    ["[]", "{", '{"a:b": {}}', '{"a:b": {"day": "2026-11-23", "share": -1, "findings": {}}}'],
)
def test_a_broken_file_is_named(text: str, tmp_path: Path) -> None:
    (tmp_path / "home").mkdir()
    (tmp_path / "home" / "measured.json").write_text(text)
    environment = {"POSOLOGY_HOME": str(tmp_path / "home")}
    result = RUNNER.invoke(app, ["models", "show", CLAUDE, "--json"], env=environment)
    assert result.exit_code == 4
    assert "measured.json cannot be read" in result.output
