"""``posology screen``: records in reading order, readers' decisions, a statement of recall, a flow diagram."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import Console

from orchestrator.cli.common import JsonOption, errors, print_json, tell_preparing
from orchestrator.cli.ending import SOME_BAD
from orchestrator.cli.purchases import listed, say
from orchestrator.settings import load_settings

if TYPE_CHECKING:
    from orchestrator.screening.forms import ScreeningOutput


def screen(
    papers: Annotated[
        list[Path],
        typer.Argument(
            metavar="PATH...",
            help="Search results, as `posology ingest` reads them: RIS, PubMed, CSV, …",
        ),
    ],
    *,
    question: Annotated[
        str,
        typer.Option(
            "--question",
            "-q",
            metavar="TEXT",
            help="Question of the review. Records are ordered by it.",
        ),
    ],
    output: Annotated[
        Path,
        typer.Option(
            "--output", "-o", metavar="DIR", help="Folder of the sheets and the flow diagram."
        ),
    ],
    reader: Annotated[
        list[str] | None,
        typer.Option(
            "--reader",
            metavar="NAME",
            help="Name of a reader, whose sheet is NAME.csv; give it twice for two readers. Default: first.",
        ),
    ] = None,
    recall: Annotated[
        float,
        typer.Option(
            "--recall",
            min=0.5,
            max=1,
            help="Recall at which reading may stop (0.5 to 1). Default: 0.95.",
        ),
    ] = 0.95,
    as_json: JsonOption = False,
) -> None:
    """Put search results in reading order, and take the decisions of one or two readers from their sheets.

    Each reader fills in the column `decision` from the top: include, exclude or unsure. The same command then puts the unread
    records in a new order, lists disagreements and reports for the full-text stage, states the recall, and draws the PRISMA
    2020 flow diagram. No model is called. Exit status 1: some records cannot be read.
    """
    with errors(as_json=as_json):
        from orchestrator.ingest.cache import cached_index
        from orchestrator.models import Models
        from orchestrator.screening.candidates import read_candidates
        from orchestrator.screening.run import Screen, make_order
        from posology.index.store import Index

        readers = _readers(reader or ["first"])
        settings = load_settings()
        tell_preparing()
        candidates = read_candidates(papers)
        index = cached_index(papers, settings, console=None if as_json else Console(stderr=True))
        embedder = Models(settings.embedder, settings.embedding).embedder()
        order = make_order(question, candidates, Index.open(index.place), embedder)
        asked = Screen(
            question=question, candidates=candidates, folder=output, readers=readers, target=recall
        )
        out = asked.run(order)
        if as_json:
            print_json(out)
        else:
            say(listed(candidates.remarks, "remarks"))
            say(_report(out, candidates.bad))
    if candidates.bad:
        raise typer.Exit(SOME_BAD)


def _readers(names: list[str]) -> tuple[str, ...]:
    from orchestrator.screening.review import DISAGREEMENTS, FULL_TEXT

    taken = {DISAGREEMENTS, FULL_TEXT}
    good = all(name.replace("-", "").replace("_", "").isalnum() for name in names)
    if len(names) > 2 or len(set(names)) < len(names) or taken & {*names} or not good:
        raise typer.BadParameter(
            f"--reader must be one or two names of letters, digits, - and _, other than {' and '.join(sorted(taken))} "
            f"(got {', '.join(names)})"
        )
    return tuple(names)


def _report(out: ScreeningOutput, bad: tuple[str, ...]) -> Iterator[str]:
    from orchestrator.screening.diagram import stated

    yield from listed(bad, "records that cannot be read")
    identified = sum(one.records for one in out.sources)
    yield (
        f"{identified:,} records identified, {out.duplicates:,} duplicates, {out.unreadable:,} unreadable, "
        f"{out.records:,} to screen"
    )
    yield f"{out.screened:,} screened, {out.excluded:,} excluded, {out.unscreened:,} not screened"
    if (readers := out.readers) is not None:
        kappa = "" if readers.kappa is None else f", kappa {readers.kappa:.2f}"
        yield (
            f"two readers decided {readers.both:,}, one {readers.one:,}; {readers.disagreements:,} disagreements, "
            f"{readers.open:,} open{kappa}"
        )
    if out.screened:
        yield stated(out.recall)
        yield _advice(out)
    reports = out.reports
    if reports.sought:
        excluded = sum(one.reports for one in reports.excluded)
        yield (
            f"full texts: {reports.sought:,} sought, {reports.not_retrieved:,} not retrieved, {reports.assessed:,} assessed, "
            f"{excluded:,} excluded, {reports.included:,} included, {reports.waiting:,} open"
        )
    yield f"sheets and flow diagram: {out.folder}"


def _advice(out: ScreeningOutput) -> str:
    recall = out.recall
    if recall.reached:
        return f"The target of {recall.target:.0%} is reached: reading may stop."
    if recall.next_look is not None:
        return f"The target of {recall.target:.0%} is not reached; the next look is at {recall.next_look:,} records read."
    return f"The target of {recall.target:.0%} is not reached."
