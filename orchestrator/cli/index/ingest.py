"""The index: what goes in, and what is in it."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from orchestrator.cli.common import (
    SOME_BAD,
    EmbedderOption,
    IndexOption,
    JsonOption,
    TenantOption,
    errors,
    print_json,
)
from orchestrator.cli.index.payment import VectorCostOption, agreed, bought, payer
from orchestrator.cli.index.workers import DistributedOption, WorkersOption, spread
from orchestrator.cli.purchases import DryRunOption, YesOption
from orchestrator.settings import load_settings

app = typer.Typer(help="Looks into an index.", no_args_is_help=True)


def ingest(
    paths: Annotated[
        list[Path],
        typer.Argument(
            metavar="PATH…",
            help="Files, or folders of them: JSONL, PubMed's XML, JATS, PMC's archives, text, PDF.",
        ),
    ],
    *,
    index: IndexOption = None,
    vectors: Annotated[
        Path | None,
        typer.Option(help="A .npy file with the passages' vectors, row by row of one JSONL file."),
    ] = None,
    embedder: EmbedderOption = None,
    workers: WorkersOption = None,
    distributed: DistributedOption = False,
    tenant: TenantOption = None,
    max_cost: VectorCostOption = None,
    dry_run: DryRunOption = False,
    yes: YesOption = False,
    as_json: JsonOption = False,
) -> None:
    """Read literature into an index, and go on where an earlier run stopped.

    Bad records are reported with file and line and passed over; the exit status is then 1. Vectors that are
    bought are paid by the tenant: what they will cost is told before, and what was bought is never bought again.
    """
    from orchestrator.cli.terminal import show_ingest
    from orchestrator.ingest.ingest import run_ingest
    from orchestrator.question.report import ingest_output
    from posology.llm.accounting import Account

    account = Account()
    with errors(as_json=as_json, account=account):
        settings = load_settings()
        who = payer(
            settings,
            tenant=tenant,
            max_cost=max_cost,
            account=account,
            given=vectors is not None,
        )
        if not agreed(
            paths, settings, who, index=index, embedder=embedder, dry_run=dry_run, yes=yes
        ):
            raise typer.Exit
        report = run_ingest(
            paths,
            settings,
            place=index,
            embedder=embedder,
            vectors=vectors,
            payer=who,
            spread=spread(workers, distributed=distributed),
            console=None if as_json else Console(stderr=True),
        )
        out = ingest_output(report)
        if bought(settings, embedder):
            out = out.model_copy(update={"spent_usd": account.charged})
        if as_json:
            print_json(out)
        else:
            show_ingest(Console(), Console(stderr=True), out)
    if out.bad or out.bad_files:
        raise typer.Exit(SOME_BAD)


@app.command("versions")
def versions(*, index: IndexOption = None, as_json: JsonOption = False) -> None:
    """List the versions that can be read: with --index-version, and when a decision is replayed."""
    from orchestrator.cli.index.view import show_versions, versions_output
    from orchestrator.service import index_place
    from posology.index.store import Index

    with errors(as_json=as_json):
        settings = load_settings()
        opened = Index.open(index_place(settings, index))
        opened.keep = settings.kept_versions
        out = versions_output(opened)
        if as_json:
            print_json(out)
        else:
            show_versions(Console(), out)


@app.command("info")
def info(*, index: IndexOption = None, as_json: JsonOption = False) -> None:
    """Show what an index holds, and which embedder made it."""
    from orchestrator.cli.terminal import show_index
    from orchestrator.service import index_place
    from posology.index.store import Index

    with errors(as_json=as_json):
        out = Index.open(index_place(load_settings(), index)).info()
        if as_json:
            print_json(out)
        else:
            show_index(Console(), out)
