"""The checker of ``evals.fire`` finds nothing in a clean run, and each planted defect as what it is."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from evals.fire.checker import Kind, check
from tests.support.fire_runs import (
    AFTER,
    BEFORE,
    BETA,
    BOUND,
    CAP,
    COST,
    LATER,
    LATEST,
    Recorder,
    answer,
    clean,
    events,
    upload,
    view,
)

ROOT = Path(__file__).resolve().parents[3]
PRODUCT = ("orchestrator", "policies", "posology", "prompts", "strategies", "workers")


def lost_job(run: Recorder) -> None:
    run.exchange("alpha", view("job_9", "queued"), status=202, key="k9")


def lost_row(run: Recorder) -> None:
    run.exchange("beta", {"id": "batch_1", "total": 2})


def lost_upload(run: Recorder) -> None:
    run.exchange("beta", {**upload("waiting"), "id": "ingest_9"}, status=202)


def second_outcome(run: Recorder) -> None:
    run.exchange("alpha", view("job_1", "failed"))


def second_end(run: Recorder) -> None:
    run.exchange("alpha", events("queued", "cancelled", "succeeded"), events_of="job_1", after=None)


def early_outcome(run: Recorder) -> None:
    run.exchange("alpha", events("succeeded", "queued"), events_of="job_1", after=None)


def changed_answer(run: Recorder) -> None:
    other = view("job_1", "succeeded")
    other["result"] = {**answer(), "answer": "It did not."}
    run.exchange("alpha", other)


def doubled_job(run: Recorder) -> None:
    run.exchange("beta", view("job_3", "succeeded"), key="k2")


def paid_again(run: Recorder) -> None:
    run.attempt("a9", "alpha", ("settle", COST, True))
    run.billed("a9", "alpha", "d1")


def double_charge(run: Recorder) -> None:
    run.entry("alpha", "a1", "settle", reserved=0, spent=COST, known="1")
    run.books[0]["nano"] = 2 * COST


def sent_twice(run: Recorder) -> None:
    run.books.append({**run.books[0], "id": "req_again"})


def missing_charge(run: Recorder) -> None:
    run.billed("a9", "alpha", "d9")


def wrong_charge(run: Recorder) -> None:
    run.books[0]["nano"] += 1


def released_charge(run: Recorder) -> None:
    """Taken for not sent, and billed."""
    run.attempt("a9", "alpha", ("release", 0, True))
    run.billed("a9", "alpha", "d9")


def believed_zeros(run: Recorder) -> None:
    """The reply said 0 for every count: it was settled as free, and billed."""
    run.attempt("a9", "alpha", ("settle", 0, True))
    run.billed("a9", "alpha", "d9")


def stale_price(run: Recorder) -> None:
    """Charged by the list of before, after every process had the new one."""
    run.attempt("a9", "alpha", ("settle", COST, True))
    run.billed("a9", "alpha", "d9", prices=AFTER)


def invented_charge(run: Recorder) -> None:
    run.attempt("a9", "alpha", ("settle", COST, True))


def over_cap(run: Recorder) -> None:
    """For an instant."""
    for amount in (CAP, -CAP):
        change = {"kind": "change", "at": 0.0, "tenant": "alpha", "changes": {"reserved:total": amount}}  # fmt: skip
        run.monitor.insert(-3, change)


def over_daily_cap(run: Recorder) -> None:
    """A charge above its bound, of another day, allows for nothing on this one."""
    charge = {"outcome": "lost", "known": "0", "bound": 0, "charged": 2 * COST}
    run.entry("alpha", "a9", "lose", day="2026-01-14", reserved=0, spent=2 * COST, **charge)
    run.snapshot("alpha", caps={"day": 3 * COST})


def leaked_reservation(run: Recorder) -> None:
    run.entry("alpha", "a9", "reserve", reserved=BOUND, spent=0)


def drift(run: Recorder) -> None:
    run.monitor[-1]["counters"]["spent:total"] += 1


def wrong_offset(run: Recorder) -> None:
    for record in run.records:
        body = record.get("body")
        if isinstance(body, dict) and (result := body.get("result")):
            result["evidence"][0]["start"] += 1


def cross_tenant_row(run: Recorder) -> None:
    run.exchange("alpha", {"rows": []})
    run.records[-1]["words"].append(BETA)


def cross_tenant_prompt(run: Recorder) -> None:
    run.books[0]["words"].append(BETA)


def failed_request(run: Recorder) -> None:
    run.exchange("alpha", {"type": "urn:posology:problem:internal-error"}, status=500)


def failed_job(run: Recorder) -> None:
    error = {"type": "PosologyError", "message": "internal error: KeyError: 'x'"}
    run.exchange("beta", {**view("job_9", "failed"), "error": error}, status=200)


def failed_upload(run: Recorder) -> None:
    run.exchange("beta", upload("failed", "Defect"))


def failed_command(run: Recorder) -> None:
    run.write("command", command="sync", status=70)


def stack_ended(run: Recorder) -> None:
    run.write("stack ended", status=1)


def failed_drill(run: Recorder) -> None:
    run.write("drill", page="Restore a backup", command="ledger verify --all", status=1, may=[0])


PLANTED: dict[Callable[[Recorder], None], Kind] = {
    lost_job: Kind.LOST_JOB,
    lost_row: Kind.LOST_JOB,
    lost_upload: Kind.LOST_JOB,
    second_outcome: Kind.SECOND_OUTCOME,
    second_end: Kind.SECOND_OUTCOME,
    early_outcome: Kind.EARLY_OUTCOME,
    changed_answer: Kind.CHANGED_ANSWER,
    doubled_job: Kind.DOUBLED_JOB,
    paid_again: Kind.PAID_AGAIN,
    double_charge: Kind.DOUBLE_CHARGE,
    sent_twice: Kind.DOUBLE_CHARGE,
    missing_charge: Kind.MISSING_CHARGE,
    wrong_charge: Kind.WRONG_CHARGE,
    released_charge: Kind.WRONG_CHARGE,
    believed_zeros: Kind.WRONG_CHARGE,
    stale_price: Kind.WRONG_CHARGE,
    invented_charge: Kind.INVENTED_CHARGE,
    over_cap: Kind.OVER_CAP,
    over_daily_cap: Kind.OVER_CAP,
    leaked_reservation: Kind.LEAKED_RESERVATION,
    drift: Kind.DRIFT,
    wrong_offset: Kind.WRONG_QUOTE,
    failed_request: Kind.INTERNAL_ERROR,
    failed_job: Kind.INTERNAL_ERROR,
    failed_upload: Kind.INTERNAL_ERROR,
    failed_command: Kind.INTERNAL_ERROR,
    stack_ended: Kind.STACK_ENDED,
    failed_drill: Kind.RUNBOOK,
    cross_tenant_row: Kind.LEAK,
    cross_tenant_prompt: Kind.LEAK,
}


def kinds(run: Recorder) -> set[Kind]:
    return {finding.kind for finding in check(run.run).findings}


def test_a_clean_run_gives_no_finding() -> None:
    verdict = check(clean().run)
    assert verdict.findings == ()
    assert verdict.jobs == {"succeeded": 3, "cancelled": 1}
    assert (verdict.money.billed, verdict.money.billed_unknown, verdict.quotes) == (4, 1, 3)
    assert verdict.money.due == 4 * COST
    assert verdict.money.charged == 4 * COST + BOUND
    assert (verdict.money.repriced, verdict.money.repriced_charged) == (1, COST)
    assert verdict.caps.peak == (2 * COST + BOUND) / CAP


@pytest.mark.parametrize("plant", PLANTED, ids=lambda plant: plant.__name__)
def test_a_planted_defect_is_found_as_what_it_is(plant: Callable[[Recorder], None]) -> None:
    run = clean()
    plant(run)
    for tenant in ("alpha", "beta"):
        # what is planted in the ledger is in the counters as well, and vice versa
        if plant not in (drift, over_cap):
            run.snapshot(tenant)
    assert kinds(run) == {PLANTED[plant]}


def test_replies_of_zeros_are_charged_at_their_bounds_and_counted_as_unknown() -> None:
    run = clean()
    limit = {"total": 2 * CAP}
    run.monitor.append({"kind": "caps", "at": 0.0, "tenant": "beta", "caps": limit})
    run.attempt("a9", "alpha", ("settle", BOUND, False))
    run.billed("a9", "alpha", "d9")
    # an error in a reply of status 200 before any work, and one of unknown billing
    run.attempt("a10", "beta", ("settle", 0, True))
    run.billed("a10", "beta", "d10", finished=False)
    run.attempt("a11", "beta", ("settle", BOUND, False))
    run.billed("a11", "beta", "d11", finished=False)
    run.snapshot("alpha")
    run.snapshot("beta", caps=limit)
    verdict = check(run.run)
    assert verdict.findings == ()
    money = verdict.money
    assert (money.billed_unknown, money.billed_unknown_charged) == (2, 2 * BOUND)
    assert (money.unbilled_unknown, money.unbilled_unknown_charged) == (1, BOUND)
    assert verdict.caps.overshoot == 0


def test_a_batch_may_be_fetched_in_the_next_piece_which_has_other_prices() -> None:
    run = clean()
    run.billed("a9", "alpha", "d9", prices=AFTER)
    run.books[-1]["played"] = "batch"
    run.write("piece")
    run.listed(BEFORE)
    run.attempt("a9", "alpha", ("settle", COST, True), prices=BEFORE)
    run.snapshot("alpha")
    assert check(run.run).findings == ()


def test_a_batch_may_be_fetched_two_changes_of_prices_later() -> None:
    run = clean()
    run.billed("a9", "alpha", "d9", prices=AFTER)
    run.books[-1]["played"] = "batch"
    for prices in (LATER, LATEST):
        run.listed(prices)
        run.write("priced")
    run.attempt("a9", "alpha", ("settle", COST // 2, True), prices=LATEST)
    run.snapshot("alpha")
    assert check(run.run).findings == ()


def test_no_batch_is_charged_by_a_list_that_was_replaced_before_it() -> None:
    run = clean()
    run.listed(LATEST)
    run.write("priced")
    run.billed("a9", "alpha", "d9", prices=LATEST)
    run.books[-1]["played"] = "batch"
    run.attempt("a9", "alpha", ("settle", COST, True), prices=BEFORE)
    run.snapshot("alpha")
    assert kinds(run) == {Kind.WRONG_CHARGE}


def test_every_kind_is_planted() -> None:
    assert set(PLANTED.values()) == set(Kind)


def test_the_checker_imports_nothing_of_the_product() -> None:
    code = (
        "import sys, evals.fire.checker; "
        f"print(*sorted({{m.split('.')[0] for m in sys.modules}} & set({PRODUCT!r})))"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=ROOT
    )
    assert done.stdout.split() == []
