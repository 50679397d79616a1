"""What models cost, as the settings say."""

from __future__ import annotations

from pathlib import Path

from orchestrator.settings import Settings
from posology.budget.prices.book import PriceBook, load


def price_book(settings: Settings) -> PriceBook:
    """The packaged prices, and the user's own over them.

    Raises:
        BadPrices: the user's file cannot be used.
    """
    return load(Path(settings.prices) if settings.prices else None)
