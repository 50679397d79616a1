"""Questions answered by simulated models, with the doses that policies give them.

Every decision is the router's own, every prompt the strategies'. Retrievals and compressions are computed once, and
each dose once for a question and a profile; an escalation adds the cost of BriefContext, or of a call over what a second
search found, where a ladder was refused.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache
from typing import Any

from evals.pooled import SHADOW, counter, prices
from orchestrator.compressors import Compressors
from orchestrator.evaluation.simulation import Gold, SimulatedModel, is_right, profiles
from orchestrator.settings import DEFAULT_COMPRESSOR
from policies.affordable import following
from policies.qtable import QTable
from policies.specs import parse
from posology.index.embedders import load
from posology.types import (
    Call,
    Completion,
    Decision,
    Dose,
    Query,
    Refusal,
    Retrieval,
    Situation,
    Task,
    Usage,
)
from strategies import make
from strategies.evidence import truncate_task

#: the policy whose decisions hold the features that others decide from
SHIPPED = "router"
_MAX_TOKENS = 2_000


@dataclass(frozen=True, kw_only=True, slots=True)
class Outcome:
    """What became of one question."""

    right: bool
    refused: bool
    #: dollars at the shadow price
    cost: float

    @property
    def wrong(self) -> bool:
        """Whether it was answered, and not rightly."""
        return not self.right and not self.refused


@dataclass(frozen=True, kw_only=True, slots=True, eq=False)
class Asked:
    """A question with what was retrieved for it, and the sentences that answer."""

    #: name of its set
    origin: str
    id: str
    #: passages that it was written for
    documents: frozenset[str]
    retrieval: Retrieval
    #: the same with what a second search adds
    wider: Retrieval
    #: empty if the key passage was not retrieved
    gold: Gold


class Tally:
    """A :class:`~posology.seams.Complete` that adds up what passes through it."""

    def __init__(self, inner: SimulatedModel) -> None:
        self._inner = inner
        self.usage = Usage()

    async def __call__(self, call: Call) -> Completion:
        """Send one call."""
        completion = await self._inner(call)
        assert completion.usage is not None
        self.usage += completion.usage
        return completion


class Kept:
    """A compressor that compresses the same passages once."""

    def __init__(self, inner: Any) -> None:
        self._inner = inner
        self._known: dict[tuple[Any, ...], Any] = {}

    def __getattr__(self, name: str) -> Any:
        return getattr(self._inner, name)

    def __call__(self, retrieval: Any, keep: float | None) -> Any:
        """Compress, or return what was compressed before."""
        key = (retrieval.query.text, keep, *(one.passage.id for one in retrieval.passages))
        if key not in self._known:
            self._known[key] = self._inner(retrieval, keep)
        return self._known[key]


class Bench:
    """Questions, the doses that policies give them, and what becomes of each dose.

    Args:
        asked: questions with their retrievals and gold.
        embedder: name of the embedder of their index; ``None``: the packaged one.
        partial: see :class:`~orchestrator.evaluation.simulation.SimulatedModel`.
    """

    def __init__(
        self, asked: Sequence[Asked], embedder: str | None = None, *, partial: bool
    ) -> None:
        self.asked = asked
        #: name of the embedder of the index
        self.embedder = load(None).name if embedder is None else embedder
        self._gold = {one.retrieval.query.text: one.gold for one in asked}
        # many prompts are asked of every profile
        count = lru_cache(maxsize=None)(counter())
        self._models = {
            name: SimulatedModel(profile, self._gold_of, count, partial=partial)
            for name, profile in profiles().items()
        }
        kept = Kept(Compressors(DEFAULT_COMPRESSOR)(None))
        self._choose = lambda _: kept
        self._prices = prices()
        self._known: dict[tuple[str, str, Dose], Outcome] = {}

    @cached_property
    def records(self) -> list[Decision]:
        """The shipped policy's decision on each question, whose features every other policy decides from."""
        router = parse(SHIPPED).policy(embedder=self.embedder, compressor=DEFAULT_COMPRESSOR)
        return [
            router(Situation(query=one.retrieval.query, retrieval=one.retrieval))
            for one in self.asked
        ]

    def doses(self, policy: str, table: QTable | None = None) -> list[Dose]:
        """Return the dose that a policy gives each question, with a Q-table or without."""
        router: Any = parse(policy).policy(
            table, embedder=self.embedder, compressor=DEFAULT_COMPRESSOR
        )
        if table is None:
            return [router.replay(record).dose for record in self.records]
        # the records lack the state
        asked = (Situation(query=a.retrieval.query, retrieval=a.retrieval) for a in self.asked)
        return [router(one).dose for one in asked]

    async def run(self, doses: Sequence[Dose]) -> dict[str, list[Outcome]]:
        """By profile: what becomes of each question with its dose."""
        return {
            name: [await self._run(name, *pair) for pair in zip(self.asked, doses, strict=True)]
            for name in self._models
        }

    async def _run(self, profile: str, asked: Asked, dose: Dose) -> Outcome:
        if dose.escalate:
            first = await self._run(profile, asked, replace(dose, escalate=False))
            if not first.refused:
                return first
            last = await self._run(profile, asked, following(dose, len(asked.wider.passages)))
            return replace(last, cost=first.cost + last.cost)
        key = profile, asked.id, dose
        if key not in self._known:
            self._known[key] = await self._ask(profile, asked, dose)
        return self._known[key]

    async def _ask(self, profile: str, asked: Asked, dose: Dose) -> Outcome:
        query = asked.retrieval.query
        task = Task(
            query=query,
            retrieval=asked.wider if dose.skip else asked.retrieval,
            model=SHADOW,
            max_tokens=_MAX_TOKENS,
            quotes="sentences",
        )
        tally = Tally(self._models[profile])
        outcome = await make(dose, choose=self._choose)(truncate_task(task, dose), tally)
        cost = self._prices.cost(SHADOW, tally.usage)
        assert cost is not None
        return Outcome(
            right=is_right(outcome, self._gold_of(query)),
            refused=isinstance(outcome, Refusal),
            cost=float(cost),
        )

    def _gold_of(self, query: Query) -> Gold:
        return self._gold[query.text]
