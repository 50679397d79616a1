"""What a provider exports of our own attempts agrees with them, and what is tampered with is found."""

from __future__ import annotations

import json
from dataclasses import replace
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

from posology.budget.reconcile.ours import Ours
from posology.budget.reconcile.report import Flaw, Measure, Verdict
from posology.types import Usage
from tests.unit.budget.reconcile.making import (
    DAY,
    FORMATS,
    MIDNIGHT,
    billed,
    compared,
    drifting,
    made,
    request_rows,
    silent,
    turned_away,
    written,
)

EACH = [(provider, name) for provider, formats in FORMATS.items() for name in formats]
MODELS = {
    "openai": ("gpt-4o-mini", "gpt-4o", "gpt-5.2"),
    "anthropic": ("claude-sonnet-4-5", "claude-3-5-haiku-latest"),
}
count = st.integers(min_value=0, max_value=5_000)
slow = settings(
    max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)


@st.composite
def attempts(draw: st.DrawFn, provider: str) -> list[Ours]:
    """Attempts over three days that end well, are turned away, or end in silence."""
    found = []
    for n in range(draw(st.integers(min_value=1, max_value=12))):
        model = draw(st.sampled_from(MODELS[provider]))
        # half a minute from midnight at least, so that it is certain which day is meant
        at = MIDNIGHT + draw(st.integers(0, 2)) * DAY + draw(st.integers(120, DAY - 120))
        hour = draw(count) if provider == "anthropic" else 0
        usage = Usage(
            input=draw(count) + 1,
            cache_read=draw(count),
            cache_write_5m=draw(count),
            cache_write_1h=hour,
            output=draw(count),
            reasoning=draw(count),
        )
        cost = f"{Decimal(draw(st.integers(1, 10**12))) / 10**12:f}"
        how = draw(st.sampled_from(["ok", "ok", "ok", "429", "silent"]))
        named: dict[str, Any] = {"provider": provider, "model": model, "started": float(at)}
        if how == "ok":
            found.append(made(f"a{n}", usage=usage, cost=cost, **named))
        else:
            found.append((turned_away if how == "429" else silent)(f"a{n}", **named))
    assume(billed(found))
    return found


@pytest.mark.parametrize(("provider", "name"), EACH)
@slow
@given(data=st.data())
def test_our_own_attempts_agree_with_their_export(
    tmp_path: Path, provider: str, name: str, data: st.DataObject
) -> None:
    ours = data.draw(attempts(provider))
    path = written(tmp_path, name, FORMATS[provider][name](ours))
    found = compared([path], ours, threshold=Decimal(0))
    assert found.agrees
    exact = Verdict.EQUAL
    for group in (*found.groups, *found.totals):
        for one in group.compared:
            # the Console rounds to cents, in the row of each day and model
            least = Decimal("0.005") * 9 if name == "costs.csv" else 0
            assert abs(Decimal(one.drift)) <= least
            assert one.verdict is exact or name == "costs.csv"
    if found.requests is not None:
        assert found.requests.matched == len(billed(ours))
        assert found.requests.mismatches == ()
        assert all(total.drift == 0 for total in found.requests.totals)


@pytest.mark.parametrize("provider", FORMATS)
@slow
@given(data=st.data())
def test_pages_of_usage_and_of_costs_are_put_together(
    tmp_path: Path, provider: str, data: st.DataObject
) -> None:
    ours = data.draw(attempts(provider))
    names = ("usage.json", "costs.json")
    paths = [written(tmp_path, name, FORMATS[provider][name](ours)) for name in names]
    found = compared(paths, ours, threshold=Decimal(0))
    assert found.agrees
    assert found.unexplained_usd == 0
    for group in found.groups:
        if group.side == "both":
            measures = {one.measure for one in group.compared}
            assert {Measure.INPUT, Measure.OUTPUT, Measure.COST} <= measures


@pytest.mark.parametrize("tampering", ["removed", "twice", "changed", "strange"])
@slow
@given(data=st.data())
def test_a_tampered_request_is_found_and_named(
    tmp_path: Path, tampering: str, data: st.DataObject
) -> None:
    # silence may explain a row that nobody knows
    ours = billed(data.draw(attempts("openai")))
    rows = request_rows(ours)
    place = data.draw(st.integers(0, len(rows) - 1))
    hit = dict(rows[place])
    if tampering == "removed":
        assume(len(rows) > 1)
        del rows[place]
    elif tampering == "changed":
        rows[place]["completion_tokens"] += 7
    else:
        rows.append(hit | ({} if tampering == "twice" else {"request_id": "req_strange"}))
    text = "".join(json.dumps(row) + "\n" for row in rows)
    times = {"since": float(MIDNIGHT), "until": float(MIDNIGHT + 3 * DAY)}
    found = compared([written(tmp_path, "r.jsonl", text)], ours, threshold=Decimal(0), **times)
    assert not found.agrees
    assert found.requests is not None
    (mismatch,) = found.requests.mismatches
    flaw = {
        "removed": Flaw.ONLY_OURS,
        "twice": Flaw.TWICE,
        "changed": Flaw.DIFFERS,
        "strange": Flaw.ONLY_THEIRS,
    }[tampering]
    assert mismatch.flaw is flaw
    assert mismatch.request_id == ("req_strange" if tampering == "strange" else hit["request_id"])
    if tampering == "changed":
        (field,) = mismatch.fields
        assert (field.measure, field.unexplained) == (Measure.OUTPUT, 7)
        assert mismatch.where.endswith(f"r.jsonl:{place + 1}")


@pytest.mark.parametrize(("provider", "name"), [e for e in EACH if "requests" not in e[1]])
@slow
@given(data=st.data())
def test_an_attempt_that_is_missing_from_a_sum_is_found_on_its_day(
    tmp_path: Path, provider: str, name: str, data: st.DataObject
) -> None:
    ours = billed(data.draw(attempts(provider)))
    place = data.draw(st.integers(0, len(ours) - 1))
    # more than the Console rounds away
    hit = ours[place] = replace(ours[place], cost=(ours[place].cost or Decimal(0)) + 1)
    left = [*ours[:place], *ours[place + 1 :]]
    path = written(tmp_path, name, FORMATS[provider][name](left))
    times = {"since": float(MIDNIGHT), "until": float(MIDNIGHT + 3 * DAY)}
    found = compared([path], ours, threshold=Decimal(0), **times)
    assert not found.agrees
    (group,) = drifting(found)
    assert group.day == f"2026-01-{15 + int((hit.started - MIDNIGHT) // DAY)}"
    assert group.model == hit.model
    assert hit.usage is not None
    for one in group.compared:
        if one.measure is Measure.OUTPUT:
            assert one.unexplained == -hit.usage.total_output
        if one.measure is Measure.COST and name != "costs.csv":
            assert one.unexplained == -(hit.cost or 0)
