"""The tools of a tenant of this service: each question is a job."""

from __future__ import annotations

import time
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from functools import partial

import anyio
from anyio import to_thread
from fastapi import Request

from orchestrator.api.context import Context
from orchestrator.api.mcp.desk import Answered, Desk, Submitted, Told, Watches, submitted
from orchestrator.api.watches.creating import create_watch
from orchestrator.jobs.rows import Row
from orchestrator.question.estimates.rows import read_standing
from orchestrator.question.passages import search_output
from orchestrator.question.request import AskRequest, JobRequest, SearchRequest
from orchestrator.question.sent import QuoteRequest
from orchestrator.retrieval import find_quote, read_passage
from orchestrator.watches.request import WatchRequest
from orchestrator.watches.store import WatchStore
from posology.published.answers import PassageOutput
from posology.published.estimates import EstimateOutput
from posology.published.literature import QuoteSearch, SearchOutput
from posology.published.watches.forms import WatchOutput, WatchSummary
from posology.types import WatchState


@dataclass(frozen=True, kw_only=True, slots=True)
class TenantWatches:
    """See :class:`~orchestrator.api.mcp.desk.Watches`: of a tenant of this service."""

    api: Context
    tenant: str
    request: Request

    async def create(self, asked: WatchRequest) -> WatchOutput:
        made, _ = await create_watch(self.request, self.api, self.tenant, asked)
        return made

    async def all(self) -> tuple[WatchSummary, ...]:
        return await self._store().all(tenant=self.tenant)

    async def get(self, watch: str) -> WatchOutput:
        return await self._store().get(watch, tenant=self.tenant)

    async def end(self, watch: str) -> WatchOutput:
        return await self._store().turn(watch, WatchState.ENDED, tenant=self.tenant)

    def _store(self) -> WatchStore:
        return WatchStore(self.api.jobs())


@dataclass(frozen=True, kw_only=True, slots=True)
class ServiceDesk(Desk):
    """Answers with the queue, the index and the limits of the service."""

    api: Context
    tenant: str
    #: the request that calls the tool
    request: Request

    async def search(self, asked: SearchRequest) -> SearchOutput:
        literature = await self.api.readable(self.tenant, asked.collection)
        query = asked.to_query()
        async with self.api.searches.of(self.tenant):
            started = time.perf_counter()
            found = await literature.search(asked, query, tenant=self.tenant, store=self.api.jobs())
            seconds = time.perf_counter() - started
        return search_output(found, mode=asked.mode, k=asked.k, seconds=seconds)

    async def passage(
        self, passage: str, version: int | None, collection: str | None
    ) -> PassageOutput:
        index = await (await self.api.readable(self.tenant, collection)).index()
        return await to_thread.run_sync(read_passage, index, passage, version)

    async def find_quote(self, asked: QuoteRequest) -> QuoteSearch:
        index = await (await self.api.readable(self.tenant, asked.collection)).index()
        return await to_thread.run_sync(find_quote, index, asked.quote, asked.index_version)

    @property
    def watches(self) -> Watches:
        return TenantWatches(api=self.api, tenant=self.tenant, request=self.request)

    def reading(self) -> AbstractAsyncContextManager[None]:
        return self.api.reads.of(self.tenant)

    async def estimate(self, asked: AskRequest) -> EstimateOutput:
        job = await to_thread.run_sync(self._job, asked)
        literature = await self.api.readable(self.tenant, job.collection)
        jobs = self.api.jobs()
        standing = await read_standing(jobs.redis, jobs.url, self.tenant)
        row = Row(number=0, id=None, request=job, error=None)
        return await self.api.estimating()([row], standing, whole=True, literature=literature)

    async def ask(self, asked: AskRequest, *, key: str | None, told: Told) -> Answered:
        jobs = self.api.jobs()
        job = await to_thread.run_sync(self._job, asked)

        async def submit(key: str) -> Submitted:
            # a job whose id is lost could not be cancelled
            with anyio.CancelScope(shield=True):
                made = await jobs.submit(job, tenant=self.tenant, key=key)
            return Submitted(
                id=made.job,
                created=made.created,
                events=partial(jobs.events, tenant=self.tenant),
                get=partial(jobs.get, tenant=self.tenant),
                cancel=partial(jobs.cancel, tenant=self.tenant),
            )

        async with self.api.waits.of(self.tenant):
            question = await submitted(submit, key=key, asked=job.model_dump_json())
            return await question.answered(told, seconds=self.api.limits.tool)

    def _job(self, asked: AskRequest) -> JobRequest:
        settings = self.api.settings
        # someone waits: the tier batch is refused, and as the service's default it is not taken
        tier = asked.to_request(settings).tier
        given = {name: getattr(asked, name) for name in asked.model_fields_set}
        fields = {name: value for name, value in given.items() if name in JobRequest.model_fields}
        seconds = max(self.api.limits.completion, 1.0)
        return JobRequest(**fields | {"tier": tier, "deadline_seconds": seconds}).settled(settings)
