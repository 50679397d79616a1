from __future__ import annotations

import re

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from posology.text.quoting.edges import drops_negation
from posology.text.sentences import split
from strategies.compression.wording.cues import Cue, cue
from strategies.compression.wording.phrases import MOST_WORDS, Segments, segment
from tests.support.growth import MOST, growth

#: as abstracts write them; each must stay whole
HELD = (
    "5 mg/kg twice daily",
    "500 mg three times a day",
    "10 mg every 8 hours",
    "2.5 mg per kilogram",
    "p < 0.05",
    "(P<0.001)",
    "p = .03",
    "P value of 0.04",
    "12.5 %",
    "95% CI 1.2 to 3.4",
    "95% CI, 1.2-3.4",
    "odds ratio 1.53",
    "OR, 0.80",
    "1.5 ± 0.3 mmol/L",
    "36 +/- 16.5 months",
    "50 000 patients",
    "less than 10 mg",
    "at least 3 weeks",
    "up to 40 mg",
    "below 120 mmHg",
    "5 to 10 mg",
    "5 - 10 mg",
    "37 mg/m2 to 98 mg/m2",
    "95 to 114 mm Hg",
    "300 mg a day",
    "40% (95% confidence interval 12-82%)",
    "5, 10 and 20 mg",
    "12 of 45",
    "two-fold increase",
    "three months",
    "12 (24%)",
    "≥ 65 years",
    "did not reduce mortality",
    "was not significantly associated",
    "no adverse events",
    "without serious side effects",
    "no evidence that aspirin",
    "cannot be excluded",
    "didn't improve",
    "is unclear whether",
)
FILLER = st.sampled_from(
    re.findall(
        r"\S+",
        "the of patients with aspirin and in treated stroke, was were mortality; (placebo) although "
        "reduced group which improved - risk however, that severe",
    )
)
BESIDE = st.lists(FILLER, max_size=8).map(" ".join)


def phrases(text: str) -> list[str]:
    found = segment(text, split(text))
    last = [*found.phrases[1:], len(found.starts)]
    return [
        text[found.starts[first] : found.ends[end - 1]]
        for first, end in zip(found.phrases, last, strict=True)
    ]


def clauses(text: str) -> list[str]:
    found = segment(text, split(text))
    joined: dict[int, list[str]] = {}
    for clause, phrase in zip(found.clauses, phrases(text), strict=True):
        joined.setdefault(clause, []).append(phrase)
    return [" ".join(parts) for parts in joined.values()]


def check(text: str, found: Segments) -> None:
    words = [m.span() for s in split(text) for m in re.finditer(r"\S+", text[s.start : s.end])]
    assert len(found.starts) == len(found.ends) >= len(words)
    assert "".join(text[a:b] for a, b in zip(found.starts, found.ends, strict=True)) == "".join(
        text.split()
    )
    assert len(found.phrases) == len(found.clauses) == len(found.protected)
    assert found.phrases == sorted(set(found.phrases))
    assert found.phrases[:1] == [0] * bool(found.starts)
    assert found.clauses == sorted(found.clauses)
    begins = {0, *(b for a, b in zip(found.clauses, found.clauses[1:], strict=False) if a != b)}
    assert begins == set(range(len(begins)))
    # no phrase and no clause crosses a sentence
    assert set(found.sentences) <= set(found.phrases)
    for first in found.sentences[1:]:
        at = found.phrases.index(first)
        assert found.clauses[at - 1] < found.clauses[at]
    last = [*found.phrases[1:], len(found.starts)] if found.phrases else []
    assert all(
        0 < end - first <= MOST_WORDS for first, end in zip(found.phrases, last, strict=True)
    )


@given(
    st.text()
    | st.text("abc 0.5%<,;:()-–\n\u2009", max_size=120)
    | st.lists(FILLER | st.sampled_from(HELD), max_size=40).map(" ".join)
)
@example("not " * 500)
@example("x" * 2_500 + " not" + " " * 70_000 + "y")
@example("1 000 " * 300)
def test_phrases_hold_every_word_once_and_cross_no_sentence(text: str) -> None:
    check(text, segment(text, split(text)))


@given(BESIDE, st.sampled_from(HELD), BESIDE)
def test_numbers_keep_their_units_and_negations_what_they_deny(
    before: str, held: str, after: str
) -> None:
    text = f"We found {before} {held} {after} there"
    found = segment(text, split(text))
    start = len(f"We found {before} ")
    first = next(i for i, end in enumerate(found.ends) if end > start)
    last = max(i for i, begin in enumerate(found.starts) if begin < start + len(held))
    of = [max(j for j, begin in enumerate(found.phrases) if begin <= i) for i in (first, last)]
    assert of[0] == of[1], phrases(text)
    assert found.protected[of[0]]


@given(st.lists(FILLER | st.sampled_from(HELD), max_size=30).map(" ".join))
def test_no_clause_begins_where_a_negation_would_be_dropped(text: str) -> None:
    found = segment(text, split(text))
    for sentence in split(text):
        own = sentence.of(text)
        for j in range(1, len(found.phrases)):
            at = found.starts[found.phrases[j]]
            if found.clauses[j] != found.clauses[j - 1] and sentence.start < at < sentence.end:
                assert not drops_negation(own, at - sentence.start, len(own)), own[at:]


def test_a_sentence_is_read_as_function_words_and_the_content_after_them() -> None:
    assert phrases("The risk of stroke was reduced in older adults.") == [
        "The risk",
        "of stroke",
        "was reduced",
        "in older adults.",
    ]


def test_clauses_end_at_punctuation_and_before_conjunctions() -> None:
    text = "Aspirin (a drug) lowered the risk, whereas heparin – as expected – raised it because of bleeding."
    assert clauses(text) == [
        "Aspirin",
        "(a drug)",
        "lowered the risk,",
        "whereas heparin",
        "–",
        "as expected",
        "–",
        "raised it",
        "because of bleeding.",
    ]


@pytest.mark.parametrize(
    "text",
    [
        "Aspirin did not, however, reduce mortality.",
        "There was no evidence that aspirin, in adults, reduces mortality.",
        "We gave 5, 10, and 20 mg.",
        "The odds ratio, 1.5, fell.",
    ],
)
def test_a_clause_does_not_end_where_the_next_would_say_something_else(text: str) -> None:
    tail = text.rsplit(", ", maxsplit=1)[-1]
    assert tail not in clauses(text) or "fell" in tail


@pytest.mark.parametrize(
    ("word", "protected"),
    [
        ("2-year", True),
        ("12-week", True),
        ("50mg", True),
        ("five", True),
        ("two-fold", True),
        ("threefold", True),
        ("n=45", True),
        ("n't", True),
        (">", True),
        ("IL-6", False),
        ("5-HT", False),
        ("5-fluorouracil", False),
        ("17beta-estradiol", False),
        ("double-blind", False),
        ("p53", False),
        ("scaffold", False),
        ("notable", False),
    ],
)
def test_names_with_digits_are_no_numbers(word: str, *, protected: bool) -> None:
    deciding = Cue.NUMBER | Cue.NEGATION | Cue.SYMBOL
    assert bool(cue(word) & deciding) == protected


@pytest.mark.parametrize(
    ("text", "together"),
    [
        (
            "Metoprolol at 25 mg and digoxin at 0.125 mg daily were given.",
            ("Metoprolol", "at 25 mg"),
        ),
        ("Metoprolol at 25 mg and digoxin at 0.125 mg daily were given.", ("digoxin", "0.125 mg")),
        ("The maximum daily dose is 4 g in adults and 60 mg/kg in children.", ("4 g", "adults")),
        (
            "The maximum daily dose is 4 g in adults and 60 mg/kg in children.",
            ("60 mg/kg", "children"),
        ),
        ("Ibuprofen did not reduce swelling of the joints.", ("Ibuprofen", "not reduce")),
    ],
)
def test_a_dose_is_shown_with_what_it_is_a_dose_of(text: str, together: tuple[str, str]) -> None:
    found = segment(text, split(text))
    for words in together:
        (place,) = (i for i, phrase in enumerate(phrases(text)) if words in phrase)
        assert found.protected[place]


def test_not_only_is_no_negation() -> None:
    text = "Not only exercise helped."
    assert not any(segment(text, split(text)).protected)


def test_a_text_takes_time_in_proportion() -> None:
    sentence = (
        "Among 120 patients, aspirin (81 mg daily) did not reduce the risk of stroke in adults. "
    )

    def work(sentences: int) -> None:
        text = sentence * sentences
        segment(text, split(text))

    assert growth(work, 15) < MOST
