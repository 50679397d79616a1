"""Writing of answers and searches to standard output, in the format that was asked for."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

import typer
from rich.console import Console

from orchestrator.cli.common import print_json
from orchestrator.cli.ending import say
from orchestrator.cli.output.streams import fit_json, takes_all
from orchestrator.rendering.kinds import Format

if TYPE_CHECKING:
    from posology.published.answers import AskOutput, PassageOutput
    from posology.published.literature import SearchOutput

#: formats that other programs read
_FOREIGN = (Format.RIS, Format.BIBTEX, Format.CSV)


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

            write_form(export_answer(out, form), form)


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

            write_form(export_search(out, form), form)


def write_passage(out: PassageOutput, form: Format) -> None:
    """Print a passage in full, or the citation of its article."""
    match form:
        case Format.JSON:
            print_json(out)
        case Format.TEXT:
            from orchestrator.rendering.text import passage_as_text

            write_form(passage_as_text(out), form)
        case Format.MARKDOWN:
            from orchestrator.rendering.markdown import passage_as_markdown

            write_form(passage_as_markdown(out), form)
        case Format.CSV | Format.TABLE:
            raise typer.BadParameter(f"--format {form} is for answers and searches")
        case _:
            from orchestrator.rendering.citations import citations

            write_form(citations((out.passage,), form), form)


def write_form(text: str, form: Format) -> None:
    """Write a text in a format to standard output.

    A format that another program reads has no escapes of ours: it is written in UTF-8 if the encoding lacks some of its
    characters.

    Args:
        text: the text.
        form: its format.
    """
    if form is Format.CSL:
        text = fit_json(text)
    elif form in _FOREIGN and not _is_encodable(text):
        say(f"written in UTF-8, since {sys.stdout.encoding} lacks some of the characters")
        sys.stdout.buffer.write(text.encode("utf-8", "backslashreplace"))
        text = ""
    sys.stdout.write(text)
    sys.stdout.flush()


def _is_encodable(text: str) -> bool:
    try:
        text.encode(sys.stdout.encoding or "utf-8")
    except UnicodeEncodeError:
        return takes_all()
    return True
