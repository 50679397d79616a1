"""An empty index, and an empty folder of files."""

from __future__ import annotations

from pathlib import Path

import pytest

from posology.index.store import Index
from posology.testing.models.embedder import HashEmbedder


@pytest.fixture
def embedder() -> HashEmbedder:
    return HashEmbedder(dim=16)


@pytest.fixture
def index(tmp_path: Path, embedder: HashEmbedder) -> Index:
    return Index.create(tmp_path / "index", embedder.name, embedder.dim)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    made = tmp_path / "pubmed"
    made.mkdir()
    return made
