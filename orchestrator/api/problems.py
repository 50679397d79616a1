"""Every error as a problem document (RFC 9457)."""

from __future__ import annotations

import json
import logging
import uuid
from collections.abc import Mapping, Sequence
from http import HTTPStatus
from types import MappingProxyType
from typing import Any

from fastapi import FastAPI, Request, Response
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect
from starlette.routing import Match

from posology import errors
from posology.errors import PosologyError
from posology.published.problems import MEDIA_TYPE, Problem, urn

_log = logging.getLogger("posology.api")
#: seconds after which a request that found no store may be tried again
RETRY_AFTER = 2
#: what stands in the figures where the client left before it was answered
CLIENT_LEFT = 499

#: error class → status; a class that is not listed has its base's
STATUSES: Mapping[type[PosologyError], int] = MappingProxyType(
    {
        errors.InputError: 422,
        # what Posology was set up with is the operator's affair, a model's name is the caller's
        errors.ConfigurationError: 500,
        errors.UnknownModel: 422,
        errors.UnpricedModel: 422,
        errors.IndexFault: 503,
        errors.ProviderError: 502,
        errors.ProviderTimeout: 504,
        errors.RateLimited: 503,
        errors.ProviderOverloaded: 503,
        errors.JobError: 409,
        errors.JobNotFound: 404,
        errors.BatchNotFound: 404,
        errors.StoreUnavailable: 503,
        errors.BudgetError: 402,
        errors.HeadroomReserved: 503,
        errors.ModelNotAllowed: 403,
        errors.TenantDisabled: 403,
        errors.TenantError: 409,
        errors.TenantNotFound: 404,
        errors.KeyRefused: 401,
        # what a command raises
        errors.DriftFound: 500,
        errors.DecisionChanged: 500,
        # what a client of a service raises
        errors.ApiError: 502,
        errors.DeadlineExceeded: 504,
    }
)

#: what is said instead of an error's own message where that names hosts, files or variables
_WITHHELD: Mapping[int, str] = MappingProxyType(
    {
        500: "this is a fault of the service: report it with the instance's id",
        502: "what the service depends on has failed",
        503: "the service cannot do this now, and nothing was lost: try again",
        504: "what the service depends on did not answer in time",
    }
)


class RequestProblem(Exception):
    """A request that cannot be served, for a reason that is HTTP's own.

    Args:
        status: of the response.
        name: of the problem, in the form of a class name.
        title: the same for every problem of the name.
        detail: what is wrong here, and what to do.
        headers: of the response.
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
    """The status of an error's class, by the nearest class that has one."""
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
    """A problem document."""
    problem = Problem(type=urn(name), title=title, status=status, detail=detail, **members)
    # a question that is quoted back may hold what UTF-8 cannot
    body = json.loads(json.dumps(problem.model_dump(mode="python"), default=str))
    sent = dict(headers or {})
    if status == HTTPStatus.SERVICE_UNAVAILABLE:
        sent.setdefault("Retry-After", str(RETRY_AFTER))
    if status == HTTPStatus.UNAUTHORIZED:
        sent.setdefault("WWW-Authenticate", "Bearer")
    return _Escaped(body, status, sent, MEDIA_TYPE)


class _Escaped(JSONResponse):
    """JSON in ASCII, which every string can be written in."""

    def render(self, content: Any) -> bytes:
        return json.dumps(content, separators=(",", ":")).encode()


def of_error(error: PosologyError) -> JSONResponse:
    """The problem of an error of ours."""
    kind = type(error)
    status = status_of(kind) or HTTPStatus.INTERNAL_SERVER_ERROR
    title = (kind.__doc__ or kind.__name__).splitlines()[0].rstrip(".")
    if status < HTTPStatus.INTERNAL_SERVER_ERROR:
        return response(status, kind.__name__, title, error.message, **error.details)
    instance = _logged(error)
    return response(status, kind.__name__, title, _WITHHELD[status], instance=instance)


def of_validation(found: Sequence[Any]) -> JSONResponse:
    """The problem of parameters that are not accepted, by the first thing that is wrong.

    Args:
        found: pydantic's list of errors; the first part of a place says what kind of parameter it is.
    """
    first = found[0]
    field = ".".join(map(str, first["loc"][1:])) or "request"
    error = errors.InvalidQuery(f"{field}: {first['msg']}", field=field)
    return of_error(error)


def register(app: FastAPI) -> None:
    """Let an app answer with nothing but problem documents when it does not do as asked."""

    @app.exception_handler(PosologyError)
    async def posology_error(_: Request, error: PosologyError) -> JSONResponse:
        return of_error(error)

    @app.exception_handler(RequestProblem)
    async def request_problem(_: Request, error: RequestProblem) -> JSONResponse:
        return response(
            error.status,
            error.name,
            error.title,
            error.detail,
            headers=error.headers,
            **error.members,
        )

    @app.exception_handler(RequestValidationError)
    async def validation(_: Request, error: RequestValidationError) -> JSONResponse:
        return of_validation(error.errors())

    @app.exception_handler(HTTPException)
    async def http(request: Request, error: HTTPException) -> JSONResponse:
        return _of_http(request, error)

    @app.exception_handler(ClientDisconnect)
    async def left(_: Request, __: ClientDisconnect) -> Response:
        # nobody reads it; it is for the figures, and keeps the log free of what is no defect
        return Response(status_code=CLIENT_LEFT)

    @app.exception_handler(Exception)
    async def defect(_: Request, error: Exception) -> JSONResponse:
        instance = _logged(error)
        return response(500, "Defect", "A defect of Posology", _WITHHELD[500], instance=instance)


def _of_http(request: Request, error: HTTPException) -> JSONResponse:
    phrase = HTTPStatus(error.status_code).phrase
    name = "".join(word.capitalize() for word in phrase.split())
    if error.status_code == HTTPStatus.NOT_FOUND:
        detail = "there is nothing at this path: GET /openapi.json lists what there is"
    elif error.status_code == HTTPStatus.METHOD_NOT_ALLOWED:
        allowed = ", ".join(_methods(request))
        return response(
            405, name, phrase, f"this path allows {allowed}", headers={"Allow": allowed}
        )
    else:
        detail = str(error.detail)
    return response(error.status_code, name, phrase, detail, headers=error.headers)


def _methods(request: Request) -> list[str]:
    """All that a path allows; the router itself names only the first route's."""
    return [
        method
        for method in ("DELETE", "GET", "HEAD", "PATCH", "POST", "PUT")
        if any(
            route.matches({**request.scope, "method": method})[0] is Match.FULL
            for route in request.app.routes
        )
    ]


def _logged(error: Exception) -> str:
    """Writes an error to the log under an id that the caller is told."""
    instance = f"urn:uuid:{uuid.uuid4()}"
    _log.error("%s: %s: %s", instance, type(error).__name__, error)
    return instance
