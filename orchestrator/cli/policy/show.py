"""The ``policy show`` command: print a Q-table, or a calibration of preflight."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import Console

from orchestrator.cli.common import JsonOption, errors, print_json
from orchestrator.settings import Settings, load_settings
from posology.errors import ConfigurationError

if TYPE_CHECKING:
    from policies.qtable import QTable

FileArgument = Annotated[
    Path | None,
    typer.Argument(
        metavar="FILE",
        help="File of a Q-table or of a calibration. Default: POSOLOGY_QTABLE and POSOLOGY_CALIBRATION.",
    ),
]


def show(
    file: FileArgument = None,
    *,
    png: Annotated[
        Path | None,
        typer.Option("--png", metavar="FILE", help="Also draw the Q-table to this PNG file."),
    ] = None,
    as_json: JsonOption = False,
) -> None:
    """Show a Q-table, and the calibration of preflight with the reach of BriefContext.

    A Q-table: values, visits, the chosen actions and how often each is chosen. A calibration: for each order of
    passages, which share of the questions, and of the buried key passages, is flagged and is given to BriefContext at
    once. With --json: the Q-table if there is one, else the calibration.
    """
    with errors(as_json=as_json):
        from orchestrator.cli.policy.calibration_view import show_calibration
        from orchestrator.question import qtables
        from orchestrator.training.calibration.run import describe
        from policies.calibration import packaged
        from policies.specs import at_once

        settings = load_settings()
        if file is not None and _is_calibration(file):
            calibration, table = qtables.load_calibration(file), None
        else:
            calibration = qtables.configured_calibration(settings) or packaged()
            table = qtables.load(file) if file is not None else qtables.configured(settings)
        out = describe(calibration, at_once(settings.policy))
        if table is not None:
            _show_table(table, settings, png, as_json=as_json)
        elif png is not None:
            raise ConfigurationError(
                "--png draws a Q-table, and none is configured. Give its file, or set POSOLOGY_QTABLE; `posology policy "
                "train` makes one."
            )
        elif as_json:
            print_json(out)
        if as_json:
            return
        console = Console()
        if table is not None:
            console.print()
        show_calibration(console, out)


def _show_table(table: QTable, settings: Settings, png: Path | None, *, as_json: bool) -> None:
    from orchestrator.cli.policy.table_view import show_table
    from orchestrator.question import qtables
    from orchestrator.training.qtable.chart import draw
    from orchestrator.training.qtable.description import describe

    differs = qtables.differing(table, settings)
    if png is not None:
        draw(table, png)
    if as_json:
        print_json(describe(table, differs))
    else:
        show_table(Console(), table, differs)


def _is_calibration(file: Path) -> bool:
    """Return whether a file says that it is a calibration; others are read as Q-tables."""
    from policies.calibration import KIND

    try:
        content = json.loads(file.read_text("utf-8"))
    except (OSError, ValueError):
        return False
    return isinstance(content, dict) and content.get("posology") == KIND
