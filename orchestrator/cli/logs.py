"""The ``logs`` command: log lines of the local stack."""

from __future__ import annotations

import logging
import sys
import time
from collections import deque
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import Console
from rich.text import Text

from orchestrator.cli.common import errors
from orchestrator.cli.output.streams import fit_json
from orchestrator.settings import LogLevel, load_settings
from posology.errors import ConfigurationError

if TYPE_CHECKING:
    from orchestrator.logs.files import Line

#: seconds between two looks at the files
_LOOK = 0.25
_STYLES = {logging.WARNING: "yellow", logging.ERROR: "red", logging.CRITICAL: "red"}


def logs(
    *,
    follow: Annotated[
        bool, typer.Option("--follow", "-f", help="Wait for new lines until Ctrl-C.")
    ] = False,
    job: Annotated[str | None, typer.Option(metavar="ID", help="Lines of one job.")] = None,
    batch: Annotated[str | None, typer.Option(metavar="ID", help="Lines of one batch.")] = None,
    tenant: Annotated[str | None, typer.Option(help="Lines of one tenant.")] = None,
    request: Annotated[
        str | None,
        typer.Option(metavar="ID", help="Lines of one HTTP request, by its X-Request-ID."),
    ] = None,
    level: Annotated[
        LogLevel, typer.Option(help="Lowest level of the lines.", case_sensitive=False)
    ] = LogLevel.DEBUG,
    lines: Annotated[
        int, typer.Option("--lines", "-n", min=0, help="Maximum past lines; 0: all.")
    ] = 200,
    home: Annotated[
        Path | None, typer.Option(metavar="DIR", help="Data folder. Default: POSOLOGY_HOME.")
    ] = None,
    as_json: Annotated[
        bool, typer.Option("--json", help="Print lines as they are in the files.")
    ] = False,
) -> None:
    """Print the log lines of the stack that `posology up` runs or ran, oldest first.

    Example: posology logs -f --level warning
    """
    from orchestrator.logs.files import Reader, Wanted

    ids = {"job": job, "batch": batch, "tenant": tenant, "request_id": request}
    with errors(as_json=False):
        folder = (home or Path(load_settings().home)) / "log"
        if not folder.is_dir():
            raise ConfigurationError(
                f"there are no logs in {folder}: run `posology up`, or name its folder with --home"
            )
        wanted = Wanted(
            level=logging.getLevelNamesMapping()[level.value.upper()],
            fields={name: value for name, value in ids.items() if value is not None},
        )
        with Reader(folder) as reader:
            past: Iterable[Line] = filter(wanted, reader.read())
            printed = _print(deque(past, maxlen=lines) if lines else past, as_json=as_json)
            if not printed and not follow:
                which = " match" if wanted.fields or level is not LogLevel.DEBUG else ""
                sys.stderr.write(f"no log lines{which} in {folder}\n")
            while follow:
                time.sleep(_LOOK)
                _print(filter(wanted, reader.read()), as_json=as_json)


def _print(found: Iterable[Line], *, as_json: bool) -> int:
    """Print lines, and return their number."""
    from orchestrator.rendering.words import safe

    console = Console(highlight=False)
    printed = 0
    for line in found:
        printed += 1
        if as_json:
            sys.stdout.write(f"{fit_json(line.text)}\n")
        elif console.is_terminal:
            console.print(Text(safe(line.plain), _STYLES.get(line.level, "")), soft_wrap=True)
        else:
            sys.stdout.write(f"{line.plain}\n")
    sys.stdout.flush()
    return printed
