"""Options of the commands that write an index, and the target that they describe."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated

import typer

from orchestrator.cli.common import EmbedderOption, IndexOption, TenantOption
from orchestrator.cli.option_groups import Group

if TYPE_CHECKING:
    from orchestrator.ingest.writer import Target
    from orchestrator.settings import Settings
    from posology.corpus.references.columns import Columns
    from posology.llm.accounting import Account

#: prefix of embedders that are paid for
_PAID = "openai"


@dataclass(frozen=True, kw_only=True, slots=True)
class ColumnOptions(Group):
    """How tables among the files are read."""

    column: Annotated[
        list[str] | None,
        typer.Option(
            "--column",
            metavar="FIELD=NAME",
            help="Column of CSV and TSV files that holds a field, e.g. text=Summary (the abstract), title=Article, "
            "pmid, doi, year, authors, journal. Repeatable. Default: guessed by the columns' names.",
        ),
    ] = None

    def chosen(self) -> Columns:
        """Return the named columns.

        Raises:
            InputError: one is not FIELD=NAME, or its field is unknown.
        """
        from posology.corpus.references.columns import Columns

        return Columns.of(self.column or ())


@dataclass(frozen=True, kw_only=True, slots=True)
class TargetOptions(Group):
    """The index to write, and who computes and pays for its vectors."""

    index: IndexOption = None
    embedder: EmbedderOption = None
    workers: Annotated[
        int | None,
        typer.Option(
            "--workers",
            min=1,
            metavar="N",
            help="Worker processes on this machine that encode, for this run only. Default: none, this process "
            "encodes.",
        ),
    ] = None
    distributed: Annotated[
        bool,
        typer.Option(
            "--distributed",
            help="Encode on the running workers of the queue posology.ingest. They must reach the index and "
            "POSOLOGY_REDIS_URL.",
        ),
    ] = False
    tenant: TenantOption = None
    max_cost: Annotated[
        str | None,
        typer.Option(
            "--max-cost",
            metavar="USD",
            help="Limit for all calls of this run, in dollars, if vectors are bought. Default: the tenant's limits.",
        ),
    ] = None

    def bought(self, settings: Settings) -> bool:
        """Return whether the embedder's vectors are paid for; no model is loaded."""
        return (self.embedder or settings.embedder or "").partition(":")[0] == _PAID

    def target(self, settings: Settings, account: Account, *, given: bool = False) -> Target:
        """Return the target.

        Args:
            settings: supply the tenant, if none is given.
            account: lists every attempt.
            given: whether passage vectors are given.

        Raises:
            InvalidQuery: ``max_cost`` is not an amount of dollars.
            BadParameter: both workers and distributed workers are asked for.
        """
        from orchestrator.ingest.embedding import Payer
        from orchestrator.ingest.shards.processes import Spread
        from orchestrator.ingest.writer import Target
        from orchestrator.question.request import AskRequest

        if self.workers is not None and self.distributed:
            raise typer.BadParameter("--workers and --distributed exclude each other: pass one")
        cap = AskRequest.parse({"question": "any", "max_cost_usd": self.max_cost}).max_cost_usd
        tenant = self.tenant or settings.tenant
        spread = self.workers is not None or self.distributed
        return Target(
            place=self.index,
            embedder=self.embedder,
            payer=Payer(tenant=tenant, cap=cap, account=account, given=given),
            spread=Spread(workers=self.workers) if spread else None,
        )
