from __future__ import annotations

import anyio
import pytest
import trio
from trio.testing import MockClock

from posology.errors import RateLimited
from posology.llm.providers.headers import allowance
from posology.llm.providers.places import LONGEST_HOLD, MOST, START, Allowance, Places
from posology.types import Usage

AMPLE = Allowance(requests=10_000, tokens=10_000_000)
pytestmark = pytest.mark.anyio

USAGE = Usage(input=900, output=100)


async def window(places: Places, *, refused: int = 0, stated: Allowance | None = AMPLE) -> int:
    """As many calls at once as there are places; return how many there were."""
    n = places.total
    full = anyio.Event()

    async def call(i: int) -> None:
        await places.acquire()
        if places.in_use == n:
            full.set()
        await full.wait()
        if i < refused:
            places.refused(None)
        else:
            if stated is not None:
                places.told(stated)
            places.answered(USAGE)
        places.release()

    async with anyio.create_task_group() as group:
        for i in range(n):
            group.start_soon(call, i)
    return n


async def test_calls_grow_to_the_bound_while_limits_are_stated() -> None:
    places = Places()
    seen = [await window(places) for _ in range(7)]
    assert seen == [START, 32, 64, 128, 256, MOST, MOST]


async def test_without_stated_limits_they_do_not_grow() -> None:
    places = Places()
    assert [await window(places, stated=None) for _ in range(3)] == [START] * 3


async def test_a_configured_bound_is_also_the_beginning() -> None:
    places = Places(64)
    assert [await window(places) for _ in range(2)] == [64, 64]


async def test_places_that_are_not_used_do_not_grow() -> None:
    places = Places()
    for _ in range(3 * START):
        await places.acquire()
        places.told(AMPLE)
        places.answered(USAGE)
        places.release()
    assert places.total == START


async def test_refusals_shrink_by_half_their_share_and_stray_ones_do_not() -> None:
    places = Places(100)
    await window(places, refused=100)
    assert places.total == 50
    await window(places, refused=25)
    assert places.total == 37
    stray = Places(100)
    await window(stray, refused=4)
    assert stray.total == 100


async def test_they_never_shrink_to_none() -> None:
    places = Places(2)
    for _ in range(20):
        await window(places, refused=places.total)
    assert places.total == 1


@pytest.mark.parametrize(
    ("stated", "total"),
    [
        (Allowance(requests=3), 3),
        (Allowance(requests=0), 1),
        # a call takes 1,000 tokens
        (Allowance(requests=3, tokens=2_500), 2),
        (Allowance(tokens=5_000), 5),
        (Allowance(requests=400), START),
    ],
)
async def test_stated_room_bounds_them(stated: Allowance, total: int) -> None:
    places = Places()
    await places.acquire()
    places.answered(USAGE)
    places.told(stated)
    places.release()
    assert places.total == total


async def test_calls_in_flight_are_not_counted_twice() -> None:
    places = Places()
    async with anyio.create_task_group() as group:
        for _ in range(4):
            group.start_soon(places.acquire)
        await anyio.wait_all_tasks_blocked()
    places.told(Allowance(requests=5))
    assert places.total == 3 + 5


async def acquiring(places: Places) -> float:
    """Return the seconds until there is a place."""
    begun = anyio.current_time()
    await places.acquire()
    places.release()
    return anyio.current_time() - begun


@pytest.mark.parametrize(("asked", "waits"), [(7.0, 7.0), (LONGEST_HOLD + 1, 0.0), (None, 0.0)])
def test_after_several_refusals_others_wait_as_long_as_is_asked(
    asked: float | None, waits: float
) -> None:
    async def test() -> None:
        places = Places(10)
        places.refused(asked)
        assert await acquiring(places) == 0.0
        places.refused(asked)
        assert await acquiring(places) == pytest.approx(waits)

    trio.run(test, clock=MockClock(autojump_threshold=0))


@pytest.mark.parametrize("most", [1, 2, 3, 8])
def test_the_second_refusal_in_a_row_holds_others_whatever_the_places(most: int) -> None:
    async def test() -> None:
        places = Places(most)
        places.refused(7.0)
        assert await acquiring(places) == 0.0
        if most < 3:
            # an answer in between tells that there is room
            places.answered(USAGE)
            places.refused(7.0)
            assert await acquiring(places) == 0.0
        places.refused(7.0)
        assert await acquiring(places) == pytest.approx(7.0)

    trio.run(test, clock=MockClock(autojump_threshold=0))


def test_a_provider_with_few_places_gets_about_as_many_calls() -> None:
    """40 calls at once are answered, more are refused: 2,000 calls settle near 40, and few attempts are refused."""
    refusals, most = 0, 0

    async def test() -> None:
        nonlocal refusals, most
        places, running = Places(), 0

        async def provider() -> None:
            nonlocal running
            if running >= 40:
                raise RateLimited("no", provider="openai", model="openai:m")
            running += 1
            await anyio.sleep(1.0)
            running -= 1

        async def call() -> None:
            nonlocal refusals, most
            while True:
                await places.acquire()
                most = max(most, places.in_use)
                try:
                    await provider()
                except RateLimited as error:
                    refusals += 1
                    places.refused(error.retry_after)
                    await anyio.sleep(0.5)
                else:
                    places.told(AMPLE)
                    places.answered(USAGE)
                    return
                finally:
                    places.release()

        async with anyio.create_task_group() as group:
            for _ in range(2_000):
                group.start_soon(call)
        # 2,000 calls at 40 a second take 50 s
        assert anyio.current_time() - begun < 100

    clock = MockClock(autojump_threshold=0)
    begun = clock.current_time()
    trio.run(test, clock=clock)
    assert most <= 80
    assert refusals < 400


@pytest.mark.parametrize(
    ("headers", "expected"),
    [
        ({}, None),
        ({"x-ratelimit-remaining-requests": "12"}, Allowance(requests=12)),
        (
            {"x-ratelimit-remaining-requests": "12", "x-ratelimit-remaining-tokens": "3400"},
            Allowance(requests=12, tokens=3_400),
        ),
        (
            {
                "anthropic-ratelimit-requests-remaining": "0",
                "anthropic-ratelimit-tokens-remaining": "7",
            },
            Allowance(requests=0, tokens=7),
        ),
        ({"x-ratelimit-remaining-requests": "many"}, None),
        ({"x-ratelimit-remaining-requests": "-1"}, None),
    ],
)
def test_both_providers_state_what_is_left(
    headers: dict[str, str], expected: Allowance | None
) -> None:
    assert allowance(headers) == expected
