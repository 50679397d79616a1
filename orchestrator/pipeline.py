"""The story of one question: retrieve, decide, run the strategy, conclude."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from posology.errors import InputError
from posology.index.retriever import Mode, Retriever
from posology.llm.accounting import Account
from posology.seams import Complete, Policy, Strategy
from posology.types import Answer, Decision, Query, Refusal, Retrieval, Situation, Task

#: gives the ``Complete`` of a model, accounting to an account
Completes = Callable[[str, Account], Complete]


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
    #: bound on output tokens of one call
    max_tokens: int = 2_000
    #: ``None``: the policy decides
    strategy: str | None = None
    #: passages a partition; ``None``: the strategy's own
    partition_size: int | None = None


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
    """Runs questions. It holds no state of its own and may be shared by concurrent callers."""

    def __init__(
        self,
        *,
        retriever: Retriever,
        policy: Policy,
        strategies: Mapping[str, Callable[[], Strategy]],
        completes: Completes,
    ) -> None:
        self._retriever = retriever
        self._policy = policy
        self._strategies = strategies
        self._completes = completes

    async def run(self, request: Request, account: Account) -> Report:
        """Answer one question.

        The account is the caller's, so that what was spent is known when this raises, too.

        Raises:
            PosologyError: retrieval or a model call failed; the account says what was spent.
        """
        started = time.perf_counter()
        complete = self._completes(request.model, account)
        retrieval = await self._retriever.retrieve(
            request.query, k=request.k, mode=request.mode, retracted=request.retracted
        )
        retrieved = time.perf_counter()
        decision = self._policy(Situation(query=request.query, retrieval=retrieval, remaining=None))
        if decision.strategy not in self._strategies:
            known = ", ".join(self._strategies)
            raise InputError(f"no strategy {decision.strategy!r}: choose one of {known}")
        outcome = await self._strategies[decision.strategy]()(
            Task(
                query=request.query,
                retrieval=retrieval,
                model=request.model,
                max_tokens=request.max_tokens,
            ),
            complete,
        )
        return Report(
            request=request,
            outcome=outcome,
            decision=decision,
            retrieval=retrieval,
            account=account,
            retrieval_seconds=retrieved - started,
            seconds=time.perf_counter() - started,
        )
