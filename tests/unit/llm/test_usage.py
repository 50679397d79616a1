from __future__ import annotations

from dataclasses import fields
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from posology.llm.providers.anthropic import usage_of as anthropic_usage
from posology.llm.providers.fields import counts
from posology.llm.providers.openai import usage_of as openai_usage
from posology.llm.providers.vectors import usage_of as embedding_usage
from posology.testing.provider import formats
from posology.types import Finish, Usage

BUCKETS = [f.name for f in fields(Usage)]
tokens = st.integers(min_value=0, max_value=10**7)
usages = st.builds(
    Usage,
    input=tokens,
    cache_read=tokens,
    cache_write_5m=tokens,
    cache_write_1h=tokens,
    output=tokens,
    reasoning=tokens,
)


@given(usages.filter(lambda usage: usage.total_input))
def test_anthropic_usage_survives_the_wire(usage: Usage) -> None:
    body = formats.anthropic_reply("m", "", usage, Finish.STOP)
    assert anthropic_usage(body) == usage


@given(usages.filter(lambda usage: usage.total_input))
def test_openai_usage_survives_the_wire_but_for_the_lifetime_of_cache_writes(usage: Usage) -> None:
    found = openai_usage(formats.openai_reply("m", "", usage, Finish.STOP))
    assert found is not None
    assert found.total_input == usage.total_input
    assert found.total_output == usage.total_output
    assert found.cache_read == usage.cache_read
    assert found.cache_write_5m == usage.cache_write_5m + usage.cache_write_1h
    assert found.reasoning == usage.reasoning


def test_the_longest_that_a_call_can_be_is_still_a_count() -> None:
    most = {"prompt_tokens": 10**9, "completion_tokens": 10**9}
    assert openai_usage({"usage": most}) == Usage(input=10**9, output=10**9)


@pytest.mark.parametrize(
    ("total", "details", "output", "reasoning"),
    [
        (150, {}, 50, 0),
        (900, {}, 50, 750),
        (900, {"reasoning_tokens": 750}, 50, 750),
        (150, {"reasoning_tokens": 20}, 30, 20),
        # within the total of the reply, or beside it: the dearer
        (900, {"reasoning_tokens": 20}, 30, 770),
        (120, {}, 50, 0),
    ],
)
def test_tokens_that_only_the_grand_total_knows_are_reasoning(
    total: int, details: dict[str, int], output: int, reasoning: int
) -> None:
    usage = {"prompt_tokens": 100, "completion_tokens": 50, "total_tokens": total}
    body = {"usage": usage | {"completion_tokens_details": details}}
    assert openai_usage(body) == Usage(input=100, output=output, reasoning=reasoning)
    silent = {"usage": {"prompt_tokens": 100, "completion_tokens": 0, "total_tokens": 900}}
    assert openai_usage(silent) == Usage(input=100, reasoning=800)
    assert openai_usage(silent, wrote=True) is None


@pytest.mark.parametrize("read", [openai_usage, anthropic_usage])
@pytest.mark.parametrize(
    "body",
    [
        {},
        {"usage": None},
        {"usage": []},
        {"usage": {}},
        {"usage": {"prompt_tokens": "7", "completion_tokens": 1, "input_tokens": None}},
        {"usage": {"prompt_tokens": -7, "completion_tokens": 1}},
        {"usage": {"prompt_tokens": True, "completion_tokens": True}},
        {"usage": {"prompt_tokens": 7.0, "completion_tokens": 1.0}},
        {"usage": {"input_tokens": 7.5, "output_tokens": float("inf")}},
        {"usage": {"input_tokens": -1, "output_tokens": 1}},
        {"usage": {"input_tokens": True, "output_tokens": False}},
        {"usage": [{"prompt_tokens": 7, "completion_tokens": 1}]},
        # one such figure would empty a budget
        {"usage": {"prompt_tokens": 10**9 + 1, "completion_tokens": 1}},
        {"usage": {"input_tokens": 1, "output_tokens": 10**30}},
    ],
)
def test_what_is_not_a_count_is_unknown(read: Any, body: dict[str, Any]) -> None:
    assert read(body) is None


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(
                [
                    "usage",
                    "prompt_tokens",
                    "completion_tokens",
                    "total_tokens",
                    "prompt_tokens_details",
                    "completion_tokens_details",
                    "cached_tokens",
                    "cache_write_tokens",
                    "reasoning_tokens",
                    "input_tokens",
                    "output_tokens",
                    "output_tokens_details",
                    "thinking_tokens",
                    "cache_creation",
                    "cache_creation_input_tokens",
                    "ephemeral_5m_input_tokens",
                    "ephemeral_1h_input_tokens",
                ]
            ),
            inner,
            max_size=5,
        )
    ),
)


@given(usages)
def test_zeros_are_unknown(usage: Usage) -> None:
    """No prompt has 0 tokens, and no text."""
    for read, write in (
        (openai_usage, formats.openai_reply),
        (anthropic_usage, formats.anthropic_reply),
    ):
        body = write("m", "", usage, Finish.STOP)
        assert (read(body) is None) == (usage.total_input == 0)
        assert (read(body, wrote=True) is None) == (0 in (usage.total_input, usage.total_output))


@pytest.mark.parametrize(
    ("usage", "read"),
    [
        ({"prompt_tokens": 0, "total_tokens": 0}, None),
        ({"prompt_tokens": 0}, None),
        ({"total_tokens": 0}, None),
        ({"prompt_tokens": 0, "total_tokens": 7}, 7),
        ({"prompt_tokens": 7, "total_tokens": 7}, 7),
        (None, None),
    ],
)
def test_vectors_of_0_tokens_have_unknown_usage(usage: Any, read: int | None) -> None:
    found = embedding_usage({"usage": usage})
    assert found == (None if read is None else Usage(input=read))


@pytest.mark.parametrize(
    ("usage", "says"),
    [
        (None, False),
        ([], False),
        ({"prompt_tokens": 0, "completion_tokens": 0, "prompt_tokens_details": None}, False),
        ({"input_tokens": "0", "service_tier": "standard", "is_byok": True}, False),
        ({"input_tokens": "900"}, True),
        ({"input_tokens": 0, "cache_creation": {"ephemeral_1h_input_tokens": 3}}, True),
        ({"cost": 0.0001}, True),
    ],
)
def test_the_usage_of_a_failure_counts_if_it_is_not_of_zeros(usage: Any, says: bool) -> None:
    assert counts({"usage": usage}) is says


@given(json_values)
def test_no_usage_breaks_the_arithmetic_or_goes_below_zero(usage: Any) -> None:
    for read in (openai_usage, anthropic_usage):
        found = read({"usage": usage})
        if found is not None:
            for name in BUCKETS:
                assert getattr(found, name) >= 0


@given(usages, usages, usages)
def test_usages_add(a: Usage, b: Usage, c: Usage) -> None:
    assert a + b == b + a
    assert (a + b) + c == a + (b + c)
    assert a + Usage() == a
    assert (a + b).total_input == a.total_input + b.total_input
    assert (a + b).total_output == a.total_output + b.total_output
