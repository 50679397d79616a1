"""Files of rows as such; what each kind of them holds is tested where it is read."""

from __future__ import annotations

from pathlib import Path
from typing import Literal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from orchestrator.training.paid.rows import Format, Row, open_rows, read_rows
from posology.errors import BadFile


class Word(Row):
    row: Literal["word"] = "word"
    text: str


def add(words: list[str], word: Row) -> None:
    assert isinstance(word, Word)
    if word.text == "twice" and "twice" in words:
        raise ValueError("twice stands there twice")
    words.append(word.text)


FORMAT = Format(
    parse=Word.model_validate_json, empty=list[str], add=add, mismatch="not a file of words"
)


@given(words=st.lists(st.text(alphabet=st.characters(codec="utf-8")), max_size=4), data=st.data())
def test_a_file_that_was_cut_anywhere_is_whole_up_to_its_last_row(
    tmp_path: Path, words: list[str], data: st.DataObject
) -> None:
    path = tmp_path / "w.jsonl"
    path.unlink(missing_ok=True)
    with open_rows(path, FORMAT) as file:
        file.write(*(Word(text=word) for word in words if word != "twice"))
        wanted = list(file.content)
    assert path.exists() == bool(wanted)
    content = path.read_bytes() if wanted else b""
    left = content[: data.draw(st.integers(0, len(content)))]
    path.write_bytes(left)
    whole = left.count(b"\n")
    assert read_rows(path, FORMAT) == wanted[:whole]
    with open_rows(path, FORMAT) as file:
        assert file.content == wanted[:whole]
        file.write(*(Word(text=word) for word in wanted[whole:]))
    assert path.exists() == bool(wanted)
    assert not wanted or path.read_bytes() == content


@pytest.mark.parametrize(
    ("content", "said", "line"),
    [
        (b"my notes", "not a file of words", None),
        (b'{"row":"word","text":"a"}\n\nmy notes\n', "not a file of words", 3),
        (b'{"row":"word","text":"twice"}\n' * 2, "stands there twice", 2),
    ],
)
def test_something_else_is_told_with_its_line_and_stays(
    tmp_path: Path, content: bytes, said: str, line: int | None
) -> None:
    path = tmp_path / "w.jsonl"
    path.write_bytes(content)
    with pytest.raises(BadFile, match=said) as raised, open_rows(path, FORMAT):
        pass
    assert raised.value.line == line
    assert path.read_bytes() == content


def test_two_processes_do_not_write_one_file(tmp_path: Path) -> None:
    path = tmp_path / "w.jsonl"
    with open_rows(path, FORMAT) as file:
        file.write(Word(text="a"))
        with pytest.raises(BadFile, match="another process"), open_rows(path, FORMAT):
            pass


def test_a_file_that_is_not_there_is_a_bad_file(tmp_path: Path) -> None:
    with pytest.raises(BadFile):
        read_rows(tmp_path / "w.jsonl", FORMAT)
    with pytest.raises(BadFile), open_rows(tmp_path / "no" / "w.jsonl", FORMAT):
        pass
