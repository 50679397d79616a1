"""Shows a Q-table."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from orchestrator.cli.common import JsonOption, errors, print_json
from orchestrator.settings import load_settings
from posology.errors import ConfigurationError

FileArgument = Annotated[
    Path | None, typer.Argument(metavar="FILE", help="A Q-table. Default: POSOLOGY_QTABLE.")
]


def show(
    file: FileArgument = None,
    *,
    png: Annotated[
        Path | None, typer.Option("--png", metavar="FILE", help="Draw it there, too.")
    ] = None,
    as_json: JsonOption = False,
) -> None:
    """Show a Q-table: its values with the actions that it chooses, its visits, and how often each is chosen."""
    with errors(as_json=as_json):
        from orchestrator.cli.policy.table_view import show_table
        from orchestrator.question.qtables import configured, load
        from orchestrator.training.qtable.chart import draw
        from orchestrator.training.qtable.description import describe
        from policies.qtable import strangers
        from prompts.template import digests
        from strategies.compression import known

        settings = load_settings()
        table = load(file) if file is not None else configured(settings)
        if table is None:
            raise ConfigurationError(
                "no Q-table is set up: name its file, or set POSOLOGY_QTABLE; posology policy train makes one"
            )
        differs = strangers(
            table,
            model=settings.model,
            # its shares are given by the one that it learned with, where there is that one still
            compressor=table.compressor if known(table.compressor) else settings.compressor,
            prompts=digests(("answer",)),
        )
        if png is not None:
            draw(table, png)
        if as_json:
            print_json(describe(table, differs))
        else:
            show_table(Console(), table, differs)
