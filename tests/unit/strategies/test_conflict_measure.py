"""The measure of resolved conflicts, over a reader whose answers are in capitals."""

from __future__ import annotations

import re
from collections.abc import Sequence

import numpy as np
import pytest

from evals.conflicts.cases import Case
from evals.conflicts.reader import ScriptedReader
from evals.conflicts.resolution import is_right, measure, summary
from posology.types import Excerpt, Form, Passage, Reading, Sentence

pytestmark = pytest.mark.anyio


class Capitals:
    """Answers by the word in capitals; the judge takes YES and NO for what a text says."""

    name = "capitals"

    def read(self, question: str, excerpts: Sequence[Excerpt]) -> list[Reading]:
        found = []
        for one in excerpts:
            match = re.search(r"[A-Z]{2,}", one.passage.text)
            span = None if match is None else Sentence(start=match.start(), end=match.end())
            probabilities = np.full(len(one.sentences), 0.9, np.float32)
            found.append(Reading(sentences=probabilities, answers=0.9 if match else 0.0, span=span))
        return found

    def judge(self, pairs: Sequence[tuple[str, str]]) -> np.ndarray:
        rows = [("YES" in text, "NO" in text, not re.search("YES|NO", text)) for _, text in pairs]
        return np.array(rows, np.float32).reshape(-1, 3)


def case(*texts: str, right: str, wrong: str = "", form: Form = Form.FREE) -> Case:
    return Case(
        question="Where is it?",
        passages=tuple(Passage(id=f"n:{i}", text=text) for i, text in enumerate(texts)),
        claims={},
        right=(right,),
        wrong=(wrong,) if wrong else (),
        form=form,
    )


async def test_conflicts_are_counted_and_compared_with_direct_rag() -> None:
    reader = ScriptedReader(Capitals(), Capitals())
    cases = [
        case(
            "It is in OSLO today.", "It is in OSLO again.", "It is in ROME, they say.", right="Oslo"
        ),
        case(
            "It is in OSLO today.", "It is in ROME now.", "It is in ROME, they say.", right="Oslo"
        ),
        case("It is in OSLO today.", "Of that nothing is known.", right="Oslo"),
    ]
    found = await measure(cases, reader, size=1)
    assert [one.conflict for one in found] == [True, True, False]
    assert [one.right for one in found] == [True, False, True]
    assert [one.direct for one in found] == [True, False, True]
    told = summary(found)
    assert "2 with partitions that answer differently; resolved rightly 0.500" in told
    assert "win 0, tie 2, lose 0" in told


async def test_verdicts_are_those_of_the_judge() -> None:
    reader = ScriptedReader(Capitals(), Capitals())
    asked = case(
        "It says YES to it.",
        "It says NO to it.",
        "It is YES again.",
        right="yes",
        wrong="no",
        form=Form.YES_NO,
    )
    (one,) = await measure([asked], reader, size=1)
    assert (one.conflict, one.ruled, one.right, one.direct) == (True, False, True, True)


def test_a_wrong_answer_is_not_right_whatever_else_it_says() -> None:
    asked = case("x", right="3,559 people", wrong="10,000 people")
    assert is_right(asked, "3,559")
    assert not is_right(asked, "10,000")
    assert not is_right(asked, "")
