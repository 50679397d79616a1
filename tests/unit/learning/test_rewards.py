from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from orchestrator.training.qtable.rewards import SCORES, Said, containment, quality, rouge1
from posology.llm.offline.replies import NOTICE
from posology.types import Answer, Citation, Refusal

TEXT = st.text(st.sampled_from("ab Cµ.é-"), max_size=30)


def test_rouge_is_the_harmonic_mean_of_precision_and_recall() -> None:
    # two of the reference's three words, and two of the answer's four
    assert rouge1("cats sat there today", "the cats sat") == pytest.approx(2 * 2 / (4 + 3))
    assert rouge1("Sleeping.", "slept") == 0
    assert rouge1("sleeping dogs", "dog sleeps") == 1


def test_rouge_is_the_packages_own_on_english() -> None:
    from rouge_score.rouge_scorer import RougeScorer

    one, other = "The trial's 2.5-mg dose was lowered twice.", "Lower doses (2.5 mg) were tried."
    theirs = RougeScorer(["rouge1"], use_stemmer=True).score(other, one)["rouge1"].fmeasure
    assert rouge1(one, other) == pytest.approx(theirs)


def test_letters_of_any_alphabet_make_words() -> None:
    assert rouge1("β µg", "β µg") == 1
    assert containment("5 µg", "5 g") == 0
    assert rouge1("…", "…") == 0


@given(said=TEXT, reference=TEXT)
def test_scores_are_shares(said: str, reference: str) -> None:
    for score in SCORES.values():
        assert 0 <= score(said, reference) <= 1
    assert rouge1(said, reference) == pytest.approx(rouge1(reference, said))


def test_containment_wants_every_word_and_no_order() -> None:
    assert containment("It was 75 mg of aspirin a day.", "aspirin 75 MG") == 1
    assert containment("It was 75 mg a day.", "aspirin 75 mg") == 0
    assert containment("anything", "") == 0


@pytest.mark.parametrize(
    ("said", "reference", "holds"),
    [
        ("2.5 mg daily", "5 mg", False),
        ("5.0 mg", "0.5 mg", False),
        ("1,000 mg", "1000 mg", True),
        ("5 μg", "5 µg", True),
        ("Sjo\u0308gren", "Sjögren", True),
        ("CO₂", "CO2", True),
        ("81mg", "81 mg", True),
        ("10²", "102", False),
        ("BRCA2, in 1 of 10", "BRCA1", False),
        ("12 had hepatitis B", "B12", False),
        ("IL6", "IL-6", True),
        ("10 000 patients", "10,000", True),
    ],
)
def test_containment_reads_numbers_whole(said: str, reference: str, holds: bool) -> None:
    assert containment(said, reference) == holds


def test_ids_of_passages_are_no_words_of_an_answer() -> None:
    cited = Citation(passage_id="pmid:3", start=0, end=4, quote="Four")
    answer = Answer(
        text="Four patients [pmid:3].",
        choice=None,
        citations=(cited,),
        dropped_quotes=0,
        strategy="direct",
    )
    assert Said.by(answer).text == "Four patients."


def test_a_refusal_is_worth_nothing_unless_the_reference_is_one() -> None:
    refusal, answer = Said(text="aspirin", refused=True), Said(text="aspirin")
    assert quality(refusal, [answer], "rouge1") == 0
    assert quality(answer, [refusal], "rouge1") == 0
    assert quality(refusal, [refusal], "rouge1") == 1


@pytest.mark.parametrize("text", ["No answer.", "The passages do not say."])
def test_a_reference_may_be_that_there_is_no_answer(text: str) -> None:
    assert Said.reference(text, ()).refused


def test_a_verdict_decides_where_the_reference_is_one() -> None:
    reference = Said.reference(" Yes ", ("yes", "no"))
    assert reference.choice == "yes"
    assert quality(Said(text="It helps.", choice="yes"), [reference], "rouge1") == 1
    assert quality(Said(text="Yes, yes.", choice="no"), [reference], "rouge1") == 0
    # a verdict 'no' sounds like a refusal, and is none
    assert not Said.reference("no", ("yes", "no")).refused
    assert Said.reference("yes", ()).choice is None


def test_the_nearest_reference_counts() -> None:
    references = [Said(text="aspirin"), Said(text="acetylsalicylic acid")]
    assert quality(Said(text="acetylsalicylic acid"), references, "rouge1") == 1


def test_what_stands_under_every_answer_of_the_offline_reader_counts_for_nothing() -> None:
    said = Said(text=f"Aspirin. ({NOTICE})")
    assert quality(said, [Said(text="aspirin")], "rouge1") == 1
    assert quality(said, [Said(text="model")], "containment") == 0


def test_what_was_said_is_taken_from_answers_and_refusals() -> None:
    answer = Answer(text="A", choice="yes", citations=(), dropped_quotes=0, strategy="direct")
    assert Said.by(answer) == Said(text="A", choice="yes")
    assert Said.by(Refusal(reason="R", strategy="direct")) == Said(text="R", refused=True)
