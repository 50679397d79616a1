"""Questions that are answered in the response, if that takes no longer than the client waits."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Query, Request, Response

from orchestrator.api import examples, problems
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
from orchestrator.question.request import JobRequest
from posology import errors
from posology.published.answers import AskOutput
from posology.published.jobs import JobOutput

router = APIRouter(prefix="/v1/ask", tags=["jobs"])

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
    """
    asked = await read_json(request, JobRequest, limit=api.limits.job_bytes)
    async with api.waits.of(tenant):
        submitted = await api.jobs().submit(asked.settled(api.settings), tenant=tenant, key=key)
        job = await job_after(request, api.jobs(), submitted.job, tenant=tenant, seconds=wait)
    where = {"Location": place(job.id)}
    if not job.state.over:
        return answered(job, 202, where)
    if job.result is not None:
        return answered(job.result, 200, where)
    if job.error is not None:
        return problems.of_job(job.error, job=job.id)
    raise errors.JobCancelled(f"job {job.id} was cancelled", job=job.id)
