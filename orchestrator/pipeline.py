"""The story of one question: retrieve, decide, run the strategy, conclude."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from policies.fixed import Fixed
from posology.errors import InputError
from posology.index.retriever import Mode, Retriever
from posology.llm.accounting import Account
from posology.seams import Complete, Journal, Policy, Strategy
from posology.types import Answer, Decision, Query, Refusal, Retrieval, Situation, Task
from strategies import briefcontext

#: gives the ``Complete`` of a model, accounting to a journal
Completes = Callable[[str, Journal], Complete]


@dataclass(frozen=True, kw_only=True, slots=True)
class Request:
    """One question, and how it is to be answered."""

    query: Query
    #: ``provider:name``
    model: str
    #: passages to retrieve
    k: int = 8
    mode: Mode = "fused"
    #: whether retracted passages may be evidence
    retracted: bool = False
    #: bound on output tokens of one call; ``None``: each stage's own
    max_tokens: int | None = None
    #: ``None``: the policy decides
    strategy: str | None = None
    #: passages a partition; ``None``: the strategy's own
    partition_size: int | None = None


@dataclass(frozen=True, kw_only=True, slots=True, eq=False)
class Prepared:
    """A question, what was retrieved for it, and what was decided: nothing is spent yet."""

    request: Request
    retrieval: Retrieval
    decision: Decision
    #: does as was decided
    strategy: Strategy
    #: seconds for retrieval, query embedding included
    retrieval_seconds: float

    @property
    def task(self) -> Task:
        """What the strategy is asked to do."""
        return Task(
            query=self.request.query,
            retrieval=self.retrieval,
            model=self.request.model,
            max_tokens=self.request.max_tokens,
        )

    def report(self, outcome: Answer | Refusal, account: Account, seconds: float) -> Report:
        """What became of it."""
        return Report(
            request=self.request,
            outcome=outcome,
            decision=self.decision,
            retrieval=self.retrieval,
            account=account,
            retrieval_seconds=self.retrieval_seconds,
            seconds=seconds,
        )


@dataclass(frozen=True, kw_only=True, slots=True, eq=False)
class Report:
    """What became of a question."""

    request: Request
    outcome: Answer | Refusal
    decision: Decision
    retrieval: Retrieval
    #: every attempt at every model call
    account: Account
    #: seconds for retrieval, query embedding included
    retrieval_seconds: float
    #: seconds from question to outcome
    seconds: float


class Pipeline:
    """Runs questions. It holds no state of its own and may be shared by concurrent callers.

    Args:
        retriever: finds passages.
        policy: decides where a request does not.
        strategies: name → how to make it.
        completes: connects to a model.
    """

    def __init__(
        self,
        *,
        retriever: Retriever,
        policy: Policy,
        strategies: Mapping[str, Callable[..., Strategy]],
        completes: Completes,
    ) -> None:
        self._retriever = retriever
        self._policy = policy
        self._strategies = strategies
        self._completes = completes

    async def prepare(self, request: Request) -> Prepared:
        """Retrieve and decide; no model is called.

        Raises:
            PosologyError: the index cannot serve, or there is no such strategy.
        """
        started = time.perf_counter()
        retrieval = await self._retriever.retrieve(
            request.query, k=request.k, mode=request.mode, retracted=request.retracted
        )
        seconds = time.perf_counter() - started
        situation = Situation(query=request.query, retrieval=retrieval, remaining=None)
        policy = self._policy if request.strategy is None else Fixed(strategy=request.strategy)
        decision = policy(situation)
        return Prepared(
            request=request,
            retrieval=retrieval,
            decision=decision,
            strategy=self._strategy(decision, request),
            retrieval_seconds=seconds,
        )

    async def run(
        self, request: Request, account: Account, journal: Journal | None = None
    ) -> Report:
        """Answer one question in this process.

        The account is the caller's, so that what was spent is known when this raises, too.

        Args:
            request: the question.
            account: lists every attempt.
            journal: spends and hands on to the account; ``None``: nothing limits what is spent.

        Raises:
            PosologyError: retrieval or a model call failed; the account says what was spent.
        """
        started = time.perf_counter()
        # first, since a model without a key or a name need not be retrieved for
        complete = self._completes(request.model, journal or account)
        prepared = await self.prepare(request)
        outcome = await prepared.strategy(prepared.task, complete)
        return prepared.report(outcome, account, time.perf_counter() - started)

    def _strategy(self, decision: Decision, request: Request) -> Strategy:
        if decision.strategy not in self._strategies:
            known = ", ".join(self._strategies)
            raise InputError(f"no strategy {decision.strategy!r}: choose one of {known}")
        make = self._strategies[decision.strategy]
        sized = decision.strategy == briefcontext.NAME and request.partition_size is not None
        return make(size=request.partition_size) if sized else make()
