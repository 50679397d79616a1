"""Answers that are there already: whose evidence has changed since, and into a library as notes."""

from __future__ import annotations

import sys
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.console import Console

from orchestrator.cli.common import (
    IndexOption,
    JsonOption,
    SinceOption,
    TenantOption,
    errors,
    print_json,
)
from orchestrator.cli.ending import SOME_BAD
from orchestrator.cli.jobs.store import with_store
from orchestrator.cli.output.tables import print_line
from orchestrator.settings import load_settings

if TYPE_CHECKING:
    from orchestrator.jobs.store import JobStore
    from posology.index.store import Index
    from posology.published.affected import AffectedPage, EvidenceChange
    from posology.published.answers import AskOutput

app = typer.Typer(
    help="Check stored answers against the present literature, and write them into libraries."
)

#: days of answers that are checked by default
DAYS = 30


@app.callback()
def _group() -> None:
    """Check stored answers against the present literature, and write them into libraries."""


@app.command()
def affected(
    *,
    days: Annotated[
        int | None,
        typer.Option(
            "--days",
            min=1,
            max=36_500,
            help=f"Questions submitted in the last N days. Default: {DAYS}.",
        ),
    ] = None,
    since: SinceOption = None,
    tenant: TenantOption = None,
    index: IndexOption = None,
    notify: Annotated[
        bool,
        typer.Option(
            "--notify",
            help="Write an event evidence_changed to each affected job, once for each change.",
        ),
    ] = False,
    fail: Annotated[
        bool, typer.Option("--fail", help="End with exit status 1 if an answer is affected.")
    ] = False,
    as_json: JsonOption = False,
) -> None:
    """List stored answers that cite a passage which was retracted, corrected, replaced or removed since.

    Answers are stored as long as the records of their jobs. They are compared with the newest version of the index.
    """
    from orchestrator.service import index_place
    from posology.errors import InvalidQuery
    from posology.index.store import Index

    if days is not None and since is not None:
        raise typer.BadParameter("--days and --since exclude each other")
    with errors(as_json=as_json):
        first = datetime.now(UTC) - timedelta(days=days or DAYS)
        if since is not None:
            try:
                first = datetime.combine(date.fromisoformat(since), datetime.min.time(), tzinfo=UTC)
            except ValueError:
                raise InvalidQuery(
                    f"--since must be a day such as 2026-01-15 (got {since!r})", field="since"
                ) from None
        settings = load_settings()
        opened = Index.open(index_place(settings, index))
        opened.keep = settings.kept_versions
        collection = index if index in settings.collection_places else None

        async def work(store: JobStore, tenant: str) -> AffectedPage:
            return await _all(
                store, opened, tenant=tenant, since=first, notify=notify, collection=collection
            )

        out = with_store(tenant, work)
        if as_json:
            print_json(out)
        else:
            _show(Console(), out, notify=notify)
    if fail and out.answers:
        raise typer.Exit(SOME_BAD)


@app.command()
def note(
    answer: Annotated[
        str,
        typer.Argument(
            metavar="ANSWER", help="A job, or a file that `ask --json` wrote. -: standard input."
        ),
    ],
    library: Annotated[
        str,
        typer.Argument(
            metavar="LIBRARY",
            help="zotero:COLLECTION, zotero: for no collection, or zotero:group/ID/COLLECTION.",
        ),
    ],
    *,
    tenant: TenantOption = None,
) -> None:
    """Write an answer with its quotes into a library of Zotero, as a note with links to the items.

    It needs POSOLOGY_ZOTERO_KEY, a key that may write. The same note is written once in 12 hours.
    """
    from orchestrator.ingest.libraries import add_note
    from orchestrator.rendering.markdown import answer_as_note

    with errors(as_json=False):
        key = add_note(library, answer_as_note(_answer(answer, tenant)), load_settings())
        print_line(
            Console(), "The library has this note already." if key is None else f"Note {key}"
        )


def _answer(given: str, tenant: str | None) -> AskOutput:
    """Return a job's answer, or that of a file.

    Raises:
        InputError: the file holds no answer.
        JobNotSucceeded: the job has none.
    """
    from pydantic import ValidationError

    from orchestrator.cli.jobs.files import STREAM
    from posology.errors import InputError, JobNotSucceeded
    from posology.published.answers import AskOutput

    if given == STREAM or _is_file(given):
        raw = sys.stdin.buffer.read() if given == STREAM else Path(given).read_bytes()
        try:
            return AskOutput.model_validate_json(raw)
        except ValidationError:
            raise InputError(
                f"{given} holds no answer as `posology ask --json` prints it"
            ) from None
    job = with_store(tenant, lambda store, tenant: store.get(given, tenant=tenant))
    if job.result is None:
        raise JobNotSucceeded(f"job {given} has no answer (it is {job.state})", job=given)
    return job.result


def _is_file(name: str) -> bool:
    try:
        return Path(name).is_file()
    except (OSError, ValueError):
        # longer than a name of a file may be
        return False


async def _all(store: JobStore, index: Index, **given: Any) -> AffectedPage:
    """Return all pages as one."""
    from orchestrator.jobs.affected import affected as page_of

    pages = [await page_of(store, index, **given)]
    while (cursor := pages[-1].next) is not None:
        pages.append(await page_of(store, index, cursor=cursor, **given))
    return pages[-1].model_copy(
        update={
            "answers": tuple(answer for page in pages for answer in page.answers),
            "checked": sum(page.checked for page in pages),
            "skipped": sum(page.skipped for page in pages),
            "notified": sum(page.notified for page in pages),
        }
    )


def _show(console: Console, out: AffectedPage, *, notify: bool) -> None:

    for answer in out.answers:
        question = " ".join(answer.question.split())
        print_line(console, f"{answer.job}  {question}", "bold")
        for change in answer.changes:
            print_line(console, f"  {described(change)}")
    skipped = f", {out.skipped:,} of another index not compared" if out.skipped else ""
    told = f"; {out.notified:,} events written" if notify else ""
    print_line(
        console,
        f"{len(out.answers):,} of {out.checked:,} stored answers affected{skipped}; compared with {out.index}{told}",
    )


def described(change: EvidenceChange) -> str:
    """Return a change in one line."""
    known = [f"by {change.source}" if change.source else "", change.by or "", change.date or ""]
    if change.version is not None:
        known.append(f"since {change.version}")
    stated = ", ".join(filter(None, known))
    quotes = len(change.standing_quotes) + len(change.lost_quotes)
    kept = ""
    if quotes:
        kept = f"; {len(change.standing_quotes)} of {quotes} quotes are still in the text"
    return f"{change.passage} {change.kind}{f' ({stated})' if stated else ''}{kept}"
