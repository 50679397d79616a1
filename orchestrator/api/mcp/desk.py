"""The seam between the tools and what answers them: this service, this process, or a service elsewhere."""

from __future__ import annotations

import hashlib
from abc import ABC, abstractmethod
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import AbstractAsyncContextManager, aclosing, nullcontext, suppress
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any, Protocol

import anyio

from orchestrator.api.chat.errors import result_of
from orchestrator.question.request import AskRequest, SearchRequest
from orchestrator.question.sent import QuoteRequest
from orchestrator.rendering.stages import stage_of
from orchestrator.watches.request import WatchRequest
from posology.errors import JobFinished, JobNotFound, StoreUnavailable
from posology.published.answers import AskOutput, PassageOutput
from posology.published.estimates import EstimateOutput
from posology.published.jobs import AskPending, JobEvent, JobOutput
from posology.published.literature import QuoteSearch, SearchOutput
from posology.published.watches.forms import WatchOutput, WatchSummary
from posology.types import JobState

#: seconds that a call waits for its answer: many clients give up at 60
WAIT = 45.0
#: time after the end of a job in which the same call gets its answer again
AGAIN = timedelta(minutes=10)
#: receives the events of a job while it is under way
Told = Callable[[JobEvent], Awaitable[None]]


@dataclass(frozen=True, kw_only=True, slots=True)
class Answered:
    """An answer or refusal, or what is known before."""

    out: AskOutput | AskPending
    #: id of its job; ``None``: it was answered in this process
    job: str | None


class Watches(Protocol):
    """The watches of one tenant. Every method raises Posology's errors."""

    async def create(self, asked: WatchRequest) -> WatchOutput:
        """Watch a question; the same request again makes no second watch."""
        ...

    async def all(self) -> tuple[WatchSummary, ...]:
        """Return the watches, oldest first."""
        ...

    async def get(self, watch: str) -> WatchOutput:
        """Return a watch with its last answer and its changes."""
        ...

    async def end(self, watch: str) -> WatchOutput:
        """End a watch; a job under way goes on."""
        ...


class Desk(ABC):
    """Answers the tools for one tenant. Every method raises Posology's errors."""

    @abstractmethod
    async def search(self, asked: SearchRequest) -> SearchOutput:
        """Return passages; only a paid embedder of the index costs anything."""

    @abstractmethod
    async def passage(
        self, passage: str, version: int | None, collection: str | None
    ) -> PassageOutput:
        """Return a passage in full, of a version of the index; ``None``: the newest, and the default index."""

    @abstractmethod
    async def find_quote(self, asked: QuoteRequest) -> QuoteSearch:
        """Return the passages that contain a quote or nearly do."""

    @property
    def watches(self) -> Watches | None:
        """Return the tenant's watches; ``None``: nothing checks them here."""
        return None

    def reading(self) -> AbstractAsyncContextManager[None]:
        """Hold a place for work on a passage during the block, where requests share a process."""
        return nullcontext()

    @abstractmethod
    async def estimate(self, asked: AskRequest) -> EstimateOutput:
        """Estimate the cost of a question; no model is called."""

    @abstractmethod
    async def ask(self, asked: AskRequest, *, key: str | None, told: Told) -> Answered:
        """Answer a question within the tenant's limits, or say after :data:`WAIT` seconds that it is not answered yet.

        When it is cancelled, nothing more is sent to a model, unless an earlier call began the job.

        Args:
            asked: the question.
            key: idempotency key; ``None``: the same call goes on with the same job until :data:`AGAIN` after its end.
            told: receives the events of its job.
        """


@dataclass(frozen=True, kw_only=True, slots=True)
class Submitted:
    """A job that was submitted, and how to reach it."""

    id: str
    #: whether this call submitted it, and so may cancel it
    created: bool
    events: Callable[[str], AsyncGenerator[JobEvent]]
    get: Callable[[str], Awaitable[JobOutput]]
    cancel: Callable[[str], Awaitable[Any]]

    async def answered(self, told: Told, *, seconds: float) -> Answered:
        """Return its answer when it has ended, or after some seconds what is known; a cancelled call cancels it.

        Args:
            told: receives its events.
            seconds: maximum time.

        Raises:
            FailedJob: it failed or expired.
            JobCancelled: it was cancelled.
        """
        stage: str | None = None
        try:
            with anyio.move_on_after(seconds):
                async with aclosing(self.events(self.id)) as events:
                    async for event in events:
                        stage = stage_of(event) or stage
                        await told(event)
            job = await self.get(self.id)
        except anyio.get_cancelled_exc_class():
            if self.created:
                with (
                    anyio.CancelScope(shield=True),
                    suppress(JobFinished, JobNotFound, StoreUnavailable),
                ):
                    await self.cancel(self.id)
            raise
        out = result_of(job) if job.state.over else pending(self.id, stage)
        return Answered(out=out, job=self.id)


def pending(job: str | None, stage: str | None) -> AskPending:
    """Return what is said of a question that is not answered yet."""
    return AskPending(
        job=job,
        stage=stage,
        advice="Not answered yet: call ask again with the same arguments. The call goes on with the same question, which is "
        "paid for once.",
    )


async def submitted(
    submit: Callable[[str], Awaitable[Submitted]], *, key: str | None, asked: str
) -> Submitted:
    """Submit a question, or find the job of the same call before.

    Args:
        submit: submits it with an idempotency key, or finds the job of that key.
        key: the caller's key; ``None``: the same question within :data:`AGAIN` of its answer is the same job.
        asked: the question with everything that it is asked with, as text.
    """
    if key is not None:
        return await submit(key)
    own = _digest(asked)
    while True:
        found = await submit(own)
        if found.created:
            return found
        job = await found.get(found.id)
        if not job.state.over and job.state is not JobState.CANCELLING:
            return found
        recent = job.ended is not None and datetime.now(UTC) - job.ended < AGAIN
        if recent and job.state is JobState.SUCCEEDED:
            return found
        # each job that is too old, cancelled or failed leads to the key of the next
        own = _digest(own + job.id)


def _digest(text: str) -> str:
    return f"again-{hashlib.sha256(text.encode()).hexdigest()[:32]}"
