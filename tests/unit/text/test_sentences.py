from __future__ import annotations

import os
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evals.corpus.sentences import FILE, HALVES, ours, read, score
from posology.text import split

DATA = Path(os.environ.get("POSOLOGY_DATA", Path(__file__).parents[3].parent / "shared/data"))

#: characters that decide boundaries, or that naive offsets trip over
TRICKY = st.one_of(
    st.sampled_from(
        "aB1.!?…;: \n\t()[]\"'’“”-•*。！\x00\x0b\x0c\x1c\x1d\x1e\x1f\x85\xa0\u0301\u05d0"
    ),
    st.sampled_from("\u0627\u200b\u200f\u2028\u2029\u3000😀"),
    st.sampled_from(["\r\n", "\n\n", "e.g.", "The", "et al.", "1. ", "p53", "[see comments]"]),
    st.just("seen.The"),
)
TEXTS = st.one_of(st.text(), st.lists(TRICKY, max_size=60).map("".join))


def sentences(text: str) -> list[str]:
    return [sentence.of(text) for sentence in split(text)]


@given(TEXTS)
def test_offsets_hold_every_visible_character_once_and_in_order(text: str) -> None:
    found = split(text)
    at = 0
    for sentence in found:
        assert at <= sentence.start < sentence.end <= len(text)
        assert not text[at : sentence.start].strip()
        assert sentence.of(text) == sentence.of(text).strip()
        at = sentence.end
    assert not text[at:].strip()


@given(TEXTS, TEXTS)
def test_a_blank_line_always_ends_a_sentence(before: str, after: str) -> None:
    text = f"{before}a\n\nb{after}"
    ends = {sentence.end for sentence in split(text)}
    assert len(before) + 1 in ends


@given(st.text(alphabet="ab,;: ", min_size=1))
def test_without_full_stops_nothing_is_split(text: str) -> None:
    assert sentences(text) == ([text.strip()] if text.strip() else [])


@pytest.mark.parametrize(
    "parts",
    [
        ["Smith et al. found it in E. coli.", "S. aureus vs. controls did not grow."],
        ["The dose was 5.0 mg.", "The effect was small (p < 0.05).", "It lasted 2 h."],
        ["As Fig. 2 shows, approx. 2.5 mg sufficed.", "Dr. Roe agreed."],
        ["It was given i.v.", "The rate was fixed."],
        ["It was given i.v. Adenosine followed."],
        ["It binds DNA.", "p53 is cut.", "c-Myc is not.", "5 patients died.", "alpha 4 binds."],
        [
            "He said “it works.”",
            "(It did not.)",
            "So we stopped [3].",
            "We then asked why?",
            "No one knew!",
        ],
        ["1. First came rest.", "2. Then came work.", "3. Then rest."],
        ["BACKGROUND: Falls are common.", "METHODS: We counted; we waited: none fell."],
        ["It lacked vitamin D.", "Mice with MS.", "Rats had none."],
        ["The group of J. R. Roe and by E. Doe did it."],
        ["It cured disease.1,2", "The other did not.[3]", "It ended."],
        ["[An old title. Part two]", "The hormone was new."],
        ["No. 5 was best.", "Was it safe?", "No.", "Aspirin bled."],
        ["A long aside (so J. Roe, Proc. Natl. Acad. Sci. USA. 1990. It was. Fine) goes on."],
        ["病人好转。", "没有死亡！"],
    ],
)
def test_boundaries_of_medical_prose(parts: list[str]) -> None:
    glue = "" if parts[0].endswith("。") else " "
    assert sentences(glue.join(parts)) == parts


def test_a_missing_space_is_a_boundary_only_before_a_word_that_begins_sentences() -> None:
    assert sentences("It was seen.The rest at www.roe.Com stayed.") == [
        "It was seen.",
        "The rest at www.roe.Com stayed.",
    ]


def test_lines_headings_and_lists() -> None:
    text = "METHODS\nWe took\nDNA from mice and\n- rats\n- cats\n2) dogs\u2029end"
    assert sentences(text) == [
        "METHODS",
        "We took\nDNA from mice and",
        "- rats",
        "- cats",
        "2) dogs",
        "end",
    ]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("unit", "count"), [("(. ", 1), ("a. ", 1), (".", 1), ("aaa.The", 1), ("Ab. ", 250_000)]
)
def test_a_megabyte_of_adversarial_text_is_split(unit: str, count: int) -> None:
    text = unit * (1_000_000 // len(unit))
    assert len(split(text)) == count


@pytest.mark.slow
@pytest.mark.data
def test_boundary_f1_on_genia() -> None:
    if not (DATA / FILE).is_file():
        pytest.skip(f"{DATA / FILE} is absent")
    abstracts = list(read(DATA / FILE))
    for half in HALVES:
        result = score((a for a in abstracts if a.half == half), ours)
        assert result.gold > 5_000
        assert result.f1 >= 0.996
