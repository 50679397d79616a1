from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from posology.corpus.sample import notes_file
from posology.evidence import level
from posology.types import Level


@pytest.mark.parametrize(
    ("types", "expected"),
    [
        (["Meta-Analysis"], Level.SYSTEMATIC_REVIEW),
        (["Systematic Review", "Journal Article"], Level.SYSTEMATIC_REVIEW),
        (["Journal Article", "Randomized Controlled Trial"], Level.TRIAL),
        (["Clinical Trial, Phase III", "Multicenter Study"], Level.TRIAL),
        (["Pragmatic Clinical Trial"], Level.TRIAL),
        (["Equivalence Trial"], Level.TRIAL),
        (["Adaptive Clinical Trial"], Level.TRIAL),
        (["Observational Study"], Level.COHORT),
        (["Case-Control Studies"], Level.COHORT),
        (["Case Reports", "Review"], Level.CASE_REPORT),
        (["Letter", "Randomized Controlled Trial"], Level.TRIAL),
        (["  meta-analysis "], Level.SYSTEMATIC_REVIEW),
        (["RANDOMIZED  CONTROLLED TRIAL"], Level.TRIAL),
        # of no design, or of no results, or not of people
        (["Review"], Level.OTHER),
        (["Editorial", "Comment"], Level.OTHER),
        (["Practice Guideline"], Level.OTHER),
        (["Comparative Study", "Multicenter Study"], Level.OTHER),
        (["Clinical Trial Protocol"], Level.OTHER),
        (["Randomized Controlled Trial, Veterinary"], Level.OTHER),
        (["Observational Study, Veterinary"], Level.OTHER),
        (["Systematic Reviews as Topic"], Level.OTHER),
        (["Retracted Publication"], Level.OTHER),
        ([], Level.OTHER),
        ([""], Level.OTHER),
    ],
)
def test_levels_of_medline_types(types: list[str], expected: Level) -> None:
    assert level(types) is expected


@given(st.lists(st.sampled_from(["Review", "Case Reports", "Clinical Trial", "Meta-Analysis"])))
def test_the_best_of_several_counts_in_any_order(types: list[str]) -> None:
    assert level(types) is level(reversed(types))
    assert level(types).rank == min((level([one]).rank for one in types), default=4)


def test_the_sample_corpus_has_every_level() -> None:
    with notes_file() as path:
        rows = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
    assert {level(row["publication_types"]) for row in rows} == set(Level)
