from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evals.refusals import SPLITS, read, score
from posology.text import is_refusal
from posology.text.refusals import misses_answer

EXAMPLES = read()


def test_examples_are_many_distinct_and_of_both_kinds() -> None:
    assert len({example.text for example in EXAMPLES}) == len(EXAMPLES) >= 160
    for split in SPLITS:
        labels = [example.refusal for example in EXAMPLES if example.split == split]
        assert len(labels) >= 80
        assert 0.4 <= sum(labels) / len(labels) <= 0.6


def test_precision_and_recall_on_the_examples_it_was_written_against() -> None:
    result = score([example for example in EXAMPLES if example.split == "dev"])
    assert result.misses == ()


def test_precision_and_recall_on_the_examples_held_aside() -> None:
    result = score([example for example in EXAMPLES if example.split == "test"])
    assert result.precision >= 0.92
    assert result.recall >= 0.88


@pytest.mark.parametrize("wrap", ["{}", "**{}**", "> {}", "Answer: {}", "{} [1, 2]", "  {}\n\n"])
@pytest.mark.parametrize("refusal", ["No answer.", "I don’t know", "Not stated in the passages."])
def test_markup_case_and_citations_do_not_matter(wrap: str, refusal: str) -> None:
    assert is_refusal(wrap.format(refusal))
    assert is_refusal(wrap.format(refusal).upper())


@pytest.mark.parametrize(
    "reply",
    [
        "I don't know for sure, but passage 1 states that 5 mg was given.",
        "Aspirin 300 mg. No further information was provided.",
        "While the passages do not name a dose, two trials used 20 mg.",
        "The cause is unknown.",
        "No.",
    ],
)
def test_an_answer_beside_a_refusal_counts(reply: str) -> None:
    assert not is_refusal(reply)


def test_an_empty_reply_is_a_refusal() -> None:
    assert is_refusal("")
    assert is_refusal(" \n[1] **")


@given(st.text())
def test_any_text_gets_a_verdict_that_outer_space_does_not_change(reply: str) -> None:
    assert is_refusal(reply) == is_refusal(f"\n {reply}\n ")


@pytest.mark.slow
@pytest.mark.parametrize("unit", ["information about ", "the passages ", "[", "no ", ", ", 'a "'])
def test_a_megabyte_of_one_phrase_is_judged(unit: str) -> None:
    assert isinstance(is_refusal(unit * (1_000_000 // len(unit))), bool)


@pytest.mark.parametrize(
    ("reply", "missing"),
    [
        ("The passage does not provide information on the dose for children.", True),
        ("The passages do not contain an answer to this.", True),
        ("The passages do not answer the question.", True),
        (
            "The passage does not directly answer it. It covers doses, but does not compare them.",
            False,
        ),
        (
            "The text does not directly answer the question. It covers doses, but does not compare them.",
            True,
        ),
        (
            "The passage does not address whether low back pain is influenced by thoughts of it.",
            True,
        ),
        ("The abstracts do not explicitly state how many needles are best.", True),
        (
            "The passage does not directly answer the question. It only compares clonidine and neostigmine.",
            True,
        ),
        (
            "The passage does not answer the question. It discusses arthritis but does not provide information on bronchitis.",
            True,
        ),
        ("The trial did not show whether aspirin helps.", False),
        ("No studies in the passages show a benefit.", False),
        ("The trial did not provide evidence that aspirin helps.", False),
        ("The passages do not answer the question directly, but aspirin lowered mortality.", False),
    ],
)
def test_what_sources_do_not_hold_is_told_from_what_they_found(reply: str, missing: bool) -> None:
    assert misses_answer(reply) is missing
