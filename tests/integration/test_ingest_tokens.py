"""Corpus files into an index that keeps the codes of tokens, and back as retrievals."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from orchestrator.ingest.ingest import run_ingest
from orchestrator.ingest.writer import Target
from orchestrator.settings import Settings
from posology.errors import IndexMismatch
from posology.index.build.ingest import ingest
from posology.index.build.report import IngestProgress
from posology.index.build.rows import RowSource
from posology.index.search.retriever import Retriever
from posology.index.store import Index
from posology.query import make_query
from posology.testing.models.codec import TruncatingCodec
from posology.testing.models.embedder import HashEmbedder
from posology.text.sentences import split
from posology.types import TokenCodes
from strategies.compression.late.codec import LateCodec

pytestmark = pytest.mark.anyio

DRUGS = ("aspirin", "statins", "insulin", "warfarin", "metformin")


def write(path: Path, *numbers: int) -> Path:
    lines = (
        {"id": f"n:{i}", "title": f"On {DRUGS[i % 5]}", "text": f"It helped {i} patients. " * i}
        for i in numbers
    )
    path.write_text("\n".join(map(json.dumps, lines)) + "\n")
    return path


@pytest.fixture
def embedder() -> HashEmbedder:
    return HashEmbedder(dim=64)


@pytest.fixture
def codec(embedder: HashEmbedder) -> TruncatingCodec:
    return TruncatingCodec(embedder.name, width=12)


@pytest.fixture
def index(tmp_path: Path, embedder: HashEmbedder, codec: TruncatingCodec) -> Index:
    return Index.create(tmp_path / "index", embedder.name, embedder.dim, codec=codec)


def codes(index: Index, *numbers: int) -> list[tuple[list[int], bytes] | None]:
    def plain(tokens: TokenCodes | None) -> tuple[list[int], bytes] | None:
        return None if tokens is None else (tokens.counts.tolist(), tokens.codes.tobytes())

    return [plain(one.tokens) for one in index.fetch([f"n:{i}" for i in numbers])]


async def test_a_retrieval_holds_the_codes_and_the_questions_tokens(
    tmp_path: Path, index: Index, embedder: HashEmbedder, codec: TruncatingCodec
) -> None:
    ingest(
        [write(tmp_path / "a.jsonl", *range(1, 30))],
        index,
        RowSource(embedder=embedder, codec=codec),
    )
    question = make_query("Did aspirin help 5 patients?")
    found = await Retriever(index, embedder).retrieve(question, 6)
    assert found.codec == codec.name
    asked = embedder.encode_query(question.text).tokens
    assert found.query_tokens is not None
    assert asked is not None
    assert found.query_tokens.ids.tolist() == asked.ids.tolist()
    assert len(found.passages) == 6
    for one in found.passages:
        passage = one.passage
        (expected,) = embedder.embed_passages([passage], [split(passage.text)], codec)
        assert one.tokens is not None
        assert expected.tokens is not None
        np.testing.assert_array_equal(one.tokens.codes, expected.tokens.codes)
        np.testing.assert_array_equal(one.tokens.counts, expected.tokens.counts)
        assert len(one.tokens.counts) == 1 + len(one.sentences)


async def test_an_index_without_codes_says_so(tmp_path: Path, embedder: HashEmbedder) -> None:
    index = Index.create(tmp_path / "plain", embedder.name, embedder.dim)
    ingest([write(tmp_path / "a.jsonl", 1, 2)], index, RowSource(embedder=embedder))
    found = await Retriever(index, embedder).retrieve(make_query("aspirin"), 2)
    assert found.codec is None
    assert found.query_tokens is not None
    assert [one.tokens for one in found.passages] == [None, None]


def test_a_codec_for_another_embedder_is_left_out(tmp_path: Path, embedder: HashEmbedder) -> None:
    codec = TruncatingCodec("another")
    index = Index.open_or_create(tmp_path / "plain", embedder.name, embedder.dim, codec=codec)
    report = ingest(
        [write(tmp_path / "a.jsonl", 1, 2)], index, RowSource(embedder=embedder, codec=codec)
    )
    assert report.written == 2
    assert codec.calls == []
    assert index.info().codec is None
    assert codes(index, 1, 2) == [None, None]


def test_another_codec_or_none_is_refused_before_anything_is_written(
    tmp_path: Path, index: Index, embedder: HashEmbedder
) -> None:
    path = write(tmp_path / "a.jsonl", 1)
    for other in (TruncatingCodec(embedder.name, width=3), None):
        with pytest.raises(IndexMismatch, match="truncating-12"):
            ingest([path], index, RowSource(embedder=embedder, codec=other))
    assert index.count() == 0


def test_an_ingest_that_was_broken_off_leaves_the_same_codes(
    tmp_path: Path, index: Index, embedder: HashEmbedder, codec: TruncatingCodec
) -> None:
    paths = [write(tmp_path / "a.jsonl", *range(1, 9)), write(tmp_path / "b.jsonl", *range(9, 20))]
    whole = Index.create(tmp_path / "whole", embedder.name, embedder.dim, codec=codec)
    ingest(paths, whole, RowSource(embedder=embedder, codec=codec))

    def stop(_: IngestProgress) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        ingest(paths, index, RowSource(embedder=embedder, codec=codec, batch=4), progress=stop)
    ingest(paths, index, RowSource(embedder=embedder, codec=codec, batch=4))
    index.compact()
    assert codes(index, *range(1, 20)) == codes(whole, *range(1, 20))
    counts = [0 if one is None else sum(one[0]) for one in codes(index, *range(1, 20))]
    # two words of the title, and four a sentence
    assert counts == [2 + 4 * i for i in range(1, 20)]


def test_a_changed_passage_has_new_codes(
    tmp_path: Path, index: Index, embedder: HashEmbedder, codec: TruncatingCodec
) -> None:
    ingest([write(tmp_path / "a.jsonl", 1)], index, RowSource(embedder=embedder, codec=codec))
    before = codes(index, 1)
    changed = {"id": "n:1", "title": "", "text": "Nothing helped."}
    (tmp_path / "b.jsonl").write_text(json.dumps(changed) + "\n")
    ingest([tmp_path / "b.jsonl"], index, RowSource(embedder=embedder, codec=codec))
    assert before != codes(index, 1)
    (after,) = codes(index, 1)
    assert after is not None
    assert after[0] == [0, 2]


def test_given_vectors_leave_the_codes_as_they_are(
    tmp_path: Path, index: Index, embedder: HashEmbedder, codec: TruncatingCodec
) -> None:
    path = write(tmp_path / "a.jsonl", 3)
    vector = np.zeros((1, 64), dtype=np.float32)
    vector[0, 7] = 1.0
    np.save(tmp_path / "v.npy", vector)
    plain = Index.create(tmp_path / "plain", embedder.name, embedder.dim, codec=codec)
    ingest([path], plain, RowSource(embedder=embedder, codec=codec))
    ingest([path], index, RowSource(embedder=embedder, codec=codec), vectors=tmp_path / "v.npy")
    assert index.fetch(["n:3"])[0].vector.tolist() == vector[0].tolist()
    assert codes(index, 3) == codes(plain, 3) != [None]


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_the_command_keeps_codes_where_the_codec_is_the_embedders(
    tmp_path: Path, tiny_encoder: Path
) -> None:
    path = write(tmp_path / "a.jsonl", 1, 2)
    coded, plain, tiny = (str(tmp_path / name) for name in ("coded", "plain", "tiny"))
    run_ingest([path], Settings(), Target(place=coded))
    index, codec = Index.open(coded), LateCodec.packaged()
    assert (index.meta.codec, index.meta.codec_width) == (codec.name, codec.width)
    (found,) = index.fetch(["n:2"])
    assert found.tokens is not None
    assert found.tokens.codes.shape == (found.tokens.counts.sum(), codec.width)
    assert (found.tokens.counts > 0).all()
    assert len(found.tokens.counts) == 3
    without = Settings(POSOLOGY_TOKEN_CODES=False)
    run_ingest([path], without, Target(place=plain))
    run_ingest([path], Settings(), Target(place=tiny, embedder=str(tiny_encoder)))
    assert [Index.open(place).info().codec for place in (plain, tiny)] == [None, None]
    with pytest.raises(IndexMismatch, match=codec.name):
        run_ingest([path], without, Target(place=coded))
    with pytest.raises(IndexMismatch, match=codec.name):
        run_ingest([path], Settings(), Target(place=plain))
