"""Two policies on the same questions, the Q-table, and the list of evaluations."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass

from anyio import to_thread
from starlette.responses import Response

from orchestrator.api.bodies import unless_left
from orchestrator.api.problems import RequestProblem
from orchestrator.console.access import Asked
from orchestrator.console.reports import MOST, Reports
from orchestrator.question import qtables
from orchestrator.question.decisions.comparison import Side
from orchestrator.question.decisions.forms import CompareOutput
from orchestrator.question.estimates.rows import read_rows
from orchestrator.rendering.forms.columns import Table, table
from orchestrator.rendering.forms.decisions import SIDES, pairs, q_actions, q_legend, q_values
from orchestrator.training.forms import QTableOutput
from orchestrator.training.qtable.description import describe
from policies.specs import POLICIES
from posology.errors import InvalidQuery, PosologyError
from strategies import STRATEGIES

#: questions of one comparison, differing ones that a page lists, and pairs of doses
_QUESTIONS, _SHOWN, _PAIRS = 20, 20, 30
#: states of a Q-table that a page shows, and columns of a policy
_STATES, _SIDES = 64, "policy, declined, calls, tokens in, minimum, expected, maximum"


async def shown(asked: Asked) -> Response:
    """Show the form, the Q-table and, for operators, the evaluations."""
    return await _page(asked, {"first": asked.api.settings.policy, "second": "direct"})


async def compared(asked: Asked) -> Response:
    """Compare two policies on some questions. No model is called."""
    try:
        out = await _compare(asked)
    except (PosologyError, RequestProblem) as error:
        said = error.detail if isinstance(error, RequestProblem) else str(error)
        return await _page(asked, asked.form, failed=said)
    return await _page(asked, asked.form, out=out)


async def _compare(asked: Asked) -> CompareOutput:
    form, tenant = asked.form, asked.own
    asked.api.literature().require()
    first, second = (Side.parse(form.get(name, "")) for name in ("first", "second"))
    lines = [json.dumps({"question": one}) for one in _questions(form.get("questions", ""))]
    settings = asked.api.settings.model_copy(update={"tenant": tenant})
    rows = list(read_rows(lines, {}, settings))
    compare = asked.api.estimating().compare
    return await unless_left(
        asked.request, lambda: compare(first, second, rows, settings=settings, show=_SHOWN)
    )


def _questions(text: str) -> list[str]:
    found = [line for one in text.splitlines() if (line := one.strip())]
    if not 1 <= len(found) <= _QUESTIONS:
        raise InvalidQuery(
            f"questions must be 1 to {_QUESTIONS} lines, one question each (got {len(found):,}); `posology policy "
            "compare` takes files",
            field="questions",
        )
    return found


async def _page(
    asked: Asked,
    given: Mapping[str, str],
    *,
    out: CompareOutput | None = None,
    failed: str | None = None,
) -> Response:
    settings = asked.api.settings
    learned, broken = None, None
    try:
        learned = await to_thread.run_sync(_learned, asked)
    except PosologyError as error:
        # the message has the place of the file
        broken = error.message if asked.operator else "The Q-table cannot be read."
    runs, unread = None, None
    if asked.operator:
        try:
            runs = await Reports(settings.reports).evaluations()
        except RequestProblem as problem:
            runs, unread = (), problem.detail
    return asked.page(
        "compare.html",
        200 if failed is None else 422,
        given=given,
        out=out,
        failed=failed,
        most=_QUESTIONS,
        compared=out and table(SIDES, (out.first, out.second), _SIDES),
        pairs=out and pairs(out, _PAIRS),
        sides=(*POLICIES, *STRATEGIES),
        table=learned,
        broken=broken,
        runs=runs,
        unread=unread,
        folder=settings.reports,
        listed=MOST,
    )


@dataclass(frozen=True, kw_only=True, slots=True)
class _Learned:
    """A Q-table with its tables."""

    out: QTableOutput
    legend: str
    rewards: Table
    actions: Table


def _learned(asked: Asked) -> _Learned | None:
    settings = asked.api.settings
    q_table = qtables.configured(settings)
    if q_table is None:
        return None
    out = describe(q_table, qtables.differing(q_table, settings))
    rewards = q_values(out, q_table.actions, _STATES)
    return _Learned(out=out, legend=q_legend(out), rewards=rewards, actions=q_actions(out))
