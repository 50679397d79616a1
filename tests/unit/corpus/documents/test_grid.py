"""Rows of tables in JATS, HTML and Word: each names its table, itself and the column of each value."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from lxml import etree

from posology.corpus.documents import grid, html, word
from posology.corpus.documents.grid import Grid, label_of
from posology.corpus.items import Item, Record, Remark
from posology.corpus.jats import reader as jats
from posology.text.quotes import Span, locate
from posology.text.quoting.rows import read
from posology.text.sentences import split
from posology.types import UNREADABLE
from tests.support.growth import MOST, growth
from tests.support.literature import docx
from tests.support.literature import jats as article

NBSP = "\u00a0"
#: tables of XHTML's model, and their lines
TABLES = {
    "one head": (
        ("<thead><tr><th/><th>Ramipril</th><th>Placebo</th></tr></thead>"
        "<tbody><tr><td>Mortality at day 28</td><td>12.1 %</td><td>15.3 %</td></tr></tbody>"),
        ["row Mortality at day 28: Ramipril: 12.1 %; Placebo: 15.3 %."],
    ),
    "first row of th": (
        "<tr><th>Outcome</th><th>Ramipril</th></tr><tr><td>Death</td><td>12</td></tr>",
        ["row Outcome / Death: Ramipril: 12."],
    ),
    "two heads": (
        ("<thead><tr><th rowspan='2'>Outcome</th><th colspan='2'>Ramipril (n=100)</th><th colspan='2'>Placebo</th></tr>"
        "<tr><th>Events</th><th>%</th><th>Events</th><th>%</th></tr></thead>"
        "<tbody><tr><td>Death</td><td>12</td><td>12.0</td><td>15</td><td>15.2</td></tr></tbody>"),
        [("row Outcome / Death: Ramipril (n=100) / Events: 12; Ramipril (n=100) / %: 12.0; Placebo / Events: 15; "
         "Placebo / %: 15.2.")],
    ),
    "three heads, one of them over all": (
        ("<thead><tr><th colspan='3'>Intention to treat</th></tr><tr><th/><th colspan='2'>Month</th></tr>"
        "<tr><th/><th>3</th><th>6</th></tr></thead><tbody><tr><td>Pain</td><td>4.1</td><td>3.9</td></tr></tbody>"),
        ["row Intention to treat / Pain: Month / 3: 4.1; Month / 6: 3.9."],
    ),
    "groups over all columns": (
        ("<thead><tr><th/><th>A</th><th>B</th></tr></thead><tbody><tr><td colspan='3'>Safety</td></tr>"
        "<tr><td>Falls</td><td>1</td><td>2</td></tr><tr><td colspan='3'>Efficacy:</td></tr>"
        "<tr><td>Death</td><td>3</td><td>4</td></tr></tbody>"),
        ["row Safety / Falls: A: 1; B: 2.", "row Efficacy / Death: A: 3; B: 4."],
    ),
    "groups with blank cells": (
        (f"<thead><tr><th/><th>A</th><th>B</th></tr></thead><tbody><tr><td>Sex</td><td/><td>{NBSP}</td></tr>"
        f"<tr><td>{NBSP}Male</td><td>1</td><td>2</td></tr><tr><td>{NBSP}Female</td><td>3</td><td>4</td></tr>"
        "<tr><td>Age, years</td><td>54</td><td>55</td></tr></tbody>"),
        ["row Sex / Male: A: 1; B: 2.", "row Sex / Female: A: 3; B: 4.", "row Age, years: A: 54; B: 55."],
    ),
    "groups in groups": (
        ("<thead><tr><th/><th>A</th><th>B</th></tr></thead><tbody><tr><td colspan='3'>Women</td></tr>"
        "<tr><td>Bleeding</td><td/><td/></tr><tr><td style='padding-left: 1em'>Major</td><td>1</td><td>2</td></tr>"
        "<tr><td>Death</td><td>3</td><td>4</td></tr><tr><td>Clots</td><td/><td/></tr><tr><td>Deep</td><td>5</td>"
        "<td>6</td></tr></tbody>"),
        ["row Women / Bleeding / Major: A: 1; B: 2.", "row Women / Death: A: 3; B: 4.",
         "row Women / Clots / Deep: A: 5; B: 6."],
    ),
    "a group without rows": (
        ("<thead><tr><th/><th>A</th></tr></thead><tbody><tr><td>Falls</td><td>1</td></tr>"
        "<tr><td colspan='2'>Values are means.</td></tr></tbody>"),
        ["row Falls: A: 1.", "note: Values are means."],
    ),
    "a name over rows": (
        ("<thead><tr><th>Outcome</th><th>Time</th><th>A</th></tr></thead><tbody>"
        "<tr><td rowspan='2'>Pain</td><td>Day 1</td><td>5</td></tr><tr><td>Day 2</td><td>4</td></tr></tbody>"),
        ["row Outcome / Pain: Time: Day 1; A: 5.", "row Outcome / Pain: Time: Day 2; A: 4."],
    ),
    "a name above blank cells": (
        ("<thead><tr><th/><th>Time</th><th>A</th></tr></thead><tbody>"
        "<tr><td>Pain</td><td>Day 1</td><td>5</td></tr><tr><td/><td>Day 2</td><td>4</td></tr></tbody>"),
        ["row Pain: Time: Day 1; A: 5.", "row Pain: Time: Day 2; A: 4."],
    ),
    "values over columns": (
        ("<thead><tr><th/><th>A</th><th>B</th><th>C</th></tr></thead><tbody>"
        "<tr><td>Falls</td><td colspan='2'>7</td><td>8</td></tr><tr><td>Death</td><td colspan='3'>none</td></tr></tbody>"),
        ["row Falls: A and B: 7; C: 8.", "row Death: A to C: none."],
    ),
    "a value over rows": (
        ("<thead><tr><th/><th>A</th><th>P</th></tr></thead><tbody><tr><td>Men</td><td>1</td>"
        "<td rowspan='2'>&lt;0.001</td></tr><tr><td>Women</td><td>2</td></tr></tbody>"),
        ["row Men: A: 1; P: <0.001.", "row Women: A: 2; P: <0.001."],
    ),
    "unknown values": (
        ("<thead><tr><th/><th>A</th><th>B</th><th>C</th></tr></thead><tbody>"
        "<tr><td>Falls</td><td>–</td><td/><td>0</td></tr></tbody>"),
        ["row Falls: A: –; C: 0."],
    ),
    "columns without headings": (
        "<thead><tr><th>Trial</th><th>Age</th><th/></tr></thead><tbody><tr><td>One</td><td>5</td><td>0.03</td></tr></tbody>",
        ["row Trial / One: Age: 5; column 3: 0.03."],
    ),
    "rows without names": (
        "<thead><tr><th/><th>A</th><th>B</th></tr></thead><tbody><tr><td/><td>1</td><td>2</td></tr></tbody>",
        ["row 1: A: 1; B: 2."],
    ),
    "marks of the form itself": (
        ("<thead><tr><th>Arm: drug</th><th>Dose: mg; route</th></tr></thead><tbody>"
        "<tr><td>One: two</td><td>5; oral. Stopped: 2 (1.5; 3.0).</td></tr></tbody>"),
        ["row Arm – drug / One – two: Dose – mg, route: 5, oral. Stopped: 2 (1.5, 3.0)."],
    ),
    "units and signs": (
        ("<thead><tr><th/><th>Change, kg·m<sup>−2</sup></th><th>Cells, 10<sup>9</sup>/L</th></tr></thead>"
        "<tbody><tr><td>Week 4</td><td>−3.2 (−5 to −1)</td><td>&gt;10<sup>2</sup></td></tr></tbody>"),
        ["row Week 4: Change, kg·m−2: −3.2 (−5 to −1); Cells, 10^9/L: >10^2."],
    ),
    "a foot above the body": (
        ("<thead><tr><th/><th>A</th></tr></thead><tfoot><tr><td>All</td><td>3</td></tr></tfoot>"
        "<tbody><tr><td>Men</td><td>1</td></tr></tbody>"),
        ["row Men: A: 1.", "row All: A: 3."],
    ),
    "heads below rows": (
        ("<tr><th>Arm</th><th>Deaths</th></tr><tr><td>One</td><td>5</td></tr>"
        "<tr><th>Arm</th><th>Falls</th></tr><tr><td>One</td><td>6</td></tr>"),
        ["row Arm / One: Deaths: 5.", "row Arm / One: Falls: 6."],
    ),
    "a row of sums": (
        "<tr><th>Arm</th><th>Deaths</th></tr><tr><td>One</td><td>5</td></tr><tr><th>All</th><th>9</th></tr>",
        ["row Arm / One: Deaths: 5.", "row Arm / All: Deaths: 9."],
    ),
    "rows of unequal length": (
        ("<thead><tr><th/><th>A</th></tr></thead><tbody><tr><td>One</td><td>1</td><td>2</td></tr>"
        "<tr><td>Two</td><td rowspan='x' colspan='-1'>3</td></tr></tbody>"),
        ["row One: A: 1; column 3: 2.", "row Two: A: 3."],
    ),
}  # fmt: skip


def told(items: list[Item]) -> list[str]:
    """The lines of all tables, without their label."""
    texts = [item.passage.text for item in items if isinstance(item, Record)]
    lines = [line for text in texts for line in text.split("\n\n") if line.startswith("Table 2, ")]
    # a line is one sentence of its passage, and a quote of it verifies
    assert {line for line in lines if read(line)} <= {
        s.of(text) for text in texts for s in split(text)
    }
    return [line.removeprefix("Table 2, ") for line in lines]


def of_jats(folder: Path, table: str, *, foot: str = "") -> list[Item]:
    wrap = (
        "<table-wrap><label>Table 2.</label><caption><p>Results of all.</p></caption>"
        f"<table>{table}</table>{foot}</table-wrap>"
    )
    path = folder / "a.nxml"
    path.write_text(article(f"<body><p>As follows.</p>{wrap}<p>So it was.</p></body>", meta=""))
    return list(jats.read(path))


def of_html(folder: Path, body: str) -> list[Item]:
    path = folder / "a.html"
    path.write_text(f"<meta charset=utf-8><body>{body}", encoding="utf-8")
    return list(html.read(path))


@pytest.mark.parametrize(("table", "lines"), TABLES.values(), ids=TABLES)
def test_rows_of_jats_and_html(tmp_path: Path, table: str, lines: list[str]) -> None:
    assert told(of_jats(tmp_path, table)) == lines
    page = f"<p>Table 2. Results of all.</p><table>{table.replace('/>', '></td>')}</table><p>So it was."
    assert told(of_html(tmp_path, page)) == lines


def test_a_row_is_quoted_and_verified(tmp_path: Path) -> None:
    items = of_jats(tmp_path, TABLES["one head"][0])
    text = next(item.passage.text for item in items if isinstance(item, Record))
    assert text.split("\n\n") == [
        "As follows.",
        "Table 2. Results of all.",
        "Table 2, row Mortality at day 28: Ramipril: 12.1 %; Placebo: 15.3 %.",
        "So it was.",
    ]
    assert isinstance(
        locate("row Mortality at day 28: Ramipril: 12.1 %; Placebo: 15.3 %", text), Span
    )


@pytest.mark.parametrize(
    ("table", "foot", "lines"),
    [
        # notes, their marks, and references to them
        (
            ("<thead><tr><td/><td>n<sup>a</sup></td><td>A<xref ref-type='table-fn'><sup>b</sup></xref></td></tr></thead>"
            "<tbody><tr><td>Falls</td><td>12<sup>a,b</sup></td><td>5<sup>c</sup></td></tr></tbody>"),
            ("<table-wrap-foot><fn><label>a</label><p>In all.</p></fn><fn-group><fn><p><sup>b</sup>Adjusted.</p></fn>"
            "</fn-group><p>SD; n/a.</p><fn/></table-wrap-foot>"),
            ["row Falls: n: 12; A: 5^c.", "note: a In all.", "note: SD; n/a.", "note: b Adjusted."],
        ),
        # without marked headings the first row has them, if it may
        ("<tr><td>Arm</td><td>Deaths</td></tr><tr><td>One</td><td>5</td></tr>", "", ["row Arm / One: Deaths: 5."]),
        ("<tr><td>One</td><td>5</td></tr>", "", ["row One: column 2: 5."]),
        ("<thead><tr><td>Arm</td><td>Deaths</td></tr><tr><td>One</td><td>5</td></tr></thead>", "",
         ["row Arm / One: Deaths: 5."]),
        ("<tr><td>Adults.</td></tr><tr><td>With gout.</td></tr>", "",
         ["row 1: column 1: Adults.", "row 2: column 1: With gout."]),
        ("<thead><tr><td>A</td><td>B</td></tr></thead>", "", ["row A: column 2: B."]),
        (("<thead><tr><td/><td>A</td></tr></thead><tr><td>One</td><td>a<break/>b <list><list-item><p>c</p></list-item>"
         "<list-item><p>d</p></list-item></list></td></tr>"), "", ["row One: A: a b, • c, • d."]),
        ("", "", []),
    ],
)  # fmt: skip
def test_tables_of_jats(tmp_path: Path, table: str, foot: str, lines: list[str]) -> None:
    assert told(of_jats(tmp_path, table, foot=foot)) == lines


def test_of_a_picture_of_a_table_the_caption_is_read(tmp_path: Path) -> None:
    wrap = (
        "<table-wrap><label>Table 2</label><caption><p>Deaths.</p></caption><graphic/></table-wrap>"
    )
    path = tmp_path / "a.nxml"
    path.write_text(article(f"<body>{wrap}</body>", meta=""))
    texts = [item.passage.text for item in jats.read(path) if isinstance(item, Record)]
    assert texts == ["Table 2. Deaths."]


def test_a_table_of_cals_is_counted(tmp_path: Path) -> None:
    items = of_jats(tmp_path, "<tgroup><tbody><row><entry>5</entry></row></tbody></tgroup>")
    assert ["CALS" in str(item) for item in items if isinstance(item, Remark)] == [True]


ROWS = "<tr><th>Arm<th>Deaths<tr><td>One<td>5"


@pytest.mark.parametrize(
    ("body", "lines"),
    [
        (f"<table><caption>Table 2: Deaths.</caption>{ROWS}</table>", ["row Arm / One: Deaths: 5."]),
        (f"<h2>Table 2.</h2><div>Deaths.</div><table>{ROWS}</table>", ["row Arm / One: Deaths: 5."]),
        (f"<p>Table 2<table>{ROWS}<tr hidden><td>Two<td>6<tr><td>Three<td style='display:none'>7</table>",
         ["row Arm / One: Deaths: 5.", "note: Arm / Three"]),
        (f"<p>Table 2<table>{ROWS}<tbody hidden><tr><td>Two<td>6</table>", ["row Arm / One: Deaths: 5."]),
        (f"<table><tr><td>Menu<td><p>Table 2<table>{ROWS}</table></table>", ["row Arm / One: Deaths: 5."]),
        # pages that are laid out by tables
        (f"<p>Table 2<table role=presentation>{ROWS}</table>", []),
        ("<p>Table 2<table><tr><th>Menu<tr><td>Home</table>", []),
        ("<p>Table 2<table><tr><td>Arm<td>Deaths<tr><td>One<td>5</table>", []),
        ("<p>Table 2<table><tr><th>Arm<th>Deaths</table>", []),
    ],
)  # fmt: skip
def test_tables_of_pages(tmp_path: Path, body: str, lines: list[str]) -> None:
    assert told(of_html(tmp_path, body)) == lines


def test_a_table_without_a_label_has_none(tmp_path: Path) -> None:
    (record, _) = of_html(tmp_path, f"<p>Table 2<table>{ROWS}</table><table>{ROWS}</table>")
    assert isinstance(record, Record)
    assert record.passage.text.split("\n\n")[-1] == "Table, row Arm / One: Deaths: 5."


@pytest.mark.parametrize(
    ("caption", "label"),
    [
        ("Table 2. Deaths", "Table 2"),
        ("TABLE IV: x", "TABLE IV"),
        ("Supplementary Table S3 – x", "Supplementary Table S3"),
        ("eTable 1", ""),
        ("Tables are many", ""),
        ("A table 2", ""),
    ],
)
def test_labels(caption: str, label: str) -> None:
    assert label_of(caption) == label


def cell(text: str, properties: str = "", paragraph: str = "") -> str:
    shown = f"<w:pPr>{paragraph}</w:pPr><w:r><w:t>{text}</w:t></w:r>"
    return f"<w:tc><w:tcPr>{properties}</w:tcPr><w:p>{shown}</w:p></w:tc>"


def row(*cells: str, properties: str = "") -> str:
    return f"<w:tr><w:trPr>{properties}</w:trPr>{''.join(cells)}</w:tr>"


HEAD = "<w:tblHeader/>"
DOWN, GOES_ON = '<w:vMerge w:val="restart"/>', "<w:vMerge/>"
LOOK = '<w:tblPr><w:tblLook w:val="04A0"/></w:tblPr>'


def across(count: int) -> str:
    return f'<w:gridSpan w:val="{count}"/>'


@pytest.mark.parametrize(
    ("rows", "lines"),
    [
        # headings that Word repeats on each page, over columns
        (
            row(cell("Outcome", DOWN), cell("Ramipril", across(2)), cell("Placebo"), properties=HEAD)
            + row(cell("", GOES_ON), cell("Events"), cell("%"), cell("%"), properties=HEAD)
            + row(cell("Death"), cell("12"), cell("12.1"), cell("15.3")),
            ["row Outcome / Death: Ramipril / Events: 12; Ramipril / %: 12.1; Placebo / %: 15.3."],
        ),
        # the look of the table says that its first row has headings
        (LOOK + row(cell(""), cell("A")) + row(cell("Falls"), cell("1")), ["row Falls: A: 1."]),
        (
            '<w:tblPr><w:tblLook w:firstRow="1"/></w:tblPr>'
            + row(cell("Arm"), cell("Time"), cell("A"))
            + row(cell("One", DOWN), cell("Day 1"), cell("5"))
            + row(cell("hidden", GOES_ON), cell("Day 2"), cell("4")),
            ["row Arm / One: Time: Day 1; A: 5.", "row Arm / One: Time: Day 2; A: 4."],
        ),
        (
            row(cell("Arm"), cell("A"), cell("B"), properties=HEAD)
            + row(cell("Sex", across(3)))
            + row(cell("Male", paragraph='<w:ind w:left="200"/>'), cell("1"), cell("2"))
            + row(cell("Age"), cell("", '<w:hMerge w:val="restart"/>') + cell("7"), properties="")
            + row(cell("B"), properties='<w:gridBefore w:val="2"/>'),
            ["row Arm / Sex / Male: A: 1; B: 2.", "row Arm / Age: B: 7.", "row Arm / Age: B: B."],
        ),
        (
            row(cell("Arm"), cell("A"), cell("B"), properties=HEAD)
            + row(cell("One"), cell("5", '<w:hMerge w:val="restart"/>'), cell("", "<w:hMerge/>")),
            ["row Arm / One: A and B: 5."],
        ),
        # the page is laid out by it, or its first row has values
        (row(cell("Arm"), cell("A")) + row(cell("One"), cell("5")), []),
        (LOOK + row(cell("One"), cell("5")) + row(cell("Two"), cell("6")), []),
        ('<w:tblPr><w:tblLook w:val="x"/></w:tblPr>' + row(cell("Arm"), cell("A")) + row(cell("One"), cell("5")), []),
    ],
)  # fmt: skip
def test_tables_of_word(tmp_path: Path, rows: str, lines: list[str]) -> None:
    path = tmp_path / "a.docx"
    path.write_bytes(docx("Table 2. Deaths.", body=f"<w:tbl>{rows}</w:tbl>"))
    assert told(list(word.read(path))) == lines


# hostile tables


def lines_of(table: str) -> list[str]:
    element = etree.fromstring(f"<table>{table}</table>")
    found = Grid.read(element, lambda one: "".join(map(str, one.itertext())))
    return list(found.lines("Table 2", UNREADABLE))


def test_spans_beyond_all_bounds() -> None:
    head = "<tr><th/><th colspan='1000000'>A</th></tr>"
    (line,) = lines_of(
        f"{head}<tr><td rowspan='999999999'>One</td><td rowspan='0' colspan='0'>5</td></tr>"
    )
    assert line == "Table 2, row One: A: 5."


@pytest.mark.parametrize(
    ("table", "said"),
    [
        ("<tr><th>Arm</th><th>A</th></tr>" + "<tr><td>One</td><td>5</td></tr>" * 10_000, "8,001 rows and 0 cells"),
        ("<tr><th>Arm</th><th>A</th></tr><tr>" + "<td>5</td>" * 150 + "</tr>", "0 rows and 50 cells"),
        (
            "<tr><th>Arm</th><th>A</th></tr><tr><td rowspan='2000'>One</td><td rowspan='2000'>" + "word " * 9_000
            + "</td><td>1</td></tr>" + "<tr><td>2</td></tr>" * 200,
            "rows and 0 cells",
        ),
        ("<tr><th>Arm</th><th>A</th></tr><tr><td>One</td><td>" + "word " * 300_000 + "</td></tr>", "1 rows and 0 cells"),
    ],
)  # fmt: skip
def test_what_is_too_large_is_left_out_and_counted(table: str, said: str) -> None:
    lines = lines_of(table)
    assert said in lines[-1]
    assert UNREADABLE in lines[-1]
    assert sum(map(len, lines)) <= grid.MAX_CHARACTERS + 200


def test_what_is_left_out_is_reported(tmp_path: Path) -> None:
    rows = "<tr><th>Arm</th><th>A</th></tr>" + "<tr><td>One</td><td>5</td></tr>" * 2_001
    for items in (of_jats(tmp_path, rows), of_html(tmp_path, f"<p>Table 2<table>{rows}</table>")):
        bad = [item for item in items if isinstance(item, Remark)]
        assert [grid.TOO_LARGE in str(one) for one in bad] == [True]


def test_long_rows_are_several_lines_and_long_names_are_values() -> None:
    long = " ".join(f"w{i}" for i in range(250))
    lines = lines_of(
        f"<tr><th>Arm</th><th>Notes</th><th>A</th></tr><tr><td>One</td><td>{long}</td><td>5</td></tr>"
        f"<tr><td>{long}</td><td>x</td><td>6</td></tr><tr><td colspan='3'>{long}</td></tr>"
    )
    *rows, note = (line.removeprefix("Table 2, ") for line in lines)
    begins = [" ".join(row.split()[:6]) for row in rows]
    assert begins == [
        "row Arm / One: Notes: w0",
        "row Arm / One: Notes: w94",
        "row Arm / One: Notes: w188",
        *(f"row 2: Arm: w{i} w{i + 1} w{i + 2}" for i in (0, 96, 192)),
    ]
    assert max(len(line.split()) for line in rows) <= grid.LINE_WORDS
    assert rows[2].endswith(" w249; A: 5.")
    assert rows[5].endswith(" w249; Notes: x; A: 6.")
    assert note == f"note: {long}"


def test_a_heading_that_is_too_long_is_marked() -> None:
    (line,) = lines_of(f"<tr><th/><th>{'x' * 300}</th></tr><tr><td>One</td><td>5</td></tr>")
    assert line == f"Table 2, row One: {'x' * grid.NAME_CHARACTERS}{UNREADABLE}: 5."


def test_time_grows_with_the_table() -> None:
    def read_rows(count: int) -> None:
        lines_of("<tr><th>Arm</th><th>A</th></tr>" + "<tr><td rowspan='9'>One</td></tr>" * count)

    assert growth(read_rows, 50) <= MOST


_TEXTS = st.text("aB1 .;:,!?()\u3002\u00a0–=", max_size=12)
_CELLS = st.builds(
    "<{0} colspan='{1}' rowspan='{2}'>{3}</{0}>".format,
    st.sampled_from(["td", "td", "th"]),
    st.integers(0, 3),
    st.integers(0, 3),
    _TEXTS,
)
_ROWS = st.lists(
    st.lists(_CELLS, max_size=4).map(lambda cells: f"<tr>{''.join(cells)}</tr>"), max_size=6
)


@given(_ROWS, _ROWS)
def test_whatever_the_table_every_text_is_in_a_line_of_one_sentence(
    heads: list[str], body: list[str]
) -> None:
    # without any heading, a first row of the body may be taken for headings
    table = f"<thead><tr><th>H</th></tr>{''.join(heads)}</thead><tbody>{''.join(body)}</tbody>"
    lines = lines_of(table)
    text = "\n\n".join(lines)
    assert {line for line in lines if read(line)} <= {one.of(text) for one in split(text)}
    for cell in etree.fromstring(f"<table>{''.join(body)}</table>").iter("td"):
        assert letters(cell.text or "") in letters(text)


def letters(text: str) -> str:
    """The characters of a text that rows keep as they are."""
    return re.sub(r"[\s;:,.–]", "", text)
