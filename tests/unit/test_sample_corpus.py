"""The sample corpus keeps its promises: complete notes, checkable questions, exact quotes."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Callable, Iterable
from importlib.resources import files
from typing import Any

Record = dict[str, Any]

SAMPLE = files("posology.corpus") / "sample"

NOTE_KEYS = {
    "id",
    "title",
    "text",
    "pmid",
    "journal",
    "year",
    "publication_types",
    "mesh",
    "retracted",
    "source",
}
QUESTION_KEYS = {
    "id",
    "question",
    "form",
    "options",
    "answer",
    "choice",
    "gold",
    "evidence",
    "unanswerable",
    "topic",
    "demo",
}
EVIDENCE_TYPES = {
    "Systematic Review",
    "Meta-Analysis",
    "Randomized Controlled Trial",
    "Cohort Study",
    "Case-Control Study",
    "Case Reports",
    "Review",
    "Practice Guideline",
}
CLINICAL = {
    "htn",
    "dm",
    "af",
    "resp",
    "hf",
    "inf",
    "psy",
    "paed",
    "preg",
    "neuro",
    "renal",
    "tox",
    "acute",
}
# (older or weaker note, the note that contradicts it)
CONTRADICTIONS = [
    ("htn-004", "htn-005"),
    ("dm-005", "dm-006"),
    ("af-006", "af-007"),
    ("af-008", "af-009"),
    ("resp-003", "resp-004"),
    ("hf-001", "hf-002"),
    ("hf-008", "hf-009"),
    ("inf-002", "inf-003"),
    ("psy-006", "psy-007"),
    ("paed-004", "paed-005"),
    ("preg-004", "preg-005"),
    ("preg-009", "preg-010"),
    ("neuro-008", "neuro-009"),
    ("renal-003", "renal-004"),
    ("tox-007", "tox-008"),
    ("acute-001", "acute-002"),
    ("acute-003", "acute-004"),
]
# (retracted note, the note that holds the right answer)
OVERTURNED = [("htn-009", "htn-010"), ("inf-005", "inf-006"), ("renal-005", "renal-006")]


def _load(name: str) -> list[Record]:
    lines = (SAMPLE / name).read_text(encoding="utf-8").splitlines()
    return [json.loads(line) for line in lines]


NOTES = _load("notes.jsonl")
QUESTIONS = _load("questions.jsonl")
BY_ID = {str(note["id"]): note for note in NOTES}


def _prefix(note: Record) -> str:
    return str(note["id"]).removeprefix("note:").rsplit("-", 1)[0]


def _note(short: str) -> Record:
    return BY_ID[f"note:{short}"]


def _contradicting(question: Record) -> bool:
    gold = set(question["gold"])
    return any({f"note:{a}", f"note:{b}"} <= gold for a, b in CONTRADICTIONS)


def _check(records: Iterable[Record], rule: Callable[[Record], None]) -> None:
    """Hold every record to a rule, and tell all that break it."""
    broken = []
    for record in records:
        try:
            rule(record)
        except AssertionError as error:
            broken.append(f"{record['id']}: {error}")
    assert not broken, "\n".join(broken)


def test_there_are_enough_notes_in_every_topic() -> None:
    assert len(NOTES) >= 125
    counts = Counter(_prefix(note) for note in NOTES)
    assert set(counts) == CLINICAL | {"off"}
    assert counts["off"] == 8
    assert min(counts[topic] for topic in CLINICAL) >= 9


def test_note_ids_and_titles_and_texts_are_unique() -> None:
    assert len(BY_ID) == len(NOTES)
    assert len({note["title"] for note in NOTES}) == len(NOTES)
    assert len({note["text"] for note in NOTES}) == len(NOTES)


def test_a_note_is_complete_and_invents_no_publication() -> None:
    def rule(note: Record) -> None:
        assert set(note) == NOTE_KEYS
        assert re.fullmatch(r"note:[a-z]+-\d{3}", note["id"])
        assert note["pmid"] is None
        assert note["journal"] == "Posology sample notes"
        assert note["source"] == "posology-sample"
        assert type(note["year"]) is int
        assert 1985 <= note["year"] <= 2025
        assert type(note["retracted"]) is bool
        assert note["mesh"]
        assert all(isinstance(heading, str) and heading for heading in note["mesh"])
        assert 60 <= len(note["text"].split()) <= 130
        assert 4 <= len(re.findall(r"[.!?](?=\s[A-Z0-9]|$)", note["text"])) <= 9
        assert note["text"] == " ".join(note["text"].split())
        assert not re.search(r"PMID|doi|https?:|et al\.", note["text"])
        assert "retract" not in note["text"].lower()

    _check(NOTES, rule)


def test_a_note_is_marked_as_a_sample_and_says_its_kind_of_evidence() -> None:
    def rule(note: Record) -> None:
        first, *rest = note["publication_types"]
        assert first == "Sample Note"
        if _prefix(note) == "off":
            assert rest == []
        else:
            assert rest
            assert set(rest) <= EVIDENCE_TYPES

    _check(NOTES, rule)


def test_exactly_three_notes_are_retracted_and_each_has_an_answer_to_it() -> None:
    retracted = {note["id"] for note in NOTES if note["retracted"]}
    assert retracted == {f"note:{bad}" for bad, _ in OVERTURNED}
    for bad, good in OVERTURNED:
        assert _note(good)["year"] > _note(bad)["year"]


def test_contradicting_notes_differ_in_year_and_in_evidence() -> None:
    pairs = [(_note(older), _note(newer)) for older, newer in CONTRADICTIONS]
    assert not [(old["id"], new["id"]) for old, new in pairs if old["year"] >= new["year"]]
    same = [
        (old, new) for old, new in pairs if old["publication_types"] == new["publication_types"]
    ]
    assert not [(old["id"], new["id"]) for old, new in same]
    assert not [note["id"] for pair in pairs for note in pair if note["retracted"]]


def test_the_notes_hold_text_that_is_hard_to_split_into_sentences() -> None:
    text = " ".join(note["text"] for note in NOTES)
    for hard in ("p < 0.05", "e.g.", "i.v.", "E. coli", "approx. 2", "vs.", "µg", "≥", "–", "°C"):
        assert hard in text


def test_there_are_forty_questions_numbered_in_order() -> None:
    assert [question["id"] for question in QUESTIONS] == [f"q{n:02d}" for n in range(1, 41)]
    assert len({question["question"] for question in QUESTIONS}) == 40


def test_a_question_is_complete_and_its_form_fits_its_choice() -> None:
    def rule(question: Record) -> None:
        assert set(question) == QUESTION_KEYS
        assert question["question"].endswith("?")
        assert question["topic"]
        assert type(question["demo"]) is bool
        match question["form"]:
            case "choice":
                assert list(question["options"]) == ["A", "B", "C", "D", "E"]
                assert len(set(question["options"].values())) == 5
                assert question["choice"] in question["options"]
            case "yes_no_maybe":
                assert question["options"] is None
                assert question["choice"] in {"yes", "no", "maybe"}
            case form:
                assert form == "free"
                assert question["options"] is None
                assert question["choice"] is None

    _check(QUESTIONS, rule)


def test_gold_notes_exist_and_every_quote_is_an_exact_substring() -> None:
    def rule(question: Record) -> None:
        if question["unanswerable"]:
            assert question["answer"] is None
            assert question["choice"] is None
            assert question["gold"] == []
            assert question["evidence"] == []
            return
        assert question["answer"]
        assert question["gold"]
        assert {item["passage"] for item in question["evidence"]} == set(question["gold"])
        for passage in question["gold"]:
            assert not BY_ID[passage]["retracted"]
        for item in question["evidence"]:
            assert set(item) == {"passage", "quote"}
            assert len(item["quote"].split()) >= 5
            assert BY_ID[item["passage"]]["text"].count(item["quote"]) == 1

    _check(QUESTIONS, rule)


def test_the_mix_of_questions_is_as_promised() -> None:
    forms = Counter(question["form"] for question in QUESTIONS)
    assert forms["choice"] >= 4
    assert forms["yes_no_maybe"] >= 4
    assert sum(question["unanswerable"] for question in QUESTIONS) == 8
    outside = [q for q in QUESTIONS if q["unanswerable"] and q["topic"] == "outside"]
    assert len(outside) == 3
    assert sum(_contradicting(question) for question in QUESTIONS) >= 5


def test_the_demonstration_has_twelve_varied_questions() -> None:
    demo = [question for question in QUESTIONS if question["demo"]]
    assert len(demo) == 12
    assert sum(question["unanswerable"] for question in demo) == 1
    assert sum(question["form"] == "choice" for question in demo) == 1
    assert sum(question["form"] == "yes_no_maybe" for question in demo) == 1
    assert sum(_contradicting(question) for question in demo) == 1
    assert len({question["topic"] for question in demo}) >= 10


def test_some_questions_have_a_retracted_note_that_would_mislead() -> None:
    golds = [set(question["gold"]) for question in QUESTIONS]
    answered = [good for _, good in OVERTURNED if {f"note:{good}"} in golds]
    assert len(answered) >= 2


def test_nothing_in_the_notes_answers_the_unanswerable() -> None:
    words = (
        "methotrexate",
        "glaucoma",
        "alendron",
        "pylori",
        "levothyrox",
        "zealand",
        "sistine",
        "polo",
    )
    texts = {note["id"]: f"{note['title']} {note['text']}".lower() for note in NOTES}
    assert not [(word, name) for word in words for name, text in texts.items() if word in text]
