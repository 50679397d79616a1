"""A folder as people have it: exports, notes and pictures, whole and broken. Every file is read or named."""

from __future__ import annotations

import gzip
import json
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner, Result

from orchestrator.cli.app import app
from posology.index.store import Index
from tests.support.commands import published
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
    "excel-de.csv": 'sep=;\r\nTitel;Abstract;Jahr\r\nSalz;"Salz half; \r\nein wenig.";2012\r\n'.encode(
        "utf-8-sig"
    ),
    "really-tabs.csv": b"title\tabstract\tpmid\nSalt\tSalt, which helped, was cheap.\t911\n",
    "long-field.csv": f"title,abstract,pmid\nSalt,{'Salt helped. ' * 8_000},912\nSand,Sand did not.,913\n".encode(),
    "too-long-field.csv": f"title,abstract,pmid\nSalt,{'Salt. ' * 30_000},914\nSand,Sand did not.,915\n".encode(),
    "twice.ris": RIS + b"\n" + RIS,
    "no-end.ris": b"TY  - JOUR\nTI  - Salt\nAB  - Salt helped.\nTY  - JOUR\nTI  - Sand\nAB  - It did not.\nER  -\n",
    "accents.bib": rb"""@article{a, title={{\"U}ber Salz in {C}a$^{2+}$}, author={Garc{\'i}a, Jos{\'e} and M{\"u}ller, A},
        abstract={It fell by 5\,\% to \textless{}10 \textmu g in 20~\% of {\O}re's {{patients}}.}, year=2012}""",
    "wrapped.nbib": b"PMID- 921\r\nTI  - Salt for\r\n      some.\r\nAB  - Salt helped\r\n      those who had\r\n      it.\r\n"
    b"FAU - Smith, John\r\nSO  - N. 2012.\r\n",
    "truncated.jsonl.gz": gzip.compress(
        b"".join(b'{"id": "t:%d", "text": "Salt number %d."}\n' % (n, n**9) for n in range(200)),
        1,
    )[:-900],
    "mac.csv": b"title,abstract,pmid\rSalt,Salt helped.,931\rSand,Sand did not.,932\r",
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
    "binary.csv": (bytes(range(256)) * 40, "NUL"),
    "zipped.csv": (b"PK\x03\x04" + b"\0" * 200, "NUL"),
    "no-abstracts.csv": (b"title,journal,year\nSalt,Notes,2012\n", "--column text=NAME"),
    "empty.csv": (b"", "no record"),
    "empty.txt": (b"", "empty"),
    "torn.docx": (DOCX[:-200], "damaged"),
    "scripts.html": (
        b"<html><script>alert('Salt helped.')</script><style>p {}</style></html>",
        "no text",
    ),
    "truncated.xml.gz": (gzip.compress(PUBMED, 1)[:40], ""),
    "dois.txt": (b"10.1000/a\n10.1000/b\n", "2 DOIs"),
    "bomb.xml": (
        b'<!DOCTYPE xml [<!ENTITY a "ha">]><xml><records><record>&a;</record></records></xml>',
        "entities",
    ),
}
#: files of which every record is bad
BAD_RECORDS: dict[str, bytes] = {
    "only-titles.ris": b"TY  - JOUR\nTI  - Salt\nER  -\n",
    "oops.jsonl": b"{oops\n[]\n",
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
    "._scopus.csv": (b"\0\x05\x16\x07", "macOS"),
    "~$draft.docx": (b"\0", "lock file"),
}

#: links that lead to themselves, or nowhere
LINKS = ("loop.csv", "gone.ris")

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
    folder.mkdir()
    for name, content in (READ | BAD_RECORDS).items():
        (folder / name).write_bytes(content)
    for name, (content, _) in (*BAD.items(), *SKIPPED.items()):
        (folder / name).write_bytes(content)
    (folder / "loop.csv").symlink_to(folder / "loop.csv")
    (folder / "gone.ris").symlink_to(folder / "nowhere.ris")
    return folder


def test_every_file_is_read_or_named(papers: Path, ingest: Ingest, tmp_path: Path) -> None:
    result = ingest(papers, "--json")
    assert result.exit_code == 1, result.output
    out = published(result, "ingest")
    bad = {Path(item["path"]).name: item["reason"] for item in out["bad_files"]}
    skipped = {Path(item["path"]).name: item["reason"] for item in out["skipped"]}
    # its records up to the break are read, and the break is named
    assert bad.pop("truncated.jsonl.gz").startswith("Compressed file ended")
    assert set(bad) == set(BAD)
    assert set(skipped) == {*SKIPPED, *LINKS}
    assert {skipped[name] for name in LINKS} == {"a link that leads nowhere"}
    for name, (_, word) in (BAD | SKIPPED).items():
        assert word in (bad | skipped)[name], name
    assert out["files"] == len(READ | BAD_RECORDS) + len(BAD)
    assert {path.name for path in papers.iterdir()} == {*READ, *BAD_RECORDS, *bad, *skipped}
    records = {Path(item["path"]).name for item in out["bad_records"]}
    assert records >= {
        "mendeley.bib",
        "latin1.csv",
        "torn.csv",
        "cut.ris",
        "scopus.csv",
        "citations.nbib",
        "too-long-field.csv",
        *BAD_RECORDS,
    }
    # the ids of twice.ris
    assert out["replaced"] >= 2


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


SINGLY = [*BAD, *BAD_RECORDS, *LINKS, "figure.png", "table.xlsx", "desc2026.xml", "none.csv"]


@pytest.mark.parametrize("name", SINGLY)
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


def test_several_files_without_a_readable_record_are_all_named_and_no_index_is_made(
    papers: Path, ingest: Ingest, tmp_path: Path
) -> None:
    names = [*BAD, *BAD_RECORDS]
    result = ingest(*(papers / name for name in names), "--json")
    assert result.exit_code == 3
    error = json.loads(result.stdout)["error"]
    assert error["details"]["paths"] == [str(papers / name) for name in names]
    assert f"{len(names)} inputs cannot be read" in error["message"]
    assert not (tmp_path / "index").exists()


@pytest.mark.parametrize("kept", [(), ("figure.png", ".DS_Store"), ("empty.ris", "oops.jsonl")])
def test_a_folder_without_a_readable_record_names_its_files_and_makes_no_index(
    papers: Path, ingest: Ingest, tmp_path: Path, kept: tuple[str, ...]
) -> None:
    folder = tmp_path / "folder"
    folder.mkdir()
    for name in kept:
        (papers / name).rename(folder / name)
    result = ingest(folder)
    assert result.exit_code == 3
    for name in kept or ("it is empty",):
        assert name in result.stderr.replace("\n", "")
    assert not (tmp_path / "index").exists()


def test_nothing_readable_leaves_an_index_as_it_is(
    papers: Path, ingest: Ingest, tmp_path: Path
) -> None:
    assert ingest(papers / "mine.tsv").exit_code == 0
    before = Index.open(tmp_path / "index").version
    assert ingest(papers / "empty.ris", papers / "oops.jsonl").exit_code == 3
    assert Index.open(tmp_path / "index").version == before


def test_vectors_that_do_not_fit_leave_no_index(
    papers: Path, ingest: Ingest, tmp_path: Path
) -> None:
    vectors = tmp_path / "v.npy"
    np.save(vectors, np.zeros((3, 5), np.float32))
    assert ingest(papers / "rows.jsonl", "--vectors", vectors).exit_code == 3
    assert not (tmp_path / "index").exists()
    assert ingest(papers / "rows.jsonl").exit_code == 0
    assert ingest(papers / "rows.jsonl", "--vectors", vectors).exit_code == 3
    assert Index.open(tmp_path / "index").view().count() == 1


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
    result = ingest(papers / "scan.pdf", papers / "mine.tsv", papers / "oops.jsonl", "--json")
    assert result.exit_code == 1
    out = json.loads(result.stdout)
    assert (out["good"], out["bad"], len(out["bad_files"])) == (2, 2, 1)


def test_columns_are_named_and_a_change_of_them_reads_the_table_again(
    ingest: Ingest, tmp_path: Path
) -> None:
    table = tmp_path / "registry.csv"
    table.write_text("Article,Finding,Remark\nSalt,Salt helped.,Salt was cheap.\n")
    guessed = ingest(table)
    assert guessed.exit_code == 3
    assert "Article, Finding, Remark" in guessed.stderr
    assert "--column text=NAME" in guessed.stderr
    named = ["--column", "title=Article", "--column"]
    assert json.loads(ingest(table, *named, "text=Finding", "--json").stdout)["written"] == 1
    assert json.loads(ingest(table, *named, "text=Finding", "--json").stdout)["written"] == 0
    assert json.loads(ingest(table, *named, "text=Remark", "--json").stdout)["written"] == 1
    view = Index.open(tmp_path / "index").view()
    texts = {one.passage.text for one in view.fetch(view.ids())}
    assert texts == {"Salt helped.", "Salt was cheap."}
    wrong = ingest(table, "--column", "text=Findings")
    assert wrong.exit_code == 3
    assert "no column 'Findings'" in wrong.stderr
    assert ingest(table, "--column", "texts=Finding").exit_code == 3


def test_a_file_without_a_suffix_is_read_by_its_content(ingest: Ingest, tmp_path: Path) -> None:
    for name, content in (("lines", b'{"id": "n:1", "text": "Salt."}\n'), ("saved", NBIB)):
        (tmp_path / name).write_bytes(content)
        assert json.loads(ingest(tmp_path / name, "--json").stdout)["good"]


def test_index_info_says_what_is_in_it(papers: Path, ingest: Ingest, tmp_path: Path) -> None:
    assert (
        ingest(*(papers / name for name in ("mine.tsv", "PMC70.nxml", "zotero.ris"))).exit_code == 1
    )
    info = ["index", "info", "--index", str(tmp_path / "index")]
    out = json.loads(CliRunner().invoke(app, [*info, "--json"]).stdout)
    # an article of several passages counts once
    assert (out["articles"], out["passages"]) == (5, 6)
    assert (out["first_year"], out["last_year"]) == (2012, 2012)
    assert out["sources"] == {"table": 2, "pmc": 2, "ris": 2}
    kept = sum(path.stat().st_size for path in (tmp_path / "index").rglob("*") if path.is_file())
    assert out["bytes"] == kept
    shown = CliRunner().invoke(app, info).stdout
    assert shown.splitlines()[0].startswith("changed")
    assert "table 2, pmc 2, ris 2" in shown
    assert "splitter" not in shown
    assert "splitter" in CliRunner().invoke(app, [*info, "--all"]).stdout
