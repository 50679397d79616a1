"""Jobs over HTTP: submission, state, events, cancellation, retry."""

from __future__ import annotations

from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import AsyncExitStack, aclosing, asynccontextmanager
from typing import Annotated, Any, Literal

import anyio
from fastapi import APIRouter, Header, Path, Query, Request, Response
from pydantic import BaseModel
from sse_starlette import EventSourceResponse, ServerSentEvent
from starlette.types import Receive, Scope, Send

from orchestrator.api import examples
from orchestrator.api.adding.fetching import check_own
from orchestrator.api.bodies import read_json, unless_left
from orchestrator.api.context import Context, Posology, Tenant
from orchestrator.api.examples import CANCELLED, JOB, QUEUED, SUMMARY, fails, shows
from orchestrator.api.problems import RequestProblem
from orchestrator.api.routes.listing import MAX_ID, NEXT_LINK, Cursor, next_link
from orchestrator.jobs.events import check_event
from orchestrator.jobs.store import MAX_KEY, MAX_PAGE, JobStore
from orchestrator.question.request import JobRequest
from orchestrator.rendering.exports import export_answer
from orchestrator.rendering.kinds import MEDIA, Format, wanted
from posology import errors
from posology.published.jobs import JobEvent, JobOutput, JobPage
from posology.types import JobState

router = APIRouter(prefix="/v1/jobs", tags=["jobs"])

#: maximum seconds that a request waits
MAX_WAIT = 300.0
Wait = Annotated[
    float,
    Query(
        ge=0,
        le=MAX_WAIT,
        allow_inf_nan=False,
        description="Seconds to wait for the end of the job, 0 to 300. Default: 0. The response comes at once if too "
        "many requests wait already.",
    ),
]

Exported = Annotated[
    Literal["markdown", "ris", "bibtex", "csl", "csv", "table"] | None,
    Query(
        alias="format",
        description="Export instead of JSON: markdown, ris, bibtex, csl (CSL JSON), csv or table (Markdown). "
        "Default: as in `Accept`.",
    ),
]
Accept = Annotated[str, Header(include_in_schema=False)]
JobId = Annotated[str, Path(max_length=MAX_ID, description="Id of the job.", examples=[JOB])]
Key = Annotated[
    str | None,
    Header(
        alias="Idempotency-Key",
        min_length=1,
        max_length=MAX_KEY,
        description="Idempotency key, chosen by the client. The same key and request give the same job "
        "while its record is kept. Default: none.",
        examples=["2026-01-15/7"],
    ),
]
_MISSING = errors.JobNotFound(f"there is no job {JOB}, or its record has expired", job=JOB)
NO_COLLECTION = errors.CollectionNotFound(collection="trials")
#: why a question may not be submitted
REFUSED: tuple[int | errors.PosologyError, ...] = (
    400,
    examples.EXHAUSTED,
    examples.NOT_ALLOWED,
    errors.UnpricedModel(model="openai:my-own"),
    errors.IdempotencyConflict(
        f"the idempotency key '7' was used for another request, job {JOB}: use a new key",
        job=JOB,
    ),
    413,
    415,
    examples.FULL,
    errors.InvalidQuery("the question is empty", field="question"),
    NO_COLLECTION,
    errors.UnknownModel(
        "unknown model 'x:y': use openai:NAME, anthropic:NAME or offline:extractive",
        model="x:y",
    ),
)
LOCATION = {"Location": {"schema": {"type": "string"}, "description": "Path of the job."}}


def place(job: str) -> str:
    """Return the path of a job."""
    return f"{router.prefix}/{job}"


def export_of(form: str | None, accept: str) -> Format | None:
    """Return the format that a request asks for by its parameter or else by its header; ``None``: JSON."""
    return Format(form) if form else wanted(accept)


def answered(
    model: BaseModel, status: int = 200, headers: dict[str, str] | None = None
) -> Response:
    """Return a model as a JSON response, equal to the command line's output."""
    return Response(model.model_dump_json(), status, headers, "application/json")


@router.post(
    "",
    operation_id="submitJob",
    summary="Submit a question",
    status_code=202,
    response_model=JobOutput,
    responses={
        202: shows(
            "The job was created; with `wait`: it has not ended yet.", QUEUED, headers=LOCATION
        ),
        200: shows(
            "The idempotency key was used for this job before; with `wait`: the job has ended.",
            QUEUED,
            model=JobOutput,
            headers=LOCATION,
        ),
        **fails(*REFUSED),
    },
    openapi_extra=examples.takes(JobRequest, examples.REQUEST),
)
async def submit(
    request: Request, api: Posology, tenant: Tenant, *, key: Key = None, wait: Wait = 0.0
) -> Response:
    """Submit a question to the queue and return its job. Defaults are filled in now, not by the worker.

    With `wait`, the response comes when the job ends (200) or when the time is over (202), whichever is first.
    """
    asked = await read_json(request, JobRequest, limit=api.limits.job_bytes)
    if asked.fetch is not None:
        await check_own(api, tenant, asked.fetch)
    async with held(api, tenant, wait) as seconds:
        submitted = await api.jobs().submit(asked.settled(api.settings), tenant=tenant, key=key)
        job = await job_after(request, api.jobs(), submitted.job, tenant=tenant, seconds=seconds)
    done = job.state.over if wait else not submitted.created
    return answered(job, 200 if done else 202, {"Location": place(job.id)})


@router.get(
    "",
    operation_id="listJobs",
    summary="List jobs",
    response_model=JobPage,
    responses={
        200: shows(
            "A page of jobs, without their results.",
            {"jobs": [SUMMARY], "next": None},
            headers=NEXT_LINK,
        ),
        **fails(),
    },
)
async def page(
    api: Posology,
    tenant: Tenant,
    *,
    state: Annotated[
        JobState | None,
        Query(description="State of the jobs; `failed` is the dead-letter list. Default: all."),
    ] = None,
    cursor: Cursor = None,
    limit: Annotated[
        int, Query(ge=1, le=MAX_PAGE, description="Maximum jobs on a page, 1 to 500. Default: 50.")
    ] = 50,
) -> Response:
    """List jobs, newest first, without results. New jobs do not shift the pages."""
    found = await api.jobs().page(tenant=tenant, state=state, cursor=cursor, limit=limit)
    if found.next is None:
        return answered(found)
    query = {"state": state.value} if state else {}
    query |= {"cursor": found.next, "limit": str(limit)}
    return answered(found, headers=next_link(router.prefix, query))


@router.get(
    "/{job}",
    operation_id="getJob",
    summary="Get a job",
    response_model=JobOutput,
    responses={
        200: examples.exported(shows("The job; with `format`: its answer alone.", QUEUED)),
        **fails(
            _MISSING,
            errors.JobNotSucceeded(f"job {JOB} is running: it has no answer to export", job=JOB),
        ),
    },
)
async def get(
    api: Posology, tenant: Tenant, job: JobId, *, form: Exported = None, accept: Accept = ""
) -> Response:
    """Return a job with its state, its cost so far and, once it has ended, its result or error.

    With `format`, or another media type in `Accept`, it is the answer: as Markdown, as citations of its quoted
    passages, or as a table of its quotes.
    """
    found = await api.jobs().get(job, tenant=tenant)
    chosen = export_of(form, accept)
    if chosen is None:
        return answered(found)
    if found.result is None:
        raise errors.JobNotSucceeded(
            f"job {found.id} is {found.state}: it has no answer to export", job=found.id
        )
    return Response(export_answer(found.result, chosen), media_type=MEDIA[chosen])


@router.delete(
    "/{job}",
    operation_id="cancelJob",
    summary="Cancel a job",
    response_model=JobOutput,
    responses={
        200: shows("The job, with its spending and savings.", CANCELLED),
        **fails(_MISSING, errors.JobFinished(f"job {JOB} has ended: succeeded", job=JOB)),
    },
)
async def cancel(api: Posology, tenant: Tenant, job: JobId) -> Response:
    """Cancel a job. After the response no further model call is admitted; calls in flight are settled."""
    return answered(await api.jobs().cancel(job, tenant=tenant))


@router.post(
    "/{job}/retry",
    operation_id="retryJob",
    summary="Retry a job",
    response_model=JobOutput,
    responses={
        200: shows("The job, requeued.", QUEUED),
        **fails(
            _MISSING,
            errors.JobNotFailed(
                f"job {JOB} is running: only failed, expired or cancelled jobs can be retried",
                job=JOB,
            ),
        ),
    },
)
async def retry(api: Posology, tenant: Tenant, job: JobId) -> Response:
    """Requeue a failed, expired or cancelled job. Replies that were paid for are replayed from its memo."""
    return answered(await api.jobs().retry(job, tenant=tenant))


@router.get(
    "/{job}/events",
    operation_id="watchJob",
    summary="Watch a job",
    response_class=EventSourceResponse,
    responses={
        200: {
            "description": "Events until the job ends; the schema describes one event. Lines that begin with a "
            "colon keep the connection open.",
            "content": {"text/event-stream": examples.EVENT},
        },
        204: {"description": "The job has ended, and there are no events after `Last-Event-ID`."},
        **fails(_MISSING),
    },
)
async def events(
    api: Posology,
    tenant: Tenant,
    job: JobId,
    last_event_id: Annotated[
        str | None,
        Header(
            max_length=MAX_ID,
            description="Id of the last known event. Default: all events are sent.",
            examples=["1768469400000-0"],
        ),
    ] = None,
) -> Response:
    """Stream the events of a job as server-sent events. A browser's EventSource reconnects, and stops at 204."""
    store = api.jobs()
    after = last_event_id or "0"
    # errors must be reported before the response begins
    check_event(after)
    over = (await store.state(job, tenant=tenant)).over
    found = store.events(job, tenant=tenant, after=after)
    if over:
        async with aclosing(found):
            first = await anext(found, None)
        if first is None:
            return Response(status_code=204)
        found = store.events(job, tenant=tenant, after=after)
    return Stream(
        api, tenant, _sent(found), ping=api.limits.keep_alive, headers={"Cache-Control": "no-store"}
    )


class Stream(EventSourceResponse):
    """A stream of events; the number of open streams is checked and incremented in one step."""

    def __init__(
        self, api: Context, tenant: str, content: AsyncIterator[ServerSentEvent], **more: Any
    ) -> None:
        super().__init__(content, **more)
        self._api = api
        self._tenant = tenant

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        async with self._api.streams.of(self._tenant):
            await super().__call__(scope, receive, send)


async def _sent(found: AsyncGenerator[JobEvent]) -> AsyncIterator[ServerSentEvent]:
    try:
        async with aclosing(found):
            async for event in found:
                yield ServerSentEvent(event.model_dump_json(), event=event.type, id=event.id)
    except (errors.StoreUnavailable, errors.JobNotFound):
        # The status was already sent. A client that reconnects gets the error then, also if the record has
        # expired meanwhile.
        return


@asynccontextmanager
async def held(api: Context, tenant: str, wait: float) -> AsyncIterator[float]:
    """Hold a place for a request that may wait, and yield the seconds that it waits; 0 if no place is left."""
    async with AsyncExitStack() as stack:
        if wait > 0:
            try:
                await stack.enter_async_context(api.waits.of(tenant))
            except RequestProblem:
                wait = 0.0
        yield wait


async def job_after(
    request: Request, store: JobStore, job: str, *, tenant: str, seconds: float
) -> JobOutput:
    """Return a job when it ends, at the latest after some seconds.

    It waits for events of the job.

    Args:
        request: its body has been read.
        store: store of the job.
        job: id of the job.
        tenant: name of the tenant.
        seconds: maximum time; 0: the job as it is now.

    Raises:
        JobNotFound: the tenant has no such job, or its record has expired.
        StoreUnavailable: Redis is unreachable.
        ClientDisconnect: the client has left; the job continues.
    """
    if seconds > 0:
        with anyio.move_on_after(seconds):
            return await unless_left(request, lambda: store.wait(job, tenant=tenant))
    return await store.get(job, tenant=tenant)
