"""Answers, searches and rows of batches as files of other programs."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterable, Sequence
from types import NoneType

from orchestrator.rendering.citations import citations
from orchestrator.rendering.evidence import ANSWER, SEARCH, answer_rows, search_rows, table
from orchestrator.rendering.kinds import Format
from orchestrator.rendering.markdown import answer_as_markdown, search_as_markdown
from orchestrator.rendering.sources import pages
from posology.published.answers import AskOutput, Evidence
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
        # a number is none that a spreadsheet could take for a formula
        named = (row.row, row.id if type(row.id) in (int, NoneType) else str(row.id), row.job)
        if row.result is not None:
            found += [(*named, *cells) for cells in answer_rows(row.result)]
        else:
            status = row.error.type if row.error else row.state and row.state.value
            found.append((*named, None, status, *(None,) * (len(ANSWER) - 2)))
    return table(("row", "id", "job", *ANSWER), found, form, header=header)


async def export_pages(
    every: AsyncIterator[Sequence[BatchRow]], form: Format
) -> AsyncIterator[str]:
    """Yield the rows of a batch as an export: a table page by page, citations at the end, each article once.

    Args:
        every: pages of its rows.
        form: any but TEXT and JSON; MARKDOWN is the table.
    """
    if form in (Format.MARKDOWN, Format.TABLE, Format.CSV):
        kind = Format.CSV if form is Format.CSV else Format.TABLE
        yield export_rows((), kind)
        async for page in every:
            yield export_rows(page, kind, header=False)
        return
    quotes: dict[tuple[str, str], Evidence] = {}
    async for page in every:
        for quote in (quote for row in page if row.result for quote in row.result.evidence):
            article = quote.passage.parent or quote.passage.id
            quotes.setdefault((article, pages(quote)), quote)
    yield citations(quotes.values(), form)
