"""Comparison of two policies: their decisions for the same questions, and the costs. Calls no model."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from decimal import Decimal
from typing import TYPE_CHECKING

from orchestrator.compressors import check as check_compressor
from orchestrator.question.decider import Decider
from orchestrator.question.decisions.forms import (
    BadRow,
    CompareOutput,
    DifferenceOutput,
    DosePair,
    SideOutput,
)
from orchestrator.question.embedding import Spend
from orchestrator.question.estimates.costs import Dollars, Estimate, Estimator
from orchestrator.question.machine import Remaining, RemainingBudget
from orchestrator.question.report import error_body
from policies.affordable import describe
from policies.specs import POLICIES
from policies.specs import parse as parse_policy
from posology.concurrency import map_concurrently
from posology.errors import InvalidQuery, UnpricedModel
from posology.llm.models.families import tier_of
from posology.types import Decision, Scope
from strategies import STRATEGIES, takes_compressor

if TYPE_CHECKING:
    from orchestrator.jobs.rows import Row
    from orchestrator.question.request import Request
    from orchestrator.service import Service
    from orchestrator.settings import Settings
    from posology.published.calls import ErrorBody
    from posology.types import Retrieval

#: questions in work at the same time
_AT_ONCE = 4
_NOTHING = Dollars()


@dataclass(frozen=True, kw_only=True, slots=True)
class Side:
    """One of the two: a policy with its settings, or a forced strategy."""

    #: name with settings, as written
    text: str
    #: forced strategy; ``None``: a policy decides
    strategy: str | None = None
    #: share to keep, 0 to 1, of a strategy that takes a compressor
    keep: float | None = None
    #: name of the compressor of such a strategy
    compressor: str | None = None

    @classmethod
    def parse(cls, text: str) -> Side:
        """Read ``router:qtable=off``, ``direct`` or ``compressed:keep=0.2,compressor=leancontext``.

        Raises:
            InvalidQuery: unknown policy, strategy, compressor or setting, or an invalid value.
        """
        name, _, settings = text.strip().partition(":")
        if name not in (*STRATEGIES, *POLICIES):
            known = ", ".join((*POLICIES, *STRATEGIES))
            raise InvalidQuery(
                f"unknown policy or strategy {name!r}: choose one of {known}", field="policy"
            )
        if name not in STRATEGIES:
            spec = parse_policy(text)
            check_compressor(spec.compressor, field="policy")
            return cls(text=spec.text)
        keep: float | None = None
        compressor: str | None = None
        for setting in filter(None, settings.split(",")):
            key, _, value = (part.strip() for part in setting.partition("="))
            try:
                if not takes_compressor(name) or not value:
                    raise ValueError
                if key == "compressor":
                    check_compressor(value, field="policy")
                    compressor = value
                elif key == "keep" and 0 <= float(value) <= 1:
                    keep = float(value)
                else:
                    raise ValueError
            except ValueError:
                raise InvalidQuery(
                    f"invalid setting in {text!r}: only compressed has any, keep=SHARE (0 to 1) and "
                    "compressor=NAME",
                    field="policy",
                ) from None
        return cls(text=text.strip(), strategy=name, keep=keep, compressor=compressor)

    def of(self, request: Request) -> Request:
        """Return a question for this side, regardless of the policy or strategy that it names."""
        policy = None if self.strategy else self.text
        compressor = self.compressor or request.compressor
        if self.strategy is not None and not takes_compressor(self.strategy):
            compressor = None
        return replace(
            request,
            strategy=self.strategy,
            keep=self.keep,
            compressor=compressor,
            policy=policy,
        )


@dataclass(frozen=True, kw_only=True, slots=True)
class Given:
    """Decision and estimate of one side for a question."""

    decision: Decision
    #: ``None``: the side declined
    estimate: Estimate | None

    @property
    def dollars(self) -> Dollars:
        """Estimated cost; zero if the side declined."""
        return self.estimate.dollars if self.estimate else _NOTHING


@dataclass(frozen=True, kw_only=True, slots=True)
class Pair:
    """A question with both sides' decisions."""

    row: int
    question: str
    index: str
    first: Given
    second: Given

    @property
    def differs(self) -> bool:
        """Whether the doses differ."""
        return self.first.decision.dose != self.second.decision.dose


class Comparison:
    """Compares two policies on the same questions, over one index.

    Args:
        service: retrieves.
        decider: decides, with the loaded Q-table.
        estimator: estimates costs.
        settings: defaults of rows.
        left: remaining budget of each question, dollars; ``None``: no limit.
    """

    def __init__(
        self,
        *,
        service: Service,
        decider: Decider,
        estimator: Estimator,
        settings: Settings,
        left: Decimal | None = None,
    ) -> None:
        self._service = service
        self._decider = decider
        self._estimator = estimator
        self._settings = settings
        self._left = left

    async def __call__(
        self, first: Side, second: Side, rows: Sequence[Row], *, show: int = 20
    ) -> CompareOutput:
        """Compare.

        Args:
            first: one policy.
            second: the other.
            rows: the questions; policies and strategies that they name are ignored.
            show: most questions to list one by one.

        Raises:
            IndexFault: the index cannot serve.
            PolicyMismatch: the Q-table does not fit the index.
        """
        started = time.perf_counter()
        outcomes = await map_concurrently(
            lambda row: self._row(row, first, second), rows, limit=_AT_ONCE
        )
        pairs = [one for one in outcomes if isinstance(one, Pair)]
        differing = [pair for pair in pairs if pair.differs]
        doses = Counter(
            (describe(p.first.decision.dose), describe(p.second.decision.dose)) for p in pairs
        )
        return CompareOutput(
            first=self._side(first, [p.first for p in pairs], [p.first for p in differing]),
            second=self._side(second, [p.second for p in pairs], [p.second for p in differing]),
            questions=len(pairs),
            differing=len(differing),
            doses=tuple(
                DosePair(first=one, second=other, questions=count)
                for (one, other), count in doses.most_common()
            ),
            differences=tuple(_difference(pair) for pair in differing[:show]),
            bad=tuple(
                BadRow(row=row.number, error=one)
                for row, one in zip(rows, outcomes, strict=True)
                if not isinstance(one, Pair)
            ),
            left_usd=self._left,
            prices=self._estimator.prices,
            index=pairs[0].index if pairs else None,
            seconds=time.perf_counter() - started,
        )

    async def _row(self, row: Row, first: Side, second: Side) -> Pair | ErrorBody:
        if row.request is None:
            assert row.error is not None
            return row.error
        request = row.request.to_request(self._settings)
        try:
            # before anything is retrieved
            self._estimator.check(*request.models, tier=tier_of(request.tier))
        except UnpricedModel as error:
            return error_body(error, None)
        try:
            retrieval = await self._service.search(
                request.query,
                k=request.k,
                mode=request.mode,
                retracted=request.retracted,
                filters=request.filters,
                version=request.index_version,
                spend=Spend(tenant=self._settings.tenant),
            )
        except InvalidQuery as error:
            # only the index knows which names can be filtered by
            return error_body(error, None)
        return Pair(
            row=row.number,
            question=request.query.text,
            index=retrieval.index_version,
            first=await self._given(first.of(request), retrieval),
            second=await self._given(second.of(request), retrieval),
        )

    async def _given(self, request: Request, retrieval: Retrieval) -> Given:
        decision = await self._decider(request, retrieval, remaining=self._remaining())
        if decision.declined:
            return Given(decision=decision, estimate=None)
        estimate = await self._estimator(
            await self._service.pipeline.foreseen(request, retrieval, decision.dose),
            decision.dose,
            partition_size=request.partition_size,
            repair=request.repairs,
            judge=request.judge,
        )
        return Given(decision=decision, estimate=estimate)

    def _remaining(self) -> Remaining | None:
        if self._left is None:
            return None
        left = RemainingBudget(dollars=self._left, later=self._left, scope=Scope.JOB)

        async def look() -> RemainingBudget | None:
            return left

        return look

    def _side(self, side: Side, all_: Sequence[Given], differing: Sequence[Given]) -> SideOutput:
        total, apart = _sum(all_), _sum(differing)
        known = [one.estimate for one in all_ if one.estimate]
        return SideOutput(
            policy=side.text,
            version=self._version(side),
            declined=len(all_) - len(known),
            calls=sum(one.calls for one in known),
            input_tokens=sum(one.input for one in known),
            output_tokens=sum(one.output for one in known),
            low_usd=total.low,
            expected_usd=total.expected,
            worst_usd=total.worst,
            differing_expected_usd=apart.expected,
            differing_worst_usd=apart.worst,
        )

    def _version(self, side: Side) -> str:
        if side.strategy is not None:
            return side.text
        decider = self._decider
        spec = parse_policy(side.text)
        return spec.policy(decider.table, calibration=decider.calibration).version


def _sum(given: Sequence[Given]) -> Dollars:
    return sum((one.dollars for one in given), _NOTHING)


def _difference(pair: Pair) -> DifferenceOutput:
    return DifferenceOutput(
        row=pair.row,
        question=pair.question,
        first=pair.first.decision.dose,
        second=pair.second.decision.dose,
        first_reason=pair.first.decision.reason,
        second_reason=pair.second.decision.reason,
        first_expected_usd=pair.first.dollars.expected,
        second_expected_usd=pair.second.dollars.expected,
    )
