"""What training commands keep between runs."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import closing
from pathlib import Path

import anyio
import numpy as np
import pytest

from posology.index.schema import quantise
from posology.testing import HashEmbedder, TruncatingCodec
from posology.text.sentences import split
from posology.types import Encoded, Passage, Sentence
from training.kept import BATCH, Kept, Stored, kept_json, key_of

PASSAGES = [
    Passage(id=f"p:{n}", title=f"Trial {n}", text=f"The drug helped {n}. It was cheap.")
    for n in range(BATCH + 3)
]
SENTENCES = [split(one.text) for one in PASSAGES]


class Failing(HashEmbedder):
    """Fails at its second batch."""

    def embed_passages(
        self,
        passages: Sequence[Passage],
        sentences: Sequence[Sequence[Sentence]],
        codec: object = None,
    ) -> list[Encoded]:
        if self.embedded:
            raise RuntimeError
        return super().embed_passages(passages, sentences, codec)  # type: ignore[arg-type]


def test_a_passage_is_encoded_once_in_all_runs(tmp_path: Path) -> None:
    inner = HashEmbedder()
    codec = TruncatingCodec(inner.name)
    with closing(Kept(tmp_path / "kept")) as kept:
        first = Stored(inner, kept).embed_passages(PASSAGES, SENTENCES, codec)
    with closing(Kept(tmp_path / "kept")) as kept:
        again = Stored(inner, kept).embed_passages(
            PASSAGES[::-1] + PASSAGES[:1], SENTENCES[::-1] + SENTENCES[:1], codec
        )
    assert inner.embedded == len(PASSAGES)
    direct = HashEmbedder().embed_passages(PASSAGES, SENTENCES, codec)
    for one, other, whole in zip(first, again[-2::-1], direct, strict=True):
        assert one.tokens is not None
        assert other.tokens is not None
        assert whole.tokens is not None
        np.testing.assert_array_equal(one.vector, whole.vector)
        np.testing.assert_array_equal(one.tokens.codes, whole.tokens.codes)
        np.testing.assert_array_equal(other.tokens.codes, whole.tokens.codes)
        np.testing.assert_array_equal(other.tokens.counts, whole.tokens.counts)
        # as an index keeps them
        expected = quantise(whole.sentence_vectors)
        np.testing.assert_array_equal(quantise(one.sentence_vectors), expected)
        np.testing.assert_array_equal(quantise(other.sentence_vectors), expected)


def test_another_codec_or_none_is_another_encoding(tmp_path: Path) -> None:
    inner = HashEmbedder()
    with closing(Kept(tmp_path / "kept")) as kept:
        stored = Stored(inner, kept)
        (without,) = stored.embed_passages(PASSAGES[:1], SENTENCES[:1])
        (with_codes,) = stored.embed_passages(
            PASSAGES[:1], SENTENCES[:1], TruncatingCodec(inner.name, width=4)
        )
    assert without.tokens is None
    assert with_codes.tokens is not None
    assert inner.embedded == 2


def test_an_interrupted_run_keeps_the_batches_that_were_done(tmp_path: Path) -> None:
    with closing(Kept(tmp_path / "kept")) as kept, pytest.raises(RuntimeError):
        Stored(Failing(), kept).embed_passages(PASSAGES, SENTENCES)
    inner = HashEmbedder()
    with closing(Kept(tmp_path / "kept")) as kept:
        Stored(inner, kept).embed_passages(PASSAGES, SENTENCES)
    assert inner.embedded == len(PASSAGES) - BATCH


def test_a_value_is_made_once(tmp_path: Path) -> None:
    made = 0

    async def make() -> dict[str, int]:
        nonlocal made
        made += 1
        return {"made": made}

    async def ask(what: object) -> object:
        with closing(Kept(tmp_path / "kept")) as kept:
            return await kept_json(kept, key_of(what), make)

    assert [anyio.run(ask, what) for what in ("a", "a", "b", "a")] == [
        {"made": n} for n in (1, 1, 2, 1)
    ]
