"""Reconciliations of the ledger with providers' accounts: their drift, and one report in full."""

from __future__ import annotations

from starlette.responses import Response

from orchestrator.console.access import Asked
from orchestrator.console.reports import MOST, Reports
from orchestrator.rendering.forms.reconciliation import compared, requests_text, worst_first

#: totals, days and models, and notes, that a page shows
_TOTALS, _GROUPS, _NOTES = 30, 60, 40


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
    odd = worst_first(groups)
    return asked.page(
        "reconciliation.html",
        report=found,
        totals=compared(() if found.out is None else found.out.totals[:_TOTALS]),
        odd=compared(odd[:_GROUPS]),
        requests=requests_text,
        more=len(odd) - _GROUPS,
        notes=_NOTES,
    )
