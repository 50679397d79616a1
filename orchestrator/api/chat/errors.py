"""Problems in the form of OpenAI's errors."""

from __future__ import annotations

import json
from collections.abc import Callable, Coroutine
from http import HTTPStatus
from typing import Any

from fastapi import Request, Response
from fastapi.routing import APIRoute
from starlette.requests import ClientDisconnect

from orchestrator.api import problems
from posology import errors
from posology.published.answers import AskOutput
from posology.published.jobs import JobOutput
from posology.published.problems import urn

#: what OpenAI's clients know by that name
_NO_MODEL = "model_not_found"
_UNKNOWN = frozenset({urn("UnknownChatModel"), urn("UnknownModel")})
_KINDS = {
    HTTPStatus.UNAUTHORIZED: "authentication_error",
    HTTPStatus.PAYMENT_REQUIRED: "insufficient_quota",
    HTTPStatus.FORBIDDEN: "permission_error",
    HTTPStatus.TOO_MANY_REQUESTS: "rate_limit_error",
}
#: members of a problem that have a place of their own
_OWN = frozenset({"type", "title", "status", "detail", "field"})


class FailedJob(Exception):
    """A job that failed or expired, whose own error is the response."""

    def __init__(self, job: JobOutput) -> None:
        super().__init__(job.id)
        self.job = job


class OpenAIRoute(APIRoute):
    """A route whose errors have OpenAI's form."""

    def get_route_handler(self) -> Callable[[Request], Coroutine[Any, Any, Response]]:
        """Return the route's function with its errors as responses."""
        handle = super().get_route_handler()

        async def handled(request: Request) -> Response:
            try:
                return await handle(request)
            except ClientDisconnect:
                raise
            except Exception as error:  # noqa: BLE001 - what is no problem is logged as a defect
                return as_response(problem_of(error))

        return handled


def result_of(job: JobOutput) -> AskOutput:
    """Return the answer or refusal of a job.

    Raises:
        RequestProblem: it has not ended; the client waits no longer.
        FailedJob: it failed or expired.
        JobCancelled: it was cancelled.
    """
    if not job.state.over:
        raise problems.RequestProblem(
            504,
            "NotAnsweredInTime",
            "The answer took too long",
            f"job {job.id} has not ended: get its answer at /v1/jobs/{job.id}, or cancel it there",
            job=job.id,
        )
    if job.result is not None:
        return job.result
    if job.error is not None:
        raise FailedJob(job)
    raise errors.JobCancelled(f"job {job.id} was cancelled", job=job.id)


def problem_of(error: Exception) -> Response:
    """Return the problem document of an error, for a failed job that of its own error."""
    if isinstance(error, FailedJob) and error.job.error is not None:
        return problems.of_job(error.job.error, job=error.job.id)
    return problems.of_exception(error)


def as_response(problem: Response) -> Response:
    """Return a problem document in OpenAI's form.

    Invalid fields are 400 and unknown models 404, as at OpenAI. A job that was submitted and failed is not to be
    submitted again: OpenAI's clients repeat a request after 409 and 5xx, unless told not to.
    """
    body = json.loads(bytes(problem.body))
    status, error = as_error(body)
    headers = {
        name: value
        for name, value in problem.headers.items()
        if name in ("retry-after", "www-authenticate")
    }
    if "job" in body:
        headers["x-should-retry"] = "false"
    # ASCII represents every string
    return Response(json.dumps({"error": error}), status, headers, "application/json")


def as_error(problem: dict[str, Any]) -> tuple[int, dict[str, Any]]:
    """Return the status and the error of a problem document, in OpenAI's form."""
    status = problem["status"]
    code = problem["type"].rpartition(":")[2]
    if problem["type"] in _UNKNOWN:
        status, code = HTTPStatus.NOT_FOUND, _NO_MODEL
    elif status == HTTPStatus.UNPROCESSABLE_ENTITY:
        status = HTTPStatus.BAD_REQUEST
    kind = "server_error" if status >= HTTPStatus.INTERNAL_SERVER_ERROR else "invalid_request_error"
    error = {
        "message": problem["detail"],
        "type": _KINDS.get(status, kind),
        "param": problem.get("field"),
        "code": code,
    }
    return int(status), error | {k: v for k, v in problem.items() if k not in error.keys() | _OWN}
