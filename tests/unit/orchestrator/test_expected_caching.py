"""Expected reads and writes of providers' caches: of what a step repeats, where the provider bills or gives them."""

from __future__ import annotations

import pytest

from orchestrator.question.estimates.caching import LEAST, expected_usage
from posology.types import PlannedCall, Usage
from tests.support.calls import CALL, a_call, asks

TEXT = "Why? " * 10


def planned(model: str, *, repeated: float, cached: tuple[int, ...] = ()) -> PlannedCall:
    call = a_call(model=model, messages=(CALL.messages[0], *asks(TEXT)), cached=cached)
    return PlannedCall(call=call, input=3_000, output=9, repeated=repeated)


@pytest.mark.parametrize(
    ("model", "repeated", "cached", "usage"),
    [
        ("openai:gpt-4o-mini", 2_000, (), Usage(input=1_000, cache_read=2_000)),
        ("openai:gpt-4o-mini", LEAST - 1, (), Usage(input=3_000)),
        ("openai:gpt-6-luna", 2_000, (), Usage(input=3_000)),
        ("openai:gpt-6-luna", 2_000, (20,), Usage(input=1_000, cache_read=2_000)),
        (
            "anthropic:claude-haiku-5-5",
            2_000,
            (20, len(TEXT)),
            Usage(cache_read=2_000, cache_write_5m=1_000),
        ),
        ("anthropic:claude-haiku-5-5", 0, (len(TEXT),), Usage(cache_write_5m=3_000)),
        ("offline:extractive", 2_000, (), Usage(input=3_000)),
    ],
)
def test_the_input_is_divided_by_what_a_cache_holds(
    model: str, repeated: float, cached: tuple[int, ...], usage: Usage
) -> None:
    found = expected_usage(planned(model, repeated=repeated, cached=cached), read=3_000, output=9)
    assert found == usage + Usage(output=9)
