"""Policies by name, with settings."""

from __future__ import annotations

from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from policies.doubling import Doubling
from policies.fixed import Fixed
from policies.specs import POLICIES, parse
from posology.errors import InvalidQuery
from posology.types import Dose
from tests.support.routers import router, router_spec
from tests.unit.policies.tables import table


@pytest.mark.parametrize("name", list(POLICIES))
def test_a_name_is_its_preset(name: str) -> None:
    assert parse(name) == POLICIES[name].spec
    assert parse(f" {name} ").text == name


def test_settings_change_their_part_alone() -> None:
    spec = router_spec(
        "router:preflight=off, start=3,factor=1.5,rounds=2,overlapping=no,keep=0.2,escalate=off"
    )
    assert spec.preflight is None
    assert spec.doubling == Doubling(start=3, factor=1.5, rounds=2, overlapping=False)
    assert (spec.keep, spec.escalate, spec.qtable) == (0.2, False, True)
    again = router_spec("router:escalate=search")
    assert (again.escalate, again.search) == (True, True)
    with pytest.raises(InvalidQuery, match="escalate=twice: must be on, search or off"):
        parse("router:escalate=twice")
    assert router_spec("router:rounds=all").doubling == Doubling(start=2, factor=4)
    assert router_spec("affordable:doubling=on").doubling == Doubling()
    assert router_spec("doubling:doubling=off").doubling is None
    assert router("qtable:qtable=off", table()).table is None


@pytest.mark.parametrize(
    ("value", "shares"),
    [("0.4/0.2", (0.4, 0.2)), ("0.05", (0.05,)), ("off", ()), (" 0.9/0.5/0.1", (0.9, 0.5, 0.1))],
)
def test_shares_to_step_down_by_are_given_so(value: str, shares: tuple[float, ...]) -> None:
    policy = router(f"router:step_down={value}")
    assert policy.step_down == shares
    assert policy.version != parse("router").policy().version
    shown = policy.parts["settings"]
    assert shown.endswith(f"step down {'/'.join(map(str, shares)) or 'off'}")


def test_a_fixed_policy_gives_its_dose() -> None:
    policy = parse("fixed:strategy=compressed,keep=0.3,compressor=top+summing,passages=4").policy()
    dose = Dose(strategy="compressed", keep=0.3, compressor="top+summing", passages=4)
    assert policy == Fixed(dose=dose)


def test_the_policy_has_the_name_that_was_written() -> None:
    assert router("router:keep=0.2").name == "router:keep=0.2"


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("", "policy ''"),
        ("routter", "'routter': choose one of router"),
        ("fixed:start=2", "'start=2'"),
        ("fixed:passages=0", "passages=0"),
        ("fixed:keep=2", "keep=2"),
        ("router:", None),
        ("router:keep", "'keep'"),
        ("router:keeps=1", "'keeps=1'"),
        ("router:keep=1.5", "keep=1.5"),
        ("router:keep=nan", "keep=nan"),
        ("router:keep=much", "keep=much"),
        ("router:qtable=maybe", "qtable=maybe"),
        ("router:preflight=magic", "preflight=magic"),
        ("router:start=0", "start=0"),
        ("router:start=x", "start=x"),
        ("router:factor=1", "factor=1"),
        ("router:factor=inf", "factor=inf"),
        ("router:rounds=0", "rounds=0"),
        ("router:step_down=0.2/0.4", "step_down=0.2/0.4"),
        ("router:step_down=0.2/0.2", "step_down=0.2/0.2"),
        ("router:step_down=1/0.5", "step_down=1/0.5"),
        ("router:step_down=0.5/0", "step_down=0.5/0"),
        ("router:step_down=nan", "step_down=nan"),
        ("router:step_down=0.4/", "step_down=0.4/"),
    ],
)
def test_what_cannot_be_is_refused_and_named(text: str, told: str | None) -> None:
    if told is None:
        assert router(text).preflight is not None
        return
    with pytest.raises(InvalidQuery) as raised:
        parse(text)
    assert raised.value.field == "policy"
    assert told in raised.value.message


@given(st.text(max_size=60) | st.text("router:=,keponfstar0.1", max_size=40).map("router:".__add__))
def test_any_text_is_a_policy_or_refused(text: str) -> None:
    with suppress(InvalidQuery):
        assert parse(text).text == text.strip()
