"""``posology sync``: keeps an index current with a folder of files."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import Console

from orchestrator.cli.common import JsonOption, errors, print_json
from orchestrator.cli.ending import SOME_BAD
from orchestrator.cli.index.options import TargetOptions
from orchestrator.cli.index.payment import confirm_cost, print_cost
from orchestrator.cli.option_groups import Group, grouped
from orchestrator.cli.purchases import YesOption
from orchestrator.settings import load_settings

if TYPE_CHECKING:
    from orchestrator.ingest.sync import SyncForecast, SyncOptions


@dataclass(frozen=True, kw_only=True, slots=True)
class FileOptions(Group):
    """How the files of the folder are applied."""

    allow_gaps: Annotated[
        bool,
        typer.Option(
            "--allow-gaps", help="Continue although files of PubMed's numbering are missing."
        ),
    ] = False
    reapply: Annotated[
        bool,
        typer.Option(
            "--reapply",
            help="Accept a new file that comes before applied ones, and apply those again.",
        ),
    ] = False
    publish_each: Annotated[
        bool,
        typer.Option(
            "--publish-each", help="Publish after each file. Default: once, after the last file."
        ),
    ] = False
    rebuild: Annotated[
        bool,
        typer.Option(
            "--rebuild",
            help="Remove passages that no file of the folder holds, including those of `posology ingest`. For a new "
            "year's baseline.",
        ),
    ] = False
    allow_removals: Annotated[
        bool,
        typer.Option(
            "--allow-removals",
            help="With --rebuild: continue although more than a tenth of the index's passages would be removed.",
        ),
    ] = False

    def options(self) -> SyncOptions:
        """Return the options.

        Raises:
            BadParameter: two of them exclude each other.
        """
        from orchestrator.ingest.sync import SyncOptions

        if self.rebuild and (self.reapply or self.publish_each):
            raise typer.BadParameter(
                "--rebuild applies all files and publishes once: remove --reapply and --publish-each"
            )
        if self.allow_removals and not self.rebuild:
            raise typer.BadParameter("--allow-removals needs --rebuild")
        return SyncOptions(**asdict(self))


@grouped
def sync(
    folder: Annotated[
        Path,
        typer.Argument(
            metavar="DIR",
            help="Folder of PubMed's baseline and update files, or of others, with their .md5 files.",
        ),
    ],
    *,
    files: FileOptions,
    target_options: TargetOptions,
    dry_run: Annotated[
        bool,
        typer.Option(
            "--dry-run",
            help="Print what would be applied, removed and paid for, and write nothing.",
        ),
    ] = False,
    yes: YesOption = False,
    as_json: JsonOption = False,
) -> None:
    """Apply new files of a folder to an index, in NLM's order, once each.

    An interrupted sync resumes. Readers see the old version until all files are applied. Bad records are skipped and
    reported with file and record. An incomplete file stops a sync before it, and a rebuild before any change. In these
    cases the exit status is 1.
    """
    from orchestrator.cli.index.view import show_sync, sync_output
    from orchestrator.ingest.sync import forecast, run_sync
    from posology.llm.accounting import Account

    options = files.options()
    account = Account()
    with errors(as_json=as_json, account=account):
        settings = load_settings()
        target = target_options.target(settings, account)
        bought = target_options.bought(settings)
        if bought or dry_run:
            found = forecast(folder, settings, options, target, bought=bought)
            if dry_run:
                _print_forecast(found, as_json=as_json)
                raise typer.Exit(SOME_BAD if found.broken else 0)
            print_cost(found.vectors)
            if found.vectors is not None and not confirm_cost(found.vectors, yes=yes):
                raise typer.Exit
        console = None if as_json else Console(stderr=True)
        out = sync_output(run_sync(folder, settings, options, target, console=console))
        if bought:
            spent = out.ingest.model_copy(update={"spent_usd": account.charged})
            out = out.model_copy(update={"ingest": spent})
        if as_json:
            print_json(out)
        else:
            show_sync(Console(), Console(stderr=True), out)
    if out.ingest.bad or out.ingest.bad_files:
        raise typer.Exit(SOME_BAD)


def _print_forecast(found: SyncForecast, *, as_json: bool) -> None:
    from orchestrator.cli.index.view import prospect_output, show_prospect

    out = prospect_output(found)
    if as_json:
        print_json(out)
    else:
        show_prospect(Console(), Console(stderr=True), out)
        print_cost(found.vectors)
