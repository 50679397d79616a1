"""The report as one HTML page, figures included; nothing is fetched."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from html import escape

from orchestrator.evaluation.forms import EvalOutput
from orchestrator.evaluation.report.figures import Figure
from orchestrator.evaluation.report.tables import METHOD, remarks, tables, title
from orchestrator.rendering.forms.columns import Kind, Table

_STYLE = """
body { font: 15px/1.5 sans-serif; margin: 2em auto; max-width: 75em; padding: 0 1em; color: #222; background: #fff }
table { border-collapse: collapse; display: block; overflow-x: auto }
th, td { padding: .3em .7em; border-bottom: 1px solid #ddd; text-align: left; white-space: nowrap }
td.figure, th.figure { text-align: right; font-variant-numeric: tabular-nums }
figure { margin: 1.5em 0; overflow-x: auto }
figcaption { color: #555 }
""".strip()


def page(out: EvalOutput, drawn: Sequence[Figure]) -> str:
    """Return the report of a run."""
    return "\n".join(_lines(out, drawn)) + "\n"


def _lines(out: EvalOutput, drawn: Sequence[Figure]) -> Iterator[str]:
    name = escape(title(out.cells))
    yield '<!doctype html>\n<html lang="en">\n<head><meta charset="utf-8">'
    yield '<meta name="viewport" content="width=device-width">'
    yield f"<title>{name}</title>\n<style>\n{_STYLE}\n</style></head>\n<body>\n<h1>{name}</h1>"
    yield from _list(list(remarks(out)))
    for figure in drawn:
        yield f"<figure>{figure.svg}<figcaption>{escape(figure.caption)}</figcaption></figure>"
    for table in tables(out):
        yield from _table(table)
    yield "<h2>Method</h2>"
    yield from _list(METHOD)
    yield "</body>\n</html>"


def _list(items: Sequence[str]) -> Iterator[str]:
    yield "<ul>"
    yield from (f"<li>{escape(one)}</li>" for one in items)
    yield "</ul>"


def _table(table: Table) -> Iterator[str]:
    heads = _row(table, [one.title for one in table.columns], "th")
    yield f"<h2>{escape(table.title)}</h2>\n<table>\n<thead>{heads}</thead>\n<tbody>"
    yield from (_row(table, [cell.text for cell in line.cells], "td") for line in table.lines)
    yield "</tbody>\n</table>"


def _row(table: Table, texts: Sequence[str], tag: str) -> str:
    styled = (' class="figure"' if one.kind is Kind.NUMBER else "" for one in table.columns)
    cells = (f"<{tag}{c}>{escape(x)}</{tag}>" for c, x in zip(styled, texts, strict=True))
    return f"<tr>{''.join(cells)}</tr>"
