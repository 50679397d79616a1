"""Cost of bought vectors: printed, and confirmed, before they are bought."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import typer
from anyio import run
from rich.console import Console
from rich.text import Text

from orchestrator.cli.purchases import has_terminal
from orchestrator.settings import Settings

if TYPE_CHECKING:
    from orchestrator.ingest.embedding import IngestEstimate
    from orchestrator.ingest.writer import Target
    from posology.corpus.references.columns import Columns


def confirm_ingest(
    paths: Sequence[Path],
    settings: Settings,
    target: Target,
    *,
    columns: Columns,
    bought: bool,
    dry_run: bool,
    yes: bool,
) -> bool:
    """Print what vectors will cost, ask for confirmation on a terminal, and return whether to continue.

    Args:
        paths: files and folders.
        settings: the configuration.
        target: the index, which need not exist yet, and who pays for its vectors.
        columns: names of columns of tables.
        bought: whether vectors are bought.
        dry_run: whether to stop here.
        yes: whether to continue without asking.

    Raises:
        IndexMismatch: the index was made with another embedder.
        PosologyError: the price of the vectors is unknown.
    """
    if not bought:
        if dry_run:
            print_cost(None)
        return not dry_run
    from orchestrator.ingest.embedding import changed_of, estimate
    from orchestrator.models import Models
    from orchestrator.service import index_place
    from posology.errors import IndexMissing
    from posology.index.embedders import load
    from posology.index.embedders.paid.embedder import OpenAIEmbedder
    from posology.index.store import Index

    name = target.embedder or settings.embedder
    paid = load(name)
    assert isinstance(paid, OpenAIEmbedder)
    try:
        index = Index.open(index_place(settings, target.place))
        index.require(paid.name, paid.dim)
    except IndexMissing:
        index = None
    models = Models(name, settings.embedding)
    found = run(
        estimate, changed_of(paths, index, columns=columns), paid, settings, models, target.payer
    )
    print_cost(found)
    return not dry_run and confirm_cost(found, yes=yes)


def print_cost(found: IngestEstimate | None) -> None:
    """Print what vectors will cost; ``None``: they are computed on this machine."""
    from orchestrator.ingest.embedding import estimate_lines

    if found is None:
        _print("no cost: vectors are computed on this machine")
        return
    for line in estimate_lines(found):
        _print(line)


def confirm_cost(found: IngestEstimate, *, yes: bool) -> bool:
    """Return whether to buy the vectors; the user is asked on a terminal only."""
    free = not found.dollars.worst
    return yes or free or not has_terminal() or typer.confirm("Buy them?", err=True)


def _print(line: str) -> None:
    Console(file=sys.stderr).print(Text(line), soft_wrap=True)
