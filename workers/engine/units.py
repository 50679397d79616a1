"""Units: the pieces of a job's work that are carried by one message each."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import anyio

ANSWER = "answer"
REDUCE = "reduce"
_EXTRACT = "extract:"
#: seconds between two tries of what is not to be begun any more, until it is told so
_STOPPED = 0.1


@dataclass(frozen=True, kw_only=True, slots=True)
class Unit:
    """What a message names; it says nothing of the question itself."""

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
        """A unit as it stands in Redis, ``job|name``."""
        job, _, name = member.partition("|")
        return cls(tenant=tenant, job=job, name=name)


def extract(index: int) -> str:
    """The name of a partition's unit."""
    return f"{_EXTRACT}{index}"


@dataclass(frozen=True, kw_only=True, slots=True, eq=False)
class Held:
    """A unit that this process works on.

    It is held by a lease that ends unless it is extended. Whoever works on with a token that is no
    longer the unit's is told so at the next thing it tries.
    """

    unit: Unit
    #: grows with every claim of any unit of the job
    token: int
    #: seconds that the job may still take, at the time of the claim
    left: float
    #: seconds that the job was given in all
    patience: float
    #: the request, JSON
    request: str
    #: of an ``extract`` unit: its partition, JSON
    partition: str | None = None
    #: the decision, JSON, of a ``reduce`` unit, and of an ``answer`` unit that was taken up before
    decision: str | None = None
    #: of a ``reduce`` unit: what the retrieval left for the output, JSON
    draft: str | None = None
    #: of a ``reduce`` unit: seconds since the job was first taken up
    elapsed: float = 0.0
    #: how often it was handed back because its worker could not do it
    returned: int = 0
    #: whether nothing that it asks can have been answered before
    fresh: bool = False
    #: set when nothing more is to be begun for it: waits end early
    stopped: anyio.Event = field(default_factory=anyio.Event)

    async def sleep(self, seconds: float) -> None:
        """Wait, but no longer than there is something to wait for."""
        if self.stopped.is_set():
            # it is known since before this wait, and whoever asks again and again is not to do so at once
            await anyio.sleep(min(seconds, _STOPPED))
            return
        with anyio.move_on_after(seconds):
            await self.stopped.wait()


#: hands units to the broker; blocking
Send = Callable[[Sequence[Unit]], None]
