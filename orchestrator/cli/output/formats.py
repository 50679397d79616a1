"""The choice of an output format."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import Annotated, TypeVar

import typer

from orchestrator.cli.common import JsonOption
from orchestrator.cli.option_groups import Group
from orchestrator.rendering.kinds import Format

_Kind = TypeVar("_Kind", bound=StrEnum)


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
        """Return the format; see :func:`_chosen`."""
        return _chosen(self.format, Format, as_json=self.as_json)


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
        """Return the format; see :func:`_chosen`."""
        return _chosen(self.format, TableFormat, as_json=self.as_json)


def _chosen(given: _Kind | None, kinds: type[_Kind], *, as_json: bool) -> _Kind:
    """Return the format of a result, by default text.

    Raises:
        BadParameter: ``--json`` came with another format.
    """
    if as_json and given not in (None, kinds("json")):
        raise typer.BadParameter(f"--json and --format {given} exclude each other")
    return kinds("json" if as_json else given or "text")
