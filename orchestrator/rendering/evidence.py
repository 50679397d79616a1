"""Evidence tables: a row for each verified quote of an answer, or for each passage of a search, as CSV or Markdown.

Spreadsheets run a cell that begins like a formula, and both kinds of cells may hold text of anyone: such a cell gets an
apostrophe before it.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Iterator
from decimal import Decimal

from orchestrator.rendering.kinds import Format
from orchestrator.rendering.markdown import escaped
from orchestrator.rendering.sources import cited, link, warning
from orchestrator.rendering.words import safe
from posology.published.answers import AskOutput, Source
from posology.published.literature import SearchOutput

#: a value of a cell; ``None``: unknown, an empty cell
Cell = str | int | None
Row = tuple[Cell, ...]

_SOURCE = (
    "passage", "pmid", "doi", "title", "authors", "journal", "year", "publication_types", "standing", "url",
)  # fmt: skip
#: columns of answers; offsets count code points of the passage's text
ANSWER = ("question", "status", "choice", "answer", "source", *_SOURCE, "quote", "start", "end", "page", "role")  # fmt: skip
#: columns of searches
SEARCH = ("query", "rank", *_SOURCE, "snippet", "role", "index")
#: beginnings that spreadsheets take for a formula
_FORMULA = ("=", "+", "-", "@", "\t", "\r")


def answer_rows(out: AskOutput) -> Iterator[Row]:
    """Yield a row for each quote of an answer; one without a source if nothing is quoted."""
    said = (out.question, out.status.value, out.choice, out.answer or out.refusal)
    for one in cited(out):
        for item in one.evidence:
            yield (
                *said,
                one.number,
                *_facts(one.source),
                *(item.quote, item.start, item.end, item.page, item.role),
            )
    if not out.evidence:
        yield (*said, *(None,) * (len(ANSWER) - len(said)))


def search_rows(out: SearchOutput) -> Iterator[Row]:
    """Yield a row for each passage of a search, best first."""
    for rank, hit in enumerate(out.hits, 1):
        yield (out.query, rank, *_facts(hit.passage), hit.snippet, hit.role, out.index)


def table(columns: Iterable[str], rows: Iterable[Row], form: Format, *, header: bool = True) -> str:
    """Return rows as CSV (RFC 4180) or as a table of GitHub's Markdown.

    Args:
        columns: names of the columns.
        rows: their cells; characters that are not seen are removed, and each cell is one line.
        form: CSV or TABLE.
        header: whether the names come first.
    """
    names = list(columns)
    if form is Format.TABLE:
        head = [_line(names), _line(["---"] * len(names))] if header else []
        return "".join([*head, *(_line([escaped(_text(cell)) for cell in row]) for row in rows)])
    written = io.StringIO()
    writer = csv.writer(written, lineterminator="\r\n")
    if header:
        writer.writerow(names)
    writer.writerows(map(csv_cells, rows))
    return written.getvalue()


def _facts(source: Source) -> Row:
    return (
        source.id,
        source.pmid,
        source.doi,
        source.title,
        "; ".join(source.authors),
        source.journal,
        source.year,
        "; ".join(source.publication_types),
        warning(source),
        link(source),
    )


def _line(cells: Iterable[str]) -> str:
    return f"| {' | '.join(cells)} |\n"


def _text(cell: Cell) -> str:
    return "" if cell is None else " ".join(safe(str(cell)).split())


def csv_cells(row: Iterable[object]) -> list[object]:
    """Return the cells of a row for CSV: one line each and inert in spreadsheets; an amount has all of its digits."""
    return [_inert(cell) for cell in row]


def _inert(cell: object) -> object:
    if isinstance(cell, Decimal):
        return f"{cell:f}"
    if not isinstance(cell, str):
        return cell
    text = _text(cell)
    return f"'{text}" if text.startswith(_FORMULA) else text
