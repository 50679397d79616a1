"""``posology table`` as a person meets it: price, cap, resumption, batches, files, and every quote in its document."""

from __future__ import annotations

import csv
import gzip
import io
import itertools
import json
import sys
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import jsonschema
import pytest
from PIL import Image
from typer.testing import Result

from orchestrator.rendering import tables
from orchestrator.rendering.tables import TableForm, export_table
from orchestrator.screening.candidates import read_candidates
from orchestrator.tables.documents import read_papers
from posology.corpus.files import read
from posology.corpus.items import Record
from posology.published.tables.forms import TableOutput
from posology.testing import Reply, StubProvider
from posology.testing.provider.batches.book import BatchBook
from posology.testing.provider.echo import echo
from posology.types import Usage
from tests.support.commands import Cli, command_line
from tests.support.indices import write_rows
from tests.support.paid_runs import MODEL, kill_when
from tests.support.pdfs.scans import pictured

SCHEMAS = Path(__file__).resolve().parents[2] / "docs" / "schema"
USED = Usage(input=400, output=60)
ENVIRONMENT = {"POSOLOGY_ATTEMPTS": "1", "OPENAI_API_KEY": "sk-test", "COLUMNS": "200"}
FIELDS = """
preset = "pico"
criteria = ["Adults with gout"]

[[fields]]
name = "weeks"
question = "How many weeks did it last?"
type = "number"

[[fields]]
name = "arm"
question = "Which arms were there?"
type = "choice"
choices = ["one", "two"]
"""


def body_of(number: int) -> str:
    return (
        f"Trial {number} compared two drugs in adults with gout. A total of {number + 20} patients took part. "
        "It lasted for 12 weeks. Nobody was lost."
    )


@pytest.fixture
def papers(tmp_path: Path) -> Path:
    rows = [{"id": f"t:{n}", "title": f"Trial {n}", "text": body_of(n)} for n in range(6)]
    return write_rows(tmp_path / "papers.jsonl", rows)


@pytest.fixture
def cli(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Cli:
    monkeypatch.chdir(tmp_path)
    return command_line(ENVIRONMENT, "table")


def answering(text: Callable[[Any], str] = echo) -> StubProvider:
    return StubProvider(lambda _: Reply(text=text, usage=USED))


def published(result: Result, status: int = 0) -> TableOutput:
    assert result.exit_code == status, result.output
    out = json.loads(result.stdout)
    jsonschema.validate(out, json.loads((SCHEMAS / "table.json").read_text(encoding="utf-8")))
    return TableOutput.model_validate_json(result.stdout)


def check_quotes(out: TableOutput, texts: dict[str, str]) -> int:
    """Check that every value has a quote and that every quote is in its document; return the number of quotes."""
    count = 0
    for row in out.rows:
        for cell in row.cells:
            assert (cell.value is None) == (not cell.quotes) == (cell.reason is not None)
            for quote in itertools.chain(cell.quotes, *(one.quotes for one in cell.others)):
                assert texts[quote.passage][quote.start : quote.end] == quote.quote
                count += 1
    return count


def test_a_table_of_own_fields_in_every_format(cli: Cli, papers: Path, tmp_path: Path) -> None:
    (tmp_path / "f.toml").write_text(FIELDS, encoding="utf-8")
    arguments = [str(papers), "--fields", "f.toml", "--model", MODEL, "--json"]
    with answering() as stub:
        dry = published(cli(*arguments, "-o", "t.csv", "--dry-run", stub=stub))
        assert not stub.requests
        assert not list(tmp_path.glob("t.*"))
        out = published(cli(*arguments, "-o", "t.csv", stub=stub))
        assert len(stub.requests) == 6
        for name in ("t.xlsx", "t.md", "t.json"):
            assert published(cli(*arguments, "-o", name, stub=stub)).rows == out.rows
        # another format, the same replies
        assert len(stub.requests) == 6
    assert dry.rows == ()
    assert dry.estimate is not None
    assert (dry.estimate.documents, dry.estimate.calls, dry.estimate.read) == (6, 6, 0)
    assert 0 < out.spent_usd <= dry.estimate.worst_usd
    assert dry.estimate.low_usd <= dry.estimate.expected_usd <= dry.estimate.worst_usd
    assert check_quotes(out, {f"t:{n}": body_of(n) for n in range(6)}) == 6 * 11
    first = {cell.field: cell.value for cell in out.rows[0].cells}
    assert (first["weeks"], first["n"], first["arm"]) == ("0", "0", "one")
    assert (out.rows[0].decision, out.rows[0].reasons) == ("include", ())
    rows = list(csv.DictReader(io.StringIO((tmp_path / "t.csv").read_text(encoding="utf-8"))))
    assert [row["document"] for row in rows] == [f"t:{n}" for n in range(6)]
    assert rows[0]["population quotes"] == "Trial 0 compared two drugs in adults with gout."
    with zipfile.ZipFile(tmp_path / "t.xlsx") as book:
        assert b'name="Quotes"' in book.read("xl/workbook.xml")
    assert json.loads((tmp_path / "t.json").read_text(encoding="utf-8"))["rows"]


def test_a_table_beside_its_papers_is_none_of_them(cli: Cli, tmp_path: Path) -> None:
    folder = tmp_path / "papers"
    folder.mkdir()
    rows = [{"id": f"t:{n}", "title": f"Trial {n}", "text": body_of(n)} for n in range(2)]
    (folder / "p.jsonl").write_text("\n".join(map(json.dumps, rows)), encoding="utf-8")
    with answering() as stub:
        for _ in range(2):
            out = published(
                cli("papers", "--model", MODEL, "-o", "papers/t.csv", "--json", stub=stub)
            )
            assert [row.document for row in out.rows] == ["t:0", "t:1"]
            assert not out.left_out
        assert len(stub.requests) == 2


def test_a_workbook_that_cannot_be_written_costs_nothing(
    cli: Cli, papers: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tables, "find_spec", lambda _: None)
    with answering() as stub:
        result = cli(str(papers), "--model", MODEL, "-o", "t.xlsx", stub=stub)
        assert result.exit_code == 4, result.output
        assert "posology[xlsx]" in result.stderr
        assert not stub.requests


def test_copies_of_a_document_are_paid_for_once(cli: Cli, tmp_path: Path) -> None:
    rows = [{"id": f"t:{n}", "title": "Trial", "text": body_of(0)} for n in range(4)]
    papers = write_rows(tmp_path / "copies.jsonl", rows)
    with answering() as stub:
        out = published(cli(str(papers), "--model", MODEL, "--json", "-o", "t.csv", stub=stub))
        assert len(stub.requests) == 1
    assert out.estimate is not None
    assert out.estimate.calls == 1
    assert [row.document for row in out.rows] == [f"t:{n}" for n in range(4)]
    assert check_quotes(out, {f"t:{n}": body_of(0) for n in range(4)})


def test_a_remark_leaves_no_document_out(tmp_path: Path) -> None:
    page = tmp_path / "a.html"
    page.write_text("<p>Aged <img src=ge.gif> 65.")
    read = read_papers([page])
    assert (len(read.documents), read.bad) == (1, ())
    (remark,) = read.remarks
    assert "1 place could not be read" in remark


def test_a_notice_retracts_the_article_that_it_names_by_another_number(tmp_path: Path) -> None:
    rows = "PMID,DOI,Title,Abstract\n1,10.1000/Salt.1,Salt,Salt helped.\n"
    rows += "2,10.1000/salt.2,Retraction: Salt. doi: 10.1000/salt.1,It is retracted.\n"
    hits = tmp_path / "hits.csv"
    hits.write_text(rows)
    assert read_papers([hits]).retracted == read_candidates([hits]).retracted == {"pmid:1"}


def inventing(body: Any) -> str:
    """Sends a value that no sentence has, one of a sentence that there is not, and leaves the rest out."""
    cell = {"confidence": "high", "sentences": ["1.2"]}
    return json.dumps(
        {
            "cells": [
                cell | {"field": "n", "value": "999"},
                cell | {"field": "funding", "value": "a maker of drugs", "sentences": ["1.40"]},
                cell | {"field": "design", "value": "a dream"},
            ]
        }
    )


def test_a_value_without_a_standing_quote_is_never_shown(
    cli: Cli, papers: Path, tmp_path: Path
) -> None:
    with answering(inventing) as stub:
        out = published(cli(str(papers), "--model", MODEL, "-o", "t.csv", "--json", stub=stub))
    cells = {cell.field: cell for cell in out.rows[0].cells}
    assert {cell.value for cell in cells.values()} == {None}
    assert cells["n"].reason == "the named sentences do not have its numbers, drugs or words"
    assert cells["n"].refused == "999"
    assert cells["funding"].reason == "the reply names no sentence of the document"
    assert cells["design"].reason == "the reply is none of the choices"
    assert cells["population"].reason == "the reply leaves the field out"
    written = (tmp_path / "t.csv").read_text(encoding="utf-8")
    assert "999" not in written
    assert "a maker of drugs" not in written
    assert "n: the named sentences do not have its numbers, drugs or words" in written


def silent(body: Any) -> str:
    """Reports no value."""
    reply = json.loads(echo(body))
    return json.dumps({"cells": [cell | {"value": None} for cell in reply["cells"]]})


def test_a_cell_without_a_value_says_that_pages_were_not_read(
    cli: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "rapidocr", None)
    pages = [None, Image.new("L", (8, 8), 200)]
    (tmp_path / "p.pdf").write_bytes(pictured(pages, texts=["Salt was given to two adults."]))
    with answering(silent) as stub:
        out = published(cli("p.pdf", "--model", MODEL, "-o", "t.csv", "--json", stub=stub))
        done = cli("p.pdf", "--model", MODEL, "-o", "t.csv", stub=stub)
    (row,) = out.rows
    assert row.unread_pages == 1
    unread = "not reported on the pages that were read"
    assert {cell.reason for cell in row.cells} == {unread}
    assert f"{row.document}: 1 page not read" in done.stderr
    (line,) = csv.DictReader(io.StringIO((tmp_path / "t.csv").read_text(encoding="utf-8")))
    assert {line[field.name] for field in out.fields} == {unread}
    assert line["remarks"] == "1 page not read"


def test_cells_are_no_formulas(cli: Cli, tmp_path: Path) -> None:
    text = "=HYPERLINK(A1) was given to two adults. +1 was too. Nobody was lost."
    papers = write_rows(tmp_path / "p.jsonl", [{"id": "-1+1", "title": "@SUM(A1)", "text": text}])
    with answering() as stub:
        out = published(cli(str(papers), "--model", MODEL, "-o", "t.csv", "--json", stub=stub))
    for row in csv.reader(io.StringIO((tmp_path / "t.csv").read_text(encoding="utf-8"))):
        assert not [cell for cell in row if cell.startswith(("=", "+", "-", "@"))]
    with zipfile.ZipFile(io.BytesIO(export_table(out, TableForm.XLSX))) as book:
        assert not [
            n for n in book.namelist() if n.startswith("xl/work") and b"<f>" in book.read(n)
        ]


def test_a_cap_stops_it_and_a_higher_one_goes_on(cli: Cli, papers: Path, tmp_path: Path) -> None:
    arguments = [str(papers), "--model", MODEL, "-o", "t.csv"]
    with answering() as stub:
        stopped = cli(*arguments, "--max-cost", "0.001", stub=stub)
        assert "--max-cost for the whole table: $0.001000 remaining" in stopped.stderr
        assert stopped.exit_code == 11, stopped.output
        assert "t.run.jsonl" in stopped.stderr
        before = len(stub.requests)
        assert 0 < before < 6
        assert not (tmp_path / "t.csv").exists()
        done = cli(*arguments, stub=stub)
        assert done.exit_code == 0, done.output
        assert len(stub.requests) == 6
    assert "6 documents, 48 cells: 48 with verified quotes" in done.stderr


def test_a_document_that_fails_is_named_and_asked_again(cli: Cli, papers: Path) -> None:
    def failing(body: Any) -> str:
        return "no" if "Trial 3" in json.dumps(body["messages"]) else echo(body)

    arguments = [str(papers), "--model", MODEL, "-o", "t.csv", "--json"]
    with answering(failing) as stub:
        out = published(cli(*arguments, stub=stub), 1)
        (row,) = [row for row in out.rows if row.error]
        assert row.document == "t:3"
        assert row.error is not None
        assert row.error.startswith("SchemaViolation: ")
        assert {cell.reason for cell in row.cells} == {"the document was not read"}
        shown = csv.DictReader(io.StringIO(export_table(out, TableForm.CSV).decode()))
        (failed,) = [line for line in shown if line["document"] == "t:3"]
        assert [failed[field.name] for field in out.fields] == ["not read"] * len(out.fields)
        before = len(stub.requests)
    with answering() as stub:
        again = published(cli(*arguments, stub=stub))
        assert before > 1 == len(stub.requests)
    assert again.spent_usd > out.spent_usd


def test_batches_cost_half(cli: Cli, papers: Path, tmp_path: Path) -> None:
    arguments = [str(papers), "--model", MODEL, "--json"]
    with answering() as stub:
        live = published(cli(*arguments, "-o", "a.csv", stub=stub))
    at_once = {"POSOLOGY_BATCH_WAIT": "0", "POSOLOGY_BATCH_POLL": "0.1"}
    book = BatchBook(lambda _: Reply(text=echo, usage=USED))
    with StubProvider(batches=book) as stub:
        batched = published(cli(*arguments, "-o", "b.csv", "--tier", "batch", stub=stub, **at_once))
    assert batched.rows == live.rows
    assert batched.spent_usd * 2 == live.spent_usd
    assert len(book.ledger.entries()) == 6


def test_a_run_that_is_killed_pays_for_no_call_twice(
    papers: Path, tmp_path: Path, cli: Cli
) -> None:
    run = tmp_path / "t.run.jsonl"
    arguments = [str(papers), "--model", MODEL, "-o", "t.csv"]
    slow = {"POSOLOGY_CONCURRENCY": "1"}

    def some() -> bool:
        return run.exists() and run.read_bytes().count(b'"row":"reply"') > 1

    # the third reply never comes, so that the kill is in mid-work
    numbers = itertools.count(1)
    first = StubProvider(
        lambda _: Reply(text=echo, usage=USED, latency=0 if next(numbers) < 3 else 600)
    )
    with first as stub:
        served = {"OPENAI_BASE_URL": stub.openai_url}
        kill_when(some, ["table", *arguments], ENVIRONMENT | slow | served, tmp_path)
    kept = run.read_bytes().count(b'"row":"reply"')
    with answering() as stub:
        out = published(cli(*arguments, "--json", stub=stub))
        assert len(stub.requests) == 6 - kept
    assert len(out.rows) == 6


@pytest.mark.parametrize(
    ("arguments", "status", "said"),
    [
        (["papers.jsonl", "-o", "t.pdf"], 2, ".xlsx"),
        (["none.jsonl", "-o", "t.csv"], 3, "no such file"),
        (["papers.jsonl", "-o", "t.csv", "--preset", "mine"], 3, "preset"),
        (["papers.jsonl", "-o", "t.csv", "--fields", "none.toml"], 3, "No such file"),
        (["papers.jsonl", "-o", "t.csv", "--fields", "papers.jsonl"], 3, "not TOML"),
        (["papers.jsonl", "-o", "t.csv", "--criterion", ""], 3, "criteria"),
    ],
)
def test_what_is_wrong_is_said(
    cli: Cli, papers: Path, arguments: list[str], status: int, said: str
) -> None:
    assert papers.name == "papers.jsonl"
    result = cli(*arguments)
    assert result.exit_code == status, result.output
    assert said in " ".join(result.output.split())


@pytest.mark.parametrize(
    ("toml", "said"),
    [
        ('[[fields]]\nname = "A b"\nquestion = "?"', "fields.0.name"),
        ('[[fields]]\nname = "n"\nquestion = ""', "fields.0.question"),
        ('[[fields]]\nname = "title"\nquestion = "?"', "taken by another column"),
        ('[[fields]]\nname = "remarks"\nquestion = "?"', "taken by another column"),
        ('[[fields]]\nname = "x"\nquestion = "?"\ntype = "choice"', "at least two choices"),
        ('[[fields]]\nname = "x"\nquestion = "?"\nkind = "text"', "unknown field"),
        ('preset = "pico"\n[[fields]]\nname = "n"\nquestion = "?"', "two fields have the name 'n'"),
    ],
)
def test_fields_are_checked_before_anything_is_spent(
    cli: Cli, papers: Path, tmp_path: Path, toml: str, said: str
) -> None:
    (tmp_path / "f.toml").write_text(toml, encoding="utf-8")
    result = cli(str(papers), "--fields", "f.toml", "-o", "t.csv")
    assert result.exit_code == 3, result.output
    assert said in " ".join(result.output.split())


@pytest.mark.slow
@pytest.mark.parametrize("model", ["offline:extractive", MODEL])
def test_twenty_articles(cli: Cli, shared_data: Path, tmp_path: Path, model: str) -> None:
    with gzip.open(shared_data / "evidence_inference_articles.jsonl.gz", "rt") as file:
        articles = [json.loads(line) for line in itertools.islice(file, 20)]
    texts = {one["pmcid"]: one["text"] for one in articles}
    papers = write_rows(tmp_path / "p.jsonl", [{"id": i, "text": t} for i, t in texts.items()])
    with answering() as stub:
        out = published(cli(str(papers), "--model", model, "-o", "t.xlsx", "--json", stub=stub))
    assert [row.document for row in out.rows] == list(texts)
    # the long ones are read as parts
    shown = {one.passage.id: one.passage.text for one in read(papers) if isinstance(one, Record)}
    assert len(shown) > len(texts)
    assert check_quotes(out, shown) >= 60
    assert sum(len(row.cells) for row in out.rows) == 160
