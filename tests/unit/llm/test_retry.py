from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable
from contextlib import suppress
from dataclasses import replace
from typing import Any

import anyio
import pytest
import trio
from hypothesis import given
from hypothesis import strategies as st
from trio.testing import MockClock

from posology import errors
from posology.llm.admission import Limiter
from posology.llm.providers.places import Places
from posology.llm.retry import Retry, RetryPolicy
from posology.testing import ScriptedModel
from posology.types import Call, Completion, Usage
from tests.support.adapters import attempting, fails
from tests.support.calls import a_call

pytestmark = pytest.mark.anyio


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
async def test_what_may_pass_is_tried_again(kind: type[errors.ProviderError], time: Time) -> None:
    model = ScriptedModel([fails(kind), "yes"])
    assert (await retrying(model, time)(a_call())).text == "yes"
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
        errors.UnusableReply,
    ],
)
async def test_what_will_not_pass_is_not(kind: type[errors.ProviderError], time: Time) -> None:
    model = ScriptedModel([fails(kind), "never"])
    with pytest.raises(kind):
        await retrying(model, time)(a_call())
    assert len(model.calls) == 1
    assert time.slept == []


async def test_a_malformed_reply_that_was_billed_is_not_asked_for_again(time: Time) -> None:
    model = ScriptedModel([fails(errors.MalformedReply, usage=Usage(input=9)), "never"])
    with pytest.raises(errors.MalformedReply):
        await retrying(model, time)(a_call())
    assert len(model.calls) == 1


@pytest.mark.parametrize("attempts", [1, 2, 4])
async def test_attempts_are_counted_in_total_and_the_last_error_is_raised(
    attempts: int, time: Time
) -> None:
    script = [fails(retry_after=float(n)) for n in range(9)]
    model = ScriptedModel(script)
    with pytest.raises(errors.ProviderOverloaded) as caught:
        await retrying(model, time, attempts=attempts)(a_call())
    assert caught.value is script[attempts - 1]
    assert len(model.calls) == attempts
    assert len(time.slept) == attempts - 1


async def test_waits_grow_to_the_cap(time: Time) -> None:
    model = ScriptedModel([*(fails() for _ in range(5)), "yes"])
    await retrying(model, time, attempts=6, base=1.0, cap=5.0, draw=0.5)(a_call())
    assert time.slept == [0.5, 1.0, 2.0, 2.5, 2.5]


async def test_the_provider_is_never_asked_before_it_wants_to_be(time: Time) -> None:
    model = ScriptedModel([fails(errors.RateLimited, retry_after=30.0), "yes"])
    await retrying(model, time, cap=1.0)(a_call())
    assert time.slept == [30.0]


async def test_a_wait_beyond_the_deadline_fails_at_once_with_the_original_error(time: Time) -> None:
    first = fails(errors.RateLimited, retry_after=30.0)
    model = ScriptedModel([first, "never"])
    with pytest.raises(errors.RateLimited) as caught:
        await retrying(model, time, deadline=29.0)(a_call())
    assert caught.value is first
    assert time.slept == []


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
    tier = "standard"
    max_tokens = 1


async def test_the_deadline_cancels_a_running_attempt() -> None:
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
        await complete(a_call())
    assert slow.cancelled
    assert caught.value.seconds == 1.5
    assert caught.value.__cause__ is first


async def test_a_cancellation_from_outside_passes_untouched() -> None:
    model = ScriptedModel(["late"], latency=30.0)
    with anyio.move_on_after(0.02) as scope:
        await Retry(attempting(model))(a_call())
    assert scope.cancelled_caught
    assert len(model.calls) == 1


async def test_an_error_that_is_not_a_providers_passes_untouched() -> None:
    model = ScriptedModel([KeyError("a bug")])
    with pytest.raises(KeyError):
        await Retry(attempting(model))(a_call())


async def test_concurrent_calls_do_not_share_their_count(time: Time) -> None:
    tries: dict[int, int] = {}

    def reply(call: Call) -> Any:
        tries[call.max_tokens] = tries.get(call.max_tokens, 0) + 1
        return fails() if tries[call.max_tokens] < 3 else "yes"

    complete = retrying(ScriptedModel(reply), time, attempts=3, deadline=None)
    async with anyio.create_task_group() as group:
        for n in range(1, 21):
            group.start_soon(complete, a_call(max_tokens=n))
    assert tries == dict.fromkeys(range(1, 21), 3)


def test_a_policy_without_attempts_is_refused() -> None:
    with pytest.raises(ValueError, match="attempts"):
        RetryPolicy(attempts=0)


class Slow:
    """A model that takes its time before each reply."""

    def __init__(self, seconds: float) -> None:
        self._seconds = seconds
        self._inner = ScriptedModel(lambda _: "fine")
        self.began: list[float] = []

    async def __call__(self, call: Call) -> Completion:
        self.began.append(anyio.current_time())
        await anyio.sleep(self._seconds)
        return await self._inner(call)


@pytest.fixture
def virtual_time() -> MockClock:
    """Time that passes when everyone sleeps."""
    return MockClock(autojump_threshold=0)


def in_virtual_time(test: Callable[[], Awaitable[None]], clock: MockClock) -> None:
    trio.run(test, clock=clock)


def test_a_wait_for_a_place_does_not_count_against_the_deadline(virtual_time: MockClock) -> None:
    """A server with one slot: the last of ten calls waits for nine times its deadline, less a little."""
    model = Slow(9.0)
    policy = RetryPolicy(deadline=10.0, attempts=1)

    async def test() -> None:
        limiter = Limiter(attempting(model), places=Places(1))
        begun = anyio.current_time()
        async with anyio.create_task_group() as group:
            for _ in range(10):
                group.start_soon(Retry(limiter, policy=policy), a_call())
        assert sorted(at - begun for at in model.began) == pytest.approx(
            [9.0 * i for i in range(10)]
        )

    in_virtual_time(test, virtual_time)


def test_after_the_wait_the_deadline_runs_on(virtual_time: MockClock) -> None:
    """Time that was used before the wait is used: a second attempt does not begin a new deadline."""
    places = Places(1)
    policy = RetryPolicy(deadline=10.0, attempts=3, base=0.001, cap=0.001)
    attempts: list[float] = []

    async def attempt(call: Call) -> Completion:
        attempts.append(anyio.current_time())
        if len(attempts) == 1:
            await anyio.sleep(6.0)
            raise fails()
        await anyio.sleep_forever()
        raise AssertionError

    async def hold() -> None:
        await anyio.sleep(1.0)
        await places.acquire()
        await anyio.sleep(500.0)
        places.release()

    async def test() -> None:
        begun = anyio.current_time()
        async with anyio.create_task_group() as group:
            # the call has the place first; before its second attempt the other has it for 500 s
            group.start_soon(hold)
            with pytest.raises(errors.DeadlineExceeded, match=r"within 10 s"):
                await Retry(Limiter(attempting(attempt), places=places), policy=policy)(a_call())
        assert attempts[0] == begun
        assert attempts[1] == pytest.approx(begun + 506.0, abs=0.01)
        assert anyio.current_time() == pytest.approx(begun + 510.0, abs=0.01)

    in_virtual_time(test, virtual_time)


def test_a_cancelled_job_stops_the_wait(virtual_time: MockClock) -> None:
    places = Places(1)
    model = Slow(0.0)

    async def test() -> None:
        retry = Retry(Limiter(attempting(model), places=places), policy=RetryPolicy(deadline=10.0))
        async with anyio.create_task_group() as group:
            await places.acquire()
            group.start_soon(retry, a_call())
            await anyio.wait_all_tasks_blocked()
            assert places.waiting == 1
            group.cancel_scope.cancel()
        places.release()
        assert (model.began, places.in_use) == ([], 0)

    in_virtual_time(test, virtual_time)


def test_with_a_floor_the_deadline_grows_with_the_reply(virtual_time: MockClock) -> None:
    call = replace(a_call(), max_tokens=500)
    policy = RetryPolicy(deadline=10.0, attempts=1, min_tokens_per_second=5.0)
    assert policy.deadline_of(call) == 110.0
    assert RetryPolicy(deadline=None, min_tokens_per_second=5.0).deadline_of(call) is None

    async def test() -> None:
        assert (await Retry(attempting(Slow(109.0)), policy=policy)(call)).text == "fine"
        with pytest.raises(errors.DeadlineExceeded, match=r"within 110 s"):
            await Retry(attempting(Slow(111.0)), policy=policy)(call)

    in_virtual_time(test, virtual_time)
