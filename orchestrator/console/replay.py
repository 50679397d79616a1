"""Replay of a job: its decisions again, from its record or with another retrieval. No model is called."""

from __future__ import annotations

from starlette.responses import Response

from orchestrator.console.access import Asked
from orchestrator.question.decisions.forms import ReplayedJob
from orchestrator.question.decisions.replay import Replayer, make_present
from orchestrator.rendering.replays import NAMES, differences
from posology.errors import CollectionNotFound, IndexFault
from posology.index.store import Index
from posology.published.jobs import JobOutput

#: differences that a page lists
_LINES = 100


async def shown(asked: Asked) -> Response:
    """Replay the decisions of a job, and show what differs. With ``retrieve`` in the address, retrieve again, too."""
    job = asked.request.path_params["job"]
    retrieve = asked.request.query_params.get("retrieve") == "1"
    found = await asked.api.jobs().get(job, tenant=asked.own)
    replayed = await _replayed(asked, found, retrieve=retrieve)
    return asked.page(
        "replay.html",
        job=found,
        replayed=replayed,
        said=NAMES[replayed.status],
        lines=differences(replayed)[:_LINES],
        retrieve=retrieve,
        retrieves=asked.api.settings.index is not None,
    )


async def _replayed(asked: Asked, job: JobOutput, *, retrieve: bool) -> ReplayedJob:
    api, collection = asked.api, job.request.get("collection")
    if retrieve:
        async with api.searches.of(asked.own):
            service = (await (await api.readable(asked.own, collection)).opened()).service
            present = await make_present(
                api.settings, service.index, service=service, collection=collection
            )
            return await Replayer(present).add(job)
    index = await _index(asked, collection)
    return await Replayer(await make_present(api.settings, index, collection=collection)).add(job)


async def _index(asked: Asked, collection: str | None) -> Index | None:
    """Return the index, whose version is compared; ``None``: this process has none that it can read."""
    if collection is None and asked.api.settings.index is None:
        return None
    try:
        return await (await asked.api.readable(asked.own, collection)).index()
    except (IndexFault, CollectionNotFound):
        return None
