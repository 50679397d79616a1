"""BriefContext's suites on tiny data."""

from __future__ import annotations

from functools import partial
from pathlib import Path

import anyio
import pytest

from evals.papers.briefcontext.conflicts import Conflicts
from evals.papers.briefcontext.distractors import Distractors
from evals.papers.briefcontext.position import PLACES, Position, placed
from evals.papers.briefcontext.preflight import FN, FP, TP, Preflight
from evals.papers.briefcontext.resolution import PAPER
from evals.papers.briefcontext.scale import FOLLOWS
from evals.papers.literature import pubmedqa
from evals.papers.rows import Result, open_folder
from evals.papers.run import run
from evals.papers.suite import Given, Suite
from orchestrator.evaluation.simulation.profiles import FITTED, read
from tests.unit.papers.tiny_data import tiny


def measured(suite: Suite, given: Given, *readers: str) -> tuple[str, list[Result]]:
    with open_folder(given.work / "run") as folder:
        done = anyio.run(partial(run, suite, given, readers, folder))
        return done.text, list(folder.rows.content.results.values())


@pytest.fixture
def given(tmp_path: Path) -> Given:
    return tiny(tmp_path)


def test_the_key_document_is_where_the_arm_says(given: Given) -> None:
    (case, *_) = pubmedqa(given, 16)
    assert case.key.id not in {one.id for one in case.near}
    at = [placed(case, case.near, 8, percent).index(case.key) for percent in PLACES]
    assert at == [0, 2, 4, 5, 7]
    assert {len(placed(case, case.near, 16, percent)) for percent in PLACES} == {16}


def test_more_questions_add_to_those_of_fewer(given: Given, tmp_path: Path) -> None:
    few, more = pubmedqa(given, 2), pubmedqa(tiny(tmp_path, questions=5), 2)
    assert [one.id for one in more[:3]] == [one.id for one in few]


def test_a_reader_that_loses_nothing_is_right_at_every_place(given: Given) -> None:
    text, rows = measured(Position(), given, "immune")
    rag = [row for row in rows if row.arm.startswith("RAG")]
    assert len(rag) == 3 * len(PLACES) * 2
    assert all(row.values["key"] == 1 for row in rag)
    # the accuracy of the paper's model with the key document alone
    assert {row.values["accuracy"] for row in rag} == {0.6286}
    assert all(row.values["conflict"] is None for row in rag)
    parted = [row for row in rows if row.arm.startswith("BriefContext")]
    assert all(row.values["calls"] == 3 for row in parted)
    assert "| immune | all settings | 30 |" in text


def test_tables_of_the_paper_are_marked_as_fitted_or_predicted() -> None:
    by_basis = {bool(one.fitted): one for one in Position.published}
    assert set(by_basis) == {True, False}
    for one in Position.published:
        assert bool(one.fitted) == (one.arm.startswith("RAG") or one.value == 0.6286)
    mixtral, gpt = PAPER
    assert (mixtral.conflicts, mixtral.resolved, gpt.conflicts, gpt.resolved) == (
        217,
        171,
        313,
        225,
    )
    assert mixtral.win > mixtral.lose


def test_profiles_follow_the_models_that_their_basis_names() -> None:
    for row in read(FITTED)["profiles"]:
        assert f"curve and reading of {FOLLOWS[row['name']]}" in row["basis"]


def test_similar_and_random_documents_say_that_a_simulation_shows_nothing(given: Given) -> None:
    text, rows = measured(Distractors(), given, "strong")
    assert len(rows) == 3 * 2 * 2
    assert "Simulated models cannot show it" in text


def test_conflicts_are_between_partitions_and_resolved_at_the_profiles_rate(given: Given) -> None:
    text, rows = measured(Conflicts(), given, "immune")
    ramdocs = [row for row in rows if row.arm == "BriefContext, RAMDocs"]
    assert len(ramdocs) == 3
    for row in rows:
        assert (row.values["resolved"] is None) == (not row.values["conflict"])
    assert any(row.values["conflict"] for row in rows)
    assert "*fitted* to table S2" in text


def test_the_flag_is_measured_without_a_reader(given: Given) -> None:
    text, rows = measured(Preflight(), given)
    assert "No reader is asked." in text
    assert {row.reader for row in rows} == {""}
    scifact = [row.values for row in rows if row.arm.startswith("SciFact")]
    # its key document is not in the pool
    assert all(one["issue"] == 1 and one["reach"] is None for one in scifact)
    assert pytest.approx(0.5018, abs=1e-4) == TP / (TP + FP)
    assert pytest.approx(0.9261, abs=1e-4) == TP / (TP + FN)
    assert "| fused | 8 |" in text


@pytest.mark.slow
def test_the_shared_questions_are_asked(shared_data: Path, tmp_path: Path) -> None:
    real = Given(data=shared_data, work=tmp_path, questions=2)
    _, rows = measured(Position(), real, "strong")
    assert len(rows) == 2 * 20
    _, conflicts = measured(
        Conflicts(), Given(data=shared_data, work=tmp_path / "c", questions=2), "strong"
    )
    assert len(conflicts) == 2 * 2 * 2
