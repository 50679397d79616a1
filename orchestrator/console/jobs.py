"""Jobs: the list, one with its whole story, its events live, cancellation, retry, exports, and its decisions again."""

from __future__ import annotations

from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import aclosing
from datetime import UTC, datetime

from anyio import to_thread
from sse_starlette import ServerSentEvent
from starlette.responses import Response

from orchestrator.api.routes.jobs import Stream
from orchestrator.console import marks, timeline
from orchestrator.console.access import Asked, redirect
from orchestrator.console.pages import HEADERS, HOME, part
from orchestrator.jobs.events import check_event
from orchestrator.question.decisions.forms import ReplayedJob
from orchestrator.question.decisions.replay import Replayer, make_present
from orchestrator.rendering.exports import export_answer
from orchestrator.rendering.forms.columns import facts, table
from orchestrator.rendering.forms.decisions import OFFERS
from orchestrator.rendering.forms.jobs import JOBS, cancellation
from orchestrator.rendering.forms.jobs import state as state_cell
from orchestrator.rendering.kinds import MEDIA, Format
from orchestrator.rendering.replays import NAMES, differences
from orchestrator.rendering.sources import notices
from posology.errors import (
    CollectionNotFound,
    IndexFault,
    InvalidQuery,
    JobNotFound,
    JobNotSucceeded,
    PosologyError,
    StoreUnavailable,
)
from posology.index.store import Index
from posology.published.answers import AskOutput
from posology.published.jobs import JobEvent, JobOutput
from posology.types import JobState

#: jobs on a page
_PAGE = 30
#: events that a page shows
_EVENTS = 100
#: cited passages that are read from the index, and their total length in characters
_PASSAGES, _CHARACTERS = 24, 60_000
#: exports that the page offers, with the ends of their files' names
EXPORTS = {
    Format.RIS: "ris",
    Format.BIBTEX: "bib",
    Format.CSL: "json",
    Format.CSV: "csv",
    Format.MARKDOWN: "md",
}
#: columns of the list, and of the page of one
_LISTED = "question, state, strategy, model, created, cost"
_FACTS = "model, strategy, cost, reserved, cap, created, took, expires, runs"
#: priced doses that a page shows, and differences of a replay
_OFFERS, _LINES = 20, 100
#: states of which a retry makes a queued job
_RETRIED = (JobState.FAILED, JobState.EXPIRED, JobState.CANCELLED)


async def listed(asked: Asked) -> Response:
    """Show a page of jobs, newest first."""
    query = asked.request.query_params
    state = _state(query.get("state"))
    found = await asked.api.jobs().page(
        tenant=asked.own, state=state, cursor=query.get("cursor") or None, limit=_PAGE
    )
    return asked.page(
        "jobs.html",
        jobs=table(JOBS, found.jobs, _LISTED),
        next=found.next,
        state=state,
        states=tuple(JobState),
    )


async def shown(asked: Asked) -> Response:
    """Show a job: answer, quotes, decision, attempts, events."""
    store, job = asked.api.jobs(), asked.request.path_params["job"]
    record = await store.get(job, tenant=asked.own)
    events = await store.told(job, tenant=asked.own, limit=_EVENTS)
    out = record.result
    decision = out.decision if out else record.decision
    collection = record.request.get("collection")
    texts = {} if out is None else await _texts(asked, out, collection)
    return asked.page(
        "job.html",
        job=record,
        state=state_cell(record.state),
        known=facts(JOBS, record, _FACTS),
        saved=record.cancellation and cancellation(record.cancellation),
        out=out,
        decision=decision,
        offers=decision and table(OFFERS, decision.offers[:_OFFERS]),
        sentences=() if out is None else marks.sentences(out),
        notices=() if out is None else notices(out),
        cards=() if out is None else marks.cards(out, texts),
        bars=timeline.bars(record, datetime.now(UTC)),
        steps=[timeline.step(event) for event in events],
        last=events[-1].id if events else "0",
        exports=tuple(EXPORTS),
        retried=record.state in _RETRIED,
        collection=collection,
    )


async def events(asked: Asked) -> Response:
    """Stream the events of a job after one, as parts of its page; ``over`` says that it has ended."""
    store, job = asked.api.jobs(), asked.request.path_params["job"]
    after = asked.request.headers.get("last-event-id") or asked.request.query_params.get(
        "after", "0"
    )
    check_event(after)
    await store.state(job, tenant=asked.own)
    found = store.events(job, tenant=asked.own, after=after)
    return Stream(
        asked.api,
        asked.own,
        _sent(found),
        ping=asked.api.limits.keep_alive,
        headers=dict(HEADERS),
    )


async def _sent(found: AsyncGenerator[JobEvent]) -> AsyncIterator[ServerSentEvent]:
    try:
        async with aclosing(found):
            async for event in found:
                line = part("step.html", step=timeline.step(event))
                yield ServerSentEvent(line, event="step", id=event.id)
    except (StoreUnavailable, JobNotFound):
        # the status was sent already; the browser connects again and gets the error then
        return
    yield ServerSentEvent("over", event="over")


async def cancelled(asked: Asked) -> Response:
    """Cancel a job, and show it."""
    job = asked.request.path_params["job"]
    await asked.api.jobs().cancel(job, tenant=asked.own)
    return redirect(_place(job))


async def retried(asked: Asked) -> Response:
    """Requeue a job, and show it."""
    job = asked.request.path_params["job"]
    await asked.api.jobs().retry(job, tenant=asked.own)
    return redirect(_place(job))


async def exported(asked: Asked) -> Response:
    """Return an answer as a file of another program."""
    job, named = asked.request.path_params["job"], asked.request.path_params["form"]
    form = next((form for form in EXPORTS if form == named), None)
    if form is None:
        raise InvalidQuery(f"unknown format {named!r}: use {', '.join(EXPORTS)}", field="format")
    found = await asked.api.jobs().get(job, tenant=asked.own)
    if found.result is None:
        raise JobNotSucceeded(f"job {job} is {found.state}: it has no answer to export", job=job)
    name = f'attachment; filename="{found.id}.{EXPORTS[form]}"'
    text = export_answer(found.result, form)
    return Response(text, headers={**HEADERS, "Content-Disposition": name}, media_type=MEDIA[form])


async def replayed(asked: Asked) -> Response:
    """Replay the decisions of a job, and show what differs. With ``retrieve`` in the address, retrieve again, too."""
    job = asked.request.path_params["job"]
    retrieve = asked.request.query_params.get("retrieve") == "1"
    found = await asked.api.jobs().get(job, tenant=asked.own)
    again = await _replayed(asked, found, retrieve=retrieve)
    return asked.page(
        "replay.html",
        job=found,
        replayed=again,
        said=NAMES[again.status],
        lines=differences(again)[:_LINES],
        retrieve=retrieve,
        retrieves=asked.api.settings.index is not None,
    )


def _place(job: str) -> str:
    return f"{HOME}/jobs/{job}"


def _state(named: str | None) -> JobState | None:
    if not named:
        return None
    try:
        return JobState(named)
    except ValueError:
        raise InvalidQuery(
            f"unknown state {named!r}: use {', '.join(JobState)}", field="state"
        ) from None


async def _texts(asked: Asked, out: AskOutput, collection: str | None) -> dict[str, str]:
    """Return the texts of the cited passages, of the version that was read; empty: this process has no such index."""
    wanted = list(dict.fromkeys(one.passage.id for one in out.evidence))[:_PASSAGES]
    name, _, number = out.index.rpartition("@")
    known = collection is not None or asked.api.settings.index is not None
    if not wanted or not known or not number.isdecimal():
        return {}
    try:
        index = await (await asked.api.readable(asked.own, collection)).index()
        if index.name != name:
            return {}
        return await to_thread.run_sync(_fetched, index, wanted, int(number))
    except PosologyError:
        # the answer has the sentences around each quote
        return {}


def _fetched(index: Index, wanted: list[str], version: int) -> dict[str, str]:
    found, left = dict[str, str](), _CHARACTERS
    for one in index.view_at(version).fetch(wanted):
        left -= len(one.passage.text)
        if left >= 0:
            found[one.passage.id] = one.passage.text
    return found


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
