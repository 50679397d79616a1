"""Reading of Retraction Watch's CSV."""

from __future__ import annotations

import csv
import gzip
import io
from pathlib import Path

import pytest

from posology.corpus.retractions import Statement, read
from posology.errors import BadFile, BadRecord
from posology.types import FlagKind
from tests.support.retraction_watch import HEADER, row, write


def one(path: Path, **cells: str) -> Statement | BadRecord | BadFile:
    (found,) = read(write(path / "rw.csv", row(**cells)))
    return found


def test_a_row_is_a_statement_about_its_article(tmp_path: Path) -> None:
    found = one(
        tmp_path,
        RetractionNature="Expression of concern",
        RetractionDate="12/7/2020 0:00",
        OriginalPaperDOI="https://doi.org/10.1000/ABC.1",
        OriginalPaperPubMedID="123",
        RetractionDOI="10.1000/notice",
        RetractionPubMedID="0",
    )
    assert found == Statement(
        kind=FlagKind.CONCERN, pmid="123", doi="10.1000/abc.1", date="2020-12-07",
        by="doi:10.1000/notice", line=2,
    )  # fmt: skip


@pytest.mark.parametrize("nothing", ["", "0", "unavailable", "Unavailable"])
def test_missing_numbers_are_none(tmp_path: Path, nothing: str) -> None:
    doi = "" if nothing == "0" else nothing
    found = one(tmp_path, OriginalPaperPubMedID=nothing, OriginalPaperDOI=doi)
    assert isinstance(found, Statement)
    assert (found.pmid, found.doi) == (None, None)


@pytest.mark.parametrize(
    ("column", "cell", "reason"),
    [
        ("RetractionNature", "Withdrawn?", "must be one of Retraction, Expression of concern"),
        ("RetractionDate", "13/45/2020 0:00", "RetractionDate is no date"),
        ("RetractionDate", "yesterday", "must be month/day/year"),
        ("OriginalPaperPubMedID", "12a", "must be digits, 0 or unavailable (got '12a')"),
        ("OriginalPaperDOI", "see text", "must be a DOI or unavailable"),
    ],
)
def test_a_bad_row_is_named_and_the_rest_is_read(
    tmp_path: Path, column: str, cell: str, reason: str
) -> None:
    path = write(tmp_path / "rw.csv", row(**{column: cell, "Record ID": "77"}), row())
    bad, good = read(path)
    assert isinstance(bad, BadRecord)
    assert (bad.line, bad.record) == (2, "77")
    assert reason in bad.reason
    assert isinstance(good, Statement)


def test_a_wrong_byte_costs_a_row_only_where_it_is_read(tmp_path: Path) -> None:
    path = write(tmp_path / "rw.csv", row(Author="Mu?ller"), row(OriginalPaperDOI="10.1000/?"))
    path.write_bytes(path.read_bytes().replace(b"?", b"\xfc"))
    good, bad = read(path)
    assert isinstance(good, Statement)
    assert isinstance(bad, BadRecord)
    assert "not UTF-8" in bad.reason


def test_gzip_byte_order_marks_and_line_breaks_in_cells(tmp_path: Path) -> None:
    text = io.StringIO()
    table = csv.writer(text)
    table.writerows([HEADER, row(Notes="two\nlines"), row()])
    path = tmp_path / "rw.csv.gz"
    path.write_bytes(gzip.compress(b"\xef\xbb\xbf" + text.getvalue().encode()))
    assert [one.line for one in read(path) if isinstance(one, Statement)] == [2, 4]


def test_another_table_is_a_bad_file(tmp_path: Path) -> None:
    path = tmp_path / "other.csv"
    path.write_text("PMID,Title\n1,x\n", encoding="utf-8")
    (found,) = read(path)
    assert isinstance(found, BadFile)
    assert "not a file of Retraction Watch's form" in found.reason
    path.write_text(",".join(HEADER) + "\n", encoding="utf-8")
    (empty,) = read(path)
    assert isinstance(empty, BadFile)
