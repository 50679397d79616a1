from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from posology.index.search.bm25 import rerank, tokenise
from posology.types import Passage

TEXTS = st.text("aspirin AND -µ.?\n", max_size=40)


def passages(*texts: str) -> list[Passage]:
    return [Passage(id=f"p{i}", text=text) for i, text in enumerate(texts)]


@pytest.mark.parametrize(
    ("text", "tokens"),
    [
        ("IL-6 and TNF-α", ["il", "6", "tnf", "α", "il6", "tnfα"]),
        ("anti-inflammatory", ["anti", "inflammatory", "antiinflammatory"]),
        ("Does aspirin NOT work?", ["aspirin", "not", "work"]),
        ("Crohn's disease", ["crohn", "disease", "crohns"]),
        ("0.5 mg/kg", ["0", "5", "mg", "kg"]),
        ("?! … \n", []),
    ],
)
def test_tokens(text: str, tokens: list[str]) -> None:
    assert tokenise(text) == tokens


def test_more_of_the_questions_words_rank_first() -> None:
    found = rerank(
        "aspirin after stroke",
        passages("A trial of statins.", "Aspirin in headache.", "Aspirin given after a stroke."),
    )
    assert found.method == "bm25_rerank"
    assert found.ids == ("p2", "p1", "p0")


def test_a_word_in_nearly_every_passage_still_counts_for_them() -> None:
    # Okapi's idf is negative here and would put the only passage without the word first
    found = rerank("aspirin", passages("Statins, ten mg.", *["Aspirin, ten mg."] * 7))
    assert found.ids[-1] == "p0"


def test_two_passages_are_enough_to_be_ranked() -> None:
    assert rerank("aspirin", passages("Statins.", "Aspirin.")).ids == ("p1", "p0")


def test_the_title_counts() -> None:
    titled = Passage(id="titled", title="Aspirin", text="It works.")
    assert rerank("aspirin", [*passages("It works."), titled]).ids == ("titled", "p0")


def test_equal_scores_keep_the_order_that_was_handed_in() -> None:
    assert rerank("warfarin", passages("a trial", "a trial", "a trial")).ids == ("p0", "p1", "p2")


@given(TEXTS, st.lists(TEXTS, max_size=6))
def test_every_passage_is_ranked_whatever_the_words(question: str, texts: list[str]) -> None:
    found = rerank(question, passages(*texts))
    assert sorted(found.ids) == sorted(f"p{i}" for i in range(len(texts)))
    scores = [hit.score for hit in found.hits]
    assert scores == sorted(scores, reverse=True)
    assert all(score >= 0 for score in scores)


def test_scores_are_those_of_bm25_plus() -> None:
    """Of two and three words; ``log(3 / 1)`` is the weight of a word that one of two has."""
    (best, last) = rerank("aspirin", passages("Aspirin works.", "Statins were given often.")).hits
    assert best.score == pytest.approx(
        math.log(3) * (1 + 2.5 / (1.5 * (0.25 + 0.75 * 2 / 2.5) + 1))
    )
    # it adds its lower bound to every passage
    assert last.score == pytest.approx(math.log(3))


def test_texts_without_words_keep_their_order() -> None:
    assert rerank("aspirin", passages("?!", "…")).ids == ("p0", "p1")
    assert rerank("aspirin", []).ids == ()
