from __future__ import annotations

import socket
from decimal import Decimal

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from posology.budget.prices import price, prices_version
from posology.types import Usage

MILLION = 10**6
count = st.integers(min_value=0, max_value=10**6)


def test_openai_reasoning_is_billed_like_output_and_cached_input_for_less() -> None:
    model = "openai:gpt-4o-mini"
    assert price(model, Usage(input=MILLION)) == Decimal("0.15")
    assert price(model, Usage(output=MILLION)) == Decimal("0.6")
    assert price(model, Usage(reasoning=MILLION)) == Decimal("0.6")
    assert price(model, Usage(cache_read=MILLION)) == Decimal("0.075")


def test_anthropic_cache_writes_cost_more_and_most_for_an_hour() -> None:
    model = "anthropic:claude-3-5-haiku-latest"
    assert price(model, Usage(input=MILLION)) == Decimal("0.8")
    assert price(model, Usage(cache_read=MILLION)) == Decimal("0.08")
    assert price(model, Usage(cache_write_5m=MILLION)) == Decimal(1)
    assert price(model, Usage(cache_write_1h=MILLION)) == Decimal("1.6")
    assert price(model, Usage(output=MILLION)) == Decimal(4)


@pytest.mark.parametrize("model", ["openai:gpt-4o-mini", "anthropic:claude-3-5-haiku-latest"])
@given(
    st.builds(
        Usage,
        input=count,
        cache_read=count,
        cache_write_5m=count,
        cache_write_1h=count,
        output=count,
        reasoning=count,
    )
)
@settings(max_examples=50)
def test_the_whole_costs_what_its_buckets_cost(model: str, usage: Usage) -> None:
    parts = (
        Usage(input=usage.input),
        Usage(cache_read=usage.cache_read),
        Usage(cache_write_5m=usage.cache_write_5m),
        Usage(cache_write_1h=usage.cache_write_1h),
        Usage(output=usage.output),
        Usage(reasoning=usage.reasoning),
    )
    costs = [price(model, part) for part in parts]
    assert price(model, usage) == sum((cost or Decimal(0) for cost in costs), Decimal(0))


def test_the_offline_reader_is_free_by_declaration() -> None:
    assert price("offline:extractive", Usage(input=MILLION, output=MILLION)) == Decimal(0)


@pytest.mark.parametrize(
    "model",
    [
        "openai:no-such-model",
        "openai:gpt-4o-mini-typo",
        "openai:ft:gpt-4o-mini:org::id",
        "nobody:gpt-4o-mini",
        "gpt-4o-mini",
        "",
        ":",
        # listed, but by the hour or without a price: not free
        "openai:whisper-1",
        "openai:omni-moderation-latest",
    ],
)
def test_an_unknown_price_is_none_and_never_zero(model: str) -> None:
    assert price(model, Usage(input=1, output=1)) is None


def test_unknown_usage_has_a_price_only_where_all_is_free() -> None:
    assert price("offline:extractive", None) == Decimal(0)
    assert price("openai:gpt-4o-mini", None) is None


def test_an_embedding_has_no_output_to_price() -> None:
    model = "openai:text-embedding-3-small"
    assert price(model, Usage(input=MILLION)) == Decimal("0.02")
    assert price(model, Usage(input=1, output=1)) is None


@given(st.text(max_size=30))
def test_no_name_breaks_it(model: str) -> None:
    price(model, Usage(input=1))


def test_prices_come_without_a_network(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*args: object, **kwargs: object) -> None:
        raise AssertionError("a socket was opened")

    monkeypatch.setattr(socket.socket, "connect", refuse)
    assert price("openai:gpt-4o", Usage(input=1)) is not None
    assert prices_version().startswith("genai-prices ")
