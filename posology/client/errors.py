"""Turn problem documents into the errors that the library raises."""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from datetime import datetime
from decimal import Decimal
from types import MappingProxyType
from typing import Any

from pydantic import TypeAdapter, ValidationError

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
#: types that JSON has not, by the beginning of their annotation
_TYPED: Mapping[str, Any] = MappingProxyType(
    {"Decimal": Decimal, "datetime": datetime, "tuple[str": tuple[str, ...]}
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
    details = _details(kind, problem.model_extra or {})
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
    PosologyError.__init__(error, body.message, **_details(kind, body.details))
    return error


def _details(kind: type[PosologyError], given: Mapping[str, Any]) -> dict[str, Any]:
    """Return the attributes of an error of a class, besides the message, in their types."""
    parameters = inspect.signature(kind.__init__).parameters.values()
    return {
        p.name: _read(str(p.annotation), given.get(p.name))
        for p in parameters
        if p.kind is p.KEYWORD_ONLY
    }


def _read(annotation: str, value: Any) -> Any:
    """Return what JSON had as text or a list; what an earlier version may have written otherwise stays as it is."""
    form = next((one for name, one in _TYPED.items() if annotation.startswith(name)), None)
    if form is None or value is None:
        return value
    try:
        return TypeAdapter(form).validate_python(value)
    except ValidationError:
        return value
