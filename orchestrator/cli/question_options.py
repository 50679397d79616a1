"""The options of a question, for every command that asks, searches or estimates."""

from __future__ import annotations

import sys
from dataclasses import asdict, dataclass
from typing import Annotated, Any

import typer

from orchestrator.cli.common import (
    CompressorOption,
    KeepOption,
    KOption,
    MaxCostOption,
    MaxTokensOption,
    ModelOption,
    ModeOption,
    PartitionOption,
    PolicyOption,
    RetractedOption,
    StrategyOption,
    VersionOption,
)
from orchestrator.cli.option_groups import Group
from posology.errors import InvalidQuery
from posology.types import Form


@dataclass(frozen=True, kw_only=True, slots=True)
class FilterOptions(Group):
    """Which passages may be found; fields as of :class:`~orchestrator.question.request.FiltersRequest`."""

    since: Annotated[
        int | None, typer.Option("--since", metavar="YEAR", help="Of passages: the first year.")
    ] = None
    until: Annotated[
        int | None,
        typer.Option("--until", metavar="YEAR", help="The last year, itself among them."),
    ] = None
    publication_types: Annotated[
        list[str] | None,
        typer.Option(
            "--type",
            metavar="NAME",
            help="A publication type, e.g. 'Randomized Controlled Trial'; repeat for others, any of which will do.",
        ),
    ] = None
    journals: Annotated[
        list[str] | None,
        typer.Option("--journal", metavar="NAME", help="A journal; repeat for others."),
    ] = None
    mesh: Annotated[
        list[str] | None,
        typer.Option("--mesh", metavar="HEADING", help="A MeSH heading; repeat for others."),
    ] = None
    languages: Annotated[
        list[str] | None,
        typer.Option(
            "--language", metavar="CODE", help="Three letters, e.g. eng; repeat for others."
        ),
    ] = None

    def given(self) -> dict[str, Any] | None:
        """What :class:`~orchestrator.question.request.FiltersRequest` reads; ``None``: no filter is given."""
        values = asdict(self)
        return {name: value for name, value in values.items() if value not in (None, [])} or None


@dataclass(frozen=True, kw_only=True, slots=True)
class RowOptions(Group):
    """How the questions of a file are answered where their rows do not say it."""

    model: ModelOption = None
    k: KOption = 8
    mode: ModeOption = "fused"
    max_tokens: MaxTokensOption = None
    strategy: StrategyOption = None
    keep: KeepOption = None
    compressor: CompressorOption = None
    policy: PolicyOption = None
    partition_size: PartitionOption = None


@dataclass(frozen=True, kw_only=True, slots=True)
class QuestionOptions(Group):
    """How one question is answered."""

    model: ModelOption = None
    k: KOption = 8
    mode: ModeOption = "fused"
    form: Annotated[str, typer.Option("--form", help=f"The answer's form: {', '.join(Form)}.")] = (
        Form.FREE.value
    )
    option: Annotated[
        list[str] | None,
        typer.Option("--option", metavar="A=TEXT", help="An answer option; repeat for each."),
    ] = None
    max_tokens: MaxTokensOption = None
    strategy: StrategyOption = None
    keep: KeepOption = None
    compressor: CompressorOption = None
    policy: PolicyOption = None
    partition_size: PartitionOption = None
    retracted: RetractedOption = False
    filters: FilterOptions
    index_version: VersionOption = None
    max_cost: MaxCostOption = None

    def fields(self, question: str) -> dict[str, Any]:
        """A question and its options, as :class:`~orchestrator.question.request.AskRequest` reads them.

        Args:
            question: ``-``: it is read from standard input.

        Raises:
            InvalidQuery: an option is not of the form A=TEXT.
        """
        return {
            "question": _read_stdin() if question == "-" else question,
            "form": self.form,
            "options": _labelled(self.option or []) or None,
            "model": self.model,
            "k": self.k,
            "mode": self.mode,
            "retracted": self.retracted,
            "max_tokens": self.max_tokens,
            "strategy": self.strategy,
            "keep": self.keep,
            "compressor": self.compressor,
            "policy": self.policy,
            "partition_size": self.partition_size,
            "max_cost_usd": self.max_cost,
            "filters": self.filters.given(),
            "index_version": self.index_version,
        }


def _read_stdin() -> str:
    # what is not UTF-8 is refused as a question, with a message, where every question is checked
    return sys.stdin.buffer.read().decode("utf-8", errors="surrogateescape")


def _labelled(given: list[str]) -> dict[str, str]:
    options: dict[str, str] = {}
    for item in given:
        label, equals, text = item.partition("=")
        if not equals or label in options:
            raise InvalidQuery(
                f"--option {item!r} is not of the form A=TEXT, each letter once", field="options"
            )
        options[label] = text
    return options
