from __future__ import annotations

from typing import TYPE_CHECKING

from hypothesis import given, settings
from hypothesis import strategies as st

from posology.corpus.mesh import Heading
from posology.index.search.expansion import LONGEST, MOST, Abbreviations, Headings, Several, terms
from posology.index.store import Index
from posology.types import Passage

if TYPE_CHECKING:
    from tests.unit.index.conftest import MakeRows

DEFINING = (
    "Myocardial infarction (MI) was the end point.",
    "A myocardial infarction (MI) was recorded.",
    "Mitral insufficiency (MI) was mild.",
    "Deep vein thrombosis (DVT) was rare.",
    "Nothing (NO) is defined; nitric oxide (NO) is.",
    "It's a patient's global assessment (PGA'S) of that.",
)


def heading(name: str, *synonyms: str) -> Heading:
    return Heading(name=name, synonyms=synonyms, related=("aspirin",))


def filled(index: Index, make_rows: MakeRows) -> Index:
    index.upsert(make_rows([Passage(id=f"p:{i}", text=text) for i, text in enumerate(DEFINING)]))
    index.finish()
    return index


def test_short_and_long_forms_are_found_where_definitions_agree(
    index: Index, make_rows: MakeRows
) -> None:
    view = filled(index, make_rows).view()
    expand = Abbreviations(back=True)
    assert expand("Does aspirin prevent MI?", view) == ("myocardial infarction",)
    assert expand("Does aspirin prevent myocardial infarction?", view) == ("MI",)
    # the question says both already
    assert expand("Does aspirin prevent myocardial infarction (MI)?", view) == ()
    # one definition is too few to be believed
    assert expand("Does heparin prevent DVT?", view) == ()
    assert expand("does it help?", view) == ()
    assert expand("", view) == ()
    forward = Abbreviations()
    assert forward("Does aspirin prevent MI?", view) == ("myocardial infarction",)
    assert forward("Does aspirin prevent myocardial infarction?", view) == ()


def test_quotes_in_a_question_are_words(index: Index, make_rows: MakeRows) -> None:
    view = filled(index, make_rows).view()
    assert view.definitions(["PGA'S"], ["x') OR true --"]) == [
        ("PGA'S", "patient's global assessment")
    ]
    assert view.definitions([], []) == []


def test_headings_are_found_by_their_other_terms(index: Index) -> None:
    expand = Headings(
        [
            heading("Myocardial Infarction", "Heart Attack", "Heart Attacks", "MI"),
            heading("Aspirin", "Acetylsalicylic Acid", "act"),
        ]
    )
    view = index.view()
    assert expand("Does acetylsalicylic acid prevent a heart attack?", view) == (
        "Aspirin",
        "Myocardial Infarction",
    )
    assert expand("Does aspirin act?", view) == ()


def test_each_term_comes_once_and_not_too_many(index: Index) -> None:
    vocabulary = [heading(f"Heading {i}", f"entry{i}") for i in range(20)]
    expand = Several([Headings(vocabulary), Headings(vocabulary)])
    found = expand(" ".join(f"entry{i}" for i in range(20)), index.view())
    assert len(found) == len(set(found)) == MOST


@given(st.text(max_size=200))
@settings(deadline=None)
def test_terms_are_runs_of_the_questions_words(question: str) -> None:
    for term in terms(question):
        assert term in question.casefold()
        assert len(term.split()) <= LONGEST
