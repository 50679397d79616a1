"""Evidence tables of documents and fields as files of other programs: CSV, Markdown, and a workbook of two sheets."""

from __future__ import annotations

import io
from collections.abc import Iterator, Mapping
from enum import StrEnum
from importlib.util import find_spec
from types import MappingProxyType

from orchestrator.rendering.evidence import Cell, Row, table
from orchestrator.rendering.kinds import Format
from orchestrator.rendering.words import plural, safe
from posology.errors import ConfigurationError
from posology.published.tables.forms import TableOutput, TableQuote, TableRowOutput

#: columns of the quotes
QUOTES = ("document", "field", "value", "quote", "passage", "section", "page", "start", "end", "support", "confidence")  # fmt: skip
#: stand for a value that a document does not report, and for all of one that was not read
NOT_REPORTED, NOT_READ = "not reported", "not read"
#: stands for a value that a document does not report, of whose pages some were not read
NOT_ON_READ_PAGES = f"{NOT_REPORTED} on the pages that were read"
#: most characters of a workbook's cell
_LONGEST = 32_767


class TableForm(StrEnum):
    """Format of an evidence table."""

    JSON = "json"
    CSV = "csv"
    XLSX = "xlsx"
    MARKDOWN = "markdown"


#: media types of the formats
MEDIA: Mapping[TableForm, str] = MappingProxyType(
    {
        TableForm.JSON: "application/json",
        TableForm.CSV: "text/csv",
        TableForm.XLSX: "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet",
        TableForm.MARKDOWN: "text/markdown",
    }
)


def export_table(out: TableOutput, form: TableForm) -> bytes:
    """Return a table as a file.

    Raises:
        ConfigurationError: the package that writes workbooks is not installed.
    """
    match form:
        case TableForm.JSON:
            return out.model_dump_json(indent=2).encode() + b"\n"
        case TableForm.CSV:
            return table(columns(out, quotes=True), _rows(out, quotes=True), Format.CSV).encode()
        case TableForm.MARKDOWN:
            values = table(columns(out), _rows(out), Format.TABLE)
            return f"{values}\n{table(QUOTES, quote_rows(out), Format.TABLE)}".encode()
        case TableForm.XLSX:
            return _workbook(out)


def columns(out: TableOutput, *, quotes: bool = False) -> tuple[str, ...]:
    """Return the names of the columns; with ``quotes``, each field has three more, for its evidence."""
    screened = ("decision", "reasons") if any(row.decision for row in out.rows) else ()
    more = ("quotes", "support", "confidence") if quotes else ()
    fields = (
        name
        for field in out.fields
        for name in (field.name, *(f"{field.name} {one}" for one in more))
    )
    return ("document", "title", *screened, *fields, "remarks")


def quote_rows(out: TableOutput) -> Iterator[Row]:
    """Yield a row for each quote, those of other values of a document included."""
    for row in out.rows:
        for cell in row.cells:
            for quote in cell.quotes:
                yield _quoted(row, cell.field, cell.value, quote, (cell.backing, cell.confidence))
            for other in cell.others:
                for quote in other.quotes:
                    yield _quoted(row, cell.field, other.value, quote, (None, None))


def _quoted(
    row: TableRowOutput,
    field: str,
    value: str | None,
    quote: TableQuote,
    standing: tuple[str | None, str | None],
) -> Row:
    place = (quote.passage, quote.section, quote.page, quote.start, quote.end)
    return (row.document, field, value, quote.quote, *place, *standing)


def _rows(out: TableOutput, *, quotes: bool = False) -> Iterator[Row]:
    screened = any(row.decision for row in out.rows)
    for row in out.rows:
        none = NOT_ON_READ_PAGES if row.unread_pages else NOT_REPORTED
        if row.error is not None:
            none = NOT_READ
        cells: list[Cell] = [row.document, row.title]
        if screened:
            cells += [row.decision, "; ".join(row.reasons)]
        for cell in row.cells:
            others = [f"[or: {one.value}]" for one in cell.others]
            cells.append(" ".join([cell.value or none, *others]))
            if quotes:
                said = " | ".join(one.quote for one in cell.quotes)
                cells += [said, cell.backing, cell.confidence]
        yield (*cells, "; ".join(_remarks(row)))


def _remarks(row: TableRowOutput) -> Iterator[str]:
    """Yield what a reader of a row must know: a retraction, a failure, unread pages, and values that were refused."""
    if row.retracted:
        yield "RETRACTED"
    if row.error is not None:
        yield f"not read: {row.error}"
        return
    if row.unread_pages:
        yield f"{plural(row.unread_pages, 'page')} not read"
    for cell in row.cells:
        if cell.value is None and cell.refused is not None:
            yield f"{cell.field}: {cell.reason}"


def check_form(form: TableForm) -> None:
    """Find out, before anything is paid for, whether a table can be written in a form.

    Raises:
        ConfigurationError: a package is not installed.
    """
    if form is TableForm.XLSX and find_spec("xlsxwriter") is None:
        raise ConfigurationError(
            "workbooks need a package that is not installed: pip install 'posology[xlsx]', or write .csv"
        )


def _workbook(out: TableOutput) -> bytes:
    check_form(TableForm.XLSX)
    import xlsxwriter

    written = io.BytesIO()
    # texts stay texts, whatever they begin with
    inert = {"strings_to_formulas": False, "strings_to_urls": False, "strings_to_numbers": False}
    with xlsxwriter.Workbook(written, {"in_memory": True, **inert}) as book:
        head = book.add_format({"bold": True})
        wrapped = book.add_format({"text_wrap": True, "valign": "top"})
        for name, names, rows in (
            ("Table", columns(out), _rows(out)),
            ("Quotes", QUOTES, quote_rows(out)),
        ):
            sheet = book.add_worksheet(name)
            sheet.write_row(0, 0, names, head)
            sheet.freeze_panes(1, 1)
            sheet.set_column(0, len(names) - 1, 24)
            for number, row in enumerate(rows, 1):
                for place, cell in enumerate(row):
                    if isinstance(cell, str):
                        sheet.write_string(number, place, safe(cell)[:_LONGEST], wrapped)
                    elif cell is not None:
                        sheet.write_number(number, place, cell, wrapped)
    return written.getvalue()
