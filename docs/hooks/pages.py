"""MkDocs hook: pages of the reference that are made from the code when the site is built.

Nothing of them is committed, so none can differ from the code.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from enum import Enum
from pathlib import Path
from typing import Any

import yaml

ROOT = Path(__file__).resolve().parents[2]
DOCS = ROOT / "docs"


def on_files(files: Any, config: Any) -> Any:
    """Add the generated pages to the site's files."""
    from mkdocs.structure.files import File

    for address, page in PAGES.items():
        files.append(File.generated(config, address, content=page()))
    return files


def cli_page() -> str:
    """Return the page of all commands: usage, help, arguments and options."""
    import typer
    from typer.core import TyperGroup

    from orchestrator.cli.app import app
    from orchestrator.cli.examples import EXAMPLES

    def walk(command: Any, path: str) -> Iterator[str]:
        # a group has a page only for what stands below it
        if isinstance(command, TyperGroup):
            for name, child in command.commands.items():
                yield from walk(child, f"{path} {name}")
            return
        yield f"## {path}\n"
        yield f"{_prose(command.help)}\n"
        if example := EXAMPLES.get(path.removeprefix("posology ")):
            yield f"```console\n$ posology {example}\n```\n"
        arguments = [p for p in command.params if p.param_type_name == "argument"]
        options = [p for p in command.params if p.param_type_name == "option" and p.name != "help"]
        words = [path, *(["[OPTIONS]"] if options else []), *(_argument(p) for p in arguments)]
        yield f"```text\n{' '.join(words)}\n```\n"
        if arguments:
            yield "| argument | |\n| --- | --- |"
            for parameter in arguments:
                yield f"| `{_argument(parameter)}` | {_cell(parameter.help)} |"
            yield ""
        if options:
            yield "| option | |\n| --- | --- |"
            for parameter in options:
                yield f"| {_option(parameter)} | {_cell(_with_default(parameter))} |"
            yield ""

    command = typer.main.get_command(app)
    head = (
        "# Commands\n\nEvery command of `posology`, with its options. "
        "This page is generated from the command itself. "
        "`posology COMMAND --help` prints the same; commands with `--json` print the forms of "
        "[JSON schemas](schemas.md), and end with an [exit status](exit-status.md).\n"
    )
    return "\n".join([head, *walk(command, "posology")])


def settings_page() -> str:
    """Return the page of all environment variables, in the order of ``Settings``."""
    from orchestrator.settings import Settings, known_keys
    from posology.llm.providers.table import PROVIDERS
    from posology.published.base import descriptions

    rows = []
    own = {field.alias for field in Settings.model_fields.values()}
    for provider in PROVIDERS.values():
        if provider.key_variable:
            text = f"API key of {provider.title}. Default: none."
            rows.append(f"| `{provider.key_variable}` | {text} |")
        if provider.url_variable:
            text = (
                f"Base URL of a server that speaks the API of {provider.title}. Default: its own."
            )
            rows.append(f"| `{provider.url_variable}` | {text} |")
        for name, text in provider.more.items():
            if name not in own:
                rows.append(f"| `{name}` | {_cell(text)} |")
    texts = descriptions(Settings)
    for name, field in Settings.model_fields.items():
        aliases = getattr(field.validation_alias, "choices", None) or [field.alias]
        names = ", ".join(f"`{alias}`" for alias in aliases)
        rows.append(f"| {names} | {_cell(texts[name])} |")
    rows.append(
        "| `POSOLOGY_CONFIG` | One configuration file instead of the usual ones; `off` reads neither files nor stored "
        "keys. Default: `posology.toml` in the current folder, then in the user's configuration folder. |"
    )
    own = ", ".join(
        f"`{key.variable}`" for key in known_keys().values() if key.own and not key.secret
    )
    rows.append("| `POSOLOGY_DEBUG` | Tracebacks instead of one-line errors. Default: off. |")
    head = (
        "# Settings\n\nSettings are environment variables, or keys of `posology.toml`: the same name in lower case without "
        "`POSOLOGY_` ([configuration](../how-to/configure.md)). Options of commands come before variables, and variables "
        "before files. An empty value counts as not set. This page is generated from "
        "`orchestrator/settings`, the only reader of the configuration.\n\n"
        f"`posology.toml` in the current folder may not set {own}: that file may come with a download.\n\n"
        "| variable | meaning |\n| --- | --- |\n"
    )
    return head + "\n".join(rows) + "\n"


def exit_status_page() -> str:
    """Return the page of exit statuses, with the error classes that end with each."""
    from posology import errors
    from posology.errors import PosologyError

    fixed = {
        0: "Done. A refusal is an answer, so it ends with 0, too.",
        1: "Done, but some records, rows or checks failed; they are listed.",
        2: "The command line is wrong.",
        70: "A defect of Posology. Set `POSOLOGY_DEBUG=1` for the traceback, and report it.",
        74: "There was no space left for the output.",
        130: "Interrupted (Ctrl-C).",
    }
    found: dict[int, list[type[PosologyError]]] = {}
    for name in errors.__all__:
        kind = getattr(errors, name)
        if isinstance(kind, type) and issubclass(kind, PosologyError) and kind is not PosologyError:
            found.setdefault(kind.exit_code, []).append(kind)
    rows = []
    for code in sorted({*fixed, *found}):
        kinds = sorted(found.get(code, []), key=lambda kind: (len(kind.__mro__), kind.__name__))
        meaning = fixed.get(code) or _prose(kinds[0].__doc__).partition("\n")[0]
        names = ", ".join(f"`{kind.__name__}`" for kind in kinds)
        rows.append(f"| {code} | {_cell(meaning)} | {names} |")
    head = (
        "# Exit status\n\nScripts can rely on these numbers. With `--json`, a failed command also "
        "prints one JSON object of the form `posology schema error`. "
        "Over HTTP the same errors are [problem documents](api.md#errors).\n\n"
        "| status | meaning | errors |\n| --- | --- | --- |\n"
    )
    return head + "\n".join(rows) + "\n"


def schemas_page() -> str:
    """Return the page that lists the published JSON schemas."""
    rows = []
    for path in sorted((DOCS / "schema").glob("*.json")):
        schema = json.loads(path.read_text(encoding="utf-8"))
        text = _prose(schema.get("description") or schema.get("title") or "").partition("\n")[0]
        rows.append(f"| [{path.stem}](../schema/{path.name}) | {_cell(text)} |")
    head = (
        "# JSON schemas\n\n`posology schema NAME` prints the schema of what a command prints with "
        "`--json`. The HTTP API has its own document, [openapi.json](../openapi.json).\n\n"
        "| name | holds |\n| --- | --- |\n"
    )
    return head + "\n".join(rows) + "\n"


def decisions_page() -> str:
    """Return the table of decisions, from the front matter of their pages."""
    rows = []
    for path, about, title in decisions():
        number = path.name[:4]
        rows.append(
            f"| {number} | [{title}]({path.name}) | {about['status']} | {about['date']} "
            f"| {_cell(about['decision'])} |"
        )
    head = (
        "# Decisions\n\nWhy things are as they are: one page each. Details of the design are under "
        "*Concepts*. Numbers 36, 40, 54, 55 and 62 were not used.\n\n"
        "| number | title | status | date | decision |\n| --- | --- | --- | --- | --- |\n"
    )
    return head + "\n".join(rows) + "\n"


def decisions() -> Iterator[tuple[Path, dict[str, Any], str]]:
    """Yield each decision's file, its front matter and its title."""
    for path in sorted((DOCS / "decisions").glob("0*.md")):
        _, front, body = path.read_text(encoding="utf-8").split("---\n", 2)
        title = body.strip().partition("\n")[0].removeprefix("# ")
        yield path, yaml.safe_load(front), re.sub(r"^\d+\. ", "", title)


#: upper limits from here on are technical, and not shown
_UNBOUNDED = 10**9
#: generated page → its text
PAGES: dict[str, Callable[[], str]] = {
    "reference/cli.md": cli_page,
    "reference/settings.md": settings_page,
    "reference/exit-status.md": exit_status_page,
    "reference/schemas.md": schemas_page,
    "decisions/index.md": decisions_page,
}


def _prose(text: str | None) -> str:
    """Return a docstring as Markdown: its first part, without Sphinx's roles."""
    plain = re.split(r"\n\s*(?:Args|Raises|Returns|Yields):", (text or "").strip(), maxsplit=1)[0]
    plain = re.sub(r":\w+:`[~!]?([^`]+)`", r"`\1`", plain).replace("``", "`")
    return re.sub(r"[ \t]*\n[ \t]*", "\n", plain.replace("\f", "\n"))


def _cell(text: str | None) -> str:
    return " ".join(_prose(text).split()).replace("|", "\\|").replace("<", "&lt;")


def _argument(parameter: Any) -> str:
    name = (parameter.metavar or parameter.name or "").strip("[]").upper()
    return f"[{name}]" if not parameter.required else name


def _option(parameter: Any) -> str:
    names = [*parameter.opts, *parameter.secondary_opts]
    value = "" if parameter.is_flag else f" {_metavar(parameter)}"
    return ", ".join(f"`{name}{value}`" for name in names)


def _metavar(parameter: Any) -> str:
    if parameter.metavar:
        return str(parameter.metavar)
    kind = parameter.type_descriptor.annotation
    if isinstance(kind, type) and issubclass(kind, Enum):
        return "|".join(str(choice.value) for choice in kind)
    return {int: "INTEGER", float: "NUMBER"}.get(kind, "TEXT")


def _with_default(parameter: Any) -> str:
    """Return an option's help, with its default and limits where the help does not say them."""
    text = (parameter.help or "").rstrip()
    low, high = parameter.min, parameter.max
    if low is not None and str(low) not in text:
        bounded = high is not None and high < _UNBOUNDED
        text += f" From {low} to {high}." if bounded else f" At least {low}."
    if parameter.required:
        text += " Required."
    elif "default" not in text.lower() and (default := _value(parameter.default)):
        text += f" Default: {default}."
    return text


def _value(value: Any) -> str:
    if value is None or value == "" or value == () or callable(value):
        return ""
    if isinstance(value, bool):
        return "on" if value else "off"
    return f"`{getattr(value, 'value', value)}`"
