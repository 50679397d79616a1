from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from posology.llm.offline.choice import LIKENESS, Scores
from posology.llm.offline.contrast import LIMITS, contrast
from posology.llm.offline.scores import Scored
from posology.llm.offline.wording import Stance, asks_for_a_side, coverage, stance
from posology.testing import ScriptedJudge
from posology.text.sentences import split
from posology.types import Call, Excerpt, Message, Passage, PromptId, Query, Role, Stage


@pytest.mark.parametrize(
    "sentence",
    [
        "Zinc lowers mortality by a third.",
        "Stroke fell by 30% with zinc.",
        "Zinc is effective and safe in adults.",
        "Zinc prolonged survival.",
        "Zinc has been shown to reduce pain.",
        "Symptoms improved on zinc.",
    ],
)
def test_words_of_benefit_speak_for(sentence: str) -> None:
    assert stance(sentence) is Stance.FOR


@pytest.mark.parametrize(
    "sentence",
    [
        "Zinc does not reduce death.",
        "Zinc is no longer recommended for adults.",
        "Mortality rose with zinc.",
        "Zinc was contraindicated in heart failure.",
        "There was no difference in mortality.",
        "Mortality did not differ between the groups.",
        "Zinc failed to improve survival.",
        "The review finds no evidence that zinc prevents colds.",
        "Zinc was not associated with fewer relapses.",
        "More deaths were seen with zinc.",
    ],
)
def test_words_of_harm_and_denial_speak_against(sentence: str) -> None:
    assert stance(sentence) is Stance.AGAINST


@pytest.mark.parametrize(
    "sentence",
    [
        "Forty adults took part.",
        "Zinc may lower mortality.",
        "It was hoped that zinc would lower mortality.",
        "Patients were given zinc to reduce pain.",
        "We studied whether zinc reduces pain.",
        "Zinc did not raise mortality.",
        "Zinc lowered mortality but worsened pain.",
        "There is no evidence that zinc is harmful.",
        "Adults aged 50 years or more at risk took part.",
        "Patients without evidence of cancer took part.",
        "",
    ],
)
def test_what_only_supposes_or_says_both_takes_no_side(sentence: str) -> None:
    assert stance(sentence) is None


@given(st.text(max_size=200))
def test_any_text_has_a_stance_or_none(text: str) -> None:
    assert stance(text) in {None, *Stance}
    assert 0 <= coverage(text, text) <= 1


@pytest.mark.parametrize(
    ("question", "asks"),
    [
        ("Does zinc help?", True),
        ("Zinc for colds: is it effective?", True),
        ("After a cold, should zinc be given?", True),
        ("What dose of zinc is given?", False),
        ("Which adults need zinc, and how much?", False),
        ("", False),
    ],
)
def test_only_yes_or_no_has_sides(question: str, asks: bool) -> None:
    assert asks_for_a_side(question) is asks


def test_coverage_counts_words_of_content_up_to_their_endings() -> None:
    asked = "Does zinc help adults with common colds?"
    assert coverage(asked, "Zinc in the adult with a common cold") == pytest.approx(2 / 4)
    assert coverage(asked, "Zinc, adults, commonly, colds") == 1
    assert coverage(asked, "Nothing of it.") == 0
    assert coverage("Does it help?", "It does.") == 0


def call(question: str, *texts: str) -> tuple[Call, Scores]:
    excerpts = tuple(
        Excerpt(passage=Passage(id=f"p:{i}", text=text), sentences=split(text))
        for i, text in enumerate(texts)
    )
    asked = Call(
        stage=Stage.REDUCE,
        model="offline:extractive",
        query=Query(text=question),
        excerpts=excerpts,
        messages=(Message(role=Role.USER, content="-"),),
        prompt=PromptId(name="reduce", digest="0" * 16),
        max_tokens=100,
    )
    scored = [
        Scored(excerpt=i, sentence=sentence, score=1 - i / 10)
        for i, excerpt in enumerate(excerpts)
        for sentence in excerpt.sentences
    ]
    return asked, Scores(read=scored, weigh=lambda: 1.0, rule=LIKENESS)


QUESTION = "Does zinc help against colds?"
FOR = "Zinc is effective against colds."
AGAINST = "Zinc does not prevent colds."


def test_sentences_for_and_against_the_same_are_a_contrast() -> None:
    found = contrast(*call(QUESTION, FOR, "Zinc is a metal in colds.", AGAINST, FOR))
    assert found is not None
    assert [one.excerpt for one in found.speaking_for] == [0, 3]
    assert [one.excerpt for one in found.speaking_against] == [2]


@pytest.mark.parametrize(
    ("question", "texts"),
    [
        ("What does zinc do against colds?", [FOR, AGAINST]),
        (QUESTION, [FOR, FOR]),
        (QUESTION, [AGAINST]),
        (QUESTION, []),
        # another subject
        (QUESTION, [FOR, "Bed rest does not prevent falls."]),
        # one source that says both
        (QUESTION, [f"{FOR} {AGAINST}"]),
        (QUESTION, [f"{FOR} {AGAINST}", AGAINST]),
    ],
)
def test_everything_else_is_none(question: str, texts: list[str]) -> None:
    assert contrast(*call(question, *texts)) is None


@pytest.mark.parametrize(
    ("supports", "contradicts", "found"),
    [
        (LIMITS.contradicts - 0.01, 1.01 - LIMITS.contradicts, True),
        (LIMITS.contradicts + 0.01, 0.99 - LIMITS.contradicts, False),
        # it mostly says nothing of the claim
        (0.0, LIMITS.sided - 0.01, False),
        (0.0, LIMITS.sided + 0.01, True),
    ],
)
@pytest.mark.parametrize("question", [QUESTION, "Zinc prevents colds."])
def test_a_judges_sides_need_their_least_probabilities(
    question: str, supports: float, contradicts: float, found: bool
) -> None:
    rows = {FOR: (LIMITS.supports + 0.01, 0.99 - LIMITS.supports), AGAINST: (supports, contradicts)}
    judge = ScriptedJudge(lambda _, text: rows[text])
    pair = contrast(*call(question, FOR, AGAINST), judge)
    assert (pair is not None) == found
    if pair is not None:
        assert pair.judged
        assert pair.answers is None
