"""Reconciliations of the ledger with providers' accounts: their drift, and one report in full."""

from __future__ import annotations

from starlette.responses import Response

from orchestrator.console.access import Asked
from orchestrator.console.reports import MOST, Reports
from posology.budget.reconcile.report import Group, Verdict

#: days and models, and notes, that a page shows
_GROUPS, _NOTES = 60, 40


async def listed(asked: Asked) -> Response:
    """Show the newest reports with their drift."""
    settings = asked.api.settings
    return asked.page(
        "reconciliations.html",
        reports=await Reports(settings.reports).reconciliations(),
        folder=settings.reports,
        most=MOST,
    )


async def shown(asked: Asked) -> Response:
    """Show a report: totals, the days and models that differ, worst first, and notes."""
    reports = Reports(asked.api.settings.reports)
    found = await reports.reconciliation(asked.request.path_params["report"])
    groups = () if found.out is None else found.out.groups
    odd = sorted((one for one in groups if one.verdict is not Verdict.EQUAL), key=_worst_first)
    return asked.page(
        "reconciliation.html",
        report=found,
        odd=odd[:_GROUPS],
        more=len(odd) - _GROUPS,
        notes=_NOTES,
    )


def _worst_first(group: Group) -> bool:
    return group.verdict is not Verdict.DRIFT
