"""Questions that are answered in the response, if that takes no longer than the client waits."""

from __future__ import annotations

from typing import Annotated

import anyio
from fastapi import APIRouter, Query, Request, Response
from pydantic import BaseModel, Field

from orchestrator.api import examples, problems
from orchestrator.api.adding.fetching import check_own, fetched, fetched_before
from orchestrator.api.adding.files import allowed
from orchestrator.api.adding.uploads import NOT_ALLOWED
from orchestrator.api.bodies import read_json
from orchestrator.api.context import Posology, Tenant
from orchestrator.api.examples import ANSWER, JOB, QUEUED, fails, shows
from orchestrator.api.routes.jobs import (
    LOCATION,
    MAX_WAIT,
    REFUSED,
    Key,
    answered,
    job_after,
    place,
)
from orchestrator.ingest.live.request import RECORDS, FetchRequest, LiveRequest
from orchestrator.question.request import JobRequest
from posology import errors
from posology.corpus.live.forms import MAX_RECORDS, ServiceName
from posology.published.answers import AskOutput
from posology.published.jobs import JobOutput
from posology.query import MAX_QUESTION

router = APIRouter(prefix="/v1/ask", tags=["jobs"])


class LiveQuery(BaseModel):
    """Parameters of a question whose literature is fetched first."""

    live: bool = Field(
        default=False, description="Whether to fetch literature first. Default: false."
    )
    query: str | None = Field(
        default=None,
        max_length=MAX_QUESTION,
        description="Query for the service, with `live`. Default: made of the question by a rule.",
    )
    service: ServiceName = Field(
        default="pubmed",
        description="Service, with `live`: pubmed, europepmc or clinicaltrials. Default: pubmed.",
    )
    max_records: int = Field(
        default=RECORDS,
        ge=1,
        le=MAX_RECORDS,
        description="Maximum records, with `live`. Default: 100.",
    )
    full_text: bool = Field(
        default=False,
        description="Whether to look for free full texts, too, with `live`. Default: false.",
    )

    def of(self, asked: JobRequest) -> FetchRequest:
        """Return the fetch for a question.

        Raises:
            InvalidQuery: the query is empty, or the question is for a collection.
        """
        return LiveRequest.parse(self.model_dump(exclude={"live"})).of(asked)


Live = Annotated[LiveQuery, Query()]
#: default seconds to wait: less than common proxies allow
_WAIT = 50.0


@router.post(
    "",
    operation_id="ask",
    summary="Ask a question and wait for the answer",
    response_model=AskOutput,
    responses={
        200: shows("The answer or refusal; `Location` is its job.", ANSWER, headers=LOCATION),
        202: shows(
            "The job, which has not ended within `wait`. It continues: poll or watch it at `Location`, or cancel it "
            "there.",
            QUEUED,
            model=JobOutput,
            headers=LOCATION,
        ),
        **fails(
            *REFUSED,
            errors.JobCancelled(f"job {JOB} was cancelled", job=JOB),
            errors.ProviderUnreachable(
                "the provider cannot be reached: try again", provider="openai", model="gpt-6-luna"
            ),
            errors.JobExpired(f"job {JOB} did not end within 900 s", seconds=900.0),
            NOT_ALLOWED,
            429,
        ),
    },
    openapi_extra=examples.takes(JobRequest, examples.REQUEST),
)
async def ask(
    request: Request,
    api: Posology,
    tenant: Tenant,
    *,
    key: Key = None,
    live: Live,
    wait: Annotated[
        float,
        Query(
            gt=0,
            le=MAX_WAIT,
            allow_inf_nan=False,
            description="Seconds to wait for the answer, more than 0 to 300. Default: 50.",
        ),
    ] = _WAIT,
) -> Response:
    """Submit a question, wait for the end of its job, and return the answer or refusal alone.

    The job is one like any other, and remains if the client disconnects. If it fails, the response is the problem of
    its error, with the job's id as `job`. A request that finds too many others waiting is refused with 429 or 503
    before anything is submitted.

    With `live`, literature is fetched for the question and ingested first, or found again if the same fetch ended in the
    last hour. If that takes longer than `wait`, the response is 503 `fetch-unfinished`: send the same request again. The
    answer then has `fetch`, and its job's request names the ingest.
    """
    asked = await read_json(request, JobRequest, limit=api.limits.job_bytes)
    if asked.fetch is not None:
        await check_own(api, tenant, asked.fetch)
    if not live.live and (unused := sorted(live.model_fields_set - {"live"})):
        raise errors.InvalidQuery(f"{unused[0]} needs live=true", field=unused[0])
    settled = asked.settled(api.settings)
    fetch, until = None, anyio.current_time() + wait
    async with api.waits.of(tenant):
        if live.live:
            literature = live.of(settled)
            await allowed(request, api, tenant)
            before = await fetched_before(api, tenant, key)
            ingest, fetch = before or await fetched(api, tenant, literature, seconds=wait)
            settled = settled.model_copy(update={"fetch": ingest})
        submitted = await api.jobs().submit(settled, tenant=tenant, key=key)
        left = max(0.0, until - anyio.current_time())
        job = await job_after(request, api.jobs(), submitted.job, tenant=tenant, seconds=left)
    where = {"Location": place(job.id)}
    if not job.state.over:
        return answered(job, 202, where)
    if job.result is not None:
        return answered(job.result if fetch is None else job.result.from_fetch(fetch), 200, where)
    if job.error is not None:
        return problems.of_job(job.error, job=job.id)
    raise errors.JobCancelled(f"job {job.id} was cancelled", job=job.id)
