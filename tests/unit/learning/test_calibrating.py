"""Learning of preflight's calibrations: what features a model may see, and what its probabilities mean."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from orchestrator.training.calibration.learning import (
    ISSUE_RATE,
    Case,
    disagrees,
    held_ranking,
    learn,
    reach,
    terms_of,
    threshold_for,
)
from policies.preflight import PREFIX, observe
from posology.errors import InputError
from posology.types import MODES, Hit, Ranking
from tests.support.situations import retrieved

ORDERS = (*MODES, "late-0 of fused")
BASE = retrieved([list(range(8))] * 4, [1.0 - 0.1 * place for place in range(8)], 1)


def cases(count: int = 200, *, gold: bool = True) -> list[Case]:
    """Questions whose issue is the likelier the smaller the agreement of the first three."""
    random = np.random.default_rng(0)
    found = []
    for number in range(count):
        agreement = float(random.random())
        features = observe(BASE) | {PREFIX + name: agreement for name in ("iou_3", "dense_gap_2")}
        issue = bool(random.random() < 0.6 * (1 - agreement))
        absent = None if not gold else bool(issue and number % 3 == 0)
        found.append(Case(question=str(number), features=features, issue=issue, absent=absent))
    return found


@pytest.mark.parametrize("order", ORDERS)
def test_every_order_has_a_held_ranking_and_features_that_do_not_come_from_it(order: str) -> None:
    held = held_ranking(order)
    assert held in ("dense", "bm25", "rerank", "fused")
    names = terms_of(order, held)
    assert "passages" in names
    assert set(names) <= {name.removeprefix(PREFIX) for name in observe(BASE)}
    # the held ranking alone is changed: no feature of the model may change with it
    field = {"rerank": "bm25_rerank"}.get(held, held)
    other = Ranking(
        method=field,
        hits=tuple(Hit(passage_id=f"p{7 - i}", score=9.0 - i) for i in range(8)),
    )
    changed = observe(replace(BASE, **{field: other, "order": order}))  # type: ignore[arg-type]
    before = observe(replace(BASE, order=order))
    assert {name for name in names if changed[PREFIX + name] != before[PREFIX + name]} == set()
    assert set(terms_of(order)) <= {name.removeprefix(PREFIX) for name in before}


def test_a_held_ranking_disagrees_where_its_first_passage_is_beyond_the_third() -> None:
    for place, expected in ((2, False), (3, True)):
        first = Ranking(method="bm25", hits=(Hit(passage_id=f"p{place}", score=1.0),))
        assert disagrees(replace(BASE, bm25=first), "bm25") is expected
    nothing = Ranking(method="bm25", hits=())
    assert not disagrees(replace(BASE, bm25=nothing), "bm25")


def test_a_model_learns_that_agreement_is_a_sign_of_safety() -> None:
    learned = learn(cases(), "fused", None, ISSUE_RATE)
    low, high = (
        learned.model.probability(observe(BASE) | {f"{PREFIX}iou_3": share, f"{PREFIX}dense_gap_2": share})
        for share in (0.0, 1.0)
    )  # fmt: skip
    assert low > 0.35 > 0.15 > high
    assert learned.held is None
    said = [learned.model.probability(one.features) for one in cases()]
    assert np.mean(said) == pytest.approx(learned.rate, abs=0.01)
    assert {one.k for one in learned.reach} == {8}
    flag = next(one for one in learned.reach if one.least == learned.model.threshold)
    assert flag.recall >= 0.92
    # what is flagged at a higher probability is a part of it
    shares = [one.share for one in learned.reach]
    assert shares == sorted(shares, reverse=True)


def test_without_gold_probabilities_are_shifted_to_the_expected_rate() -> None:
    asked = cases(gold=False)
    for rate in (0.05, 0.2):
        learned = learn(asked, "fused", "rerank", rate)
        assert learned.reach == ()
        said = np.array([learned.model.probability(one.features) for one in asked])
        assert np.mean(said) == pytest.approx(rate, rel=0.25)
        # the shift moves the threshold, too: as many questions are flagged
        assert 0 < learned.model.threshold < 1
    flagged = [
        {
            one.question
            for one in asked
            if (of := learn(asked, "fused", "rerank", rate).model).probability(one.features)
            >= of.threshold
        }
        for rate in (0.05, 0.2)
    ]
    assert flagged[0] == flagged[1]


@pytest.mark.parametrize("rate", [0.02, 0.97])
def test_too_few_questions_of_either_kind_are_refused(rate: float) -> None:
    few = [replace(one, issue=int(one.question) < 200 * rate) for one in cases()]
    with pytest.raises(InputError, match="at least 10 are needed"):
        learn(few, "fused", None, ISSUE_RATE)


def test_reach_by_hand() -> None:
    said = np.array([0.9, 0.6, 0.3, 0.05])
    issue = np.array([True, True, True, False])
    absent = np.array([True, False, False, False])
    found = {one.least: one for one in reach(said, issue, absent, k=8, threshold=0.25)}
    assert (found[0.5].share, found[0.5].recall, found[0.5].mendable) == (0.5, 2 / 3, 0.5)
    assert (found[0.25].share, found[0.25].recall, found[0.25].mendable) == (0.75, 1.0, 1.0)
    gone = reach(said, issue, issue, k=8, threshold=0.25)
    assert {one.mendable for one in gone} == {None}


def test_the_threshold_is_the_largest_that_flags_the_share() -> None:
    said, issue = np.array([0.9, 0.5, 0.4, 0.8]), np.array([True, True, True, False])
    assert threshold_for(said, issue, 0.6) == 0.5
    assert threshold_for(said, issue, 1.0) == 0.4
