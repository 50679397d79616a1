"""``posology chat``: one question after another, each asked with the earlier ones that it continues."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator
from contextlib import nullcontext, suppress
from typing import TYPE_CHECKING, Any

import typer
from rich.console import Console

from orchestrator.cli.ask.command import PathsArgument, indexed
from orchestrator.cli.common import IndexOption, errors, fail, tell_preparing
from orchestrator.cli.index.options import ColumnOptions
from orchestrator.cli.option_groups import grouped
from orchestrator.cli.output.write import write_answer
from orchestrator.cli.question_options import QuestionOptions
from orchestrator.rendering.kinds import Format
from orchestrator.settings import load_settings
from posology.errors import PosologyError
from posology.text.follow_ups import continued

if TYPE_CHECKING:
    from orchestrator.library import Posology
    from posology.published.answers import AskOutput

#: what a line may be instead of a question
_NEW, _WHY, _QUIT = "/new", "/why", "/quit"
_HELP = f"Ask a question. {_WHY} explains the last answer, {_NEW} begins another conversation, {_QUIT} or Ctrl-D ends."


@grouped
def chat(
    paths: PathsArgument = None,
    *,
    columns: ColumnOptions,
    index: IndexOption = None,
    options: QuestionOptions,
) -> None:
    """Answer the questions of a conversation, one a line.

    A question that continues earlier ones ("And in children?") is asked with them, by rule and in English, and shown as it is
    asked. Each is paid for by itself: --max-cost is the limit of one. Nothing of a conversation is kept.

    /why explains the last answer, /new begins another conversation, /quit or Ctrl-D ends.
    """
    with errors(as_json=False):
        from orchestrator.question.request import AskRequest

        settings = load_settings()
        tell_preparing()
        fields = options.given()
        # options are refused before the first question
        AskRequest.parse({"question": "?", **fields}).to_request(settings)
        if paths:
            found = indexed(paths, columns.chosen(), index, settings, quiet=False)
            index = str(found.place)
        elif columns.column:
            raise typer.BadParameter("--column needs PATH: it names the columns of files")

        from orchestrator.library import Posology

        with Posology(index) as library:
            failed = _converse(library, _typed(), fields)
    raise typer.Exit(int(failed))


def _typed() -> Iterator[str]:
    """Yield the lines of standard input, at a terminal after a prompt."""
    if not sys.stdin.isatty():
        yield from sys.stdin
        return
    with suppress(ImportError):
        # lines can be edited, and called again
        import readline  # noqa: F401
    Console(stderr=True).print(_HELP, style="dim", highlight=False)
    with suppress(EOFError):
        while True:
            yield input("> ")


def _converse(library: Posology, lines: Iterable[str], fields: dict[str, Any]) -> bool:
    """Answer questions, and return whether any failed."""
    questions: list[str] = []
    last: AskOutput | None = None
    failed = False
    for line in map(str.strip, lines):
        if line == _QUIT:
            break
        if line == _NEW:
            questions.clear()
        elif line == _WHY:
            _explain(last)
        elif line.startswith("/"):
            fail(f"unknown command {line.split()[0]}. {_HELP}")
        elif line:
            try:
                with _waiting():
                    last = library.ask(" ".join(continued([*questions, line])), **fields)
            except PosologyError as error:
                fail(str(error))
                failed = True
                continue
            questions.append(line)
            write_answer(last, Format.TEXT)
            typer.echo()
    return failed


def _explain(out: AskOutput | None) -> None:
    if out is None:
        fail("there is no answer yet to explain")
        return
    from orchestrator.cli.ask.explanation import why_answer

    why_answer(Console(), out)


def _waiting() -> Any:
    """Show at a terminal that a question is under way."""
    console = Console(stderr=True)
    return console.status("answering") if console.is_terminal else nullcontext()
