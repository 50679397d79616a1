"""``posology policy``: shown, and promoted by feedback that stands in a real Redis."""

from __future__ import annotations

import json
from dataclasses import replace
from functools import partial
from pathlib import Path

import anyio
import numpy as np
import pytest

from orchestrator.question import qtables
from policies.qtable import ACTIONS, QTable
from posology.types import Decision, Dose
from tests.integration.jobs_store.helpers import open_bench
from tests.integration.jobs_store.test_feedback import judged_by, succeeded
from tests.support.commands import Cli, published
from tests.unit.policies.tables import table


@pytest.fixture
def cli(cli: Cli) -> Cli:
    return partial(cli, "policy")


@pytest.fixture
def of(tmp_path: Path) -> QTable:
    """A table in ``t.json`` that keeps 5 % in all of its states."""
    q = np.zeros((3, len(ACTIONS)))
    q[:, 1] = 0.1
    found = table(q=q)
    qtables.save(found, tmp_path / "t.json")
    return found


@pytest.mark.slow
def test_a_table_is_shown_and_drawn(cli: Cli, of: QTable, tmp_path: Path) -> None:
    result = cli("show", "t.json", "--png", "t.png")
    assert result.exit_code == 0, result.stderr
    assert of.digest in result.stdout
    assert "0.10*" in result.stdout
    assert (tmp_path / "t.png").read_bytes().startswith(b"\x89PNG")
    out = published(cli("show", "t.json", "--json"), "qtable")
    assert [state["keep"] for state in out["states"]] == [0.05] * 3
    # the fixture's prompt is nobody's, and its model is the default
    assert out["differs"] == ["it learned with another wording of the prompt answer"]
    other = cli("show", "t.json", POSOLOGY_MODEL="openai:gpt-4o-mini")
    assert "not of openai:gpt-4o-mini" in other.stdout
    # its shares are given by the compressor that it learned with, whatever is configured
    reduced = cli("show", "t.json", POSOLOGY_COMPRESSOR="leancontext_top")
    assert "not of leancontext_top" not in reduced.stdout
    qtables.save(replace(of, compressor="gone"), tmp_path / "old.json")
    assert "contexts of gone, not of pruner" in cli("show", "old.json").stdout


def test_without_a_file_the_configured_one_is_shown(cli: Cli, of: QTable) -> None:
    assert of.digest in cli("show", POSOLOGY_QTABLE="t.json").stdout
    none = cli("show")
    assert none.exit_code == 0
    assert "comes with Posology" in none.stdout
    drawn = cli("show", "--png", "x.png")
    assert drawn.exit_code == 4
    assert "POSOLOGY_QTABLE" in drawn.stderr


@pytest.mark.parametrize("command", [("show", "x.json"), ("promote", "x.json", "--out", "y.json")])
def test_what_is_no_table_is_said(cli: Cli, tmp_path: Path, command: tuple[str, ...]) -> None:
    for content in (None, "{}"):
        if content:
            (tmp_path / "x.json").write_text(content)
        result = cli(*command)
        assert result.exit_code == 4
        assert "x.json" in result.stderr
        error = json.loads(cli(*command, "--json").stdout)["error"]
        assert error["type"] == "BadArtefact"
    assert not (tmp_path / "y.json").exists()


def test_an_answer_is_judged(cli: Cli, of: QTable, redis_url: str, tenant: str) -> None:
    async def job(decision: Decision) -> str:
        async with open_bench(redis_url, tenant) as bench:
            return await succeeded(bench, decision)

    decision = Decision(dose=Dose(strategy="direct"), policy="router", reason="it is")
    plain = cli("feedback", anyio.run(job, decision), "--score", "1")
    assert plain.exit_code == 0, plain.stderr
    assert "no Q-table" in plain.stdout
    looked_at = {"qtable.table": of.digest, "qtable.state": 1}
    name = anyio.run(job, replace(decision, features=looked_at))
    told = cli("feedback", name, "--score", "0.5", "--comment", "Half.")
    assert f"state 1 of Q-table {of.digest}" in told.stdout
    out = json.loads(cli("feedback", name, "--score", "0", "--json").stdout)
    assert (out["feedback"]["score"], out["feedback"]["comment"]) == (0, None)
    assert cli("feedback", name, "--score", "2").exit_code == 3
    assert cli("feedback", "job_0", "--score", "1").exit_code == 8


def test_feedback_makes_another_table(
    cli: Cli, of: QTable, tmp_path: Path, redis_url: str, tenant: str
) -> None:
    nothing = cli("promote", "t.json", "--out", "new.json")
    assert nothing.exit_code == 1
    assert "no feedback" in nothing.stdout
    assert not (tmp_path / "new.json").exists()

    async def judge() -> None:
        decision = Decision(
            dose=Dose(strategy="compressed", keep=0.05),
            policy="qtable",
            reason="it pays",
            features={"qtable.table": of.digest, "qtable.state": 2},
        )
        async with open_bench(redis_url, tenant) as bench:
            for score in (0.0, 0.0, 0.2):
                await judged_by(bench, await succeeded(bench, decision, shown=0.2), score)

    anyio.run(judge)
    out = published(cli("promote", "t.json", "--out", "new.json", "--json"), "promotion")
    assert out["states"] == [{"state": 2, "rewards": 3, "keep_before": 0.05, "keep_after": 0.0}]
    new = qtables.load(tmp_path / "new.json")
    assert (new.digest, new.parent) == (out["after"], of.digest)
    rewards = sum(-0.5 * 0.2 + 0.5 * (2 * r - 1) for r in (0, 0, 0.2))
    assert new.q[2, 1] == pytest.approx((6 * 0.1 + rewards) / 9)
    assert new.visits.sum() == of.visits.sum() + 3

    # it is the same however often it is made, and the new one has heard of nothing yet
    text = cli("promote", "t.json", "--out", "again.json")
    assert "1 of 1 states" in text.stdout
    assert qtables.load(tmp_path / "again.json").digest == new.digest
    assert cli("promote", "new.json", "--out", "newer.json").exit_code == 1
    assert cli("promote", "t.json", "--out", "other.json", "--tenant", "nobody").exit_code == 1
