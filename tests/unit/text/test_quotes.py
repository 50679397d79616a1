from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from posology.text import Claimed, DropReason, Span, locate, split, verify
from posology.text.quotes import EQUIVALENT, MIN_TOKENS
from posology.types import QuoteFault
from tests.support.growth import MOST, TIMES, growth

WORDS = st.lists(
    st.sampled_from(
        [
            "dose",
            "of",
            "5",
            "mg",
            "0.5",
            "was",
            "not",
            "given",
            "−3",
            "p",
            "<",
            "mg/kg",
            "daily",
            "10²",
            "50%",
            "Patients",
            "µg",
            "“so”",
            "é",
            "1,5",
            "didn’t",
            "CD4+",
            "end.",
        ]
    ),
    min_size=1,
    max_size=30,
)
SPACES = st.sampled_from([" ", "  ", "\n", "\u00a0", "\u2009"])


def cited(quote: str, text: str) -> str | DropReason:
    found = locate(quote, text)
    return found if isinstance(found, DropReason) else text[found.start : found.end]


def bare(wording: str) -> str:
    """What must be the same in a quote and its source."""
    return " ".join(wording.translate(EQUIVALENT).lower().split()).strip(" .\"'")


@given(st.text(), st.text())
def test_what_is_located_is_in_the_text(quote: str, text: str) -> None:
    found = locate(quote, text)
    if isinstance(found, Span):
        assert 0 <= found.start < found.end <= len(text)
        assert text[found.start : found.end].strip() == text[found.start : found.end]


@given(WORDS, SPACES, st.data())
def test_a_located_quote_differs_from_the_text_by_the_equivalence_alone(
    words: list[str], space: str, data: st.DataObject
) -> None:
    text = space.join(words)
    start = data.draw(st.integers(0, len(text) - 1))
    quote = text[start : data.draw(st.integers(start + 1, len(text)))]
    found = locate(quote.replace(space, " "), text)
    if isinstance(found, Span):
        assert bare(text[found.start : found.end]) == bare(quote)


@given(WORDS)
def test_every_whole_sentence_can_be_quoted(words: list[str]) -> None:
    text = " ".join(words)
    for sentence in split(text):
        found = locate(sentence.of(text), text)
        if any(char.isalnum() for char in sentence.of(text)):
            assert isinstance(found, Span)


@given(st.integers(0, 99_999), st.integers(0, 99_999))
def test_a_number_is_never_cut(number: int, other: int) -> None:
    text = f"the daily dose was {other} mg in all"
    assert isinstance(locate(f"daily dose was {number}", text), Span) == (number == other)
    assert isinstance(locate(f"{number} mg in all", text), Span) == (number == other)


TEXT = "We saw that aspirin reduces   mortality\nin “frail” adults – or so it seems. It worked."


@pytest.mark.parametrize(
    ("quote", "expected"),
    [
        ("aspirin reduces   mortality\nin", "aspirin reduces   mortality\nin"),
        ("Aspirin reduces mortality", "aspirin reduces   mortality"),
        ('"aspirin reduces mortality"', "aspirin reduces   mortality"),
        ("“aspirin reduces mortality.”", "aspirin reduces   mortality"),
        ("“aspirin reduces mortality”.", "aspirin reduces   mortality"),
        ("… aspirin reduces mortality ...", "aspirin reduces   mortality"),
        ("[...] aspirin reduces mortality […]", "aspirin reduces   mortality"),
        ('in "frail" adults - or so', "in “frail” adults – or so"),
        ("or so it seems", "or so it seems"),
        ("so it seems.", "so it seems."),
        ("It worked.", "It worked."),
        ("It worked", "It worked"),
        ("ASPIRIN reduces mortality", DropReason.NOT_FOUND),
        ("aspirin Reduces mortality", DropReason.NOT_FOUND),
        ("aspirin … in “frail” adults", DropReason.NOT_FOUND),
        ("aspirin ... mortality in “frail”", DropReason.NOT_FOUND),
        ("aspirin reduces", DropReason.TOO_SHORT),
        ("spirin reduces mortality", DropReason.CUTS_TOKEN),
        ("aspirin reduces mortal", DropReason.CUTS_TOKEN),
        ("", DropReason.NOT_FOUND),
        ("“”", DropReason.NOT_FOUND),
    ],
)
def test_what_is_forgiven_and_what_is_not(quote: str, expected: str | DropReason) -> None:
    assert cited(quote, TEXT) == expected


@pytest.mark.parametrize(
    ("quote", "text", "reason"),
    [
        ("5 mg was given", "25 mg was given", DropReason.CUTS_TOKEN),
        ("5 mg was given", "0.5 mg was given", DropReason.CUTS_TOKEN),
        ("5 mg was given", ".5 mg was given", DropReason.CUTS_TOKEN),
        ("5 mg was given", "1,5 mg was given", DropReason.CUTS_TOKEN),
        ("5 mg was given", "0·5 mg was given", DropReason.CUTS_TOKEN),
        ("5 mg was given", "2–5 mg was given", DropReason.CUTS_TOKEN),
        ("5 mg was given", "−5 mg was given", DropReason.DROPS_COMPARISON),
        ("5 mg was given", "<= 5 mg was given", DropReason.DROPS_COMPARISON),
        ("5 mg was given", "less than 5 mg was given", DropReason.DROPS_COMPARISON),
        ("0.05 was the limit", "p < 0.05 was the limit", DropReason.DROPS_COMPARISON),
        ("2 was the error", "5 ± 2 was the error", DropReason.DROPS_COMPARISON),
        ("rose by 7.2 mm", "It rose by 7.2 mm Hg at noon", DropReason.CUTS_TOKEN),
        ("was 150 × 10⁹", "It was 150 × 10⁹/L", DropReason.CUTS_TOKEN),
        ("held 10", "It held 10\u2009000 adults", DropReason.CUTS_TOKEN),
        ("000 adults", "It held 10\u00a0000 adults", DropReason.CUTS_TOKEN),
        ("aged 65 years", "They were aged 65 years or older", DropReason.DROPS_COMPARISON),
        ("aged 65", "They were aged 65 and over", DropReason.DROPS_COMPARISON),
        ("patients were cured", "About 61.1% of patients were cured", DropReason.DROPS_COMPARISON),
        ("patients were cured", "Few patients were cured", DropReason.DROPS_COMPARISON),
        ("patients were cured", "10 of the 12 patients were cured", DropReason.DROPS_COMPARISON),
        ("patients were cured", "One in five patients were cured", DropReason.DROPS_COMPARISON),
        ("the dose was 50", "the dose was 50.5 mg", DropReason.CUTS_TOKEN),
        ("the dose was 50.", "the dose was 50.5 mg", DropReason.CUTS_TOKEN),
        ("the dose was 50", "the dose was 50,000 units", DropReason.CUTS_TOKEN),
        ("the dose was 50", "the dose was 50 000 units", DropReason.CUTS_TOKEN),
        ("000 units were given", "50 000 units were given", DropReason.CUTS_TOKEN),
        ("the rate was 50", "the rate was 50 % in all", DropReason.CUTS_TOKEN),
        ("the count was 3", "the count was 3 × 10⁵ cells", DropReason.CUTS_TOKEN),
        ("the count was 10", "the count was 10⁻⁵ M", DropReason.CUTS_TOKEN),
        ("the count was 102", "the count was 10²", DropReason.NOT_FOUND),
        ("the count was 10²", "the count was 102", DropReason.NOT_FOUND),
        ("% of adults died", "50% of adults died", DropReason.CUTS_TOKEN),
        ("a dose of 5 mg", "a dose of 5 mg/kg", DropReason.CUTS_TOKEN),
        ("rise in CD4", "a rise in CD4+ cells", DropReason.CUTS_TOKEN),
        ("significant effect was seen", "a non-significant effect was seen", DropReason.CUTS_TOKEN),
        ("that the drug did", "so that the drug didn’t help", DropReason.CUTS_TOKEN),
        ("was the cafe", "it was the cafe\u0301", DropReason.CUTS_TOKEN),
        ("reduce mortality in adults", "did not reduce mortality in adults", None),
        ("reduce mortality in adults", "didn’t reduce mortality in adults", None),
        ("reduce mortality in adults", "cannot much reduce mortality in adults", None),
        ("reduce mortality in adults", "did not, however, reduce mortality in adults", None),
        ("mortality in adults fell", "never did the mortality in adults fell", None),
        ("reduce mortality in adults", "failed to reduce mortality in adults", None),
    ],
)
def test_meaning_changes_are_refused(quote: str, text: str, reason: DropReason | None) -> None:
    assert locate(quote, text) is (reason or DropReason.DROPS_NEGATION)


def test_a_comparison_behind_a_number_may_be_quoted() -> None:
    text = "They were aged 65 years or older, and took 7.2 mm Hg off."
    assert isinstance(locate("aged 65 years or older", text), Span)
    assert isinstance(locate("took 7.2 mm Hg", text), Span)


@pytest.mark.parametrize(
    ("quote", "text"),
    [
        ("it reduced mortality in adults", "This was not so. Yet it reduced mortality in adults."),
        ("ibuprofen reduced the pain", "Aspirin did not help, ibuprofen reduced the pain."),
        ("ibuprofen reduced the pain", "Aspirin did not help; ibuprofen reduced the pain."),
        ("reduced mortality in adults", "It not only reduced mortality in adults."),
        ("mortality in adults fell", "never did so the mortality in adults fell"),
        ("did not reduce mortality", "It did not reduce mortality."),
        ("−5 mg was given", "Here –5 mg was given."),
        ("5 µg per day", "A dose of 5 μg per day."),
        ("the dose was 50", "Here the dose was 50."),
        ("p < 0.05 was the limit", "So p < 0.05 was the limit."),
        ("50 patients were seen", "In all (n = 9), 50 patients were seen."),
    ],
)
def test_faithful_quotes_are_kept(quote: str, text: str) -> None:
    assert isinstance(locate(quote, text), Span)


@pytest.mark.parametrize(
    ("quote", "text"),
    [
        (
            "vitamin C prevents colds in adults",
            "There was no convincing evidence that vitamin C prevents colds in adults.",
        ),
        (
            "vitamin C prevents colds",
            "There was no evidence, however, that high-dose vitamin C prevents colds.",
        ),
        (
            "vitamin C prevents colds",
            "It has not yet been shown that, in adults, vitamin C prevents colds.",
        ),
        (
            "evidence that vitamin C prevents colds",
            "We did not find any really strong evidence that vitamin C prevents colds.",
        ),
        (
            "small reduction in stroke",
            "We saw no sign of a large or even a small reduction in stroke.",
        ),
        ("showed a reduction in stroke", "Neither of the two trials showed a reduction in stroke."),
        (
            "showed a reduction in stroke",
            "Neither of the two randomised trials showed a reduction in stroke.",
        ),
        (
            "showed a reduction in stroke",
            "None of the trials, small as they were, showed a reduction in stroke.",
        ),
        (
            "statins cause dementia in the elderly",
            "It is unlikely that statins cause dementia in the elderly.",
        ),
        (
            "statins cause dementia",
            "It remains unclear whether in the elderly statins cause dementia.",
        ),
        (
            "screening reduces mortality from cancer",
            "There is insufficient evidence that screening reduces mortality from cancer.",
        ),
        (
            "screening reduces mortality from cancer",
            "We found little evidence that screening reduces mortality from cancer.",
        ),
        (
            "vaccines cause autism in children",
            "Large cohorts have refuted that vaccines cause autism in children.",
        ),
        (
            "the operation improves quality of life",
            "It is inconclusive whether the operation improves quality of life.",
        ),
        ("reduce mortality in adults", "It is unlikely to reduce mortality in adults."),
        ("In this trial aspirin did", "In this trial aspirin did not reduce death."),
        ("The drug reduces mortality in", "The drug reduces mortality in no patient subgroup."),
        ("We saw that the drug", "We saw that the drug doesn’t help."),
        ("effective in children", "The drug was not found to be effective in children."),
        ("superior to placebo", "The drug has not yet been shown to be superior to placebo."),
        ("associated with death", "It did not appear to be associated with death."),
        ("significant rise in deaths", "A non significant rise in deaths was seen."),
        ("reduce deaths in adults", "It did not prevent stroke or reduce deaths in adults."),
        ("should be given to all", "It should be given to all unless they bleed."),
        ("should be given to all", "It should be given to all (except children)."),
    ],
)
def test_what_the_source_denies_is_refused(quote: str, text: str) -> None:
    assert locate(quote, text) is DropReason.DROPS_NEGATION
    assert isinstance(locate(text, text), Span)


@pytest.mark.parametrize(
    ("quote", "text"),
    [
        ("Aspirin did not reduce death.", "In all it failed. Aspirin did not reduce death."),
        ("B reduced mortality in adults", "A did not help, but B reduced mortality in adults."),
        (
            "B reduced mortality in adults",
            "There was no evidence that A helped, but B reduced mortality in adults.",
        ),
        (
            "but B reduced mortality",
            "There was no evidence that A helped, but B reduced mortality in adults.",
        ),
        (
            "B reduced mortality in adults",
            "There was no evidence that A helped; B reduced mortality in adults.",
        ),
        (
            "B reduced mortality in adults",
            "It is unlikely that A helps, although B reduced mortality in adults.",
        ),
        ("the drug reduced mortality", "None of the adults bled, and the drug reduced mortality."),
        (
            "reduced mortality in adults",
            "It was not tolerated in children and reduced mortality in adults.",
        ),
        ("patients on insulin did well", "The non-diabetic patients on insulin did well."),
        ("reduced deaths in adults", "It raised survival or reduced deaths in adults."),
        ("heparin was given to all", "Salt was not given, but sand or heparin was given to all."),
        ("It should be given to all", "It should be given to all. Except in men, it is safe."),
        ("half of them were well", "About half of them were well."),
        (
            "aspirin reduces mortality",
            "The trial, which did not include any children, found that aspirin reduces mortality.",
        ),
        ("aspirin reduces mortality", "They found not only that aspirin reduces mortality."),
        ("Mortality fell in adults", "Mortality fell in adults, not in children."),
        ("Mortality fell in adults.", "Mortality fell in adults. No child died."),
        ("Mortality fell in adults", "Mortality fell in adults\n\nNo child died."),
        ("that the drug did", "We saw that the drug did not only help but heal."),
    ],
)
def test_what_stands_beside_a_denial_is_kept(quote: str, text: str) -> None:
    assert isinstance(locate(quote, text), Span)


def test_a_long_denial_is_judged_in_time() -> None:
    text = "no evidence that it " * 5_000
    assert locate("no such words here", text) is DropReason.NOT_FOUND
    assert isinstance(locate("evidence that it", text), DropReason)


def test_a_later_occurrence_is_taken_if_the_first_is_bad() -> None:
    text = "First 25 mg was given. Then 5 mg was given."
    assert locate("5 mg was given", text) == Span(start=28, end=42)


def test_an_exact_occurrence_is_preferred_to_an_equivalent_one() -> None:
    text = "one  two three, one two three"
    assert locate("one two three", text) == Span(start=16, end=29)


def test_the_shortest_quote() -> None:
    text = "alpha bravo charlie delta echo foxtrot golf"
    words = text.split()
    assert isinstance(locate(" ".join(words[1 : 1 + MIN_TOKENS]), text), Span)
    assert locate(" ".join(words[1:MIN_TOKENS]), text) is DropReason.TOO_SHORT


TEXTS = {
    "a": "Aspirin reduces mortality in adults.",
    "b": "Zinc shortens colds in adults. Zinc does not help children at all.",
    "c": "Some say zinc shortens colds in adults.",
}


def test_citations_carry_the_exact_span_of_their_passage() -> None:
    (citation,) = verify([Claimed(passage_id="a", quote="reduces mortality in")], TEXTS).citations
    assert (citation.passage_id, citation.quote) == ("a", "reduces mortality in")
    assert TEXTS["a"][citation.start : citation.end] == citation.quote


def test_a_quote_of_exactly_one_other_passage_is_reattributed() -> None:
    verified = verify(
        [
            Claimed(passage_id="b", quote="Aspirin reduces mortality"),
            Claimed(passage_id="nowhere", quote="mortality in adults"),
        ],
        TEXTS,
    )
    assert [c.passage_id for c in verified.citations] == ["a", "a"]
    assert verified.dropped == ()
    assert [(one.fault, one.named, one.passages) for one in verified.faulty] == [
        (QuoteFault.MISATTRIBUTED, "b", ("a",)),
        (QuoteFault.MISATTRIBUTED, None, ("a",)),
    ]


def test_a_quote_of_several_other_passages_is_not_reattributed() -> None:
    claims = [
        Claimed(passage_id="a", quote="shortens colds in adults"),
        Claimed(passage_id="nowhere", quote="shortens colds in adults"),
    ]
    verified = verify(claims, TEXTS)
    assert verified.citations == ()
    assert [(d.claimed, d.reason) for d in verified.dropped] == [
        (claims[0], DropReason.NOT_FOUND),
        (claims[1], DropReason.UNKNOWN_PASSAGE),
    ]
    assert [(one.fault, one.passages) for one in verified.faulty] == [
        (QuoteFault.MISATTRIBUTED, ("b", "c"))
    ] * 2


def test_a_quote_of_no_passage_is_invented() -> None:
    claims = [
        Claimed(passage_id="a", quote="Ibuprofen cures everything at once"),
        Claimed(passage_id=None, quote="Ibuprofen cures everything at once"),
        Claimed(passage_id="a", quote="…"),
    ]
    verified = verify(claims, TEXTS)
    assert [(one.fault, one.named, one.passages) for one in verified.faulty] == [
        (QuoteFault.INVENTED, "a", ()),
        (QuoteFault.INVENTED, None, ()),
    ]


def test_a_quote_that_cuts_a_word_elsewhere_is_neither_misattributed_nor_invented() -> None:
    texts = {"a": "Nothing of it.", "b": "It did not reduce pain in adults."}
    verified = verify([Claimed(passage_id="a", quote="reduce pain in adults")], texts)
    assert (verified.citations, verified.faulty) == ((), ())
    assert verified.dropped[0].reason is DropReason.NOT_FOUND


def test_a_quote_without_passage_is_looked_for_in_all() -> None:
    verified = verify(
        [
            Claimed(passage_id=None, quote="shortens colds in adults"),
            Claimed(passage_id=None, quote="help children at all"),
            Claimed(passage_id=None, quote="in no passage at all"),
        ],
        TEXTS,
    )
    assert [c.passage_id for c in verified.citations] == ["b"]
    assert [one.fault for one in verified.faulty] == [QuoteFault.INVENTED]
    assert [d.reason for d in verified.dropped] == [
        DropReason.DROPS_NEGATION,
        DropReason.NOT_FOUND,
    ]


def test_a_refused_quote_is_not_sought_elsewhere() -> None:
    texts = {"a": "It did not reduce pain in adults.", "b": "It may reduce pain in adults."}
    verified = verify([Claimed(passage_id="a", quote="reduce pain in adults")], texts)
    assert verified.citations == ()
    assert verified.dropped[0].reason is DropReason.DROPS_NEGATION


def test_the_same_span_is_cited_once() -> None:
    verified = verify(
        [
            Claimed(passage_id="a", quote="aspirin reduces mortality"),
            Claimed(passage_id="a", quote="“Aspirin  reduces mortality”"),
            Claimed(passage_id="b", quote="Aspirin reduces mortality"),
        ],
        TEXTS,
    )
    assert len(verified.citations) == 1
    assert [one.passages for one in verified.faulty] == [("a",)]


@pytest.mark.parametrize("mark", ["<", "…", "—"])
def test_a_long_run_of_one_mark_is_no_quote_and_takes_time_in_proportion(mark: str) -> None:
    def look(n: int) -> None:
        text = "Aspirin " + mark * 5 * n + " thins the blood."
        assert locate(mark * 2 * n, text) is DropReason.TOO_SHORT
        assert locate(mark * 2 * n, "Aspirin thins the blood.") is DropReason.NOT_FOUND

    assert growth(look, 1_000) < MOST


@pytest.mark.parametrize("quote", ["a", "a a"])
def test_a_text_of_one_word_takes_hardly_longer_if_it_is_longer(quote: str) -> None:
    """Each place costs as much as a short sentence: only so many are looked at."""
    assert growth(lambda n: locate(quote, "a " * n), 2_000) < TIMES / 2


REPEATED = st.lists(st.sampled_from(["a", "b", "a-b", "ab"]), min_size=3, max_size=12)
GAPS = st.sampled_from([" ", "  ", "\n\t", "\u2009"])
DASHES = st.sampled_from("-–−")


def slowly(quote: str, text: str) -> Span | DropReason:
    """The first place of words in words, by trying each."""

    def plain(letters: str) -> list[str]:
        return letters.translate(EQUIVALENT).split()

    spans = [
        Span(start=start, end=end)
        for start in range(len(text))
        for end in range(start + 1, len(text) + 1)
        if text[start:end] == text[start:end].strip() and plain(text[start:end]) == plain(quote)
    ]
    exact = [one for one in spans if text[one.start : one.end] == quote]
    for one in exact + spans:
        if text[: one.start][-1:].strip() == text[one.end :][:1].strip() == "":
            return one
    return DropReason.CUTS_TOKEN if spans else DropReason.NOT_FOUND


@given(REPEATED, REPEATED, st.data())
def test_what_is_found_is_what_a_slow_search_finds(
    words: list[str], others: list[str], data: st.DataObject
) -> None:
    def written(parts: list[str]) -> str:
        spaced = parts[0] + "".join(data.draw(GAPS) + part for part in parts[1:])
        return spaced.replace("-", data.draw(DASHES))

    at = data.draw(st.integers(0, len(words) - 3))
    text = written(words)
    for parts in (others, words[at : at + 3], [*words[at : at + 2], "a"]):
        quote = written(parts)
        assert locate(quote, text) == slowly(quote, text), (quote, text)


@pytest.mark.parametrize(
    ("quote", "text"),
    [("a " * 9_990 + "b", "a "), ("A " + "a " * 9_990 + "b", "a "), ("a-\n" * 6_000 + "b", "a-\n")],
)
def test_a_long_quote_of_a_repeated_word_takes_time_in_proportion_to_the_text(
    quote: str, text: str
) -> None:
    def look(n: int) -> None:
        assert locate(quote, text * n) is DropReason.NOT_FOUND

    # longer than the quote by far
    assert growth(look, 40_000) < MOST


@pytest.mark.parametrize(
    "quote",
    [
        "took 5 \ufffdg of salt",
        "Adults took 5",
        "of salt daily",
        "Adults took 5 \ufffdg of salt daily.",
    ],
)
def test_a_sentence_that_was_not_read_whole_is_never_quoted(quote: str) -> None:
    text = "Falls were counted. Adults took 5 \ufffdg of salt daily. None left the trial."
    assert locate(quote, text) is DropReason.UNREADABLE
    assert isinstance(locate("None left the trial.", text), Span)
    assert isinstance(locate("Falls were counted.", text), Span)


@pytest.mark.parametrize("sign", ["\u200b", "\u202e", "\u2060", "\ufeff", "\u200f\u2066"])
def test_a_quote_lacks_what_models_are_not_shown(sign: str) -> None:
    text = f"Falls were counted.{sign} Adu{sign}lts took{sign} {sign}5 g of salt.{sign} None left."
    found = locate("Adults took 5 g of salt.", text)
    assert isinstance(found, Span)
    assert text[found.start : found.end] == f"Adu{sign}lts took{sign} {sign}5 g of salt."
    # and parts no word
    assert locate("lts took 5 g of salt", text) is DropReason.CUTS_TOKEN
    assert locate("Adu lts took 5 g of salt.", text) is DropReason.NOT_FOUND
    denied = f"Salt did n{sign}ot lower the pressure. It was in{sign}effective in older adults."
    assert locate("lower the pressure", denied) is DropReason.DROPS_NEGATION
    assert locate("effective in older adults", denied) is DropReason.CUTS_TOKEN
    assert locate(f"{sign}effective in older adults", denied) is DropReason.CUTS_TOKEN
