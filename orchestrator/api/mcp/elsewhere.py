"""The tools of a laptop: answered in this process, or by a service elsewhere."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import anyio
from anyio.abc import TaskGroup
from pydantic import BaseModel

from orchestrator.api.mcp.desk import (
    WAIT,
    Answered,
    Desk,
    Submitted,
    Told,
    Watches,
    pending,
    submitted,
)
from orchestrator.library import AsyncPosology
from orchestrator.question.request import AskRequest, JobRequest, SearchRequest
from orchestrator.question.sent import QuoteRequest
from orchestrator.watches.request import WatchRequest
from posology.client import Client
from posology.published.answers import AskOutput, PassageOutput
from posology.published.estimates import EstimateOutput
from posology.published.literature import QuoteSearch, SearchOutput
from posology.published.watches.forms import WatchOutput, WatchSummary

#: seconds until an unfinished job expires, unless the service answers sooner
DEADLINE = 600.0


@dataclass(kw_only=True, slots=True, eq=False)
class Question:
    """A question under way in this process."""

    scope: anyio.CancelScope = field(default_factory=anyio.CancelScope)
    #: set at its end
    over: anyio.Event = field(default_factory=anyio.Event)
    out: AskOutput | None = None
    error: Exception | None = None

    async def answer(self, library: AsyncPosology, fields: Mapping[str, Any]) -> None:
        """Answer it, and keep what became of it."""
        with self.scope:
            try:
                self.out = await library.ask(**fields)
            except Exception as error:  # noqa: BLE001 - who asked gets it
                self.error = error
        self.over.set()


@dataclass(frozen=True, kw_only=True, slots=True)
class LocalDesk(Desk):
    """Answers in this process, within the tenant's limits, without a queue: questions are no jobs.

    The encoder is loaded at the first call, since clients wait for a server that starts slowly only so long.
    """

    #: is opened here, and closed by who made it
    library: AsyncPosology
    #: runs questions, also those that a call no longer waits for; ended by who made it
    group: TaskGroup
    #: seconds that a call waits for its answer
    wait: float = WAIT
    opening: anyio.Lock = field(default_factory=anyio.Lock)
    #: by everything that a question is asked with
    questions: dict[str, Question] = field(default_factory=dict)

    async def search(self, asked: SearchRequest) -> SearchOutput:
        return await (await self._opened()).search(**_fields(asked))

    async def passage(
        self, passage: str, version: int | None, collection: str | None
    ) -> PassageOutput:
        library = await self._opened()
        library.check(collection)
        return await library.passage(passage, version=version)

    async def find_quote(self, asked: QuoteRequest) -> QuoteSearch:
        library = await self._opened()
        library.check(asked.collection)
        return await library.find_quote(asked.quote, version=asked.index_version)

    async def estimate(self, asked: AskRequest) -> EstimateOutput:
        return await (await self._opened()).estimate(**_fields(asked))

    async def ask(self, asked: AskRequest, *, key: str | None, told: Told) -> Answered:  # noqa: ARG002 - nothing is a job
        library, fields = await self._opened(), _fields(asked)
        library.check(fields.pop("collection", None))
        name = json.dumps(fields, sort_keys=True)
        until = anyio.current_time() + self.wait
        while True:
            question = await self._waited(name, library, fields, until)
            if not question.over.is_set():
                return Answered(out=pending(None, None), job=None)
            # the next call asks anew
            self._forget(name, question)
            # what another call began, and gave up, is no answer to this one
            if not question.scope.cancel_called:
                break
        if question.error is not None:
            raise question.error
        assert question.out is not None
        return Answered(out=question.out, job=None)

    async def _waited(
        self, name: str, library: AsyncPosology, fields: Mapping[str, Any], until: float
    ) -> Question:
        """Wait for a question until a time, and return it; it is begun if it is not under way."""
        question = self.questions.get(name)
        if began := question is None or question.scope.cancel_called:
            question = self.questions[name] = Question()
            self.group.start_soon(question.answer, library, fields)
        try:
            with anyio.move_on_after(until - anyio.current_time()):
                await question.over.wait()
        except anyio.get_cancelled_exc_class():
            if began:
                question.scope.cancel()
                self._forget(name, question)
            raise
        return question

    def _forget(self, name: str, question: Question) -> None:
        if self.questions.get(name) is question:
            del self.questions[name]

    async def _opened(self) -> AsyncPosology:
        async with self.opening:
            if not self.library.is_open:
                await self.library.__aenter__()
        return self.library


@dataclass(frozen=True, kw_only=True, slots=True)
class RemoteWatches:
    """See :class:`~orchestrator.api.mcp.desk.Watches`: of a service elsewhere."""

    client: Client

    async def create(self, asked: WatchRequest) -> WatchOutput:
        return await self.client.create_watch(asked.model_dump(mode="json", exclude_unset=True))

    async def all(self) -> tuple[WatchSummary, ...]:
        return await self.client.watches()

    async def get(self, watch: str) -> WatchOutput:
        return await self.client.watch(watch)

    async def end(self, watch: str) -> WatchOutput:
        return await self.client.end_watch(watch)


@dataclass(frozen=True, kw_only=True, slots=True)
class RemoteDesk(Desk):
    """Asks a service, with the key or the name of a tenant."""

    client: Client
    #: seconds that a call waits for its answer
    wait: float = WAIT

    @property
    def watches(self) -> Watches:
        return RemoteWatches(client=self.client)

    async def search(self, asked: SearchRequest) -> SearchOutput:
        return await self.client.search(**_fields(asked))

    async def passage(
        self, passage: str, version: int | None, collection: str | None
    ) -> PassageOutput:
        return await self.client.passage(passage, version=version, collection=collection)

    async def find_quote(self, asked: QuoteRequest) -> QuoteSearch:
        return await self.client.find_quote(
            asked.quote, version=asked.index_version, collection=asked.collection
        )

    async def estimate(self, asked: AskRequest) -> EstimateOutput:
        return await self.client.estimate(_fields(asked))

    async def ask(self, asked: AskRequest, *, key: str | None, told: Told) -> Answered:
        client, fields = self.client, _fields(asked)

        async def submit(key: str) -> Submitted:
            asked_for = fields | {"deadline_seconds": DEADLINE}
            job, created = await client.submit_or_find(asked_for, key=key)
            return Submitted(
                id=job.id,
                created=created,
                events=client.events,
                get=client.get,
                cancel=client.cancel,
            )

        found = await submitted(submit, key=key, asked=json.dumps(fields, sort_keys=True))
        return await found.answered(told, seconds=self.wait)


def _fields(asked: BaseModel) -> dict[str, Any]:
    """Return the fields that were given, those of a request alone."""
    known: Mapping[str, Any] = SearchRequest.model_fields | JobRequest.model_fields
    given = asked.model_dump(mode="json", exclude_unset=True)
    return {name: value for name, value in given.items() if name in known}
