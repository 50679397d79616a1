"""Plan of a full exploration: each action on each question, before any call is made."""

from __future__ import annotations

import base64
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np
from anyio import to_thread

from orchestrator.training.qtable.questions import Example
from orchestrator.training.qtable.rows import Arm, Asked, calls_of
from policies.qtable import state_vector
from posology.concurrency import map_concurrently
from posology.llm.memo import call_key
from posology.seams import Compressor, TokenCounter
from posology.types import Call, Dose, Excerpt, Query, Retrieval, Task
from prompts.fence import fence
from strategies import compressed, direct
from strategies.compressed import CompressedRag
from strategies.direct import Direct

if TYPE_CHECKING:
    from numpy.typing import NDArray

#: concurrent retrievals
_AT_ONCE = 4


@dataclass(frozen=True, kw_only=True, slots=True, eq=False)
class Ground:
    """A question with its passages and the call of each action."""

    example: Example
    retrieval: Retrieval
    asked: Asked


@dataclass(frozen=True, kw_only=True, slots=True, eq=False)
class Plan:
    """The questions of an exploration."""

    #: by digest of the question, in the order of the file
    grounds: Mapping[str, Ground]
    #: digest of each prompt in use, by name
    prompts: Mapping[str, str]
    #: name and version of the index; empty if no question has passages
    index: str
    #: questions for which the index has no passage: there is nothing to compress
    without: tuple[Example, ...] = ()

    @property
    def calls(self) -> int:
        """Number of distinct calls."""
        return len(calls_of(ground.asked for ground in self.grounds.values()))


@dataclass(frozen=True, kw_only=True, slots=True)
class Actions:
    """Makes the calls: each shows the whole context or keeps a share of its sentences whole."""

    shares: Sequence[float]
    compressor: Compressor
    #: ``provider:name``
    model: str
    #: limit on output tokens of one call; ``None``: the stage's default
    max_tokens: int | None
    #: as :func:`~posology.llm.models.effort.parse_effort` takes it; ``None``: the default of the stage
    effort: str | None = None

    def task(self, retrieval: Retrieval) -> Task:
        """Return the task of a strategy."""
        return Task(
            query=retrieval.query,
            retrieval=retrieval,
            model=self.model,
            max_tokens=self.max_tokens,
            effort=self.effort,
        )

    def strategy(self, keep: float) -> Direct | CompressedRag:
        """Return direct RAG for the whole context, compressed RAG for a part of it."""
        return Direct() if keep == 1 else CompressedRag(compressor=self.compressor, keep=keep)

    def call(self, retrieval: Retrieval, keep: float) -> Call | None:
        """Return the call of one action; ``None`` if nothing of the context remains. Blocking."""
        return self.strategy(keep).call(self.task(retrieval))


@dataclass(frozen=True, kw_only=True, slots=True)
class Planner:
    """Plans an exploration. Spends nothing.

    Args:
        retrieve: finds the passages of a question.
        actions: to explore, the whole context among them.
        count: counts tokens, for the shares in rewards.
    """

    retrieve: Callable[[Query], Awaitable[Retrieval]]
    actions: Actions
    count: TokenCounter
    #: digest of each prompt in use
    _prompts: dict[str, str] = field(default_factory=dict)

    async def __call__(self, examples: Sequence[Example]) -> Plan:
        """Retrieve for every question and render each action.

        Raises:
            IndexFault: the index cannot serve.
        """

        async def ground(example: Example) -> Ground | None:
            retrieval = await self.retrieve(example.query)
            return await to_thread.run_sync(self._ground, example, retrieval)

        found = await map_concurrently(ground, examples, limit=_AT_ONCE)
        grounds = [one for one in found if one is not None]
        return Plan(
            grounds={one.example.digest: one for one in grounds},
            prompts=dict(self._prompts),
            index=grounds[0].retrieval.index_version if grounds else "",
            without=tuple(
                example for example, one in zip(examples, found, strict=True) if one is None
            ),
        )

    def _ground(self, example: Example, retrieval: Retrieval) -> Ground | None:
        whole = self.actions.call(retrieval, 1.0)
        if whole is None:
            return None
        self._prompts[whole.prompt.name] = whole.prompt.digest
        asked = Asked(
            digest=example.digest,
            line=example.line,
            choices=example.query.choices,
            references=example.references,
            vectors=packed(state_vector(retrieval, "concatenation")),
            tokens=self._tokens(whole.excerpts),
            arms=tuple(self._arm(retrieval, keep) for keep in self.actions.shares),
        )
        return Ground(example=example, retrieval=retrieval, asked=asked)

    def _arm(self, retrieval: Retrieval, keep: float) -> Arm:
        call = self.actions.call(retrieval, keep)
        if call is None:
            return Arm(keep=keep, call=None, tokens=0)
        return Arm(keep=keep, call=call_key(call), tokens=self._tokens(call.excerpts))

    def _tokens(self, excerpts: tuple[Excerpt, ...]) -> int:
        # headings, fences and ellipses are billed, too
        return self.count(fence(excerpts).text)


def packed(vector: NDArray[np.float32]) -> str:
    """Encode a vector as text, without loss."""
    return base64.b64encode(np.ascontiguousarray(vector, "<f4").tobytes()).decode()


def unpacked(text: str) -> NDArray[np.float32]:
    """Decode a vector.

    Raises:
        ValueError: the text is not an encoded vector.
    """
    return np.frombuffer(base64.b64decode(text, validate=True), "<f4")


def dose(keep: float) -> Dose:
    """Return the dose of an action."""
    if keep == 1:
        return Dose(strategy=direct.NAME)
    return Dose(strategy=compressed.NAME, keep=keep)
