"""The tools of a laptop: answered in this process, or by a service elsewhere."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import anyio
from pydantic import BaseModel

from orchestrator.api.chat.errors import result_of
from orchestrator.api.mcp.desk import Answered, Desk, Submitted, Told
from orchestrator.library import AsyncPosology
from orchestrator.question.request import AskRequest, JobRequest, SearchRequest
from posology.client import Client
from posology.published.answers import PassageOutput
from posology.published.estimates import EstimateOutput
from posology.published.literature import QuoteSearch, SearchOutput

#: seconds until an unfinished job expires, unless the service answers sooner
DEADLINE = 600.0


@dataclass(frozen=True, kw_only=True, slots=True)
class LocalDesk(Desk):
    """Answers in this process, within the tenant's limits, without a queue: questions are no jobs.

    The encoder is loaded at the first call, since clients wait for a server that starts slowly only so long.
    """

    #: is opened here, and closed by who made it
    library: AsyncPosology
    opening: anyio.Lock = field(default_factory=anyio.Lock)

    async def search(self, asked: SearchRequest) -> SearchOutput:
        return await (await self._opened()).search(**_fields(asked))

    async def passage(self, passage: str, version: int | None) -> PassageOutput:
        return await (await self._opened()).passage(passage, version=version)

    async def find_quote(self, quote: str, version: int | None) -> QuoteSearch:
        return await (await self._opened()).find_quote(quote, version=version)

    async def estimate(self, asked: AskRequest) -> EstimateOutput:
        return await (await self._opened()).estimate(**_fields(asked))

    async def ask(self, asked: AskRequest, *, key: str | None, told: Told) -> Answered:  # noqa: ARG002 - nothing is a job
        return Answered(out=await (await self._opened()).ask(**_fields(asked)), job=None)

    async def _opened(self) -> AsyncPosology:
        async with self.opening:
            if not self.library.is_open:
                await self.library.__aenter__()
        return self.library


@dataclass(frozen=True, kw_only=True, slots=True)
class RemoteDesk(Desk):
    """Asks a service, with the key or the name of a tenant."""

    client: Client

    async def search(self, asked: SearchRequest) -> SearchOutput:
        return await self.client.search(**_fields(asked))

    async def passage(self, passage: str, version: int | None) -> PassageOutput:
        return await self.client.passage(passage, version=version)

    async def find_quote(self, quote: str, version: int | None) -> QuoteSearch:
        return await self.client.find_quote(quote, version=version)

    async def estimate(self, asked: AskRequest) -> EstimateOutput:
        return await self.client.estimate(_fields(asked))

    async def ask(self, asked: AskRequest, *, key: str | None, told: Told) -> Answered:
        client = self.client
        found = await client.submit(_fields(asked) | {"deadline_seconds": DEADLINE}, key=key)
        submitted = Submitted(
            id=found.id,
            # a job of the caller's key may be of an earlier call
            created=key is None,
            events=client.events,
            get=client.get,
            cancel=client.cancel,
        )
        ended = await submitted.ended(told, seconds=DEADLINE)
        return Answered(out=result_of(ended), job=ended.id)


def _fields(asked: BaseModel) -> dict[str, Any]:
    """Return the fields that were given, those of a request alone."""
    known: Mapping[str, Any] = SearchRequest.model_fields | JobRequest.model_fields
    given = asked.model_dump(mode="json", exclude_unset=True)
    return {name: value for name, value in given.items() if name in known}
