"""Literature: the index, its versions, syncs and contents, a passage in full, and answers whose evidence has changed."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import UTC, datetime, timedelta
from itertools import islice
from urllib.parse import quote

from anyio import to_thread
from starlette.background import BackgroundTask
from starlette.responses import Response

from orchestrator.api.routes.literature import status
from orchestrator.console.access import Asked, redirect
from orchestrator.console.pages import HOME, whole_number
from orchestrator.jobs.affected import affected
from orchestrator.question.sent import MAX_VERSION
from orchestrator.rendering.forms.columns import Column, Kind, Table, share, table
from orchestrator.retrieval import read_passage
from posology.index.manifest import applied_files, unfinished

#: stored answers that a page compares
_PAGE = 30
#: days of the answers that are compared
_DAYS = 30
#: groups of a count, and files of a sync, that a page shows
_GROUPS, _FILES = 40, 30
#: characters of a passage that a page shows
_LONGEST = 60_000


async def shown(asked: Asked) -> Response:
    """Show the index: its passages, retractions and readable versions."""
    named = asked.request.query_params.get("passage", "").strip()
    if named:
        return redirect(f"{HOME}/literature/passages/{quote(named, safe=':')}")
    index = await asked.api.literature().index()
    found = await to_thread.run_sync(status, index)
    files = await to_thread.run_sync(applied_files, index.connection, index.uri)
    applied = sorted(files, key=lambda one: one.applied or "", reverse=True)
    return asked.page(
        "literature.html",
        index=found,
        files=applied[:_FILES],
        synced=len(files),
        unfinished=unfinished(files),
    )


async def contents(asked: Asked) -> Response:
    """Show the passages by year, type and collection, or that they are being counted."""
    literature = asked.api.literature()
    counts = await literature.contents()
    response = asked.page(
        "contents.html",
        index=(await literature.index()).name,
        contents=counts,
        tables=()
        if counts is None
        else (
            ("Passages by year", _shares("year", _newest(counts.years))),
            ("Passages by publication type", _shares("type", counts.types.items())),
            ("Passages by collection", _shares("collection", counts.sources.items())),
        ),
    )
    if counts is None:
        # every passage is read, so the page does not wait for it
        response.background = BackgroundTask(literature.count)
    return response


async def passage(asked: Asked) -> Response:
    """Show a passage of the newest version, or of another."""
    named, query = asked.request.path_params["passage"], asked.request.query_params
    given, collection = query.get("version"), query.get("collection") or None
    # an operator has no tenant, and reads the default index
    tenant = asked.own if collection else asked.tenant or ""
    number = whole_number(given, "version", least=1, most=MAX_VERSION) if given else None
    async with asked.api.reads.of(tenant):
        index = await (await asked.api.readable(tenant, collection)).index()
        out = await to_thread.run_sync(read_passage, index, named, number)
    return asked.page("passage.html", out=out, text=out.text[:_LONGEST])


async def changed(asked: Asked) -> Response:
    """Compare a page of stored answers with the newest version, and show those whose evidence has changed."""
    index = await asked.api.literature().index()
    found = await affected(
        asked.api.jobs(),
        index,
        tenant=asked.own,
        since=datetime.now(UTC) - timedelta(days=_DAYS),
        cursor=asked.request.query_params.get("cursor") or None,
        limit=_PAGE,
    )
    return asked.page("changed.html", found=found, days=_DAYS)


def _newest(years: Mapping[int, int]) -> Iterable[tuple[str, int]]:
    return ((str(year), count) for year, count in sorted(years.items(), reverse=True))


def _shares(title: str, groups: Iterable[tuple[str, int]]) -> Table:
    """Return the first groups of a count, with bars in proportion to the largest."""
    some = tuple(islice(groups, _GROUPS))
    most = max((count for _, count in some), default=1)
    columns: tuple[Column[tuple[str, int]], ...] = (
        Column(title, lambda one: one[0]),
        Column("share", lambda one: share(one[1] / most), Kind.BAR),
        Column("passages", lambda one: one[1], Kind.NUMBER),
    )
    return table(columns, some)
