"""Judgements of answers over HTTP."""

from __future__ import annotations

from fastapi import APIRouter, Request, Response

from orchestrator.api import examples
from orchestrator.api.bodies import read_json
from orchestrator.api.context import Posology, Tenant
from orchestrator.api.examples import JOB, QUEUED, fails, shows
from orchestrator.api.routes.jobs import JobId, answered
from orchestrator.api.routes.jobs import router as jobs
from orchestrator.jobs import feedback
from orchestrator.question.sent import FeedbackRequest
from posology import errors
from posology.published.jobs import JobOutput

router = APIRouter(prefix=jobs.prefix, tags=["jobs"])

_SAID = {"score": 0.5, "comment": "The second trial is missing."}
_JUDGED = {
    **QUEUED,
    "state": "succeeded",
    "feedback": {
        **_SAID,
        "at": "2026-01-15T10:02:00Z",
        "table": "1f0c2a9e5b7d4836",
        "state": 3,
        "keep": 0.1,
        "shown": 0.24,
    },
}


@router.post(
    "/{job}/feedback",
    operation_id="judgeJob",
    summary="Judge an answer",
    response_model=JobOutput,
    responses={
        200: shows("The job, with the judgement of its answer.", _JUDGED),
        **fails(
            400,
            413,
            415,
            errors.InvalidQuery("score: Input should be less than or equal to 1", field="score"),
            errors.JobNotFound(f"there is no job {JOB}, or its record has expired", job=JOB),
            errors.JobNotSucceeded(
                f"job {JOB} is running: only answers of jobs that have succeeded can be judged",
                job=JOB,
            ),
        ),
    },
    openapi_extra=examples.takes(FeedbackRequest, _SAID),
)
async def judge(request: Request, api: Posology, tenant: Tenant, job: JobId) -> Response:
    """Record how good the answer of a job is. A new judgement replaces the previous one.

    If a Q-table chose how much of the passages to show, a copy of it learns from the score;
    `posology policy promote` makes a table of the copy.
    """
    store = api.jobs()
    # an unknown job is reported before an invalid body
    await store.state(job, tenant=tenant)
    said = await read_json(request, FeedbackRequest, limit=api.limits.job_bytes)
    return answered(await feedback.give(store, job, said, tenant=tenant))
