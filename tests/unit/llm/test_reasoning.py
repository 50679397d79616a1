"""What a reply says apart from its reasoning, and that no object within reasoning is ever read."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import BaseModel

from posology.llm.models.reasoning import after_reasoning
from posology.llm.structured import BadStructure, read


class Verdict(BaseModel):
    verdict: str
    reason: str = ""


GOOD = '{"verdict": "yes", "reason": "said in 2.1"}'
#: a whole reply of the form that is wanted, as a model drafts it
DRAFT = '{"verdict": "no"}'
FINAL = Verdict(verdict="yes", reason="said in 2.1")
#: begin and end of reasoning, by the models that write them
MARKS = {
    "DeepSeek, Qwen, GLM": ("<think>", "</think>"),
    "Claude's prompts": ("<thinking>", "</thinking>"),
    "Gemini, EXAONE": ("<thought>", "</thought>"),
    "Reka": ("<reasoning>", "</reasoning>"),
    "capitals": ("<THINK>", "</THINK>"),
    "Seed": ("<seed:think>", "</seed:think>"),
    "LongCat": ("<longcat_think>", "</longcat_think>"),
    "Magistral": ("[THINK]", "[/THINK]"),
    "Kimi": ("◁think▷", "◁/think▷"),
    "Cohere": ("<|START_THINKING|>", "<|END_THINKING|>"),
    "Open Thoughts": ("<|begin_of_thought|>", "<|end_of_thought|>"),
    "DeepSeek's tokens": ("<｜begin▁of▁thinking｜>", "<｜end▁of▁thinking｜>"),
    "Gemma 4": ("<|channel>thought\n", "<channel|>"),
    "gpt-oss": (
        "<|channel|>analysis<|message|>",
        "<|end|><|start|>assistant<|channel|>final<|message|>",
    ),
    "gpt-oss, form named": (
        "<|start|>assistant<|channel|>analysis<|message|>",
        "<|end|><|start|>assistant<|channel|>final <|constrain|>json<|message|>",
    ),
    "gpt-oss without special tokens": ("analysisWe see. ", "assistantfinal"),
    "Granite": ("Here is my thought process: ", "Here is my response: "),
}
#: what models reason: braces of a form, drafts, a broken object, a mark in words
THOUGHTS = (
    "Passage 2 says so.",
    "A form such as {verdict} is wanted.",
    'Of the form {"verdict": "yes" or "no"}, so',
    f"First {DRAFT}, but 2.1 says otherwise.",
    f"{GOOD} or {DRAFT}?",
    'It begins with {"verdict": "',
    "{{{",
)
marks = pytest.mark.parametrize(("begin", "end"), MARKS.values(), ids=MARKS)


@marks
def test_the_object_behind_the_reasoning_is_read(begin: str, end: str) -> None:
    for thought in THOUGHTS:
        for after in ("", "\n", "<|return|>", "\nNote: {P1} says so."):
            for text in (f"{begin}{thought}{end}{GOOD}", f"{thought}\n{end}\n\n{GOOD}"):
                assert read(text + after, Verdict) == FINAL
        assert read(f"{begin}{thought}{end}\n```json\n{GOOD}\n```", Verdict) == FINAL


@marks
def test_an_object_within_reasoning_is_never_the_reply(begin: str, end: str) -> None:
    for thought in THOUGHTS:
        ended = [f"{begin}{thought}{end}{after}" for after in ("", "\n\n", "No.", DRAFT[:-1])]
        for text in (*ended, f"{begin}{thought}"):
            with pytest.raises(BadStructure):
                read(text, Verdict)


@marks
def test_different_objects_behind_the_reasoning_are_refused(begin: str, end: str) -> None:
    with pytest.raises(BadStructure, match="more than one"):
        read(f"{begin}So{end}{GOOD} {DRAFT}", Verdict)


@marks
def test_a_mark_within_a_value_is_the_value_s(begin: str, end: str) -> None:
    value = Verdict(verdict="yes", reason=f"it writes {begin}{DRAFT}{end} then")
    for text in (value.model_dump_json(), f"Here it is: {value.model_dump_json()}"):
        assert read(text, Verdict) == value
    assert read(f"{begin}{DRAFT}{end}{value.model_dump_json()}", Verdict) == value


def test_of_two_stretches_of_reasoning_the_last_counts() -> None:
    assert read(f"<think>a</think>{DRAFT}<think>b {{c</think>{GOOD}", Verdict) == FINAL
    assert read(f"<think>a <think>b</think> {DRAFT}</think>{GOOD}", Verdict) == FINAL


def test_a_reply_may_stand_before_its_reasoning() -> None:
    assert read(f"{GOOD}<think>{DRAFT}</think>", Verdict) == FINAL
    assert read(f"{GOOD}\n</think>\n", Verdict) == FINAL
    assert read(f"{GOOD} <think>{DRAFT}", Verdict) == FINAL


def test_an_object_in_prose_before_an_end_was_reasoned() -> None:
    with pytest.raises(BadStructure, match="no JSON object after its reasoning"):
        read(f"Perhaps {GOOD}. Or not.\n</think>\n", Verdict)


def test_a_mark_that_is_a_word_of_prose_changes_nothing() -> None:
    assert read(f"Without the tag <think>: {GOOD}", Verdict) == FINAL


@pytest.mark.parametrize("text", [GOOD, "", "<b>yes</b>", "no {marks} [1] here"])
def test_a_text_without_reasoning_is_left_as_it_is(text: str) -> None:
    assert after_reasoning(text) == text


def test_many_braces_take_no_long_time() -> None:
    for part in ("{", '{"a":', '{"a": "</think>'):
        after_reasoning(part * 20_000 + "</think>" + GOOD)


@given(
    st.lists(
        st.sampled_from([GOOD, DRAFT, "<think>", "</think>", "[/THINK]", "so ", '{"verdict": "', "\n"]),
        max_size=9,
    )
)  # fmt: skip
def test_what_is_read_was_never_inside_marks(parts: list[str]) -> None:
    """An object between a begin and its end, or within reasoning that does not end, is not read."""
    text = "".join(parts)
    try:
        found = read(text, Verdict)
    except BadStructure:
        return
    outside = _outside(parts)
    assert json.loads(found.model_dump_json(exclude_unset=True)) in map(json.loads, outside)


def _outside(parts: list[str]) -> list[str]:
    found, inside = [], False
    for place, part in enumerate(parts):
        if part == "<think>":
            # one that nothing closes, behind something that was said, is a word
            inside = bool({"</think>", "[/THINK]"} & set(parts[place:])) or not "".join(parts[:place]).strip()  # fmt: skip
        elif part in ("</think>", "[/THINK]"):
            inside = False
        elif not inside and part in (GOOD, DRAFT):
            found.append(part)
    return found
