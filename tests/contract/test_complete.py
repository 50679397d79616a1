"""What every :class:`~posology.seams.Complete` that talks to a model must do."""

from __future__ import annotations

import threading
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack
from dataclasses import replace
from typing import Any

import anyio
import pytest
from pydantic import BaseModel

from posology import errors
from posology.llm.structured import Structured
from posology.seams import Complete
from posology.testing import (
    Cut,
    Hang,
    Malformed,
    NoSuchModel,
    Reply,
    ScriptedModel,
    Status,
    Step,
    StubProvider,
)
from posology.types import Call, Completion, Finish, Usage
from tests.support.calls import a_call
from tests.support.clouds import adapter_to

pytestmark = pytest.mark.anyio

TIMEOUT = 0.3
#: where a model may not have any name
NAMES = {"bedrock": "anthropic.m"}
Opened = tuple[Complete, Call]
Open = Callable[[list[Step]], Awaitable[Opened]]


class Verdict(BaseModel):
    verdict: str


def _scripted(step: Step) -> Any:
    """A step of the stub provider as a scripted model has it."""
    known = {"provider": "openai", "model": "openai:m"}
    match step:
        case Reply() if step.drip:
            return errors.ProviderTimeout("no", **known)  # type: ignore[arg-type]
        case Reply():
            assert isinstance(step.text, str)
            assert not callable(step.usage)
            usage = None if step.zeros else step.usage
            return Completion(
                text=step.text, usage=usage, finish=step.finish, served_model="m", latency=0.0
            )
        case Status(code=429):
            return errors.RateLimited("no", **known, usage=Usage())  # type: ignore[arg-type]
        case Status():
            return errors.ProviderOverloaded("no", **known)  # type: ignore[arg-type]
        case NoSuchModel():
            return errors.ModelNotFound("no", **known, usage=Usage())  # type: ignore[arg-type]
        case Hang():
            return errors.ProviderTimeout("no", **known)  # type: ignore[arg-type]
        case Cut():
            return errors.ProviderUnreachable("no", **known)  # type: ignore[arg-type]
        case Malformed():
            return errors.MalformedReply("no", **known)  # type: ignore[arg-type]


@pytest.fixture
async def opened() -> AsyncIterator[AsyncExitStack]:
    async with AsyncExitStack() as stack:
        yield stack


@pytest.fixture(params=["openai", "anthropic", "azure", "bedrock", "vertex", "scripted"])
def open_complete(request: pytest.FixtureRequest, opened: AsyncExitStack) -> Open:
    async def start(script: list[Step]) -> Opened:
        if request.param == "scripted":
            slow = TIMEOUT if any(isinstance(s, Reply) and s.latency for s in script) else 0.0
            model = ScriptedModel([_scripted(step) for step in script], latency=slow)
            return model, a_call(model="openai:m")
        stub = opened.enter_context(StubProvider(script))
        # short only where it is to be waited for: other tests may have the cores
        silent = any(
            isinstance(s, Hang) or (isinstance(s, Reply) and (s.latency or s.drip)) for s in script
        )
        timeout = TIMEOUT if silent else 60.0
        # a stream that drips is not silent: the deadline of its call ends it
        drips = any(isinstance(s, Reply) and s.drip for s in script)
        adapter = adapter_to(request.param, stub, timeout=timeout, stream=not drips)
        opened.push_async_callback(adapter.aclose)
        return adapter, a_call(model=f"{request.param}:{NAMES.get(request.param, 'm')}")

    return start


async def test_a_reply_is_a_completion(open_complete: Open) -> None:
    usage = Usage(input=90, cache_read=10, output=7, reasoning=3)
    complete, call = await open_complete([Reply(text="Yes, µg → 5 × 10³.", usage=usage)])
    completion = await complete(call)
    assert completion.text == "Yes, µg → 5 × 10³."
    assert completion.usage == usage
    assert completion.finish is Finish.STOP
    assert completion.served_model == call.model.partition(":")[2]
    assert completion.parsed is None
    assert completion.latency is not None
    assert completion.latency >= 0


@pytest.mark.parametrize("finish", [Finish.LENGTH, Finish.FILTERED, Finish.OTHER])
async def test_why_the_model_stopped_is_told(finish: Finish, open_complete: Open) -> None:
    complete, call = await open_complete([Reply(text="Part of", finish=finish)])
    assert (await complete(call)).finish is finish


@pytest.mark.parametrize("reply", [Reply(text="yes", usage=None), Reply(text="yes", zeros=True)])
async def test_a_usage_that_was_not_sent_or_is_of_zeros_is_unknown(
    reply: Reply, open_complete: Open
) -> None:
    complete, call = await open_complete([reply])
    completion = await complete(call)
    assert (completion.text, completion.usage) == ("yes", None)


@pytest.mark.parametrize(
    ("step", "kind", "usage"),
    [
        (Status(code=429), errors.RateLimited, Usage()),
        (Status(code=500), errors.ProviderOverloaded, None),
        (Status(code=429, within=True), errors.RateLimited, Usage()),
        (Status(code=502, within=True), errors.ProviderOverloaded, None),
        (NoSuchModel(), errors.ModelNotFound, Usage()),
        (Hang(), errors.ProviderTimeout, None),
        # each piece comes within the timeout, and all of it does not
        (Reply(text="late", drip=10 * TIMEOUT), errors.ProviderTimeout, None),
        (Cut(), errors.ProviderUnreachable, None),
        (Cut(after_bytes=20), errors.ProviderUnreachable, None),
        (Malformed(), errors.MalformedReply, None),
    ],
)
async def test_a_failure_is_one_of_ours_and_tells_no_more(
    step: Step, kind: type[errors.ProviderError], usage: Usage | None, open_complete: Open
) -> None:
    complete, call = await open_complete([step])
    with pytest.raises(errors.ProviderError) as caught:
        await complete(call)
    assert type(caught.value) is kind
    assert caught.value.model == call.model
    assert caught.value.usage == usage
    # a vendor's error holds the request, and so the key
    assert caught.value.__cause__ is None
    assert caught.value.__context__ is None


async def test_it_can_be_used_again_after_a_failure(open_complete: Open) -> None:
    complete, call = await open_complete([Status(code=500), Cut(), Reply(text="yes")])
    for _ in range(2):
        with pytest.raises(errors.ProviderError):
            await complete(call)
    assert (await complete(call)).text == "yes"


async def test_a_cancellation_passes_untouched(open_complete: Open) -> None:
    complete, call = await open_complete([Reply(text="late", latency=5.0)])
    with anyio.move_on_after(0.05) as scope:
        await complete(call)
    assert scope.cancelled_caught


async def test_calls_may_run_at_the_same_time(open_complete: Open) -> None:
    complete, call = await open_complete([Reply(text="yes")] * 10)
    texts: list[str] = []

    async def ask() -> None:
        texts.append((await complete(call)).text)

    async with anyio.create_task_group() as group:
        for _ in range(10):
            group.start_soon(ask)
    assert texts == ["yes"] * 10


async def test_a_structured_reply_is_parsed_around_it(open_complete: Open) -> None:
    complete, call = await open_complete([Reply(text='{"verdict": "yes"}')])
    completion = await Structured(complete)(replace(call, schema=Verdict))
    assert completion.parsed == Verdict(verdict="yes")


def test_nothing_is_left_running() -> None:
    """Runs last in this file: the stubs above have ended their threads."""
    assert not [t for t in threading.enumerate() if "stub" in t.name]
