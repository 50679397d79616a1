"""Jobs over HTTP: submit, look, watch, cancel, try again."""

from __future__ import annotations

from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import aclosing
from typing import Annotated, Any
from urllib.parse import urlencode

from fastapi import APIRouter, Header, Path, Query, Request, Response
from pydantic import BaseModel
from sse_starlette import EventSourceResponse, ServerSentEvent
from starlette.types import Receive, Scope, Send

from orchestrator.api import documents
from orchestrator.api.bodies import read_json
from orchestrator.api.context import Context, Posology, Tenant
from orchestrator.api.documents import CANCELLED, JOB, QUEUED, SUMMARY, fails, shows
from orchestrator.api.problems import RequestProblem
from orchestrator.jobs.events import check_event
from orchestrator.jobs.store import MAX_KEY, MAX_PAGE
from orchestrator.question.request import JobRequest
from posology import errors
from posology.published.jobs import JobEvent, JobOutput, JobPage
from posology.types import JobState

router = APIRouter(prefix="/v1/jobs", tags=["jobs"])

#: more than any id of ours has
MAX_ID = 100
JobId = Annotated[str, Path(max_length=MAX_ID, description="The job's id.", examples=[JOB])]
Key = Annotated[
    str | None,
    Header(
        alias="Idempotency-Key",
        min_length=1,
        max_length=MAX_KEY,
        description="Chosen by the client. The same key and request give the same job, however often "
        "they are sent, for as long as the job's record is kept.",
        examples=["2026-01-15/7"],
    ),
]
_MISSING = errors.JobNotFound(f"there is no job {JOB} (any more)", job=JOB)
_LOCATION = {"Location": {"schema": {"type": "string"}, "description": "Path of the job."}}


def answered(
    model: BaseModel, status: int = 200, headers: dict[str, str] | None = None
) -> Response:
    """A model as it is written everywhere, also by the command line."""
    return Response(model.model_dump_json(), status, headers, "application/json")


@router.post(
    "",
    operation_id="submitJob",
    summary="Put a question into the queue",
    status_code=202,
    response_model=JobOutput,
    responses={
        202: shows("The job was created.", QUEUED, headers=_LOCATION),
        200: shows(
            "The key stood for this job already.", QUEUED, model=JobOutput, headers=_LOCATION
        ),
        **fails(
            400,
            documents.EXHAUSTED,
            documents.NOT_ALLOWED,
            errors.UnpricedModel(model="openai:my-own"),
            errors.IdempotencyConflict(
                f"the idempotency key '7' was used for another request, job {JOB}: use a new key",
                job=JOB,
            ),
            413,
            415,
            errors.InvalidQuery("the question is empty: give it some words", field="text"),
            errors.UnknownModel(
                "no provider 'x': choose openai, anthropic or offline", model="x:y"
            ),
        ),
    },
    openapi_extra=documents.takes(JobRequest, documents.REQUEST),
)
async def submit(request: Request, api: Posology, tenant: Tenant, key: Key = None) -> Response:
    """Defaults are filled in now, so that no worker's settings change the question later."""
    asked = await read_json(request, JobRequest, limit=api.limits.job_bytes)
    submitted = await api.jobs().submit(asked.settled(api.settings), tenant=tenant, key=key)
    job = await api.jobs().get(submitted.job, tenant=tenant)
    place = {"Location": f"{router.prefix}/{job.id}"}
    return answered(job, 202 if submitted.created else 200, place)


@router.get(
    "",
    operation_id="listJobs",
    summary="Some jobs, newest first",
    response_model=JobPage,
    responses={
        200: shows(
            "A page of jobs, without their results.",
            {"jobs": [SUMMARY], "next": None},
            headers={
                "Link": {
                    "schema": {"type": "string"},
                    "description": "The next page as `rel=next`; absent on the last.",
                }
            },
        ),
        **fails(),
    },
)
async def page(
    api: Posology,
    tenant: Tenant,
    *,
    state: Annotated[
        JobState | None, Query(description="Only jobs in it; `failed` is the dead-letter list.")
    ] = None,
    cursor: Annotated[
        str | None, Query(max_length=MAX_ID, description="`next` of the page before.")
    ] = None,
    limit: Annotated[int, Query(ge=1, le=MAX_PAGE, description="Jobs at most.")] = 50,
) -> Response:
    """Jobs that come meanwhile do not shift the pages."""
    found = await api.jobs().page(tenant=tenant, state=state, cursor=cursor, limit=limit)
    headers: dict[str, str] = {}
    if found.next is not None:
        query = {"state": state.value} if state else {}
        query |= {"cursor": found.next, "limit": str(limit)}
        headers["Link"] = f'<{router.prefix}?{urlencode(query)}>; rel="next"'
    return answered(found, headers=headers)


@router.get(
    "/{job}",
    operation_id="getJob",
    summary="A job as it is now",
    response_model=JobOutput,
    responses={200: shows("The job.", QUEUED), **fails(_MISSING)},
)
async def get(api: Posology, tenant: Tenant, job: JobId) -> Response:
    """With its result when it has one, and with what it has cost so far."""
    return answered(await api.jobs().get(job, tenant=tenant))


@router.delete(
    "/{job}",
    operation_id="cancelJob",
    summary="Cancel a job",
    response_model=JobOutput,
    responses={
        200: shows("The job, with what was spent and what was saved.", CANCELLED),
        **fails(_MISSING, errors.JobFinished(f"job {JOB} is over: it has succeeded", job=JOB)),
    },
)
async def cancel(api: Posology, tenant: Tenant, job: JobId) -> Response:
    """Once this is answered, no further model call of the job is admitted. What is on its way settles."""
    return answered(await api.jobs().cancel(job, tenant=tenant))


@router.post(
    "/{job}/retry",
    operation_id="retryJob",
    summary="Try a failed, expired or cancelled job again",
    response_model=JobOutput,
    responses={
        200: shows("The job, in the queue again.", QUEUED),
        **fails(
            _MISSING,
            errors.JobNotFailed(
                f"job {JOB} is running: only a failed, expired or cancelled job is tried again",
                job=JOB,
            ),
        ),
    },
)
async def retry(api: Posology, tenant: Tenant, job: JobId) -> Response:
    """What the job paid for is replayed, and not paid for again."""
    return answered(await api.jobs().retry(job, tenant=tenant))


@router.get(
    "/{job}/events",
    operation_id="watchJob",
    summary="What happens to a job, as server-sent events",
    response_class=EventSourceResponse,
    responses={
        200: {
            "description": "Events until the job is over; the schema is each event's. Lines that "
            "begin with a colon keep the connection open.",
            "content": {"text/event-stream": documents.EVENT},
        },
        204: {"description": "The job is over, and nothing came after `Last-Event-ID`."},
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
            description="Id of the last event that is known.",
            examples=["1768469400000-0"],
        ),
    ] = None,
) -> Response:
    """A browser's EventSource comes back by itself, and stops at the 204 when all is told."""
    store = api.jobs()
    after = last_event_id or "0"
    # what is wrong is to be told before the response begins
    check_event(after)
    over = (await store.state(job, tenant=tenant)).over
    found = store.events(job, tenant=tenant, after=after)
    if over:
        async with aclosing(found):
            first = await anext(found, None)
        if first is None:
            return Response(status_code=204)
        found = store.events(job, tenant=tenant, after=after)
    return _Stream(
        api, _sent(found), ping=api.limits.keep_alive, headers={"Cache-Control": "no-store"}
    )


class _Stream(EventSourceResponse):
    """Events, one of so many streams as may be open. It is counted in the step that looks how many are."""

    def __init__(self, api: Context, content: AsyncIterator[ServerSentEvent], **more: Any) -> None:
        super().__init__(content, **more)
        self._api = api

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if self._api.streams >= self._api.limits.streams:
            raise RequestProblem(
                503,
                "TooManyStreams",
                "Too many event streams are open",
                "ask for the job's state from time to time, or try again",
            )
        self._api.streams += 1
        try:
            await super().__call__(scope, receive, send)
        finally:
            self._api.streams -= 1


async def _sent(found: AsyncGenerator[JobEvent]) -> AsyncIterator[ServerSentEvent]:
    try:
        async with aclosing(found):
            async for event in found:
                yield ServerSentEvent(event.model_dump_json(), event=event.type, id=event.id)
    except (errors.StoreUnavailable, errors.JobNotFound):
        # The status was sent long ago. A client that sees the stream end comes back, and is told then, also
        # that the record was forgotten meanwhile.
        return
