"""Support of a table's values by their quotes, by the rules and the judge that check the sentences of answers."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from posology.seams import SupportJudge
from posology.text.sentences import split
from posology.types import Answer, Excerpt, Statement
from posology.types.tables import FieldKind
from strategies.support.check import checked
from strategies.tables.cells import Cell, TableRow
from strategies.tables.reading import STRATEGY


def judged(row: TableRow, judge: Callable[[], SupportJudge | None]) -> TableRow:
    """Return a row with the support of its values. Blocking; calls no language model.

    A choice is not judged: its words are the table's, and seldom those of the document. Nor is a value that is its quote: they
    cannot differ, and whether the quote answers the field is not judged at all.

    Args:
        row: the row.
        judge: returns what judges values beside texts, if there is any to judge; ``None``: rules alone decide.
    """
    quoted = {citation.passage_id for cell in row.cells for citation in cell.citations}
    excerpts = {
        one.id: Excerpt(passage=one, sentences=split(one.text))
        for one in row.document.passages
        if one.id in quoted
    }
    return replace(row, cells=tuple(_cell(one, excerpts, judge) for one in row.cells))


def _cell(
    cell: Cell,
    excerpts: dict[str, Excerpt],
    judge: Callable[[], SupportJudge | None],
) -> Cell:
    quotes = (" ".join(one.quote.split()) for one in cell.citations)
    if cell.value is None or cell.field.kind is FieldKind.CHOICE or cell.value in quotes:
        return cell
    whole = Statement(start=0, end=len(cell.value), citations=tuple(range(len(cell.citations))))
    answer = Answer(
        text=cell.value,
        choice=None,
        citations=cell.citations,
        dropped_quotes=0,
        strategy=STRATEGY,
        statements=(whole,),
    )
    support = checked(answer, excerpts, cell.field.question, judge).support
    if support is None:
        return cell
    (found,) = support.sentences
    return replace(cell, backing=found.backing, probability=found.probability)
