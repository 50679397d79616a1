"""A folder as people have it: exports, notes and pictures, whole and broken. Every file is read or named."""

from __future__ import annotations

import gzip
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import jsonschema
import pytest
from typer.testing import CliRunner, Result

from orchestrator.cli.app import app
from tests.support.literature import (
    BIB,
    CSV,
    DOCX,
    ENDNOTE,
    HTML,
    NBIB,
    PUBMED,
    RIS,
    TSV,
    docx,
    jats,
    pdf,
)

SCHEMA = Path(__file__).resolve().parents[2] / "docs" / "schema" / "ingest.json"
PUBMED_CSV = "PMID,Title,Authors,Citation,First Author,Journal/Book,Publication Year,Create Date,PMCID,NIHMS ID,DOI\n"

#: files of which at least one record is read
READ: dict[str, bytes] = {
    "scopus.csv": CSV,
    "mine.tsv": TSV,
    "excel-unicode.tab": TSV.decode().encode("utf-16"),
    "citations.nbib": NBIB,
    "pubmed-salt-set.txt": NBIB.replace(b"- 20", b"- 21"),
    "zotero.ris": RIS,
    "library.xml": ENDNOTE,
    "efetch.xml.gz": gzip.compress(PUBMED),
    "PMC70.nxml": jats().encode(),
    "notes.txt": b"Salt helped in the first week.\n\nIt was cheap.",
    "rows.jsonl": b'{"id": "n:1", "text": "Salt was given."}\n',
    "leaflet.pdf": pdf([["Salt helped in", "this trial."]]),
    "mendeley.bib": BIB,
    "saved page.html": HTML,
    "draft.docx": DOCX,
    # bad ones, of which something is read
    "latin1.csv": "title,abstract,pmid\nSalt,5 µg of salt.,901\nSand,Of sand none.,902\n".encode(
        "cp1252"
    ),
    "torn.csv": b'title,abstract,pmid\nSalt,"Salt helped.,903\nSand,"Sand, too.",904\nClay,No.,905\n',
    "cut.ris": RIS[:-20],
}
#: files of which nothing can be read, and a word of the reason
BAD: dict[str, tuple[bytes, str]] = {
    "csv-pubmed.csv": (f"{PUBMED_CSV}1,Salt,,,,,2012,,,,\n".encode(), "Format PubMed"),
    "pmid-salt-set.txt": (b"31000001\n31000002\n31000003\n", "3 PMIDs"),
    "sales.csv": (b"region,amount\nNorth,12\n", "region, amount"),
    "empty.ris": (b"", "no record"),
    "broken.csv.gz": (gzip.compress(CSV)[:30], "ended"),
    "scan.pdf": (b"%PDF-1.4 no more", "damaged"),
    "bomb.docx": (docx("Salt.", more={"word/footnotes.xml": b" " * 20_000_000}), "unpacked"),
    "encrypted.docx": (b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1" + b"\0" * 99, "encrypted"),
    "latin1.html": ("<p>5 µg".encode("cp1252"), "0xB5"),
    "words.bib": (b"no entry at all", "no record"),
    "bomb.xml": (
        b'<!DOCTYPE xml [<!ENTITY a "ha">]><xml><records><record>&a;</record></records></xml>',
        "entities",
    ),
}
#: files that are no literature, and a word of the reason
SKIPPED: dict[str, tuple[bytes, str]] = {
    "figure.png": (b"\x89PNG", "not a format"),
    "table.xlsx": (b"PK\x03\x04", "CSV"),
    "old draft.doc": (b"\xd0\xcf\x11\xe0", "docx"),
    "My EndNote Library.enl": (b"\0", "EndNote XML"),
    "README.md": (b"# Mine", "not a format"),
    "LICENSE.txt": (b"MIT", "pass it"),
    "desc2026.xml": (b"<DescriptorRecordSet/>", "DescriptorRecordSet"),
    ".DS_Store": (b"\0\0", "not a format"),
}

Ingest = Callable[..., Result]


@pytest.fixture
def ingest(tmp_path: Path, tiny_encoder: Path) -> Ingest:
    def run(*arguments: object) -> Result:
        return CliRunner().invoke(
            app,
            ["ingest", *map(str, arguments), "--index", str(tmp_path / "index")],
            env={"POSOLOGY_EMBEDDER": str(tiny_encoder)},
        )

    return run


@pytest.fixture
def papers(tmp_path: Path) -> Path:
    folder = tmp_path / "papers"
    (folder / "more").mkdir(parents=True)
    for name, content in READ.items():
        (folder / name).write_bytes(content)
    for name, (content, _) in (*BAD.items(), *SKIPPED.items()):
        (folder / name).write_bytes(content)
    return folder


def test_every_file_is_read_or_named(papers: Path, ingest: Ingest, tmp_path: Path) -> None:
    result = ingest(papers, "--json")
    assert result.exit_code == 1, result.output
    out: dict[str, Any] = json.loads(result.stdout)
    jsonschema.validate(out, json.loads(SCHEMA.read_text(encoding="utf-8")))
    bad = {Path(item["path"]).name: item["reason"] for item in out["bad_files"]}
    skipped = {Path(item["path"]).name: item["reason"] for item in out["skipped"]}
    assert set(bad) == set(BAD)
    assert set(skipped) == {*SKIPPED, "more"}
    for name, (_, word) in (BAD | SKIPPED).items():
        assert word in (bad | skipped)[name], name
    assert out["files"] == len(READ) + len(BAD)
    assert {path.name for path in papers.iterdir()} == {*READ, *bad, *skipped}
    records = {Path(item["path"]).name for item in out["bad_records"]}
    assert records >= {
        "mendeley.bib",
        "latin1.csv",
        "torn.csv",
        "cut.ris",
        "scopus.csv",
        "citations.nbib",
    }


def test_every_file_that_is_read_is_in_the_index(
    papers: Path, ingest: Ingest, tmp_path: Path
) -> None:
    for name in READ:
        result = ingest(papers / name, "--json")
        assert result.exit_code in (0, 1), (name, result.output)
        assert json.loads(result.stdout)["good"], name


def test_a_person_is_told_of_skipped_files(ingest: Ingest, tmp_path: Path) -> None:
    folder = tmp_path / "papers"
    folder.mkdir()
    (folder / "a.tsv").write_bytes(TSV)
    for number in range(25):
        (folder / f"figure{number:02}.png").write_bytes(b"\x89PNG")
    result = ingest(folder)
    assert result.exit_code == 0
    shown = result.stderr.replace("\n", " ")
    assert "figure00.png: not a format that ingest reads" in shown
    assert "figure20.png" not in shown
    assert "5 more skipped" in shown


@pytest.mark.parametrize("name", [*BAD, "figure.png", "table.xlsx", "desc2026.xml", "none.csv"])
def test_given_singly_it_is_an_error_and_no_index_is_made(
    papers: Path, ingest: Ingest, tmp_path: Path, name: str
) -> None:
    result = ingest(papers / name, "--json")
    assert result.exit_code == 3
    error = json.loads(result.stdout)
    assert str(papers / name) in json.dumps(error)
    assert not (tmp_path / "index").exists()
    if name in ("figure.png", "table.xlsx"):
        assert ".nbib" in result.stdout


def test_all_given_paths_are_checked_before_any_is_read(
    papers: Path, ingest: Ingest, tmp_path: Path
) -> None:
    empty = tmp_path / "empty"
    empty.mkdir()
    (empty / "figure.png").write_bytes(b"")
    wrong = (papers / "figure.png", papers / "none.csv", empty)
    result = ingest(papers / "scopus.csv", *wrong)
    assert result.exit_code == 3
    for path in wrong:
        assert str(path) in result.stderr.replace("\n", "")
    assert not (tmp_path / "index").exists()


def test_a_damaged_file_among_others_does_not_stop_them(papers: Path, ingest: Ingest) -> None:
    result = ingest(papers / "mine.tsv", papers / "scan.pdf", "--json")
    assert result.exit_code == 1
    out = json.loads(result.stdout)
    assert (out["good"], len(out["bad_files"])) == (2, 1)


def test_a_file_without_a_suffix_is_read_by_its_content(ingest: Ingest, tmp_path: Path) -> None:
    for name, content in (("lines", b'{"id": "n:1", "text": "Salt."}\n'), ("saved", NBIB)):
        (tmp_path / name).write_bytes(content)
        assert json.loads(ingest(tmp_path / name, "--json").stdout)["good"]
