"""Learning of preflight's calibrations: what features a model may see, and what its probabilities mean."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, cast

import numpy as np
import pytest

from orchestrator.question.embedding import Spend
from orchestrator.settings import Settings
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
from orchestrator.training.calibration.rows import open_run
from orchestrator.training.calibration.run import Made, Wanted, calibrate, describe
from orchestrator.training.qtable.questions import read_examples
from policies.calibration import Calibration, read, write
from policies.preflight import PREFIX, observe
from posology.errors import InputError
from posology.types import MODES, Hit, Query, Ranking, Retrieval
from tests.support.situations import retrieved

if TYPE_CHECKING:
    from orchestrator.service import Service

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
    rare, common = (learn(asked, "fused", "rerank", rate).model for rate in (0.05, 0.2))
    flagged = [
        {one.question for one in asked if model.probability(one.features) >= model.threshold}
        for model in (rare, common)
    ]
    assert flagged[0] == flagged[1]


@pytest.mark.parametrize("rate", [0.02, 0.97])
def test_too_few_questions_of_either_kind_are_refused(rate: float) -> None:
    few = [replace(one, issue=int(one.question) < 200 * rate) for one in cases()]
    with pytest.raises(InputError, match="at least 10 are needed"):
        learn(few, "fused", None, ISSUE_RATE)


class Index:
    """An index that is never read."""

    def __init__(self, version: str) -> None:
        self.version = version
        self.meta = SimpleNamespace(embedder="hash-4")


class Searching:
    """A service whose rankings come from the question's number."""

    def __init__(self, version: str = "index@1", broken: int | None = None) -> None:
        self.index = Index(version)
        self.asked: list[str] = []
        self._broken = broken

    def order(self, mode: str) -> str:
        return f"late-0 of {mode}"

    async def search(self, query: Query, *, k: int, mode: str, spend: Spend) -> Retrieval:
        assert spend.tenant == "t"
        if len(self.asked) == self._broken:
            raise InputError("it broke")
        self.asked.append(query.text)
        random = np.random.default_rng(len(query.text))
        orders = [random.permutation(k).tolist() for _ in range(4)]
        found = retrieved(orders, sorted(random.random(k).tolist(), reverse=True), 1)
        shown = Ranking(method="reranked", hits=found.fused.hits)
        return replace(
            found, order=self.order(mode), reranked=shown, index_version=self.index.version,
            passages=tuple(found.passages[i] for i in random.permutation(k)),
        )  # fmt: skip


def wanted(count: int = 60) -> Wanted:
    lines = [
        json.dumps({"question": f"Why{'?' * (1 + number)}"}).encode() for number in range(count)
    ]
    return Wanted(examples=read_examples(lines, Settings()), k=8, mode="fused", rate=ISSUE_RATE)


async def run(service: Searching, path: Path, before: Calibration | None = None) -> Made:
    with open_run(path) as file:
        return await calibrate(
            wanted(), file, cast("Service", service), Spend(tenant="t"), before=before, tick=lambda _: None
        )  # fmt: skip


@pytest.mark.anyio
async def test_without_gold_an_order_is_calibrated_against_a_held_ranking(tmp_path: Path) -> None:
    path = tmp_path / "run.jsonl"
    broken = Searching(broken=25)
    with pytest.raises(InputError, match="it broke"):
        await run(broken, path)
    # what was retrieved before is kept
    service = Searching()
    made = await run(service, path)
    assert (made.order, made.retrieved) == ("late-0 of fused", 60 - 25)
    assert not set(service.asked) & set(broken.asked)
    facts = made.calibration.trained["orders"]["late-0 of fused"]
    assert (facts["held"], facts["questions"], facts["reach"]) == ("fused", 60, [])
    assert read(write(made.calibration), path="c").version == made.calibration.version
    (order,) = describe(made.calibration, 0.5).orders
    assert (order.held, order.reach) == ("fused", ())
    # an index that has changed is asked again, and other orders are kept
    other = Calibration(
        models={"dense": made.calibration.models["late-0 of fused"]}, trained={"embedder": "hash-4"}
    )
    later = await run(Searching("index@2"), path, other)
    assert later.retrieved == 60
    assert set(later.calibration.models) == {"dense", "late-0 of fused"}


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
