"""Estimates of many questions: retrieve, render, count. Calls no model."""

from __future__ import annotations

import json
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from decimal import Decimal
from functools import partial
from typing import Any

from redis.asyncio import Redis

from orchestrator.jobs.rows import Row, read_row
from orchestrator.question.embedding import Spend
from orchestrator.question.estimates.costs import Dollars, Estimate, Estimator
from orchestrator.question.estimates.typical import Figures, Label, Typical, read_history
from orchestrator.question.machine import Prepared, task_of
from orchestrator.question.report import error_body
from orchestrator.question.request import Request
from orchestrator.service import Service
from orchestrator.settings import Settings
from orchestrator.spending import balance_fields
from policies.specs import parse as parse_policy
from posology.budget.ledger.redis import RedisLedger
from posology.concurrency import map_concurrently
from posology.errors import InvalidQuery, UnpricedModel
from posology.llm.models.families import LANES, lanes_of, tier_of
from posology.published.calls import ErrorBody
from posology.published.estimates import (
    Accuracy,
    BadQuestion,
    EstimateOutput,
    LaneEstimate,
    QuestionEstimate,
    ScopeEstimate,
    StrategyEstimate,
)
from posology.types import Balance, Dose, Lane, Task
from strategies import STRATEGIES, takes_compressor

#: seconds within which providers end one batch (``completion_window`` of OpenAI, ``expires_at`` of Anthropic)
BATCH_SECONDS = 86_400.0
#: questions in work at the same time
_AT_ONCE = 4


@dataclass(frozen=True, kw_only=True, slots=True)
class Standing:
    """A tenant's balances and the figures of its calls."""

    tenant: str
    balances: tuple[Balance, ...]
    history: Mapping[Label, Figures]


@dataclass(frozen=True, kw_only=True, slots=True)
class Estimated:
    """A row with its estimates, or the error that prevents them."""

    row: Row
    #: ``None`` for a row that cannot be estimated
    request: Request | None = None
    #: estimate of the dose that the policy chooses without a budget
    decided: Estimate | None = None
    #: that dose
    dose: Dose | None = None
    passages: int = 0
    index: str = ""
    free: bool = False
    #: one estimate a strategy, over all passages
    estimates: tuple[Estimate, ...] = ()
    error: ErrorBody | None = None
    #: estimates of the chosen strategy in the lanes of the model
    lanes: Mapping[Lane, Estimate] = field(default_factory=dict)

    def of(self, strategy: str) -> Estimate | None:
        """Return the estimate of a strategy; ``None``: there is none."""
        return next((one for one in self.estimates if one.strategy == strategy), None)


async def read_standing(redis: Redis, url: str, tenant: str) -> Standing:
    """Read a tenant's balances and the figures of its calls.

    Raises:
        StoreUnavailable: Redis is unreachable.
    """
    return Standing(
        tenant=tenant,
        balances=await RedisLedger(redis, url, tenant=tenant).balances(),
        history=await read_history(redis, url, tenant),
    )


def read_rows(
    lines: Iterable[str | bytes], defaults: Mapping[str, Any], settings: Settings
) -> Iterator[Row]:
    """Read the rows of a file as a batch does, without blank lines."""
    number = 0
    for line, raw in enumerate(lines, 1):
        if raw.strip():
            yield read_row(number, line, raw, defaults, settings)
            number += 1


class Estimates:
    """Estimates questions over one index. Concurrent callers may share it.

    Args:
        service: retrieves and decides.
        estimator: estimates costs.
        settings: defaults of rows.
    """

    def __init__(self, *, service: Service, estimator: Estimator, settings: Settings) -> None:
        self._service = service
        self._estimator = estimator
        self._settings = settings

    async def __call__(
        self, rows: Sequence[Row], *, standing: Standing | None = None
    ) -> tuple[Estimated, ...]:
        """Estimate rows, in their order. A row that cannot be estimated has an error.

        A row that names a strategy is estimated for that one, others for all.

        Args:
            rows: see :func:`read_rows`.
            standing: tenant whose own calls predict the lengths of replies; ``None``: measured defaults do.

        Raises:
            IndexFault: the index cannot serve.
        """
        estimator = self._estimator
        if standing is not None:
            estimator = estimator.with_history(Typical(standing.history))
        tenant = self._settings.tenant if standing is None else standing.tenant
        return tuple(
            await map_concurrently(
                lambda row: self._row(row, estimator, tenant), rows, limit=_AT_ONCE
            )
        )

    def output(
        self,
        estimates: Sequence[Estimated],
        *,
        started: float,
        standing: Standing | None = None,
        accuracy: Accuracy | None = None,
    ) -> EstimateOutput:
        """Return the published form.

        Args:
            estimates: of all rows.
            started: time of the start by :func:`time.perf_counter`, seconds.
            standing: the tenant's balances; ``None``: not read.
            accuracy: accuracy of the estimates; ``None``: not measured.
        """
        attempts = self._settings.attempts
        good = [one for one in estimates if one.request is not None]
        names = [name for name in STRATEGIES if any(one.of(name) for one in good)]
        decided = [one.decided for one in good]
        total = _total("as decided", decided, attempts) if good else None
        history = standing.history if standing else {}
        models = {one.request.model for one in good if one.request is not None}
        return EstimateOutput(
            questions=tuple(_question(one, attempts) for one in good),
            bad=tuple(_bad(one) for one in estimates if one.error is not None),
            totals=tuple(_total(name, [one.of(name) for one in good], attempts) for name in names),
            decided=total,
            lanes=_lanes(good),
            balances=_scopes(standing, total) if standing else None,
            accuracy=accuracy,
            attempts=attempts,
            history=sum(
                figures.attempts for label, figures in history.items() if label.model in models
            ),
            prices=self._estimator.prices,
            seconds=time.perf_counter() - started,
        )

    async def _row(self, row: Row, estimator: Estimator, tenant: str) -> Estimated:
        if row.request is None:
            return Estimated(row=row, error=row.error)
        request = row.request.to_request(self._settings)
        try:
            self._service.check(row.request.collection)
            # before anything is retrieved
            estimator.check(*request.models, tier=tier_of(request.tier))
        except (UnpricedModel, InvalidQuery) as error:
            return Estimated(row=row, error=error_body(error, None))
        try:
            # nothing is spent: without a stored vector, passages are found by words
            spend = Spend(tenant=tenant, blind=True)
            prepared = await self._service.pipeline.prepare(request, spend=spend)
        except InvalidQuery as error:
            # only the index knows which names can be filtered by
            return Estimated(row=row, error=error_body(error, None))
        task, size = task_of(request, prepared.retrieval), request.partition_size
        priced = partial(
            estimator, partition_size=size, repair=request.repairs, judge=request.judge
        )

        async def of(dose: Dose, task: Task = task) -> Estimate:
            found = await priced(task, dose)
            if request.tier != "batch-then-standard":
                return found
            # what the batch leaves is sent at the standard price, which may be all of it
            standard = await priced(replace(task, tier="standard"), dose)
            return replace(found, dollars=replace(found.dollars, worst=standard.dollars.worst))

        dose = prepared.decision.dose
        read = await self._service.pipeline.foreseen(request, prepared.retrieval, dose)
        decided = await of(dose, read)
        estimates = [await of(dose) for dose in _doses(prepared)]
        before = await self._service.pipeline.unpaid(request.query, tenant)
        if before:
            decided = estimator.vectors(decided, before)
            estimates = [estimator.vectors(one, before) for one in estimates]
        lanes = {request.tier: decided}
        for lane in lanes_of(request.model):
            # the same calls at another price; an unpriced lane is left out, and those that may end in the standard one
            if lane not in lanes and lane == tier_of(lane):
                with suppress(UnpricedModel):
                    other = await priced(replace(read, tier=tier_of(lane)), dose)
                    lanes[lane] = estimator.vectors(other, before) if before else other
        return Estimated(
            row=row,
            request=request,
            lanes=lanes,
            decided=decided,
            passages=len(prepared.retrieval.passages),
            index=prepared.retrieval.index_version,
            free=estimator.free(*request.models),
            dose=dose,
            estimates=tuple(estimates),
        )


def _doses(prepared: Prepared) -> Iterator[Dose]:
    """Yield one dose of each strategy, or of the requested one."""
    request = prepared.request
    compressor = request.compressor
    if compressor is None and request.policy is not None:
        compressor = parse_policy(request.policy).compressor
    for name in STRATEGIES if request.strategy is None else (request.strategy,):
        by = compressor if takes_compressor(name) else None
        yield Dose(strategy=name, keep=request.keep, compressor=by)


def _question(estimated: Estimated, attempts: int) -> QuestionEstimate:
    assert estimated.request is not None
    return QuestionEstimate(
        row=estimated.row.number,
        id=_own_id(estimated.row),
        question=estimated.request.query.text,
        model=estimated.request.model,
        free=estimated.free,
        passages=estimated.passages,
        decided=estimated.decided.strategy if estimated.decided else "",
        strategies=tuple(
            _total(name, [estimated.of(name)], attempts)
            for name in STRATEGIES
            if estimated.of(name)
        ),
    )


def _bad(found: Estimated) -> BadQuestion:
    assert found.error is not None
    return BadQuestion(row=found.row.number, id=_own_id(found.row), error=found.error)


def _own_id(row: Row) -> Any:
    return None if row.id is None else json.loads(row.id)


def _total(name: str, found: Sequence[Estimate | None], attempts: int) -> StrategyEstimate:
    known = [one for one in found if one is not None]
    dollars = sum((one.dollars for one in known), Dollars())
    return StrategyEstimate(
        strategy=name,
        questions=len(known),
        calls=sum(one.calls for one in known),
        input_tokens=sum(one.input for one in known),
        output_tokens=sum(one.output for one in known),
        low_usd=dollars.low,
        expected_usd=dollars.expected,
        worst_usd=dollars.worst,
        repeated_usd=dollars.worst * attempts,
        largest_worst_usd=max((one.dollars.worst for one in known), default=Decimal(0)),
    )


def _lanes(found: Sequence[Estimated]) -> tuple[LaneEstimate, ...]:
    """Return the totals in each lane that all questions have; none if there is no choice."""
    common = [lane for lane in LANES if found and all(lane in one.lanes for one in found)]
    totals = [(lane, sum((one.lanes[lane].dollars for one in found), Dollars())) for lane in common]
    if len({dollars.expected for _, dollars in totals}) < 2:
        return ()
    waves = max(estimate.waves for one in found for estimate in one.lanes.values())
    return tuple(
        LaneEstimate(
            tier=lane,
            expected_usd=dollars.expected,
            worst_usd=dollars.worst,
            waves=waves if tier_of(lane) == "batch" else None,
            latest_seconds=waves * BATCH_SECONDS if tier_of(lane) == "batch" else None,
        )
        for lane, dollars in totals
    )


def _scopes(standing: Standing, total: StrategyEstimate | None) -> tuple[ScopeEstimate, ...]:
    expected = total.expected_usd if total else Decimal(0)
    worst = total.worst_usd if total else Decimal(0)
    return tuple(
        ScopeEstimate(
            **balance_fields(standing.tenant, balance),
            expected_fits=balance.left is None or expected <= balance.left,
            worst_fits=balance.left is None or worst <= balance.left,
        )
        for balance in standing.balances
    )
