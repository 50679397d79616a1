"""Ask: a question with its filters, policy and cap, and the estimate of its cost."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from starlette.responses import Response

from orchestrator.api.bodies import unless_left
from orchestrator.api.problems import RequestProblem
from orchestrator.console.access import Asked, redirect
from orchestrator.console.pages import HOME, respond
from orchestrator.jobs.conversations import request_of
from orchestrator.jobs.rows import Row
from orchestrator.question.estimates.rows import read_standing
from orchestrator.question.request import JobRequest
from posology.errors import PosologyError
from posology.published.estimates import EstimateOutput
from posology.store import keys
from posology.text.follow_ups import continued
from posology.types import Form
from strategies import STRATEGIES

#: fields of the form that are fields of a request; an empty one is left out
_FIELDS = (
    "question",
    "form",
    "model",
    "k",
    "strategy",
    "policy",
    "max_cost_usd",
    "parent",
    "collection",
)
_YEARS = ("since", "until")
#: fields with names that commas separate
_NAMES = ("publication_types", "journals", "mesh")
#: forms of answers that need no further fields
_FORMS = (Form.FREE, Form.YES_NO, Form.YES_NO_MAYBE)


async def shown(asked: Asked) -> Response:
    """Show the form, with the ``question`` in the address, as a follow-up of the job ``parent`` if that is there."""
    given = {"question": asked.request.query_params.get("question", "")}
    parent = asked.request.query_params.get("parent")
    if parent is None:
        return _page(asked, given)
    try:
        before = await request_of(parent, asked.own, asked.api.jobs().get)
    except PosologyError as error:
        return _page(asked, given, failed=error)
    question = " ".join(continued([before["question"], given["question"]]))
    return _page(asked, _again(before) | {"question": question, "parent": parent})


def _again(request: Mapping[str, Any]) -> dict[str, str]:
    """Return the form of another question that is asked as a job was."""
    filters = request.get("filters") or {}
    values = {name: request.get(name) for name in _FIELDS} | {n: filters.get(n) for n in _YEARS}
    values |= {name: ", ".join(filters.get(name) or ()) for name in _NAMES}
    return {name: str(value) for name, value in values.items() if value is not None}


async def submitted(asked: Asked) -> Response:
    """Submit the question, and go to its job. The same form sent twice is one job."""
    try:
        request = _read(asked)
        made = await asked.api.jobs().submit(
            request, tenant=asked.own, key=asked.form.get("key") or None
        )
    except (PosologyError, RequestProblem) as error:
        return _page(asked, asked.form, failed=error)
    return redirect(f"{HOME}/jobs/{made.job}")


async def estimated(asked: Asked) -> Response:
    """Estimate the cost of the question: a part of the page for scripts, else the page with it."""
    part = asked.request.headers.get("hx-request") == "true"
    try:
        found = await _estimate(asked)
    except (PosologyError, RequestProblem) as error:
        if part:
            return respond("estimate.html", estimate=None, failed=_said(error))
        return _page(asked, asked.form, failed=error)
    if part:
        return respond("estimate.html", estimate=found, failed=None)
    return _page(asked, asked.form, estimate=found)


async def _estimate(asked: Asked) -> EstimateOutput:
    # an operator has no limits to compare with
    tenant, request, jobs = asked.own, _read(asked), asked.api.jobs()
    literature = await asked.api.readable(tenant, request.collection)
    row = Row(number=0, id=None, request=request, error=None)
    standing = await read_standing(jobs.redis, jobs.url, tenant)
    estimate = asked.api.estimating()
    return await unless_left(
        asked.request, lambda: estimate([row], standing, whole=True, literature=literature)
    )


def _read(asked: Asked) -> JobRequest:
    """Return the request that a form describes.

    Raises:
        InvalidQuery: naming the first invalid field.
        UnknownModel: the model is unknown.
    """
    form = {name: value.strip() for name, value in asked.form.items()}
    given: dict[str, Any] = {name: form[name] for name in _FIELDS if form.get(name)}
    given.setdefault("question", "")
    filters: dict[str, Any] = {name: form[name] for name in _YEARS if form.get(name)}
    for name in _NAMES:
        if names := [one.strip() for one in form.get(name, "").split(",") if one.strip()]:
            filters[name] = names
    if filters:
        given["filters"] = filters
    return JobRequest.parse(given).settled(asked.api.settings)


def _page(
    asked: Asked,
    given: Mapping[str, str],
    *,
    failed: Exception | None = None,
    estimate: EstimateOutput | None = None,
) -> Response:
    return asked.page(
        "ask.html",
        200 if failed is None else 422,
        given=given,
        failed=None if failed is None else _said(failed),
        estimate=estimate,
        key=keys.new_id("form"),
        model=asked.api.settings.model,
        policy=asked.api.settings.policy,
        estimates=asked.api.settings.index is not None,
        collections=bool(asked.api.settings.collections),
        strategies=tuple(STRATEGIES),
        forms=_FORMS,
    )


def _said(error: Exception) -> str:
    return error.detail if isinstance(error, RequestProblem) else str(error)
