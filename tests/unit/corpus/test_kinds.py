from __future__ import annotations

import gzip
from pathlib import Path

import pytest

from posology.corpus.files import count_rows, kind_of, read, root_of
from posology.corpus.folders import expand
from posology.errors import BadFile

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
