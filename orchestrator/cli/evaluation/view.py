"""Terminal view of an evaluation: the tables of its report."""

from __future__ import annotations

from pathlib import Path

from rich.console import Console
from rich.text import Text

from orchestrator.cli.output.tables import print_form
from orchestrator.evaluation.folder import HTML, MARKDOWN, ROWS
from orchestrator.evaluation.forms import EvalOutput
from orchestrator.evaluation.report.tables import remarks, tables
from orchestrator.rendering.words import safe


def show_evaluation(console: Console, out: EvalOutput) -> None:
    """Print remarks, tables and the names of the files; nothing if only the cost was estimated."""
    if not out.cells:
        return
    for remark in remarks(out):
        console.print(Text(safe(remark), style="dim"), soft_wrap=True)
    for one in tables(out):
        console.print()
        print_form(console, one)
    folder = Path(out.folder)
    console.print()
    console.print(
        Text(safe(f"Reports: {folder / MARKDOWN}, {folder / HTML}. Rows: {folder / ROWS}.")),
        soft_wrap=True,
    )
