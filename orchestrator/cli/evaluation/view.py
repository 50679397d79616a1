"""Terminal view of an evaluation: the tables of its report."""

from __future__ import annotations

from pathlib import Path

from rich.console import Console

from orchestrator.cli.output.tables import print_form, print_line
from orchestrator.evaluation.folder import HTML, MARKDOWN, ROWS
from orchestrator.evaluation.forms import EvalOutput
from orchestrator.evaluation.report.tables import remarks, tables


def show_evaluation(console: Console, out: EvalOutput) -> None:
    """Print remarks, tables and the names of the files; nothing if only the cost was estimated."""
    if not out.cells:
        return
    for remark in remarks(out):
        print_line(console, remark, "dim")
    for one in tables(out):
        console.print()
        print_form(console, one)
    folder = Path(out.folder)
    console.print()
    print_line(console, f"Reports: {folder / MARKDOWN}, {folder / HTML}. Rows: {folder / ROWS}.")
