"""``posology config`` and ``posology init``."""

from __future__ import annotations

import sys
import textwrap
from collections.abc import Iterator, Mapping
from decimal import Decimal
from enum import Enum
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console

from orchestrator.cli.common import JsonOption, errors, print_json
from orchestrator.configuration.files import NAME, is_foreign, locations, user_folder
from orchestrator.settings import (
    Settings,
    config_choice,
    config_files,
    known_keys,
    load_settings,
    origins,
)
from posology.errors import ConfigurationError
from posology.published.base import descriptions

app = typer.Typer(help="Show the configuration.")

#: columns of the comments in a written file
_WIDTH = 100


@app.command("show")
def show(
    *,
    changed: Annotated[
        bool, typer.Option("--changed", help="Only settings that are not at their default.")
    ] = False,
    as_json: JsonOption = False,
) -> None:
    """Show each setting's value and where it comes from.

    Later sources win: default, posology.toml in the user's configuration folder, posology.toml in the current folder,
    environment variable, option of a command. Secrets are not shown.
    """
    from orchestrator.cli.output.tables import print_form
    from orchestrator.cli.setup.forms import ConfigOutput
    from orchestrator.rendering.forms.columns import table_of

    with errors(as_json=as_json):
        settings = [
            one for one in origins(load_settings()) if not changed or one.source != "default"
        ]
        out = ConfigOutput(
            settings=tuple(settings),
            files=tuple(str(file.path) for file in config_files()),
            places=tuple(map(str, locations(config_choice()))),
        )
        if as_json:
            print_json(out)
            return
        console = Console()
        hidden = {True: "(hidden)", False: None}
        names = "setting, value, from"
        rows = (
            (one.name, one.value or hidden[one.secret and one.source != "default"], one.source)
            for one in out.settings
        )
        print_form(console, table_of(names, rows, texts=names))
        for place in out.places:
            state = "read" if place in out.files else "not there"
            console.print(f"{place}: {state}", soft_wrap=True, markup=False, highlight=False)


def init(
    path: Annotated[Path, typer.Argument(metavar="FILE", help="File to write.")] = Path(NAME),
    *,
    force: Annotated[bool, typer.Option("--force", help="Replace a file that exists.")] = False,
) -> None:
    """Write a commented configuration file with every setting at its default.

    Servers of language models that run on this machine are named, with the line that makes one the default model.
    A file in the current folder gets no settings that only your own file may have, such as addresses and prices.
    """
    with errors(as_json=False):
        offers = _offers()
        text = "".join(_template(own=not is_foreign(path), offers=offers))
        try:
            with path.open("w" if force else "x", encoding="utf-8") as file:
                file.write(text)
        except FileExistsError:
            raise ConfigurationError(
                f"{path} exists: edit it, or replace it with --force"
            ) from None
        except OSError as error:
            raise ConfigurationError(f"{path} cannot be written: {error.strerror}") from None
        sys.stdout.write("\n".join((str(path), *offers)) + "\n")


def _offers() -> dict[str, str]:
    """Return what each running server serves, and its first model."""
    from orchestrator.cli.setup.checks import running_servers
    from posology.llm.providers.local.servers import described

    found = running_servers(load_settings())
    return {described(one): f"{one.kind.name}:{one.models[0].name}" for one in found}


def _template(*, own: bool, offers: Mapping[str, str]) -> Iterator[str]:
    """Yield the parts of the file.

    Args:
        own: whether it is the user's own file.
        offers: what servers serve, with a model of each.
    """
    yield (
        "# Configuration of Posology. Remove the # before a setting to change it.\n"
        "# Environment variables and options of commands override this file.\n"
        "# Keys of providers do not belong here: `posology keys set openai` stores one.\n"
    )
    if not own:
        yield (
            "# Addresses, prices, prompts and who may use a service do not either: a file in the current folder may be another's.\n"
            f"# They belong into {user_folder() / NAME}.\n"
        )
    texts = descriptions(Settings)
    for name, key in known_keys().items():
        field = Settings.model_fields.get(name)
        if key.secret or (key.own and not own):
            continue
        about = texts.get(name, f"Address of a server, as in {key.variable}.")
        default = None if field is None else field.default
        yield "\n"
        for line in textwrap.wrap(" ".join(about.split()), _WIDTH):
            yield f"# {line}\n"
        yield f"# {name} = {_toml(default)}\n"
        for about, model in offers.items() if name == "model" else ():
            yield f"# {about}:\n# model = {_toml(model)}\n"


def _toml(value: Any) -> str:
    """Return a default as TOML; a setting without one gets an empty text to fill in."""
    match value:
        case bool():
            return "true" if value else "false"
        case int() | float():
            return f"{value}"
        case Decimal():
            return f"{value:f}"
        case Enum():
            return f'"{value.value}"'
        case None:
            return '""'
        case _:
            return f'"{value}"'
