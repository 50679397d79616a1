"""Waits for capacity in the tier flex."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from posology.errors import NoCapacity
from posology.llm.calls import CallState
from posology.llm.capacity import Capacity, pause_after
from posology.llm.pace import FLEX_TIMEOUT
from posology.llm.retry import RetryPolicy
from posology.testing import ScriptedModel
from tests.support.adapters import attempting
from tests.support.calls import a_call

pytestmark = pytest.mark.anyio


@given(
    st.integers(0, 10**6),
    st.none() | st.floats(0, 1e6),
    st.floats(0, 1, exclude_max=True),
)
def test_a_wait_is_bounded_and_at_least_what_the_provider_asks(
    waits: int, asked: float | None, draw: float
) -> None:
    pause = pause_after(waits, asked, draw)
    assert 0.5 <= pause <= max(15.0, asked or 0.0)
    assert pause >= (asked or 0.0)


async def test_it_waits_no_longer_than_its_time() -> None:
    now, slept = [0.0], []

    async def sleep(seconds: float) -> None:
        slept.append(seconds)
        now[0] += seconds

    error = NoCapacity("none", provider="openai", model="openai:m")
    wait = Capacity(
        attempting(ScriptedModel(lambda _: error)),
        timeout=lambda: 100.0,
        place_timeout=None,
        standard=False,
        sleep=sleep,
        clock=lambda: now[0],
    )
    with pytest.raises(NoCapacity):
        await wait(a_call(tier="flex"), CallState())
    # backoff: about a dozen tries, not a hundred
    assert 85.0 <= now[0] <= 100.0
    assert 8 <= len(slept) <= 18


def test_flex_has_the_time_that_the_provider_advises() -> None:
    policy = RetryPolicy(deadline=120.0)
    assert policy.deadline_of(a_call()) == 120.0
    assert policy.deadline_of(a_call(tier="flex")) == FLEX_TIMEOUT
    assert RetryPolicy(deadline=None).deadline_of(a_call(tier="flex")) is None
