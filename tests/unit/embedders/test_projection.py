"""Sentences' vectors from one pass over their passage: layers of an export, the projection, and who uses it."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from posology.hub import digest, published
from posology.index.embedders.card import Loaded
from posology.index.embedders.codes import unit
from posology.index.embedders.models import load_best
from posology.index.embedders.options import Options
from posology.index.embedders.projection import BESIDE, Projection, features, packaged
from posology.index.embedders.sentence_transformer import SentenceTransformerEmbedder
from posology.text.sentences import split
from posology.types import Encoded, Passage

# importing torch alone can take a minute on a busy machine
pytestmark = pytest.mark.timeout(600)

DIM, LAYERS = 32, 3
SIZE = LAYERS * DIM + BESIDE
TEXTS = (
    "Aspirin lowered the risk of stroke. Not in adults! The dose of aspirin in adults was 75 mg.",
    "The dose.",
    "",
)
PASSAGES = [Passage(id=str(i), title="Stroke", text=text) for i, text in enumerate(TEXTS)]


@pytest.fixture(scope="module")
def loaded(tiny_encoder: Path, tmp_path_factory: pytest.TempPathFactory) -> Loaded:
    options = Options(backend="onnx", cache=tmp_path_factory.mktemp("exports"))
    return load_best(tiny_encoder, embedder="tiny", options=options)


def projection(loaded: Loaded, *, seed: int | None = 0) -> Projection:
    """Return a projection of random weights; without a seed, of none."""
    weights = np.zeros((SIZE, DIM), np.float32)
    if seed is not None:
        weights = np.random.default_rng(seed).normal(size=weights.shape).astype(np.float32)
    return Projection(embedder=loaded.card.name, layers=LAYERS, weights=weights)


def embed(embedder: SentenceTransformerEmbedder, passages: list[Passage]) -> list[Encoded]:
    return embedder.embed_passages(passages, [split(passage.text) for passage in passages])


def test_an_export_gives_what_goes_into_each_layer(loaded: Loaded) -> None:
    ids = np.array([[2, 4, 5, 3], [2, 6, 3, 0]])
    mask = np.array([[1, 1, 1, 1], [1, 1, 1, 0]])
    pooled, tokens = loaded.forward(ids, mask, 0)
    again, layers = loaded.forward.layers(ids, mask, 0)
    assert loaded.forward.depth == LAYERS - 1
    assert [one.shape for one in layers] == [(2, 4, DIM)] * LAYERS
    np.testing.assert_array_equal(layers[-1], tokens)
    np.testing.assert_array_equal(pooled, again)
    # the embeddings know nothing of the other tokens
    other = loaded.forward.layers(np.array([[2, 4, 6, 3]]), np.array([[1, 1, 1, 1]]), 0)[1]
    np.testing.assert_allclose(layers[0][0, 1], other[0][0, 1], atol=1e-6)
    assert np.abs(layers[1][0, 1] - other[1][0, 1]).max() > 1e-3


def test_without_weights_a_sentences_vector_is_its_mean_in_context(loaded: Loaded) -> None:
    projected = embed(
        SentenceTransformerEmbedder(loaded, projection=projection(loaded, seed=None)), PASSAGES
    )
    in_context = embed(SentenceTransformerEmbedder(loaded, alone=0.0), PASSAGES)
    for a, b in zip(projected, in_context, strict=True):
        np.testing.assert_allclose(a.sentence_vectors, b.sentence_vectors, atol=1e-5)
        np.testing.assert_allclose(a.vector, b.vector, atol=1e-6)


def test_a_passages_vectors_do_not_depend_on_its_batch(loaded: Loaded) -> None:
    embedder = SentenceTransformerEmbedder(loaded, projection=projection(loaded))
    together = embed(embedder, PASSAGES)
    for passage, one in zip(PASSAGES, together, strict=True):
        (alone,) = embed(embedder, [passage])
        assert alone.sentence_vectors.shape == (len(split(passage.text)), DIM)
        np.testing.assert_allclose(alone.sentence_vectors, one.sentence_vectors, atol=1e-4)
        np.testing.assert_allclose(np.linalg.norm(one.sentence_vectors, axis=1), 1, atol=1e-5)


def test_a_projection_of_another_model_is_not_used(loaded: Loaded) -> None:
    own = projection(loaded)
    expected = embed(SentenceTransformerEmbedder(loaded), PASSAGES)
    for other in (
        replace(own, embedder="another"),
        replace(own, layers=LAYERS + 1, weights=np.ones((SIZE + DIM, DIM), np.float32)),
    ):
        found = embed(SentenceTransformerEmbedder(loaded, projection=other), PASSAGES)
        for a, b in zip(expected, found, strict=True):
            np.testing.assert_array_equal(a.sentence_vectors, b.sentence_vectors)
    used = embed(SentenceTransformerEmbedder(loaded, projection=own), PASSAGES)
    assert np.abs(used[0].sentence_vectors - expected[0].sentence_vectors).max() > 0.1


def test_the_features_are_directions_and_the_length() -> None:
    sums = np.random.default_rng(1).normal(size=(2, LAYERS, DIM)).astype(np.float32)
    known = features(sums, np.array([1, 9]))
    assert known.shape == (2, SIZE)
    np.testing.assert_allclose(known[:, :DIM], unit(sums[:, 0]), atol=1e-6)
    np.testing.assert_allclose(known[1, -BESIDE:], [1 / 9, np.log(10), 1], atol=1e-6)
    np.testing.assert_allclose(features(3 * sums, np.array([1, 9])), known, atol=1e-5)


def test_a_sentence_without_tokens_has_no_direction(loaded: Loaded) -> None:
    sums = np.zeros((1, LAYERS, DIM), np.float32)
    assert not projection(loaded)(sums, np.array([0])).any()


def test_a_file_holds_the_weights_to_a_hundredth_of_the_largest(
    tmp_path: Path, loaded: Loaded
) -> None:
    own = projection(loaded)
    (tmp_path / "p.npz").write_bytes(own.dump())
    read = Projection.read(tmp_path / "p.npz")
    assert (read.embedder, read.layers) == (own.embedder, LAYERS)
    np.testing.assert_allclose(read.weights, own.weights, atol=np.abs(own.weights).max() / 100)
    np.savez(tmp_path / "other.npz", embedder="e")
    with pytest.raises(ValueError, match="lacks"):
        Projection.read(tmp_path / "other.npz")


def test_the_packaged_projection_is_of_the_packaged_encoder() -> None:
    found = packaged()
    assert found.embedder == f"bert-384:{digest(published())}:mean:256"
    assert found.weights.shape == (found.layers * 384 + BESIDE, 384)
    assert found.layers == 7
