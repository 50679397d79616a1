"""What stops a run of many calls, and what does not."""

from __future__ import annotations

import anyio
import pytest

from orchestrator.training.paid.calls import buy_all
from posology.errors import ConfigurationError, PosologyError, RequestRejected

pytestmark = pytest.mark.anyio


def rejected() -> PosologyError:
    return RequestRejected("too odd", provider="openai", model="x")


async def test_what_one_call_is_refused_for_stops_no_other() -> None:
    done: list[int] = []

    async def work(number: int) -> None:
        if number % 2:
            raise rejected()
        done.append(number)

    await buy_all(work, range(6), at_once=2)
    assert sorted(done) == [0, 2, 4]


async def test_after_what_stops_all_nothing_more_is_taken_up_and_what_is_under_way_ends() -> None:
    begun: list[int] = []
    ended: list[int] = []
    all_begun, stopped = anyio.Event(), anyio.Event()

    async def work(number: int) -> None:
        begun.append(number)
        if len(begun) == 3:
            all_begun.set()
        await all_begun.wait()
        if number == 1:
            stopped.set()
            raise ConfigurationError("no money")
        await stopped.wait()
        await anyio.sleep(0.01)
        ended.append(number)

    with pytest.raises(ConfigurationError, match="no money"):
        await buy_all(work, range(9), at_once=3)
    assert sorted(begun) == [0, 1, 2]
    assert sorted(ended) == [0, 2]


async def test_a_defect_is_told_before_what_the_budget_says() -> None:
    async def work(number: int) -> None:
        await anyio.sleep(0.005 * number)
        raise ZeroDivisionError if number else ConfigurationError("no money")

    with pytest.raises(ZeroDivisionError):
        await buy_all(work, range(2), at_once=2)
