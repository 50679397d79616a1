from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from posology.text.sentences import split
from strategies.compression.wording.drugs import is_drug, names
from strategies.compression.wording.phrases import segment


@pytest.mark.parametrize(
    "word",
    [
        "adalimumab",
        "imatinib",
        "Enalapril",
        "losartan",
        "rosuvastatin",
        "metoprolol",
        "fluconazole",
        "amoxicillin",
        "clarithromycin",
        "oseltamivir",
        "sitagliptin",
        "dalteparin",
        "rivaroxaban",
        "ceftriaxone",
        "cephalosporins",
        "pembrolizumab",
        "aspirin",
        "Insulin",
        "HEPARIN",
        "warfarin",
        "metformin",
        "NSAIDs",
        "statins",
        "5-fluorouracil",
        "dabigatran-treated",
        "aspirin/clopidogrel",
        "BMS-986165",
        "MK-3475",
        "GSK1120212",
        "CP-690,550",
    ],
)
def test_names_of_drugs(word: str) -> None:
    assert is_drug(word)


@pytest.mark.parametrize(
    "word",
    [
        "mortality",
        "concept",
        "cholesterol",
        "sulfate",
        "cephalic",
        "comparison",
        "hormone",
        "donate",
        "patients",
        "control",
        "worsens",
        "precipitants",
        "vir",
        "NCT01234567",
        "ICD-1000",
        "COHORT-2014",
        "CD4",
        "IL-10",
        "SF-36",
        "2014",
        "",
    ],
)
def test_other_words(word: str) -> None:
    assert not is_drug(word)


def test_the_list_is_of_single_words_in_lower_case() -> None:
    assert len(names()) >= 300
    assert all(name == name.lower() and len(name) > 2 for name in names())


@given(st.text(max_size=40))
def test_any_text_is_judged(word: str) -> None:
    assert is_drug(word) in (True, False)


@given(
    st.sampled_from(sorted(filter(str.isalpha, names()))),
    st.sampled_from(["{}", "non-{}", "{}-treated", "{}/placebo"]),
)
def test_a_listed_name_is_known_in_compounds(name: str, form: str) -> None:
    assert is_drug(form.format(name))


def test_a_phrase_with_a_drug_is_protected_and_those_beside_it_are_not() -> None:
    text = "In older adults the use of warfarin with close follow and care was common."
    found = segment(text, split(text))
    last = [*found.phrases[1:], len(found.starts)]
    kept = [
        text[found.starts[first] : found.ends[end - 1]]
        for first, end, protected in zip(found.phrases, last, found.protected, strict=True)
        if protected
    ]
    assert kept == ["of warfarin"]
