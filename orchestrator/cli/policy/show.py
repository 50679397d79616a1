"""The ``policy show`` command: print a Q-table."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from orchestrator.cli.common import JsonOption, errors, print_json
from orchestrator.settings import load_settings
from posology.errors import ConfigurationError

FileArgument = Annotated[
    Path | None, typer.Argument(metavar="FILE", help="File of a Q-table. Default: POSOLOGY_QTABLE.")
]


def show(
    file: FileArgument = None,
    *,
    png: Annotated[
        Path | None,
        typer.Option("--png", metavar="FILE", help="Also draw the table to this PNG file."),
    ] = None,
    as_json: JsonOption = False,
) -> None:
    """Show a Q-table: values, visits, the chosen actions and how often each is chosen."""
    with errors(as_json=as_json):
        from orchestrator.cli.policy.table_view import show_table
        from orchestrator.question.qtables import configured, load
        from orchestrator.training.qtable.chart import draw
        from orchestrator.training.qtable.description import describe
        from policies.qtable import strangers
        from prompts.template import digests, form
        from strategies.compression import known

        settings = load_settings()
        table = load(file) if file is not None else configured(settings)
        if table is None:
            raise ConfigurationError(
                "no Q-table is configured. Give its file, or set POSOLOGY_QTABLE; `posology policy train` makes one."
            )
        differs = strangers(
            table,
            model=settings.model,
            # its own compressor, if it is still registered
            compressor=table.compressor if known(table.compressor) else settings.compressor,
            prompts=digests((form("answer", settings.quotes),)),
        )
        if png is not None:
            draw(table, png)
        if as_json:
            print_json(describe(table, differs))
        else:
            show_table(Console(), table, differs)
