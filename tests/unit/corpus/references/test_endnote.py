from __future__ import annotations

from pathlib import Path

import pytest

from posology.corpus.files import kind_of
from posology.corpus.items import Item, Record
from posology.corpus.references import endnote
from posology.errors import BadFile, BadRecord
from tests.support.literature import ENDNOTE, endnote_record
from tests.support.literature import endnote as made


def items(folder: Path, content: bytes) -> list[Item]:
    path = folder / "a.xml"
    path.write_bytes(content)
    kind = kind_of(path)
    assert kind is not None
    assert kind.name == "endnote"
    return list(endnote.read(path))


def test_records_and_one_without_an_abstract(tmp_path: Path) -> None:
    first, second, third = items(tmp_path, ENDNOTE)
    assert isinstance(first, Record)
    assert first.passage.title == "Salt for some"
    assert first.passage.text == "Counts fell to 10^9/L in all."
    assert (first.passage.published, first.passage.journal) == ("2012-07-05", "Notes on Salt")
    assert first.passage.publication_types == ("Journal Article",)
    assert isinstance(second, BadRecord)
    assert second.line == 2
    assert isinstance(third, Record)
    assert (third.passage.id, third.passage.doi) == ("pmid:403", "10.1000/e3")


def test_no_entity_is_expanded_and_a_file_that_declares_any_is_not_read(tmp_path: Path) -> None:
    bomb = b'<!DOCTYPE xml [<!ENTITY a "ha"><!ENTITY b "&a;&a;&a;&a;">]>'
    record = endnote_record("Salt &b; helped.").encode()
    content = bomb + b"<xml><records>" + record + b"</records></xml>"
    (bad,) = items(tmp_path, content)
    assert isinstance(bad, BadFile)
    assert "entities" in bad.reason


@pytest.mark.parametrize(
    ("fault", "said"),
    [
        (b"\x0b", "U+000B"),
        (b"&#11;", "U+000B"),
        (b"&#x1F;", "U+001F"),
        (b"\x00", ""),
        (b"\xff\xfe", ""),
        (b"&c;", "&c; is not defined"),
        (b"salt & sand", "no name"),
        (b"p < 0.05", "invalid element name"),
        (b"<b>", "Opening and ending tag mismatch"),
        (b"</abstract>", "Opening and ending tag mismatch"),
        (b"<!-- ", ""),
    ],
)
@pytest.mark.parametrize(("before", "behind"), [(0, 3), (2, 1), (150, 150), (3, 0)])
def test_a_fault_costs_its_record(
    tmp_path: Path, fault: bytes, said: str, before: int, behind: int
) -> None:
    whole, torn = endnote_record("Salt helped. " * 40), endnote_record("Sand @ helped.")
    content = made(*[whole] * before, torn, *[whole] * behind).replace(b"@", fault)
    found = items(tmp_path, content)
    (bad,) = (item for item in found if not isinstance(item, Record))
    assert isinstance(bad, BadRecord)
    assert len(found) == before + 1 + behind
    assert found.index(bad) == before
    assert said in bad.reason


@pytest.mark.parametrize(
    "between", [b"", b"\n", b"\xef\xbb\xbf<?xml version='1.0'?>", b"<!-- a -->"]
)
def test_several_files_in_one(tmp_path: Path, between: bytes) -> None:
    content = made(endnote_record(), endnote_record())
    bare = content[content.index(b"<xml") :]
    found = items(tmp_path, content + between + bare)
    assert [type(item) for item in found] == [Record] * 4


def test_a_record_without_end_is_not_held(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(endnote, "MAX_RECORD", 200_000)
    long = endnote_record(more="<urls>" + "<url>x</url>" * 100_000 + "</urls>")
    first, bad = items(tmp_path, made(endnote_record(), long))
    assert isinstance(first, Record)
    assert isinstance(bad, BadFile)
    assert "200,000 bytes" in bad.reason
