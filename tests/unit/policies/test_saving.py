"""Whether compressing pays: skipped where it costs more than it saves, never for a dose that is forced."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import TypeAdapter

from policies import savings as saving
from policies.fixed import Fixed
from policies.specs import parse
from posology.errors import InvalidQuery, InvalidRecord
from posology.types import Decision, Dose, Saving, Situation
from tests.support.examples import examples
from tests.support.routers import router, router_spec
from tests.support.situations import QUERY, retrieved
from tests.unit.policies.tables import table

RETRIEVED = retrieved([range(8)] * 4, [1.0] * 8, 1)
DECISION = TypeAdapter(Decision)
#: compresses in any state
TABLE = table(actions=(0.2,))
POLICIES = ("router:preflight=off,keep=0.3", "affordable:keep=0.4", "doubling:compressor=summing")

dollars = st.decimals(0, 1, places=6)
savings = st.builds(
    Saving,
    compressor=st.just("summing"),
    tokens=st.integers(0, 10_000),
    whole=dollars,
    left=st.floats(0, 1),
    cost=dollars,
    seconds=st.none() | st.floats(0, 100),
)


def situation(of: Saving | None, **other: object) -> Situation:
    given = Situation(query=QUERY, retrieval=RETRIEVED, saving=lambda _: of)
    return replace(given, **other)  # type: ignore[arg-type]


def worth(whole: str, cost: str, left: float = 0.2) -> Saving:
    return Saving(
        compressor="summing",
        tokens=3_000,
        whole=Decimal(whole),
        left=left,
        cost=Decimal(cost),
        seconds=2.0,
    )


@examples(50)
@given(found=savings)
def test_it_is_skipped_exactly_where_it_saves_less_than_it_costs(found: Saving) -> None:
    saved = found.whole * (1 - Decimal(repr(found.left)))
    for text in POLICIES:
        policy = parse(text).policy()
        wanted = policy(situation(None)).dose
        assert wanted.strategy == "compressed"
        decision = policy(situation(found))
        if saved < found.cost:
            # the same passages by the same rungs
            assert decision.dose == replace(wanted, strategy="direct", keep=None, compressor=None)
            assert "skipped" in decision.reason
        else:
            assert decision.dose == wanted
        assert sum(step.startswith("Saving: summing") for step in decision.steps) == 1


@examples(50)
@given(found=savings)
def test_it_is_decided_the_same_from_its_record(found: Saving) -> None:
    for text in POLICIES:
        policy = parse(text).policy()
        decision = policy(situation(found))
        kept = DECISION.validate_json(DECISION.dump_json(decision))
        assert policy.replay(kept) == decision
        recorded = saving.recorded(kept.features)
        assert recorded is not None
        assert saving.weigh(recorded) == saving.weigh(found)


@given(found=savings)
def test_a_dose_that_is_forced_is_given(found: Saving) -> None:
    for dose in (Dose(strategy="compressed"), Dose(strategy="compressed", keep=0.1)):
        decision = Fixed(dose=dose)(situation(found))
        assert decision.dose == dose
        assert not any(name.startswith("saving") for name in decision.features)


def test_it_is_told_in_dollars() -> None:
    decision = parse("affordable:keep=0.2").policy()(situation(worth("0.0004", "0.0005")))
    assert decision.steps[-1] == (
        "Saving: summing would save about $0.00032 and costs $0.00050: skipped, and the passages are shown whole."
    )


def test_it_may_be_turned_off() -> None:
    decision = parse("affordable:keep=0.2,saving=off").policy()(situation(worth("0", "1")))
    assert decision.dose.strategy == "compressed"
    assert not any(name.startswith("saving") for name in decision.features)


def test_it_is_asked_of_what_is_compressed_alone() -> None:
    asked: list[Dose] = []

    def weigh(dose: Dose) -> Saving:
        asked.append(dose)
        return worth("1", "0")

    given = Situation(query=QUERY, retrieval=RETRIEVED, saving=weigh)
    assert parse("affordable").policy()(given).dose.strategy == "direct"
    assert asked == []
    parse("doubling:keep=0.3").policy()(given)
    assert [(dose.keep, dose.rungs) for dose in asked] == [(0.3, (2, 4, 8))]


def test_where_nothing_can_be_saved_nothing_is_weighed() -> None:
    decision = parse("affordable:keep=0.2").policy()(situation(None))
    assert decision.dose.strategy == "compressed"
    assert not any(step.startswith("Saving") for step in decision.steps)


def priced(direct: str, compressed: str) -> Callable[[Dose], Decimal]:
    def quote(dose: Dose) -> Decimal:
        each = Decimal(direct if dose.strategy == "direct" else compressed)
        return each * (dose.passages or 8)

    return quote


@pytest.mark.parametrize(
    ("left", "strategy"), [("1", "direct"), ("0.8", "direct"), ("0.7", "compressed")]
)
def test_what_does_not_pay_is_used_where_the_passages_whole_are_not_paid_for(
    left: str, strategy: str
) -> None:
    policy = parse("affordable:keep=0.2").policy()
    given = situation(worth("0.1", "0.2"), remaining=Decimal(left), quote=priced("0.1", "0.02"))
    decision = policy(given)
    assert decision.dose.strategy == strategy
    assert (decision.dose.passages, len(decision.offers)) == (None, 1 + (strategy == "compressed"))
    assert policy.replay(decision) == decision


def test_with_less_still_it_steps_down() -> None:
    policy = parse("affordable:keep=0.2").policy()
    given = situation(worth("0.1", "0.2"), remaining=Decimal("0.15"), quote=priced("0.1", "0.02"))
    # all passages compressed cost 0.16, and one whole 0.1
    assert policy(given).dose == Dose(strategy="direct", passages=1)


@pytest.mark.parametrize("name", ["saving.cost", "saving.left", "saving.tokens"])
def test_half_a_record_is_none(name: str) -> None:
    policy = parse("affordable:keep=0.2").policy()
    decision = policy(situation(worth("0.1", "0.2")))
    features = {key: value for key, value in decision.features.items() if key != name}
    with pytest.raises(InvalidRecord) as raised:
        policy.replay(replace(decision, features=features))
    assert raised.value.field == name


def test_a_record_of_before_it_was_weighed_is_decided_as_it_was() -> None:
    policy = parse("affordable:keep=0.2").policy()
    old = policy(situation(None))
    bare = {name: value for name, value in old.features.items() if name != "compressor"}
    assert policy.replay(replace(old, features=bare)).dose == old.dose


class TestNames:
    """Which compressor a dose is given by."""

    def test_a_policy_names_one(self) -> None:
        dose = (
            parse("router:preflight=off,doubling=off,compressor=leancontext_top")
            .policy()(situation(None))
            .dose
        )
        # who names a compressor wants it to be used: as much as it finds right
        assert dose == Dose(strategy="compressed", compressor="leancontext_top")

    def test_a_share_goes_with_it(self) -> None:
        dose = parse("affordable:keep=0.3,compressor=top+summing").policy()(situation(None)).dose
        assert dose == Dose(strategy="compressed", keep=0.3, compressor="top+summing")

    def test_cascades_nest(self) -> None:
        spec = router_spec("affordable:compressor=top+top:0.2+summing,keep=0.1")
        assert (spec.compressor, spec.keep) == ("top+top:0.2+summing", 0.1)

    def test_all_of_it_is_direct(self) -> None:
        dose = parse("affordable:keep=1,compressor=summing").policy()(situation(None)).dose
        assert dose == Dose(strategy="direct")

    def test_its_own_share_may_be_asked_for(self) -> None:
        dose = parse("affordable:keep=own").policy()(situation(None)).dose
        assert dose == Dose(strategy="compressed")

    @pytest.mark.parametrize("value", ["", "Lean Context", "../x", "top+"])
    def test_what_is_no_name_is_refused(self, value: str) -> None:
        with pytest.raises(InvalidQuery) as raised:
            parse(f"router:compressor={value}")
        assert raised.value.field == "policy"

    def test_stepping_down_keeps_it(self) -> None:
        policy = router("affordable:compressor=summing,keep=1")
        brief = replace(policy, doubling=None)
        asked = situation(None, remaining=Decimal(1), quote=priced("0.1", "0.02"))
        # direct over all fits
        assert brief(asked).dose == Dose(strategy="direct")

    def test_versions_differ_by_it(self) -> None:
        one, other = (parse(f"router:compressor={name}").policy() for name in ("a", "b"))
        assert one.version != other.version
        assert one.parts["compressor"] == "a"
        assert parse("router:saving=off").policy().version != parse("router").policy().version


class TestTables:
    """A table's shares are for the compressor that it learned with."""

    def test_they_are_given_by_its_compressor_whatever_is_configured(self) -> None:
        decision = parse("qtable").policy(TABLE, compressor="summing")(situation(None))
        assert decision.dose == Dose(strategy="compressed", keep=0.2, compressor="leancontext")
        assert "by leancontext, as it learned" in decision.steps[0]

    def test_the_configured_one_need_not_be_named(self) -> None:
        decision = parse("qtable").policy(TABLE, compressor="leancontext")(situation(None))
        assert decision.dose == Dose(strategy="compressed", keep=0.2)

    def test_another_that_is_asked_for_has_its_own_share_and_it_is_told(self) -> None:
        policy = parse("qtable:compressor=summing").policy(TABLE, compressor="leancontext")
        decision = policy(situation(None))
        assert decision.dose == Dose(strategy="compressed", compressor="summing")
        assert decision.steps[0].startswith("Q-table: it learned what leancontext leaves")
        assert not any(name.startswith("qtable.") for name in decision.features)
        assert policy.replay(decision) == decision

    def test_the_same_that_is_asked_for_is_named(self) -> None:
        policy = parse("qtable:compressor=leancontext").policy(TABLE, compressor="summing")
        assert policy(situation(None)).dose == Dose(
            strategy="compressed", keep=0.2, compressor="leancontext"
        )

    def test_elsewhere_it_is_decided_as_it_was(self) -> None:
        """What is configured where a record is read again decides nothing."""
        decision = parse("qtable").policy(TABLE, compressor="summing")(situation(None))
        again = parse("qtable").policy(TABLE, compressor="leancontext").replay(decision)
        assert again == decision
