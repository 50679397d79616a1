from __future__ import annotations

import gzip
import json
import pickle
from collections.abc import Awaitable, Callable
from decimal import Decimal
from typing import Any

import anyio
import httpx2
import pytest

from posology import errors
from posology.client import ApiError, ApiUnreachable, Client
from posology.client.errors import KNOWN, from_response
from posology.client.wire import Wire
from posology.errors import PosologyError, StoreUnavailable
from posology.published.problems import urn

pytestmark = pytest.mark.anyio

PROBLEM = {"title": "t", "status": 503, "detail": "away", "type": urn("StoreUnavailable")}


def wire(handler: httpx2.MockTransport, waits: list[float], attempts: int = 5) -> Wire:
    async def sleep(seconds: float) -> None:
        waits.append(seconds)

    return Wire(
        "http://api", headers={}, timeout=1, attempts=attempts, transport=handler, sleep=sleep
    )


async def test_it_waits_as_long_as_it_is_asked_to_and_then_says_what_is_wrong() -> None:
    waits: list[float] = []
    sent = wire(
        httpx2.MockTransport(
            lambda _: httpx2.Response(503, json=PROBLEM, headers={"Retry-After": "3"})
        ),
        waits,
    )
    with pytest.raises(StoreUnavailable) as away:
        await sent.request("GET", "/", repeatable=True)
    assert away.value.address == "http://api"
    assert len(waits) == 4
    assert all(3 <= seconds <= 4 for seconds in waits)
    await sent.aclose()


async def test_what_may_do_more_when_repeated_is_sent_once() -> None:
    waits: list[float] = []

    def cut(request: httpx2.Request) -> httpx2.Response:
        raise httpx2.ReadTimeout("late", request=request)

    sent = wire(httpx2.MockTransport(cut), waits)
    with pytest.raises(ApiUnreachable, match="ReadTimeout") as late:
        await sent.request("POST", "/", repeatable=False)
    assert waits == []
    assert late.value.__cause__ is None
    await sent.aclose()


@pytest.mark.parametrize("status", [400, 404, 500])
async def test_what_is_no_problem_document_is_told_by_its_status(status: int) -> None:
    sent = wire(httpx2.MockTransport(lambda _: httpx2.Response(status, text="<html>")), [])
    with pytest.raises(ApiError) as found:
        await sent.request("GET", "/", repeatable=True)
    assert (found.value.status, found.value.type) == (status, None)
    await sent.aclose()


async def test_a_redirect_is_not_followed() -> None:
    moved = httpx2.Response(307, headers={"Location": "http://elsewhere/"})
    sent = wire(httpx2.MockTransport(lambda _: moved), [])
    with pytest.raises(ApiError) as found:
        await sent.request("GET", "/", repeatable=True)
    assert found.value.status == 307
    await sent.aclose()


async def test_an_answer_of_somebody_else_is_no_job() -> None:
    hello = httpx2.MockTransport(lambda _: httpx2.Response(200, text="<html>hello</html>"))
    async with Client("http://api", transport=hello) as client:
        with pytest.raises(ApiError, match="JobOutput"):
            await client.get("job_1")
        with anyio.fail_after(90), pytest.raises(ApiError, match="expected events"):
            async for _ in client.events("job_1"):
                pass


async def test_a_job_that_cannot_be_watched_is_looked_at() -> None:
    states = iter(["running", "running", "cancelled"])

    def answer(request: httpx2.Request) -> httpx2.Response:
        if request.url.path.endswith("/events"):
            return httpx2.Response(406)
        return httpx2.Response(200, json={**JOB, "state": next(states), "of a newer version": 1})

    async with Client("http://api", transport=httpx2.MockTransport(answer)) as client:
        with anyio.fail_after(90):
            assert (await client.wait("job_1")).state == "cancelled"


@pytest.mark.parametrize("kind", list(KNOWN.values()), ids=lambda kind: kind.__name__)
def test_every_error_comes_back_as_itself(kind: type[PosologyError]) -> None:
    document = {
        "type": urn(kind.__name__),
        "title": "t",
        "status": 400,
        "detail": "do this",
        "job": "job_1",
        "batch": "b",
        "field": "k",
    }
    error = from_response(400, json.dumps(document).encode(), service="http://api")
    assert type(error) is kind
    assert str(error) == error.message == "do this"
    for name in ("job", "batch", "field"):
        assert getattr(error, name, document[name]) == document[name]
    copy = pickle.loads(pickle.dumps(error))
    assert copy.details == error.details


def test_the_types_of_problems_are_told_apart() -> None:
    assert len(KNOWN) == len({kind.__name__ for kind in KNOWN.values()})
    assert urn("JobNotFound") == "urn:posology:problem:job-not-found"
    assert KNOWN[urn("JobNotFound")] is errors.JobNotFound
    unknown = {"type": "urn:x", "title": "New", "status": 418, "detail": "d"}
    error = from_response(418, json.dumps(unknown).encode(), service="")
    assert isinstance(error, ApiError)
    assert (error.status, error.type, str(error)) == (418, "urn:x", "New: d")


JOB = {
    "id": "job_1", "tenant": "t", "state": "queued", "question": "q", "form": "free", "model": "m:x",
    "strategy": None, "created": "2026-01-15T09:30:00Z", "started": None, "ended": None,
    "deadline": "2026-01-15T09:45:00Z", "runs": 0, "losses": 0, "progress": None, "batch": None,
    "row": None, "known_cost_usd": "0", "unknown_costs": 0,
    "charged_usd": "0", "reserved_usd": "0", "cap_usd": None, "request": {}, "decision": None,
    "result": None, "error": None, "cancellation": None,
    "spending": {"attempts": [], "usage": {"new": 1}, "usage_complete": True, "cost_usd": "0",
                 "charged_usd": "0"},
}  # fmt: skip


async def test_dollars_and_any_text_are_sent_as_the_service_takes_them() -> None:
    bodies: list[Any] = []

    def keep(request: httpx2.Request) -> httpx2.Response:
        packed = request.headers.get("content-encoding") == "gzip"
        if not packed:
            assert request.headers["content-type"] == "application/json"
        bodies.append(json.loads(gzip.decompress(request.content) if packed else request.content))
        return httpx2.Response(404, text="")

    asked: dict[str, Any] = {"question": "Is it \ud800?", "max_cost_usd": Decimal("0.05")}
    async with Client(transport=httpx2.MockTransport(keep)) as client:
        calls: tuple[Callable[[], Awaitable[object]], ...] = (
            lambda: client.submit(asked),
            lambda: client.ask(asked),
            lambda: client.submit_batch([asked]),
            lambda: client.estimate(asked),
        )
        for call in calls:
            with pytest.raises(ApiError):
                await call()
        assert bodies == [{**asked, "max_cost_usd": "0.05"}] * len(calls)
        with pytest.raises(TypeError, match="a request cannot hold a set"):
            await client.submit("Is it?", filters={"journals": {"Lancet"}})
