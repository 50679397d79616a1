"""Has the policy decide: hands it what was retrieved, what is left to spend, and what each dose costs."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal
from functools import cache
from typing import TYPE_CHECKING

from anyio import to_thread

from orchestrator.compressors import Compressors, check
from orchestrator.settings import DEFAULT_COMPRESSOR
from policies.fixed import Fixed
from policies.specs import parse
from posology.errors import HeadroomReserved, NothingAffordable
from posology.types import (
    Balance,
    Decision,
    Dose,
    Query,
    Retrieval,
    Rung,
    Saving,
    Scope,
    Situation,
    Task,
)
from prompts.template import digests
from strategies import takes_compressor

if TYPE_CHECKING:
    from orchestrator.question.estimates.costs import Estimator
    from orchestrator.question.estimates.savings import Savings
    from orchestrator.question.request import Request
    from policies.qtable import QTable
    from posology.seams import Policy
    from posology.types import Answer, Refusal


@dataclass(frozen=True, kw_only=True, slots=True)
class Left:
    """What may still be spent on a question."""

    #: dollars that are neither spent nor set aside
    dollars: Decimal
    #: dollars that there would be if what is under way cost nothing
    later: Decimal
    #: the scope that leaves least
    scope: Scope


#: looks up what is left; ``None``: no limit applies
Means = Callable[[], Awaitable[Left | None]]


def left(balances: Sequence[Balance], cap: Decimal | None = None) -> Left | None:
    """What scopes leave together; ``None``: no limit applies.

    Args:
        balances: of the tenant, and of the job where it has spent already.
        cap: dollars for a job that has not spent anything yet.
    """
    found = [
        Left(dollars=b.left, later=max(Decimal(0), b.cap - b.spent), scope=b.scope)
        for b in balances
        if b.cap is not None and b.left is not None
    ]
    if cap is not None:
        found.append(Left(dollars=cap, later=cap, scope=Scope.JOB))
    if not found:
        return None
    least = min(found, key=lambda one: one.dollars)
    return replace(least, later=min(one.later for one in found))


class Decider:
    """Decides for requests. It may be shared by concurrent callers.

    Args:
        default: the policy of requests that name none, see :mod:`policies.specs`.
        table: the Q-table of policies that have one; ``None``: they do without.
        estimator: prices doses, and weighs compressors; ``None``: no limit is looked at, and nothing is weighed.
        compressors: of compressed RAG; ``None``: those that need nothing, the pruner by default.
        embedder: name of the index's; ``None``: not known.
    """

    def __init__(
        self,
        *,
        default: str = "router",
        table: QTable | None = None,
        estimator: Estimator | None = None,
        compressors: Compressors | None = None,
        embedder: str | None = None,
    ) -> None:
        self.default = default
        self._embedder = embedder
        self.table = table
        self.compressors = compressors or Compressors(DEFAULT_COMPRESSOR)
        self._estimator = estimator

    def policy(self, request: Request) -> Policy:
        """The policy that decides for a request.

        Raises:
            InvalidQuery: there is no such policy, or no such compressor.
        """
        check(request.compressor)
        if request.strategy is not None:
            dose = Dose(strategy=request.strategy, keep=request.keep, compressor=request.compressor)
            return Fixed(dose=dose)
        spec = parse(request.policy or self.default)
        if request.compressor is not None:
            # the question's own word, whatever the policy says
            spec = replace(spec, compressor=request.compressor)
        check(spec.compressor, field="policy")
        return spec.policy(self.table, embedder=self._embedder, compressor=self.compressors.default)

    async def __call__(
        self,
        request: Request,
        retrieval: Retrieval,
        *,
        means: Means | None = None,
        tried: tuple[Rung, ...] = (),
    ) -> Decision:
        """Decide.

        Args:
            request: the question.
            retrieval: what was found for it.
            means: looks up what is left.
            tried: rungs that were refused to the last.

        Raises:
            HeadroomReserved: nothing fits now, and calls under way hold what would pay for something.
            UnpricedModel: nobody knows what the model costs.
            PolicyMismatch: the Q-table is not for this index.
        """
        policy = self.policy(request)
        left, quote = await self._money(request, retrieval, means)
        situation = Situation(
            query=request.query,
            retrieval=retrieval,
            remaining=left.dollars if left else None,
            quote=quote,
            saving=self._saving(request, retrieval),
            tried=tried,
        )
        # prices take bounds of long texts, and compressors may be loaded: the event loop is not to wait for that
        decision = (
            policy(situation)
            if quote is None and situation.saving is None
            else await to_thread.run_sync(policy, situation)
        )
        if left is not None and decision.declined and not tried:
            _wait_for(decision, left)
        prices = None if self._estimator is None else self._estimator.prices
        return replace(
            decision,
            versions=versions(
                policy,
                index=retrieval.index_version,
                prices=prices,
                compressor=self.compressor_of(decision),
            ),
        )

    def compressor_of(self, decision: Decision) -> str | None:
        """Version of the compressor that a decision is about; ``None``: it is about none."""
        name = decision.dose.compressor
        if not takes_compressor(decision.strategy):
            name = decision.features.get("saving.compressor")
            if name is None:
                return None
        return self.compressors.version(name)

    def spared(
        self, request: Request, retrieval: Retrieval, outcome: Answer | Refusal
    ) -> Savings | None:
        """What compressing saved of an answer, and what it cost; ``None``: nothing was, or nobody knows. Blocking."""
        if outcome.compression is None or self._estimator is None:
            return None
        return self._estimator.weighing.actual(retrieval, outcome.compression, request.model)

    def _saving(
        self, request: Request, retrieval: Retrieval
    ) -> Callable[[Dose], Saving | None] | None:
        estimator = self._estimator
        if estimator is None or request.strategy is not None or estimator.free(request.model):
            return None
        task = task_of(request, retrieval)
        return lambda dose: estimator.weighing.expected(task, dose)

    async def _money(
        self, request: Request, retrieval: Retrieval, means: Means | None
    ) -> tuple[Left | None, Callable[[Dose], Decimal] | None]:
        estimator = self._estimator
        if means is None or estimator is None or estimator.free(request.model):
            return None, None
        left = await means()
        if left is None:
            return None, None
        task = task_of(request, retrieval)

        def quote(dose: Dose) -> Decimal:
            return estimator.quote(task, dose, partition_size=request.partition_size)

        return left, quote


def versions(
    policy: Policy, *, index: str | None, prices: str | None, compressor: str | None = None
) -> Mapping[str, str]:
    """Versions of what a decision depends on, by name; of what is ``None``, there is none."""
    found = {"policy": policy.version}
    found |= {f"policy {name}": version for name, version in policy.parts.items()}
    if index is not None:
        found["index"] = index
    if prices is not None:
        found["prices"] = prices
    if compressor is not None:
        found["compressor"] = compressor
    return found | {f"prompt {name}": digest for name, digest in _prompts()}


def task_of(request: Request, retrieval: Retrieval) -> Task:
    """What a strategy is asked to do."""
    query: Query = request.query
    return Task(
        query=query, retrieval=retrieval, model=request.model, max_tokens=request.max_tokens
    )


def refuse_declined(decision: Decision) -> None:
    """Refuse to answer where the policy declined.

    Raises:
        NothingAffordable: it did.
    """
    if not decision.declined:
        return
    cheapest = min(offer.worst for offer in decision.offers)
    raise NothingAffordable(
        f"{decision.reason.rstrip('.')}. The cheapest way to answer costs ${cheapest:f} at worst: raise the "
        "cap or the limit to that, or ask a cheaper model",
        remaining=decision.remaining,
        cheapest=cheapest,
    )


def _wait_for(decision: Decision, left: Left) -> None:
    """Wait rather than decline where what others hold may come back."""
    cheapest = min(offer.worst for offer in decision.offers)
    if left.dollars < cheapest <= left.later:
        raise HeadroomReserved(
            f"calls under way hold what is left of the {left.scope} limit: ${left.dollars:f} are free, and the "
            f"cheapest way to answer costs ${cheapest:f} at worst: it may be tried again when they have ended",
            scope=str(left.scope),
            asked=cheapest,
            place=0,
        )


@cache
def _prompts() -> tuple[tuple[str, str], ...]:
    return tuple(sorted(digests(("answer", "extract", "reduce")).items()))
