"""Units: the pieces of a job's work that messages name, and what a worker knows of one that it claimed."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

import anyio
from pydantic import TypeAdapter

from posology.published.answers import CompressionOutput, Ranked
from posology.types import Decision, Growth, Partition, Rung

ANSWER = "answer"
REDUCE = "reduce"
_EXTRACT = "extract:"
#: seconds that each wait of a stopped unit takes, until its next call is refused
_STOPPED = 0.1


@dataclass(frozen=True, kw_only=True, slots=True)
class Unit:
    """A piece of a job's work, by ids; the question is in the job's record."""

    tenant: str
    job: str
    #: ``answer``, ``extract:0`` …, or ``reduce``
    name: str

    @property
    def kind(self) -> str:
        """``answer``, ``extract`` or ``reduce``."""
        return self.name.partition(":")[0]

    @property
    def index(self) -> int:
        """The partition of an ``extract`` unit."""
        return int(self.name.removeprefix(_EXTRACT))

    @classmethod
    def of(cls, tenant: str, member: str) -> Unit:
        """Read a unit as it is in Redis, ``job|name``."""
        job, _, name = member.partition("|")
        return cls(tenant=tenant, job=job, name=name)


def extract(index: int) -> str:
    """Return the name of a partition's unit."""
    return f"{_EXTRACT}{index}"


@dataclass(frozen=True, kw_only=True, slots=True)
class Draft:
    """Draft of a question, kept for the output while workers read its partitions."""

    #: steps of a ladder that were refused before
    rungs: tuple[Rung, ...]
    #: passages with their places in the rankings
    retrieved: tuple[Ranked, ...]
    #: name and version of the index
    index: str
    #: seconds for retrieval
    retrieval_seconds: float
    #: compression at those steps; ``None``: nothing was compressed, or the record is older than this field
    compression: CompressionOutput | None = None
    #: how far the first ingest of the index was; ``None``: it was complete, or the record is older than this field
    growth: Growth | None = None
    #: ids of retracted articles that were left out of the passages
    withdrawn: tuple[str, ...] = ()


#: forms of values in a job's record
DECISION, DRAFT, PARTITION = TypeAdapter(Decision), TypeAdapter(Draft), TypeAdapter(Partition)


@dataclass(frozen=True, kw_only=True, slots=True, eq=False)
class ClaimedUnit:
    """A unit that this process works on.

    Its lease ends unless it is extended by heartbeats. A worker whose fencing token is out of date is refused at its
    next write.
    """

    unit: Unit
    #: fencing token: grows with every claim of any unit of the job
    token: int
    #: the job's deadline, in seconds of :attr:`clock`
    deadline: float
    #: seconds from the job's submission to its deadline
    patience: float
    #: request, JSON
    request: str
    #: partition of an ``extract`` unit, JSON
    partition: str | None = None
    #: decision, JSON, of a ``reduce`` unit, and of an ``answer`` unit that was claimed before
    decision: str | None = None
    #: :class:`Draft` of a ``reduce`` unit, JSON
    draft: str | None = None
    #: seconds since the job was first claimed, of a ``reduce`` unit
    elapsed: float = 0.0
    #: times that it was requeued because its worker could not do it
    returned: int = 0
    #: batch of the job; ``None``: it has none
    batch: str | None = None
    #: whether none of its calls can have been answered before
    fresh: bool = False
    #: set when no further work may begin for it: waits end early
    stopped: anyio.Event = field(default_factory=anyio.Event)
    #: seconds, from any origin
    clock: Callable[[], float] = anyio.current_time

    @property
    def left(self) -> float:
        """Return the seconds until the job's deadline; negative after it."""
        return self.deadline - self.clock()

    @property
    def ids(self) -> Mapping[str, str | None]:
        """Ids for log lines."""
        unit = self.unit
        return {"tenant": unit.tenant, "job": unit.job, "unit": unit.name, "batch": self.batch}

    async def sleep(self, seconds: float) -> None:
        """Wait, but no longer than until the unit is stopped."""
        if self.stopped.is_set():
            # a caller that retries must not do so without a pause
            await anyio.sleep(min(seconds, _STOPPED))
            return
        with anyio.move_on_after(seconds):
            await self.stopped.wait()


#: hands units to the broker. Blocking
Send = Callable[[Sequence[Unit]], None]
