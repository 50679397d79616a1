"""Reading of request bodies, up to a limit, and what becomes of the rest."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Collection
from typing import TypeVar

import anyio
from fastapi import Request
from pydantic import BaseModel, ValidationError
from starlette.datastructures import Headers
from starlette.requests import ClientDisconnect
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from orchestrator.api.problems import RequestProblem
from orchestrator.question.sent import invalid_field
from posology.concurrency import work_until
from posology.published.base import parse_strictly

M = TypeVar("M", bound=BaseModel)
_Result = TypeVar("_Result")
#: seconds and bytes for which more of a refused body is read; then the connection is reset
SECONDS, BYTES = 10.0, 1024**3


async def chunks(request: Request, *, limit: int) -> AsyncIterator[bytes]:
    """Read a request's body, piece by piece.

    Args:
        request: the request.
        limit: maximum bytes, with or without a declared length.

    Raises:
        RequestProblem: 413, before anything is read if the declared length is too large.
    """
    declared = request.headers.get("content-length", "0").lstrip("0") or "0"
    # Python makes no number of thousands of digits
    if declared.isdecimal() and (len(declared) > len(str(limit)) or int(declared) > limit):
        raise too_large(limit)
    seen = 0
    async for chunk in request.stream():
        seen += len(chunk)
        if seen > limit:
            raise too_large(limit)
        yield chunk


async def unless_left(request: Request, work: Callable[[], Awaitable[_Result]]) -> _Result:
    """Return the result of some work, or cancel the work when the client disconnects.

    Args:
        request: its body must have been read.
        work: called once.

    Raises:
        ClientDisconnect: the client has left.
        Exception: the error of ``work``, unwrapped.
    """

    async def left() -> None:
        while (await request.receive())["type"] != "http.disconnect":
            pass

    done = await work_until(left, work)
    if not done:
        raise ClientDisconnect
    return done[0]


async def read_json(request: Request, model: type[M], *, limit: int) -> M:
    """Read a request's body as a model, strictly: `"8"` is not a number.

    Raises:
        RequestProblem: the body is too long or not JSON, or its media type is not JSON.
        InvalidQuery: naming the first invalid field.
    """
    return parse_json(await read_body(request, limit=limit), model)


async def read_body(request: Request, *, limit: int) -> bytes:
    """Read a request's JSON body, unparsed.

    Raises:
        RequestProblem: the body is too long, or its media type is not JSON.
    """
    check_type(request, ("application/json",))
    return b"".join([chunk async for chunk in chunks(request, limit=limit)])


def parse_json(body: bytes, model: type[M]) -> M:
    """Parse a JSON body as a model, strictly.

    Raises:
        RequestProblem: the body is not JSON.
        InvalidQuery: naming the first invalid field.
    """
    try:
        return parse_strictly(model, body)
    except ValidationError as error:
        found = error.errors(include_url=False, include_input=False)
    if found[0]["type"] == "json_invalid":
        raise no_json(found[0]["msg"])
    raise invalid_field(found, model)


def no_json(reason: str) -> RequestProblem:
    """Return the problem of a body that is not JSON."""
    return RequestProblem(
        400, "MalformedBody", "The body cannot be read", f"the body is not JSON: {reason}"
    )


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


class LingeringMiddleware:
    """Reads and drops what still arrives of a body after a response that closes the connection.

    A server closes it at once, and the client that sends meanwhile sees a reset: most throw the response away then.

    Args:
        app: the application.
        seconds: maximum time for it.
    """

    def __init__(self, app: ASGIApp, seconds: float = SECONDS) -> None:
        self._app = app
        self._seconds = seconds

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http" or not _has_body(Headers(scope=scope)):
            await self._app(scope, receive, send)
            return
        arrived, closes = False, False

        async def hearing() -> Message:
            nonlocal arrived
            message = await receive()
            arrived = message["type"] == "http.disconnect" or not message.get("more_body", False)
            return message

        async def drop() -> None:
            seen = 0
            while not arrived and seen < BYTES:
                seen += len((await hearing()).get("body", b""))

        async def sending(message: Message) -> None:
            nonlocal closes
            if message["type"] == "http.response.start":
                closes = Headers(raw=message["headers"]).get("connection", "").lower() == "close"
            if closes and _is_last(message) and not arrived:
                await send({**message, "more_body": True})
                with anyio.move_on_after(self._seconds):
                    await drop()
                message = {"type": "http.response.body", "body": b""}
            await send(message)

        await self._app(scope, hearing, sending)


def _has_body(headers: Headers) -> bool:
    return "transfer-encoding" in headers or headers.get("content-length", "0").strip("0") != ""


def _is_last(message: Message) -> bool:
    return message["type"] == "http.response.body" and not message.get("more_body", False)
