from __future__ import annotations

import codecs
import tempfile
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from posology.corpus.documents import plain
from posology.corpus.documents.plain import read
from posology.corpus.items import Parts, Record
from posology.errors import BadFile
from posology.types import Passage
from tests.support.literature import words


def passages(path: Path) -> list[Passage]:
    return [item.passage for item in read(path) if isinstance(item, Record)]


def texts(path: Path) -> list[str]:
    return [passage.text for passage in passages(path)]


def test_a_text_becomes_parts_of_one_article(tmp_path: Path) -> None:
    folder = tmp_path / "guides"
    folder.mkdir()
    path = folder / "salt_and_water.TXT"
    path.write_text(f"{words(100)}\n\n{words(100, 200)}\r\n \t\r\nShort.")
    first, second, last = read(path)
    assert isinstance(first, Record)
    assert isinstance(second, Record)
    assert first.passage == Passage(
        id="file:guides/salt_and_water.TXT#1",
        text=words(100),
        title="salt and water",
        source="text",
        parent="file:guides/salt_and_water.TXT",
    )
    assert second.passage.text == f"{words(100, 200)}\n\nShort."
    assert last == Parts(id="file:guides/salt_and_water.TXT", count=2, path=path, line=3)


def test_the_characters_of_a_paragraph_are_kept(tmp_path: Path) -> None:
    path = tmp_path / "a.txt"
    text = "Naïve  doses of\n10 μg\t\U0001f48a."
    path.write_bytes(codecs.BOM_UTF8 + text.encode())
    assert texts(path) == [text]


def test_accents_are_composed_wherever_blocks_end(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "a.txt"
    path.write_text("Sjo\u0308gren")
    for block in range(1, 6):
        monkeypatch.setattr(plain, "_BLOCK", block)
        assert texts(path) == ["Sjögren"]


def test_form_feeds_part_paragraphs(tmp_path: Path) -> None:
    path = tmp_path / "a.txt"
    path.write_text("One\fTwo\n\f\nThree")
    assert texts(path) == ["One\n\nTwo\n\nThree"]


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        ("Salz für alle".encode("latin-1"), "byte 6"),
        (b"Half of \xe2\x82", "byte 10"),
        ("Salt".encode("utf-16"), "UTF-16"),
        ("Salt".encode("utf-32"), "UTF-32"),
        (b"Salt\0", "NUL"),
        (b" \n", "empty"),
    ],
)
def test_what_is_no_text_is_a_bad_file(tmp_path: Path, content: bytes, reason: str) -> None:
    path = tmp_path / "a.txt"
    path.write_bytes(content)
    (only,) = read(path)
    assert isinstance(only, BadFile)
    assert reason in only.reason


def test_what_came_before_a_break_is_kept_and_no_parts_are_declared(tmp_path: Path) -> None:
    path = tmp_path / "a.txt"
    paragraphs = "\n\n".join(words(100, 100 * i) for i in range(200))
    path.write_bytes(f"{paragraphs}\n\nCut o".encode() + b"\xff")
    *items, last = read(path)
    assert isinstance(last, BadFile)
    assert len(items) > 50
    assert not any(isinstance(item, Parts) for item in items)
    # the sentence that the break is in says nothing
    assert not any("Cut" in text for text in texts(path))


def test_a_paragraph_without_end_is_cut_between_sentences(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(plain, "LONGEST", 2_000)
    path = tmp_path / "a.txt"
    path.write_text(words(5_000))
    found = texts(path)
    assert " ".join(found) == words(5_000)
    assert all(text.endswith(".") for text in found)


def test_a_word_without_end_is_cut_somewhere(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(plain, "LONGEST", 1_000)
    path = tmp_path / "a.txt"
    path.write_text("a" * 2_500)
    assert list(map(len, texts(path))) == [1_000, 1_000, 500] or texts(path) == [
        "a" * 1_000 + "\n\n" + "a" * 1_000 + "\n\n" + "a" * 500
    ]


@given(
    text=st.text(st.sampled_from("abC. \n\r\f\u00e9\u2029\x1d"), max_size=400),
    block=st.integers(1, 9),
    longest=st.integers(5, 60),
)
@settings(deadline=None)
def test_every_character_comes_once_wherever_blocks_end(
    text: str, block: int, longest: int
) -> None:
    with pytest.MonkeyPatch.context() as patch, tempfile.TemporaryDirectory() as folder:
        patch.setattr(plain, "_BLOCK", block)
        patch.setattr(plain, "LONGEST", longest)
        path = Path(folder) / "a.txt"
        path.write_text(text, encoding="utf-8", newline="")
        assert "".join("".join(texts(path)).split()) == "".join(text.split())
        small = texts(path)
        patch.setattr(plain, "_BLOCK", 65_536)
        if longest > len(text):
            assert texts(path) == small


def test_long_names_make_ids_that_fit(tmp_path: Path) -> None:
    folder = tmp_path / ("f" * 250)
    folder.mkdir()
    path = folder / ("n" * 240 + ".txt")
    path.write_text("Salt.")
    (passage,) = passages(path)
    assert len(passage.id) < 100
    other = folder / ("n" * 239 + ".txt")
    other.write_text("Salt.")
    assert passages(other)[0].id != passage.id


@pytest.mark.parametrize(
    ("content", "what"),
    [
        ("31000001\n31000002\n", "2 PMIDs"),
        ("31000001, 31000002;31000003", "3 PMIDs"),
        ("\ufeffPMID\r\n31000001\r\n\r\n", "1 PMIDs"),
        ("PMID: 31000001\nPMID: 31000002", "2 PMIDs"),
        ("# of the search of May\n31000001  # Smith\n\n// others\n12\n", "2 PMIDs"),
        (
            "https://pubmed.ncbi.nlm.nih.gov/31000001/\nhttps://www.ncbi.nlm.nih.gov/pubmed/31000002",
            "2 PMIDs",
        ),
        # of a long one the beginning is read
        ("".join(f"{31_000_000 + i}\n" for i in range(50_000)), "more than"),
        ("PMC3395386\nPMCID: PMC3395387\n", "2 PMCIDs"),
        ("10.1056/NEJMoa1200303\nhttps://doi.org/10.1000/a(1)2\n", "2 DOIs"),
    ],
    ids=lambda value: value[:20],
)
def test_a_list_of_identifiers_is_no_prose_and_says_how_to_get_the_records(
    tmp_path: Path, content: str, what: str
) -> None:
    path = tmp_path / "pmid-salt-set.txt"
    path.write_text(content, encoding="utf-8", newline="")
    (bad,) = read(path)
    assert isinstance(bad, BadFile)
    assert what in bad.reason
    assert "Format PubMed" in bad.reason


@pytest.mark.parametrize(
    "content", ["12", "In 2012 it helped.", "31000001 helped", "5 mg\n31000001\n"]
)
def test_a_text_with_numbers_is_prose(tmp_path: Path, content: str) -> None:
    path = tmp_path / "a.txt"
    path.write_text(content, encoding="utf-8")
    assert texts(path) == [content.strip()]
