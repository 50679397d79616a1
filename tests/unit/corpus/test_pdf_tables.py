"""Tables of PDFs become rows where their grid is certain, and stay text elsewhere; ``evals.corpus.pdf_tables`` measures more."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from evals.corpus.pdf_tables import score
from posology.corpus import pdf
from posology.corpus.items import Record, Remark
from posology.corpus.pdf import process
from posology.corpus.pdf.layout import lines
from posology.corpus.pdf.process import Rule, Word
from posology.corpus.pdf.tables.place import Tables
from posology.text.quoting.rows import rows_of
from posology.types import Passage
from tests.support.pdfs.sheet import LEFT, Sheet, sheet
from tests.support.pdfs.tables import LOOKS, any_look, draw

#: of the kinds, those that a quick run reads
_QUICK = (
    "ruled, spanning heads",
    "half-ruled, spanning heads",
    "unruled, plain heads",
    "turned text",
)
_KINDS = [name if name in _QUICK else pytest.param(name, marks=pytest.mark.slow) for name in LOOKS]
_X = (LEFT, LEFT + 130, LEFT + 210, LEFT + 290)
_HEAD = ("Outcome", "Ramipril", "Placebo")
_BODY = (("Mortality", "12.1", "15.3"), ("Stroke", "3.4", "4.9"), ("Bleeding", "1.2", "1.1"))


def passages(path: Path) -> list[Passage]:
    return [item.passage for item in pdf.read(path) if isinstance(item, Record)]


def rows(path: Path) -> list[str]:
    texts = [one.text for one in passages(path)]
    return [text[start:end] for text in texts for start, end in rows_of(text)]


def typeset(
    path: Path,
    lines: list[tuple[float, tuple[str, ...]]],
    rules: tuple[float, ...] = (768, 754, 700),
    caption: str = "Table 1. Outcomes of the trial",
) -> Path:
    """Write a table: its lines with their heights, and level rules."""
    made = sheet()
    _table(made, lines, rules, caption)
    path.write_bytes(made.done().content)
    return path


def _table(
    made: Sheet, lines: list[tuple[float, tuple[str, ...]]], rules: tuple[float, ...], caption: str
) -> None:
    made.canvas.setFont("Times-Roman", 10)
    made.canvas.drawString(LEFT, 772, caption)
    for y, texts in lines:
        for x, text in zip(_X, texts, strict=False):
            made.canvas.drawString(x, y, text)
    for y in rules:
        made.canvas.line(LEFT, y, LEFT + 330, y)


def body(
    *more: tuple[str, ...], head: tuple[str, ...] = _HEAD
) -> list[tuple[float, tuple[str, ...]]]:
    return [(757, head), *((742 - 12 * i, row) for i, row in enumerate((*_BODY, *more)))]


@pytest.mark.parametrize("name", _KINDS)
def test_no_cell_of_a_table_is_false(tmp_path: Path, name: str) -> None:
    found = score(draw(LOOKS[name], list(LOOKS).index(name)), tmp_path / "a.pdf")
    assert found.false == frozenset()
    refused = name == "half-ruled, spanning heads without rules"
    assert found.right == (0 if refused else found.wanted)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(400, 430))
def test_no_cell_of_a_table_of_any_look_is_false(tmp_path: Path, seed: int) -> None:
    assert score(draw(any_look(seed), seed), tmp_path / "a.pdf").false == frozenset()


def test_a_table_is_its_caption_rows_and_notes_in_place_of_its_text(tmp_path: Path) -> None:
    path = tmp_path / "a.pdf"
    path.write_bytes(draw(replace(LOOKS["half-ruled, notes"], rows=3), 5).content)
    text = "\n\n".join(one.text for one in passages(path))
    caption, *read, note = text[text.index("Table 1. ") :].split("\n\n")[:5]
    assert caption == "Table 1. Outcomes of the patients"
    assert all(one.startswith("Table 1, row ") for one in read)
    assert note.startswith("Table 1, note: Values are means or numbers of patients. HR = ")
    assert " | " not in text
    (passage,) = {one.id: one for one in passages(path) if "Table 1, row" in one.text}.values()
    assert passage.page == 1


def test_marks_of_notes_are_no_part_of_a_number(tmp_path: Path) -> None:
    made = sheet()
    _table(made, body(), (768, 754, 712), "Table 1. Outcomes of the trial")
    for text, x, y, size in (
        ("a", _X[1] + 17.8, 746, 6),
        ("a", LEFT, 705, 6),
        ("After a year.", LEFT + 4, 702, 8),
    ):
        made.canvas.setFont("Times-Roman", size)
        made.canvas.drawString(x, y, text)
    made.set(3, LEFT, 650, 400)
    path = tmp_path / "a.pdf"
    path.write_bytes(made.done().content)
    assert rows(path)[0] == "Table 1, row Outcome / Mortality: Ramipril: 12.1; Placebo: 15.3."


@pytest.mark.parametrize(
    ("made", "rules"),
    [
        (body(head=("Outcome", "Ramipril")), (768, 754, 712)),
        (body(head=("Outcome", "Mean", "Mean")), (768, 754, 712)),
        (body(head=("Mortality", "10.1", "11.3")), (768, 754, 712)),
        (body(("Death from", "9.1", "8.7"), ("Any stroke",)), (768, 754, 688)),
        (body(("", "9.1", "8.7")), (768, 754, 700)),
        (body(("A name that is so long that it reaches", "", "8.7")), (768, 754, 700)),
        (body(("Admission", "9.1 10.2", "8.7")), (768, 754, 700)),
        (body(("", "once", "daily"), ("for long", "by mouth", "as well")), (768, 754, 688)),
        (body(), (768,)),
    ],
    ids=[
        "a column without heading", "one heading twice", "no headings", "a name without values", "values without a name",
        "words across columns", "two values in a cell", "lines that go on", "no rule below the headings",
    ],
)  # fmt: skip
def test_what_is_not_certain_stays_text(
    tmp_path: Path,
    made: list[tuple[float, tuple[str, ...]]],
    rules: tuple[float, ...],
) -> None:
    path = typeset(tmp_path / "a.pdf", made, rules)
    assert rows_without(path, "Table 1. ") == []
    assert any(" | " in one.text for one in passages(path))
    assert remarks(path) == ["Table 1 (page 1) stays text: its rows and columns are not certain"]


def remarks(path: Path) -> list[str]:
    return [item.reason for item in pdf.read(path) if isinstance(item, Remark)]


def test_tables_that_stay_text_are_one_remark(tmp_path: Path) -> None:
    made = sheet()
    for caption in (
        "Table 1. Outcomes of the trial",
        "Table 1 (continued)",
        "Table 2. Harms",
        "Table 2. They were rare",
        "Table 3. Costs",
    ):
        rules = (768, 754, 712) if caption.startswith("Table 1. ") else (768,)
        _table(made, body(), rules, caption)
        made.turn()
    path = tmp_path / "a.pdf"
    path.write_bytes(made.done().content)
    (reason,) = remarks(path)
    assert reason.startswith("3 of 4 tables stay text")
    assert reason.endswith(": Table 1, continued (page 2), Table 2 (page 3), Table 3 (page 5)")


def rows_without(path: Path, caption: str) -> list[str]:
    assert any(caption in one.text for one in passages(path))
    return rows(path)


def test_the_same_table_with_a_caption_is_rows_and_without_one_is_text(tmp_path: Path) -> None:
    path = tmp_path / "a.pdf"
    assert len(rows(typeset(path, body(), (768, 754, 712)))) == 3
    assert remarks(path) == []
    for caption in ("Outcomes of the trial", "Table 1 shows the outcomes", "See Table 1. Outcomes"):
        assert rows(typeset(path, body(), (768, 754, 712), caption)) == []
        assert remarks(path) == []


def rules_and_words(path: Path) -> tuple[Mapping[int, Mapping[float, Sequence[Rule]]], list[Word]]:
    glyphs = process.glyphs(path)
    (words,) = glyphs.pages
    return glyphs.rules, words


def test_rules_are_looked_at_only_on_pages_with_captions(tmp_path: Path) -> None:
    path = typeset(tmp_path / "a.pdf", body(), (768, 754, 712), caption="Outcomes")
    assert rules_and_words(path)[0] == {}
    rules, _ = rules_and_words(typeset(path, body(), (768, 754, 712)))
    assert [round(one.x1 - one.x0) for one in rules[1][0]] == [330] * 3


def test_a_page_with_a_refused_table_reads_as_before(tmp_path: Path) -> None:
    path = tmp_path / "a.pdf"
    path.write_bytes(draw(LOOKS["half-ruled, spanning heads without rules"], 9).content)
    rules, words = rules_and_words(path)
    assert Tables().lines(words, 1, rules[1]) == lines(words, 1)
