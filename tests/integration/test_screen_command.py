"""``posology screen`` as reviewers meet it: sheets, two readers, disagreements, full texts, recall, the flow diagram."""

from __future__ import annotations

import csv
import json
from collections.abc import Callable
from pathlib import Path
from xml.etree import ElementTree

import pytest
from typer.testing import Result

from orchestrator.screening.candidates import read_candidates
from orchestrator.screening.forms import ScreeningOutput
from tests.support.commands import command_line, published
from tests.support.indices import write_rows

RELEVANT = 6
RECORDS = 40
SVG = "{http://www.w3.org/2000/svg}"


def rows() -> list[dict[str, str]]:
    subjects = ["gout in adults treated with allopurinol"] * RELEVANT
    subjects += ["the migration of geese", "wheat rust"] * ((RECORDS - RELEVANT) // 2)
    return [
        {
            "id": f"pmid:{n}",
            "pmid": str(n),
            "title": f"=Study {n}" if n == 1 else f"Study {n}",
            "text": f"We studied {subject}, series {n}.",
        }
        for n, subject in enumerate(subjects, 1)
    ]


Screened = Callable[..., ScreeningOutput]


@pytest.fixture
def cli(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., Result]:
    monkeypatch.chdir(tmp_path)
    write_rows(tmp_path / "a.jsonl", rows()[:30])
    # ten records of the first search again, one under another id
    again = [dict(one) for one in rows()[20:]]
    again[0]["id"] = "other:21"
    write_rows(tmp_path / "b.jsonl", again)
    call = command_line({"POSOLOGY_CACHE": str(tmp_path / "cache")}, "screen")
    given = ("a.jsonl", "b.jsonl", "-q", "allopurinol for gout", "-o", "review", "--json")
    return lambda *more: call(*given, *more)


@pytest.fixture
def screen(cli: Callable[..., Result]) -> Screened:
    def call(*more: str) -> ScreeningOutput:
        result = cli(*more)
        assert result.exit_code == 0, result.output
        return ScreeningOutput.model_validate(published(result, "screen"))

    return call


def refusal(result: Result) -> str:
    assert result.exit_code == 3, result.output
    return str(json.loads(result.stdout)["error"]["message"])


def sheet(name: str) -> list[dict[str, str]]:
    with Path("review", f"{name}.csv").open(encoding="utf-8-sig", newline="") as opened:
        return list(csv.DictReader(opened))


def decide(name: str, decisions: dict[str, str], *, delimiter: str = ",", **more: str) -> None:
    """Fill in rows of a sheet, as a spreadsheet program saves it."""
    filled = sheet(name)
    for row in filled:
        row.update({"decision": decisions[row["id"]], **more} if row["id"] in decisions else {})
    with Path("review", f"{name}.csv").open("w", encoding="utf-8", newline="") as opened:
        writer = csv.DictWriter(
            opened, [*filled[0], *(more.keys() - filled[0].keys())], delimiter=delimiter
        )
        writer.writeheader()
        writer.writerows(filled)


def truth(name: str) -> str:
    return "include" if int(name.rpartition(":")[2]) <= RELEVANT else "exclude"


def first_rows(name: str, count: int) -> dict[str, str]:
    return {row["id"]: truth(row["id"]) for row in sheet(name)[:count]}


def test_the_question_orders_and_duplicates_are_counted(
    screen: Screened,
) -> None:
    out = screen()
    assert [(one.file, one.records) for one in out.sources] == [("a.jsonl", 30), ("b.jsonl", 20)]
    assert (out.duplicates, out.records, out.unscreened) == (10, RECORDS, RECORDS)
    assert out.recall.at_least is None
    written = sheet("first")
    assert [row["place"] for row in written] == [str(n) for n in range(1, RECORDS + 1)]
    assert {row["id"] for row in written[:RELEVANT]} == {f"pmid:{n}" for n in range(1, 7)}
    # a spreadsheet program must not calculate a title
    assert "'=Study 1" in {row["title"] for row in written}


def test_two_readers_from_their_sheets_to_the_diagram(
    screen: Screened,
) -> None:
    readers = ("--reader", "anna", "--reader", "ben")
    screen(*readers)
    decide("anna", first_rows("anna", 30), note="seen")
    decide("ben", first_rows("ben", 20) | {"pmid:1": "exclude", "pmid:2": "Maybe"}, delimiter=";")
    out = screen(*readers)
    assert out.readers is not None
    assert (out.readers.both, out.readers.one) == (20, 10)
    assert (out.readers.disagreements, out.readers.open) == (1, 1)
    assert out.readers.kappa == pytest.approx(0.875, abs=0.03)
    assert (out.screened, out.excluded, out.reports.sought) == (30, 24, RELEVANT)
    assert sheet("anna")[0]["note"] == "seen"
    assert [row["id"] for row in sheet("disagreements")] == ["pmid:1"]
    assert sheet("disagreements")[0]["anna"] == "include"

    decide("disagreements", {"pmid:1": "exclude"})
    out = screen(*readers)
    assert out.readers is not None
    assert (out.readers.open, out.reports.sought) == (0, RELEVANT - 1)
    decide("full-text", {"pmid:2": "include", "pmid:3": "not retrieved"})
    decide("full-text", {"pmid:4": "exclude", "pmid:5": "exclude"}, reason="no comparator <5")
    reports = screen(*readers).reports
    assert (reports.assessed, reports.included, reports.not_retrieved, reports.waiting) == (
        3,
        1,
        1,
        1,
    )
    assert [(one.reason, one.reports) for one in reports.excluded] == [("no comparator <5", 2)]

    svg = ElementTree.parse("review/prisma.svg").getroot()
    lines = [one.text for one in svg.iter(f"{SVG}text")]
    for line in (
        "a.jsonl (n = 30)",
        "Duplicate records (n = 10)",
        "Records screened (n = 30)",
        "Records excluded (n = 25)",
        "Records not screened (n = 10)",
        "Reports sought for retrieval (n = 5)",
        "Reports not retrieved (n = 1)",
        "no comparator <5 (n = 2)",
        "Reports of included studies (n = 1)",
    ):
        assert line in lines


def test_reading_to_the_end_is_full_recall_and_nothing_decided_is_lost(
    screen: Screened,
) -> None:
    screen()
    decide("first", first_rows("first", 25))
    before = sheet("first")
    out = screen()
    assert out.recall.relevant == RELEVANT
    assert out.recall.next_look == RECORDS
    assert 0 < (out.recall.at_least or 0) < 1
    assert sheet("first")[:25] == before[:25]
    decide("first", first_rows("first", RECORDS))
    out = screen()
    assert (out.recall.at_least, out.recall.reached) == (1.0, True)
    assert (out.recall.next_look, out.unscreened) == (None, 0)


def test_recall_is_withheld_where_records_were_passed_over(
    screen: Screened,
) -> None:
    screen()
    decide("first", first_rows("first", 30))
    decide("first", {"pmid:1": ""})
    before = [row["id"] for row in sheet("first")]
    screen()
    # it keeps its place, and the next call says so, too
    assert [row["id"] for row in sheet("first")][:30] == before[:30]
    out = screen()
    assert out.recall.at_least is None
    assert out.recall.withheld is not None
    assert "1 records were passed over" in out.recall.withheld
    assert not out.recall.reached


def test_records_that_join_later_limit_the_statement(screen: Screened, tmp_path: Path) -> None:
    screen()
    decide("first", first_rows("first", 30))
    alone = screen().recall.at_least
    late = {"id": "pmid:99", "pmid": "99", "title": "Late", "text": "We studied late gout."}
    write_rows(tmp_path / "b.jsonl", [*rows()[20:], late])
    out = screen()
    assert out.records == RECORDS + 1
    assert {row["id"]: row["added"] for row in sheet("first")}["pmid:99"] == "30"
    # no sample of unread records has begun since
    assert screen().recall.at_least == pytest.approx(RELEVANT / (RELEVANT + 11))
    assert (alone or 0) > RELEVANT / (RELEVANT + 11)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("id,verdict\npmid:1,include\n", "first.csv:1: it needs a column named decision"),
        ("id,decision\npmid:777,include\n", "first.csv:2: no record has the id 'pmid:777'"),
        (
            "id,decision\npmid:1,perhaps\n",
            "first.csv:2: the decision on pmid:1 must be include, exclude or unsure",
        ),
        (
            "id,decision\npmid:21,include\nother:21,exclude\n",
            "first.csv:3: two rows are of pmid:21",
        ),
        ("id,decision\npmid:1,include,x\n", "first.csv:2: the row has more cells than the header"),
    ],
)
def test_a_sheet_that_cannot_be_read_is_named_and_left_alone(
    cli: Callable[..., Result], content: str, message: str
) -> None:
    Path("review").mkdir()
    Path("review/first.csv").write_text(content, encoding="utf-8")
    assert message in refusal(cli())
    assert Path("review/first.csv").read_text(encoding="utf-8") == content


def test_an_exclusion_on_full_text_needs_a_reason(
    cli: Callable[..., Result], screen: Screened
) -> None:
    screen()
    decide("first", first_rows("first", 30))
    screen()
    decide("full-text", {"pmid:2": "exclude"})
    assert "exclude (with a reason)" in refusal(cli())


def test_decisions_of_another_program_are_taken_and_the_statement_begins_behind_them(
    screen: Screened,
) -> None:
    Path("review").mkdir()
    Path("review/first.csv").write_text("id,decision\npmid:1,1\npmid:8,0\n", encoding="utf-8")
    out = screen()
    assert (out.screened, out.excluded) == (2, 1)
    assert "the place of pmid:1 in the reading order is unknown" in (out.recall.withheld or "")
    assert {row["added"] for row in sheet("first")} == {"2"}
    assert screen().recall.withheld is None


@pytest.mark.parametrize("names", [("a", "b", "c"), ("a", "a"), ("full-text",), ("../x",)])
def test_names_of_readers_are_those_of_sheets(
    cli: Callable[..., Result], names: tuple[str, ...]
) -> None:
    result = cli(*(one for name in names for one in ("--reader", name)))
    assert result.exit_code == 2
    assert "--reader" in result.output


def test_a_record_in_parts_is_one_and_a_repeated_row_a_duplicate(tmp_path: Path) -> None:
    long = "We studied gout in adults. " * 1_200
    given = [{"id": "pmid:1", "text": long}, {"id": "pmid:2", "text": "Rust."}] * 2
    found = read_candidates([write_rows(tmp_path / "a.jsonl", given)])
    assert [one.id for one in found.documents] == ["pmid:1", "pmid:2"]
    assert len(found.documents[0].passages) > 1
    assert len({part.id for part in found.documents[0].passages}) == len(
        found.documents[0].passages
    )


@pytest.mark.parametrize("order", ["abc", "cab", "acb", "bca"])
def test_records_that_a_third_one_joins_are_one_in_any_order(tmp_path: Path, order: str) -> None:
    known = {"a": {"pmid": "11111"}, "b": {"doi": "10.1000/x"}}
    known["c"] = known["a"] | known["b"]
    files = [
        write_rows(
            tmp_path / f"{name}.jsonl", [{"id": f"n:{name}", "text": "Gout.", **known[name]}]
        )
        for name in order
    ]
    found = read_candidates(files)
    assert [one.id for one in found.documents] == [f"n:{order[0]}"]
    assert found.duplicates == 2
    assert set(found.same.values()) == {f"n:{order[0]}"}


def test_parts_of_an_article_in_a_second_file_are_a_duplicate(tmp_path: Path) -> None:
    given = [{"id": f"n:a#{n}", "parent": "n:a", "text": "Gout."} for n in (1, 2)]
    files = [write_rows(tmp_path / f"{name}.jsonl", given) for name in "ab"]
    found = read_candidates(files)
    assert [[part.id for part in one.passages] for one in found.documents] == [["n:a#1", "n:a#2"]]
    assert found.sources == (("a.jsonl", 1), ("b.jsonl", 1))
    assert found.duplicates == 1


def test_what_is_said_of_a_whole_file_is_no_record(tmp_path: Path) -> None:
    hits = tmp_path / "hits.csv"
    hits.write_text(
        "PMID,Title,Abstract,Abstract (German)\n1,Salt,Gout.,Gicht.\n2,Sand,Rust.,Rost.\n"
    )
    found = read_candidates([hits])
    assert (found.sources, found.unreadable, len(found.documents)) == ((("hits.csv", 2),), 0, 2)
    assert found.bad == ()
    (remark,) = found.remarks
    assert "2 rows have text in columns that are not read (Abstract (German))" in remark


def test_what_cannot_be_read_is_identified_and_removed_before_screening(
    cli: Callable[..., Result], tmp_path: Path
) -> None:
    (tmp_path / "page.html").write_text("<p>Gout, aged <img src=ge.gif> 65 years.")
    given = [{"id": "pmid:1", "text": "Gout."}, {"id": "pmid:2"}, {"id": "pmid:3", "text": "Rust."}]
    call = command_line({"POSOLOGY_CACHE": str(tmp_path / "cache")}, "screen")
    files = (write_rows(tmp_path / "c.jsonl", given), tmp_path / "page.html")
    result = call(*map(str, files), "-q", "gout", "-o", "other", "--json")
    assert result.exit_code == 1
    out = ScreeningOutput.model_validate(published(result, "screen"))
    assert [(one.file, one.records) for one in out.sources] == [("c.jsonl", 3), ("page.html", 1)]
    assert (out.duplicates, out.unreadable, out.records) == (0, 1, 3)
    # a remark alone is no failure
    assert call(str(files[1]), "-q", "gout", "-o", "alone", "--json").exit_code == 0


def test_unreadable_copies_are_duplicates_and_an_unreadable_file_is_one_record(
    tmp_path: Path,
) -> None:
    first = write_rows(tmp_path / "a.jsonl", [{"id": "pmid:1", "text": "Gout."}])
    again = write_rows(tmp_path / "b.jsonl", [{"id": "pmid:1"}, {"id": "pmid:2"}, {"id": "pmid:2"}])
    torn = tmp_path / "c.jsonl.gz"
    torn.write_bytes(b"no gzip")
    # what cannot be cut is a passage of a record, or all of it
    whole = [
        {"id": "n:1", "text": "Rust. " * 9_000 + "x" * 40_000},
        {"id": "n:2", "text": "x" * 40_000},
    ]
    long = write_rows(tmp_path / "d.jsonl", whole)
    found = read_candidates([first, again, torn, long])
    assert dict(found.sources) == {"a.jsonl": 1, "b.jsonl": 3, "c.jsonl.gz": 1, "d.jsonl": 2}
    assert (found.duplicates, found.unreadable, len(found.documents)) == (1, 4, 2)
