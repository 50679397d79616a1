"""Reading of request bodies, up to a limit."""

from __future__ import annotations

from collections.abc import AsyncIterator, Collection
from typing import TypeVar

from fastapi import Request
from pydantic import BaseModel, ValidationError

from orchestrator.api.problems import RequestProblem
from posology.errors import InvalidQuery

M = TypeVar("M", bound=BaseModel)


async def chunks(request: Request, *, limit: int) -> AsyncIterator[bytes]:
    """Read a request's body, piece by piece.

    Args:
        request: the request.
        limit: maximum bytes, with or without a declared length.

    Raises:
        RequestProblem: 413, before anything is read if the declared length is too large.
    """
    declared = request.headers.get("content-length", "0")
    if declared.isdecimal() and int(declared) > limit:
        raise too_large(limit)
    seen = 0
    async for chunk in request.stream():
        seen += len(chunk)
        if seen > limit:
            raise too_large(limit)
        yield chunk


async def read_json(request: Request, model: type[M], *, limit: int) -> M:
    """Read a request's body as a model, strictly: `"8"` is not a number.

    Raises:
        RequestProblem: the body is too long or not JSON, or its media type is not JSON.
        InvalidQuery: naming the first invalid field.
    """
    check_type(request, ("application/json",))
    body = b"".join([chunk async for chunk in chunks(request, limit=limit)])
    try:
        return model.model_validate_json(body, strict=True)
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False)[0]
    if first["type"] == "json_invalid":
        raise RequestProblem(
            400, "MalformedBody", "The body cannot be read", f"the body is not JSON: {first['msg']}"
        )
    field = ".".join(map(str, first["loc"])) or "request"
    raise InvalidQuery(f"{field}: {first['msg']}", field=field)


def check_type(request: Request, accepted: Collection[str]) -> None:
    """Reject other media types.

    Raises:
        RequestProblem: 415.
    """
    given = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if given not in accepted:
        named = ", ".join(accepted)
        raise RequestProblem(
            415,
            "UnsupportedMediaType",
            "The media type of the body is not supported",
            f"unsupported Content-Type {given!r}: send {named}",
            accepted=list(accepted),
        )


def too_large(limit: int) -> RequestProblem:
    """Return the problem of a body with too many bytes."""
    return RequestProblem(
        413,
        "BodyTooLarge",
        "The body is too large",
        f"the body has more than {limit} bytes: split it",
        headers={"Connection": "close"},
        limit=limit,
    )
