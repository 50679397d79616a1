"""``posology fetch``."""

from __future__ import annotations

import re
import sys
from typing import Annotated

import typer
from rich.console import Console
from rich.text import Text

from orchestrator.cli.common import JsonOption, errors, print_json, tell_preparing
from orchestrator.cli.ending import SOME_BAD
from orchestrator.cli.live.options import FetchOptions, run_fetch
from orchestrator.cli.option_groups import grouped
from orchestrator.settings import load_settings

_NCT = re.compile(r"NCT[0-9]{8}", re.IGNORECASE)


@grouped
def fetch(
    words: Annotated[
        list[str],
        typer.Argument(
            metavar="QUERY|PMID…|NCT…",
            help="Query in the service's language, in quotes; or PubMed ids; or numbers of ClinicalTrials.gov; -: ids on "
            "standard input.",
        ),
    ],
    *,
    index: Annotated[
        str | None,
        typer.Option(
            "--index",
            metavar="DIR",
            help="Index to add the records to. Default: an index of their own in the cache.",
        ),
    ] = None,
    links: Annotated[
        str | None,
        typer.Option(
            "--links",
            help="With PubMed ids, articles to fetch in their place: related or cited_by. Default: none.",
        ),
    ] = None,
    options: FetchOptions,
    as_json: JsonOption = False,
) -> None:
    """Fetch literature from PubMed or Europe PMC, or study records from ClinicalTrials.gov, and index them.

    An interrupted fetch resumes at the next call of the same day, and a complete one is not repeated that day. Files and
    provenance stay in the folder `live` of POSOLOGY_HOME. Fetching is free of charge and needs no key.
    """
    from orchestrator.ingest.cache import cached_index
    from orchestrator.ingest.ingest import run_ingest
    from orchestrator.ingest.live.fetching import files_of
    from orchestrator.ingest.writer import Target

    with errors(as_json=as_json):
        settings = load_settings()
        given = sys.stdin.read().split() if words == ["-"] else words
        asked = options.asked(**_what(given), links=links)
        fetched = run_fetch(settings, asked, quiet=as_json)
        folder = files_of(settings, fetched)
        tell_preparing()
        console = None if as_json else Console(stderr=True)
        if index is None:
            made = cached_index([folder], settings, console=console)
            bad = 0 if made.report is None else made.report.bad
            then = f'posology ask "…" {folder}'
        else:
            bad = run_ingest([folder], settings, Target(place=index), console=console).bad
            then = f'posology ask "…" --index {index}'
        if as_json:
            print_json(fetched)
        else:
            Console().print(
                Text(f"{fetched.records:,} records in {folder}\nAsk: {then}"), soft_wrap=True
            )
            if bad:
                Console(stderr=True).print(
                    f"{bad:,} of them cannot be read, e.g. because they have no abstract"
                )
    if bad and not fetched.records - bad:
        raise typer.Exit(SOME_BAD)


def _what(given: list[str]) -> dict[str, object]:
    if given and all(word.isascii() and word.isdigit() for word in given):
        return {"pmids": given}
    if given and all(_NCT.fullmatch(word) for word in given):
        return {"trials": [word.upper() for word in given]}
    return {"query": " ".join(given)}
