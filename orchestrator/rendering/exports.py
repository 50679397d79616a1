"""Answers, searches and rows of batches as files of other programs."""

from __future__ import annotations

from collections.abc import Iterable

from orchestrator.rendering.citations import citations
from orchestrator.rendering.evidence import ANSWER, SEARCH, answer_rows, search_rows, table
from orchestrator.rendering.kinds import Format
from orchestrator.rendering.markdown import answer_as_markdown, search_as_markdown
from posology.published.answers import AskOutput
from posology.published.jobs import BatchRow
from posology.published.literature import SearchOutput


def export_answer(out: AskOutput, form: Format) -> str:
    """Return an answer or a refusal; citations are those of its quoted passages."""
    match form:
        case Format.MARKDOWN:
            return answer_as_markdown(out)
        case Format.CSV | Format.TABLE:
            return table(ANSWER, answer_rows(out), form)
        case _:
            return citations(out.evidence, form)


def export_search(out: SearchOutput, form: Format) -> str:
    """Return the passages of a search; citations are those of all of them."""
    match form:
        case Format.MARKDOWN:
            return search_as_markdown(out)
        case Format.CSV | Format.TABLE:
            return table(SEARCH, search_rows(out), form)
        case _:
            return citations((hit.passage for hit in out.hits), form)


def export_rows(rows: Iterable[BatchRow], form: Format, *, header: bool = True) -> str:
    """Return the answers of some rows of a batch as an evidence table, CSV or TABLE.

    A row that has no answer has its state, or the error's name, as status.

    Args:
        rows: the rows.
        form: CSV or TABLE.
        header: whether the names of the columns come first.
    """
    found = []
    for row in rows:
        named = (row.row, None if row.id is None else str(row.id), row.job)
        if row.result is not None:
            found += [(*named, *cells) for cells in answer_rows(row.result)]
        else:
            status = row.error.type if row.error else row.state and row.state.value
            found.append((*named, None, status, *(None,) * (len(ANSWER) - 2)))
    return table(("row", "id", "job", *ANSWER), found, form, header=header)
