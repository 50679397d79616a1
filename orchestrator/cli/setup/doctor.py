"""``posology doctor``: a check of this machine."""

from __future__ import annotations

from itertools import chain
from typing import Annotated

import typer
from rich.console import Console
from rich.text import Text

from orchestrator.cli.common import IndexOption, JsonOption, errors, print_json
from orchestrator.environment import environment
from posology.errors import ConfigurationError

_MARKS = {True: ("ok", "green"), None: ("note", "yellow"), False: ("bad", "red")}


def doctor(
    *,
    index: IndexOption = None,
    live: Annotated[
        bool,
        typer.Option(
            "--live",
            help="Also fetch one record from PubMed and from Europe PMC, free of charge. Default: false.",
        ),
    ] = False,
    as_json: JsonOption = False,
) -> None:
    """Check Python, configuration, Redis, disk, memory, encoder, index, keys, model, model servers, network and ports, each with its remedy.

    Exit status 4: something is wrong. No model is called; servers on this machine are asked what they serve; nothing is changed.
    """
    from orchestrator.cli.setup.checks import checks, live_checks
    from orchestrator.cli.setup.forms import DoctorOutput
    from orchestrator.rendering.words import safe

    with errors(as_json=as_json):
        console = Console()
        results = []
        for one in chain(checks(environment(), index), live_checks() if live else ()):
            results.append(one)
            if as_json:
                continue
            word, colour = _MARKS[one.ok]
            line = Text.assemble(
                (f"{word:<5}", colour), (f"{one.name:<15}", "bold"), safe(one.found)
            )
            console.print(line, soft_wrap=True)
            if one.remedy:
                console.print(Text(f"{'':<20}{safe(one.remedy)}"), soft_wrap=True)
        out = DoctorOutput(ok=all(one.ok is not False for one in results), checks=tuple(results))
        if as_json:
            print_json(out)
    if not out.ok:
        raise typer.Exit(ConfigurationError.exit_code)
