"""Turn problem documents into the errors that the library raises."""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

from pydantic import ValidationError

from posology import errors
from posology.errors import ApiError, PosologyError
from posology.published.calls import ErrorBody
from posology.published.problems import Problem, urn

#: type of a problem → the error that it tells of
KNOWN: Mapping[str, type[PosologyError]] = MappingProxyType(
    {
        urn(name): kind
        for name, kind in vars(errors).items()
        if isinstance(kind, type) and issubclass(kind, PosologyError)
    }
)


def from_response(status: int, body: bytes, *, service: str, route: str = "") -> PosologyError:
    """The error of a response that is none of success.

    Args:
        status: HTTP status.
        body: a problem document, if it comes from Posology and not from something before it.
        service: the service's address, for the message.
        route: the proxy that the request went through, for the message.
    """
    try:
        problem = Problem.model_validate_json(body)
    except ValidationError:
        return ApiError(
            f"{service} answered {status}{route} in a way that Posology does not: look at what stands "
            "before it",
            status=status,
        )
    kind = KNOWN.get(problem.type)
    if kind is None:
        message = f"{problem.title}: {problem.detail}"
        return ApiError(message, status=status, type=problem.type)
    members = problem.model_extra or {}
    details: dict[str, Any] = {name: members.get(name) for name in _fields(kind)}
    if "address" in details:
        details["address"] = service
    if "status" in details:
        # of the provider's response, not of this one
        details["status"] = None
    error = kind.__new__(kind)
    PosologyError.__init__(error, problem.detail, **details)
    return error


def from_body(body: ErrorBody) -> PosologyError:
    """The error of a job that failed or expired.

    Args:
        body: error of the job.
    """
    kind = KNOWN.get(urn(body.type))
    if kind is None:
        return ApiError(f"{body.type}: {body.message}", type=urn(body.type))
    error = kind.__new__(kind)
    details: dict[str, Any] = {name: body.details.get(name) for name in _fields(kind)}
    PosologyError.__init__(error, body.message, **details)
    return error


def _fields(kind: type[PosologyError]) -> list[str]:
    """Return the attributes of an error class, besides the message."""
    parameters = inspect.signature(kind.__init__).parameters.values()
    return [p.name for p in parameters if p.kind is p.KEYWORD_ONLY]
