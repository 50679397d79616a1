"""Bodies that were refused: the response comes first, and what still arrives is dropped for a time."""

from __future__ import annotations

import anyio
import anyio.lowlevel
import pytest
from starlette.responses import PlainTextResponse
from starlette.types import Message, Receive, Scope, Send

from orchestrator.api.bodies import LingeringMiddleware

pytestmark = pytest.mark.anyio


async def exchange(
    status: int,
    pieces: int | None,
    *,
    headers: tuple[tuple[bytes, bytes], ...],
    seconds: float = 10.0,
) -> list[str]:
    """Return what happened in its order: an application that reads one piece of a body and answers."""
    happened: list[str] = []
    sent = 0

    async def receive() -> Message:
        nonlocal sent
        await anyio.lowlevel.checkpoint()
        sent += 1
        happened.append("piece")
        return {"type": "http.request", "body": b"x" * 1_000, "more_body": sent != pieces}

    async def send(message: Message) -> None:
        if message.get("body"):
            happened.append("answer")
        if message["type"] == "http.response.body" and not message.get("more_body"):
            happened.append("end")

    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        await receive()
        closing = {"Connection": "close"} if status == 413 else {}
        await PlainTextResponse("no", status, headers=closing)(scope, receive, send)

    scope = {"type": "http", "method": "POST", "headers": list(headers)}
    await LingeringMiddleware(app, seconds)(scope, receive, send)
    return happened


LONG = ((b"content-length", b"4000"),)
CHUNKED = ((b"transfer-encoding", b"chunked"),)


@pytest.mark.parametrize("headers", [LONG, CHUNKED])
async def test_a_refused_client_sees_the_answer_and_may_end_its_body(
    headers: tuple[tuple[bytes, bytes], ...],
) -> None:
    assert await exchange(413, 4, headers=headers) == ["piece", "answer", *["piece"] * 3, "end"]
    # what was read whole ends at once, and so does what leaves the connection open: the server reads on itself
    assert await exchange(413, 1, headers=headers) == ["piece", "answer", "end"]
    assert await exchange(202, 4, headers=headers) == ["piece", "answer", "end"]


async def test_a_body_without_an_end_is_not_read_for_ever() -> None:
    with anyio.fail_after(10):
        happened = await exchange(413, None, headers=CHUNKED, seconds=0.02)
    assert (happened[:2], happened[-1]) == (["piece", "answer"], "end")


async def test_a_request_without_a_body_waits_for_none() -> None:
    assert await exchange(413, 2, headers=()) == ["piece", "answer", "end"]
    assert await exchange(413, 2, headers=((b"content-length", b"0"),)) == [
        "piece",
        "answer",
        "end",
    ]
