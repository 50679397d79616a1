"""``posology policy calibrate`` as a person meets it: a real index, questions with and without gold, and a kill."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from orchestrator.question import qtables
from orchestrator.training.calibration.forms import CalibratedOutput
from policies.calibration import packaged
from posology.index.store import Index
from tests.support.commands import Cli, command_line, published
from tests.support.indices import index_of, write_rows
from tests.support.paid_runs import environment_of, kill_when

DRUGS = (
    "aspirin",
    "ibuprofen",
    "warfarin",
    "metformin",
    "insulin",
    "statins",
    "codeine",
    "lithium",
)
ENDS = ("stroke", "bleeding", "falls", "pain", "fever")
#: ids of all passages: where all are gold, the key passage is among the first; where none is, it was not retrieved
EVERY = [f"t:{drug}:{end}" for drug in DRUGS for end in ENDS]
QUESTIONS = [
    {
        "question": f"Did {drug} lower the risk of {end}?",
        "gold": EVERY if place % 2 else ["t:nothing"],
    }
    for place, (drug, end) in enumerate((drug, end) for drug in DRUGS for end in ENDS)
]


@pytest.fixture(scope="module")
def index(tiny_encoder: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    rows = [
        {
            "id": f"t:{drug}:{end}",
            "title": f"A trial in {place} centres",
            "text": f"Of all adults, those on {drug} had less {end}. The dose was {place} mg a day.",
        }
        for place, (drug, end) in enumerate((drug, end) for drug in DRUGS for end in ENDS)
    ]
    return index_of(tmp_path_factory.mktemp("index"), tiny_encoder, rows)


@pytest.fixture
def environment(index: Path, tiny_encoder: Path) -> dict[str, str]:
    return environment_of(index, tiny_encoder)


@pytest.fixture
def cli(environment: dict[str, str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Cli:
    monkeypatch.chdir(tmp_path)
    write_rows(tmp_path / "gold.jsonl", QUESTIONS)
    write_rows(tmp_path / "plain.jsonl", [{"question": one["question"]} for one in QUESTIONS])
    return command_line(environment, "policy")


def made(cli: Cli, *arguments: str, **env: str) -> CalibratedOutput:
    result = cli("calibrate", "--out", "c.json", *arguments, "--json", **env)
    return CalibratedOutput.model_validate(published(result, "calibrate"))


def test_orders_are_calibrated_one_after_the_other_and_used(
    cli: Cli, index: Path, tmp_path: Path
) -> None:
    first = made(cli, "--questions", "gold.jsonl", "--mode", "dense")
    assert (first.order, first.retrieved, first.left_out) == ("dense", len(QUESTIONS), ())
    (order,) = first.calibration.orders
    assert order.questions == len(QUESTIONS)
    assert {one.k for one in order.reach} == {8}
    assert not first.calibration.packaged
    # nothing is retrieved again, and the other order is kept
    again = made(cli, "--questions", "gold.jsonl", "--mode", "dense")
    assert again.retrieved == 0
    assert again.calibration.digest == first.calibration.digest
    second = made(cli, "--questions", "gold.jsonl", "--mode", "fused")
    assert [one.order for one in second.calibration.orders] == ["dense", "fused"]
    assert {one.mendable for one in second.calibration.orders[1].reach} == {None}
    own = qtables.load_calibration(tmp_path / "c.json")
    assert own.embedder == Index.open(index).meta.embedder
    rows = write_rows(tmp_path / "few.jsonl", [{"question": QUESTIONS[0]["question"]}])
    decided = {
        name: cli(
            "compare", "router", "direct", "--questions", str(rows), "--mode", "dense",
            "--model", "openai:gpt-4o-mini", "--json", POSOLOGY_CALIBRATION=name,
        )
        for name in ("", "c.json")
    }  # fmt: skip
    reasons = {
        name: json.loads(result.stdout)["first"]["version"] for name, result in decided.items()
    }
    assert reasons[""] != reasons["c.json"]


def test_a_calibration_of_another_embedder_is_refused(cli: Cli, tmp_path: Path) -> None:
    qtables.save_calibration(packaged(), tmp_path / "c.json")
    result = cli("calibrate", "--questions", "gold.jsonl", "--out", "c.json")
    assert result.exit_code == 3
    assert "--out" in result.stderr
    asked = ("compare", "router", "direct", "--questions", "plain.jsonl")
    result = cli(*asked, "--model", "openai:gpt-4o-mini", POSOLOGY_CALIBRATION="c.json")
    assert result.exit_code != 0
    assert "policy calibrate" in result.stderr


def test_questions_that_teach_nothing_are_told(cli: Cli, tmp_path: Path) -> None:
    mixed: list[Any] = [
        *QUESTIONS,
        {"question": "Without gold?"},
        "{no json",
        {"question": "?", "gold": "t:1"},
    ]
    write_rows(tmp_path / "mixed.jsonl", mixed)
    out = made(cli, "--questions", "mixed.jsonl", "--mode", "dense")
    assert [one.line for one in out.left_out] == [41, 42, 43]
    assert "no gold passages" in out.left_out[0].reason
    few = cli(
        "calibrate",
        "--out",
        "d.json",
        "--questions",
        str(write_rows(tmp_path / "f", QUESTIONS[:3])),
    )
    assert few.exit_code == 3
    assert "at least 10 are needed" in few.stderr
    assert not (tmp_path / "d.json").exists()


def test_it_is_shown_with_the_reach_of_the_flag_and_of_the_action(cli: Cli) -> None:
    made(cli, "--questions", "gold.jsonl", "--mode", "dense")
    told = cli("calibrate", "--out", "c.json", "--questions", "gold.jsonl", "--mode", "dense")
    assert "POSOLOGY_CALIBRATION=c.json" in told.stderr
    shown = cli("show", "c.json")
    assert shown.exit_code == 0, shown.output
    assert "of your own" in shown.stdout
    assert "flag, ≥" in shown.stdout
    assert "at once, ≥ 0.50" in shown.stdout
    assert published(cli("show", "c.json", "--json"), "calibration")["packaged"] is False
    default = cli("show")
    assert "comes with Posology" in default.stdout
    assert "no question is given to BriefContext at once" in default.stdout
    off = published(cli("show", "--json", POSOLOGY_POLICY="doubling"), "calibration")
    assert off["at_once"] is None
    assert "--png" in cli("show", "--png", "x.png").stderr


@pytest.mark.slow
def test_a_killed_run_goes_on_where_it_was(
    cli: Cli, environment: dict[str, str], tmp_path: Path
) -> None:
    run = tmp_path / "c.json.run.jsonl"
    arguments = (
        "policy",
        "calibrate",
        "--questions",
        "gold.jsonl",
        "--mode",
        "dense",
        "--out",
        "c.json",
    )

    def some() -> bool:
        return run.exists() and run.read_bytes().count(b"\n") > 5

    kill_when(some, arguments, environment, tmp_path)
    kept = run.read_bytes().count(b'"row":"question"')
    out = made(cli, "--questions", "gold.jsonl", "--mode", "dense")
    assert out.retrieved <= len(QUESTIONS) - kept + 1
    assert out.calibration.orders[0].questions == len(QUESTIONS)
