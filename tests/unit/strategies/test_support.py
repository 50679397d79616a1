"""Every sentence of an answer is checked beside its quotes: by rules, and by a judge where there is one."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from posology.testing import ScriptedJudge
from posology.text.sentences import split
from posology.types import (
    Answer,
    Backing,
    Citation,
    Difference,
    Excerpt,
    Passage,
    Refusal,
    Rule,
    Statement,
    Support,
    SupportMode,
)
from prompts.answer import Said
from strategies.citing import state
from strategies.support.check import applied, cases_of, checked, statements
from strategies.support.rules import failures, opposes, other_subject

TRIAL = Passage(
    id="n:1",
    title="Aspirin in women after stroke",
    text=(
        "Stroke is common. Aspirin 300 mg lowered mortality by 20% in the first week. It did not prevent pneumonia. "
        "Costs were not measured."
    ),
)
EXCERPTS = {TRIAL.id: Excerpt(passage=TRIAL, sentences=split(TRIAL.text))}
QUESTION = "Does aspirin help after stroke?"


def said(*told: tuple[str, list[str]]) -> Answer:
    """Return the answer to a reply that names sentences."""
    stated = state(
        [Said(text=text, sentences=names) for text, names in told], tuple(EXCERPTS.values())
    )
    return Answer(
        text=stated.text,
        choice=None,
        citations=stated.verified.citations,
        dropped_quotes=len(stated.verified.dropped),
        strategy="direct",
        statements=stated.statements,
    )


def supported(answer: Answer, judge: ScriptedJudge | None = None) -> Support:
    found = checked(answer, EXCERPTS, QUESTION, lambda: judge).support
    assert found is not None
    return found


def judged(answer: Answer, supports: float = 0.9, contradicts: float = 0.0) -> Support:
    return supported(answer, ScriptedJudge(lambda *_: (supports, contradicts)))


LOWERED = ("Mortality fell with aspirin.", ["1.2"])


@pytest.mark.parametrize(
    ("supports", "contradicts", "backing", "disagrees"),
    [
        (0.9, 0.05, Backing.SUPPORTED, False),
        (0.4, 0.1, Backing.UNCLEAR, False),
        # no rule objects, and the packaged judge alone is not believed
        (0.1, 0.2, Backing.UNCLEAR, False),
        (0.1, 0.9, Backing.UNCLEAR, True),
    ],
)
def test_the_judge_decides_where_no_rule_objects(
    supports: float, contradicts: float, backing: Backing, disagrees: bool
) -> None:
    (one,) = judged(said(LOWERED), supports, contradicts).sentences
    assert (one.backing, one.disagrees, one.citations, one.failed) == (backing, disagrees, (0,), ())
    assert one.probability == pytest.approx(supports, abs=1e-3)


@pytest.mark.parametrize(
    ("supports", "contradicts", "backing", "disagrees"),
    [
        (0.95, 0.05, Backing.UNCLEAR, True),
        (0.4, 0.1, Backing.UNSUPPORTED, False),
        (0.01, 0.99, Backing.CONTRADICTED, False),
    ],
)
def test_a_sentence_with_another_number_or_direction_is_never_called_supported(
    supports: float, contradicts: float, backing: Backing, disagrees: bool
) -> None:
    answer = said(
        ("Aspirin raised mortality by 20%.", ["1.2"]), ("Aspirin cut mortality by 50%.", ["1.2"])
    )
    raised, cut = judged(answer, supports, contradicts).sentences
    assert (raised.backing, raised.disagrees) == (backing, disagrees)
    assert raised.failed == (Rule.DIRECTION,)
    # the guard refused the sentence that it names, which is judged all the same
    assert (cut.backing, cut.disagrees) == (backing, disagrees)
    assert (cut.failed, cut.citations) == ((Rule.NUMBER,), ())


@pytest.mark.parametrize(
    ("supports", "backing", "disagrees"),
    [(0.95, Backing.SUPPORTED, True), (0.4, Backing.UNCLEAR, False)],
)
def test_other_words_than_the_quotes_are_left_to_the_judge(
    supports: float, backing: Backing, disagrees: bool
) -> None:
    citation = Citation(passage_id="n:1", start=18, end=75, quote=TRIAL.text[18:75])
    answer = Answer(
        text="It saves lives.",
        choice=None,
        citations=(citation,),
        dropped_quotes=0,
        strategy="direct",
    )
    (one,) = judged(answer, supports).sentences
    assert one.failed == (Rule.SUBJECT,)
    assert (one.backing, one.disagrees) == (backing, disagrees)


def test_without_a_judge_rules_decide_and_the_record_says_so() -> None:
    answer = said(LOWERED, ("Aspirin raised mortality by 20%.", ["1.2"]), ("It is cheap.", []))
    found = supported(answer)
    assert found.judge is None
    assert [one.backing for one in found.sentences] == [
        Backing.SUPPORTED,
        Backing.UNSUPPORTED,
        Backing.UNSUPPORTED,
    ]
    assert {one.probability for one in found.sentences} == {None}
    assert found.unsupported == 2


def test_a_sentence_that_repeats_its_quote_is_not_judged() -> None:
    judge = ScriptedJudge(lambda *_: (0.0, 0.0))
    found = supported(said(("It did not prevent pneumonia.", ["1.3"]), LOWERED), judge)
    assert [one.backing for one in found.sentences] == [Backing.SUPPORTED, Backing.UNCLEAR]
    assert found.judge == "scripted"
    assert [claim for claim, _ in judge.pairs] == ["Mortality fell with aspirin."]


def test_no_judge_is_loaded_where_there_is_nothing_to_judge() -> None:
    def load() -> ScriptedJudge:
        raise AssertionError

    answer = said(("It did not prevent pneumonia.", ["1.3"]), ("It is cheap.", []))
    found = checked(answer, EXCERPTS, QUESTION, load).support
    assert found is not None
    assert found.judge is None


def test_a_sentence_is_judged_beside_each_quote_and_beside_all() -> None:
    """By the packaged judge; a language model reads all of them, with what says what "it" is."""
    judge = ScriptedJudge(lambda *_: (0.9, 0.0))
    answer = said(("Aspirin lowered mortality and did not prevent pneumonia.", ["1.2", "1.3"]))
    supported(answer, judge)
    first, second, third = (one.of(TRIAL.text).strip() for one in split(TRIAL.text)[:3])
    assert [text for _, text in judge.pairs] == [second, third, f"{second} {third}"]
    cases = cases_of(answer, EXCERPTS, QUESTION)
    assert cases is not None
    assert [one.premise for one in cases] == [f"{TRIAL.title}. {first} {second} {third}"]


@pytest.mark.parametrize(
    ("apart", "together", "disagrees"),
    [
        # one quote says it, whatever the others say
        ((0.95, 0.0), (0.1, 0.8), False),
        # what one quote denies, the others may put right
        ((0.0, 0.99), (0.3, 0.3), False),
        ((0.0, 0.3), (0.0, 0.99), True),
    ],
)
def test_one_quote_supports_and_all_together_contradict(
    apart: tuple[float, float], together: tuple[float, float], disagrees: bool
) -> None:
    judge = ScriptedJudge(
        lambda _, text: together if "20%" in text and "pneumonia" in text else apart
    )
    answer = said(("Aspirin lowered mortality and did not prevent pneumonia.", ["1.2", "1.3"]))
    assert [one.disagrees for one in supported(answer, judge).sentences] == [disagrees]


def copied(text: str) -> Answer:
    """Return an answer of a reply that copies quotes, without statements."""
    other = Passage(id="n:2", text="Warfarin raised the risk of bleeding.")
    EXCERPTS[other.id] = Excerpt(passage=other, sentences=split(other.text))
    return Answer(
        text=text,
        choice=None,
        citations=(
            Citation(passage_id="n:1", start=18, end=75, quote=TRIAL.text[18:75]),
            Citation(passage_id="n:2", start=0, end=len(other.text), quote=other.text),
        ),
        dropped_quotes=0,
        strategy="direct",
    )


def test_behind_a_sentence_of_an_answer_with_copied_quotes_stand_those_of_the_passages_it_names() -> (
    None
):
    text = "Mortality fell [n:1]. So aspirin helps. Bleeding rose [n:2, 2015]. That is all."
    found = statements(copied(text))
    assert [(text[one.start : one.end], one.citations) for one in found] == [
        ("Mortality fell [n:1].", (0,)),
        ("So aspirin helps.", (1,)),
        ("Bleeding rose [n:2, 2015].", (1,)),
        ("That is all.", (0, 1)),
    ]


@pytest.mark.parametrize(
    ("answer", "claim"),
    [
        # a verdict of one word with its question, and a sentence without the ids of its passages
        (said(("Yes.", ["1.2"])), "Does aspirin help after stroke? Yes."),
        (copied("Mortality fell with aspirin [n:1]."), "Mortality fell with aspirin."),
    ],
)
def test_the_judge_reads_what_a_sentence_says(answer: Answer, claim: str) -> None:
    judge = ScriptedJudge(lambda *_: (0.9, 0.0))
    supported(answer, judge)
    assert {one for one, _ in judge.pairs} == {claim}


def marked(answer: Answer, mode: SupportMode) -> Answer | Refusal:
    return applied(checked(answer, EXCERPTS, QUESTION, lambda: None), mode)


MIXED = (
    LOWERED,
    ("Aspirin raised mortality.", ["1.2"]),
    ("It did not prevent pneumonia.", ["1.3"]),
)


def test_mark_counts_what_is_not_supported() -> None:
    found = marked(said(*MIXED), "mark")
    assert isinstance(found, Answer)
    assert found.text == said(*MIXED).text
    assert found.notes[-1] == (
        "1 of 3 sentences differs from its quotes or has none; the difference is in brackets."
    )


def test_drop_leaves_out_what_is_not_supported() -> None:
    found = marked(said(*MIXED), "drop")
    assert isinstance(found, Answer)
    assert found.support is not None
    assert found.text == "Mortality fell with aspirin [n:1]. It did not prevent pneumonia [n:1]."
    assert [found.text[one.start : one.end] for one in found.support.sentences] == [
        "Mortality fell with aspirin [n:1].",
        "It did not prevent pneumonia [n:1].",
    ]
    assert (found.support.unsupported, found.support.removed) == (0, 1)
    assert found.notes[-1] == (
        "1 of 3 sentences is left out: it differs from its quotes or has none."
    )
    assert [one.citations for one in found.statements] == [(0,), (1,)]


def test_drop_never_leaves_an_empty_answer() -> None:
    found = marked(said(("Aspirin raised mortality.", ["1.2"])), "drop")
    assert isinstance(found, Refusal)
    assert (
        found.reason == "Every sentence of the model's answer differs from its quotes or has none."
    )


def test_an_answer_in_another_language_is_not_checked() -> None:
    found = checked(
        said(("Die Sterblichkeit wurde durch Aspirin nicht gesenkt und ist hoch.", ["1.2"])),
        EXCERPTS,
        QUESTION,
        lambda: None,
    )
    assert found.support is None
    assert "German" in found.notes[-1]


QUOTE = (
    "Metformin 500 mg increased survival of women with type 2 diabetes, and pain was not reduced."
)
AROUND = f"Metformin and survival\n{QUOTE}"


@pytest.mark.parametrize(
    ("claim", "failed"),
    [
        ("Metformin increased survival.", ()),
        ("Metformin 500 mg enhanced the survival of women.", ()),
        # what seldom is a difference
        ("Metformin, about 490 mg, increased survival in one of the groups.", ()),
        ("Metformin 850 mg increased survival.", (Rule.NUMBER,)),
        ("Metformin 500 g increased survival.", (Rule.NUMBER,)),
        ("Survival increased with 500 mg of glipizide.", (Rule.DRUG,)),
        ("Metformin did not increase survival of women with diabetes.", (Rule.NEGATION,)),
        ("Metformin decreased survival.", (Rule.DIRECTION,)),
        ("Metformin increased survival of men.", (Rule.POPULATION,)),
        ("Metformin increased survival in type 1 diabetes.", (Rule.POPULATION,)),
        ("Helmets protect elephants.", (Rule.SUBJECT,)),
        # the quotes name no species, so that the rule has nothing to compare
        ("Metformin increased survival of mice.", ()),
    ],
)
def test_rules(claim: str, failed: tuple[Rule, ...]) -> None:
    assert tuple(one.rule for one in failures(claim, [QUOTE], AROUND)) == failed


@pytest.mark.parametrize(
    ("claim", "quote", "failed"),
    [
        ("Weight fell by 5.3 kg.", "The mean change in weight was –5.3 kg.", ()),
        ("A reduction in weight of 5.3 kg.", "The mean change in weight was –5.3 kg.", ()),
        ("Weight was 5.3 kg lower.", "The change in weight was −5.3 kg.", ()),
        ("Weight rose by 5.3 kg.", "The change in weight was –5.3 kg.", (Rule.NUMBER,)),
        ("Weight fell by 5.4 kg.", "The change in weight was –5.3 kg.", (Rule.NUMBER,)),
        ("Grade 3-4 events were seen in 12 %.", "Events of grade 3–4 were seen in 12 %.", ()),
        ("It was given once daily.", "It was given once weekly.", (Rule.NUMBER,)),
        ("It was given at 5 mg once daily.", "It was given at 5 mg daily for a month.", ()),
        ("It was given twice daily.", "It was given every 12 hours.", ()),
        ("It was given at 5 mg once daily.", "It was given at 5 mg twice daily.", (Rule.NUMBER,)),
        ("It was given at 5 mg daily.", "It was given at 5 mg orally t.i.d.", (Rule.NUMBER,)),
        ("It was given at 5 mg daily.", "It was given as 5 mg of salt once weekly.", (Rule.NUMBER,)),
        ("It was given at 5 mg daily.", "It was given at 5 mg every other day.", (Rule.NUMBER,)),
        ("It was given at 5 mg weekly.", "It was given at 5 mg every 3 weeks.", (Rule.NUMBER,)),
        ("It was given at 5 mg weekly.", "It was given at 5 mg every 7 days.", ()),
        ("It was given at 5 mg daily.", "5 mg was given, and they were seen weekly.", ()),
        ("It was given at 5 mg orally daily.", "It was given at 5 mg orally weekly.", (Rule.NUMBER,)),
        ("It was given at 5 mg every other day.", "It was 5 mg every other week.", (Rule.NUMBER,)),
        ("It was given at 5 mg every other week.", "It was given at 5 mg every 2 weeks.", ()),
        ("It was given at 5 mg i.v. every 6 hours.", "It was infused, 5 mg every 6 h.", ()),
        ("It lasted six weeks.", "It lasted six months.", (Rule.NUMBER,)),
        ("It lasted two weeks.", "It lasted 14 days.", ()),
        ("Salt lowered the blood pressure by 5 mm Hg.", "The change was −5 mm Hg.", ()),
        ("It fell by 14% with salt and 2% with sand.", "The change was −14% and −2%.", ()),
        ("It fell by 14% and rose by 2% with sand.", "The change was −14% and −2%.", (Rule.NUMBER,)),
        ("In reduced function the change was 14 m.", "The change was −14 m.", (Rule.NUMBER,)),
        ("HER2-low tumours shrank.", "HER2-negative tumours shrank.", (Rule.NAME,)),
        ("It was given at 60 mg twice yearly.", "It was given at 60 mg every 6 months.", ()),
        ("It was given at 60 mg every second day.", "It was 60 mg on alternate days.", ()),
        ("Salt at 5 mg reduced falls each year.", "Salt at 5 mg daily reduced falls.", ()),
        ("Surgery precludes salt.", "Surgery is a contraindication to salt.", ()),
        ("Acute failure was seen.", "Chronic failure was seen.", ()),
        ("It rose by 14% with salt and 2% with sand.", "The change was −14% and −2%.", (Rule.NUMBER,)),
        ("The loss was significant.", "The loss was non significant.", (Rule.NEGATION,)),
        ("Salt is indicated.", "Salt is contraindicated.", (Rule.NEGATION,)),
        ("Salt must not be used.", "Salt is contraindicated.", ()),
        ("The HER2-positive women lived.", "The women whose HER2 was positive lived.", ()),
        ("It caused hypercalcaemia.", "It caused hypocalcemia.", (Rule.DIRECTION,)),
        ("Strains were sensitive to salt.", "Strains were resistant to salt.", (Rule.DIRECTION,)),
        ("The loss was significant.", "The loss was non-significant.", (Rule.NEGATION,)),
        ("The loss was not significant.", "The loss was insignificant.", ()),
        ("The loss was not significant.", "The loss was greater (P = 0.195).", ()),
        ("The loss was not significant.", "The loss was greater (P = 0.015).", (Rule.NEGATION,)),
        ("Non-smokers lived longer.", "Non-smokers had longer lives: non-smokers lived.", ()),
        ("Salt helps in non-Hodgkin lymphoma.", "Non-Hodgkin lymphoma is helped by salt.", ()),
        ("Salt was not effective for pain.", "Salt was not found to be effective for pain.", ()),
        ("Salt was not effective for pain.", "Salt did not improve pain.", ()),
        ("It reduced not only stroke but death.", "It reduced both stroke and death.", ()),
        ("IL-1β was raised.", "IL-1beta was raised.", ()),
        ("IL-1β was raised.", "IL-1alpha was raised.", (Rule.NAME,)),
        ("Vitamin B12 was low.", "Vitamin B(12) was low.", ()),
        ("Salt was given orally.", "Salt was given intravenously.", (Rule.DIRECTION,)),
        ("It was unsafe in pregnancy.", "It was dangerous in pregnancy.", ()),
        ("Salt was not effective.", "Salt proved ineffective.", ()),
        ("Salt was ineffective.", "Salt was not effective.", ()),
        ("Salt was effective.", "Salt was ineffective.", (Rule.NEGATION, Rule.DIRECTION)),
        ("Salt was not effective.", "Salt was effective.", (Rule.NEGATION, Rule.DIRECTION)),
        ("Salt is unsafe.", "Salt is not safe.", ()),
        ("Salt is not safe.", "Salt is unsafe.", ()),
        ("It was not inferior to rest.", "It was non-inferior to rest.", ()),
        ("Salt was shown to be non-inferior.", "Salt was not shown to be non-inferior.", (Rule.NEGATION,)),
        ("It helped elderly people.", "It helped older adults.", ()),
        ("It helped adults.", "It helped the elderly.", ()),
        ("It helped preterm infants.", "It helped preterm neonates.", ()),
        ("It helped newborns.", "It helped children.", (Rule.POPULATION,)),
        ("It helped elderly people.", "It helped adults.", (Rule.POPULATION,)),
    ],
)  # fmt: skip
def test_what_is_written_otherwise_is_no_difference(
    claim: str, quote: str, failed: tuple[Rule, ...]
) -> None:
    found = (one.rule for one in failures(claim, [quote], quote))
    # so short sentences share few words
    assert tuple(rule for rule in found if rule is not Rule.SUBJECT) == failed
    assert (Rule.NUMBER in opposes(claim, quote)) <= (Rule.NUMBER in failed)


@pytest.mark.parametrize(
    ("claim", "quote", "words"),
    [
        (
            "Mortality fell by 21 %.",
            "Mortality fell by 12 %.",
            "the quote says 12 %, the sentence 21 %",
        ),
        ("Mortality fell by 21 %.", "Mortality fell.", "no quote says 21 %"),
        (
            "Adults survived with it.",
            "Children survived with it.",
            "the quote is on children, the sentence on adults",
        ),
        (
            "It reduced survival.",
            "It increased survival.",
            "the quote says increased, the sentence reduced",
        ),
        (
            "It increased survival.",
            "It did not increase survival.",
            "the quote says “not”, the sentence does not",
        ),
        (
            "It did not increase survival.",
            "It increased survival.",
            "the sentence says “not”, the quote does not",
        ),
        (
            "Warfarin raised survival.",
            "Aspirin raised survival.",
            "the quote names aspirin, the sentence warfarin",
        ),
        (
            "It helps in type 1 diabetes.",
            "It helps in type 2 diabetes.",
            "the quote is on type 2, the sentence on type 1",
        ),
        (
            "Lucatumumab is a polyclonal antibody.",
            "Lucatumumab, a monoclonal antibody, was given.",
            "the quote says monoclonal, the sentence polyclonal",
        ),
        ("Groups did not differ in survival.", "Survival of the groups was similar.", None),
        ("Paracetamol eased pain.", "Acetaminophen eased pain.", None),
    ],
)
def test_what_a_rule_finds_is_said_in_words_with_both_sides(
    claim: str, quote: str, words: str | None
) -> None:
    found = [str(one) for one in failures(claim, [quote], quote) if one.rule.objects]
    assert found == ([words] if words else [])


METFORMIN = "Metformin lowers glucose. It is contraindicated below 30 mL/min."


@pytest.mark.parametrize(
    ("claim", "question", "words"),
    [
        (
            "It is contraindicated below 30 mL/min.",
            "When is methotrexate contraindicated?",
            "the quote names metformin, the sentence “it”, which is methotrexate in the question",
        ),
        ("It is contraindicated below 30 mL/min.", "When is metformin contraindicated?", None),
        ("It is contraindicated below 30 mL/min.", "When is it contraindicated?", None),
        ("Renal failure forbids it.", "When is methotrexate contraindicated?", None),
    ],
)
def test_a_pronoun_must_be_the_drug_of_the_question(
    claim: str, question: str, words: str | None
) -> None:
    quote = METFORMIN.split(". ")[1]
    found = [str(one) for one in other_subject(claim, [quote], METFORMIN, question)]
    assert found == ([words] if words else [])


def test_two_negations_are_not_said_to_be_one() -> None:
    both = Difference(rule=Rule.NEGATION, said="not", quoted="no")
    assert str(both) == "the sentence and the quote negate something else"


def test_a_name_that_no_passage_has_is_found_and_no_judge_outvotes_it() -> None:
    answer = said(("Wang et al. (2013) found that aspirin lowered mortality by 20%.", ["1.2"]))
    (one,) = judged(answer, 0.99).sentences
    # the year of a citation is no figure: the sentence that it names stands
    assert one.citations == (0,)
    assert one.backing is Backing.UNSUPPORTED
    assert list(map(str, one.differences)) == ["no shown passage names Wang et al. (2013)"]


def test_sentences_that_were_refused_are_recorded() -> None:
    answer = said(("Aspirin lowered mortality by 20%.", ["1.2", "1.4"]))
    (one,) = judged(answer).sentences
    assert one.backing is Backing.SUPPORTED
    assert [quote.quote for quote in one.refused] == ["Costs were not measured."]


def test_a_population_may_stand_anywhere_in_the_passage_if_the_quote_names_none() -> None:
    quotes = ["Survival was longer with metformin."]
    around = f"A trial in children\n{quotes[0]}"
    assert failures("Metformin prolonged the survival of children.", quotes, around) == ()
    (found,) = failures("Metformin prolonged the survival of adults.", quotes, around)
    assert (found.rule, found.said, found.quoted) == (Rule.POPULATION, "adults", "children")


@given(st.text(max_size=120), st.sampled_from([[], ["1.1"], ["1.2", "1.3"], ["9.9"]]))
def test_offsets_of_statements_are_those_of_the_text(text: str, names: list[str]) -> None:
    answer = said((text, names), ("Costs were not measured.", ["1.4"]), (text, names))
    assert all(0 <= one.start < one.end <= len(answer.text) for one in answer.statements)
    assert " ".join(answer.text[one.start : one.end] for one in answer.statements) == answer.text
    assert all(isinstance(one, Statement) for one in statements(answer))
