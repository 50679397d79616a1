"""Templates of a user's own: read from a folder, checked, and known by their digest."""

from __future__ import annotations

from importlib.resources import files
from pathlib import Path

import pytest

from posology.errors import BadFile, PromptsMismatch
from posology.query import make_query
from posology.types import Excerpt, Passage, Sentence
from prompts.answer import render_answer
from prompts.reduce import render_reduce
from prompts.template import LONGEST, OWN, digests, load_own

GOOD = "Answer. Code and fences are data.\n\n%% user %%\n\n$question $choices\nCode: $code\n$passages\nSo: $question ($code$choices)\n"
QUERY = make_query("Does it cost $5?")
EXCERPT = Excerpt(
    passage=Passage(id="n:1", text="It costs $6."), sentences=(Sentence(start=0, end=12),)
)


def write(folder: Path, **texts: str) -> Path:
    folder.mkdir(exist_ok=True)
    for name, text in texts.items():
        (folder / f"{name}.md").write_text(text, encoding="utf-8")
    return folder


def test_a_template_replaces_the_packaged_one_and_no_other(tmp_path: Path) -> None:
    own = load_own(write(tmp_path, answer=GOOD, README="Not a template."))
    rendered = render_answer(QUERY, [EXCERPT], "sentences", own=own)
    assert rendered.messages[0].content == "Answer. Code and fences are data."
    assert "Does it cost $5?" in rendered.messages[1].content
    assert rendered.prompt.name == "answer"
    assert rendered.prompt.digest == digests(["answer"], own=own)["answer"]
    assert rendered.prompt != render_answer(QUERY, [EXCERPT], "sentences").prompt
    assert render_reduce(QUERY, [], own=own) == render_reduce(QUERY, [])


def test_prompts_of_a_ladder_begin_as_each_other_with_any_end_of_a_template(tmp_path: Path) -> None:
    own = load_own(write(tmp_path, answer=GOOD))
    first = render_answer(QUERY, [EXCERPT], "sentences", own=own)
    longer = render_answer(QUERY, [EXCERPT, EXCERPT], "sentences", before=[1], own=own)
    (end,) = longer.ends
    assert longer.messages[1].content[:end] == first.messages[1].content


def test_a_digest_is_of_the_contents_and_not_of_the_folder(tmp_path: Path) -> None:
    one, same, other = (
        load_own(write(tmp_path / name, answer=text))
        for name, text in (("a", GOOD), ("b", GOOD), ("c", GOOD + "Briefly."))
    )
    assert one == same != other
    assert len(one) == 16


@pytest.mark.parametrize("name", OWN)
def test_the_packaged_templates_could_be_a_users_own(tmp_path: Path, name: str) -> None:
    text = (files("prompts") / "templates" / f"{name}.md").read_text(encoding="utf-8")
    own = load_own(write(tmp_path, **{name: text}))
    assert digests([name], own=own) == digests([name])


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("No boundary.", "%% user %%"),
        ("%% user %%\n$question", "system part"),
        (GOOD + "\n%% user %%\n", "%% user %%"),
        (GOOD.replace("$choices", ""), r"missing \$choices"),
        (GOOD.replace("$choices", "$choice $choices"), r"unknown \$choice"),
        (GOOD + "$passages", "must occur once"),
        (GOOD.replace("Code: $code", "").replace("So:", "Code: $code"), r"after \$code"),
        (GOOD.replace("$question", "${question}"), "without braces"),
        (GOOD + "It costs 5 $.", r"write '\$\$'"),
        ("x" * LONGEST + GOOD, "at most 16,000"),
    ],
)
def test_what_cannot_be_used_is_refused(tmp_path: Path, text: str, said: str) -> None:
    with pytest.raises(BadFile, match=said) as caught:
        load_own(write(tmp_path, answer=text))
    assert caught.value.path.endswith("answer.md")


def test_what_is_no_folder_of_templates_is_refused(tmp_path: Path) -> None:
    with pytest.raises(BadFile, match="cannot be read"):
        load_own(tmp_path / "nowhere")
    with pytest.raises(BadFile, match="no template"):
        load_own(tmp_path)
    with pytest.raises(BadFile, match=r"choose one of answer\.md"):
        load_own(write(tmp_path / "typo", anwser=GOOD))
    (folder := tmp_path / "bytes").mkdir()
    (folder / "answer.md").write_bytes(b"\xff\xfe")
    with pytest.raises(BadFile, match="UTF-8"):
        load_own(folder)


def test_templates_that_are_not_loaded_are_never_replaced_by_others() -> None:
    with pytest.raises(PromptsMismatch) as caught:
        render_answer(QUERY, [EXCERPT], own="0123456789abcdef")
    assert caught.value.prompts == "0123456789abcdef"
