"""The ``posology`` command.

Exit status: 0 done; 1 done, but some records were bad; 2 the command line is wrong; 3 what was handed in
is wrong; 4 what Posology was set up with is wrong; 5 the index cannot serve; 6 the provider failed;
7 the time was over; 70 a defect of Posology; 130 interrupted. A refusal is an answer: 0.
"""

from __future__ import annotations

import json
import os
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import anyio
import typer
from pydantic import BaseModel
from rich.console import Console

from orchestrator.settings import debug_wanted, load_settings, prepare_libraries
from posology import __version__
from posology.errors import InvalidQuery, PosologyError
from posology.types import Form

if TYPE_CHECKING:
    from posology.llm.accounting import Account

app = typer.Typer(
    name="posology",
    help="Answers questions over the medical literature; every quote is checked against its source.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
)
index_app = typer.Typer(help="Looks into an index.", no_args_is_help=True)
app.add_typer(index_app, name="index")

_DEFECT, _INTERRUPTED, _SOME_BAD = 70, 130, 1

IndexOption = Annotated[
    str | None,
    typer.Option("--index", metavar="DIR", help="The index. Default: POSOLOGY_INDEX."),
]
JsonOption = Annotated[bool, typer.Option("--json", help="Print one JSON object instead.")]
KOption = Annotated[int, typer.Option("--k", min=1, max=200, help="Passages to retrieve.")]
ModeOption = Annotated[str, typer.Option("--mode", help="dense, bm25 or fused.")]
RetractedOption = Annotated[
    bool, typer.Option("--retracted", help="Let retracted passages be evidence, too.")
]


@app.command()
def ask(
    question: Annotated[str, typer.Argument(help="The question; - reads it from standard input.")],
    *,
    index: IndexOption = None,
    model: Annotated[
        str | None,
        typer.Option(
            help="openai:NAME, anthropic:NAME or offline:extractive. Default: POSOLOGY_MODEL."
        ),
    ] = None,
    k: KOption = 8,
    mode: ModeOption = "fused",
    form: Annotated[
        str, typer.Option(help=f"The answer's form: {', '.join(Form)}.")
    ] = Form.FREE.value,
    option: Annotated[
        list[str] | None,
        typer.Option("--option", metavar="A=TEXT", help="An answer option; repeat for each."),
    ] = None,
    max_tokens: Annotated[
        int | None, typer.Option(min=64, help="Bound on output tokens of a call.")
    ] = None,
    retracted: RetractedOption = False,
    as_json: JsonOption = False,
) -> None:
    """Answer a question from the index, with verified quotes, or refuse."""
    from orchestrator.input import AskRequest
    from orchestrator.output import ask_output
    from orchestrator.service import open_service
    from orchestrator.terminal import show_answer
    from posology.llm.accounting import Account

    account = Account()
    with _errors(as_json=as_json, account=account):
        settings = load_settings()
        request = AskRequest.parse(
            {
                "question": _read_stdin() if question == "-" else question,
                "form": form,
                "options": _options(option or []) or None,
                "model": model,
                "k": k,
                "mode": mode,
                "retracted": retracted,
                "max_tokens": max_tokens,
            }
        ).to_request(settings)

        async def run() -> None:
            async with open_service(settings, index) as service:
                out = ask_output(await service.ask(request, account))
            if as_json:
                _print_json(out)
            else:
                show_answer(Console(), out)

        anyio.run(run)


@app.command()
def search(
    query: Annotated[str, typer.Argument(help="What to look for.")],
    *,
    index: IndexOption = None,
    k: KOption = 10,
    mode: ModeOption = "fused",
    retracted: RetractedOption = False,
    as_json: JsonOption = False,
) -> None:
    """Show the passages that a question would be answered from, and every ranking. No model is called."""
    from orchestrator.input import AskRequest
    from orchestrator.output import search_output
    from orchestrator.service import open_service
    from orchestrator.terminal import show_search

    with _errors(as_json=as_json):
        settings = load_settings()
        request = AskRequest.parse(
            {"question": query, "k": k, "mode": mode, "retracted": retracted}
        ).to_request(settings)

        async def run() -> None:
            async with open_service(settings, index) as service:
                started = time.perf_counter()
                retrieval = await service.search(
                    request.query, k=k, mode=request.mode, retracted=retracted
                )
                seconds = time.perf_counter() - started
            out = search_output(retrieval, mode=mode, k=k, seconds=seconds)
            if as_json:
                _print_json(out)
            else:
                show_search(Console(), out)

        anyio.run(run)


@app.command()
def ingest(
    paths: Annotated[
        list[Path],
        typer.Argument(metavar="PATH…", help="JSONL files, .gz too, or folders of them."),
    ],
    *,
    index: IndexOption = None,
    vectors: Annotated[
        Path | None,
        typer.Option(help="A .npy file with the passages' vectors, row by row of one JSONL file."),
    ] = None,
    embedder: Annotated[
        str | None,
        typer.Option(help="A sentence-transformers name or folder. Default: POSOLOGY_EMBEDDER."),
    ] = None,
    as_json: JsonOption = False,
) -> None:
    """Read literature into an index, and go on where an earlier run stopped.

    Bad records are reported with file and line and passed over; the exit status is then 1.
    """
    from orchestrator.ingesting import run_ingest
    from orchestrator.output import ingest_output
    from orchestrator.terminal import show_ingest

    with _errors(as_json=as_json):
        report = run_ingest(
            paths,
            load_settings(),
            place=index,
            embedder=embedder,
            vectors=vectors,
            console=None if as_json else Console(stderr=True),
        )
        out = ingest_output(report)
        if as_json:
            _print_json(out)
        else:
            show_ingest(Console(), Console(stderr=True), out)
    if out.bad or out.bad_files:
        raise typer.Exit(_SOME_BAD)


@index_app.command("info")
def index_info(*, index: IndexOption = None, as_json: JsonOption = False) -> None:
    """Show what an index holds, and which embedder made it."""
    from orchestrator.output import index_output
    from orchestrator.service import index_place
    from orchestrator.terminal import show_index
    from posology.index.store import Index

    with _errors(as_json=as_json):
        out = index_output(Index.open(index_place(load_settings(), index)).info())
        if as_json:
            _print_json(out)
        else:
            show_index(Console(), out)


@app.command()
def demo(
    *,
    everything: Annotated[
        bool, typer.Option("--all", help="Ask all 40 questions and print a table.")
    ] = False,
    index: Annotated[
        str, typer.Option("--index", metavar="DIR", help="Where the sample index is kept.")
    ] = ".posology/sample",
    model: Annotated[str | None, typer.Option(help="Default: POSOLOGY_MODEL.")] = None,
    k: KOption = 8,
) -> None:
    """Ingest the sample notes that come with Posology and answer questions about them."""
    from orchestrator.demo import run_demo

    with _errors(as_json=False):
        settings = load_settings()
        anyio.run(
            lambda: run_demo(
                Console(),
                settings,
                place=index,
                model=model or settings.model,
                k=k,
                everything=everything,
            )
        )


@app.command()
def schema(
    what: Annotated[str, typer.Argument(help="ask, search, ingest, index or error.")],
) -> None:
    """Print the JSON schema of what a command prints with --json."""
    from orchestrator.output import SCHEMAS

    if what not in SCHEMAS:
        raise typer.BadParameter(f"choose one of {', '.join(SCHEMAS)}")
    with _errors(as_json=False):
        sys.stdout.write(json.dumps(SCHEMAS[what].model_json_schema(), indent=2) + "\n")
        sys.stdout.flush()


def _read_stdin() -> str:
    # what is not UTF-8 is refused as a question, with a message, where every question is checked
    return sys.stdin.buffer.read().decode("utf-8", errors="surrogateescape")


def _options(given: list[str]) -> dict[str, str]:
    options: dict[str, str] = {}
    for item in given:
        label, equals, text = item.partition("=")
        if not equals or label in options:
            raise InvalidQuery(
                f"--option {item!r} is not of the form A=TEXT, each letter once", field="options"
            )
        options[label] = text
    return options


@contextmanager
def _errors(*, as_json: bool, account: Account | None = None) -> Iterator[None]:
    """One line that says what to do, or one JSON object; and the exit status of the error's kind.

    Whatever ends the work, the attempts that it made are told.
    """
    try:
        yield
    except PosologyError as error:
        from orchestrator.output import error_output

        if as_json:
            _print_json(error_output(error, account))
        else:
            _fail(str(error))
            _tell_attempts(account)
        raise typer.Exit(error.exit_code) from None
    except BrokenPipeError:
        # the reader has gone, which is its right; Python would complain once more at exit
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        raise typer.Exit(0) from None
    except BaseException:
        _tell_attempts(account)
        raise


def _tell_attempts(account: Account | None) -> None:
    if account is not None and account.attempts:
        from orchestrator.output import spending
        from orchestrator.terminal import show_attempts

        show_attempts(Console(stderr=True), spending(account))


def _fail(message: str) -> None:
    from orchestrator.terminal import safe

    sys.stderr.write(f"posology: {' '.join(safe(message).split())}\n")


def _print_json(out: BaseModel) -> None:
    sys.stdout.write(out.model_dump_json(indent=2) + "\n")
    sys.stdout.flush()


def _version(*, wanted: bool) -> None:
    if wanted:
        sys.stdout.write(f"posology {__version__}\n")
        raise typer.Exit


@app.callback()
def _root(
    *,
    version: Annotated[
        bool,
        typer.Option("--version", is_eager=True, callback=lambda v: _version(wanted=v)),
    ] = False,
) -> None:
    pass


def main() -> None:
    """Run the command."""
    prepare_libraries()
    guard(app)


def guard(command: Callable[[], object]) -> None:
    """Run a command so that no traceback reaches a user, unless ``POSOLOGY_DEBUG`` asks for it."""
    try:
        command()
    except KeyboardInterrupt:
        sys.exit(_INTERRUPTED)
    except Exception as error:
        if debug_wanted():
            raise
        _fail(
            f"a defect of Posology: {type(error).__name__}: {error}. "
            "Set POSOLOGY_DEBUG=1 for the traceback and report it."
        )
        sys.exit(_DEFECT)
