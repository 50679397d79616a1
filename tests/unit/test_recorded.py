"""Replies of real language models, run through parsing, guard, support and verdicts as they came.

``python -m evals.live ask`` and ``record`` make them; a change of what becomes of one shows here.
"""

from __future__ import annotations

from functools import cache

import pytest

from orchestrator.models import Models
from posology.types import Answer
from tests.support.recorded import (
    DATA,
    Library,
    Row,
    key,
    library,
    outcome,
    replayed,
    rows,
    stale,
)

pytestmark = [
    pytest.mark.anyio,
    pytest.mark.skipif(
        not DATA.exists(), reason=f"the passages of the recordings are not in {DATA}"
    ),
]
ROWS = list(rows())


@cache
def known() -> Library:
    return library(DATA)


@pytest.mark.parametrize(
    "row", ROWS, ids=lambda row: f"{row['model']}-{row['way']}-{row['set']}-{row['id']}"
)
async def test_what_becomes_of_a_reply_is_what_it_was(row: Row) -> None:
    assert await outcome(row, known()) == row["outcome"]


def test_recordings_are_of_the_present_prompts() -> None:
    calls = sum(len(row["calls"]) for row in ROWS)
    if old := sum(map(stale, ROWS)):
        pytest.skip(f"{old} of {calls} recorded replies are to older prompts: record them anew")


def test_every_answer_to_a_question_with_choices_has_a_verdict() -> None:
    """The first real replies to PubMedQA's questions had none."""
    asked = [row for row in ROWS if row["set"] in ("pubmedqa", "bioasq yesno")]
    given = [row["outcome"]["choice"] for row in asked if row["outcome"].get("answered")]
    assert len(given) > 20
    assert None not in given


def test_an_author_and_a_year_that_no_passage_has_are_marked() -> None:
    """A reply said "The study by [author] et al. (2010) found …"."""
    marked = [row["outcome"] for row in ROWS if "et al. (2010)" in str(row["outcome"].get("text"))]
    assert marked
    assert all("invented" in rules for one in marked for _, rules in one["support"])


async def test_a_right_answer_with_the_right_sentence_is_not_called_contradicted() -> None:
    """The first real answer of all was; by the packaged judge and by the model that judged it."""
    asked = [row for row in ROWS if row["id"] == "aspirin" and row["model"].endswith("1.5b")]
    assert {row["way"] for row in asked} == {"router", "judge"}
    for row in asked:
        passages = known().passages(row)
        assert passages is not None
        found = await replayed(row, known().asked[key(row)], passages, Models(None).judge)
        assert isinstance(found, Answer)
        assert found.choice == "yes"
        assert [one.passage_id for one in found.citations] == ["note:preg-002"]
        assert found.support is not None
        assert [one.stands for one in found.support.sentences] == [True]
        assert not any(one.differences for one in found.support.sentences)
