"""Published form of tables."""

from __future__ import annotations

from collections.abc import Iterable
from decimal import Decimal

from orchestrator.rendering.tables import NOT_ON_READ_PAGES
from posology.published.tables.forms import (
    OtherValue,
    TableCell,
    TableEstimate,
    TableField,
    TableOutput,
    TableQuote,
    TableRowOutput,
)
from posology.types import Citation, Passage
from posology.types.tables import Document
from strategies.tables.cells import Cell, Gap, TableRow
from strategies.tables.reading import Reading


def table_output(
    reading: Reading,
    rows: tuple[TableRowOutput, ...],
    *,
    left_out: tuple[str, ...] = (),
    estimate: TableEstimate | None = None,
    spent: Decimal,
) -> TableOutput:
    """Return the published form of a table."""
    return TableOutput(
        model=reading.model,
        fields=tuple(TableField.of(one) for one in reading.fields),
        rows=rows,
        left_out=left_out,
        estimate=estimate,
        spent_usd=spent,
    )


def row_output(
    row: TableRow, *, retracted: bool = False, error: str | None = None
) -> TableRowOutput:
    """Return the published form of a row.

    Args:
        row: the row.
        retracted: whether its document is retracted.
        error: why the document was not read; ``None``: it was.
    """
    return TableRowOutput(
        document=row.document.id,
        title=row.document.title,
        retracted=retracted,
        decision=row.decision,
        reasons=row.reasons,
        error=error,
        unread_pages=row.document.unread_pages,
        cells=tuple(_cell(one, row.document) for one in row.cells),
    )


def _cell(cell: Cell, document: Document) -> TableCell:
    return TableCell(
        field=cell.field.name,
        value=cell.value,
        reason=_reason(cell, document),
        refused=cell.refused,
        confidence=cell.confidence,
        backing=cell.backing,
        probability=cell.probability,
        quotes=_quotes(cell.citations, document),
        others=tuple(
            OtherValue(value=one.value or "", quotes=_quotes(one.citations, document))
            for one in cell.others
        ),
    )


def _reason(cell: Cell, document: Document) -> str | None:
    if cell.gap is Gap.NOT_REPORTED and document.unread_pages:
        return NOT_ON_READ_PAGES
    return None if cell.gap is None else cell.gap.value


def _quotes(citations: Iterable[Citation], document: Document) -> tuple[TableQuote, ...]:
    passages = {one.id: one for one in document.passages}
    return tuple(
        TableQuote(
            passage=one.passage_id,
            section=passages[one.passage_id].section,
            page=_page(passages[one.passage_id], one),
            start=one.start,
            end=one.end,
            quote=one.quote,
            ocr=_is_scanned(passages[one.passage_id], one),
        )
        for one in citations
    )


def _page(passage: Passage, citation: Citation) -> int | None:
    if passage.pages is None:
        return None
    return passage.pages.span(citation.start, citation.end)[0]


def _is_scanned(passage: Passage, citation: Citation) -> bool:
    return passage.pages is not None and passage.pages.scanned(citation.start, citation.end)
