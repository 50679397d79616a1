"""The index: what goes in, and what is in it."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from orchestrator.commands.common import SOME_BAD, IndexOption, JsonOption, errors, print_json
from orchestrator.settings import load_settings

app = typer.Typer(help="Looks into an index.", no_args_is_help=True)


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

    with errors(as_json=as_json):
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
            print_json(out)
        else:
            show_ingest(Console(), Console(stderr=True), out)
    if out.bad or out.bad_files:
        raise typer.Exit(SOME_BAD)


@app.command("info")
def info(*, index: IndexOption = None, as_json: JsonOption = False) -> None:
    """Show what an index holds, and which embedder made it."""
    from orchestrator.output import index_output
    from orchestrator.service import index_place
    from orchestrator.terminal import show_index
    from posology.index.store import Index

    with errors(as_json=as_json):
        out = index_output(Index.open(index_place(load_settings(), index)).info())
        if as_json:
            print_json(out)
        else:
            show_index(Console(), out)
