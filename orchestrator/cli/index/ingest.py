"""``posology ingest``, ``index info``, ``index notices``, ``index versions`` and ``index upgrade``."""

from __future__ import annotations

from contextlib import ExitStack
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from orchestrator.cli.common import IndexOption, JsonOption, errors, print_json, tell_preparing
from orchestrator.cli.ending import SOME_BAD
from orchestrator.cli.index.notices import notices
from orchestrator.cli.index.options import ColumnOptions, TargetOptions
from orchestrator.cli.index.payment import confirm_ingest
from orchestrator.cli.option_groups import grouped
from orchestrator.cli.purchases import DryRunOption, YesOption
from orchestrator.settings import load_settings

app = typer.Typer(help="Inspect an index, and flag its passages by files of notices.")
app.command("notices")(notices)


@grouped
def ingest(
    paths: Annotated[
        list[Path],
        typer.Argument(
            metavar="PATH",
            help="Files and folders: CSV, PubMed (.nbib, XML), RIS, BibTeX, EndNote XML, JATS, PMC archives, JSONL, "
            "plain text, PDF, Word, HTML. Or zotero:COLLECTION, zotero: (the whole library), zotero:group/ID.",
        ),
    ],
    *,
    vectors: Annotated[
        Path | None,
        typer.Option(
            help="A .npy file with the passages' vectors: row i for line i of one JSONL file. Default: computed."
        ),
    ] = None,
    quick: Annotated[
        bool,
        typer.Option(
            "--quick",
            help="Make all passages searchable first; encode sentences and token codes after that. An interrupted run is "
            "completed by the next ingest of the files.",
        ),
    ] = False,
    columns: ColumnOptions,
    options: TargetOptions,
    dry_run: DryRunOption = False,
    yes: YesOption = False,
    as_json: JsonOption = False,
) -> None:
    """Read literature into an index; an interrupted run resumes.

    Bad files and records are skipped and reported with file and line; the exit status is then 1. Files of a folder that
    are not literature are named. If a given path is missing, or no record of the files can be read, the exit status is
    3 and nothing is written. The tenant pays for bought vectors: the cost is printed first, and no vector is bought twice.
    """
    from orchestrator.cli.index.forms import ingest_output
    from orchestrator.cli.terminal import show_ingest
    from orchestrator.ingest.ingest import run_ingest
    from orchestrator.ingest.libraries import is_library
    from orchestrator.ingest.zotero import mirrored
    from posology.corpus.folders import check
    from posology.errors import InputError
    from posology.index.build.report import Tally
    from posology.llm.accounting import Account

    account = Account()
    with errors(as_json=as_json, account=account), ExitStack() as stack:
        settings = load_settings()
        tell_preparing()
        named = columns.chosen()
        check([path for path in paths if not is_library(path)], columns=named)
        tell = Console(stderr=True, quiet=as_json)
        given = stack.enter_context(
            mirrored(paths, settings, options.index, lambda line: tell.print(line, markup=False))
        )
        target = options.target(settings, account, given=vectors is not None)
        bought = options.bought(settings)
        if quick and bought:
            raise InputError(
                "--quick needs an embedder that runs here: vectors are bought once, and completely"
            )
        if not confirm_ingest(
            given.paths, settings, target, columns=named, bought=bought, dry_run=dry_run, yes=yes
        ):
            raise typer.Exit
        console = None if as_json else Console(stderr=True)
        # libraries may have no changes
        report = Tally().report(files=0)
        if given.paths:
            report = run_ingest(
                given.paths,
                settings,
                target,
                vectors=vectors,
                columns=named,
                console=console,
                quick=quick,
            )
        given.applied()
        out = ingest_output(report)
        if bought:
            out = out.model_copy(update={"spent_usd": account.charged})
        if as_json:
            print_json(out)
        else:
            show_ingest(Console(), Console(stderr=True), out)
    if out.bad or out.bad_files:
        raise typer.Exit(SOME_BAD)


@app.command("versions")
def versions(*, index: IndexOption = None, as_json: JsonOption = False) -> None:
    """List the readable versions, for --index-version and for replaying decisions."""
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


@app.command("upgrade")
def upgrade(*, index: IndexOption = None, as_json: JsonOption = False) -> None:
    """Add to an index of an earlier version the roles of its sentences: background, aim, methods, results, conclusion.

    They are computed from stored vectors; nothing is encoded or bought. An interrupted upgrade resumes. Readers keep
    answering from the version of before, and switch when it is complete.
    """
    from time import perf_counter

    from orchestrator.cli.index.forms import UpgradeOutput
    from orchestrator.service import index_place
    from posology.index.build.upgrade import upgrade as upgrade_index
    from posology.index.store import Index

    with errors(as_json=as_json):
        opened = Index.open(index_place(load_settings(), index))
        began, done = perf_counter(), 0
        with Console(stderr=True, quiet=as_json).status("Upgrading …") as status:

            def step(written: int) -> None:
                nonlocal done
                done += written
                status.update(f"Upgrading: {done:,} passages")

            found = upgrade_index(opened, step=step)
        out = UpgradeOutput(
            written=found.written,
            left=found.lacking,
            version=opened.version,
            seconds=perf_counter() - began,
        )
        if as_json:
            print_json(out)
        else:
            none = f" {out.left:,} have none: they are known for vectors of the packaged embedder only."
            left = none if out.left else ""
            Console().print(
                f"{out.version}: roles of sentences added to {out.written:,} passages.{left}",
                highlight=False,
            )


@app.command("info")
def info(
    *,
    index: IndexOption = None,
    everything: Annotated[
        bool,
        typer.Option(
            "--all", help="Also show versions, models and the search index of the vectors."
        ),
    ] = False,
    as_json: JsonOption = False,
) -> None:
    """Show what an index holds: articles, years, collections, size and last change."""
    from orchestrator.cli.index.view import info_output
    from orchestrator.cli.terminal import show_index
    from orchestrator.service import index_place
    from posology.index.store import Index

    with errors(as_json=as_json):
        out = info_output(Index.open(index_place(load_settings(), index)))
        if as_json:
            print_json(out)
        else:
            show_index(Console(), out, everything=everything)
