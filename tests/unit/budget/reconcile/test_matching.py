"""What is drift, and what is not."""

from __future__ import annotations

import json
from dataclasses import replace
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from posology.budget.reconcile.bands import Band, compare
from posology.budget.reconcile.ours import Ours
from posology.budget.reconcile.report import Compared, Flaw, Group, Measure, Side, Verdict
from posology.errors import BadFile
from posology.types import Usage
from tests.unit.budget.reconcile.making import (
    DAY,
    MIDNIGHT,
    NOON,
    anthropic_cost_csv,
    anthropic_usage,
    compared,
    drifting,
    made,
    openai_costs,
    openai_csv,
    openai_usage,
    request_rows,
    requests_csv,
    requests_jsonl,
    silent,
    turned_away,
    written,
)

ZERO = Decimal(0)


def _figure(group: Group, measure: Measure) -> Compared:
    return next(one for one in group.compared if one.measure is measure)


@pytest.mark.parametrize(
    ("theirs", "verdict"),
    [
        (100, Verdict.EQUAL),
        (101, Verdict.WITHIN),
        (99, Verdict.WITHIN),
        (102, Verdict.DRIFT),
        (98, Verdict.DRIFT),
    ],
)
def test_a_drift_of_the_threshold_passes_and_more_does_not(theirs: int, verdict: Verdict) -> None:
    band = Band(known=100, least=100, most=100)
    found = compare(Measure.INPUT, band, theirs, threshold=Decimal("0.01"))
    assert (found.verdict, found.drift) == (verdict, theirs - 100)


@pytest.mark.parametrize(
    ("theirs", "unexplained", "verdict"),
    [
        (90, -10, Verdict.DRIFT),
        (100, 0, Verdict.EQUAL),
        (130, 0, Verdict.EXPLAINED),
        (150, 0, Verdict.EXPLAINED),
        (151, 1, Verdict.WITHIN),
        (160, 10, Verdict.DRIFT),
    ],
)
def test_what_unknown_attempts_can_have_come_to_is_no_drift(
    theirs: int, unexplained: int, verdict: Verdict
) -> None:
    band = Band(known=100, least=100, most=150)
    found = compare(Measure.OUTPUT, band, theirs, threshold=Decimal("0.01"))
    assert (found.unexplained, found.verdict) == (unexplained, verdict)


def test_nothing_on_both_sides_is_equal_and_something_on_one_is_all_of_it() -> None:
    assert compare(Measure.INPUT, Band(), 0, threshold=ZERO).verdict is Verdict.EQUAL
    found = compare(Measure.INPUT, Band(), 5, threshold=Decimal("0.99"))
    assert (found.relative, found.verdict) == (Decimal(1), Verdict.DRIFT)


def test_unknown_attempts_explain_what_the_provider_billed_for_them(tmp_path: Path) -> None:
    ours = [made("a"), silent("b"), silent("c")]
    # one of the two was answered, and nobody heard it
    heard = replace(ours[1], usage=Usage(input=1_500, output=400), cost=Decimal("0.009"))
    told = [ours[0], heard]
    paths = [
        written(tmp_path, "u", openai_usage(told)),
        written(tmp_path, "c", openai_costs(told)),
    ]
    found = compared(paths, ours, threshold=ZERO)
    assert found.agrees
    (group,) = found.groups
    assert (group.verdict, group.unknown) == (Verdict.EXPLAINED, 2)
    cost = _figure(group, Measure.COST)
    assert (cost.ours, cost.least, cost.most) == tuple(map(Decimal, ("0.0001", "0.0001", "0.0201")))
    assert (cost.drift, cost.unexplained) == (Decimal("0.009"), 0)


def test_more_than_unknown_attempts_can_have_cost_is_drift(tmp_path: Path) -> None:
    ours = [made("a"), silent("b")]
    heard = replace(ours[1], usage=Usage(input=1), cost=Decimal("0.0107"))
    path = written(tmp_path, "c", openai_costs([ours[0], heard]))
    found = compared([path], ours, threshold=Decimal("0.05"))
    assert not found.agrees
    assert found.unexplained_usd == Decimal("0.0007")
    # a hundredth more of a threshold, and it passes: 0.0007 of 0.0108
    assert compared([path], ours, threshold=Decimal("0.065")).agrees


def test_anthropic_is_not_asked_for_requests(tmp_path: Path) -> None:
    ours = [made("a", provider="anthropic", usage=Usage(input=5, cache_write_1h=9, output=1))]
    found = compared([written(tmp_path, "u", anthropic_usage(ours))], ours, threshold=ZERO)
    measures = {one.measure for one in found.groups[0].compared}
    assert Measure.REQUESTS not in measures
    assert Measure.CACHE_WRITE_1H in measures


def test_cents_are_explained_by_rounding(tmp_path: Path) -> None:
    ours = [made("a", provider="anthropic", cost="0.0149")]
    found = compared([written(tmp_path, "c.csv", anthropic_cost_csv(ours))], ours, threshold=ZERO)
    assert found.agrees
    assert found.groups[0].verdict is Verdict.EXPLAINED


def test_a_call_over_midnight_may_be_counted_on_either_day(tmp_path: Path) -> None:
    late = made("a", started=MIDNIGHT + DAY - 2.0, seconds=5.0)
    sure = [made("b", started=NOON), made("c", started=NOON + DAY)]
    theirs = [replace(late, started=late.started + 4), *sure]
    path = written(tmp_path, "u", openai_usage(theirs))
    found = compared([path], [late, *sure], threshold=ZERO, tolerance=60.0)
    assert found.agrees
    assert [(group.day, group.edge) for group in found.groups] == [
        ("2026-01-15", 1),
        ("2026-01-16", 1),
    ]
    assert {group.verdict for group in found.totals} == {Verdict.EQUAL}
    # well before midnight it belongs to its day alone
    early = replace(late, started=late.started - 120, ended=late.ended - 120)
    assert len(drifting(compared([path], [early, *sure], threshold=ZERO, tolerance=60.0))) == 2


def test_what_a_midnight_hides_on_each_day_is_seen_in_the_total_of_the_model(
    tmp_path: Path,
) -> None:
    late = made("a", started=MIDNIGHT + DAY - 2.0)
    sure = [made("b", started=NOON), made("c", started=NOON + DAY)]
    # as much of another model makes the sum of all right
    other = made("x", model="gpt-4o", started=NOON)
    path = written(tmp_path, "u", openai_usage([*sure, other]))
    found = compared([path], [late, *sure], threshold=Decimal("0.3"))
    assert [(group.day, group.model) for group in drifting(found)] == [
        ("2026-01-15", "gpt-4o-2024-08-06")
    ]
    totals = {group.model: group.verdict for group in found.totals}
    assert totals == {
        "gpt-4o-2024-08-06": Verdict.DRIFT,
        "gpt-4o-mini": Verdict.DRIFT,
        None: Verdict.EQUAL,
    }
    assert found.drifting == 2


def test_attempts_outside_the_exports_time_are_left_out(tmp_path: Path) -> None:
    ours = [made(f"d{n}", started=NOON + n * DAY) for n in range(-2, 3)]
    path = written(tmp_path, "u", openai_usage(ours[2:3]))
    found = compared([path], ours, threshold=ZERO)
    assert found.agrees
    (period,) = found.periods
    assert (period.start.timestamp(), period.end.timestamp()) == (MIDNIGHT, MIDNIGHT + DAY)
    wide = {"since": float(MIDNIGHT - DAY), "until": float(MIDNIGHT + DAY)}
    (missing,) = drifting(compared([path], ours, threshold=ZERO, **wide))
    assert (missing.day, missing.side) == ("2026-01-14", Side.OURS)


def test_exports_without_a_row_tell_nothing_unless_the_days_are_told(tmp_path: Path) -> None:
    path = written(tmp_path, "u.csv", openai_csv([]))
    with pytest.raises(BadFile, match="--since and --until"):
        compared([path], [made("a")])
    days = {"since": float(MIDNIGHT), "until": float(MIDNIGHT + DAY)}
    (group,) = drifting(compared([path], [made("a")], **days))
    assert group.side is Side.OURS
    assert "incomplete" in group.hint


def test_a_model_that_nobody_asked_for_is_measured_by_the_whole(tmp_path: Path) -> None:
    ours = [made("a", usage=Usage(input=99_000, output=99_000), cost="0.99")]
    strange = made("b", model="gpt-5.2", usage=Usage(input=1_000, output=1_000), cost="0.01")
    paths = [
        written(tmp_path, "u", openai_usage([*ours, strange])),
        written(tmp_path, "c", openai_costs([*ours, strange])),
    ]
    found = compared(paths, ours, threshold=Decimal("0.005"))
    # its one request is half of all; of tokens and dollars it is a hundredth
    (group,) = drifting(found)
    assert (group.model, group.side) == ("gpt-5.2", Side.THEIRS)
    assert "not in our ledger" in group.hint
    assert _figure(group, Measure.COST).relative == Decimal("0.01")
    quiet = compared(paths[1:], ours, threshold=Decimal("0.01"))
    assert quiet.agrees
    assert [group.verdict for group in quiet.groups] == [Verdict.EQUAL, Verdict.WITHIN]


def test_prices_that_differ_are_called_so(tmp_path: Path) -> None:
    ours = [made("a")]
    dearer = [replace(ours[0], cost=Decimal("0.0002"))]
    paths = [
        written(tmp_path, "u", openai_usage(ours)),
        written(tmp_path, "c", openai_costs(dearer)),
    ]
    (group,) = drifting(compared(paths, ours))
    assert "compare the prices" in group.hint


def test_costs_that_are_not_told_by_model_are_compared_by_day(tmp_path: Path) -> None:
    ours = [made("a"), made("b", model="gpt-4o", cost="0.002")]
    page = json.loads(openai_costs([replace(a, model="x") for a in ours]))
    for result in page["data"][0]["results"]:
        result["line_item"] = None
    paths = [written(tmp_path, "c", json.dumps(page)), written(tmp_path, "u", openai_usage(ours))]
    found = compared(paths, ours, threshold=ZERO)
    assert found.agrees
    assert [group.model for group in found.groups] == [None, "gpt-4o", "gpt-4o-mini"]
    assert [one.measure for one in found.groups[0].compared] == [Measure.COST]
    assert any("not grouped by model" in note for note in found.notes)


def test_both_providers_are_compared_at_once_each_for_its_own_time(tmp_path: Path) -> None:
    ours = [made("a"), made("b", provider="anthropic", started=NOON + DAY)]
    paths = [
        written(tmp_path, "u", openai_usage(ours[:1])),
        written(tmp_path, "v", anthropic_usage(ours[1:])),
    ]
    found = compared(paths, [*ours, made("c", provider="offline", model="x")], threshold=ZERO)
    assert found.agrees
    assert found.providers == ("anthropic", "openai")
    assert [(group.provider, group.day) for group in found.groups] == [
        ("openai", "2026-01-15"),
        ("anthropic", "2026-01-16"),
    ]


def test_hours_and_projects_of_a_day_are_added_up(tmp_path: Path) -> None:
    ours = [made(f"a{n}", started=MIDNIGHT + 3_600 * n + 600) for n in range(24)]
    result = json.loads(openai_usage(ours[:1]))["data"][0]["results"][0]
    buckets = [
        {"start_time": at, "end_time": at + 3_600, "results": [result | {"project_id": "p"}]}
        for at in range(MIDNIGHT, MIDNIGHT + DAY, 3_600)
    ]
    path = written(tmp_path, "u", json.dumps({"data": buckets}))
    found = compared([path], ours, threshold=ZERO, tolerance=0.0)
    assert found.agrees
    assert _figure(found.groups[0], Measure.REQUESTS).theirs == 24


# one row a request


def _requests(folder: Path, rows: list[dict[str, Any]], ours: list[Ours], **how: Any) -> Any:
    path = written(folder, "r.jsonl", "".join(json.dumps(row) + "\n" for row in rows))
    found = compared([path], ours, **({"threshold": ZERO} | how))
    assert found.requests is not None
    return found, found.requests


def test_our_own_id_names_a_request_of_which_no_reply_came(tmp_path: Path) -> None:
    ours = [made("a"), silent("b")]
    heard = replace(ours[1], usage=Usage(input=9, output=1), cost=ZERO, request_id="req_b")
    rows = request_rows([ours[0], heard])
    rows[1]["client_request_id"] = "b"
    found, requests = _requests(tmp_path, rows, ours)
    assert found.agrees
    assert (requests.matched, requests.explained) == (2, 0)


def test_a_call_without_a_reply_explains_one_row_within_its_bounds(tmp_path: Path) -> None:
    ours = [made("a"), silent("b"), silent("c", started=NOON - 7_200)]
    heard = [
        replace(ours[1], id=n, usage=Usage(input=9, output=1), cost=ZERO, request_id=n)
        for n in "xy"
    ]
    found, requests = _requests(tmp_path, request_rows([ours[0], *heard]), ours)
    assert (requests.explained, requests.only_theirs, requests.unbilled) == (1, 1, 1)
    (mismatch,) = requests.mismatches
    assert (mismatch.flaw, mismatch.request_id) == (Flaw.ONLY_THEIRS, "y")
    assert not found.agrees
    assert found.drifting == 1


@pytest.mark.parametrize(
    "changed",
    [
        {"prompt_tokens": 2_001, "cached_tokens": 0},
        {"completion_tokens": 501},
        {"cost_usd": "0.010001"},
        {"model": "gpt-5.2"},
        {"started_at": "2026-01-15T09:00:00Z"},
    ],
)
def test_a_row_beyond_a_calls_bounds_is_not_its_own(
    tmp_path: Path, changed: dict[str, Any]
) -> None:
    heard = made("x", usage=Usage(input=9, output=1), cost="0.001")
    for extra, explained in (({}, 1), (changed, 0)):
        rows = [*request_rows([made("a")]), request_rows([heard])[0] | extra]
        _, requests = _requests(tmp_path, rows, [made("a"), silent("b")])
        assert (requests.explained, requests.only_theirs) == (explained, 1 - explained)


def test_what_differs_is_added_up_without_regard_to_its_sign(tmp_path: Path) -> None:
    ours = [made("a"), made("b")]
    rows = request_rows(ours)
    rows[0]["completion_tokens"] += 5
    rows[1]["completion_tokens"] -= 5
    found, requests = _requests(tmp_path, rows, ours, threshold=Decimal("0.2"))
    total = next(t for t in requests.totals if t.measure is Measure.OUTPUT)
    assert (total.drift, total.unexplained, total.relative) == (0, 10, Decimal("0.25"))
    assert not found.agrees
    assert _requests(tmp_path, rows, ours, threshold=Decimal("0.25"))[0].agrees


def test_what_was_turned_away_and_yet_billed_differs(tmp_path: Path) -> None:
    ours = [turned_away("a"), made("b")]
    billed = replace(ours[0], usage=Usage(input=10, output=2), cost=Decimal("0.001"))
    found, requests = _requests(tmp_path, request_rows([billed, ours[1]]), ours)
    assert requests.differing == 1
    assert not found.agrees


def test_a_request_near_the_end_of_the_time_may_be_in_the_next_export(tmp_path: Path) -> None:
    ours = [made("a"), made("b", started=MIDNIGHT + DAY - 1.0, seconds=0.5)]
    found, requests = _requests(tmp_path, request_rows(ours[:1]), ours)
    assert found.agrees
    assert requests.only_ours == 0
    found, requests = _requests(tmp_path, request_rows(ours[:1]), ours, tolerance=0.0)
    assert requests.only_ours == 1
    assert not found.agrees


def test_requests_of_another_time_or_provider_are_left_out(tmp_path: Path) -> None:
    ours = [made("a"), made("b", started=NOON + DAY), made("c", provider="anthropic")]
    found, requests = _requests(tmp_path, request_rows(ours[:1]), ours)
    assert found.agrees
    assert (requests.matched, requests.only_ours) == (1, 0)


def test_an_export_without_a_request_is_refused(tmp_path: Path) -> None:
    path = written(tmp_path, "r.csv", requests_csv([]))
    with pytest.raises(BadFile, match="no request"):
        compared([path], [made("a")], provider="openai")
    path = written(tmp_path, "r.jsonl", requests_jsonl([made("a")]))
    with pytest.raises(BadFile, match="no request"):
        compared([path], [], since=float(MIDNIGHT + DAY))
