"""A folder of reports as operators keep it: an evaluation of two policies, and reconciliations."""

from __future__ import annotations

from datetime import UTC, datetime
from decimal import Decimal
from pathlib import Path

from orchestrator.evaluation.forms import (
    DifferenceMeasured,
    EvalEstimate,
    EvalOutput,
    Measured,
    Outcome,
)
from orchestrator.evaluation.measures import Cell, measured
from posology.budget.reconcile.report import (
    Compared,
    ComparedPeriod,
    Group,
    Kind,
    Measure,
    ReconcileOutput,
    Side,
    Verdict,
)
from tests.unit.evaluation.test_measures import row

_START, _END = datetime(2026, 11, 1, tzinfo=UTC), datetime(2026, 11, 8, tzinfo=UTC)


def evaluation(extra: str = "") -> EvalOutput:
    """Two policies on the same questions; each name ends with ``extra``."""
    model = "openai:gpt-6-luna"
    cells = [
        measured(
            Cell(suite=f"pubmedqa{extra}", policy=f"{policy}{extra}", model=model),
            [row(n, Outcome.RIGHT if n % every else Outcome.WRONG) for n in range(60)],
            planned=60,
        )
        for policy, every in (("router", 5), ("direct", 3))
    ]
    half = Measured(mean=-0.13, low=-0.22, high=-0.04, questions=60)
    nothing = EvalEstimate(
        questions=0, answered=120, calls=0, free=False, input_tokens=0, output_tokens=0, low_usd=Decimal(0),
        expected_usd=Decimal(0), worst_usd=Decimal(0), spent_usd=Decimal(0), cap_usd=None, balances=(),
    )  # fmt: skip
    return EvalOutput(
        folder=f"run{extra}",
        index="sample@17",
        estimate=nothing,
        spent_usd=Decimal("0.24"),
        skipped={},
        cells=tuple(cells),
        differences=(
            DifferenceMeasured(
                suite=f"pubmedqa{extra}", policy=f"direct{extra}", model=model, against_policy="router",
                against_model=model, against=None, questions=60, gained=2, lost=10, accuracy=half, refused=half,
                wrong=half, tokens=half, cost_usd=half,
            ),
        ),
    )  # fmt: skip


def reconciliation(extra: str = "", *, drifts: bool = True) -> ReconcileOutput:
    """A week of one provider; ``drifts``: one day does not agree."""
    verdict = Verdict.DRIFT if drifts else Verdict.EQUAL
    drift = Decimal("0.42") if drifts else Decimal(0)

    def group(day: str | None) -> Group:
        compared = Compared(
            measure=Measure.COST, ours=Decimal("12.50"), least=Decimal("12.50"), most=Decimal("12.50"),
            theirs=Decimal("12.50") + drift, drift=drift, unexplained=drift, relative=Decimal("0.0325"), verdict=verdict,
        )  # fmt: skip
        return Group(
            provider="openai", day=day, model=f"gpt-6-luna{extra}", side=Side.BOTH, compared=(compared,),
            unknown=1, edge=0, verdict=verdict, hint=f"calls outside Posology{extra}",
        )  # fmt: skip

    return ReconcileOutput(
        agrees=not drifts,
        providers=("openai",),
        tenants=("acme", "globex"),
        attempts=12_480,
        periods=(ComparedPeriod(provider="openai", kind=Kind.COST, start=_START, end=_END),),
        threshold=Decimal("0.01"),
        tolerance_seconds=60.0,
        unexplained_usd=drift,
        drifting=int(drifts),
        totals=(group(None),),
        groups=(group("2026-11-03"),),
        requests=None,
        names=(),
        files=(),
        notes=(f"openai's tokens were not compared: there is no export of usage{extra}",),
    )


def make_reports(folder: Path, extra: str = "") -> Path:
    """Write an evaluation, two reconciliations, and files that are no reports."""
    (folder / "router-or-direct").mkdir(parents=True)
    summary = evaluation(extra).model_dump_json()
    (folder / "router-or-direct" / "summary.json").write_text(summary, encoding="utf-8")
    for name, drifts in (("2026-w44", True), ("2026-w45", False)):
        report = reconciliation(extra, drifts=drifts).model_dump_json()
        (folder / f"{name}.json").write_text(report, encoding="utf-8")
    (folder / "broken").mkdir()
    (folder / "broken" / "summary.json").write_text("{}", encoding="utf-8")
    (folder / "broken.json").write_text("[]", encoding="utf-8")
    (folder / "notes.txt").write_text("nothing", encoding="utf-8")
    return folder
