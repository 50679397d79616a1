"""The choice of an output format."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import Annotated

import typer

from orchestrator.cli.common import JsonOption
from orchestrator.cli.option_groups import Group
from orchestrator.rendering.kinds import Format


@dataclass(frozen=True, kw_only=True, slots=True)
class OutputOptions(Group):
    """How a result is printed."""

    format: Annotated[
        Format | None,
        typer.Option(
            "--format",
            case_sensitive=False,
            help="Output format; ris, bibtex and csl print citations, csv and table (Markdown) a row for each quote or "
            "passage. Default: text.",
        ),
    ] = None
    as_json: JsonOption = False

    def chosen(self) -> Format:
        """Return the format.

        Raises:
            BadParameter: ``--json`` came with another format.
        """
        if self.as_json and self.format not in (None, Format.JSON):
            raise typer.BadParameter(f"--json and --format {self.format} exclude each other")
        return Format.JSON if self.as_json else self.format or Format.TEXT


class TableFormat(StrEnum):
    """Output format of figures."""

    TEXT = "text"
    CSV = "csv"
    JSON = "json"


@dataclass(frozen=True, kw_only=True, slots=True)
class TableOptions(Group):
    """How figures are printed."""

    format: Annotated[
        TableFormat | None,
        typer.Option("--format", case_sensitive=False, help="Output format. Default: text."),
    ] = None
    as_json: JsonOption = False

    def chosen(self) -> TableFormat:
        """Return the format.

        Raises:
            BadParameter: ``--json`` came with another format.
        """
        if self.as_json and self.format not in (None, TableFormat.JSON):
            raise typer.BadParameter(f"--json and --format {self.format} exclude each other")
        return TableFormat.JSON if self.as_json else self.format or TableFormat.TEXT
