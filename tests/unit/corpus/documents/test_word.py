from __future__ import annotations

import struct
import tracemalloc
from pathlib import Path

import pytest

from posology.corpus.documents import word
from posology.corpus.documents.word import package
from posology.corpus.items import Item, Parts, Record
from posology.errors import BadFile
from tests.support.literature import DOCX, docx


def items(folder: Path, content: bytes) -> list[Item]:
    path = folder / "my_draft.docx"
    path.write_bytes(content)
    return list(word.read(path))


def bad(folder: Path, content: bytes) -> BadFile:
    (only,) = items(folder, content)
    assert isinstance(only, BadFile)
    return only


def test_headings_paragraphs_and_the_title(tmp_path: Path) -> None:
    first, second, last = items(tmp_path, DOCX)
    assert isinstance(first, Record)
    assert isinstance(second, Record)
    assert (first.passage.title, first.passage.section) == ("Of salt", "Methods")
    assert first.passage.text == "Half were given 5 µg."
    assert second.passage.section == "Methods > Doses"
    assert isinstance(last, Parts)
    (record, _) = items(tmp_path, docx("Salt helped."))
    assert isinstance(record, Record)
    assert record.passage.title == "my draft"


def test_a_zip_bomb_is_not_unpacked(tmp_path: Path) -> None:
    content = docx("Salt.", more={"word/footnotes.xml": b" " * 60_000_000})
    assert len(content) < 100_000
    tracemalloc.start()
    fault = bad(tmp_path, content)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert "unpacked" in fault.reason
    assert peak < 40_000_000
    # pictures are not read, however large they are
    (record, _) = items(tmp_path, docx("Salt.", more={"word/media/a.png": b"\0" * 60_000_000}))
    assert isinstance(record, Record)


def test_a_bomb_that_states_a_small_size_or_is_no_xml_is_not_unpacked(tmp_path: Path) -> None:
    size = 60_000_000
    footnotes = docx("Salt.", more={"word/footnotes.xml": b" " * size})
    lying = footnotes.replace(struct.pack("<I", size), struct.pack("<I", 100))
    assert lying != footnotes
    # a picture as the main document
    relations = (
        b'<Relationships xmlns="http://schemas.openxmlformats.org/package/2006/relationships"><Relationship Id="r1" '
        b'Type="http://schemas.openxmlformats.org/officeDocument/2006/relationships/officeDocument" '
        b'Target="word/media/a.png"/></Relationships>'
    )
    picture = docx("Salt.", more={"_rels/.rels": relations, "word/media/a.png": b" " * size})
    for content in (lying, picture):
        tracemalloc.start()
        items(tmp_path, content)
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        assert peak < 10_000_000
    assert "damaged" in bad(tmp_path, lying).reason


def test_too_many_members(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(package, "MAX_MEMBERS", 4)
    assert "got 5" in bad(tmp_path, DOCX).reason


@pytest.mark.parametrize("encoding", ["utf-8", "utf-16"])
def test_entities_are_refused(tmp_path: Path, encoding: str) -> None:
    declared = (
        f'<?xml version="1.0" encoding="{encoding}"?><!DOCTYPE x [<!ENTITY a "ha"><!ENTITY b "&a;&a;&a;">]>'
        '<w:document xmlns:w="http://schemas.openxmlformats.org/wordprocessingml/2006/main"><w:body><w:p><w:r><w:t>&b;'
        "</w:t></w:r></w:p></w:body></w:document>"
    )
    content = docx(more={"word/document.xml": declared.encode(encoding)})
    assert "entities" in bad(tmp_path, content).reason


@pytest.mark.parametrize(
    ("content", "word_of_it"),
    [
        (b"", "not a Word file"),
        (b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1" + b"\0" * 500, "encrypted"),
        (DOCX[:-30], "damaged"),
        (DOCX[:200], "damaged"),
        (docx(more={"word/document.xml": b"<w:document>"}), "damaged"),
        (docx(body="<w:tbl><w:tr><w:tc>" * 2_000 + "</w:tc></w:tr></w:tbl>" * 2_000), "damaged"),
        (docx(), "no text"),
    ],
)
def test_files_that_are_not_read(tmp_path: Path, content: bytes, word_of_it: str) -> None:
    if not word_of_it:
        list(
            items(tmp_path, content)
        )  # read or named: a file without relations may have a document
        return
    assert word_of_it in bad(tmp_path, content).reason
