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
        """Identity of its settings and learned state: equal versions decide alike."""
        ...

    @property
    def parts(self) -> Mapping[str, str]:
        """Versions of its parts, by name: they show which part changed :attr:`version`."""
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
    """Keeps the parts of retrieved passages that bear on the question. Blocking, and spends nothing.

    A compressor that calls a model is a :class:`Rewriter`.
    """

    @property
    def name(self) -> str:
        """Name of the method, for the record."""
        ...

    @property
    def extractive(self) -> bool:
        """Whether all of its text is quoted from the passages; otherwise it may write summaries."""
        ...

    def __call__(self, retrieval: Retrieval, keep: float | None) -> Compressed:
        """Compress the passages of a retrieval.

        Args:
            retrieval: passages with the data computed at ingest, and the query's vectors.
            keep: share to keep, 0 to 1: of the sentences, or of the words for compressors that work on
                words; ``None``: the compressor's own choice.

        Raises:
            ValueError: ``keep`` is not 0 to 1.
        """
        ...

    def expected_ratio(self, keep: float | None) -> float:
        """Return the expected share of words kept, 0 to 1, as measured."""
        ...

    def seconds(self, retrieval: Retrieval, keep: float | None) -> float:
        """Return the expected seconds on two cores, as measured."""
        ...


@runtime_checkable
class Rewriter(Protocol):
    """Rewrites the passages shorter with a paid model: a compressor that spends.

    Test for it with ``isinstance(compressor, Rewriter)``: it lists its :meth:`calls`.
    """

    @property
    def name(self) -> str:
        """Name of the method, for the record."""
        ...

    async def __call__(self, task: Task, keep: float | None, complete: Complete) -> Compressed:
        """Compress the passages of a task.

        Args:
            task: question, passages and model.
            keep: share of the words to keep, 0 to 1; ``None``: its own choice.
            complete: spends.

        Raises:
            ValueError: ``keep`` is not 0 to 1.
            ProviderError: a call failed; the passages are not used uncompressed instead.
        """
        ...

    def calls(self, task: Task, keep: float | None) -> tuple[Call, ...]:
        """Return the calls that it makes; empty: nothing to compress. Blocking."""
        ...

    def expected_ratio(self, keep: float | None) -> float:
        """Return the expected share of words kept, 0 to 1."""
        ...


class Memory(Protocol):
    """A persistent cache. Blocking; safe for several threads and processes."""

    def get(self, keys: Sequence[bytes]) -> dict[bytes, bytes]:
        """Return the values of the keys that are present."""
        ...

    def put(self, values: Mapping[bytes, bytes]) -> None:
        """Store values; present keys keep theirs."""
        ...


class Recall(Protocol):
    """Returns the reply that a call with the same content got earlier, for the same work."""

    async def __call__(self, key: str, /) -> Completion | None: ...
