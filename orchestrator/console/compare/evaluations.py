"""Evaluations: the results of `posology eval` folders with their figures."""

from __future__ import annotations

from starlette.responses import Response

from orchestrator.api.problems import RequestProblem
from orchestrator.console.access import Asked
from orchestrator.console.pages import HEADERS
from orchestrator.console.reports import Reports
from orchestrator.evaluation.forms import EvalOutput
from orchestrator.evaluation.report.figures import Figure, figures
from orchestrator.evaluation.report.tables import METHOD, remarks, tables, title

#: suites, policies and models, and their differences, that a page shows
_CELLS = 40


async def shown(asked: Asked) -> Response:
    """Show an evaluation: remarks, figures and tables of its report."""
    name = asked.request.path_params["run"]
    found = await _reports(asked).evaluation(name)
    out = None if found.out is None else _first(found.out)
    return asked.page(
        "evaluation.html",
        report=found,
        title=name if out is None else title(out.cells),
        remarks=() if out is None else tuple(remarks(out)),
        figures=() if out is None else figures(out),
        tables=() if out is None else tuple(tables(out)),
        method=METHOD,
        cells=_CELLS,
    )


async def figure(asked: Asked) -> Response:
    """Return a figure of an evaluation."""
    found = await _reports(asked).evaluation(asked.request.path_params["run"])
    drawn: tuple[Figure, ...] = () if found.out is None else figures(_first(found.out))
    wanted = asked.request.path_params["figure"]
    svg = next((one.svg for one in drawn if one.file == wanted), None)
    if svg is None:
        raise RequestProblem(
            404,
            "NoFigure",
            "There is no such figure",
            f"the evaluation has no figure {wanted[:80]!r}",
        )
    return Response(svg, headers=dict(HEADERS), media_type="image/svg+xml")


def _reports(asked: Asked) -> Reports:
    return Reports(asked.api.settings.reports)


def _first(out: EvalOutput) -> EvalOutput:
    """Return an evaluation with the cells and differences that a page shows."""
    return out.model_copy(
        update={"cells": out.cells[:_CELLS], "differences": out.differences[:_CELLS]}
    )
