"""Metrics of all tenants' jobs, read from Redis."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import cast

from prometheus_client.core import (
    CounterMetricFamily,
    GaugeMetricFamily,
    HistogramMetricFamily,
    Metric,
)
from prometheus_client.registry import Collector

from orchestrator.jobs import tenants
from orchestrator.jobs.scripts import BUCKETS
from orchestrator.jobs.store import JobStore
from orchestrator.webhooks.metrics import Backlog, backlog
from posology.budget.books.reader import spenders
from posology.budget.ledger.windows import WINDOWS
from posology.budget.tenants.alerts import near_limits
from posology.store import keys
from posology.store.connection import translated
from posology.types import JobState, Outcome, Scope

#: the broker's queues
QUEUES = ("posology.jobs", "posology.calls")
#: milliseconds after which a worker that says nothing is taken for dead
ALIVE = 30_000
#: tenants that are asked for in one round trip
_AT_ONCE = 100
_NANO = 1_000_000_000


@dataclass(kw_only=True, slots=True)
class Snapshot:
    """Metrics of one reading."""

    #: jobs by state, of all tenants
    states: Counter[JobState] = field(default_factory=Counter)
    #: jobs that wait for a place at the broker, and such that did until they were cancelled
    waiting: int = 0
    #: messages by queue
    queues: dict[str, int] = field(default_factory=dict)
    #: sums over all tenants, by the names that the scripts give them
    counters: Counter[str] = field(default_factory=Counter)
    #: workers that live, and those of them that answer jobs
    workers: int = 0
    answering: int = 0
    #: budgets that are nearly or wholly spent, by scope
    near: Counter[Scope] = field(default_factory=Counter)
    #: messages of webhooks that wait
    webhooks: Backlog = field(default_factory=Backlog)


async def read(store: JobStore) -> Snapshot:
    """Read everything.

    Raises:
        StoreUnavailable: Redis is unreachable.
    """
    snapshot = Snapshot(
        workers=await live_workers(store), answering=await live_workers(store, of=keys.ANSWERING)
    )
    snapshot.queues = await queue_lengths(store)
    # in this order: a tenant is added to the other list before it leaves this one
    names = await tenants.listed(store)
    past = sorted(set(await tenants.past(store)) - set(names))
    for start in range(0, len(names), _AT_ONCE):
        await _add(store, names[start : start + _AT_ONCE], snapshot)
    for start in range(0, len(past), _AT_ONCE):
        await _add_past(store, past[start : start + _AT_ONCE], snapshot)
    near = await near_limits(store.redis, store.url, await spenders(store.redis, store.url))
    snapshot.near = Counter(one.scope for one in near)
    snapshot.webhooks = await backlog(store)
    return snapshot


async def queue_lengths(store: JobStore) -> dict[str, int]:
    """Return the number of messages in each of the broker's queues.

    Raises:
        StoreUnavailable: Redis is unreachable.
    """
    with translated(store.url):
        async with store.redis.pipeline(transaction=False) as pipe:
            for queue in QUEUES:
                pipe.llen(queue)
            lengths = await pipe.execute()
    return dict(zip(QUEUES, map(int, lengths), strict=True))


@dataclass(frozen=True, kw_only=True, slots=True)
class Heartbeat:
    """The last heartbeat of a worker process."""

    #: host and process id
    name: str
    at: datetime
    #: whether it is recent enough
    alive: bool


async def heartbeats(store: JobStore, *, limit: int) -> tuple[Heartbeat, ...]:
    """Return the last heartbeats of workers, newest first.

    Raises:
        StoreUnavailable: Redis is unreachable.
    """
    with translated(store.url):
        seconds, micros = await store.redis.time()
        found = cast(
            "list[tuple[str, float]]",
            await store.redis.zrevrange(keys.WORKERS, 0, limit - 1, withscores=True),
        )
    since = seconds * 1000 + micros // 1000 - ALIVE
    return tuple(
        Heartbeat(name=name, at=keys.at(told), alive=told >= since) for name, told in found
    )


async def live_workers(store: JobStore, *, of: str = keys.WORKERS) -> int:
    """How many workers told of themselves lately, by the clock of Redis.

    Args:
        store: the job records.
        of: the list that they are in: :data:`~posology.store.keys.WORKERS` or :data:`~posology.store.keys.ANSWERING`.

    Raises:
        StoreUnavailable: Redis is unreachable.
    """
    with translated(store.url):
        seconds, micros = await store.redis.time()
        now = seconds * 1000 + micros // 1000
        return int(await store.redis.zcount(of, now - ALIVE, "+inf"))


async def _add(store: JobStore, names: Sequence[str], snapshot: Snapshot) -> None:
    with translated(store.url):
        async with store.redis.pipeline(transaction=False) as pipe:
            for tenant in names:
                prefix = keys.prefix(tenant)
                pipe.hgetall(f"{prefix}metrics")
                pipe.llen(f"{prefix}waiting")
                for state in JobState:
                    pipe.zcard(f"{prefix}state:{state}")
            replies = iter(await pipe.execute())
    for _ in names:
        snapshot.counters.update({name: int(n) for name, n in next(replies).items()})
        snapshot.waiting += next(replies)
        snapshot.states.update({state: next(replies) for state in JobState})


async def _add_past(store: JobStore, names: Sequence[str], snapshot: Snapshot) -> None:
    """The sums alone: a counter must not fall when a tenant's last record is forgotten."""
    with translated(store.url):
        async with store.redis.pipeline(transaction=False) as pipe:
            for tenant in names:
                pipe.hgetall(f"{keys.prefix(tenant)}metrics")
            for counters in await pipe.execute():
                snapshot.counters.update({name: int(n) for name, n in counters.items()})


class JobsCollector(Collector):
    """A snapshot in Prometheus's terms.

    Args:
        snapshot: ``None`` where Redis did not answer; that is then all there is to tell.
    """

    def __init__(self, snapshot: Snapshot | None) -> None:
        self._snapshot = snapshot

    def collect(self) -> Iterator[Metric]:
        """One family after the other."""
        snapshot = self._snapshot
        yield GaugeMetricFamily(
            "posology_store_up", "Whether Redis answered.", value=0 if snapshot is None else 1
        )
        if snapshot is None:
            return
        yield GaugeMetricFamily(
            "posology_workers", "Workers that told of themselves lately.", value=snapshot.workers
        )
        yield GaugeMetricFamily(
            "posology_workers_answering",
            "Those of them that answer jobs, not only calls or shards of an ingest.",
            value=snapshot.answering,
        )
        states = GaugeMetricFamily(
            "posology_jobs", "Jobs whose records are kept, by state.", labels=["state"]
        )
        for state in JobState:
            states.add_metric([state.value], snapshot.states[state])
        yield states
        yield GaugeMetricFamily(
            "posology_jobs_waiting",
            "Jobs that wait for a place at the broker, at most: some may have been cancelled.",
            value=snapshot.waiting,
        )
        queues = GaugeMetricFamily(
            "posology_queue_messages", "Messages at the broker, by queue.", labels=["queue"]
        )
        for queue, length in snapshot.queues.items():
            queues.add_metric([queue], length)
        yield queues
        near = GaugeMetricFamily(
            "posology_budgets_near_limit",
            "Budgets of tenants of which at least 80 % is spent, by scope.",
            labels=["scope"],
        )
        for scope in WINDOWS:
            near.add_metric([scope.value], snapshot.near[scope])
        yield near
        yield from _webhooks(snapshot)
        yield from _attempts(snapshot.counters)
        yield _latency(snapshot.counters)


def _webhooks(snapshot: Snapshot) -> Iterator[Metric]:
    attempts = CounterMetricFamily(
        "posology_webhook_attempts",
        "Attempts to deliver messages of webhooks, by outcome.",
        labels=["outcome"],
    )
    for outcome in ("delivered", "failed"):
        attempts.add_metric([outcome], snapshot.counters[f"webhooks|{outcome}"])
    yield attempts
    yield CounterMetricFamily(
        "posology_webhook_messages_given_up",
        "Messages of webhooks that were given up.",
        value=snapshot.counters["webhooks|given_up"],
    )
    yield GaugeMetricFamily(
        "posology_webhook_messages_pending",
        "Messages of webhooks that are to be delivered.",
        value=snapshot.webhooks.pending,
    )
    yield GaugeMetricFamily(
        "posology_webhook_oldest_seconds",
        "Seconds for which the oldest message waits, without those of paused endpoints.",
        value=snapshot.webhooks.oldest,
    )


def _attempts(counters: Counter[str]) -> Iterator[Metric]:
    # a loss is reverted when the attempt's end is reported late, and a counter must never fall
    lost = GaugeMetricFamily(
        "posology_attempts_lost",
        "Attempts whose end was never reported; billing status unknown.",
        labels=["stage", "model"],
    )
    ended = CounterMetricFamily(
        "posology_attempts",
        "Attempts at model calls whose end is known; a reply of a batch that proves unusable counts as ok and as unusable.",
        labels=["stage", "model", "outcome"],
    )
    for stage, rest, value in _labelled(counters, "attempts"):
        # a model's name may hold the separator, an outcome cannot
        model, _, outcome = rest.rpartition("|")
        if outcome == Outcome.LOST:
            lost.add_metric([stage, model], value)
        else:
            ended.add_metric([stage, model, outcome], value)
    yield ended
    yield lost
    tokens = CounterMetricFamily(
        "posology_tokens", "Tokens of model calls.", labels=["stage", "model", "direction"]
    )
    for direction in ("input", "output"):
        for stage, model, value in _labelled(counters, direction):
            tokens.add_metric([stage, model, direction], value)
    yield tokens
    spend = CounterMetricFamily(
        "posology_spend_usd", "Dollars, as far as they are known.", labels=["stage", "model"]
    )
    for stage, model, value in _labelled(counters, "nano"):
        spend.add_metric([stage, model], value / _NANO)
    yield spend
    unknown = CounterMetricFamily(
        "posology_unknown_costs",
        "Attempts that ended and whose cost is unknown; those that are lost come on top.",
        labels=["stage", "model"],
    )
    for stage, model, value in _labelled(counters, "unknown"):
        unknown.add_metric([stage, model], value)
    yield unknown


def _latency(counters: Counter[str]) -> Metric:
    family = HistogramMetricFamily(
        "posology_attempt_seconds", "Seconds that attempts took.", labels=["stage"]
    )
    for stage, _, count in _labelled(counters, "latency_count"):
        below, buckets = 0, []
        for bound in BUCKETS:
            below += counters[f"latency_le|{stage}|{bound}"]
            buckets.append((str(float(bound)), below))
        buckets.append(("+Inf", count))
        family.add_metric([stage], buckets, counters[f"latency_ms|{stage}"] / 1000)
    return family


def _labelled(counters: Counter[str], kind: str) -> Iterator[tuple[str, str, int]]:
    """The counters of a kind, with their stage and what follows it."""
    for name in sorted(counters):
        if name.startswith(f"{kind}|"):
            stage, _, rest = name.removeprefix(f"{kind}|").partition("|")
            yield stage, rest, counters[name]
