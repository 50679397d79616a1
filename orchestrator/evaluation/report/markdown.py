"""The report as Markdown; its figures are files beside it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from orchestrator.evaluation.forms import EvalOutput
from orchestrator.evaluation.report.figures import Figure
from orchestrator.evaluation.report.tables import METHOD, remarks, tables, title
from orchestrator.rendering.forms.columns import Kind, Table


def document(out: EvalOutput, drawn: Sequence[Figure]) -> str:
    """Return the report of a run."""
    return "\n".join(_lines(out, drawn)) + "\n"


def _lines(out: EvalOutput, drawn: Sequence[Figure]) -> Iterator[str]:
    yield f"# {_cell(title(out.cells))}"
    yield ""
    yield from (f"- {_cell(one)}" for one in remarks(out))
    for figure in drawn:
        yield ""
        yield f"![{figure.caption}]({figure.file})"
    for table in tables(out):
        yield ""
        yield f"## {table.title}"
        yield ""
        yield from _table(table)
    yield ""
    yield "## Method"
    yield ""
    yield from (f"- {one}" for one in METHOD)


def _table(table: Table) -> Iterator[str]:
    yield _row(one.title for one in table.columns)
    yield _row("---:" if one.kind is Kind.NUMBER else "---" for one in table.columns)
    yield from (_row(cell.text for cell in line.cells) for line in table.lines)


def _row(cells: Iterable[str]) -> str:
    return f"| {' | '.join(map(_cell, cells))} |"


def _cell(text: str) -> str:
    """Return text that neither ends a cell nor begins a tag."""
    return " ".join(text.replace("|", "\\|").replace("<", "&lt;").split())
