from __future__ import annotations

import io
from typing import TYPE_CHECKING

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from posology.types import TokenVectors
from strategies.compression.late.codec import KEPT, LateCodec

if TYPE_CHECKING:
    from numpy.typing import NDArray

DIM, VOCABULARY = 256, 300


def unit(rows: NDArray[np.floating]) -> NDArray[np.float32]:
    found: NDArray[np.float32] = (rows / np.linalg.norm(rows, axis=1, keepdims=True)).astype(
        np.float32
    )
    return found


def make_codec(name: str = "late-test") -> LateCodec:
    rng = np.random.default_rng(1)
    rotation = np.linalg.qr(rng.normal(size=(DIM, DIM)))[0].astype(np.float32)
    return LateCodec(
        name=name,
        embedder="test",
        rotation=rotation,
        centres=rng.integers(-20, 20, (VOCABULARY, DIM)).astype(np.int8),
        scales=np.full(VOCABULARY, 0.0005, np.float32),
        deviations=np.full(KEPT, 1 / np.sqrt(DIM), np.float32),
    )


def tokens(n: int, seed: int = 0) -> TokenVectors:
    rng = np.random.default_rng(seed)
    ids = rng.integers(0, VOCABULARY, n)
    places = np.arange(n)
    return TokenVectors(
        vectors=unit(rng.normal(size=(n, DIM))), ids=ids, starts=places, ends=places
    )


def test_the_packaged_one_takes_64_bytes_a_token_of_the_default_embedder() -> None:
    codec = LateCodec.packaged()
    assert codec is LateCodec.packaged()
    assert codec.width == 64
    assert codec.embedder.startswith("bert-384:")
    assert codec(tokens_of(codec, 5)).shape == (5, 64)


def tokens_of(codec: LateCodec, n: int) -> TokenVectors:
    dim = len(codec.rotation)
    vectors = unit(np.random.default_rng(0).normal(size=(n, dim)))
    return TokenVectors(vectors=vectors, ids=np.arange(n), starts=np.arange(n), ends=np.arange(n))


@given(n=st.integers(0, 40), seed=st.integers(0, 1_000))
def test_ids_come_back_as_they_were(n: int, seed: int) -> None:
    codec, given_ = make_codec(), tokens(n, seed)
    np.testing.assert_array_equal(codec.ids(codec(given_)), given_.ids)


@example(n=511, seed=3)
@example(n=512, seed=3)
@example(n=513, seed=3)
@example(n=1_300, seed=3)
@given(n=st.integers(0, 40), seed=st.integers(0, 1_000))
def test_products_are_those_with_the_decoded_vectors(n: int, seed: int) -> None:
    codec = make_codec()
    codes = codec(tokens(n, seed))
    directions = np.random.default_rng(seed).normal(size=(3, DIM)).astype(np.float32)
    expected = codec.vectors(codes) @ directions.T
    np.testing.assert_allclose(codec.products(codes, directions), expected, atol=1e-3)


def test_what_is_decoded_is_near_what_was_coded() -> None:
    codec, given_ = make_codec(), tokens(200)
    error = ((codec.vectors(codec(given_)) - given_.vectors) ** 2).sum() / (given_.vectors**2).sum()
    # two bits a direction leave 12 % of a normal distribution's variance
    assert error < 0.2


def test_the_nearest_level_is_taken() -> None:
    codec = make_codec()
    level = 0.4528 * codec.deviations[0]
    centre = codec.centres[1] * codec.scales[1]
    turned = np.zeros(DIM, np.float32)
    turned[0] = level
    vector = (centre + turned) @ codec.rotation.T
    one = TokenVectors(
        vectors=vector[None], ids=np.array([1]), starts=np.zeros(1, int), ends=np.ones(1, int)
    )
    back = codec.vectors(codec(one))[0] @ codec.rotation - centre
    assert back[0] == pytest.approx(level, abs=1e-5)


@pytest.mark.parametrize(
    ("length", "at", "said"),
    [
        (3, 0, "vectors of 3"),
        (DIM, -1, "another vocabulary"),
        (DIM, VOCABULARY, "another vocabulary"),
    ],
)
def test_tokens_of_another_model_are_refused(length: int, at: int, said: str) -> None:
    one = TokenVectors(
        vectors=unit(np.ones((1, length))),
        ids=np.array([at]),
        starts=np.zeros(1, int),
        ends=np.ones(1, int),
    )
    with pytest.raises(ValueError, match=said):
        make_codec()(one)


def test_a_file_of_another_format_is_refused() -> None:
    file = io.BytesIO()
    np.savez(file, format=0)
    with pytest.raises(ValueError, match="format 0"):
        LateCodec.read(file.getvalue())


def test_kept_directions_fill_the_bytes() -> None:
    assert KEPT == 248
