from __future__ import annotations

import io
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from posology.errors import IndexMismatch
from posology.types import Retrieval
from strategies.compression.late.codec import LateCodec
from strategies.compression.late.features import KINDS, NAMES, kind
from strategies.compression.late.head import Head
from strategies.compression.late.pruner import LateReranker, Pruner
from tests.support.compression import HOSTILE, compressible
from tests.support.compression_tokens import coded

TEXTS = (
    "Aspirin lowered the risk of stroke. It was given daily. Bleeding was more frequent.",
    "Warfarin was not studied. The trial ended early.",
    "One sentence only.",
)


DIM = len(LateCodec.packaged().rotation)


@pytest.fixture
def pruner() -> Pruner:
    return Pruner()


def retrieval_of(*texts: str, seed: int = 0) -> Retrieval:
    return coded(compressible(texts, seed=seed, dim=DIM))


@given(keep=st.floats(0, 1), seed=st.integers(0, 50))
def test_a_share_of_the_sentences_is_kept_and_they_are_the_best(keep: float, seed: int) -> None:
    pruner = Pruner()
    retrieval = retrieval_of(*TEXTS, seed=seed)
    result = pruner(retrieval, keep)
    assert result.compressor == pruner.name == "pruner"
    assert result.sentences == 6
    assert result.kept == int(np.ceil(round(keep * 6, 9)))
    scores, _ = pruner.scores(retrieval)
    kept = {(e.passage.id, s) for e in result.excerpts for s in e.sentences}
    by_place = {
        (r.passage.id, s): score
        for r, of_passage in zip(retrieval.passages, scores, strict=True)
        for s, score in zip(r.sentences, of_passage.tolist(), strict=True)
    }
    inside = [by_place[one] for one in kept]
    outside = [score for one, score in by_place.items() if one not in kept]
    assert not inside or not outside or min(inside) >= max(outside)


def test_a_threshold_keeps_what_reaches_it(pruner: Pruner) -> None:
    retrieval = retrieval_of(*TEXTS)
    flat = np.concatenate(pruner.scores(retrieval)[0])
    for threshold in (0.0, float(np.median(flat)), 1.0):
        one = Pruner(threshold=threshold)
        assert one(retrieval, None).kept == int((flat >= threshold).sum())
    for wrong in (-0.1, 1.1):
        with pytest.raises(ValueError, match="0 to 1"):
            Pruner(threshold=wrong)


@pytest.mark.parametrize(
    "without",
    [
        lambda r: replace(r, codec=None),
        lambda r: replace(r, codec="late-other"),
        lambda r: replace(r, query_tokens=None),
        lambda r: replace(r, passages=(replace(r.passages[0], tokens=None), *r.passages[1:])),
    ],
    ids=["no codec", "another codec", "no query tokens", "a passage without codes"],
)
def test_without_codes_the_fallback_compresses_all(pruner: Pruner, without: object) -> None:
    retrieval = without(retrieval_of(*TEXTS))  # type: ignore[operator]
    result = pruner(retrieval, 0.5)
    assert result.compressor == "leancontext_top"
    assert result.kept == 3
    with pytest.raises(IndexMismatch, match=LateCodec.packaged().name):
        pruner.scores(retrieval)


def test_scores_are_probabilities_and_one_a_passage(pruner: Pruner) -> None:
    of_sentences, of_passages = pruner.scores(retrieval_of(*TEXTS, ""))
    assert [len(one) for one in of_sentences] == [3, 2, 1, 0]
    assert all(((one >= 0) & (one <= 1)).all() for one in of_sentences)
    assert np.isfinite(of_passages[:3]).all()
    assert of_passages[3] == -np.inf
    assert of_passages.dtype == np.float32


@pytest.mark.parametrize("kind", sorted(HOSTILE))
def test_scores_of_a_hostile_passage_are_probabilities(kind: str) -> None:
    retrieval = coded(compressible((TEXTS[0], HOSTILE[kind])))
    of_sentences, of_passages = Pruner().scores(retrieval)
    for scores in of_sentences:
        assert ((scores >= 0) & (scores <= 1)).all()
    counted = [bool(len(scores)) for scores in of_sentences]
    assert np.isfinite(of_passages).tolist() == counted


def test_the_reranker_gives_the_passages_scores(pruner: Pruner) -> None:
    retrieval = retrieval_of(*TEXTS)
    reranker = LateReranker(pruner)
    assert reranker.name.startswith("late")
    np.testing.assert_array_equal(reranker(retrieval), pruner.scores(retrieval)[1])


def test_an_empty_sentence_among_tokens_is_scored(pruner: Pruner) -> None:
    retrieval = retrieval_of(*TEXTS)
    one = retrieval.passages[0]
    assert one.tokens is not None
    counts = one.tokens.counts.copy()
    codes = one.tokens.codes[: len(one.tokens.codes) - counts[-1]]
    counts[-1] = 0
    emptied = replace(one, tokens=replace(one.tokens, codes=codes, counts=counts))
    scores, _ = pruner.scores(replace(retrieval, passages=(emptied, *retrieval.passages[1:])))
    assert np.isfinite(scores[0]).all()
    assert len(scores[0]) == 3


def test_a_head_of_another_codec_is_refused() -> None:
    with pytest.raises(ValueError, match="late-other"):
        Pruner(head=replace(Head.packaged(), codec="late-other"))


def test_a_file_of_another_format_is_refused() -> None:
    file = io.BytesIO()
    np.savez(file, format=1, features=np.array(["one"]))
    with pytest.raises(ValueError, match="other features"):
        Head.read(file.getvalue())


def test_the_packaged_parts_fit() -> None:
    assert Head.packaged().codec == LateCodec.packaged().name
    assert 0 < Head.packaged().threshold < 1
    assert Pruner().expected_ratio(None) < 0.5
    assert Pruner().expected_ratio(0.3) == 0.3
    with pytest.raises(ValueError, match="0 to 1"):
        Pruner().expected_ratio(1.1)


def test_a_sentence_that_says_it_is_kept_before_one_that_does_not(real: Retrieval) -> None:
    pruner = Pruner()
    assert pruner.reads(real)
    (about, other), _ = pruner.scores(real)
    assert about.argmax() == 1
    assert about.max() > 10 * other.max()
    assert pruner.seconds(real, None) < 0.1


@pytest.mark.parametrize(
    ("question", "expected"),
    [
        ("Who discovered penicillin?", 0),
        ("In what year was insulin isolated?", 3),
        ("How many patients were randomised?", 3),
        ("How does metformin act?", 5),
        ("Does aspirin lower the risk of stroke?", 6),
        ("Aspirin lowers the risk of stroke.", 7),
        ("?", 6),
    ],
)
def test_kinds_of_questions(question: str, expected: int) -> None:
    found = kind(question)
    assert found.shape == (len(KINDS) + 1,)
    assert found.argmax() == expected
    assert found.sum() == 1


def test_each_feature_has_one_name() -> None:
    assert len(set(NAMES)) == len(NAMES)
