"""``posology ask QUESTION PATH``: files that nobody has ingested."""

from __future__ import annotations

import json
import os
import sys
import time
from pathlib import Path

import pytest
from PIL import Image
from typer.testing import CliRunner, Result

from orchestrator.cli.app import app
from orchestrator.ingest import cache
from posology.errors import ReaderUnavailable
from posology.index.sync.arrivals import files_of
from tests.support.pdfs.scans import pictured
from tests.support.pdfs.tables import LOOKS, draw

QUESTION = "What was the starting dose of atenolol?"
CLI = CliRunner()


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("POSOLOGY_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("POSOLOGY_HOME", str(tmp_path / "home"))
    monkeypatch.setenv("POSOLOGY_EMBEDDER_BACKEND", "torch")
    monkeypatch.delenv("POSOLOGY_INDEX", raising=False)
    papers = tmp_path / "papers"
    papers.mkdir()
    rows = (
        {
            "id": "n:1",
            "title": "Atenolol",
            "text": "The starting dose of atenolol was 25 mg daily.",
        },
        {"id": "n:2", "title": "Statins", "text": "Statins lower cholesterol."},
    )
    (papers / "a.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    (papers / "figure.png").write_bytes(b"\x89PNG")
    return papers


def indices(tmp_path: Path) -> list[Path]:
    return sorted((tmp_path / "cache" / "folders").glob("*"))


def test_files_are_indexed_once_and_answered_from(folder: Path, tmp_path: Path) -> None:
    first = CLI.invoke(app, ["ask", QUESTION, str(folder), "--json"])
    assert first.exit_code == 0, first.output
    assert "25 mg" in json.loads(first.stdout)["evidence"][0]["quote"]
    assert "figure.png" in first.stderr
    (place,) = indices(tmp_path)
    before = {path: path.stat().st_mtime_ns for path in (place / "index").rglob("*.lance")}
    again = CLI.invoke(app, ["ask", QUESTION, str(folder), "--json"])
    assert again.stderr == ""
    assert json.loads(again.stdout)["evidence"] == json.loads(first.stdout)["evidence"]
    assert {p: p.stat().st_mtime_ns for p in (place / "index").rglob("*.lance")} == before


def test_a_row_of_a_table_in_a_pdf_is_quoted_with_its_page_and_verifies(
    folder: Path, tmp_path: Path
) -> None:
    made = draw(LOOKS["half-ruled"], 1)
    (folder / "trial.pdf").write_bytes(made.content)
    label, name, heading, value = min(made.cells)
    index = str(tmp_path / "index")
    assert CLI.invoke(app, ["ingest", str(folder), "--index", index]).exit_code == 0
    question = f"What was the {name.split(' / ')[-1]} of {heading}?"
    asked = json.loads(CLI.invoke(app, ["ask", question, "--index", index, "--json"]).stdout)
    quote = asked["evidence"][0]
    assert quote["quote"].startswith(f"{label}, row {name}: ")
    assert f"{heading}: {value}" in quote["quote"]
    assert quote["page"] == 1
    checked = CLI.invoke(app, ["quote", quote["quote"], "--index", index, "--json"])
    assert checked.exit_code == 0, checked.output


def test_another_content_is_another_index_and_the_same_elsewhere_is_not(
    folder: Path, tmp_path: Path
) -> None:
    assert CLI.invoke(app, ["ask", QUESTION, str(folder)]).exit_code == 0
    elsewhere = tmp_path / "elsewhere"
    folder.rename(elsewhere)
    assert CLI.invoke(app, ["ask", QUESTION, str(elsewhere)]).exit_code == 0
    assert len(indices(tmp_path)) == 1
    # the paper of the answer is gone, so nothing may be quoted from it
    (elsewhere / "a.jsonl").write_text(json.dumps({"id": "n:2", "text": "Statins help."}) + "\n")
    done = CLI.invoke(app, ["ask", QUESTION, str(elsewhere), "--json"])
    assert "atenolol was" not in done.stdout
    assert len(indices(tmp_path)) == 2


def test_what_could_not_be_read_is_said_with_every_answer(folder: Path, tmp_path: Path) -> None:
    (folder / "broken.xml").write_text("<PubmedArticleSet><PubmedArticle>")
    with (folder / "a.jsonl").open("a") as rows:
        rows.write("{oops\n")
    said = ["1 of 2 files could not be read: broken.xml", "1 record could not be read"]
    for _ in range(2):
        done = CLI.invoke(app, ["ask", QUESTION, str(folder), "--json"])
        assert done.exit_code == 0, done.output
        assert json.loads(done.stdout)["notes"][:2] == said
        assert all(one in done.stderr.splitlines() for one in said)
    text = CLI.invoke(app, ["ask", QUESTION, str(folder)])
    assert all(one in text.stdout for one in said)
    # of a release that wrote nothing down
    (place,) = indices(tmp_path)
    (place / "unread.json").unlink()
    older = CLI.invoke(app, ["ask", QUESTION, str(folder), "--json"])
    assert older.exit_code == 0
    assert older.stderr == ""


def test_a_remark_is_no_record_that_could_not_be_read(folder: Path) -> None:
    (folder / "page.html").write_text("<p>Those aged <img src=ge.gif> 65 had gout.")
    done = CLI.invoke(app, ["ask", QUESTION, str(folder), "--json"])
    assert done.exit_code == 0, done.output
    assert "remark: " in done.stderr
    assert "1 place could not be read" in done.stderr
    assert not any("record could not be read" in one for one in json.loads(done.stdout)["notes"])


def test_files_of_a_missing_package_do_not_stop_their_folder(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "pypdfium2", None)
    monkeypatch.setitem(sys.modules, "bibtexparser", None)
    for name in ("b.pdf", "c.pdf", "d.bib"):
        (folder / name).write_bytes(b"%PDF-1.7")
    lack = "1 .bib file, 2 .pdf files not read, their package is missing: pip install 'posology[bibtex,pdf]'"
    for _ in range(2):
        done = CLI.invoke(app, ["ask", QUESTION, str(folder), "--json"])
        assert done.exit_code == 0, done.output
        out = json.loads(done.stdout)
        assert "25 mg" in out["evidence"][0]["quote"]
        assert out["notes"][0] == lack
        assert lack in done.stderr
    one = CLI.invoke(app, ["ask", QUESTION, str(folder / "b.pdf")])
    assert one.exit_code == 4
    assert "pip install 'posology[pdf]'" in one.stderr
    # for a sync, a file left out would be a file that is gone
    with pytest.raises(ReaderUnavailable):
        files_of(folder)
    # a folder of nothing else
    (folder / "a.jsonl").unlink()
    nothing = CLI.invoke(app, ["ask", QUESTION, str(folder)])
    assert nothing.exit_code == 4
    assert "pip install 'posology[bibtex,pdf]'" in nothing.stderr


def test_pages_that_were_not_read_are_said_until_ocr_can_read_them(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "rapidocr", None)
    (folder / "a.jsonl").unlink()
    pages = [None, Image.new("L", (8, 8), 200), Image.new("L", (8, 8), 200)]
    text = ["The starting dose of atenolol was 25 mg daily."]
    (folder / "b.pdf").write_bytes(pictured(pages, texts=text))
    asked = ["ask", QUESTION, str(folder)]
    out = json.loads(CLI.invoke(app, [*asked, "--json"]).stdout)
    assert [one["passage"]["unread_pages"] for one in out["evidence"]] == [2]
    assert "Pages that could not be read: 2 of file:papers/b.pdf." in out["notes"][-1]
    assert "2 of its pages not read" in CLI.invoke(app, asked).stdout
    assert len(indices(tmp_path)) == 1
    monkeypatch.setattr(cache, "available", lambda: True)
    CLI.invoke(app, asked)
    assert len(indices(tmp_path)) == 2


def test_what_cannot_be_read_leaves_nothing(folder: Path, tmp_path: Path) -> None:
    (folder / "a.jsonl").write_text("{oops\n")
    done = CLI.invoke(app, ["ask", QUESTION, str(folder)])
    assert done.exit_code == 3
    assert indices(tmp_path) == []
    missing = CLI.invoke(app, ["ask", QUESTION, str(tmp_path / "none")])
    assert missing.exit_code == 3
    both = CLI.invoke(app, ["ask", QUESTION, str(folder), "--index", "x"])
    assert both.exit_code == 2


@pytest.mark.usefixtures("folder")
def test_words_of_a_question_are_not_taken_for_files() -> None:
    asked = CLI.invoke(app, ["ask", "Does", "aspirin", "help?"])
    assert asked.exit_code == 3
    assert '"Does aspirin help?"' in asked.stderr.replace("\n", " ")


def test_columns_are_named_and_are_part_of_what_is_cached(folder: Path, tmp_path: Path) -> None:
    (folder / "a.jsonl").unlink()
    (folder / "a.csv").write_text(
        "Drug,Finding,Remark\nAtenolol,The starting dose of atenolol was 25 mg daily.,"
        "The starting dose of atenolol was 99 mg daily.\n"
    )
    for column, dose in (("Finding", "25 mg"), ("Remark", "99 mg")):
        done = CLI.invoke(
            app, ["ask", QUESTION, str(folder), "--column", f"text={column}", "--json"]
        )
        assert dose in json.loads(done.stdout)["evidence"][0]["quote"]
    assert len(indices(tmp_path)) == 2
    assert CLI.invoke(app, ["ask", QUESTION, "--column", "text=Finding"]).exit_code == 2


@pytest.mark.parametrize(
    ("name", "value"), [("POSOLOGY_CACHE", "off"), ("POSOLOGY_EMBEDDER", "openai:any")]
)
def test_without_a_cache_or_with_a_paid_embedder_it_is_refused(
    folder: Path, name: str, value: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(name, value)
    done = CLI.invoke(app, ["ask", QUESTION, str(folder)])
    assert done.exit_code == 4
    assert "posology ingest" in done.stderr


def test_indices_of_long_ago_are_removed(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(cache, "KEPT", 1)
    old, recent = (tmp_path / "cache" / "folders" / name for name in ("old", "recent"))
    for place, days in ((old, 3), (recent, 0)):
        place.mkdir(parents=True)
        (place / "complete").touch()
        at = time.time() - days * 86_400
        os.utime(place / "complete", (at, at))
    assert CLI.invoke(app, ["ask", QUESTION, str(folder)]).exit_code == 0
    assert not old.exists()
    assert recent.exists()


def talked(folder: Path, *lines: str) -> Result:
    return CLI.invoke(app, ["chat", str(folder)], input="".join(f"{line}\n" for line in lines))


def test_a_question_of_a_conversation_is_asked_with_those_that_it_continues(folder: Path) -> None:
    found = talked(
        folder, QUESTION, "", "And in milligrams?", "/new", "Do statins lower cholesterol?"
    )
    assert found.exit_code == 0, found.output
    asked = [line for line in found.stdout.splitlines() if line.endswith("?")]
    assert asked == [QUESTION, f"{QUESTION} And in milligrams?", "Do statins lower cholesterol?"]
    assert found.stdout.count("25 mg daily") == 2
    assert "Statins lower cholesterol." in found.stdout


def test_a_question_that_fails_does_not_end_a_conversation(folder: Path) -> None:
    found = talked(folder, "/why", "a" * 9_000, QUESTION, "/what", "/why", "/quit", "never asked")
    assert found.exit_code == 1
    for said in ("no answer yet", "question", "unknown command /what"):
        assert said in found.stderr
    assert "25 mg daily" in found.stdout
    assert "by the policy router" in found.stdout
    assert "never asked" not in found.output


def test_options_of_a_conversation_are_refused_before_it(folder: Path) -> None:
    found = CLI.invoke(app, ["chat", str(folder), "--policy", "nonsense"], input=f"{QUESTION}\n")
    assert found.exit_code == 3
    assert "unknown policy" in found.stderr
    assert found.stdout == ""
