from __future__ import annotations

import sqlite3
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from posology.errors import ConfigurationError
from posology.index.embedders import load, load_sentence_transformer
from posology.index.embedders.sentence_transformer import SentenceTransformerEmbedder
from posology.store.memory import ProcessMemory, SqliteMemory
from posology.testing.models.embedder import HashEmbedder
from posology.testing.models.encoder import save_tiny_encoder
from posology.text.sentences import split
from strategies.compression.parts import Parts
from strategies.compression.removal import MOST_WORDS, approximate, exact
from strategies.compression.tcra_semantic import (
    DEFAULT_KEEP,
    FAST_NAME,
    NAME,
    TcraSemantic,
    make_exact,
    make_fast,
)
from strategies.compression.wording.words import Words
from tests.support.compression import WRITTEN, compressible, contexts


class Counting(HashEmbedder):
    """Counts the texts that it is asked for."""

    def __init__(self) -> None:
        super().__init__(dim=64)
        self.texts = 0

    def embed_queries(self, texts: Sequence[str]) -> np.ndarray:
        self.texts += len(texts)
        return super().embed_queries(texts)


@pytest.fixture(scope="module")
def tiny(tmp_path_factory: pytest.TempPathFactory) -> SentenceTransformerEmbedder:
    return load_sentence_transformer(str(save_tiny_encoder(tmp_path_factory.mktemp("encoder"))))


def filled(share: float | None, texts: Sequence[str], *, guard: bool = True) -> list[str]:
    compress = TcraSemantic(lambda: HashEmbedder(dim=64), guard=guard)
    excerpts = compress(compressible(texts), share).excerpts
    return [s.of(e.passage.text) for e in excerpts for s in e.sentences]


def test_a_distance_is_between_the_vectors_with_and_without_the_word() -> None:
    embedder = HashEmbedder(dim=64)
    words = ("aspirin", "lowered", "the", "risk")
    whole = embedder.embed_queries(["aspirin lowered the risk"])[0]
    (found,) = exact(embedder, [words])
    for i, distance in enumerate(found):
        left = " ".join(word for j, word in enumerate(words) if j != i)
        expected = np.linalg.norm(whole - embedder.embed_queries([left])[0])
        assert distance == pytest.approx(expected, abs=1e-6)


def test_many_sentences_at_once_are_as_each_alone(tiny: SentenceTransformerEmbedder) -> None:
    sentences = [tuple(text.split()) for text in WRITTEN]
    for distances in (exact, approximate):
        together = distances(tiny, sentences)
        for words, found in zip(sentences, together, strict=True):
            assert found.shape == (len(words),)
            (alone,) = distances(tiny, [words])
            np.testing.assert_allclose(found, alone, atol=1e-4)


@pytest.mark.parametrize("distances", [exact, approximate])
def test_long_and_odd_sentences_have_a_distance_a_word(
    tiny: SentenceTransformerEmbedder, distances: object
) -> None:
    sentences = [("risk",) * (2 * MOST_WORDS + 1), ("aspirin",), ("\u00ad",), ("…", "x" * 90, "€")]
    assert callable(distances)
    found = distances(tiny, sentences)
    assert [len(one) for one in found] == [len(words) for words in sentences]
    assert all(np.isfinite(one).all() for one in found)


def test_removing_from_the_mean_is_what_pooling_without_the_word_gives(
    tiny: SentenceTransformerEmbedder,
) -> None:
    words = ("aspirin", "lowered", "risk")
    (tokens,) = tiny.token_vectors([" ".join(words)])
    assert tokens.lengths is not None
    raw = tokens.vectors * tokens.lengths[:, None]
    unit = raw.mean(axis=0) / np.linalg.norm(raw.mean(axis=0))
    (found,) = approximate(tiny, [words])
    left = raw[1:].mean(axis=0)
    assert found[0] == pytest.approx(np.linalg.norm(left / np.linalg.norm(left) - unit), abs=1e-5)


def test_without_vectors_of_tokens_distances_are_exact() -> None:
    embedder = HashEmbedder(dim=64)
    sentences = [("aspirin", "lowered", "risk")]
    assert approximate(embedder, sentences)[0].tolist() == exact(embedder, sentences)[0].tolist()


@given(contexts, st.floats(0, 1))
def test_no_more_than_the_share_stays_and_no_clause_loses_what_protects_it(
    texts: list[str], share: float
) -> None:
    retrieval = compressible(texts)
    compress = TcraSemantic(lambda: HashEmbedder(dim=64))
    excerpts = compress(retrieval, share).excerpts
    shown = {e.passage.id: e for e in excerpts}
    words = sum(len(s.of(e.passage.text).split()) for e in excerpts for s in e.sentences)
    assert words <= share * sum(len(text.split()) for text in texts) + 1e-6
    for one in retrieval.passages:
        text = one.passage.text
        left = (
            [(s.start, s.end) for s in shown[one.passage.id].sentences]
            if one.passage.id in shown
            else []
        )
        assert left == sorted(left)
        for sentence in split(text):
            whole = Words.of(text, sentence)
            kept = np.array(
                [any(a <= start < b for a, b in left) for start in whole.starts.tolist()]
            )
            for clause in set(whole.clause[kept].tolist()):
                assert kept[(whole.clause == clause) & whole.protected].all()


def test_the_words_that_matter_least_go_first() -> None:
    text = "stroke stroke stroke stroke bleeding"
    # what is said four times is hardly missed once
    assert filled(0.2, [text], guard=False) == ["bleeding"]


def test_the_default_is_seven_tenths() -> None:
    texts = ["The trial of older adults with chronic heart disease was stopped early by its board."]
    assert filled(None, texts) == filled(DEFAULT_KEEP, texts)


def test_a_sentence_is_paid_for_once(tmp_path: Path) -> None:
    embedder = Counting()
    retrieval = compressible(WRITTEN)
    place = tmp_path / "memory.sqlite"
    first = TcraSemantic(lambda: embedder, lambda: SqliteMemory(place))(retrieval, 0.5)
    paid = embedder.texts
    assert paid > len(WRITTEN)
    again = TcraSemantic(lambda: embedder, lambda: SqliteMemory(place))
    assert again(retrieval, 0.5) == first
    again(retrieval, 0.3)
    assert embedder.texts == paid


def test_a_sentence_that_the_disk_damaged_is_paid_for_again(tmp_path: Path) -> None:
    embedder = Counting()
    retrieval = compressible(WRITTEN)
    place = tmp_path / "memory.sqlite"
    compress = TcraSemantic(lambda: embedder, lambda: SqliteMemory(place))
    first = compress(retrieval, 0.5)
    paid, embedder.texts = embedder.texts, 0
    with closing(sqlite3.connect(place)) as connection, connection:
        connection.execute(
            "UPDATE kept SET value = substr(value, 2) WHERE key IN (SELECT min(key) FROM kept)"
        )
    assert compress(retrieval, 0.5) == first
    assert 0 < embedder.texts < paid
    embedder.texts = 0
    assert compress(retrieval, 0.5) == first
    assert embedder.texts == 0


def test_two_kinds_of_distances_are_kept_apart(tiny: SentenceTransformerEmbedder) -> None:
    memory = ProcessMemory()
    sentences = [tuple(WRITTEN[0].split())]
    one = TcraSemantic(lambda: tiny, lambda: memory)
    other = TcraSemantic(lambda: tiny, lambda: memory, distances=approximate, name=FAST_NAME)
    assert one.weights(sentences)[0].tolist() != other.weights(sentences)[0].tolist()


def test_all_or_nothing_loads_nothing() -> None:
    def fail() -> HashEmbedder:
        raise AssertionError

    compress = TcraSemantic(fail)
    retrieval = compressible(WRITTEN)
    assert compress(retrieval, 0).excerpts == ()
    assert compress(retrieval, 1).kept == compress(retrieval, 1).sentences
    assert compress.seconds(retrieval, 1) == 0 < compress.seconds(retrieval, 0.5)


@pytest.mark.parametrize("keep", [-0.1, 1.5])
def test_a_share_is_0_to_1(keep: float) -> None:
    with pytest.raises(ValueError, match="0 to 1"):
        TcraSemantic(HashEmbedder)(compressible(WRITTEN), keep)


class Longer(HashEmbedder):
    """Gives vectors whose lengths count, each text's another."""

    @property
    def lengths_count(self) -> bool:
        return True

    def embed_queries(self, texts: Sequence[str]) -> np.ndarray:
        lengths = np.array([1 + len(text) for text in texts], np.float32)
        return super().embed_queries(texts) * lengths[:, None]


def test_lengths_of_vectors_do_not_count_where_directions_are_compared() -> None:
    words = [("aspirin", "lowered", "the", "risk"), ("dose",)]
    for own, other in zip(
        exact(Longer(dim=64), words), exact(HashEmbedder(dim=64), words), strict=True
    ):
        np.testing.assert_allclose(own, other, atol=1e-6)


def test_vectors_that_are_paid_for_are_not_asked_for() -> None:
    compress = TcraSemantic(lambda: load("openai:text-embedding-3-small"))
    with pytest.raises(ConfigurationError, match="choose another compressor"):
        compress(compressible(["Aspirin lowered the risk."]), 0.5)


def test_makers_need_an_embedder() -> None:
    parts = Parts(embedder=lambda: HashEmbedder(dim=64))
    assert (make_exact(parts).name, make_fast(parts).name) == (NAME, FAST_NAME)
    for make in (make_exact, make_fast):
        with pytest.raises(ConfigurationError, match="embedder"):
            make(Parts())
