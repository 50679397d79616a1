"""Every error as a problem document (RFC 9457)."""

from __future__ import annotations

import json
import logging
import math
import uuid
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from decimal import Decimal
from http import HTTPStatus
from types import MappingProxyType
from typing import Any

from fastapi import FastAPI, Request, Response
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect
from starlette.routing import Match

from orchestrator.api.traffic import stamp
from posology import errors
from posology.errors import PosologyError
from posology.published.base import dollars_text
from posology.published.calls import ErrorBody
from posology.published.problems import MEDIA_TYPE, Problem, urn

_log = logging.getLogger("posology.api")
#: seconds until a request that found no store may be retried
RETRY_AFTER = 2
#: status in the metrics if the client disconnected before the response
CLIENT_LEFT = 499

#: error class → HTTP status; other classes have their base's
STATUSES: Mapping[type[PosologyError], int] = MappingProxyType(
    {
        errors.InputError: 422,
        # configuration is the operator's responsibility, a model's name is the caller's
        errors.ConfigurationError: 500,
        errors.UnknownModel: 422,
        errors.UnpricedModel: 422,
        # the request names templates that the service does not have
        errors.PromptsMismatch: 422,
        errors.IndexFault: 503,
        errors.PassageNotFound: 404,
        # the request names a version that is not kept
        errors.VersionGone: 422,
        errors.ProviderError: 502,
        errors.ProviderTimeout: 504,
        errors.RateLimited: 503,
        errors.NoCapacity: 503,
        errors.ProviderOverloaded: 503,
        errors.JobError: 409,
        errors.JobNotFound: 404,
        errors.BatchNotFound: 404,
        errors.IngestNotFound: 404,
        errors.WebhookNotFound: 404,
        errors.WatchNotFound: 404,
        errors.TableNotFound: 404,
        errors.StoreUnavailable: 503,
        errors.BudgetError: 402,
        errors.HeadroomReserved: 503,
        errors.QueueFull: 429,
        errors.ModelNotAllowed: 403,
        errors.TenantDisabled: 403,
        errors.TenantError: 409,
        errors.IngestNotAllowed: 403,
        errors.TenantNotFound: 404,
        errors.KeyRefused: 401,
        # raised by commands
        errors.DriftFound: 500,
        errors.MirrorFailed: 500,
        errors.DecisionChanged: 500,
        # raised by clients of a service
        errors.ApiError: 502,
        errors.DeadlineExceeded: 504,
    }
)

#: details that replace an error's message, which may name hosts, files or variables
_WITHHELD: Mapping[int, str] = MappingProxyType(
    {
        500: "this is a defect of the service: report it with the instance id",
        502: "a dependency of the service failed",
        503: "the service is temporarily unavailable, and nothing was lost: try again",
        504: "a dependency of the service did not answer in time",
    }
)

#: members of a problem that no field of an error replaces
_RESERVED = frozenset({"type", "title", "status", "name", "detail", "headers", "instance"})


class RequestProblem(Exception):
    """A request that cannot be served, for a reason of HTTP itself.

    Args:
        status: HTTP status of the response.
        name: name of the problem, in the form of a class name.
        title: title, the same for every problem of that name.
        detail: what is wrong, and what to do.
        headers: headers of the response.
        members: further members of the document.
    """

    def __init__(
        self,
        status: int,
        name: str,
        title: str,
        detail: str,
        *,
        headers: Mapping[str, str] | None = None,
        **members: Any,
    ) -> None:
        super().__init__(detail)
        self.status = status
        self.name = name
        self.title = title
        self.detail = detail
        self.headers = headers
        self.members = members


def status_of(kind: type[PosologyError]) -> int | None:
    """Return the HTTP status of an error's class, or of its nearest base with one."""
    return next((STATUSES[base] for base in kind.__mro__ if base in STATUSES), None)


def response(
    status: int,
    name: str,
    title: str,
    detail: str,
    *,
    headers: Mapping[str, str] | None = None,
    **members: Any,
) -> JSONResponse:
    """Return a problem document as a response."""
    problem = Problem(type=urn(name), title=title, status=status, detail=detail, **members)
    # a quoted question may contain characters that UTF-8 cannot encode
    body = json.loads(json.dumps(problem.model_dump(mode="python"), default=as_text))
    sent = dict(headers or {})
    if status == HTTPStatus.SERVICE_UNAVAILABLE:
        sent.setdefault("Retry-After", str(RETRY_AFTER))
    if status == HTTPStatus.UNAUTHORIZED:
        sent.setdefault("WWW-Authenticate", "Bearer")
    return _Escaped(body, status, sent, MEDIA_TYPE)


def as_text(value: object) -> str:
    """Return a value that JSON lacks in its published form: dollars in digits, times in RFC 3339 with ``Z``."""
    if isinstance(value, Decimal):
        return dollars_text(value)
    if isinstance(value, datetime):
        return value.astimezone(UTC).isoformat().removesuffix("+00:00") + "Z"
    return str(value)


class _Escaped(JSONResponse):
    """JSON in ASCII, which can represent every string."""

    def render(self, content: Any) -> bytes:
        return json.dumps(content, separators=(",", ":")).encode()


def of_error(error: PosologyError) -> JSONResponse:
    """Return the problem of a Posology error."""
    kind = type(error)
    status = status_of(kind) or HTTPStatus.INTERNAL_SERVER_ERROR
    title = (kind.__doc__ or kind.__name__).splitlines()[0].rstrip(".")
    if status < HTTPStatus.INTERNAL_SERVER_ERROR:
        after = error.details.get("retry_after")
        headers = (
            {"Retry-After": str(math.ceil(after))}
            if status == HTTPStatus.TOO_MANY_REQUESTS and after
            else None
        )
        return response(
            status, kind.__name__, title, error.message, headers=headers, **error.details
        )
    instance = _logged(error)
    return response(status, kind.__name__, title, _WITHHELD[status], instance=instance)


def of_own(error: PosologyError) -> JSONResponse:
    """Return the problem of an error to who runs the service, with its own message."""
    kind = type(error)
    title = (kind.__doc__ or kind.__name__).splitlines()[0].rstrip(".")
    status = status_of(kind) or HTTPStatus.INTERNAL_SERVER_ERROR
    return response(status, kind.__name__, title, error.message, **members(error.details))


def of_job(error: ErrorBody, *, job: str) -> JSONResponse:
    """Return the problem of a job that failed or expired; the tenant may read its message, as in the job itself.

    Args:
        error: error of the job.
        job: id of the job.
    """
    kind = getattr(errors, error.type, PosologyError)
    title = (kind.__doc__ or error.type).splitlines()[0].rstrip(".")
    status = status_of(kind) or HTTPStatus.INTERNAL_SERVER_ERROR
    return response(
        status, error.type, title, error.message, **{**members(error.details), "job": job}
    )


def of_exception(error: Exception) -> JSONResponse:
    """Return the problem of what a route raised; what no kind of problem fits is a defect."""
    match error:
        case PosologyError():
            return of_error(error)
        case RequestProblem():
            return response(
                error.status,
                error.name,
                error.title,
                error.detail,
                headers=error.headers,
                **error.members,
            )
        case RequestValidationError():
            return of_validation(error.errors())
        case _:
            instance = _logged(error)
            return response(
                500, "Defect", "A defect of Posology", _WITHHELD[500], instance=instance
            )


def members(details: Mapping[str, Any]) -> dict[str, Any]:
    """Return the fields of an error that a problem can have, without those that would replace its own members."""
    return {name: value for name, value in details.items() if name not in _RESERVED}


def of_validation(found: Sequence[Any]) -> JSONResponse:
    """Return the problem of invalid parameters, for the first invalid one.

    Args:
        found: pydantic's list of errors; the first part of a location is the kind of parameter.
    """
    first = found[0]
    field = ".".join(map(str, first["loc"][1:])) or "request"
    error = errors.InvalidQuery(f"{field}: {first['msg']}", field=field)
    return of_error(error)


def register(app: FastAPI) -> None:
    """Make an app answer every failure with a problem document."""

    @app.exception_handler(PosologyError)
    @app.exception_handler(RequestProblem)
    @app.exception_handler(RequestValidationError)
    async def problem(_: Request, error: Exception) -> JSONResponse:
        return of_exception(error)

    @app.exception_handler(HTTPException)
    async def http(request: Request, error: HTTPException) -> JSONResponse:
        return _of_http(request, error)

    @app.exception_handler(ClientDisconnect)
    async def left(_: Request, __: ClientDisconnect) -> Response:
        # for the metrics; it also keeps disconnects out of the error log
        return Response(status_code=CLIENT_LEFT)

    @app.exception_handler(Exception)
    async def defect(request: Request, error: Exception) -> JSONResponse:
        reply = of_exception(error)
        # it is sent from outside the middleware that does so
        stamp(reply.headers, request.scope)
        return reply


def _of_http(request: Request, error: HTTPException) -> JSONResponse:
    phrase = HTTPStatus(error.status_code).phrase
    name = "".join(word.capitalize() for word in phrase.split())
    if error.status_code == HTTPStatus.NOT_FOUND:
        detail = "unknown path: GET /openapi.json lists all paths"
    elif error.status_code == HTTPStatus.METHOD_NOT_ALLOWED:
        allowed = ", ".join(_methods(request))
        return response(
            405, name, phrase, f"this path allows {allowed}", headers={"Allow": allowed}
        )
    else:
        detail = str(error.detail)
    return response(error.status_code, name, phrase, detail, headers=error.headers)


def _methods(request: Request) -> list[str]:
    """Return all methods of a path; the router names only those of the first route."""
    return [
        method
        for method in ("DELETE", "GET", "HEAD", "PATCH", "POST", "PUT")
        if any(
            route.matches({**request.scope, "method": method})[0] is Match.FULL
            for route in request.app.routes
        )
    ]


def _logged(error: Exception) -> str:
    """Log an error under an id, and return the id for the caller."""
    instance = f"urn:uuid:{uuid.uuid4()}"
    # a provider's message may quote a question, that of a defect anything
    safe = isinstance(error, PosologyError) and not isinstance(error, errors.ProviderError)
    _log.error(
        "%s: %s",
        type(error).__name__,
        error if safe else "see the fields",
        exc_info=None if safe else error,
        extra={"fields": {"instance": instance}},
    )
    return instance
