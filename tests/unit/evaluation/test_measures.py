"""Measures: what they count, and how far their intervals reach."""

from __future__ import annotations

import xml.etree.ElementTree as ElementTree
from decimal import Decimal
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from orchestrator.evaluation.folder import Rows
from orchestrator.evaluation.forms import (
    CitationsOutput,
    EvalEstimate,
    EvalOutput,
    EvalRow,
    Outcome,
    SupportCounts,
)
from orchestrator.evaluation.grading import regraded
from orchestrator.evaluation.measures import Cell, Other, differences, mean, measured, ratio
from orchestrator.evaluation.report.figures import figures
from orchestrator.evaluation.report.html import page
from orchestrator.evaluation.report.markdown import document
from orchestrator.evaluation.report.tables import number
from orchestrator.evaluation.suites.base import Gold
from posology.errors import InputError
from posology.published.answers import Status
from posology.types import Form

CELL = Cell(suite="mine", policy="direct", model="openai:gpt-6-luna")


def row(number: int, outcome: Outcome = Outcome.RIGHT, **changed: Any) -> EvalRow:
    plain: dict[str, Any] = {
        "key": f"k{number}", "suite": CELL.suite, "id": str(number), "question": f"Why {number}?",
        "form": Form.FREE, "policy": CELL.policy, "model": CELL.model, "outcome": outcome,
        "gold": Gold(answers=("b",)), "status": Status.ANSWERED, "answer": "b", "verdict": None,
        "refusal": None, "cited": (), "retrieved": (), "citations": None, "support": None, "decision": None,
        "calls": 1, "input_tokens": 100, "output_tokens": 10, "cost_usd": Decimal("0.002"),
        "charged_usd": Decimal("0.002"), "seconds": 1.0, "index": "index@1", "error": None,
    }  # fmt: skip
    return EvalRow(**{**plain, **changed})


def test_an_interval_covers_the_mean_of_the_population_as_often_as_it_says() -> None:
    draw = np.random.default_rng(7)
    held = 0
    for _ in range(200):
        found = mean(list(draw.random(60) < 0.7))
        assert found is not None
        held += found.low <= 0.7 <= found.high
    assert 0.89 <= held / 200 <= 0.99


def asked(*rows: EvalRow) -> Any:
    """A plan of the questions of rows."""
    items = [
        SimpleNamespace(key=one.key, suite=one.suite, case=SimpleNamespace(id=one.id))
        for one in rows
    ]
    return SimpleNamespace(items=items, suites=[SimpleNamespace(name=CELL.suite)])


def test_both_runs_are_graded_by_the_same_known_answers() -> None:
    """Those of the other one may have been corrected since."""
    mine = [row(n) for n in range(4)]
    theirs = [row(n, Outcome.WRONG, gold=Gold(answers=("c",))) for n in range(4)]
    other = Other(path=Path("before"), rows={one.key: one for one in theirs})
    (found,) = differences(asked(*mine), {one.key: one for one in mine}, other)
    assert (found.questions, found.gained, found.lost, found.accuracy.mean) == (4, 0, 0, 0)


def test_a_question_asked_in_several_ways_is_compared_with_the_same_way() -> None:
    mine = [row(n) for n in range(4)]
    others = [row(n, answer="x", key=f"other {n}") for n in range(4)]
    both = {one.key: one for one in (*mine, *others)}
    (found,) = differences(
        asked(*mine), {one.key: one for one in mine}, Other(path=Path("before"), rows=both)
    )
    assert (found.gained, found.lost) == (0, 0)
    third = [row(n, key=f"third {n}") for n in range(4)]
    with pytest.raises(InputError, match="in 2 ways that differ"):
        list(
            differences(
                asked(*third),
                {one.key: one for one in third},
                Other(path=Path("before"), rows=both),
            )
        )


@pytest.mark.parametrize(
    ("said", "outcome"),
    [
        ("Nausea occurred in four patients [pmid:3].", Outcome.WRONG),
        ("Nausea occurred in 3 patients [pmid:3].", Outcome.RIGHT),
    ],
)
def test_ids_of_passages_are_no_words_of_an_answer(said: str, outcome: Outcome) -> None:
    gold = Gold(answers=("3 patients",))
    assert regraded(gold, row(0, answer=said, retrieved=(("pmid:3",),))).outcome is outcome


def test_nothing_has_no_mean_and_no_ratio() -> None:
    assert mean([]) is None
    assert ratio([row(0)], lambda _: None) is None
    assert ratio([row(0)], lambda _: (1.0, 0.0)) is None


def test_a_ratio_is_that_of_the_sums() -> None:
    rows = [row(n, Outcome.RIGHT if n % 4 else Outcome.WRONG) for n in range(40)]
    found = measured(CELL, rows, planned=50)
    assert found.missing == 10
    assert found.outcomes == {
        "right": 30,
        "wrong": 10,
        "refused": 0,
        "undecided": 0,
        "failed": 0,
    }
    assert found.accuracy is not None
    assert found.accuracy.mean == 0.75
    assert found.accuracy.low < 0.75 < found.accuracy.high
    assert found.cost_per_right_usd is not None
    assert found.cost_per_right_usd.mean == pytest.approx(40 * 0.002 / 30)
    assert found.tokens is not None
    assert found.tokens.mean == 110


def test_a_price_of_few_right_answers_has_no_upper_end() -> None:
    """Samples without a right one cost more than any price."""
    many = [row(n, Outcome.RIGHT if n < 20 else Outcome.WRONG) for n in range(40)]
    found = measured(CELL, many, planned=40).cost_per_right_usd
    assert found is not None
    assert found.high is not None
    assert found.mean == pytest.approx(0.004)
    assert found.low < found.mean < found.high
    one = measured(CELL, [row(n, Outcome.WRONG) for n in range(1, 40)] + many[:1], planned=40)
    assert one.cost_per_right_usd is not None
    assert one.cost_per_right_usd.high is None
    assert number(one.cost_per_right_usd, ".3f") == "0.080 [0.027, no upper end]"


def test_unknown_costs_and_usages_are_counted_and_left_out() -> None:
    rows = [row(0), row(1, cost_usd=None, input_tokens=None, seconds=None)]
    found = measured(CELL, rows, planned=2)
    assert found.unknown_costs == 1
    assert found.cost_usd is not None
    assert found.cost_usd.questions == 1
    assert found.tokens is not None
    assert found.tokens.questions == 1
    assert found.seconds_p50 == 1.0


def test_citations_and_support_are_shares_of_passages_and_sentences() -> None:
    cited = CitationsOutput(cited=2, right=1, gold=4, found=1, retrieved=3)
    silent = CitationsOutput(cited=0, right=0, gold=4, found=0, retrieved=1)
    rows = [
        row(0, citations=cited, support=SupportCounts(supported=2, unclear=1, removed=1)),
        row(1, Outcome.REFUSED, citations=silent, answer=None, status=Status.REFUSED),
    ]
    found = measured(CELL, rows, planned=2)
    means = [
        one.mean
        for one in (
            found.citation_precision, found.citation_recall, found.retrieval_recall, found.supported
        )
        if one is not None
    ]  # fmt: skip
    # the refusal cites nothing, and counts in what was retrieved
    assert means == [0.5, 0.25, 0.5, 0.5]


def output(rows: Rows) -> EvalOutput:
    nothing = EvalEstimate(
        questions=0, answered=0, calls=0, free=False, input_tokens=0, output_tokens=0,
        low_usd=Decimal(0), expected_usd=Decimal(0), worst_usd=Decimal(0), spent_usd=Decimal(0),
        cap_usd=None, balances=(),
    )  # fmt: skip
    cell = Cell(suite="a <b> | c", policy="direct", model=CELL.model)
    return EvalOutput(
        folder="run", index="index@1", estimate=nothing, spent_usd=Decimal("0.08"), skipped={},
        cells=(measured(cell, list(rows.values()), planned=len(rows)),), differences=(),
    )  # fmt: skip


def test_names_cannot_break_a_report() -> None:
    found = output({f"k{n}": row(n) for n in range(9)})
    drawn = figures(found)
    assert [figure.file for figure in drawn] == ["accuracy.svg", "grades.svg", "cost.svg"]
    for figure in drawn:
        ElementTree.fromstring(figure.svg)
    assert "a &lt;b> \\| c" in document(found, drawn)
    assert "<b>" not in page(found, drawn)
