from __future__ import annotations

from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any

import lancedb
import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from posology.errors import IndexMismatch
from posology.index.schema import STORED, TABLE, Meta, Row, arrow_schema, from_arrow, to_arrow
from posology.index.store import Index
from posology.index.tokens import decode, encode, fitting
from posology.testing.models.codec import TruncatingCodec
from posology.testing.models.embedder import HashEmbedder
from posology.text.sentences import split
from posology.types import Passage, TokenCodes, TokenVectors

if TYPE_CHECKING:
    from tests.unit.index.conftest import MakeRows

EMBEDDER = "hash-16"
#: counts of the heading and of each sentence, and bytes a token
CODES = st.tuples(st.lists(st.integers(0, 40), min_size=1, max_size=8), st.integers(1, 64))


def make(counts: list[int], width: int, seed: int = 0) -> TokenCodes:
    codes = np.random.default_rng(seed).integers(0, 256, (sum(counts), width), dtype=np.uint8)
    return TokenCodes(codes=codes, counts=np.array(counts, dtype=np.int32))


def same(one: TokenCodes, other: TokenCodes) -> bool:
    return all(
        np.array_equal(getattr(one, name), getattr(other, name))
        and getattr(one, name).dtype == getattr(other, name).dtype
        for name in TokenCodes.__dataclass_fields__
    )


@given(st.lists(st.none() | CODES, max_size=5))
def test_codes_come_back_as_they_went_in(drawn: list[tuple[list[int], int] | None]) -> None:
    codes = [None if one is None else make(*one, seed=i) for i, one in enumerate(drawn)]
    blobs = [None if one is None else encode(one) for one in codes]
    for one, found in zip(codes, decode(pa.array(blobs, pa.large_binary())), strict=True):
        assert (one is None) == (found is None)
        if one is not None and found is not None:
            assert same(one, found)


def test_a_sentence_without_end_keeps_its_count() -> None:
    codes = make([0, 70_000, 3], 1)
    blob = encode(codes)
    assert len(blob) == 8 + 3 * 4 + 70_003
    (found,) = decode(pa.array([blob], pa.large_binary()))
    assert found is not None
    assert found.counts.tolist() == [0, 70_000, 3]


def test_the_codes_are_a_view_of_the_column() -> None:
    column = pa.array([encode(make([2, 5], 16)), None, encode(make([1], 16))], pa.large_binary())
    start = column.buffers()[2].address
    for found in decode(column):
        if found is not None:
            at = found.codes.__array_interface__["data"][0]
            assert start <= at < start + column.buffers()[2].size
            assert not found.codes.flags.writeable


@pytest.mark.parametrize("counts", [[1, 2], [4, -1], [0]])
def test_counts_of_other_codes_are_refused(counts: list[int]) -> None:
    codes = TokenCodes(codes=np.zeros((4, 2), np.uint8), counts=np.array(counts, dtype=np.int32))
    with pytest.raises(ValueError, match="counts of"):
        encode(codes)


@given(CODES, st.data())
def test_codes_that_are_cut_off_are_refused(
    drawn: tuple[list[int], int], data: st.DataObject
) -> None:
    whole = encode(make(*drawn))
    cut = data.draw(st.integers(0, len(whole) - 1))
    with pytest.raises(ValueError, match="cut off"):
        decode(pa.array([whole[:cut]], pa.large_binary()))
    with pytest.raises(ValueError, match="cut off"):
        decode(pa.array([whole + b"0"], pa.large_binary()))


def test_a_table_of_rows_with_and_without_codes_is_read() -> None:
    passages = [Passage(id=str(i), text="Aspirin helps. It is cheap.") for i in range(3)]
    sentences = [split(p.text) for p in passages]
    embedder, codec = HashEmbedder(dim=16), TruncatingCodec(EMBEDDER, width=4)
    rows = [
        Row(
            passage=p,
            sentences=s,
            encoded=embedder.embed_passages([p], [s], codec if i != 1 else None)[0],
            digest="",
        )
        for i, (p, s) in enumerate(zip(passages, sentences, strict=True))
    ]
    meta = Meta(
        format=3, embedder=EMBEDDER, dim=16, splitter=1, created="", codec=codec.name, codec_width=4
    )
    found = from_arrow(to_arrow(rows, arrow_schema(meta)).select(list(STORED)))
    assert found[1].tokens is None
    for i in (0, 2):
        one, other = rows[i].encoded.tokens, found[i].tokens
        assert one is not None
        assert other is not None
        assert same(one, other)
        assert other.counts.tolist() == [0, 2, 3]


WORDS = st.text(st.sampled_from("ab é,.\n"), max_size=40)


@given(WORDS, WORDS)
def test_the_fake_embedder_counts_every_word_once(title: str, text: str) -> None:
    embedder, codec = HashEmbedder(dim=16), TruncatingCodec(EMBEDDER, width=16)
    spans = split(text)
    (encoded,) = embedder.embed_passages([Passage(id="p", title=title, text=text)], [spans], codec)
    assert encoded.tokens is not None
    bounds = np.cumsum([0, *encoded.tokens.counts])
    assert bounds[-1] == len(encoded.tokens.codes)
    assert len(encoded.tokens.counts) == 1 + len(spans)
    heading, *parts = (encoded.tokens.codes[a:b] for a, b in pairwise(bounds))
    for words, codes in [(title, heading)] + [
        (span.of(text), part) for span, part in zip(spans, parts, strict=True)
    ]:
        tokens = embedder.encode_query(words).tokens
        assert tokens is not None
        assert codes.tolist() == codec(tokens).tolist()


def test_the_fake_codec_pads_what_a_vector_lacks() -> None:
    none = np.zeros(2, dtype=np.int64)
    vectors = np.array([[-1.0, 1.0], [0.2, 0.0]], dtype=np.float32)
    codes = TruncatingCodec("e", width=3)(
        TokenVectors(vectors=vectors, ids=none, starts=none, ends=none)
    )
    assert codes.tolist() == [[0, 255, 128], [153, 128, 128]]


def test_only_the_embedders_own_codec_fits() -> None:
    codec = TruncatingCodec(EMBEDDER)
    assert fitting(codec, EMBEDDER) is codec
    assert fitting(codec, "hash-32") is None
    assert fitting(None, EMBEDDER) is None


def test_an_index_says_which_codec_made_its_codes(
    tmp_path: Path, embedder: HashEmbedder, make_rows: MakeRows
) -> None:
    codec = TruncatingCodec(embedder.name, width=6)
    Index.create(tmp_path / "index", embedder.name, embedder.dim, codec=codec)
    index = Index.open(tmp_path / "index")
    assert (index.meta.codec, index.meta.codec_width) == ("truncating-6", 6)
    assert index.info().codec == "truncating-6"
    index.upsert(make_rows([Passage(id="p", text="Not coded.")]))
    assert index.fetch(["p"])[0].tokens is None
    index.require_codec(codec)
    for other, name in ((TruncatingCodec(embedder.name, width=7), "truncating-7"), (None, "noth")):
        with pytest.raises(IndexMismatch, match=f"truncating-6.*{name}"):
            index.require_codec(other)


def test_an_index_made_without_a_codec_refuses_one(index: Index, embedder: HashEmbedder) -> None:
    assert (index.meta.codec, index.meta.codec_width, index.info().codec) == (None, None, None)
    index.require_codec(None)
    index.require_codec(TruncatingCodec("another"))
    codec = TruncatingCodec(embedder.name)
    with pytest.raises(IndexMismatch, match="truncating-8"):
        Index.open_or_create(index.uri, embedder.name, embedder.dim, codec=codec)


def test_an_index_of_the_format_before_codes_is_refused(tmp_path: Path) -> None:
    meta: dict[str, Any] = {"format": 2, "embedder": "e", "dim": 4, "splitter": 1, "created": ""}
    schema = arrow_schema(Meta(**meta))
    old = schema.remove(schema.get_field_index("tokens"))
    lancedb.connect(tmp_path).create_table(TABLE, schema=old)
    with pytest.raises(IndexMismatch, match="another version"):
        Index.open(tmp_path)
    with pytest.raises(IndexMismatch, match="another version"):
        Index.open_or_create(tmp_path, "e", 4)


def test_a_column_in_pieces_is_read_like_a_whole_one() -> None:
    blobs = [encode(make([1, 2], 3)), None, encode(make([4], 3)), encode(make([0, 0], 3))]
    whole = pa.array(blobs, pa.large_binary())
    pieces = pa.chunked_array([whole[:1], whole[1:1], whole[1:]])
    for found, blob in zip(decode(pieces), blobs, strict=True):
        assert (found is None) == (blob is None)
        assert found is None or encode(found) == blob
    assert decode(pa.array([], pa.large_binary())) == []
    assert decode(pa.array([None], pa.large_binary())) == [None]
