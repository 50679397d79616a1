"""What every :class:`~posology.seams.Policy` must do."""

from __future__ import annotations

import json
from dataclasses import dataclass, replace
from decimal import Decimal

import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st
from pydantic import TypeAdapter

from policies.affordable import options
from policies.calibration import Calibration, Model, Term
from policies.fixed import Fixed
from policies.preflight import ORDERS, PREDICTORS, Calibrated
from policies.qtable import QTable
from policies.router import Router
from policies.specs import POLICIES, RouterSpec, parse
from posology.errors import InvalidRecord, PolicyMismatch
from posology.seams import Policy
from posology.types import DECLINE, Decision, Dose, Rung, Situation
from strategies import STRATEGIES, make
from tests.support.situations import QUERY, by_passages, retrieved, situations
from tests.unit.policies.tables import table

DECISION = TypeAdapter(Decision)
quick = settings(suppress_health_check=list(HealthCheck))


@dataclass(frozen=True, kw_only=True, slots=True)
class Named:
    """A policy and a name for the report."""

    name: str
    policy: Policy
    #: whether money decides, too
    limited: bool = True


def calibrated() -> Calibrated:
    """A predictor of few terms, for each order of showing."""
    terms = (
        Term(feature="iou_3", weight=-1.5, mean=0.4, scale=0.3),
        Term(feature="correlation", weight=-0.5, mean=0.2, scale=0.4),
    )
    model = Model(intercept=-0.3, threshold=0.4, terms=terms)
    return Calibrated(calibrations=(Calibration(models=dict.fromkeys(ORDERS, model)),))


#: one that keeps something else in each state, and one that knows too little of all
TABLE, UNKNOWN = table(), table(visits=2, fallback=0.2)
VARIANTS = (
    "router:qtable=off",
    "router:preflight=off,start=1,factor=3",
    "router:overlapping=off,rounds=2",
    "router:escalate=off,keep=0.3",
    "doubling:keep=0.1,start=3",
    "affordable:keep=0.4",
    "preflight:keep=0",
    "preflight:step_down=0.5/0.05,compressor=query_summary",
    "router:step_down=off,keep=own,saving=off",
    "qtable:doubling=on,rounds=1",
    *(f"preflight:preflight={name}" for name in PREDICTORS),
)


CALIBRATED = calibrated()


def _all() -> list[Named]:
    found = []
    for text in (*POLICIES, *VARIANTS):
        spec = parse(text)
        learns = isinstance(spec, RouterSpec) and spec.qtable
        tables: tuple[QTable | None, ...] = (None, TABLE, UNKNOWN) if learns else (None,)
        for number, one in enumerate(tables):
            name = text if one is None else f"{text}+table{number}"
            policy = spec.policy(one)
            found.append(Named(name=name, policy=policy, limited=isinstance(policy, Router)))
            if isinstance(policy, Router) and policy.preflight is not None:
                other = replace(policy, preflight=CALIBRATED)
                found.append(Named(name=f"{name}+calibrated", policy=other))
    doses = [Dose(strategy=name) for name in STRATEGIES] + [Dose(strategy="compressed", keep=0.1)]
    found += [
        Named(name=f"fixed {dose.strategy} {dose.keep}", policy=Fixed(dose=dose), limited=False)
        for dose in doses
    ]
    return found


ALL = _all()
LIMITED = [one for one in ALL if one.limited]


def own(decision: Decision) -> Decision:
    """Without what is not the policy's."""
    return replace(decision, versions={}, then=None)


@quick
@given(situation=situations())
def test_the_same_situation_gives_the_same_decision(situation: Situation) -> None:
    for one in ALL:
        assert one.policy(situation) == one.policy(situation)


@quick
@given(situation=situations())
def test_it_decides_the_same_from_its_record(situation: Situation) -> None:
    for one in ALL:
        decision = one.policy(situation)
        assert one.policy.replay(decision) == decision
        # as a job keeps it: with what others add, and through JSON
        kept = replace(decision, versions={"index": "index@3"}, then=decision)
        read = DECISION.validate_json(DECISION.dump_json(kept))
        assert read == kept
        assert one.policy.replay(read) == own(decision)
        assert read.then is not None
        assert one.policy.replay(read.then) == decision


@quick
@given(situation=situations())
def test_it_looks_at_plain_values_and_says_how_it_decided(situation: Situation) -> None:
    for one in ALL:
        decision = one.policy(situation)
        features = dict(decision.features)
        assert json.loads(json.dumps(features, allow_nan=False)) == features
        assert all(
            isinstance(value, str | int | float | bool | None) for value in features.values()
        )
        assert features["passages"] == len(situation.retrieval.passages)
        assert decision.reason
        assert decision.policy
        assert all(step.strip() for step in decision.steps)
        # versions and what comes after are its caller's
        assert not decision.versions
        assert decision.then is None


@quick
@given(situation=situations())
def test_its_doses_can_be_given(situation: Situation) -> None:
    for one in ALL:
        decision = one.policy(situation)
        passages = len(situation.retrieval.passages)
        for dose in (decision.dose, *(offer.dose for offer in decision.offers)):
            if dose.strategy == DECLINE:
                continue
            assert make(dose) is not None
            assert dose.passages is None or 1 <= dose.passages <= passages
            assert dose.keep is None or 0 <= dose.keep <= 1
            assert all(1 <= rung <= passages for rung in dose.rungs)
            assert not dose.escalate or dose.rungs


@quick
@given(situation=situations())
def test_nothing_costs_more_than_is_left(situation: Situation) -> None:
    for one in LIMITED:
        decision = one.policy(situation)
        left, quote = situation.remaining, situation.quote
        if left is None or quote is None or not situation.retrieval.passages:
            assert not decision.offers
            assert decision.dose.strategy != DECLINE
            continue
        *dear, last = decision.offers
        assert all(offer.worst == quote(offer.dose) for offer in decision.offers)
        assert all(offer.fits == (offer.worst <= left) for offer in decision.offers)
        assert not any(offer.fits for offer in dear)
        if decision.dose.strategy == DECLINE:
            assert not last.fits
        else:
            assert last.fits
            assert last.dose == decision.dose
            assert quote(decision.dose) <= left
        assert decision.remaining == left


@quick
@given(situation=situations())
def test_what_is_wanted_is_given_where_it_fits(situation: Situation) -> None:
    assume(situation.quote is not None and situation.retrieval.passages)
    assert situation.quote is not None
    for one in LIMITED:
        wanted = one.policy(replace(situation, remaining=None)).dose
        fits = situation.quote(wanted)
        assert one.policy(replace(situation, remaining=fits)).dose == wanted
        less = one.policy(replace(situation, remaining=fits - Decimal("1e-9"))).dose
        assert less != wanted


@quick
@given(situation=situations(), data=st.data())
def test_more_money_never_gives_a_smaller_dose(situation: Situation, data: st.DataObject) -> None:
    assume(situation.quote is not None and situation.retrieval.passages)
    less, more = sorted(data.draw(st.tuples(*[st.decimals(0, 2, places=6)] * 2)))
    for one in LIMITED:
        poor = one.policy(replace(situation, remaining=less))
        rich = one.policy(replace(situation, remaining=more))
        # the richer decision stops no later in the same order
        assert len(rich.offers) <= len(poor.offers)
        assert [o.dose for o in rich.offers] == [o.dose for o in poor.offers][: len(rich.offers)]


@pytest.mark.parametrize("one", LIMITED, ids=lambda one: one.name)
def test_refused_ladders_go_to_briefcontext_or_end(one: Named) -> None:
    retrieval = retrieved([range(8)] * 4, [1.0] * 8, 1)
    tried = (Rung(passages=8, first=0, usage=None, refused=True),)
    quote = by_passages(Decimal("0.1"), 8)
    asked = Situation(query=QUERY, retrieval=retrieval, quote=quote, tried=tried)
    assert one.policy(asked).dose == Dose(strategy="briefcontext")
    assert one.policy(replace(asked, remaining=Decimal(100))).dose.strategy == "briefcontext"
    poor = one.policy(replace(asked, remaining=Decimal("2.6")))
    assert poor.dose.strategy == DECLINE
    # a smaller dose than the one that was refused is not offered
    assert len(poor.offers) == 1


@pytest.mark.parametrize("one", LIMITED, ids=lambda one: one.name)
def test_a_record_of_something_else_is_refused(one: Named) -> None:
    with pytest.raises(InvalidRecord):
        one.policy.replay(Decision(dose=Dose(strategy="direct"), policy="x", reason="y"))


def test_another_table_does_not_decide_from_the_record() -> None:
    situation = Situation(query=QUERY, retrieval=retrieved([range(5)] * 4, [1.0] * 5, 1))
    decision = parse("qtable").policy(TABLE)(situation)
    with pytest.raises(PolicyMismatch):
        parse("qtable").policy(UNKNOWN).replay(decision)
    # without a table there is nothing that could be taken for the other's state
    assert parse("qtable").policy(None).replay(decision).dose == Dose(strategy="direct")


def test_a_dose_that_was_not_priced_cannot_be_decided_for() -> None:
    retrieval = retrieved([range(5)] * 4, [1.0] * 5, 1)
    quote = by_passages(Decimal("0.1"), 5)
    situation = Situation(query=QUERY, retrieval=retrieval, remaining=Decimal(1), quote=quote)
    decision = parse("affordable").policy()(situation)
    with pytest.raises(InvalidRecord) as raised:
        parse("affordable:keep=0.3").policy().replay(decision)
    assert raised.value.field == "offers"


def test_equal_versions_decide_alike() -> None:
    orders = [range(8), range(8)[::-1], range(8), range(8)]
    asked = [
        Situation(query=QUERY, retrieval=retrieved(order, [1.0] * 8, seed))
        for seed, order in enumerate([[range(8)] * 4, orders])
    ]
    decided: dict[str, list[Dose]] = {}
    for one in LIMITED:
        doses = [one.policy(situation).dose for situation in asked]
        assert decided.setdefault(one.policy.version, doses) == doses, one.name
    assert len(decided) > len(POLICIES)
    again = [parse(text).policy(TABLE).version for text in POLICIES]
    assert again == [parse(text).policy(TABLE).version for text in POLICIES]


def test_parts_tell_what_a_version_is_of() -> None:
    whole, part = parse("router").policy(TABLE), parse("router:start=3").policy(TABLE)
    assert {k for k in whole.parts if whole.parts[k] != part.parts[k]} == {"doubling"}
    assert whole.parts["qtable"] == TABLE.digest
    assert whole.version != part.version
    assert "qtable" not in parse("router").policy(None).parts


def test_the_wanted_dose_is_considered_first() -> None:
    wanted = Dose(strategy="briefcontext")
    compressed = Dose(strategy="compressed", keep=0.2)
    assert next(iter(options(wanted, passages=4, compressed=[compressed]))) == wanted
