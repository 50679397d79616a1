"""A job store on a real Redis with a clock of ours, and what tests do to jobs in it."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Any, cast

from redis.asyncio import Redis

from orchestrator.jobs.store import JobStore
from orchestrator.question.request import JobRequest
from posology.budget.ledger.base import nano
from posology.errors import PosologyError
from posology.published.answers import AskOutput
from posology.published.calls import ErrorBody
from posology.published.jobs import JobOutput
from posology.store import keys
from posology.store.connection import connect
from posology.types import (
    Attempt,
    Completion,
    Decision,
    Dose,
    Excerpt,
    Extraction,
    Failure,
    Finish,
    JobState,
    Opening,
    Outcome,
    Partition,
    Passage,
    PromptId,
    Stage,
    Usage,
)
from tests.support.answers import an_answer
from workers.engine.claims import WorkStore
from workers.engine.journal import JobJournal
from workers.engine.units import ANSWER, ClaimedUnit, Unit

#: seconds
LEASE, PATIENCE, RETENTION = 10.0, 100.0, 1_000.0
LOSSES = 2
#: dollars that an attempt sets aside
BOUND = Decimal("0.002")
MODEL = "openai:gpt-4o-mini"
PROMPT = PromptId(name="answer", digest="0" * 16)
DIRECT = Decision(dose=Dose(strategy="direct"), policy="fixed", reason="it was asked for")
PARTED = Decision(dose=Dose(strategy="briefcontext"), policy="fixed", reason="it was asked for")
ERROR = ErrorBody(
    type="ProviderUnreachable", message="no way", exit_code=6, details={}, spending=None
)


@dataclass(slots=True)
class Clock:
    """Milliseconds that pass when a test says so."""

    now: int = 1_700_000_000_000

    def __call__(self) -> int:
        return self.now

    def forward(self, seconds: float) -> None:
        self.now += round(seconds * 1000)


@dataclass(slots=True)
class Bench:
    """One tenant's jobs, with clients that any number of workers share."""

    redis: Redis
    url: str
    tenant: str
    clock: Clock = field(default_factory=Clock)
    deliveries: int = 0
    retention: float = RETENTION

    @property
    def store(self) -> JobStore:
        return JobStore(self.redis, self.url, clock=self.clock, retention=self.retention)

    def worker(self, name: str = "w") -> WorkStore:
        return WorkStore(self.store, worker=name, lease=LEASE, losses=LOSSES)

    async def submit(self, *, key: str | None = None, question: str = "Does it help?") -> str:
        asked = request(question)
        return (await self.store.submit(asked, tenant=self.tenant, key=key)).job

    async def sent(self, **fields: Any) -> Unit:
        """Submit a job, and take it as the next to be sent."""
        await self.store.submit(request(**fields), tenant=self.tenant)
        return await self.next()

    async def next(self) -> Unit:
        unit = await self.worker().take(self.tenant)
        assert unit is not None
        return unit

    async def get(self, job: str) -> JobOutput:
        return await self.store.get(job, tenant=self.tenant)

    async def cancel(self, job: str) -> JobOutput:
        return await self.store.cancel(job, tenant=self.tenant)

    async def retry(self, job: str) -> JobOutput:
        return await self.store.retry(job, tenant=self.tenant)

    def key(self, name: str) -> str:
        """The key of something of the tenant's."""
        return f"{keys.prefix(self.tenant)}{name}"

    async def limit(self, **limits: Decimal | str | int) -> None:
        """Set limits of the tenant; dollars as decimals."""
        given = {k: nano(v) if isinstance(v, Decimal) else v for k, v in limits.items()}
        await self.redis.hset(self.key("tenant"), mapping=cast("dict[Any, Any]", given))

    async def state(self, job: str) -> JobState:
        return await self.store.state(job, tenant=self.tenant)

    async def claim(self, job: str, name: str = ANSWER, *, worker: str = "w") -> ClaimedUnit | None:
        """Deliver a message; each delivery is another."""
        self.deliveries += 1
        unit = Unit(tenant=self.tenant, job=job, name=name)
        return await self.worker(worker).claim(unit, delivery=str(self.deliveries))

    async def claimed(self, job: str, name: str = ANSWER, *, worker: str = "w") -> ClaimedUnit:
        held = await self.claim(job, name, worker=worker)
        assert held is not None, f"{name} of {job} was to be had"
        return held

    async def running(self) -> ClaimedUnit:
        """A job whose ``answer`` unit a worker holds."""
        job = await self.submit()
        assert await self.worker().take(self.tenant) is not None
        return await self.claimed(job)

    async def calling(self, attempt: str) -> ClaimedUnit:
        """The same, with an attempt that is on its way."""
        held = await self.running()
        await self.open(held, attempt)
        return held

    async def extracting(self, partitions: int = 2) -> str:
        held = await self.running()
        await self.worker().decide(held, PARTED, calls=partitions + 1, partitions=parts(partitions))
        return held.unit.job

    async def reducing(self, partitions: int = 2) -> str:
        job = await self.extracting(partitions)
        for index in range(partitions):
            held = await self.claimed(job, f"extract:{index}")
            await self.worker().extracted(held, Extraction(partition=index))
        return job

    async def sweep(self) -> list[Unit]:
        """As housekeeping does when the broker holds all that was sent."""
        return await self.worker().sweep(self.tenant, jobs_before=0, calls_before=0)

    async def lost(self) -> list[Unit]:
        """Holders send no heartbeat for as long as their leases."""
        self.clock.forward(LEASE)
        return await self.sweep()

    async def sweep_all(self) -> list[Unit]:
        """As housekeeping does when the broker has lost everything."""
        self.clock.now += 1
        now = self.clock.now
        return await self.worker().sweep(self.tenant, jobs_before=now, calls_before=now)

    async def open(self, held: ClaimedUnit, attempt: str, *, key: str | None = None) -> int:
        return await JobJournal(self.worker(), held).open(opening(held, attempt, key=key))

    async def close(
        self,
        held: ClaimedUnit,
        attempt: str,
        outcome: Outcome = Outcome.OK,
        *,
        cost: Decimal | None = Decimal("0.001"),
        key: str | None = None,
    ) -> None:
        said = completion() if outcome in (Outcome.OK, Outcome.UNUSABLE) else None
        await JobJournal(self.worker(), held).close(
            ended(opening(held, attempt, key=key), outcome, cost), said
        )

    async def keys_of(self, job: str) -> set[str]:
        """Everything in Redis that is named after a job."""
        pattern = self.key(f"*{job}*")
        return {key async for key in self.redis.scan_iter(match=pattern, count=1000)}

    async def mentions_of(self, job: str) -> set[str]:
        """Every sorted set or hash of the tenant, by key, that has a member named after a job."""
        found = set()
        async for name in self.redis.scan_iter(match=self.key("*"), count=1000):
            kind = await self.redis.type(name)
            members: Sequence[Any] = ()
            if kind == "zset":
                members = await self.redis.zrange(name, 0, -1)
            elif kind == "hash":
                members = await self.redis.hvals(name)
            if any(job in member for member in members):
                found.add(name)
        return found


@asynccontextmanager
async def open_bench(url: str, tenant: str) -> AsyncIterator[Bench]:
    async with connect(url) as redis:
        yield Bench(redis=redis, url=url, tenant=tenant)


def succeeded(out: JobOutput) -> AskOutput:
    assert out.state is JobState.SUCCEEDED
    assert out.result is not None
    return out.result


def failed(out: JobOutput) -> ErrorBody:
    assert out.state is JobState.FAILED
    assert out.error is not None
    return out.error


def request(question: str = "Does it help?", **fields: Any) -> JobRequest:
    given: dict[str, Any] = {
        "model": MODEL,
        "max_tokens": 500,
        "deadline_seconds": PATIENCE,
    } | fields
    return JobRequest(question=question, **given)


def parts(count: int) -> tuple[Partition, ...]:
    return tuple(
        Partition(
            index=i,
            first_rank=i,
            excerpts=(Excerpt(passage=Passage(id=f"p{i}", text="It helps."), sentences=()),),
        )
        for i in range(count)
    )


def unread(index: int) -> Extraction:
    return Extraction(partition=index, failure=Failure.PROVIDER, error="ProviderTimeout")


def opening(held: ClaimedUnit, attempt: str, *, key: str | None = None) -> Opening:
    """An attempt; ``None``: at a call of its own."""
    stage = {"answer": Stage.ANSWER, "extract": Stage.EXTRACT, "reduce": Stage.REDUCE}
    return Opening(
        id=attempt,
        call=None,
        attempt=1,
        stage=stage[held.unit.kind],
        model=MODEL,
        prompt=PROMPT,
        key=key or attempt,
        started=1_700_000_000.0,
        reserved=BOUND,
    )


def ended(opened: Opening, outcome: Outcome, cost: Decimal | None) -> Attempt:
    return Attempt.of(
        opened,
        call=1,
        outcome=outcome,
        error=None if outcome is Outcome.OK else "ProviderTimeout",
        usage=None if cost is None else Usage(input=10, output=1),
        cost=cost,
        latency=0.5,
        request_id=None,
    )


def completion(text: str = "{}") -> Completion:
    return Completion(text=text, usage=Usage(input=10), finish=Finish.STOP, served_model="m")


def answer(text: str = "It helps.") -> AskOutput:
    """A result; which, its text tells."""
    return an_answer(answer=text)


async def refused(operation: Any) -> type[PosologyError] | None:
    """The class of the error that an operation raises; ``None``: it raises none."""
    try:
        await operation
    except PosologyError as error:
        return type(error)
    return None
