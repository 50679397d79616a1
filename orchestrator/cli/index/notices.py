"""``posology index notices``: a second source of retractions."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import Console

from orchestrator.cli.common import IndexOption, JsonOption, errors, print_json
from orchestrator.cli.ending import SOME_BAD
from orchestrator.cli.output.tables import print_line
from orchestrator.settings import load_settings

if TYPE_CHECKING:
    from orchestrator.cli.index.forms import NoticesOutput


def notices(
    file: Annotated[
        Path,
        typer.Argument(metavar="FILE", help="CSV of Retraction Watch's form, plain or gzipped."),
    ],
    *,
    index: IndexOption = None,
    source: Annotated[
        str,
        typer.Option(
            "--source",
            metavar="NAME",
            help="Name of the source. The file replaces its earlier file.",
        ),
    ] = "retraction-watch",
    allow_removals: Annotated[
        bool,
        typer.Option(
            "--allow-removals",
            help="Continue although the file lacks more than a tenth of the source's earlier reports.",
        ),
    ] = False,
    as_json: JsonOption = False,
) -> None:
    """Flag passages by a file of retractions, expressions of concern, corrections and reinstatements.

    Passages are matched by PMID and DOI, now and when they come later; none is encoded again. One version is published.
    The same file again changes nothing. Bad rows are skipped and reported with their lines; the exit status is then 1.
    """
    from orchestrator.cli.index.forms import notices_output
    from orchestrator.ingest.notices import take_notices
    from orchestrator.service import index_place
    from posology.index.store import Index

    with errors(as_json=as_json):
        settings = load_settings()
        opened = Index.open(index_place(settings, index))
        opened.keep = settings.kept_versions
        report = take_notices(file, opened, source=source, allow_removals=allow_removals)
        out = notices_output(report)
        if as_json:
            print_json(out)
        else:
            _show(Console(), Console(stderr=True), out)
    if out.bad:
        raise typer.Exit(SOME_BAD)


def _show(console: Console, faults: Console, out: NoticesOutput) -> None:

    for item in out.bad_records:
        record = f" ({item.record})" if item.record else ""
        line = f"{item.path}:{item.line}{record}: {item.reason}"
        print_line(faults, line, "yellow")
    if len(out.bad_records) < out.bad:
        print_line(faults, f"… and {out.bad - len(out.bad_records):,} more", "yellow")
    named = (
        f"{out.retractions:,} retractions, {out.concerns:,} expressions of concern, {out.corrections:,} corrections, "
        f"{out.reinstatements:,} reinstatements; {out.unidentified:,} without PMID and DOI, {out.bad:,} invalid"
    )
    print_line(console, f"{out.source}: {named}")
    if out.known:
        print_line(console, f"nothing to do: {out.index} has these reports already")
    else:
        withdrawn = f"{out.withdrawn:,} earlier reports withdrawn; " if out.withdrawn else ""
        done = f"{withdrawn}flags of {out.changed:,} passages changed; published {out.index}"
        print_line(console, done)
