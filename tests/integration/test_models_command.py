"""``posology models``."""

from __future__ import annotations

import json
from typing import Any

import pytest
from typer.testing import CliRunner

from orchestrator.cli.app import app

RUNNER = CliRunner()


def run(*arguments: str, **environment: str) -> str:
    result = RUNNER.invoke(app, ["models", *arguments], env=environment)
    assert result.exit_code == 0, result.output
    return result.stdout


def test_the_list_has_what_can_answer_cheapest_first() -> None:
    models: list[dict[str, Any]] = json.loads(run("list", "--json"))["models"]
    names = [one["model"] for one in models]
    assert {"openai:gpt-6-luna", "anthropic:claude-haiku-5-5"} <= set(names)
    assert not any("embedding" in name or ":ft:" in name for name in names)
    assert all(one["known"] and one["priced"] for one in models)
    prices = [float(one["input_usd_per_million"]) for one in models if "openai" in one["model"]]
    assert prices == sorted(prices)
    # printed as a table, too
    assert all(name in run("list") for name in names[:3])


def test_show_says_what_is_sent_in_each_stage() -> None:
    out = json.loads(run("show", "openai:gpt-6-luna", "--json"))
    assert out["stages"] == {
        "answer": "low",
        "extract": "none",
        "judge": "none",
        "reduce": "low",
        "compress": "none",
        "label": "none",
    }
    assert out["reply_tokens"]["answer"] > out["reply_tokens"]["extract"]
    raised = json.loads(run("show", "openai:gpt-6-luna", "--json", POSOLOGY_EFFORT="answer=high"))
    assert raised["stages"] == {**out["stages"], "answer": "high"}
    assert raised["reply_tokens"]["answer"] > out["reply_tokens"]["answer"]


def test_an_unknown_model_is_shown_with_its_safe_defaults() -> None:
    out = json.loads(run("show", "openai:unheard-of", "--json"))
    assert not out["known"]
    assert not out["priced"]
    assert (out["tokenizer"], out["cache"]) == ("unknown", "unknown")
    shown = run("show", "openai:unheard-of")
    assert "safe defaults" in shown
    (context,) = (line.split() for line in shown.splitlines() if line.strip().startswith("context"))
    assert context == ["context", "unknown"]


def test_the_model_of_the_settings_is_shown_by_default() -> None:
    out = json.loads(run("show", "--json", POSOLOGY_MODEL="anthropic:claude-haiku-5-5"))
    assert out["model"] == "anthropic:claude-haiku-5-5"


@pytest.mark.parametrize("effort", ["most", "answer=most"])
def test_a_wrong_effort_is_a_wrong_setting(effort: str) -> None:
    result = RUNNER.invoke(app, ["models", "show"], env={"POSOLOGY_EFFORT": effort})
    assert result.exit_code == 4
    assert "POSOLOGY_EFFORT" in result.stderr
