from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import replace
from importlib.resources import files
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from policies.calibration import Calibration, Model, Term, packaged, read, write
from policies.preflight import (
    OTHER_ORDER,
    PLACES,
    PREDICTORS,
    PREFIX,
    Calibrated,
    Prediction,
    Published,
    observe,
)
from policies.preflight_features import correlation, iou, nearness, overlap
from posology.errors import BadArtefact, InvalidRecord
from posology.query import make_query
from posology.types import MODES, Hit, Passage, Ranking, Retrieval, Retrieved
from strategies.compression.late.pruner import LateReranker

NAMES = [f"p{i}" for i in range(12)]

some_scores = st.floats(min_value=-1e6, max_value=1e6, allow_nan=False) | st.sampled_from(
    [0.0, 0.5, 1.0, 1e-300]
)


def ranked(method: str, ids: list[str], scores: list[float] | None = None) -> Ranking:
    given = scores or [1 / (place + 1) for place in range(len(ids))]
    hits = zip(ids, given, strict=True)
    return Ranking(method=method, hits=tuple(Hit(passage_id=i, score=s) for i, s in hits))


def retrieved(name: str) -> Retrieved:
    return Retrieved(
        passage=Passage(id=name, text="text"),
        sentences=(),
        vector=np.zeros(2, np.float32),
        sentence_vectors=np.zeros((0, 2), np.int8),
    )


def retrieval(
    dense: list[str],
    rerank: list[str],
    *,
    bm25: list[str] | None = None,
    fused: list[str] | None = None,
    shown: list[str] | None = None,
) -> Retrieval:
    fused = dense if fused is None else fused
    return Retrieval(
        query=make_query("Does it help?"),
        passages=tuple(map(retrieved, fused if shown is None else shown)),
        query_vector=np.zeros(2, np.float32),
        dense=ranked("dense", dense),
        bm25_rerank=ranked("bm25_rerank", rerank),
        bm25=ranked("bm25", rerank if bm25 is None else bm25),
        fused=ranked("fused", fused),
        index_version="index@1",
    )


@st.composite
def rankings(draw: st.DrawFn, method: str, names: list[str]) -> Ranking:
    ids = draw(st.lists(st.sampled_from(names), unique=True)) if names else []
    scores = draw(st.lists(some_scores, min_size=len(ids), max_size=len(ids)))
    return ranked(method, ids, sorted(scores, reverse=True)) if ids else ranked(method, [])


@st.composite
def retrievals(draw: st.DrawFn) -> Retrieval:
    dense = draw(rankings("dense", NAMES))
    again = draw(st.permutations(dense.ids))
    scores = draw(st.lists(some_scores, min_size=len(again), max_size=len(again)))
    rerank = ranked("bm25_rerank", again, sorted(scores, reverse=True)) if again else dense
    corpus = draw(rankings("bm25", NAMES))
    fused = draw(rankings("fused", NAMES))
    shown = draw(st.sampled_from([dense, corpus, fused])).ids
    return replace(
        retrieval([], []),
        query=make_query(draw(st.sampled_from(["Why?", "Is it so that this is so?"]))),
        passages=tuple(map(retrieved, shown)),
        dense=dense,
        bm25_rerank=rerank,
        bm25=corpus,
        fused=fused,
    )


def numbers(**changed: object) -> dict[str, Any]:
    """The features of an ordinary retrieval."""
    features = observe(retrieval(NAMES, NAMES[::-1]))
    return features | {PREFIX + name: value for name, value in changed.items()}


@given(retrievals())
def test_every_feature_is_there_finite_and_kept_by_json(situation: Retrieval) -> None:
    features = observe(situation)
    assert set(features) == set(numbers())
    assert all(name.startswith(PREFIX) for name in features)
    for value in features.values():
        assert isinstance(value, str) or math.isfinite(value)
    assert json.loads(json.dumps(features)) == features


@given(retrievals())
def test_shares_are_shares(situation: Retrieval) -> None:
    features = observe(situation)
    for n in PLACES:
        assert 0 <= features[f"{PREFIX}iou_{n}"] <= 1  # type: ignore[operator]  # a number
    for name in ("overlap", "corpus_overlap", "dense_first_in_corpus", "fused_first_in_dense"):
        assert 0 <= features[PREFIX + name] <= 1  # type: ignore[operator]  # a number
    assert -1 <= features[PREFIX + "correlation"] <= 1  # type: ignore[operator]  # a number


@given(retrievals(), st.sampled_from(sorted(PREDICTORS)))
def test_every_retrieval_gets_a_prediction_and_the_record_alone_gets_it_again(
    situation: Retrieval, name: str
) -> None:
    predictor = PREDICTORS[name](None)
    features = observe(situation)
    prediction = predictor(features)
    assert predictor(json.loads(json.dumps(features))) == prediction
    assert predictor(features | {"qtable.state": 3}) == prediction
    assert prediction.probability is None or 0 <= prediction.probability <= 1
    assert prediction.reason
    if len(situation.passages) <= 3 and name != "published":
        assert not prediction.issue


@given(rankings("dense", NAMES), rankings("bm25", NAMES), st.integers(1, 12))
def test_agreement_is_symmetric_and_whole_with_itself(one: Ranking, other: Ranking, n: int) -> None:
    a, b = one.ids, other.ids
    assert iou(a, b, n) == iou(b, a, n)
    assert overlap(a, b) == pytest.approx(overlap(b, a))
    assert correlation(a, b) == pytest.approx(correlation(b, a))
    assert iou(a, a, n) == 1
    assert overlap(a, a) == pytest.approx(1)
    assert correlation(a, a) == 1


def test_measures_by_hand() -> None:
    assert iou("abcd", "cdab", 3) == 0.5  # of abc and cda: two of four
    assert overlap("ab", "cd") == 0
    # 0.2/0.8 · (0/1 · 0.8 + 2/2 · 0.64) + 2/2 · 0.64
    assert overlap("ab", "ba") == pytest.approx(0.8)
    assert correlation("abcd", "dcba") == -1
    assert correlation("abcd", "abdc") == pytest.approx(0.8)
    assert (nearness("abc", "b"), nearness("abc", "x"), nearness("", ""), nearness("a", "")) == (
        0.5,
        0,
        0,
        0,
    )


@pytest.mark.parametrize(
    ("rerank", "measured", "issue"),
    [("abcxyz", 1.0, False), ("abxcyz", 0.5, False), ("axybcz", 0.2, True), ("xyzabc", 0.0, True)],
)
def test_the_published_rule_is_equation_1_at_a_fifth(
    rerank: str, measured: float, issue: bool
) -> None:
    features = observe(retrieval(list("abcxyz"), list(rerank)))
    assert features[PREFIX + "iou_3"] == measured
    prediction = Published()(features)
    assert prediction.issue is issue
    assert prediction.probability is None
    assert f"{measured:.2f}" in prediction.reason
    assert "0.2" in prediction.reason


def test_the_order_of_showing_is_told_from_the_passages() -> None:
    orders = {"dense": list("abcd"), "fused": list("bacd"), "bm25": list("dcba")}
    for name, shown in orders.items():
        features = observe(
            retrieval(orders["dense"], list("dacb"), bm25=orders["bm25"], fused=orders["fused"], shown=shown)
        )  # fmt: skip
        assert features[PREFIX + "order"] == name
    part = retrieval(list("abcd"), list("abcd"), fused=list("bacd"), shown=list("ab"))
    assert observe(part)[PREFIX + "order"] == "dense"
    mixed = retrieval(list("abcd"), list("abcd"), fused=list("bacd"), shown=list("cd"))
    assert observe(mixed)[PREFIX + "order"] == OTHER_ORDER
    # a re-ranker that happens to agree with the first stage is another order all the same
    named = replace(part, order="late-0 of fused")
    assert observe(named)[PREFIX + "order"] == "late-0 of fused"


def test_odds_that_the_key_is_beyond_fall_as_the_first_stand_out() -> None:
    even = replace(
        retrieval(NAMES, NAMES),
        dense=ranked("dense", NAMES, [0.5] * 12),
        bm25_rerank=ranked("bm25_rerank", NAMES, [10.0] * 12),
        bm25=ranked("bm25", NAMES, [10.0] * 12),
    )
    clear = replace(even, bm25=ranked("bm25", NAMES, [30.0] + [10.0] * 11))
    # nine of twelve alike are beyond the third
    assert observe(even)[PREFIX + "beyond"] == pytest.approx(math.log(9 / 3))
    # one is e^(0.2 · 20) as likely as each other
    assert observe(clear)[PREFIX + "beyond"] == pytest.approx(math.log(9 / (math.exp(4) + 2)))
    assert observe(clear)[PREFIX + "beyond_by_meaning"] == pytest.approx(math.log(3))


@pytest.mark.parametrize("name", sorted(PREDICTORS))
@pytest.mark.parametrize("wrong", [None, "0.5", math.nan, True])
def test_a_record_without_what_is_looked_at_is_an_error_that_names_it(
    name: str, wrong: object
) -> None:
    missing = f"{PREFIX}iou_3"
    features = numbers(iou_3=wrong)
    if wrong is None:
        del features[missing]
    with pytest.raises(InvalidRecord, match="iou_3") as caught:
        PREDICTORS[name](None)(features)
    assert caught.value.field == missing


def test_a_record_without_its_order_is_an_error() -> None:
    with pytest.raises(InvalidRecord, match="order"):
        predicted(packaged(), numbers(order=None))


def test_settings_that_cannot_be_are_refused() -> None:
    with pytest.raises(ValueError, match="4"):
        Published(n=4)
    with pytest.raises(ValueError, match=r"1\.5"):
        Published(threshold=1.5)


def predicted(calibration: Calibration, features: Mapping[str, Any]) -> Prediction:
    return Calibrated(calibrations=(calibration,))(features)


def small(threshold: float = 0.5, **orders: float) -> Calibration:
    term = Term(feature="iou_3", weight=-2.0, mean=0.5, scale=0.25)
    return Calibration(
        models={
            order: Model(intercept=intercept, threshold=threshold, terms=(term,))
            for order, intercept in orders.items()
        },
        trained={"questions": 3},
    )


def test_a_model_is_a_standardised_logistic_regression() -> None:
    prediction = predicted(small(fused=1.0), numbers(iou_3=0.75))
    assert prediction.probability == pytest.approx(1 / (1 + math.e))  # 1 − 2 · 1
    assert not prediction.issue
    assert predicted(small(threshold=0.2, fused=1.0), numbers(iou_3=0.75)).issue
    assert predicted(small(fused=2000.0), numbers()).probability == 1
    assert predicted(small(fused=-2000.0), numbers()).probability == 0


def test_an_order_that_was_not_learned_gets_the_published_rule_as_a_hint_and_says_so() -> None:
    features = numbers(order=OTHER_ORDER)
    prediction = predicted(small(fused=1.0), features)
    assert prediction.issue is Published()(features).issue
    assert prediction.probability is None
    assert not prediction.certain
    assert Published()(features).certain
    assert OTHER_ORDER in prediction.reason


def test_of_three_passages_none_is_beyond_the_third() -> None:
    prediction = predicted(small(fused=99.0), numbers(passages=3))
    assert (prediction.issue, prediction.probability) == (False, 0.0)


def test_what_is_written_is_read_again() -> None:
    before = small(fused=1 / 3, dense=-0.1)
    after = read(write(before), path="p.json")
    assert after.version == before.version
    assert (dict(after.models), dict(after.trained)) == (before.models, before.trained)


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ('"threshold": 0.5', '"threshold": 0.4'),
        ('"intercept"', '"other"'),
        ('"posology": "preflight"', '"posology": "qtable"'),
        ('"format": 1', '"format": 2'),
        ("0.25", "0.0"),
        ("0.25", '"x"'),
        ("{", "["),
    ],
)
def test_a_damaged_file_is_refused(old: str, new: str) -> None:
    text = write(small(fused=1.0))
    assert old in text
    with pytest.raises(BadArtefact, match=r"p\.json"):
        read(text.replace(old, new, 1), path="p.json")


def test_versions_tell_settings_apart() -> None:
    versions = [
        Published().version,
        Published(threshold=0.3).version,
        Published(n=5).version,
        small(fused=1.0).version,
        small(dense=1.0).version,
        packaged().version,
    ]
    assert len(set(versions)) == len(versions)
    assert Published().version == Published(n=3, threshold=0.2).version
    assert small(fused=1.0).version == small(fused=1.0).version


@pytest.mark.smoke
def test_the_packaged_model_is_whole_and_knows_every_order() -> None:
    assert set(packaged().models) == {*MODES, f"{LateReranker().name} of fused"}
    assert packaged().trained["questions"] == {"PubMedQA": 500, "SciFact": 505}
    for model in packaged().models.values():
        # where it flagged all or nothing it would be no predictor
        assert 0.01 < model.threshold < 0.5
        (beyond,) = (term for term in model.terms if term.feature == "beyond")
        assert beyond.weight > 0
    card = (files("policies") / "models" / "README.md").read_text(encoding="utf-8")
    assert packaged().version in card


def test_the_packaged_model_takes_agreement_for_a_sign_of_safety() -> None:
    agree = replace(
        retrieval(NAMES, NAMES),
        dense=ranked("dense", NAMES, [0.9] + [0.4] * 11),
        bm25_rerank=ranked("bm25_rerank", NAMES, [30.0] + [10.0] * 11),
        bm25=ranked("bm25", NAMES, [40.0] + [15.0] * 11),
    )
    quarrel = replace(
        retrieval(NAMES, NAMES[::-1]),
        dense=ranked("dense", NAMES, [0.5] * 12),
        bm25_rerank=ranked("bm25_rerank", NAMES[::-1], [10.0] * 12),
        bm25=ranked("bm25", NAMES[::-1], [15.0] * 12),
    )
    low, high = (predicted(packaged(), observe(one)) for one in (agree, quarrel))
    assert not low.issue
    assert high.issue
    assert low.probability is not None
    assert high.probability is not None
    assert low.probability < 0.02 < high.probability
