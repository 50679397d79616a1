from __future__ import annotations

import gzip
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


def test_records_before_a_break_are_kept(tmp_path: Path) -> None:
    content = made(endnote_record(), endnote_record("Sand &c <")).replace(b"&c <", b"&c; < ")
    first, bad = items(tmp_path, content)
    assert isinstance(first, Record)
    assert isinstance(bad, BadFile)
    assert bad.line == 1
    path = tmp_path / "a.xml.gz"
    path.write_bytes(gzip.compress(ENDNOTE)[:-9])
    assert isinstance(list(endnote.read(path))[-1], BadFile)


def test_a_record_without_end_is_not_held(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(endnote, "MAX_RECORD", 200_000)
    long = endnote_record(more="<urls>" + "<url>x</url>" * 100_000 + "</urls>")
    first, bad = items(tmp_path, made(endnote_record(), long))
    assert isinstance(first, Record)
    assert isinstance(bad, BadFile)
    assert "200,000 bytes" in bad.reason
