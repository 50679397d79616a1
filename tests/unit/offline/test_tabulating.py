"""Fields of a table by the offline reader: by wording, by question, or not at all."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

from posology.llm.offline.choice import PROBABILITY, Said, Scores
from posology.llm.offline.scores import Scored
from posology.llm.offline.tabulating import tabulated
from posology.types import Excerpt, Passage, Sentence
from posology.types.tables import Document, Field, FieldKind
from strategies.tables.appraisal import APPRAISAL
from strategies.tables.presets import PICO, criteria
from strategies.tables.reading import Reading, parts
from tests.support.growth import MOST, growth

ABSTRACT = (
    "BACKGROUND: Patients with gout often receive allopurinol. "
    "METHODS: We randomised 84 adults with gout to febuxostat 80 mg or placebo. "
    "The primary outcome was serum urate at week 4. "
    "RESULTS: Serum urate was lower with febuxostat (difference 1.2 mg/dl, 95% CI 0.8 to 1.6). "
    "Funded by the National Institute of Gout."
)


def document(text: str) -> Document:
    return Document.of([Passage(id="p", text=text)])


def never(question: str, excerpts: Sequence[Excerpt]) -> Scores:
    raise AssertionError(question)


def filled(text: str, fields: Sequence[Field], score: Any = never) -> dict[str, Any]:
    (call,) = Reading(fields=tuple(fields), model="offline:extractive").calls(document(text))
    return {one["field"]: one for one in tabulated(call, score)["cells"]}


def test_wording_finds_pico_in_whole_sentences() -> None:
    found = filled(ABSTRACT, PICO)
    allocated = "METHODS: We randomised 84 adults with gout to febuxostat 80 mg or placebo."
    assert {name: one["value"] for name, one in found.items()} == {
        "population": allocated,
        "intervention": allocated,
        "comparator": allocated,
        "outcome": "The primary outcome was serum urate at week 4.",
        "effect": None,
        "design": "randomised trial",
        "n": "84",
        "funding": "Funded by the National Institute of Gout.",
    }
    assert found["n"]["sentences"] == ["1.2"]
    assert {one["confidence"] for one in found.values()} == {"low"}


@pytest.mark.parametrize(("field", "sentence"), [
    ("population", "Forty ulcer patients with proven H. pylori infection were enrolled and treated for 2.5 weeks."),
    ("population", "Participants were men and women, aged 40-70 years, with hypertension."),
    ("population", "Zinc was compared with placebo in 131 patients with a cold."),
    ("intervention", "Patients were assigned to receive either zinc (5.5 mg, and 120 mg of C) or placebo twice daily."),
    ("comparator", "The effects of zinc (Z, CAS 1-2) were compared with those of a tablet with C, and zinc was compared with E. coli vaccine."),
])  # fmt: skip
def test_a_cell_holds_the_whole_sentence(field: str, sentence: str) -> None:
    assert filled(sentence, PICO)[field]["value"] == sentence


@pytest.mark.parametrize(("field", "sentence"), [
    ("population", "Optimal regimens for patients with secondary failure are controversial."),
    ("population", "Current therapy helps many patients with chronic pain."),
    ("population", "Finally, we assessed vigilance in healthy volunteers."),
    ("intervention", "Sedation is regarded as a common side-effect of most drugs."),
    ("intervention", "Patients treated with zinc were significantly more likely to recover (P < .05)."),
    ("intervention", "Patients were randomised to one of two groups."),
    ("comparator", "Severity decreased in 86% of attacks compared to 25% in the customary group."),
    ("comparator", "Heart rate was lower in all groups compared to placebo (p < 0.05)."),
    ("outcome", "The primary end point was reached by 23% of patients."),
    ("effect", "Weight gain was significantly greater with insulin (P < 0.05)."),
    ("design", "Several randomised studies have shown this design to work in a trial."),
    ("n", "Of these, 117 patients were included in the per protocol analysis."),
    ("n", "Several hundred patients were enrolled."),
    ("n", "Forty patients were randomized to zinc and 26 patients were randomized to placebo."),
    ("n", "Eleven patients with colitis (5 who responded to the drugs, which were given by vein, and 6 who did not) and ten subjects were studied."),
    ("funding", "This hypothesis is supported by the work of others."),
])  # fmt: skip
def test_what_is_beside_the_point_fills_no_cell(field: str, sentence: str) -> None:
    assert filled(sentence, PICO)[field]["value"] is None


def test_numbers_that_differ_are_not_chosen_from() -> None:
    two = "We randomised 84 patients. In the second part we randomised 90 patients."
    number = next(one for one in PICO if one.name == "n")
    assert filled(two, [number])["n"]["value"] is None
    same = "We randomised 1,204 patients. Of 1\u2009204 patients, 3 left."
    assert filled(same, [number])["n"]["value"] == "1,204"
    spelt = "Four hundred and seventy-three patients were enrolled."
    assert filled(spelt, [number])["n"]["value"] == "473"


@pytest.mark.parametrize("text", ["It rained.", ABSTRACT])
def test_criteria_need_understanding(text: str) -> None:
    found = filled(text, criteria(["Adults with gout"]))
    assert found["criterion_1"]["value"] is None


def scoring(best: float) -> Any:
    """Scores the second sentence best, with a span of its second word on."""

    def score(question: str, excerpts: Sequence[Excerpt]) -> Scores:
        sentence = excerpts[0].sentences[1]
        one = Scored(excerpt=0, sentence=sentence, score=0.9)
        span = Sentence(start=sentence.start + 3, end=sentence.end - 1)
        return Scores(
            read=[one], weigh=lambda: best, rule=PROBABILITY, said=[Said(sentence=one, span=span)]
        )

    return score


@pytest.mark.parametrize(("best", "value", "confidence"), [
    (0.9, "It lasted 12 weeks.", "high"), (0.6, "It lasted 12 weeks.", "medium"), (0.4, None, "low"),
])  # fmt: skip
def test_other_fields_are_asked(best: float, value: str | None, confidence: str) -> None:
    field = Field(name="weeks", question="How long did it last?")
    found = filled("It began. It lasted 12 weeks.", [field], scoring(best))["weeks"]
    assert (found["value"], found["confidence"]) == (value, confidence)
    assert found["sentences"] == (["1.2"] if value else [])


def test_a_number_or_a_choice_is_taken_from_the_sentence() -> None:
    number = Field(name="n", question="How long?", kind=FieldKind.NUMBER)
    choice = Field(
        name="c", question="How?", kind=FieldKind.CHOICE, choices=("12 weeks", "weeks or months")
    )
    found = filled("It began. It lasted 12 weeks.", [number, choice], scoring(0.9))
    assert (found["n"]["value"], found["c"]["value"]) == ("12", "12 weeks")


def test_excerpts_are_those_of_parts() -> None:
    ((one,),) = parts(document(ABSTRACT), 1_000)
    assert len(one.sentences) == 5


@pytest.mark.slow
@pytest.mark.parametrize(
    "word",
    [
        "primary ",
        "difference ",
        "a-",
        "compared to ",
        "or a-a ",
        "12 patients ",
        "1,",
        "we compared ",
        "randomised ",
        "patients with ",
        "12 a ",
    ],
)
def test_a_hostile_sentence_takes_linear_time(word: str) -> None:
    assert growth(lambda n: filled(word * n, PICO), 2_000) < MOST


def test_an_appraisal_is_filled_in_by_its_wording() -> None:
    text = (
        "Participants were allocated by a computer-generated sequence in sealed opaque envelopes. The trial was double-blind. "
        "We randomised 120 patients. Of these, 104 patients completed the study. Nine patients were lost to follow-up and 7 withdrew. "
        "Analyses were by intention to treat. The primary outcome was better with zinc (risk ratio 0.80, 95% CI 0.70 to 0.91)."
    )
    found = filled(text, APPRAISAL)
    assert (
        found["randomisation"]["value"]
        == found["concealment"]["value"]
        == text.split(" The ", maxsplit=1)[0]
    )
    assert found["blinding"]["value"] == "The trial was double-blind."
    assert (found["n"]["value"], found["n_analysed"]["value"]) == ("120", "104")
    assert "lost to follow-up" in found["attrition"]["value"]
    assert found["analysis"]["value"] == "Analyses were by intention to treat."
    assert "0.70 to 0.91" in found["interval"]["value"]
    assert found["funding"]["value"] is None
    assert growth(lambda n: filled("numbered sealed randomised " * n, APPRAISAL), 2_000) < MOST
