"""The published form of a reconciliation, and the error that it may end with."""

from __future__ import annotations

from datetime import UTC, datetime

from posology.budget.reconcile.report import Reconciliation
from posology.errors import DriftFound
from posology.published.reconciliation import ComparedPeriod, ReconcileOutput


def reconcile_output(found: Reconciliation) -> ReconcileOutput:
    """The published form of a reconciliation."""
    return ReconcileOutput(
        agrees=found.agrees,
        providers=found.providers,
        tenants=found.tenants,
        attempts=found.attempts,
        periods=tuple(
            ComparedPeriod(
                provider=period.provider,
                kind=period.kind,
                start=datetime.fromtimestamp(period.start, UTC),
                end=datetime.fromtimestamp(period.end, UTC),
            )
            for period in found.periods
        ),
        threshold=found.threshold,
        tolerance_seconds=found.tolerance,
        unexplained_usd=found.drift,
        drifting=found.drifting,
        totals=found.totals,
        groups=found.groups,
        requests=found.requests,
        names=found.names,
        files=found.files,
        notes=found.notes,
    )


def drift(out: ReconcileOutput) -> DriftFound | None:
    """The error that a reconciliation ends with; ``None`` where both sides agree."""
    if out.agrees:
        return None
    dollars = out.unexplained_usd
    amount = "" if not dollars else f"${abs(dollars):f} {'more' if dollars > 0 else 'less'} and "
    where = f"{out.drifting} days or requests" if out.drifting else "the sums"
    return DriftFound(
        f"the provider's account does not agree with the ledger: {amount}{where} drift by more "
        f"than {out.threshold:%}: docs/reconciliation.md says what that can mean",
        drift=dollars,
        drifting=out.drifting,
    )
