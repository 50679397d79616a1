"""How a question is answered: by calls, strategies, policies and compressors."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Protocol, runtime_checkable

from posology.types import (
    Answer,
    Call,
    Completion,
    Compressed,
    Decision,
    Partition,
    PlannedCall,
    Refusal,
    Retrieval,
    Situation,
    Task,
)


class Complete(Protocol):
    """The only way to spend: sends one call and returns its completion.

    Raises:
        ProviderError: in one of its kinds, when the call did not lead to a usable completion.
    """

    async def __call__(self, call: Call) -> Completion: ...


class Guess(Protocol):
    """Predicts token counts and outcomes, so that a strategy can plan its calls without making any."""

    def tokens(self, texts: Iterable[str], model: str) -> float:
        """Return the expected tokens of texts, as the model's tokenizer counts them."""
        ...

    def input(self, call: Call) -> float:
        """Return the expected input tokens of a call."""
        ...

    def output(self, call: Call, *, default: float | None = None) -> float:
        """Return the expected output tokens of a call.

        Args:
            call: the call.
            default: expected tokens if the tenant has made no such call; ``None``: the measured default.
        """
        ...

    def bound(self, call: Call) -> int:
        """Return the most input tokens that a call can have."""
        ...

    def findings(self, extract: Call, reduce: Call, *, bare: float, block: float) -> float:
        """Return the input tokens that one partition's findings add to a reduce call.

        Args:
            extract: a call that reads a partition.
            reduce: the call that gets the findings.
            bare: input tokens of a reduce call without findings.
            block: input tokens of one rendered finding.
        """
        ...

    def found(self, model: str) -> float:
        """Return the share of questions, 0 to 1, for which a first pass finds anything to answer from."""
        ...

    def reached(self, model: str, step: int) -> float:
        """Return the share of questions, 0 to 1, that reach a step of a ladder, counted from 0."""
        ...


class Send(Protocol):
    """An adapter of a provider: makes one request for one attempt at a call.

    Args:
        call: what is sent.
        attempt_id: id of the attempt in the ledger, for providers that log an id of the client's.

    Raises:
        ProviderError: in one of its kinds, when the attempt did not lead to a completion.
    """

    async def __call__(self, call: Call, *, attempt_id: str | None = None) -> Completion: ...


class Strategy(Protocol):
    """Answers a task, spending only through ``complete``, and plans the calls that this takes."""

    async def __call__(self, task: Task, complete: Complete) -> Answer | Refusal: ...

    def calls(self, task: Task, guess: Guess) -> Iterable[PlannedCall]:
        """Plan the calls for a task, in order; none without passages. Blocking, and sends nothing."""
        ...

    def count(self, task: Task) -> int:
        """Return how many calls a task takes at most if none is repeated. Fast: renders nothing."""
        ...

    def partitions(self, task: Task) -> tuple[Partition, ...]:
        """Return the partitions that workers can read at the same time; empty if one worker makes all calls."""
        ...


class Policy(Protocol):
    """A pure function from a situation to a decision."""

    @property
    def version(self) -> str:
        """Identity of its settings and of what it has learned: equal versions decide alike."""
        ...

    @property
    def parts(self) -> Mapping[str, str]:
        """Versions of what it is made of, by name: they tell what changed where :attr:`version` did."""
        ...

    def __call__(self, situation: Situation) -> Decision: ...

    def replay(self, record: Decision) -> Decision:
        """Decide from the features of a recorded decision of this policy.

        ``replay(decision) == decision`` for its own decisions, except for ``versions`` and ``then``, which its
        caller adds.

        Raises:
            PosologyError: the record lacks a feature that this policy needs.
        """
        ...


class Compressor(Protocol):
    """Leaves of retrieved passages what bears on the question. Blocking, and spends nothing.

    What needs a model's answer to compress is a :class:`Rewriter`.
    """

    @property
    def name(self) -> str:
        """Which it is, for the record."""
        ...

    @property
    def extractive(self) -> bool:
        """Whether all that it shows are the passages' own words; else it may give summaries."""
        ...

    def __call__(self, retrieval: Retrieval, keep: float | None) -> Compressed:
        """Compress the passages of a retrieval.

        Args:
            retrieval: passages with what was computed of them at ingest, and the query's vectors.
            keep: share that is left, 0 to 1: of the sentences, which are left whole, or of the words, for
                what works on words; ``None``: as much as the compressor finds right.

        Raises:
            ValueError: ``keep`` is not 0 to 1.
        """
        ...

    def expected_ratio(self, keep: float | None) -> float:
        """The share of the words that it is expected to leave, 0 to 1, as measured."""
        ...

    def seconds(self, retrieval: Retrieval, keep: float | None) -> float:
        """About how long it takes on two cores, as measured."""
        ...


@runtime_checkable
class Rewriter(Protocol):
    """Writes the passages anew, shorter, by a model that is paid for: a compressor that spends.

    Whoever holds either tells them apart by ``isinstance(one, Rewriter)``: this one says its :meth:`calls`.
    """

    @property
    def name(self) -> str:
        """Which it is, for the record."""
        ...

    async def __call__(self, task: Task, keep: float | None, complete: Complete) -> Compressed:
        """Compress the passages of a task.

        Args:
            task: question, passages and model.
            keep: share of the words that is left, 0 to 1; ``None``: as much as it finds right.
            complete: spends.

        Raises:
            ValueError: ``keep`` is not 0 to 1.
            ProviderError: a call failed; what failed is not read in full instead.
        """
        ...

    def calls(self, task: Task, keep: float | None) -> tuple[Call, ...]:
        """The calls that it makes; empty where there is nothing to compress. Blocking."""
        ...

    def expected_ratio(self, keep: float | None) -> float:
        """The share of the words that it is expected to leave, 0 to 1."""
        ...


class Memory(Protocol):
    """Keeps for good what was computed once. Blocking; safe for several threads and processes."""

    def get(self, keys: Sequence[bytes]) -> dict[bytes, bytes]:
        """What is kept of these keys."""
        ...

    def put(self, values: Mapping[bytes, bytes]) -> None:
        """Keep; what is there already stays as it is."""
        ...


class Recall(Protocol):
    """Gives the reply that a call of the same content had earlier, for the same work."""

    async def __call__(self, key: str, /) -> Completion | None: ...
