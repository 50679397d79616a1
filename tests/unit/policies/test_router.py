"""How the parts of the router come one after the other."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal
from typing import Any

import numpy as np
import pytest

from policies.calibration import Calibration, Model, Term, packaged
from policies.preflight import Prediction
from policies.qtable import ACTIONS, QTable
from policies.specs import parse
from posology.errors import InvalidRecord, PolicyMismatch
from posology.types import DECLINE, Decision, Dose, Rung, Situation
from tests.support.routers import router
from tests.support.situations import QUERY, by_passages, retrieved
from tests.unit.policies.tables import table

AGREE: Sequence[Sequence[int]] = [list(range(8))] * 4
#: the first three places share nothing: the published rule sees the issue
APART = [list(range(8)), list(range(8))[::-1], list(range(8)), list(range(8))]
#: what it sees is plain from two rankings
ROUTER = "router:preflight=published"
REFUSED = Rung(passages=8, first=0, usage=None, refused=True)


def situation(orders: Sequence[Sequence[int]] = AGREE, left: str | None = None) -> Situation:
    count = len(orders[0])
    return Situation(
        query=QUERY,
        retrieval=retrieved(orders, [1.0] * count, 1),
        remaining=None if left is None else Decimal(left),
        quote=by_passages(Decimal("0.1"), count),
    )


def keeping(share: float) -> QTable:
    """A table that keeps this share in each state."""
    q = np.zeros((3, len(ACTIONS)))
    q[:, ACTIONS.index(share)] = 1.0
    return table(q=q)


def steps(decision: Decision) -> list[str]:
    return [step.partition(":")[0].partition(" (")[0] for step in decision.steps]


def test_an_issue_is_given_to_briefcontext_and_nothing_else_is_asked() -> None:
    decision = parse(ROUTER).policy(keeping(0.1))(situation(APART))
    assert decision.dose == Dose(strategy="briefcontext")
    assert steps(decision) == ["Preflight"]
    assert decision.features["preflight.iou_3"] == 0


def test_without_an_issue_table_and_ladder_make_the_dose() -> None:
    decision = parse("router:preflight=published").policy(keeping(0.1))(situation())
    assert decision.dose == Dose(
        strategy="compressed", keep=0.1, rungs=(2, 8), overlapping=True, escalate=True
    )
    assert steps(decision) == ["Preflight", "Q-table", "Doubling"]
    assert decision.features["qtable.table"] == keeping(0.1).digest
    whole = parse("router:preflight=published").policy(keeping(1.0))(situation())
    assert (whole.dose.strategy, whole.dose.keep) == ("direct", None)


def test_parts_that_are_off_leave_no_trace() -> None:
    decision = parse("affordable").policy(keeping(0.1))(situation(APART))
    assert decision.dose == Dose(strategy="direct")
    assert not any("." in name for name in decision.features)


@pytest.mark.parametrize(
    ("text", "of", "keep"),
    [
        # money alone allows compression: the most that LeanContext's actions keep, or the table's share
        ("router:preflight=published,doubling=off", None, 0.4),
        ("router:preflight=published,doubling=off", 1.0, 0.4),
        ("router:preflight=published,doubling=off", 0.15, 0.15),
        ("router:preflight=published,doubling=off,qtable=off,keep=0.25", None, 0.25),
    ],
)
def test_what_is_too_dear_for_briefcontext_is_compressed(
    text: str, of: float | None, keep: float
) -> None:
    policy = parse(text).policy(keeping(of) if of is not None else None)
    decision = policy(situation(APART, left="0.9"))
    assert decision.dose == Dose(strategy="compressed", keep=keep)
    assert steps(decision)[-1] == "Money"
    assert "stepped down" in decision.reason
    assert [offer.fits for offer in decision.offers] == [False, True]


def test_a_falling_cap_steps_down_to_the_last() -> None:
    policy = parse(ROUTER).policy()
    asked = situation(APART)
    given = []
    for left in ("9", "2.7", "2", "0.9", "0.5", "0.45", "0.3", "0.25", "0.2", "0.1"):
        decision = policy(replace(asked, remaining=Decimal(left)))
        given.append(decision.dose)
        assert decision.steps[-1].startswith("Money: ")
        assert f"${left} " in decision.steps[-1]
    assert list(dict.fromkeys(given)) == [
        Dose(strategy="briefcontext"), Dose(strategy="compressed", keep=0.4),
        Dose(strategy="compressed", keep=0.2), Dose(strategy="direct", passages=1),
        Dose(strategy=DECLINE),
    ]  # fmt: skip
    assert "$0.2: declined" in decision.reason


@pytest.mark.parametrize(
    ("text", "of", "left", "keep"),
    [
        # the largest share that is paid for
        ("router:preflight=published,doubling=off", None, "0.41", 0.2),
        ("router:preflight=published,doubling=off,step_down=0.5/0.3", None, "0.41", 0.3),
        ("router:preflight=published,doubling=off,step_down=off", None, "0.41", None),
        # the table's first, or the policy's, and then what is less than that
        ("router:preflight=published,doubling=off", 0.35, "0.37", 0.2),
        ("router:preflight=off,doubling=off,keep=0.35", None, "0.37", 0.2),
        ("router:preflight=off,doubling=off,keep=0.35,step_down=off", None, "0.37", None),
    ],
)
def test_the_largest_share_that_is_paid_for_is_kept(
    text: str, of: float | None, left: str, keep: float | None
) -> None:
    policy = parse(text).policy(keeping(of) if of is not None else None)
    decision = policy(situation(APART, left=left))
    smaller = Dose(strategy="direct", passages=2)
    assert decision.dose == (Dose(strategy="compressed", keep=keep) if keep else smaller)
    assert policy.replay(decision) == decision


def test_a_rewriter_that_is_too_dear_leaves_the_passages_whole() -> None:
    def quote(dose: Dose) -> Decimal:
        """The rewriter's call reads what it spares the other, and comes on top of it."""
        read = dose.rungs[0] if dose.rungs else dose.passages or 8
        return Decimal(read) * (2 if dose.strategy == "compressed" else 1) / 10

    policy = parse("doubling:start=4,compressor=query_summary,saving=off").policy()
    wanted = Dose(strategy="compressed", compressor="query_summary", rungs=(4, 8), escalate=True)
    rich = replace(situation(left="0.8"), quote=quote)
    assert policy(rich).dose == wanted
    decision = policy(replace(rich, remaining=Decimal("0.4")))
    # by the same ladder
    assert decision.dose == replace(wanted, strategy="direct", compressor=None)
    assert [offer.fits for offer in decision.offers] == [False, True]
    assert "stepped down to direct, by 4, 8 passages, $0.4" in decision.reason
    assert policy.replay(decision) == decision


def test_a_ladder_begins_where_its_first_rung_is_paid_for() -> None:
    policy = parse("doubling").policy()
    assert policy(situation(left="0.3")).dose.rungs == (2, 4, 8)
    assert policy(situation(left="0.29")).dose == Dose(strategy="direct", passages=1)


def test_a_refused_ladder_goes_to_briefcontext_or_nowhere() -> None:
    policy = parse(ROUTER).policy(keeping(0.1))
    asked = replace(situation(left="3"), tried=(REFUSED,))
    decision = policy(asked)
    assert decision.dose == Dose(strategy="briefcontext")
    assert decision.features["tried"] == 8
    assert "8 of 8 passages were read" in decision.steps[0]
    poor = policy(replace(asked, remaining=Decimal("2.6")))
    assert poor.dose == Dose(strategy=DECLINE)
    assert [offer.dose.strategy for offer in poor.offers] == ["briefcontext"]


def test_where_nothing_was_found_there_is_nothing_to_decide() -> None:
    decision = parse(ROUTER).policy(keeping(0.1))(situation([[], [], [], []], left="0"))
    assert decision.dose == Dose(strategy="direct")
    assert not decision.offers
    assert decision.features["passages"] == 0
    assert not any("." in name for name in decision.features)


def test_a_table_of_another_embedder_is_refused() -> None:
    with pytest.raises(PolicyMismatch):
        parse("qtable").policy(table(dim=6))(situation())


@pytest.mark.parametrize("missing", ["passages", "tried", "preflight.iou_3"])
def test_a_record_without_what_is_looked_at_is_refused(missing: str) -> None:
    policy = parse(ROUTER).policy()
    decision = policy(situation())
    features = {name: value for name, value in decision.features.items() if name != missing}
    with pytest.raises(InvalidRecord) as raised:
        policy.replay(replace(decision, features=features))
    assert raised.value.field == missing


def test_the_calibrated_predictor_decides_for_the_vectors_that_it_learned_from_alone() -> None:
    trained = packaged().trained["embedder"]
    said = {
        embedder: parse("router").policy(embedder=embedder)(situation(APART)).steps[0]
        for embedder in (None, trained, "another:3")
    }
    assert "with probability" in said[None]
    assert said[trained] == said[None]
    assert "IoU" in said["another:3"]
    for embedder in said:
        policy = parse("router").policy(embedder=embedder)
        # the record says whose vectors they were, so that it is decided the same way by whoever reads it
        record = policy(situation(APART))
        assert parse("router").policy().replay(record) == record


@dataclass(frozen=True)
class Says:
    """A predictor that always says the same."""

    probability: float | None
    issue: bool = True
    certain: bool = True
    name: str = "says"
    version: str = "1"

    def __call__(self, features: Mapping[str, Any]) -> Prediction:
        return Prediction(
            issue=self.issue,
            probability=self.probability,
            reason="it says so",
            certain=self.certain,
        )


@pytest.mark.parametrize(
    ("says", "dose"),
    [
        (Says(0.6), Dose(strategy="briefcontext")),
        (Says(0.5), Dose(strategy="briefcontext")),
        # a predictor without probabilities is taken at its word
        (Says(None), Dose(strategy="briefcontext")),
        # unless it is a hint
        (Says(None, certain=False), Dose(strategy="direct", rungs=(8,), escalate=True)),
        # likely to stand beyond the first passages: they would be read in vain
        (Says(0.49), Dose(strategy="direct", rungs=(8,), escalate=True)),
        (Says(0.49, issue=False), Dose(strategy="direct", rungs=(2, 8), escalate=True)),
    ],
)
def test_the_likelier_the_issue_the_more_is_read_at_once(says: Says, dose: Dose) -> None:
    policy = router("router")
    decision = replace(policy, preflight=says)(situation())
    assert decision.dose == dose
    assert decision.steps[0] == "Preflight (says): it says so"


def test_a_refused_ladder_leads_to_a_second_search_and_its_passages() -> None:
    policy = parse("doubling:escalate=search").policy()
    first = policy(situation())
    assert first.dose == Dose(strategy="direct", rungs=(2, 4, 8), escalate=True, search=True)
    assert first.steps[-1].endswith(", then a second search.")
    tried = (REFUSED,)
    retrieval = retrieved([list(range(13))] * 4, [1.0 / (i + 1) for i in range(13)], seed=1)
    then = policy(replace(situation(), tried=tried, retrieval=retrieval))
    assert then.dose == Dose(strategy="direct", skip=6)
    assert (
        then.reason
        == "Search: 8 passages were read without an answer that a quote supports: 5 others."
    )
    assert policy.replay(then) == then
    # nothing new: BriefContext reads what there is
    assert policy(replace(situation(), tried=tried)).dose == Dose(strategy="briefcontext")
    compressing = parse("doubling:escalate=search,keep=0.4").policy()
    again = compressing(replace(situation(), tried=tried, retrieval=retrieval)).dose
    assert again == Dose(strategy="compressed", keep=0.4, skip=6)
    assert parse("doubling").policy().version != policy.version


@pytest.mark.parametrize("name", ["router", "preflight", "router:issue=0"])
@pytest.mark.parametrize("predictor", ["auto", "calibrated"])
@pytest.mark.parametrize("order", ["late-0 of fused", "medcpt of dense"])
def test_an_order_without_a_calibration_never_leads_to_briefcontext_at_once(
    name: str, predictor: str, order: str
) -> None:
    asked = situation(APART)
    asked = replace(asked, retrieval=replace(asked.retrieval, order=order))
    settings = "," if ":" in name else ":"
    decision = parse(f"{name}{settings}preflight={predictor}").policy()(asked)
    # no more than direct RAG over the same passages
    assert (decision.dose.strategy, decision.dose.rungs) == (
        "direct",
        () if name == "preflight" else (8,),
    )
    assert decision.steps[0].startswith(
        f"Preflight ({predictor}): no calibration for passages in {order} order"
    )
    # chosen by name, the rule is followed
    assert parse(ROUTER).policy()(asked).dose == Dose(strategy="briefcontext")


def test_a_calibration_of_ones_own_comes_first() -> None:
    asked = situation(APART)
    term = Term(feature="iou_3", weight=0.0, mean=0.0, scale=1.0)
    sure = Model(intercept=9.0, threshold=0.5, terms=(term,))
    own = Calibration(models={"fused": sure, "mine": sure}, trained={"embedder": "another:3"})
    policy = parse("router").policy(embedder="another:3", calibration=own)
    assert policy(asked).dose == Dose(strategy="briefcontext")
    mine = replace(asked, retrieval=replace(asked.retrieval, order="mine"))
    assert policy(mine).dose == Dose(strategy="briefcontext")
    # of other vectors it knows nothing
    other = parse("router").policy(embedder="a third:3", calibration=own)
    assert "no calibration" in other(asked).steps[0]
    assert policy.version != parse("router").policy(embedder="another:3").version


def test_without_a_ladder_all_passages_are_in_one_call_anyway() -> None:
    policy = replace(router("router:doubling=off"), preflight=Says(0.2))
    assert policy(situation()).dose == Dose(strategy="direct")
    assert replace(policy, issue=0.0)(situation()).dose == Dose(strategy="briefcontext")
