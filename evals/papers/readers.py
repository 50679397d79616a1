"""The readers of a suite: simulated models, the offline reader, and models of a key or a server.

The last two are called as ``posology eval`` calls them: reserved in the tenant's ledger, every attempt and reply on disk
before anything is done with it, so that an interrupted run pays for nothing twice.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from decimal import Decimal
from functools import lru_cache
from typing import Protocol

from evals.papers.rows import Folder
from evals.papers.suite import Answered, Asked
from evals.pooled import SHADOW, counter, prices
from orchestrator.budget import Budget
from orchestrator.connections import Connections
from orchestrator.evaluation.journal import KeptCalls
from orchestrator.evaluation.simulation import Profile, SimulatedModel, profiles
from orchestrator.evaluation.simulation.profiles import FITTED, read
from posology.budget.ledger.journal import LedgerJournal
from posology.errors import UnusableReply
from posology.llm.calls import Caller
from posology.llm.models.names import parse
from posology.llm.offline.reader import NAME as OFFLINE
from posology.llm.offline.reader import VERSION
from posology.seams import Complete
from posology.store.keys import new_id
from posology.types import Answer, Call, Completion, Refusal, Usage
from strategies import make
from strategies.evidence import truncate_task

#: stands for every simulated profile, and for the offline reader
SIMULATED, SHORT = "simulated", "offline"
#: texts whose tokens are remembered: the prompts of a few questions, which every profile is asked
_KEPT = 1_024


class Reader(Protocol):
    """Answers the items of a suite."""

    @property
    def name(self) -> str: ...
    @property
    def statement(self) -> str:
        """Return one sentence that says what it is."""

    @property
    def identity(self) -> tuple[str, ...]:
        """Return all that decides its answers."""

    @property
    def profile(self) -> str | None:
        """Return its simulated profile; ``None``: it is no simulation."""

    async def ask(self, asked: Asked, key: str) -> Answered:
        """Answer an item; ``key`` is that of its row."""


def named(names: Sequence[str]) -> list[str]:
    """Return profiles and models by their full names, without repetitions."""
    full: list[str] = []
    for name in names:
        full += profiles() if name == SIMULATED else [OFFLINE if name == SHORT else name]
    return list(dict.fromkeys(full))


def is_simulated(name: str) -> bool:
    """Return whether a full name is that of a simulated profile."""
    return name in profiles()


class Simulated:
    """A simulated model.

    Args:
        profile: its profile.
        seed: of its draws.
    """

    def __init__(self, profile: Profile, seed: int = 0) -> None:
        self.name = self.profile = profile.name
        self._profile = profile
        self._seed = seed
        self._prices = prices()

    @property
    def identity(self) -> tuple[str, ...]:
        """Return its parameters and its seed."""
        return repr(self._profile), str(self._seed)

    @property
    def statement(self) -> str:
        """Return what it was fitted to."""
        basis = next(r["basis"] for r in read(FITTED)["profiles"] if r["name"] == self.name)
        return (
            f"a simulation, no language model: it knows the gold labels and draws what it takes in. Fitted to: {basis}; "
            f"seed {self._seed}. Dollars are those of {SHADOW} for the same prompts."
        )

    async def ask(self, asked: Asked, key: str) -> Answered:  # noqa: ARG002 - nothing is kept
        """Answer an item."""
        model = SimulatedModel(
            self._profile,
            lambda _: asked.gold,
            _count,
            seed=self._seed,
            answers=lambda _: asked.answers,
        )
        tally = _Tally(model)
        outcome = await _answer(asked, SHADOW, tally)
        usd = self._prices.cost(SHADOW, tally.usage)
        assert usd is not None
        return Answered(
            outcome=outcome,
            calls=tally.calls,
            input_tokens=tally.usage.total_input,
            output_tokens=tally.usage.total_output,
            usd=float(usd),
            profile=self.name,
        )


class Called:
    """A model that is called through the tenant's budget; the offline reader among them.

    Args:
        model: ``provider:name``.
        budget: of the tenant.
        connections: to providers.
        folder: keeps attempts and replies.
        cap: dollars for this run; ``None``: only the tenant's limits apply.
    """

    profile = None

    def __init__(
        self,
        model: str,
        budget: Budget,
        connections: Connections,
        folder: Folder,
        cap: Decimal | None,
    ) -> None:
        self.name = model
        self._budget = budget
        self.connections = connections
        self._folder = folder
        self._cap = cap
        self._run = new_id("run")
        self._prices = prices()

    @property
    def identity(self) -> tuple[str, ...]:
        """Return its name, and the version of the offline reader."""
        return (self.name, VERSION) if self.name == OFFLINE else (self.name,)

    @property
    def statement(self) -> str:
        """Return what it is."""
        if self.name == OFFLINE:
            return (
                "the built-in offline reader, no language model: it quotes sentences, scores every passage by itself and gives "
                f"neither verdicts nor short answers. Dollars are those of {SHADOW} for the same prompts."
            )
        return "a language model, called through the tenant's budget; dollars are what its calls were charged."

    async def ask(self, asked: Asked, key: str) -> Answered:
        """Answer an item; replies of an interrupted run are used again.

        Raises:
            UnusableReply: a partition could not be read, so that the outcome is not what is measured.
            PosologyError: a call failed, or the budget does not pay for it.
        """
        kept = KeptCalls(self._folder.calls, key)
        journal = LedgerJournal(self._budget.ledger, kept, cap=self._cap, run=self._run)
        caller = Caller(recall=kept.recall)
        outcome = await _answer(
            asked, self.name, self.connections.complete(self.name, journal, caller)
        )
        account, coverage = kept.account, outcome.coverage
        if coverage is not None and coverage.partial:
            raise UnusableReply(
                f"{coverage.failed} of {coverage.partitions} partitions could not be read",
                provider=parse(self.name).provider,
                model=self.name,
                usage=account.usage,
            )
        shadow = self._prices.cost(SHADOW, account.usage)
        usd = shadow if self.name == OFFLINE else account.charged
        assert usd is not None
        return Answered(
            outcome=outcome,
            calls=len(account.attempts),
            input_tokens=account.usage.total_input,
            output_tokens=account.usage.total_output,
            usd=float(usd),
            verdicts=self.name != OFFLINE,
        )


class _Tally:
    """A :class:`~posology.seams.Complete` that adds up what passes through it."""

    def __init__(self, inner: Complete) -> None:
        self._inner = inner
        self.usage = Usage()
        self.calls = 0

    async def __call__(self, call: Call) -> Completion:
        completion = await self._inner(call)
        assert completion.usage is not None
        self.usage += completion.usage
        self.calls += 1
        return completion


async def _answer(asked: Asked, model: str, complete: Complete) -> Answer | Refusal:
    task = truncate_task(replace(asked.task, model=model), asked.dose)
    strategy = make(asked.dose, partition_size=asked.partition_size)
    return await strategy(task, complete)


@lru_cache(maxsize=_KEPT)
def _count(text: str) -> int:
    return counter()(text)
