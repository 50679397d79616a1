"""A quick ingest: what can be found at once, what questions get of it, and how the next ingest completes it."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from posology.index.build.ingest import ingest
from posology.index.build.report import IngestProgress
from posology.index.build.rows import RowSource
from posology.index.schema import quantise
from posology.index.search.retriever import Retriever
from posology.index.store import Index
from posology.query import make_query
from posology.testing.models.codec import TruncatingCodec
from posology.testing.models.embedder import HashEmbedder
from posology.text.sentences import split
from posology.types import Encoded, Passage

pytestmark = pytest.mark.anyio

QUERY = make_query("Does aspirin prevent stroke?")


@pytest.fixture
def files(tmp_path: Path) -> list[Path]:
    paths = []
    for name in "ab":
        rows = (
            {"id": f"{name}:{i}", "text": f"Aspirin was given to {i}. Stroke was rare in {name}."}
            for i in range(6)
        )
        paths.append(tmp_path / f"{name}.jsonl")
        paths[-1].write_text("".join(json.dumps(row) + "\n" for row in rows))
    return paths


@pytest.fixture
def codec(embedder: HashEmbedder) -> TruncatingCodec:
    return TruncatingCodec(embedder.name, width=4)


@pytest.fixture
def coded(tmp_path: Path, embedder: HashEmbedder, codec: TruncatingCodec) -> Index:
    return Index.create(tmp_path / "coded", embedder.name, embedder.dim, codec=codec)


@pytest.fixture
def source(embedder: HashEmbedder, codec: TruncatingCodec) -> RowSource:
    return RowSource(embedder=embedder, codec=codec, batch=4)


def whole(embedder: HashEmbedder, codec: TruncatingCodec, passage: Passage) -> Encoded:
    return embedder.embed_passages([passage], [split(passage.text)], codec)[0]


async def test_passages_are_found_and_completed_for_the_question(
    files: list[Path],
    coded: Index,
    source: RowSource,
    embedder: HashEmbedder,
    codec: TruncatingCodec,
) -> None:
    ingest(files, coded, source, quick=True)
    assert (coded.count(), coded.info().incomplete) == (12, 12)
    stored = coded.fetch(["a:1"])[0]
    assert (len(stored.sentences), stored.sentence_vectors.shape, stored.tokens) == (
        2,
        (0, 64),
        None,
    )
    retriever = Retriever(coded, embedder, codec=lambda: codec)
    found = await retriever.retrieve(QUERY, 3)
    for one in found.passages:
        expected = whole(embedder, codec, one.passage)
        assert one.tokens is not None
        assert expected.tokens is not None
        np.testing.assert_array_equal(one.tokens.codes, expected.tokens.codes)
        np.testing.assert_array_equal(one.sentence_vectors, quantise(expected.sentence_vectors))
    # the same passages are not encoded again for the next question
    before = embedder.embedded
    again = await retriever.retrieve(QUERY, 3)
    assert embedder.embedded == before
    np.testing.assert_array_equal(
        again.passages[0].sentence_vectors, found.passages[0].sentence_vectors
    )


async def test_the_next_ingest_completes_the_rows_in_place(
    files: list[Path], tmp_path: Path, coded: Index, source: RowSource, codec: TruncatingCodec
) -> None:
    embedder = HashEmbedder(dim=64)
    ingest(files, coded, source, quick=True)
    report = ingest(files, coded, source)
    assert (report.written, coded.count(), coded.info().incomplete) == (12, 12, 0)
    plain = Index.create(tmp_path / "plain", embedder.name, embedder.dim, codec=codec)
    ingest(files, plain, source)
    assert coded.digests(coded.ids()) == plain.digests(plain.ids())
    for one, other in zip(coded.fetch(coded.ids()), plain.fetch(coded.ids()), strict=True):
        np.testing.assert_array_equal(one.sentence_vectors, other.sentence_vectors)
        assert one.tokens is not None
        assert other.tokens is not None
        np.testing.assert_array_equal(one.tokens.codes, other.tokens.codes)
    assert ingest(files, coded, source).written == 0


def test_a_quick_ingest_keeps_rows_that_are_complete(
    files: list[Path], coded: Index, source: RowSource
) -> None:
    ingest(files[:1], coded, source)
    report = ingest(files, coded, source, quick=True)
    assert (report.written, coded.info().incomplete) == (6, 6)
    assert len(coded.fetch(["a:1"])[0].sentence_vectors) == 2


class Killed(Exception):
    """The end of a process."""


@pytest.mark.parametrize("quick", [True, False])
def test_an_interrupted_run_is_completed_by_the_next(
    files: list[Path], coded: Index, source: RowSource, embedder: HashEmbedder, *, quick: bool
) -> None:
    if not quick:
        ingest(files, coded, source, quick=True)

    def kill(now: IngestProgress) -> None:
        if now.written >= 4:
            raise Killed

    with pytest.raises(Killed):
        ingest(files, coded, source, progress=kill, quick=quick)
    before = embedder.embedded
    ingest(files, coded, source, quick=True)
    # what was encoded quickly, or completely, is not encoded quickly again
    assert embedder.embedded - before == (8 if quick else 0)
    ingest(files, coded, source)
    assert (coded.count(), coded.info().incomplete) == (12, 0)
    assert all(len(one.sentence_vectors) == 2 for one in coded.fetch(coded.ids()))
