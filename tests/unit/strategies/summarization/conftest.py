from __future__ import annotations

from pathlib import Path

import pytest

from posology.testing.models.summarizer import save_tiny_summarizer
from strategies.compression.summarization.card import Card, write_card


@pytest.fixture(scope="session")
def tiny(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An mT5 of random weights, as it comes from the hub."""
    return save_tiny_summarizer(tmp_path_factory.mktemp("tiny-mt5"))


@pytest.fixture(scope="session")
def by_share(tmp_path_factory: pytest.TempPathFactory) -> dict[float, Path]:
    """One of different weights for each share."""
    made = {}
    for seed, share in enumerate((0.3, 0.5, 0.7)):
        folder = save_tiny_summarizer(tmp_path_factory.mktemp("tiny"), seed=seed)
        write_card(Card(share=share, tokens=64), folder)
        made[share] = folder
    return made
