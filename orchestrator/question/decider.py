"""Has the policy decide, with the retrieved passages, the remaining budget and the price of each dose."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from decimal import Decimal
from functools import cache
from typing import TYPE_CHECKING

from anyio import to_thread

from orchestrator.compressors import Compressors, check
from orchestrator.question.machine import Remaining, RemainingBudget, task_of
from orchestrator.settings import DEFAULT_COMPRESSOR
from policies.fixed import Fixed
from policies.specs import parse
from posology.errors import HeadroomReserved
from posology.llm.models.families import tier_of
from posology.types import (
    Balance,
    Decision,
    Dose,
    PartitionMode,
    QuoteForm,
    Retrieval,
    Rung,
    Saving,
    Scope,
    Situation,
)
from prompts.template import digests, form
from strategies import takes_compressor

if TYPE_CHECKING:
    from orchestrator.question.estimates.costs import Estimator
    from orchestrator.question.request import Request
    from policies.calibration import Calibration
    from policies.qtable import QTable
    from posology.seams import Policy

#: Prompts that every decision records, whichever strategy it chose, by what BriefContext asks of partitions: findings or
#: answers
PROMPTS = ("answer", "extract", "reduce")
ANSWERING = ("answer", "extract_answer", "reduce_answers")
#: prompts of the repair of an answer, and of its judgement by a model
REPAIR, JUDGE = "repair", "judge"
#: name of the digest of a user's own templates, among the versions of a decision
OWN_PROMPTS = "prompts"


def remaining_budget(
    balances: Sequence[Balance], cap: Decimal | None = None
) -> RemainingBudget | None:
    """Return the budget that all scopes together leave; ``None``: no limit.

    Args:
        balances: balances of the tenant, and of the job if it has spent already.
        cap: budget of a job that has not spent anything yet, dollars; ``None``: no limit.
    """
    found = [
        RemainingBudget(dollars=b.left, later=max(Decimal(0), b.cap - b.spent), scope=b.scope)
        for b in balances
        if b.cap is not None and b.left is not None
    ]
    if cap is not None:
        found.append(RemainingBudget(dollars=cap, later=cap, scope=Scope.JOB))
    if not found:
        return None
    least = min(found, key=lambda one: one.dollars)
    return replace(least, later=min(one.later for one in found))


class Decider:
    """Has policies decide for requests. Concurrent callers may share it.

    Args:
        default: policy of requests that name none, see :mod:`policies.specs`.
        table: Q-table of policies that use one; ``None``: they decide without.
        estimator: prices doses and compressors; ``None``: budget and savings are ignored.
        compressors: compressors by name; ``None``: those without configuration, the pruner by default.
        embedder: name of the index's embedder; ``None``: unknown.
        calibration: the user's own calibration of preflight; ``None``: the packaged one alone.
    """

    def __init__(
        self,
        *,
        default: str = "router",
        table: QTable | None = None,
        estimator: Estimator | None = None,
        compressors: Compressors | None = None,
        embedder: str | None = None,
        calibration: Calibration | None = None,
    ) -> None:
        self.default = default
        self.table = table
        self.calibration = calibration
        self._embedder = embedder
        self._compressors = compressors or Compressors(DEFAULT_COMPRESSOR)
        self._estimator = estimator

    def policy(self, request: Request) -> Policy:
        """Return the policy that decides for a request.

        Raises:
            InvalidQuery: the policy or the compressor is unknown.
        """
        check(request.compressor)
        if request.strategy is not None:
            dose = Dose(strategy=request.strategy, keep=request.keep, compressor=request.compressor)
            return Fixed(dose=dose)
        spec = parse(request.policy or self.default)
        if request.compressor is not None:
            # the question's compressor overrides the policy's
            spec = replace(spec, compressor=request.compressor)
        check(spec.compressor, field="policy")
        return spec.policy(
            self.table,
            embedder=self._embedder,
            compressor=self._compressors.default,
            calibration=self.calibration,
        )

    async def __call__(
        self,
        request: Request,
        retrieval: Retrieval,
        *,
        remaining: Remaining | None = None,
        tried: tuple[Rung, ...] = (),
    ) -> Decision:
        """Decide.

        Args:
            request: the question.
            retrieval: its passages.
            remaining: returns the remaining budget; ``None``: no limit.
            tried: steps of a ladder, all of which were refused.

        Raises:
            HeadroomReserved: no dose fits now, and calls in flight have reserved the budget for one.
            UnpricedModel: the model's price is unknown.
            PolicyMismatch: the Q-table does not fit the index.
        """
        policy = self.policy(request)
        if request.judge is not None and self._estimator is not None:
            # before the answer is paid for
            self._estimator.check(request.judge, tier=tier_of(request.tier))
        left, quote = await self._money(request, retrieval, remaining)
        situation = Situation(
            query=request.query,
            retrieval=retrieval,
            remaining=left.dollars if left else None,
            quote=quote,
            saving=self._saving(request, retrieval),
            tried=tried,
        )
        # bounds of long texts and models of compressors would block the event loop
        decision = (
            policy(situation)
            if quote is None and situation.saving is None
            else await to_thread.run_sync(policy, situation)
        )
        if left is not None and decision.declined and not tried:
            _raise_if_reserved(decision, left)
        prices = None if self._estimator is None else self._estimator.prices
        return replace(
            decision,
            versions=self.versions(
                policy,
                decision,
                index=retrieval.index_version,
                prices=prices,
                quotes=request.quotes,
                partitions=request.partitions,
                repairs=request.repairs,
                judged=request.judge is not None,
                own=request.prompts,
            ),
        )

    def versions(
        self,
        policy: Policy,
        decision: Decision,
        *,
        index: str | None,
        prices: str | None,
        quotes: QuoteForm,
        partitions: PartitionMode = "extract",
        repairs: bool = False,
        judged: bool = False,
        own: str | None = None,
    ) -> Mapping[str, str]:
        """Return the versions of everything that a decision depends on, by name.

        Args:
            policy: the policy.
            decision: the decision, whose compressor and its prompts count.
            index: name and version of the index; ``None``: unknown, so left out.
            prices: version of the prices; ``None``: unknown, so left out.
            quotes: how replies name their evidence.
            partitions: what BriefContext asks of each partition.
            repairs: whether sentences that are not supported are sent back, by a prompt of their own.
            judged: whether a language model judges the sentences, by a prompt of its own.
            own: digest of the user's own templates; ``None``: the packaged ones.

        Raises:
            PromptsMismatch: those templates are not loaded here.
        """
        versions = {"policy": policy.version}
        versions |= {f"policy {name}": version for name, version in policy.parts.items()}
        if index is not None:
            versions["index"] = index
        if prices is not None:
            versions["prices"] = prices
        named = PROMPTS if partitions == "extract" else ANSWERING
        prompts = tuple(form(name, quotes) for name in named)
        prompts += (REPAIR,) * repairs + (JUDGE,) * judged
        compresses = takes_compressor(decision.strategy)
        # whole passages may be the result of weighing a compressor
        name = (
            decision.dose.compressor if compresses else decision.features.get("saving.compressor")
        )
        if compresses or name is not None:
            versions["compressor"] = self._compressors.version(name)
            prompts += self._compressors.prompts(name)
        if own is not None:
            versions[OWN_PROMPTS] = own
        return versions | {f"prompt {name}": digest for name, digest in _digests(prompts, own)}

    def _saving(
        self, request: Request, retrieval: Retrieval
    ) -> Callable[[Dose], Saving | None] | None:
        estimator = self._estimator
        if estimator is None or request.strategy is not None or estimator.free(request.model):
            return None
        task = task_of(request, retrieval)
        return lambda dose: estimator.weighing.expected(task, dose)

    async def _money(
        self, request: Request, retrieval: Retrieval, remaining: Remaining | None
    ) -> tuple[RemainingBudget | None, Callable[[Dose], Decimal] | None]:
        estimator = self._estimator
        if remaining is None or estimator is None or estimator.free(request.model):
            return None, None
        left = await remaining()
        if left is None:
            return None, None
        task = task_of(request, retrieval)

        def quote(dose: Dose) -> Decimal:
            return estimator.quote(task, dose, partition_size=request.partition_size)

        return left, quote


def _raise_if_reserved(decision: Decision, left: RemainingBudget) -> None:
    """Raise if reservations of calls in flight may come back and pay for a dose, so that waiting helps."""
    cheapest = min(offer.worst for offer in decision.offers)
    if left.dollars < cheapest <= left.later:
        raise HeadroomReserved(
            f"calls in flight have reserved the rest of the {left.scope} budget: ${left.dollars:f} remain, and the "
            f"cheapest way to answer costs ${cheapest:f} at worst. Try again when they have ended",
            scope=str(left.scope),
            asked=cheapest,
            place=0,
        )


@cache
def _digests(names: tuple[str, ...], own: str | None) -> tuple[tuple[str, str], ...]:
    return tuple(sorted(digests(names, own=own).items()))
