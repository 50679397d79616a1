"""What commands say and ask before literature's vectors are bought."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from anyio import run
from rich.console import Console
from rich.text import Text

from orchestrator.cli.purchases import somebody_watches
from orchestrator.settings import Settings

if TYPE_CHECKING:
    from orchestrator.ingest.embedding import IngestEstimate, Payer
    from posology.llm.accounting import Account

#: what names embedders that are paid for
_PAID = "openai"
VectorCostOption = Annotated[
    str | None,
    typer.Option(
        "--max-cost",
        metavar="USD",
        help="What all calls of this run may cost together, where vectors are bought.",
    ),
]


def payer(
    settings: Settings,
    *,
    tenant: str | None,
    max_cost: str | None,
    account: Account,
    given: bool = False,
) -> Payer:
    """Who pays for vectors that are bought; see :class:`~orchestrator.ingest.embedding.Payer`.

    Raises:
        InvalidQuery: ``max_cost`` is no amount of dollars.
    """
    from orchestrator.ingest.embedding import Payer
    from orchestrator.question.request import AskRequest

    like = AskRequest.parse({"question": "any", "max_cost_usd": max_cost})
    return Payer(
        tenant=tenant or settings.tenant, cap=like.max_cost_usd, account=account, given=given
    )


def bought(settings: Settings, embedder: str | None) -> bool:
    """Whether the embedder's vectors are paid for; no model is loaded."""
    return (embedder or settings.embedder or "").partition(":")[0] == _PAID


def agreed(
    paths: Sequence[Path],
    settings: Settings,
    who: Payer,
    *,
    index: str | None,
    embedder: str | None,
    dry_run: bool,
    yes: bool,
) -> bool:
    """Tell what vectors will cost, and ask whether to go on where somebody watches.

    Args:
        paths: files and folders.
        settings: say what the arguments do not.
        who: pays.
        index: where to; it need not be there yet.
        embedder: whose vectors.
        dry_run: whether it is to end here.
        yes: whether nobody is asked.

    Raises:
        IndexMismatch: the index was made with another embedder.
        PosologyError: it is not known what they will cost.
    """
    if not bought(settings, embedder):
        if dry_run:
            tell_cost(None)
        return not dry_run
    from orchestrator.ingest.embedding import changed_of, estimate
    from orchestrator.models import Models
    from orchestrator.service import index_place
    from posology.errors import IndexMissing
    from posology.index.embedders import load
    from posology.index.embedders.paid.embedder import OpenAIEmbedder
    from posology.index.store import Index

    paid = load(embedder or settings.embedder)
    assert isinstance(paid, OpenAIEmbedder)
    try:
        there = Index.open(index_place(settings, index))
        there.require(paid.name, paid.dim)
    except IndexMissing:
        there = None
    models = Models(embedder or settings.embedder, settings.embedding)
    found = run(estimate, changed_of(paths, there), paid, settings, models, who)
    tell_cost(found)
    return not dry_run and go_on(found, yes=yes)


def tell_cost(found: IngestEstimate | None) -> None:
    """Tell what vectors will cost; ``None``: they are computed on this machine."""
    from orchestrator.ingest.embedding import estimate_lines

    if found is None:
        _tell("vectors are computed on this machine: nothing is to be paid for")
        return
    for line in estimate_lines(found):
        _tell(line)


def go_on(found: IngestEstimate, *, yes: bool) -> bool:
    """Whether what vectors cost is to be paid; somebody is asked where somebody watches."""
    free = not found.dollars.worst
    return yes or free or not somebody_watches() or typer.confirm("Buy them?", err=True)


def _tell(line: str) -> None:
    Console(file=sys.stderr).print(Text(line), soft_wrap=True)
