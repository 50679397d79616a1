from __future__ import annotations

import threading
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from posology.query import make_query
from posology.types import Retrieval
from strategies.compression.provence import Provence, ProvenceReranker
from strategies.compression.provence.checkpoint import load
from strategies.compression.provence.compressor import kept, likeliest
from strategies.compression.provence.judge import CheckpointJudge, Judgement, plain
from tests.unit.strategies.provence.conftest import LONG, SHORT, retrieve

RETRIEVAL = retrieve(
    LONG, SHORT, "Not.", LONG + " " + SHORT, titles=("Aspirin in stroke", "", "Dose")
)


@pytest.fixture
def model(pruner: Path) -> CheckpointJudge:
    return CheckpointJudge(load(str(pruner)))


def judgement(*sentences: list[float], heading: int = 0) -> Judgement:
    return Judgement(
        score=0.0,
        kept=np.array([0.99] * heading + [p for one in sentences for p in one], np.float32),
        sentence=np.array(
            [-1] * heading + [i for i, one in enumerate(sentences) for _ in one], np.int32
        ),
    )


def test_a_sentence_is_kept_where_more_than_half_of_its_tokens_are() -> None:
    one = judgement([0.9, 0.2], [0.9, 0.2, 0.6], [0.09, 0.11], [0.2], heading=3)
    assert kept([one], [4], 0.5)[0].tolist() == [False, True, False, False]
    assert kept([one], [4], 0.1)[0].tolist() == [True, True, False, True]
    assert kept([one], [4], 1.0)[0].tolist() == [False] * 4
    # a token is above the threshold, not at it
    assert kept([judgement([0.5])], [1], 0.5)[0].tolist() == [False]
    assert one.shares(0.5, 4) == pytest.approx([0.5, 2 / 3, 0, 0])
    assert one.means(5) == pytest.approx([0.55, 1.7 / 3, 0.1, 0.2, 0], abs=1e-6)


probabilities = st.lists(
    st.lists(st.lists(st.floats(0, 1, width=32), max_size=4), min_size=1, max_size=5),
    min_size=1,
    max_size=4,
)


@given(passages=probabilities, keep=st.floats(0, 1), threshold=st.floats(0, 1))
def test_shares_are_kept_exactly_and_the_likeliest_first(
    passages: list[list[list[float]]], keep: float, threshold: float
) -> None:
    judged = [judgement(*one) for one in passages]
    counts = [len(one) for one in passages]
    flags = np.concatenate(likeliest(judged, counts, keep))
    means = np.concatenate([one.means(n) for one, n in zip(judged, counts, strict=True)])
    assert flags.sum() == np.ceil(round(keep * sum(counts), 9))
    if flags.any() and not flags.all():
        assert means[flags].min() >= means[~flags].max()
    more, fewer = (kept(judged, counts, t) for t in (threshold / 2, threshold))
    assert all((b <= a).all() for a, b in zip(more, fewer, strict=True))


def test_what_is_left_are_whole_sentences_in_their_order(model: CheckpointJudge) -> None:
    judged = model(RETRIEVAL.query.text, RETRIEVAL.passages)
    middle = float(np.median(np.concatenate([one.kept for one in judged])))
    found = Provence(model, threshold=middle)(RETRIEVAL, None)
    known = {one.passage.id: one for one in RETRIEVAL.passages}
    assert 0 < found.kept < found.sentences == sum(len(p.sentences) for p in RETRIEVAL.passages)
    assert found.kept == sum(len(excerpt.sentences) for excerpt in found.excerpts)
    assert (found.compressor, found.extractive) == ("provence", True)
    order = [excerpt.passage.id for excerpt in found.excerpts]
    assert order == sorted(order)
    for excerpt in found.excerpts:
        whole = known[excerpt.passage.id].sentences
        assert list(excerpt.sentences) == [s for s in whole if s in excerpt.sentences] != []


def test_it_keeps_from_none_to_all_of_the_sentences(pruner: Path) -> None:
    import torch

    checkpoint = load(str(pruner))
    bias = checkpoint.model.token_head.bias
    for drop, share in ((1e3, 0.0), (-1e3, 1.0)):
        with torch.no_grad():
            bias.copy_(torch.tensor([drop, -drop]))
        found = Provence(CheckpointJudge(checkpoint))(RETRIEVAL, None)
        assert found.kept == share * found.sentences
        assert len(found.excerpts) == share * len(RETRIEVAL.passages)


def test_a_lower_threshold_keeps_what_a_higher_one_does(model: CheckpointJudge) -> None:
    counts = [Provence(model, threshold=t)(RETRIEVAL, None).kept for t in (0.0, 0.1, 0.5, 0.9, 1.0)]
    assert counts == sorted(counts, reverse=True)
    assert counts[-1] == 0
    with pytest.raises(ValueError, match="threshold"):
        Provence(model, threshold=1.5)


@pytest.mark.parametrize("keep", [0.0, 0.1, 0.5, 1.0])
def test_a_share_is_that_of_all_sentences(model: CheckpointJudge, keep: float) -> None:
    found = Provence(model)(RETRIEVAL, keep)
    assert found.kept == np.ceil(keep * found.sentences)
    assert Provence(model).expected_ratio(keep) == keep


def test_batches_judge_as_one_by_one_do(pruner: Path) -> None:
    checkpoint = load(str(pruner))
    together = CheckpointJudge(checkpoint)("Is aspirin safe?", RETRIEVAL.passages)
    alone = CheckpointJudge(checkpoint, tokens_a_pass=1)
    apart = [alone("Is aspirin safe?", [one])[0] for one in RETRIEVAL.passages]
    assert alone.passes > len(apart)
    for a, b in zip(together, apart, strict=True):
        assert a.score == pytest.approx(b.score, abs=1e-5)
        assert a.kept == pytest.approx(b.kept, abs=1e-5)
        assert a.sentence.tolist() == b.sentence.tolist()
    # their order changes nothing
    back = CheckpointJudge(checkpoint)("Is aspirin safe?", RETRIEVAL.passages[::-1])[::-1]
    assert [one.score for one in back] == pytest.approx([one.score for one in together], abs=1e-5)


def test_pruning_and_ranking_share_one_pass(model: CheckpointJudge) -> None:
    scores = ProvenceReranker(model)(RETRIEVAL)
    passes = model.passes
    assert passes > 0
    left = Provence(model)
    first = left(RETRIEVAL, None)
    assert left.seconds(RETRIEVAL, None) == 0
    fewer = replace(RETRIEVAL, passages=RETRIEVAL.passages[1:3])
    left(fewer, 0.5)
    assert model.passes == passes
    assert left(RETRIEVAL, None) == first
    other = replace(RETRIEVAL, query=make_query("What was the dose?"))
    assert left.seconds(other, None) > 0
    assert left.seconds(other, 1.0) == 0
    assert not np.allclose(ProvenceReranker(model)(other), scores, atol=1e-4)
    assert model.passes > passes


def test_threads_take_turns(model: CheckpointJudge) -> None:
    expected = Provence(model)(RETRIEVAL, 0.5)
    fresh, found = CheckpointJudge(model.checkpoint), []

    def prune(retrieval: Retrieval) -> None:
        found.append(Provence(fresh)(retrieval, 0.5))

    threads = [threading.Thread(target=prune, args=(RETRIEVAL,)) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found == [expected] * 4
    assert fresh.passes == model.passes


def test_by_the_paper_half_of_an_abstract_is_left(model: CheckpointJudge) -> None:
    assert Provence(model).expected_ratio(None) == pytest.approx(0.51)
    assert 0.326 < Provence(model, threshold=0.3).expected_ratio(None) < 0.51


@pytest.mark.parametrize(
    ("question", "asked"),
    [
        ("Does  Aspirin help?", "does aspirin help"),
        ("What's IL-6 (µg)?", "whats il6 µg"),
        ("?!", "?!"),
    ],
)
def test_plain_questions_have_no_capitals_and_no_punctuation(question: str, asked: str) -> None:
    assert plain(question) == asked
