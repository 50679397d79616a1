"""Reading what is sent, no further than is allowed."""

from __future__ import annotations

from collections.abc import AsyncIterator, Collection
from typing import TypeVar

from fastapi import Request
from pydantic import BaseModel, ValidationError

from orchestrator.api.problems import RequestProblem
from posology.errors import InvalidQuery

M = TypeVar("M", bound=BaseModel)


async def chunks(request: Request, *, limit: int) -> AsyncIterator[bytes]:
    """A request's body, piece by piece.

    Args:
        request: what is read.
        limit: bytes, also where the request does not say how many it has.

    Raises:
        RequestProblem: 413, before anything is read where the request says how long it is.
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
    """A request's body as a model, with nothing taken for what it is not: `"8"` is no number.

    Raises:
        RequestProblem: it is too long, not JSON, or not said to be JSON.
        InvalidQuery: naming the first field that is wrong.
    """
    check_type(request, ("application/json",))
    body = b"".join([chunk async for chunk in chunks(request, limit=limit)])
    try:
        return model.model_validate_json(body, strict=True)
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False)[0]
    if first["type"] == "json_invalid":
        raise RequestProblem(
            400, "MalformedBody", "The body cannot be read", f"the body is no JSON: {first['msg']}"
        )
    field = ".".join(map(str, first["loc"])) or "request"
    raise InvalidQuery(f"{field}: {first['msg']}", field=field)


def check_type(request: Request, accepted: Collection[str]) -> None:
    """Refuse what is not said to be of one of these media types.

    Raises:
        RequestProblem: 415.
    """
    given = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if given not in accepted:
        named = ", ".join(accepted)
        raise RequestProblem(
            415,
            "UnsupportedMediaType",
            "The body is of a media type that is not accepted here",
            f"send the body as {named}, and say so in Content-Type",
            accepted=list(accepted),
        )


def too_large(limit: int) -> RequestProblem:
    """The problem of a body of more bytes than are allowed."""
    return RequestProblem(
        413,
        "BodyTooLarge",
        "The body is longer than is allowed",
        f"the body is longer than {limit} bytes: send less at once",
        headers={"Connection": "close"},
        limit=limit,
    )
