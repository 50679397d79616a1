"""Keeps an index current with a folder of files."""

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
from orchestrator.cli.index.payment import VectorCostOption, bought, go_on, payer, tell_cost
from orchestrator.cli.index.workers import DistributedOption, WorkersOption, spread
from orchestrator.cli.purchases import YesOption
from orchestrator.settings import load_settings

ForeseeOption = Annotated[
    bool,
    typer.Option(
        "--dry-run", help="Tell what would be applied, removed and paid for, and write nothing."
    ),
]


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
    rebuild: Annotated[
        bool,
        typer.Option(
            "--rebuild",
            help="The folder is all there is: remove what none of its files holds, what `posology ingest` put there "
            "included. For a new year's baseline.",
        ),
    ] = False,
    allow_removals: Annotated[
        bool,
        typer.Option(
            "--allow-removals",
            help="Rebuild although more than a tenth of the index's passages would go.",
        ),
    ] = False,
    workers: WorkersOption = None,
    distributed: DistributedOption = False,
    tenant: TenantOption = None,
    max_cost: VectorCostOption = None,
    dry_run: ForeseeOption = False,
    yes: YesOption = False,
    as_json: JsonOption = False,
) -> None:
    """Apply the files of a folder that the index does not have yet, in NLM's order, once each.

    What was broken off goes on where it stopped. Readers see the index as it was until all is applied. Bad records
    are reported with file and record and passed over, a file that did not arrive whole stops the sync before
    it, and a rebuild before anything is done: the exit status is then 1.
    """
    from orchestrator.cli.index.view import prospect_output, show_prospect, show_sync, sync_output
    from orchestrator.ingest.sync import Ways, foresee, run_sync
    from posology.llm.accounting import Account

    if rebuild and (reapply or publish_each):
        raise typer.BadParameter(
            "with --rebuild all files are applied, and readers see all at the end: "
            "say neither --reapply nor --publish-each"
        )
    if allow_removals and not rebuild:
        raise typer.BadParameter("--allow-removals is for --rebuild alone")
    account = Account()
    with errors(as_json=as_json, account=account):
        settings = load_settings()
        who = payer(settings, tenant=tenant, max_cost=max_cost, account=account)
        ways = Ways(
            allow_gaps=allow_gaps,
            reapply=reapply,
            publish_each=publish_each,
            rebuild=rebuild,
            allow_removals=allow_removals,
        )
        paid = bought(settings, embedder)
        if paid or dry_run:
            found = foresee(
                folder, settings, ways, who, bought=paid, place=index, embedder=embedder
            )
            if dry_run:
                told = prospect_output(found)
                if as_json:
                    print_json(told)
                else:
                    show_prospect(Console(), Console(stderr=True), told)
                    tell_cost(found.vectors)
                raise typer.Exit(SOME_BAD if told.bad_files else 0)
            tell_cost(found.vectors)
            if found.vectors is not None and not go_on(found.vectors, yes=yes):
                raise typer.Exit
        report = run_sync(
            folder,
            settings,
            ways,
            place=index,
            embedder=embedder,
            payer=who,
            spread=spread(workers, distributed=distributed),
            console=None if as_json else Console(stderr=True),
        )
        out = sync_output(report)
        if paid:
            spent = out.ingest.model_copy(update={"spent_usd": account.charged})
            out = out.model_copy(update={"ingest": spent})
        if as_json:
            print_json(out)
        else:
            show_sync(Console(), Console(stderr=True), out)
    if out.ingest.bad or out.ingest.bad_files:
        raise typer.Exit(SOME_BAD)
