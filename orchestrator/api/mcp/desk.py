"""The seam between the tools and what answers them: this service, this process, or a service elsewhere."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import AbstractAsyncContextManager, aclosing, nullcontext, suppress
from dataclasses import dataclass
from typing import Any

import anyio

from orchestrator.question.request import AskRequest, SearchRequest
from posology.errors import JobFinished, JobNotFound, StoreUnavailable
from posology.published.answers import AskOutput, PassageOutput
from posology.published.estimates import EstimateOutput
from posology.published.jobs import JobEvent, JobOutput
from posology.published.literature import QuoteSearch, SearchOutput

#: receives the events of a job while it is under way
Told = Callable[[JobEvent], Awaitable[None]]


@dataclass(frozen=True, kw_only=True, slots=True)
class Answered:
    """An answer or refusal."""

    out: AskOutput
    #: id of its job; ``None``: it was answered in this process
    job: str | None


class Desk(ABC):
    """Answers the tools for one tenant. Every method raises Posology's errors."""

    @abstractmethod
    async def search(self, asked: SearchRequest) -> SearchOutput:
        """Return passages; only a paid embedder of the index costs anything."""

    @abstractmethod
    async def passage(self, passage: str, version: int | None) -> PassageOutput:
        """Return a passage in full, of a version of the index; ``None``: the newest."""

    @abstractmethod
    async def find_quote(self, quote: str, version: int | None) -> QuoteSearch:
        """Return the passages that contain a quote or nearly do, of a version of the index; ``None``: the newest."""

    def reading(self) -> AbstractAsyncContextManager[None]:
        """Hold a place for work on a passage during the block, where requests share a process."""
        return nullcontext()

    @abstractmethod
    async def estimate(self, asked: AskRequest) -> EstimateOutput:
        """Estimate the cost of a question; no model is called."""

    @abstractmethod
    async def ask(self, asked: AskRequest, *, key: str | None, told: Told) -> Answered:
        """Answer a question, within the tenant's limits; when it is cancelled, nothing more is sent to a model.

        Args:
            asked: the question.
            key: idempotency key; ``None``: none.
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

    async def ended(self, told: Told, *, seconds: float) -> JobOutput:
        """Return the job when it has ended, at the latest after some seconds; a cancelled call cancels it.

        Args:
            told: receives its events.
            seconds: maximum time.
        """
        try:
            with anyio.move_on_after(seconds):
                async with aclosing(self.events(self.id)) as events:
                    async for event in events:
                        await told(event)
            return await self.get(self.id)
        except anyio.get_cancelled_exc_class():
            if self.created:
                with (
                    anyio.CancelScope(shield=True),
                    suppress(JobFinished, JobNotFound, StoreUnavailable),
                ):
                    await self.cancel(self.id)
            raise
