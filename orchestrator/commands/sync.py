"""Keeps an index current with a folder of files."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from orchestrator.commands.buying import DryRunOption, YesOption
from orchestrator.commands.common import (
    SOME_BAD,
    EmbedderOption,
    IndexOption,
    JsonOption,
    TenantOption,
    errors,
    print_json,
)
from orchestrator.commands.paying import VectorCostOption, agreed, bought, payer
from orchestrator.commands.spreading import DistributedOption, WorkersOption, spread
from orchestrator.settings import load_settings


def sync(
    folder: Annotated[
        Path,
        typer.Argument(
            metavar="DIR", help="Baseline and update files of PubMed, or others, .md5 beside them."
        ),
    ],
    *,
    index: IndexOption = None,
    embedder: EmbedderOption = None,
    allow_gaps: Annotated[
        bool,
        typer.Option(
            "--allow-gaps", help="Go on although files that the numbering wants are missing."
        ),
    ] = False,
    reapply: Annotated[
        bool,
        typer.Option(
            "--reapply",
            help="Apply a file that comes before others that were applied, and all of those once more.",
        ),
    ] = False,
    publish_each: Annotated[
        bool,
        typer.Option(
            "--publish-each",
            help="Let readers see every file when it is applied, not all at the end.",
        ),
    ] = False,
    workers: WorkersOption = None,
    distributed: DistributedOption = False,
    tenant: TenantOption = None,
    max_cost: VectorCostOption = None,
    dry_run: DryRunOption = False,
    yes: YesOption = False,
    as_json: JsonOption = False,
) -> None:
    """Apply the files of a folder that the index does not have yet, in NLM's order, once each.

    What was broken off goes on where it stopped. Readers see the index as it was until all is applied. Bad records
    are reported with file and record and passed over, a file that did not arrive whole stops the sync before
    it: the exit status is then 1.
    """
    from orchestrator.show_sync import show_sync, sync_output
    from orchestrator.syncing import run_sync
    from posology.llm.accounting import Account

    account = Account()
    with errors(as_json=as_json, account=account):
        settings = load_settings()
        who = payer(settings, tenant=tenant, max_cost=max_cost, account=account)
        if not agreed(
            [folder], settings, who, index=index, embedder=embedder, dry_run=dry_run, yes=yes
        ):
            raise typer.Exit
        report = run_sync(
            folder,
            settings,
            place=index,
            embedder=embedder,
            allow_gaps=allow_gaps,
            reapply=reapply,
            publish_each=publish_each,
            payer=who,
            spread=spread(workers, distributed=distributed),
            console=None if as_json else Console(stderr=True),
        )
        out = sync_output(report)
        if bought(settings, embedder):
            spent = out.ingest.model_copy(update={"spent_usd": account.charged})
            out = out.model_copy(update={"ingest": spent})
        if as_json:
            print_json(out)
        else:
            show_sync(Console(), Console(stderr=True), out)
    if out.ingest.bad or out.ingest.bad_files:
        raise typer.Exit(SOME_BAD)
