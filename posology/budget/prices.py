"""Prices of models, from the table that the ``genai-prices`` package carries; no network."""

from __future__ import annotations

import functools
from decimal import Decimal
from importlib.metadata import version
from typing import TYPE_CHECKING

from posology.types import Usage

if TYPE_CHECKING:
    from genai_prices.types import ModelPrice

#: providers whose models run on this machine and are free by declaration
FREE_PROVIDERS = frozenset({"offline"})


def price(model: str, usage: Usage | None) -> Decimal | None:
    """What a usage costs.

    Reasoning is billed like output. Cache tokens of models without a price for them are billed
    like other input, which the table's own arithmetic does.

    Args:
        model: ``provider:name``.
        usage: of one call: prices may depend on the length of its input. ``None``: unknown, which
            only what is free by declaration has a price for.

    Returns:
        Dollars; ``None`` where the model, or its price for tokens of this kind, is unknown. A model
        that the table lists without a price is unknown, not free.
    """
    provider, _, name = model.partition(":")
    if provider in FREE_PROVIDERS:
        return Decimal(0)
    if usage is None:
        return None
    from genai_prices import Usage as Counted
    from genai_prices import calc_price

    try:
        found = calc_price(
            Counted(
                input_tokens=usage.total_input,
                cache_read_tokens=usage.cache_read,
                cache_write_tokens=usage.cache_write_5m + usage.cache_write_1h,
                cache_write_5m_tokens=usage.cache_write_5m,
                cache_write_1h_tokens=usage.cache_write_1h,
                output_tokens=usage.total_output,
                output_reasoning_tokens=usage.reasoning,
            ),
            name,
            provider_id=provider,
        )
    except (LookupError, ValueError):
        return None
    return found.total_price if _covers(found.model_price, usage) else None


def _covers(table: ModelPrice, usage: Usage) -> bool:
    """Whether both directions of the traffic have a price."""
    return bool(table.input_mtok) and (bool(table.output_mtok) or not usage.total_output)


@functools.cache
def prices_version() -> str:
    """Which table prices come from, e.g. ``genai-prices 0.2.3``."""
    return f"genai-prices {version('genai-prices')}"
