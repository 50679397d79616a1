from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from posology.text.roles.head import (
    BESIDE,
    FILE,
    PLACES,
    ROLES,
    WORDS,
    RoleHead,
    dump,
    head_of,
    tell,
)
from posology.text.sentences import split
from posology.types import SentenceRole as R

EMBEDDER = "bert-384:6fceb34132ad:mean:256"
TEXT = (
    "Asthma is common in children. The aim of this study was to assess salbutamol. Children were randomly assigned to "
    "salbutamol or placebo. Mean FEV1 was higher with salbutamol (p = 0.01). We conclude that salbutamol is effective."
)


def made(dim: int = 8, width: int = 4) -> RoleHead:
    """Return a head with random weights."""
    rng = np.random.default_rng(3)
    seen = (2 * BESIDE + 1) * width
    shapes = {
        "vector": (dim, width),
        "place": (PLACES, width),
        "words": (WORDS, width),
        "bias": (width,),
        "first": (seen, width),
        "first_bias": (width,),
        "second": (seen, width),
        "second_bias": (width,),
        "out": (width, len(ROLES)),
        "out_bias": (len(ROLES),),
        "chain": (len(ROLES), len(ROLES)),
        "ends": (2, len(ROLES)),
    }
    weights = {name: rng.normal(size=shape).astype(np.float32) for name, shape in shapes.items()}
    return RoleHead(name="made", embedder="e", weights=weights)


def vectors(n: int, dim: int = 8) -> NDArray[np.int8]:
    return np.random.default_rng(n).integers(-127, 128, (n, dim), dtype=np.int8)


def test_the_packaged_head_reads_words_and_places_even_without_vectors() -> None:
    head = head_of(EMBEDDER)
    assert head is not None
    spans = split(TEXT)
    assert head(TEXT, spans, np.zeros((len(spans), 384), np.int8)) == ROLES


def test_other_embedders_have_no_head() -> None:
    assert head_of("medcpt") is None


def test_headings_restrict_what_the_head_says() -> None:
    text = "METHODS: Children got it. RESULTS: They were assigned at random. They were followed."
    found = made()(text, split(text), vectors(3))
    assert found == (R.METHODS, R.RESULTS, R.RESULTS)


def test_a_text_without_sentences_has_no_roles() -> None:
    assert made()("", (), np.zeros((0, 8), np.int8)) == ()


@given(st.integers(1, 40))
def test_probabilities_are_those_of_all_sequences(n: int) -> None:
    text = " ".join(f"Sentence number {i} is here." for i in range(n))
    head = made()
    told = tell(text, split(text))
    found = head.probabilities(told, vectors(n))
    assert found.shape == (n, len(ROLES))
    np.testing.assert_allclose(found.sum(axis=1), 1, rtol=1e-5)
    if n == 2:
        scores, chain, ends = (
            head.scores(told, vectors(n)),
            head.weights["chain"],
            head.weights["ends"],
        )
        odds = np.exp((scores[0] + ends[0])[:, None] + chain + scores[1] + ends[1])
        np.testing.assert_allclose(found[0], odds.sum(axis=1) / odds.sum(), rtol=1e-3)
        np.testing.assert_allclose(found[1], odds.sum(axis=0) / odds.sum(), rtol=1e-3)


def test_a_file_is_read_as_it_was_written(tmp_path: Path) -> None:
    head = made()
    file = tmp_path / "head.npz"
    file.write_bytes(dump(head.embedder, head.weights))
    assert file.read_bytes() == dump(head.embedder, head.weights)
    read = RoleHead.read(file)
    told = tell(TEXT, split(TEXT))
    np.testing.assert_allclose(
        read.probabilities(told, vectors(5)), head.probabilities(told, vectors(5)), atol=0.05
    )
    assert read.name != head.name


def test_another_file_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "other.npz"
    np.savez(file, weights=np.zeros(3))
    with pytest.raises(ValueError, match="no head for roles"):
        RoleHead.read(file)


def test_the_packaged_file_is_small() -> None:
    assert FILE.stat().st_size < 6_000_000
