from __future__ import annotations

from collections.abc import Callable, Iterable
from pathlib import Path

import pytest

from posology.index.schema import Row, digest
from posology.index.store import Index
from posology.testing.models.embedder import HashEmbedder
from posology.text.sentences import split
from posology.types import Passage

MakeRows = Callable[[Iterable[Passage]], list[Row]]


@pytest.fixture
def embedder() -> HashEmbedder:
    return HashEmbedder(dim=64)


@pytest.fixture
def index(tmp_path: Path, embedder: HashEmbedder) -> Index:
    return Index.create(tmp_path / "index", embedder.name, embedder.dim)


@pytest.fixture
def make_rows(embedder: HashEmbedder) -> MakeRows:
    def make(passages: Iterable[Passage]) -> list[Row]:
        rows = []
        for passage in passages:
            sentences = split(passage.text)
            (encoded,) = embedder.embed_passages([passage], [sentences])
            rows.append(
                Row(
                    passage=passage,
                    sentences=sentences,
                    encoded=encoded,
                    digest=digest(passage),
                )
            )
        return rows

    return make
