from __future__ import annotations

import gzip
import json
import subprocess
import sys
from pathlib import Path

import pytest

from posology.corpus.files import count_rows, kind_of, read, root_of
from posology.corpus.folders import expand
from posology.corpus.items import Parts, Record, Remark
from posology.corpus.references.columns import Columns
from posology.errors import BadFile, BadRecord
from posology.types import MAX_PASSAGE
from tests.support.literature import article_set, docx, jats
from tests.support.pubmed_xml import article, document

#: one sentence that no reader can cut
LONG = "salt " * (MAX_PASSAGE // 5) + "helped."
SET = b"<PubmedArticleSet></PubmedArticleSet>"


@pytest.mark.parametrize(
    ("content", "root"),
    [
        (SET, "PubmedArticleSet"),
        (b"\xef\xbb\xbf<?xml version='1.0'?>\n<!-- <x> -->\n<article/>", "article"),
        (b'<!DOCTYPE a [<!ENTITY x "y"><!ENTITY z "&x;&x;">]><a>&z;</a>', "a"),
        (b'<!DOCTYPE article SYSTEM "https://example.org/none.dtd"><article>', "article"),
        (b'<n:article xmlns:n="https://example.org">', "article"),
        ('<?xml version="1.0" encoding="utf-16"?><article/>'.encode("utf-16"), "article"),
        (b"<!--" + b"x" * 100_000 + b"--><article/>", "article"),
        (b"<!--" + b"x" * 2_000_000 + b"--><article/>", None),
        (b"", None),
        (b"<", None),
        (b"<article", None),
        (b"words", None),
        (b"\0\0\0", None),
        (b"\x1f\x8bno gzip", None),
    ],
)
def test_root_elements(tmp_path: Path, content: bytes, root: str | None) -> None:
    plain, packed = tmp_path / "a.xml", tmp_path / "a.xml.gz"
    plain.write_bytes(content)
    packed.write_bytes(gzip.compress(content))
    assert root_of(plain) == root
    assert root_of(packed) == root


def test_what_is_not_there(tmp_path: Path) -> None:
    assert root_of(tmp_path / "none.xml") is None


def test_pubmeds_files_are_told_by_their_root(tmp_path: Path) -> None:
    path = tmp_path / "Any.XML"
    path.write_bytes(SET)
    kind = kind_of(path)
    assert kind is not None
    assert kind.name == "pubmed"


def test_xml_that_is_no_literature(tmp_path: Path) -> None:
    strange, good = tmp_path / "desc2026.xml", tmp_path / "pubmed.xml"
    strange.write_bytes(b"<DescriptorRecordSet/>")
    good.write_bytes(SET)
    assert kind_of(strange) is None
    assert list(expand([tmp_path])) == [good]
    (bad,) = read(strange)
    assert isinstance(bad, BadFile)
    assert "DescriptorRecordSet" in bad.reason
    assert "PubmedArticleSet" in bad.reason
    assert count_rows(strange) == 0


def test_xml_that_cannot_be_read_is_reported_not_passed_over(tmp_path: Path) -> None:
    broken = tmp_path / "a.xml"
    broken.write_bytes(b"<PubmedArticleS")
    assert list(expand([tmp_path])) == [broken]
    (bad,) = read(broken)
    assert isinstance(bad, BadFile)


def row(**fields: object) -> bytes:
    return json.dumps({"id": "a", "text": "Salt helped.", **fields}).encode() + b"\n"


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("a.jsonl", row(text=LONG)),
        ("a.jsonl", row(title=LONG)),
        ("a.jsonl", row(section=LONG)),
        ("a.jsonl", row(trials=["NCT0"] * 6_000)),
        ("a.jsonl", row(publication_types=["Review"] * 4_000)),
        ("a.csv", f"id,title,abstract\na,Salt,{LONG}\n".encode()),
        ("a.ris", f"TY  - JOUR\nID  - a\nTI  - Salt\nAB  - {LONG}\nER  - \n".encode()),
        ("a.nbib", f"PMID- 1\nTI  - Salt\nAB  - {LONG}\n\n".encode()),
        ("a.bib", f"@article{{a, title={{Salt}}, abstract={{{LONG}}}}}".encode()),
        ("a.xml", document(article("1", title="Salt", abstract=LONG))),
        ("b.xml", article_set(jats(f"<body><p>{LONG}</p></body>", meta=""))),
        ("a.html", f"<html><body><article><p>{LONG}</p></article></body></html>".encode()),
        ("a.docx", docx(f"<w:p><w:r><w:t>{LONG}</w:t></w:r></w:p>")),
        ("a.txt", LONG.encode()),
    ],
)  # fmt: skip
def test_a_passage_that_is_too_long_for_a_prompt_is_a_bad_record(
    tmp_path: Path, name: str, content: bytes
) -> None:
    path = tmp_path / name
    path.write_bytes(content)
    found = list(read(path))
    assert not any(isinstance(one, Record) for one in found)
    (bad,) = [one for one in found if isinstance(one, BadRecord)]
    assert bad.record
    assert f"at most {MAX_PASSAGE:,}" in bad.reason


@pytest.mark.parametrize(
    ("name", "before", "after"),
    [
        ("a.jsonl", '{"id": "a", "title": "Salt", "retracted": true, "text": "', '"}'),
        ("a.csv", "id,title,retracted,abstract\na,Salt,yes,", "\n"),
        ("a.ris", "TY  - JOUR\nID  - a\nTI  - RETRACTED: Salt\nAB  - ", "\nER  - \n"),
    ],
)
def test_a_long_record_of_any_format_is_read_as_parts(
    tmp_path: Path, name: str, before: str, after: str
) -> None:
    path = tmp_path / name
    sentences = [f"Salt helped {n} of them." for n in range(2_000)]
    path.write_text(before + " ".join([*sentences, LONG.capitalize()]) + after)
    *parts, bad, end = read(path)
    assert isinstance(end, Parts)
    assert isinstance(bad, BadRecord)
    records = [one for one in parts if isinstance(one, Record)]
    assert len(records) == len(parts) == end.count - 1
    assert end.whole
    assert [one.passage.id for one in records] == [f"{end.id}#{n}" for n in range(1, end.count)]
    assert {one.passage.parent for one in records} == {end.id}
    assert all(one.passage.retracted and one.passage.title for one in records)
    assert " ".join(one.passage.text for one in records) == " ".join(sentences)
    # they stand at one place, and are committed together
    assert {bad.line, *(one.line for one in records)} == {end.line}
    assert not list(read(path, after=end.line))


def test_a_passage_just_as_long_as_it_may_be_is_read(tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl"
    path.write_bytes(row(text="x" * MAX_PASSAGE) + row(text="x" * (MAX_PASSAGE - 4), title="Salt"))
    assert [type(one) for one in read(path)] == [Record, Record]


def test_columns_that_are_named_hold_for_a_table_without_a_suffix(tmp_path: Path) -> None:
    path = tmp_path / "export"
    path.write_text(
        "title\tabstract\tpmid\tdoi\tsummary\nSalt\tWrong.\t7\t10.5555/a\tSalt helped.\n", "utf-8"
    )
    columns = Columns(named={"text": "summary"})
    record, remark = read(path, columns=columns)
    assert isinstance(record, Record)
    assert record.passage.text == "Salt helped."
    assert isinstance(remark, Remark)
    assert count_rows(path, columns=columns) == 1


@pytest.mark.parametrize(
    "module", ["references.standing", "references.markup", "pubmed.reader", "jats.reader"]
)
def test_a_module_of_readers_can_be_imported_first(module: str) -> None:
    subprocess.run([sys.executable, "-c", f"import posology.corpus.{module}"], check=True)
