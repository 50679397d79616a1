"""Fetches of commands: into the folder ``live`` of ``POSOLOGY_HOME``, where they resume and stay."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AsyncExitStack
from datetime import UTC, datetime
from pathlib import Path

from orchestrator.ingest.live.request import fetch_id
from orchestrator.ingest.live.services import open_literature, open_places
from orchestrator.settings import Settings
from posology.corpus.live.fetch import FILES, fetch
from posology.corpus.live.forms import Asked, Journal
from posology.corpus.live.texts import TextPlace
from posology.errors import InputError
from posology.published.ingests import FetchOutput


def files_of(settings: Settings, found: FetchOutput) -> Path:
    """Return the folder of a fetch's files."""
    return Path(settings.home) / "live" / found.id / FILES


async def fetch_here(
    settings: Settings, asked: Asked, *, told: Callable[[Journal], None] = lambda _: None
) -> FetchOutput:
    """Fetch into a folder of this machine; a fetch of the same day is completed or returned, not repeated.

    Args:
        settings: the configuration.
        asked: what to fetch.
        told: gets the journal after each page.

    Raises:
        FetchFailed: the service gave no usable reply; what came before is kept.
        InputError: nothing was found.
    """
    folder = Path(settings.home) / "live" / fetch_id(asked, datetime.now(UTC))
    return await fetch_into(settings, asked, folder, told=told)


async def fetch_into(
    settings: Settings,
    asked: Asked,
    folder: Path,
    *,
    told: Callable[[Journal], None] = lambda _: None,
) -> FetchOutput:
    """Fetch into a folder; see :func:`fetch_here`."""
    async with AsyncExitStack() as stack:
        service = await stack.enter_async_context(open_literature(settings, asked.service))
        places: Sequence[TextPlace] = ()
        if asked.full_text:
            places = await stack.enter_async_context(open_places(settings))
        found = await fetch(asked, service, folder, places=places, told=told)
    if not found.records:
        tried = "; ".join((*found.notes, *([] if found.found else ["0 records match"])))
        raise InputError(
            f"{asked.service} has no record for this: {tried}. Give other words with --query, or ids"
        )
    return found
