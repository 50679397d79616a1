"""The configured prices of models."""

from __future__ import annotations

from pathlib import Path

from orchestrator.settings import Settings
from posology.budget.prices.book import PriceBook, load


def price_book(settings: Settings) -> PriceBook:
    """Load the packaged prices, overridden by the user's own.

    Raises:
        BadPrices: the user's file cannot be used.
    """
    return load(Path(settings.prices) if settings.prices else None)
