"""Writing of answers and searches to standard output, in the format that was asked for."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

import typer
from rich.console import Console

from orchestrator.cli.common import print_json
from orchestrator.rendering.kinds import Format

if TYPE_CHECKING:
    from posology.published.answers import AskOutput, PassageOutput
    from posology.published.literature import SearchOutput


def write_answer(out: AskOutput, form: Format) -> None:
    """Print an answer or a refusal; citations are those of its quoted passages."""
    match form:
        case Format.JSON:
            print_json(out)
        case Format.TEXT:
            from orchestrator.cli.terminal import show_answer

            show_answer(Console(), out)
        case _:
            from orchestrator.rendering.exports import export_answer

            _write(export_answer(out, form))


def write_search(out: SearchOutput, form: Format) -> None:
    """Print the passages of a search; citations are those of all of them."""
    match form:
        case Format.JSON:
            print_json(out)
        case Format.TEXT:
            from orchestrator.cli.terminal import show_search

            show_search(Console(), out)
        case _:
            from orchestrator.rendering.exports import export_search

            _write(export_search(out, form))


def write_passage(out: PassageOutput, form: Format) -> None:
    """Print a passage in full, or the citation of its article."""
    match form:
        case Format.JSON:
            print_json(out)
        case Format.TEXT:
            from orchestrator.rendering.text import passage_as_text

            _write(passage_as_text(out))
        case Format.MARKDOWN:
            from orchestrator.rendering.markdown import passage_as_markdown

            _write(passage_as_markdown(out))
        case Format.CSV | Format.TABLE:
            raise typer.BadParameter(f"--format {form} is for answers and searches")
        case _:
            from orchestrator.rendering.citations import citations

            _write(citations((out.passage,), form))


def _write(text: str) -> None:
    sys.stdout.write(text)
    sys.stdout.flush()
