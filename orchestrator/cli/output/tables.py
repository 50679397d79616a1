"""Tables that fit their reader: no cell is ever cut.

A table that is wider than the terminal is printed as a list of records. In a pipe a table has no borders, and its width
is that of its cells.
"""

from __future__ import annotations

import csv
import sys
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace

from rich.box import HEAVY_HEAD
from rich.console import Console, Group, RenderableType
from rich.measure import Measurement
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from orchestrator.rendering.evidence import csv_cells
from orchestrator.rendering.forms.columns import Cell, Kind, Line, Tone, Value
from orchestrator.rendering.forms.columns import Table as Form
from orchestrator.rendering.forms.columns import cell as cell_of
from orchestrator.rendering.words import SECONDS, moment, safe

#: wider than any table
_ANY = 100_000
#: columns of the longest bar
_BAR = 30
_STYLES = {
    None: "", Tone.GOOD: "green", Tone.BAD: "red", Tone.WARN: "yellow", Tone.SOFT: "dim", Tone.LIVE: "blue",
    Tone.OFF: "yellow",
}  # fmt: skip


def print_line(console: Console, line: str | Text, style: str = "") -> None:
    """Print a line, which a pipe gets whole; unseen characters of a string are removed."""
    shown = Text(safe(line), style=style) if isinstance(line, str) else line
    console.print(shown, soft_wrap=True)


def print_form(console: Console, form: Form) -> None:
    """Print the table of a form."""
    table = _plain(form.title)
    for head, name in zip(form.columns, headings(form), strict=True):
        table.add_column(
            Text(name),
            no_wrap=head.kind is not Kind.WIDE,
            overflow="fold",
            justify="right" if head.kind is Kind.NUMBER else "left",
        )
    for line in form.lines:
        _add(table, line)
    if form.total is not None:
        table.add_section()
        _add(table, form.total)
    print_table(console, table)


def headings(form: Form) -> list[str]:
    """Return the titles of the columns as a terminal shows them."""
    return [
        safe(f"{one.title} (UTC)" if one.kind is Kind.TIME else one.title) for one in form.columns
    ]


def styled(cell: Cell) -> Text:
    """Return a value as a terminal shows it."""
    if cell.bar is not None:
        return Text("█" * round(_BAR * cell.bar), "green")
    shown = Text(safe(cell.text), _STYLES[cell.tone])
    between = " " if cell.shade is None else "\n"
    return Text.assemble(shown, (f"{between}{safe(cell.note)}", "dim")) if cell.note else shown


def _plain(title: str) -> Table:
    shown = Text(safe(title)) if title else None
    return Table(box=None, pad_edge=False, header_style="bold", title=shown, title_justify="left")


def _add(table: Table, line: Line) -> None:
    table.add_row(*map(styled, line.cells), style=_STYLES[line.tone])


def print_facts(console: Console, facts: Iterable[tuple[str, Value]], *, title: str = "") -> None:
    """Print names and values, one pair a line; with a title in a frame."""
    table = _plain(title)
    table.show_header = False
    if title:
        table.box, table.pad_edge = HEAVY_HEAD, True
    table.add_column(no_wrap=True, style="dim")
    table.add_column(overflow="fold")
    for name, value in facts:
        shown = cell_of(value)
        if shown.at is not None:
            shown = replace(shown, text=f"{moment(shown.at, form=SECONDS)} UTC")
        table.add_row(Text(safe(name)), styled(shown))
    print_table(console, table)


def print_table(console: Console, table: Table) -> None:
    """Print a table; as records if its words do not fit the width of the terminal."""
    if not console.is_terminal:
        table.box = None
    needed = Measurement.get(console, console.options.update(max_width=_ANY), table)
    if not console.is_terminal:
        table.width = needed.maximum
        # rich fills lines with spaces, which a pipe has no use for
        with console.capture() as captured:
            console.print(table, soft_wrap=True, crop=False)
        lines = (line.rstrip() for line in captured.get().splitlines())
        console.out("\n".join(lines), highlight=False)
    elif needed.minimum > console.width:
        console.print(Group(*_records(table)))
    else:
        console.print(table)


def print_csv(names: Sequence[str], rows: Iterable[Sequence[object]]) -> None:
    """Print rows as CSV with a header; ``None`` is an empty field, an amount has all of its digits."""
    writer = csv.writer(sys.stdout, lineterminator="\n")
    writer.writerow(names)
    writer.writerows(map(csv_cells, rows))
    sys.stdout.flush()


def _records(table: Table) -> Iterator[RenderableType]:
    """Yield the rows one below the other: the first cell, then a line for each other one that says anything."""
    if table.title:
        yield table.title if isinstance(table.title, Text) else Text(str(table.title))
    first, *others = table.columns
    names = [_text(column.header) for column in others]
    width = max((len(name) for name in names), default=0)
    for head, *cells in zip(first.cells, *(column.cells for column in others), strict=True):
        if _text(head).strip():
            yield _named(_text(first.header), 0, head)
        for name, cell in zip(names, cells, strict=True):
            if _text(cell).strip():
                yield Padding(_named(name, width, cell), (0, 0, 0, 2))


def _named(name: str, width: int, cell: RenderableType) -> Text:
    value = cell if isinstance(cell, Text) else Text(_text(cell))
    return Text.assemble((f"{name:<{width}}  " if name.strip() else "", "dim"), value)


def _text(cell: RenderableType) -> str:
    return cell.plain if isinstance(cell, Text) else str(cell)
