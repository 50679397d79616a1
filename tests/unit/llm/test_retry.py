from __future__ import annotations

from collections.abc import Callable, Iterable
from contextlib import suppress
from typing import Any

import anyio
import pytest
from hypothesis import given
from hypothesis import strategies as st

from posology import errors
from posology.llm.retry import Retry, RetryPolicy
from posology.testing import ScriptedModel
from posology.types import Call
from tests.support.adapters import attempting

pytestmark = pytest.mark.anyio

MakeCall = Callable[..., Call]


def fails(
    kind: type[errors.ProviderError] = errors.ProviderOverloaded, **details: Any
) -> errors.ProviderError:
    return kind("no", provider="openai", model="openai:m", **details)


class Time:
    """A clock that only sleeping moves."""

    def __init__(self) -> None:
        self.now = 1000.0
        self.slept: list[float] = []

    async def sleep(self, seconds: float) -> None:
        self.slept.append(seconds)
        self.now += seconds


def retrying(model: ScriptedModel, time: Time, *, draw: float = 0.5, **policy: Any) -> Retry:
    return Retry(
        attempting(model),
        policy=RetryPolicy(**policy),
        sleep=time.sleep,
        clock=lambda: time.now,
        draw=lambda: draw,
    )


@pytest.fixture
def time() -> Time:
    return Time()


@pytest.mark.parametrize(
    "kind",
    [
        errors.RateLimited,
        errors.ProviderOverloaded,
        errors.ProviderUnreachable,
        errors.ProviderTimeout,
        errors.MalformedReply,
    ],
)
async def test_what_may_pass_is_tried_again(
    kind: type[errors.ProviderError], make_call: MakeCall, time: Time
) -> None:
    model = ScriptedModel([fails(kind), "yes"])
    assert (await retrying(model, time)(make_call())).text == "yes"
    assert len(model.calls) == 2


@pytest.mark.parametrize(
    "kind",
    [
        errors.AuthenticationFailed,
        errors.PermissionRefused,
        errors.QuotaExhausted,
        errors.ModelNotFound,
        errors.RequestRejected,
        errors.ContextTooLong,
        errors.SchemaViolation,
        errors.TruncatedReply,
    ],
)
async def test_what_will_not_pass_is_not(
    kind: type[errors.ProviderError], make_call: MakeCall, time: Time
) -> None:
    model = ScriptedModel([fails(kind), "never"])
    with pytest.raises(kind):
        await retrying(model, time)(make_call())
    assert len(model.calls) == 1
    assert time.slept == []


@pytest.mark.parametrize("attempts", [1, 2, 4])
async def test_attempts_are_counted_in_total_and_the_last_error_is_raised(
    attempts: int, make_call: MakeCall, time: Time
) -> None:
    script = [fails(retry_after=float(n)) for n in range(9)]
    model = ScriptedModel(script)
    with pytest.raises(errors.ProviderOverloaded) as caught:
        await retrying(model, time, attempts=attempts)(make_call())
    assert caught.value is script[attempts - 1]
    assert len(model.calls) == attempts
    assert len(time.slept) == attempts - 1


async def test_waits_grow_to_the_cap(make_call: MakeCall, time: Time) -> None:
    model = ScriptedModel([*(fails() for _ in range(5)), "yes"])
    await retrying(model, time, attempts=6, base=1.0, cap=5.0, draw=0.5)(make_call())
    assert time.slept == [0.5, 1.0, 2.0, 2.5, 2.5]


async def test_the_provider_is_never_asked_before_it_wants_to_be(
    make_call: MakeCall, time: Time
) -> None:
    model = ScriptedModel([fails(errors.RateLimited, retry_after=30.0), "yes"])
    await retrying(model, time, cap=1.0)(make_call())
    assert time.slept == [30.0]


async def test_a_wait_beyond_the_deadline_fails_at_once_with_the_original_error(
    make_call: MakeCall, time: Time
) -> None:
    first = fails(errors.RateLimited, retry_after=30.0)
    model = ScriptedModel([first, "never"])
    with pytest.raises(errors.RateLimited) as caught:
        await retrying(model, time, deadline=29.0)(make_call())
    assert caught.value is first
    assert time.slept == []


async def test_waits_add_up_to_less_than_the_deadline(make_call: MakeCall, time: Time) -> None:
    model = ScriptedModel(lambda _: fails(retry_after=3.0))
    with pytest.raises(errors.ProviderOverloaded):
        await retrying(model, time, attempts=99, deadline=10.0)(make_call())
    assert time.slept == [3.0, 3.0, 3.0]


@given(
    waits=st.lists(st.none() | st.floats(0, 50), min_size=1, max_size=12),
    draw=st.floats(0, 1, exclude_max=True),
    attempts=st.integers(1, 10),
    deadline=st.floats(0.5, 100),
)
def test_no_policy_is_ever_exceeded(
    waits: list[float | None], draw: float, attempts: int, deadline: float
) -> None:
    time = Time()
    script: Iterable[Any] = [*(fails(retry_after=wait) for wait in waits), "yes"]
    model = ScriptedModel(script)
    call: Any = _Named()

    async def run() -> None:
        with suppress(errors.ProviderOverloaded):
            await retrying(model, time, draw=draw, attempts=attempts, deadline=deadline)(call)

    anyio.run(run)
    assert len(model.calls) <= attempts
    assert sum(time.slept) < deadline
    for slept, asked in zip(time.slept, waits, strict=False):
        assert slept >= (asked or 0.0)


class _Named:
    model = "openai:m"


async def test_the_deadline_cancels_a_running_attempt(make_call: MakeCall) -> None:
    first = fails()
    replies = iter([first])

    class Slow:
        cancelled = False

        async def __call__(self, call: Call) -> Any:
            for error in replies:
                raise error
            try:
                await anyio.sleep_forever()
            finally:
                self.cancelled = True

    slow = Slow()
    complete = Retry(attempting(slow), policy=RetryPolicy(base=0.001, deadline=1.5))
    with pytest.raises(errors.DeadlineExceeded, match=r"within 1\.5 s") as caught:
        await complete(make_call())
    assert slow.cancelled
    assert caught.value.seconds == 1.5
    assert caught.value.__cause__ is first


async def test_a_cancellation_from_outside_passes_untouched(make_call: MakeCall) -> None:
    model = ScriptedModel(["late"], latency=30.0)
    with anyio.move_on_after(0.02) as scope:
        await Retry(attempting(model))(make_call())
    assert scope.cancelled_caught
    assert len(model.calls) == 1


async def test_an_error_that_is_not_a_providers_passes_untouched(make_call: MakeCall) -> None:
    model = ScriptedModel([KeyError("a bug")])
    with pytest.raises(KeyError):
        await Retry(attempting(model))(make_call())


async def test_concurrent_calls_do_not_share_their_count(make_call: MakeCall, time: Time) -> None:
    tries: dict[int, int] = {}

    def reply(call: Call) -> Any:
        tries[call.max_tokens] = tries.get(call.max_tokens, 0) + 1
        return fails() if tries[call.max_tokens] < 3 else "yes"

    complete = retrying(ScriptedModel(reply), time, attempts=3, deadline=None)
    async with anyio.create_task_group() as group:
        for n in range(1, 21):
            group.start_soon(complete, make_call(max_tokens=n))
    assert tries == dict.fromkeys(range(1, 21), 3)


def test_a_policy_without_attempts_is_refused() -> None:
    with pytest.raises(ValueError, match="attempts"):
        RetryPolicy(attempts=0)
