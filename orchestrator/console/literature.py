"""Literature: the index and its versions, a passage in full, and answers whose evidence has changed."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from urllib.parse import quote

from anyio import to_thread
from starlette.responses import Response

from orchestrator.api.routes.literature import status
from orchestrator.console.access import Asked, redirect
from orchestrator.console.pages import HOME
from orchestrator.jobs.affected import affected
from orchestrator.question.request import MAX_VERSION
from orchestrator.retrieval import read_passage
from posology.errors import InvalidQuery

#: stored answers that a page compares
_PAGE = 30
#: days of the answers that are compared
_DAYS = 30
#: characters of a passage that a page shows
_LONGEST = 60_000


async def shown(asked: Asked) -> Response:
    """Show the index: its passages, retractions and readable versions."""
    named = asked.request.query_params.get("passage", "").strip()
    if named:
        return redirect(f"{HOME}/literature/passages/{quote(named, safe=':')}")
    found = await to_thread.run_sync(status, await asked.api.literature().index())
    return asked.page("literature.html", index=found)


async def passage(asked: Asked) -> Response:
    """Show a passage of the newest version, or of another."""
    named, version = asked.request.path_params["passage"], asked.request.query_params.get("version")
    if version and not (version.isascii() and version.isdecimal() and 0 < int(version) <= MAX_VERSION):  # fmt: skip
        raise InvalidQuery(f"version must be a number (got {version[:40]!r})", field="version")
    index = await asked.api.literature().index()
    number = int(version) if version else None
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
