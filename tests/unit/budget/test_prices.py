from __future__ import annotations

import re
import socket
from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime
from decimal import Decimal
from functools import cache

import pytest
from genai_prices import Usage as Counted
from genai_prices.data import providers
from genai_prices.types import (
    ClauseEquals,
    ConditionalPrice,
    ModelInfo,
    ModelPrice,
    PriceVariant,
    StartDateConstraint,
    TieredPrices,
    TimeOfDateConstraint,
)
from hypothesis import given
from hypothesis import strategies as st

from posology.budget.prices.book import PriceBook, load, packaged
from posology.budget.prices.table import Listed, table_version
from posology.errors import UnpricedModel
from posology.llm.models.families import capabilities
from posology.types import Usage
from tests.support.examples import examples

MILLION = 10**6
BOOK = packaged()
price = BOOK.cost
count = st.integers(min_value=0, max_value=10**6)
usages = st.builds(
    Usage,
    input=count,
    cache_read=count,
    cache_write_5m=count,
    cache_write_1h=count,
    output=count,
    reasoning=count,
)


def _every_price() -> Iterator[tuple[str, ModelInfo]]:
    for provider in providers:
        for model in provider.models:
            yield f"{provider.id}:{model.id}", model


ALL = dict(_every_price())


@cache
def priced(having: str = "") -> tuple[str, ...]:
    """The models that the book has a price for, or those of them whose prices have such a part."""
    if having:
        return tuple(n for n in priced() if having in repr(ALL[n].prices))
    return tuple(sorted(n for n in ALL if BOOK.cost(n, Usage(input=1, output=1)) is not None))


def stepped() -> tuple[str, ...]:
    return priced("TieredPrices")


#: half of the draws from the models whose prices are least simple
models = st.deferred(
    lambda: st.sampled_from(stepped() + priced("TimeOfDate")) | st.sampled_from(priced())
)


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


def test_prices_come_without_a_network(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*args: object, **kwargs: object) -> None:
        raise AssertionError("a socket was opened")

    monkeypatch.setattr(socket.socket, "connect", refuse)
    assert price("openai:gpt-4o", Usage(input=1)) is not None
    BOOK.check("openai:gpt-4o")


def test_the_version_names_the_table() -> None:
    assert BOOK.version == table_version()
    assert BOOK.version.startswith("genai-prices ")
    assert load(None) is BOOK


@given(models, usages)
@examples(50)
def test_it_is_the_table_s_own_arithmetic(model: str, usage: Usage) -> None:
    now = datetime(2027, 1, 15, 2, 30, tzinfo=UTC)
    counted = Counted(
        input_tokens=usage.total_input,
        cache_read_tokens=usage.cache_read,
        cache_write_tokens=usage.cache_write_5m + usage.cache_write_1h,
        cache_write_5m_tokens=usage.cache_write_5m,
        cache_write_1h_tokens=usage.cache_write_1h,
        output_tokens=usage.total_output,
        output_reasoning_tokens=usage.reasoning,
    )
    info = ALL[model]
    expected = info.get_prices(now).calc_price(counted)["total_price"]
    rates = Listed(model=info).rates(now)
    assert rates is not None
    assert rates.cost(usage) == expected


def possible(model: str, usage: Usage) -> Usage:
    """What a request can cause: models of known caching write none that it does not ask for."""
    if capabilities(model).cache == "unknown":
        return usage
    return replace(usage, cache_write_5m=0, cache_write_1h=0)


@given(models, usages, st.integers(0, 10**6), st.integers(0, 10**6))
@examples(50)
def test_the_worst_case_bounds_every_usage_within(
    model: str, usage: Usage, more: int, longer: int
) -> None:
    usage = possible(model, usage)
    cost = BOOK.cost(model, usage)
    assert cost is not None
    worst = BOOK.worst(
        model, input_tokens=usage.total_input + more, output_tokens=usage.total_output + longer
    )
    assert worst >= cost


@given(models, count, count, count, count)
@examples(50)
def test_the_worst_case_grows_with_either_bound(
    model: str, read: int, said: int, more: int, longer: int
) -> None:
    assert BOOK.worst(model, input_tokens=read, output_tokens=said) <= BOOK.worst(
        model, input_tokens=read + more, output_tokens=said + longer
    )


def test_the_worst_case_holds_on_both_sides_of_every_step() -> None:
    for model in stepped()[:40]:
        standing = ALL[model].get_prices(datetime.now(tz=UTC)).input_mtok
        tiers = standing.tiers if isinstance(standing, TieredPrices) else []
        for start in (tier.start for tier in tiers):
            for read in (start - 1, start, start + 1):
                kinds = (Usage(input=read, output=9), Usage(cache_write_1h=read, reasoning=9))
                for usage in (possible(model, one) for one in kinds):
                    cost = BOOK.cost(model, usage)
                    assert cost is not None, model
                    worst = BOOK.worst(model, input_tokens=start + 1, output_tokens=9)
                    assert worst >= cost, model


def test_the_worst_case_of_a_long_context_is_known_to_the_cent() -> None:
    # $3 and $15 up to 200,000 tokens, $6 and $22.5 above; no request of ours writes to a cache
    model = "anthropic:claude-sonnet-4-5"
    assert BOOK.worst(model, input_tokens=100_000, output_tokens=1_000) == Decimal("0.315")
    assert BOOK.worst(model, input_tokens=200_001, output_tokens=1_000) == Decimal("1.222506")
    # a model that the table of families lacks may write to a cache for an hour, at twice the price
    assert BOOK.worst("anthropic:claude-opus-4-1", input_tokens=1_000, output_tokens=0) == Decimal(
        "0.03"
    )


def test_the_worst_case_of_what_has_no_price_refuses() -> None:
    for model in ("openai:no-such-model", "openai:whisper-1", "openai:text-embedding-3-small", ""):
        with pytest.raises(UnpricedModel) as caught:
            BOOK.worst(model, input_tokens=1, output_tokens=1)
        assert caught.value.model == model
        with pytest.raises(UnpricedModel, match="POSOLOGY_PRICES"):
            BOOK.check(model)
    embedding = "openai:text-embedding-3-small"
    assert BOOK.worst(embedding, input_tokens=MILLION, output_tokens=0) == Decimal("0.02")
    with pytest.raises(ValueError, match="negative"):
        BOOK.worst("openai:gpt-4o", input_tokens=-1, output_tokens=0)


def test_what_is_free_needs_no_price() -> None:
    BOOK.check("offline:extractive")
    assert BOOK.free("offline:extractive")
    assert not BOOK.free("openai:gpt-4o")
    assert not BOOK.free("openai:no-such-model")
    assert BOOK.worst("offline:extractive", input_tokens=MILLION, output_tokens=MILLION) == 0


def test_batches_cost_what_the_table_says_and_nobody_guesses() -> None:
    usage = Usage(input=MILLION, output=MILLION)
    known = [n for n in priced() if BOOK.cost(n, usage, "batch") is not None]
    assert any(n.startswith("openai:") for n in known)
    assert any(n.startswith("anthropic:") for n in known)
    for model in known:
        standard, batch = BOOK.cost(model, usage), BOOK.cost(model, usage, "batch")
        assert standard is not None
        assert batch is not None
        assert batch <= standard
    assert BOOK.cost("openai:text-embedding-ada-002", Usage(input=1), "batch") is None


def test_a_tier_without_a_price_is_refused_by_name() -> None:
    for tier in ("flex", "batch"):
        with pytest.raises(UnpricedModel) as refused:
            BOOK.check("anthropic:claude-opus-4-1", tier)
        assert refused.value.tier == tier
        assert tier in str(refused.value)
    assert BOOK.rates("anthropic:claude-opus-4-1", "batch") is None
    assert BOOK.cost("openai:gpt-6-luna", Usage(input=1), "unknown") is None


def test_flex_is_reserved_at_the_standard_price_and_batch_at_its_own() -> None:
    model = "openai:gpt-6-luna"
    standard, flex, batch = (
        BOOK.worst(model, input_tokens=1_000, output_tokens=100, tier=tier)
        for tier in ("standard", "flex", "batch")
    )
    assert flex == standard
    assert batch == standard / 2
    usage = Usage(input=1_000, output=100)
    assert BOOK.cost(model, usage, "flex") == standard / 2
    assert BOOK.cost(model, usage, "priority") == 2 * standard


def test_what_a_call_writes_to_a_cache_is_reserved_at_the_shortest_lifetime() -> None:
    for model in ("openai:gpt-6-luna", "anthropic:claude-haiku-4-5"):
        plain, cached = (
            BOOK.worst(model, input_tokens=MILLION, output_tokens=0, caches=caches)
            for caches in (False, True)
        )
        assert cached == plain * Decimal("1.25") == BOOK.cost(model, Usage(cache_write_5m=MILLION))
    free = "openai:gpt-4o-mini"
    assert BOOK.worst(free, input_tokens=9, output_tokens=0, caches=True) == BOOK.worst(
        free, input_tokens=9, output_tokens=0
    )


def test_embeddings_have_the_published_batch_price() -> None:
    usage = Usage(input=MILLION)
    for model in ("openai:text-embedding-3-small", "openai:text-embedding-3-large"):
        standard = BOOK.cost(model, usage)
        assert standard is not None
        assert BOOK.cost(model, usage, "batch") == standard / 2
        assert (
            BOOK.worst(model, input_tokens=MILLION, output_tokens=0, tier="batch") == standard / 2
        )


def _listed(*prices: ConditionalPrice, variants: list[PriceVariant] | None = None) -> Listed:
    return Listed(
        model=ModelInfo(
            id="m", match=ClauseEquals("m"), prices=list(prices), price_variants=variants
        )
    )


def _at(
    price: str, constraint: StartDateConstraint | TimeOfDateConstraint | None = None
) -> ConditionalPrice:
    listed = ModelPrice(input_mtok=Decimal(price), output_mtok=Decimal(price))
    return ConditionalPrice(constraint=constraint, prices=listed)


def _possible(listed: Listed, now: datetime) -> set[Decimal | None]:
    return {None if r is None else r.cost(Usage(input=MILLION)) for r in listed.possible(now)}


def test_the_worst_case_holds_when_a_price_starts_while_a_call_is_under_way() -> None:
    listed = _listed(
        _at("1"), _at("2", StartDateConstraint(start_date=datetime(2026, 6, 1, tzinfo=UTC).date()))
    )
    assert _possible(listed, datetime(2026, 5, 1, tzinfo=UTC)) == {Decimal(1)}
    assert _possible(listed, datetime(2026, 5, 31, 23, tzinfo=UTC)) == {Decimal(1), Decimal(2)}
    assert _possible(listed, datetime(2026, 6, 1, tzinfo=UTC)) == {Decimal(2)}


def test_the_worst_case_holds_when_the_dear_hours_begin() -> None:
    dear = TimeOfDateConstraint(
        start_time=datetime(2026, 1, 1, 1, tzinfo=UTC).timetz(),
        end_time=datetime(2026, 1, 1, 4, tzinfo=UTC).timetz(),
    )
    listed = _listed(_at("1"), _at("3", dear))
    for hour in (0, 2, 12):
        now = datetime(2026, 1, 1, hour, tzinfo=UTC)
        assert _possible(listed, now) == {Decimal(1), Decimal(3)}
    half = PriceVariant(
        when={"processing": "batch"}, prices=ModelPrice(input_mtok=Decimal("1.5")), constraint=dear
    )
    batch = _listed(_at("1"), variants=[half]).possible(
        datetime(2026, 1, 1, 12, tzinfo=UTC), "batch"
    )
    assert None in batch  # outside of its hours a batch has no price
    assert len(batch) == 2
    assert _possible(_listed(_at("5", dear)), datetime(2026, 1, 1, tzinfo=UTC)) == {Decimal(5)}
    assert _listed().possible(datetime(2026, 1, 1, tzinfo=UTC)) == (None,)


@given(
    st.deferred(lambda: st.sampled_from(priced("TimeOfDate"))),
    st.datetimes(datetime(2026, 1, 1), datetime(2028, 1, 1)),
    usages,
)
def test_the_worst_case_of_now_bounds_the_cost_an_hour_later(
    model: str, now: datetime, usage: Usage
) -> None:
    then = now.replace(tzinfo=UTC)
    worst = PriceBook(clock=lambda: then).worst(
        model, input_tokens=usage.total_input, output_tokens=usage.total_output
    )
    later = then.replace(hour=(then.hour + 1) % 24)
    cost = PriceBook(clock=lambda: later).cost(model, usage)
    assert cost is not None
    assert worst >= cost


def test_a_price_by_the_request_is_part_of_the_worst_case() -> None:
    by_request = priced("requests_kcount")
    assert by_request
    for model in by_request:
        cost = BOOK.cost(model, Usage())
        assert cost is not None
        assert cost > 0
        assert BOOK.worst(model, input_tokens=0, output_tokens=0) == cost


@pytest.mark.parametrize(
    "model",
    [
        # matched by the beginning of another model's name
        "anthropic:claude-3-haiku-evil",
        "openai:gpt-5-nano-zzz",
        "anthropic:claude-sonnet-4-5-search",
        "openai:ft:gpt-4o-mini-2024-07-18",
        "anthropic:my-claude-v2",
        # each search has a fee that the table does not know
        "openai:gpt-4o-mini-search-preview",
        "openai:gpt-4o-search-preview-2025-03-11",
        "openai:gpt-5-search-api",
        "openai:o4-mini-deep-research",
        "openai:computer-use-preview",
    ],
)
def test_what_is_reserved_needs_an_exact_id_and_no_fee(model: str) -> None:
    with pytest.raises(UnpricedModel):
        BOOK.worst(model, input_tokens=1, output_tokens=1)


@pytest.mark.parametrize(
    "model",
    [
        "anthropic:claude-3-haiku-20240307",
        "anthropic:claude-3-5-haiku-latest",
        "anthropic:claude-sonnet-4-20250514",
        "anthropic:claude-sonnet-4-5",
        "anthropic:claude-sonnet-4-5-20250929",
        "anthropic:claude-haiku-4-5@20251001",
        "anthropic:claude-opus-5-20260101",
        "openai:gpt-4o-mini-2024-07-18",
        "openai:gpt-5-nano-2025-08-07",
        "openai:ft:gpt-4o-mini-2024-07-18:acme:answers:abc123",
        "openai:ft:gpt-4o-mini-2024-07-18:acme::abc123",
    ],
)
def test_releases_and_own_models_of_a_base_have_a_bound(model: str) -> None:
    assert BOOK.worst(model, input_tokens=1_000, output_tokens=1_000) > 0


def test_a_known_bill_has_a_cost_also_where_nothing_could_be_reserved() -> None:
    usage = Usage(input=1_000, output=10)
    assert BOOK.cost("openai:gpt-4o-mini-search-preview", usage) is not None


def test_every_listed_id_without_fees_has_a_bound_if_it_has_a_price() -> None:
    fees = re.compile("search|deep-research|computer-use")
    ours = [n for n in priced() if n.startswith(("openai:", "anthropic:")) and not fees.search(n)]
    assert len(ours) > 50
    for name in ours:
        assert BOOK.worst(name, input_tokens=1, output_tokens=1) > 0, name


@pytest.mark.parametrize(
    ("model", "same", "factor"),
    [
        ("azure:gpt-6-luna", "openai:gpt-6-luna", "1.2"),
        ("azure:gpt-4o-mini-2024-07-18", "openai:gpt-4o-mini", "1.2"),
        ("bedrock:global.anthropic.claude-haiku-5-5", "anthropic:claude-haiku-5-5", "1"),
        ("bedrock:eu.anthropic.claude-haiku-5-5", "anthropic:claude-haiku-5-5", "1.1"),
        (
            "bedrock:us.anthropic.claude-haiku-4-5-20251001-v1:0",
            "anthropic:claude-haiku-4-5",
            "1.1",
        ),
        ("vertex:claude-opus-5-5", "anthropic:claude-opus-5-5", "1.1"),
        ("vertex:claude-haiku-4-5@20251001", "anthropic:claude-haiku-4-5", "1.1"),
    ],
)
def test_a_cloud_s_price_is_its_maker_s_and_what_regions_add(
    model: str, same: str, factor: str
) -> None:
    usage = Usage(input=50_000, output=10_000)
    theirs = price(same, usage)
    assert theirs is not None
    assert price(model, usage) == theirs * Decimal(factor)
    assert BOOK.worst(model, input_tokens=50_000, output_tokens=10_000) >= theirs * Decimal(factor)


@pytest.mark.parametrize("model", ["azure:our-deployment", "bedrock:arn:aws:bedrock:x", "vertex:m"])
def test_a_cloud_s_unknown_model_has_no_price(model: str) -> None:
    with pytest.raises(UnpricedModel):
        BOOK.check(model)


def test_cache_writes_that_azure_may_bill_are_in_the_worst_case() -> None:
    declined = BOOK.worst("openai:gpt-6-luna", input_tokens=1_000, output_tokens=0)
    azure = BOOK.worst("azure:gpt-6-luna", input_tokens=1_000, output_tokens=0)
    assert azure == declined * Decimal("1.2") * Decimal("1.25")
