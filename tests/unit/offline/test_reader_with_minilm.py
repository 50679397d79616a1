"""The reader with the encoder that ships: what the fake encoder cannot show."""

from __future__ import annotations

import pytest

from posology.index.embedders import load
from posology.llm.offline_choice import choose
from posology.llm.offline_scoring import SentenceScorer
from posology.llm.offline_weights import TokenWeights
from posology.text.sentences import split
from posology.types import Excerpt, Passage

pytestmark = pytest.mark.slow

TEXTS = (
    (
        "Beta-blockers were compared with placebo in 412 adults. The mean age was 61 years. "
        "Atenolol was started at 25 mg once daily. Mortality did not differ between the groups."
    ),
    "The library was founded in 1901. It holds forty thousand volumes.",
)


@pytest.fixture(scope="module")
def scorer() -> SentenceScorer:
    return SentenceScorer(load())


@pytest.fixture(scope="module")
def excerpts() -> tuple[Excerpt, ...]:
    return tuple(
        Excerpt(passage=Passage(id=f"p:{i}", text=t), sentences=split(t))
        for i, t in enumerate(TEXTS)
    )


@pytest.mark.parametrize(
    ("question", "answer"),
    [
        ("What was the starting dose of atenolol?", "25 mg"),
        ("How old were the participants on average?", "61 years"),
        ("Did mortality differ between the groups?", "Mortality"),
        ("When was the library founded?", "1901"),
    ],
)
def test_the_sentence_that_answers_is_first(
    scorer: SentenceScorer, excerpts: tuple[Excerpt, ...], question: str, answer: str
) -> None:
    best = scorer(question, excerpts)[0]
    assert answer in best.sentence.of(TEXTS[best.excerpt])


@pytest.mark.parametrize(
    "question", ["Who won the chess championship in Reykjavik?", "How do volcanoes form?"]
)
def test_another_subject_is_refused(
    scorer: SentenceScorer, excerpts: tuple[Excerpt, ...], question: str
) -> None:
    assert choose(scorer(question, excerpts)) == []


def test_rare_pieces_weigh_more() -> None:
    encoder = load()
    (tokens,) = encoder.token_vectors(["the of warfarin"])
    weights = TokenWeights(encoder)(tokens.ids)
    assert weights[0] < 0.5
    assert weights[2:].min() > weights[:2].max()
