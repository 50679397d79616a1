"""Commands in this process, and what they print held against the published schemas."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import jsonschema
from typer.testing import CliRunner, Result

from orchestrator.cli.app import app
from posology.testing import StubProvider

SCHEMAS = Path(__file__).resolve().parents[2] / "docs" / "schema"
Cli = Callable[..., Result]

_RUNNER = CliRunner()


def command_line(environment: Mapping[str, str], *command: str) -> Cli:
    """Runs a command in this process, with a provider's stub if one is given."""

    def run(
        *arguments: str,
        stub: StubProvider | None = None,
        stdin: str | bytes | None = None,
        **env: str,
    ) -> Result:
        served = {} if stub is None else {"OPENAI_BASE_URL": stub.openai_url}
        given = {**environment, **served, **env}
        return _RUNNER.invoke(app, [*command, *arguments], env=given, input=stdin)

    return run


def published(result: Result, name: str) -> Any:
    """The one object on standard output, checked against the published schema of that name."""
    out = json.loads(result.stdout)
    jsonschema.validate(out, json.loads((SCHEMAS / f"{name}.json").read_text(encoding="utf-8")))
    return out


def flat(text: str) -> str:
    """The words of a text in one line, without the frames of a terminal."""
    return " ".join(text.replace("│", " ").split())
