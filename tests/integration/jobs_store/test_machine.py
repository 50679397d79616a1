"""Random histories of jobs on a real Redis, compared with a model after every step.

Workers crash by doing nothing more, and come back late: every hold that was ever given may be used at
any time, every message may be delivered again. To look longer than the suite does::

    JOBS_EXAMPLES=2000 JOBS_SEED=1 pytest tests/integration/jobs_store/test_machine.py
"""

from __future__ import annotations

import asyncio
import json
import os
import uuid
from collections.abc import Coroutine
from decimal import Decimal
from itertools import islice
from typing import Any, TypeVar

import pytest
from hypothesis import HealthCheck, seed, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)
from redis.asyncio import Redis

from orchestrator.jobs import keys
from orchestrator.jobs.connection import connect
from orchestrator.jobs.records import NANO
from orchestrator.jobs.units import Held, Unit
from orchestrator.jobs.work import JobExpired
from posology.errors import (
    IdempotencyConflict,
    JobCancelled,
    JobFinished,
    JobNotFailed,
    JobNotFound,
    JobSuperseded,
)
from posology.types import Extraction, JobState, Outcome
from tests.integration.jobs_store.helpers import (
    DIRECT,
    ERROR,
    LEASE,
    PARTED,
    PATIENCE,
    RETENTION,
    Bench,
    answer,
    parts,
    unread,
)
from tests.integration.jobs_store.model import Job

# not read from the settings: they say how long a person wants to look, and nothing of Posology
EXAMPLES = int(os.environ.get("JOBS_EXAMPLES", "200"))
SEED = os.environ.get("JOBS_SEED")
STEPS = 40
#: rounds in which honest workers must end every job
ROUNDS = 4

SAYS: dict[type[Exception], str] = {
    JobExpired: "expired",
    JobCancelled: "cancelled",
    JobSuperseded: "superseded",
    JobFinished: "finished",
    JobNotFailed: "refused",
    JobNotFound: "gone",
    IdempotencyConflict: "conflict",
}
T = TypeVar("T")
ANY = st.integers(0, 40)
#: mostly what has an effect, else histories would end before a job has come far
LIVE = st.sampled_from([True, True, True, False])
COSTS = st.sampled_from([Decimal("0.001"), Decimal("0.02"), None])


class Jobs(RuleBasedStateMachine):
    url = ""

    def __init__(self) -> None:
        super().__init__()
        self.loop = asyncio.Runner()
        # the client belongs to the loop
        self.bench = self.wait(self._bench())
        self.jobs: dict[str, Job] = {}
        self.gone: set[str] = set()
        self.idem: dict[str, tuple[str, str]] = {}
        #: every message that was ever sent
        self.messages: list[Unit] = []
        #: every hold that was ever given
        self.holds: list[Held] = []
        self.opened: list[tuple[Held, str]] = []

    async def _bench(self) -> Bench:
        return Bench(redis=connect(self.url), url=self.url, tenant=f"m{uuid.uuid4().hex}")

    def wait(self, running: Coroutine[Any, Any, T]) -> T:
        return self.loop.run(running)

    def said(self, running: Coroutine[Any, Any, Any]) -> tuple[str, Any]:
        """What the store says, in the model's words."""
        try:
            return "done", self.wait(running)
        except tuple(SAYS) as error:
            return next(word for kind, word in SAYS.items() if isinstance(error, kind)), None

    @property
    def redis(self) -> Redis:
        return self.bench.redis

    @property
    def now(self) -> int:
        return self.bench.clock.now

    def sent(self, units: list[Unit] | tuple[Unit, ...]) -> None:
        for unit in units:
            job = self.jobs[unit.job]
            assert not job.over, f"{unit} was sent for a job that is over"
            assert job.pieces[unit.name].status == "waiting", f"{unit} was sent in vain"
            self.messages.append(unit)

    @initialize(partitions=st.integers(0, 3))
    def begin(self, partitions: int) -> None:
        """Most histories are of jobs that somebody has begun to work on."""
        self.submit(key=None, body="Is it?")
        self.take()
        if partitions:
            held = self._deliver(self.messages[0])
            assert held is not None
            self._decide(held, partitions)

    @rule(key=st.sampled_from([None, "a", "b"]), body=st.sampled_from(["Is it?", "Was it?"]))
    def submit(self, key: str | None, body: str) -> None:
        said, id_ = self.said(self.bench.submit(key=key, question=body))
        known = self.idem.get(key) if key else None
        if known is not None:
            assert (said, id_) == (("done", known[0]) if known[1] == body else ("conflict", None))
            return
        assert said == "done"
        assert id_ not in self.jobs
        deadline = self.now + int(PATIENCE * 1000)
        self.jobs[id_] = Job(id=id_, body=body, deadline=deadline, key=key)
        if key:
            self.idem[key] = (id_, body)

    @rule()
    def take(self) -> None:
        unit = self.wait(self.bench.worker().take(self.bench.tenant))
        if unit is None:
            assert not [
                job.id
                for job in self.jobs.values()
                if job.state is JobState.QUEUED and job.pieces["answer"].sent is None
            ]
            return
        job = self.jobs[unit.job]
        assert job.state is JobState.QUEUED
        assert job.pieces["answer"].sent is None, "a job was sent twice"
        job.dispatch("answer", self.now)
        self.sent([unit])

    @precondition(lambda self: self.messages)
    @rule(i=ANY, live=LIVE)
    def deliver(self, i: int, live: bool) -> None:
        wanted = [unit for unit in self.messages if self.waits(unit)] if live else []
        found = wanted or self.messages
        self._deliver(found[-1 - i % len(found)])

    def _deliver(self, unit: Unit) -> Held | None:
        held = self.wait(self.bench.claim(unit.job, unit.name))
        job = self.jobs.get(unit.job)
        if job is None or not job.claim(unit.name, self.now):
            assert held is None
            return None
        assert held is not None
        assert held.token == job.token, "tokens grow by one"
        self.holds.append(held)
        return held

    @precondition(lambda self: any(map(self.waits, self.messages)))
    @rule(i=ANY, partitions=st.integers(0, 3), failed=st.booleans(), calls=st.booleans())
    def advance(self, i: int, partitions: int, failed: bool, calls: bool) -> None:
        """A worker does all that one message asks for."""
        wanted = [unit for unit in self.messages if self.waits(unit)]
        held = self._deliver(wanted[-1 - i % len(wanted)])
        if held is None:
            return
        if calls:
            self._open(held)
        match held.unit.kind:
            case "answer":
                self._decide(held, partitions)
            case "extract":
                self._extracted(held, failed=failed)
            case _:
                self._conclude(held, succeeds=not failed)

    @precondition(lambda self: self.holds)
    @rule(i=ANY, live=LIVE, partitions=st.integers(0, 3))
    def decide(self, i: int, live: bool, partitions: int) -> None:
        held = self.pick(i, "answer", live=live)
        if held is not None:
            self._decide(held, partitions)

    def _decide(self, held: Held, partitions: int) -> None:
        said, units = self.said(
            self.bench.worker().decide(
                held,
                PARTED if partitions else DIRECT,
                calls=partitions + 1,
                partitions=parts(partitions),
                draft={},
            )
        )
        job = self.jobs.get(held.unit.job)
        expected = "superseded" if job is None else job.decide(held.token, partitions, self.now)
        assert said == expected
        if said == "done":
            assert [unit.name for unit in units] == [f"extract:{n}" for n in range(partitions)]
            self.sent(units)

    @precondition(lambda self: self.holds)
    @rule(i=ANY, live=LIVE, failed=st.booleans())
    def extracted(self, i: int, live: bool, failed: bool) -> None:
        held = self.pick(i, "extract", live=live)
        if held is not None:
            self._extracted(held, failed=failed)

    def _extracted(self, held: Held, *, failed: bool) -> None:
        index = held.unit.index
        result = unread(index) if failed else Extraction(partition=index)
        said, units = self.said(self.bench.worker().extracted(held, result))
        job = self.jobs.get(held.unit.job)
        expected = (
            "superseded"
            if job is None
            else job.extracted(held.unit.name, held.token, self.now, failed=failed)
        )
        if expected == "reduce":
            assert [unit.name for unit in units] == ["reduce"]
            self.sent(units)
        else:
            assert said == expected
            assert not units

    @precondition(lambda self: self.holds)
    @rule(i=ANY, live=LIVE, succeeds=st.booleans(), expired=st.booleans())
    def conclude(self, i: int, live: bool, succeeds: bool, expired: bool) -> None:
        held = self.pick(i, live=live)
        if held is not None:
            # an extraction is no answer
            succeeds = succeeds and held.unit.kind != "extract"
            self._conclude(held, succeeds=succeeds, expired=expired)

    def _conclude(self, held: Held, *, succeeds: bool, expired: bool = False) -> None:
        work, job = self.bench.worker(), self.jobs.get(held.unit.job)
        text = f"by {held.token}"
        if succeeds:
            said, _ = self.said(work.succeed(held, answer(text)))
        else:
            said, _ = self.said(work.fail(held, ERROR, expired=expired))
        state = (
            JobState.SUCCEEDED if succeeds else (JobState.EXPIRED if expired else JobState.FAILED)
        )
        expected = (
            "superseded"
            if job is None
            else job.conclude(held.unit.name, held.token, state, self.now)
        )
        if not succeeds and expected == "cancelled":
            expected = "done"
        assert said == expected
        if job is not None and succeeds and said == "done":
            job.answer = text

    @precondition(lambda self: self.holds)
    @rule(i=ANY, live=LIVE)
    def release(self, i: int, live: bool) -> None:
        held = self.pick(i, live=live)
        if held is None:
            return
        self.wait(self.bench.worker().release(held))
        if held.unit.job in self.jobs:
            self.jobs[held.unit.job].release(held.unit.name, held.token, self.now)

    @precondition(lambda self: self.holds)
    @rule(i=ANY, live=LIVE)
    def heartbeat(self, i: int, live: bool) -> None:
        held = self.pick(i, live=live)
        if held is None:
            return
        said = self.wait(self.bench.worker().heartbeat([held]))[held]
        job = self.jobs.get(held.unit.job)
        assert said == (
            "gone" if job is None else job.heartbeat(held.unit.name, held.token, self.now)
        )

    @precondition(lambda self: self.holds)
    @rule(i=ANY, live=LIVE)
    def open(self, i: int, live: bool) -> None:
        held = self.pick(i, live=live)
        if held is not None:
            self._open(held)

    def _open(self, held: Held) -> None:
        attempt = uuid.uuid4().hex
        said, _ = self.said(self.bench.open(held, attempt))
        job = self.jobs.get(held.unit.job)
        expected = (
            "superseded" if job is None else job.open(held.unit.name, held.token, attempt, self.now)
        )
        assert said == expected
        if said == "done":
            self.opened.append((held, attempt))

    @precondition(lambda self: self.opened)
    @rule(
        i=ANY, outcome=st.sampled_from([Outcome.OK, Outcome.FAILED, Outcome.UNUSABLE]), cost=COSTS
    )
    def close(self, i: int, outcome: Outcome, cost: Decimal | None) -> None:
        held, attempt = self.opened[-1 - i % len(self.opened)]
        self.wait(self.bench.close(held, attempt, outcome, cost=cost))
        if held.unit.job in self.jobs:
            self.jobs[held.unit.job].close(attempt, outcome, cost)

    @precondition(lambda self: self.jobs)
    @rule(i=ANY, cancels=st.booleans())
    def intervene(self, i: int, cancels: bool) -> None:
        """What users do; in one rule, since most histories would be of cancellations else."""
        job = self.any_job(i)
        store, tenant = self.bench.store, self.bench.tenant
        if cancels:
            assert self.said(store.cancel(job.id, tenant=tenant))[0] == job.cancel(self.now)
        else:
            assert self.said(store.retry(job.id, tenant=tenant))[0] == job.retry(self.now)

    @rule(
        seconds=st.sampled_from(
            [0.5, LEASE / 2, LEASE / 2, LEASE, LEASE, PATIENCE / 2, PATIENCE, RETENTION]
        )
    )
    def pass_time(self, seconds: float) -> None:
        self.bench.clock.forward(seconds)

    @rule(lost=st.booleans())
    def sweep(self, lost: bool) -> None:
        units = self.wait(self.bench.sweep_all() if lost else self.bench.sweep())
        cutoff = self.now if lost else 0
        again = {
            (job.id, name) for job in self.jobs.values() for name in job.sweep(self.now, cutoff)
        }
        assert sorted((unit.job, unit.name) for unit in units) == sorted(again)
        self.sent(units)
        for job in list(self.jobs.values()):
            if job.ends is not None and job.ends <= self.now:
                self.gone.add(job.id)
                del self.jobs[job.id]
                if job.key:
                    del self.idem[job.key]

    def pick(self, i: int, kind: str | None = None, *, live: bool) -> Held | None:
        found = [held for held in self.holds if kind in (None, held.unit.kind)]
        found = ([held for held in found if self.is_live(held)] if live else []) or found
        return found[-1 - i % len(found)] if found else None

    def is_live(self, held: Held) -> bool:
        job = self.jobs.get(held.unit.job)
        piece = None if job is None else job.pieces.get(held.unit.name)
        return piece is not None and piece.status == "running" and piece.token == held.token

    def waits(self, unit: Unit) -> bool:
        job = self.jobs.get(unit.job)
        piece = None if job is None else job.pieces.get(unit.name)
        return piece is not None and piece.status == "waiting"

    def any_job(self, i: int) -> Job:
        found = list(self.jobs.values())
        return found[-1 - i % len(found)]

    @invariant()
    def the_store_agrees(self) -> None:
        self.wait(self._agree())

    async def _agree(self) -> None:
        prefix = keys.prefix(self.bench.tenant)
        async with self.redis.pipeline(transaction=True) as pipe:
            pipe.zrange(f"{prefix}leases", 0, -1)
            pipe.zrange(f"{prefix}unclaimed:jobs", 0, -1)
            pipe.zrange(f"{prefix}unclaimed:calls", 0, -1)
            pipe.lrange(f"{prefix}waiting", 0, -1)
            for state in JobState:
                pipe.zrange(f"{prefix}state:{state}", 0, -1)
            for id_ in self.jobs:
                for part in ("", ":units", ":calls"):
                    pipe.hgetall(f"{prefix}job:{id_}{part}")
                pipe.smembers(f"{prefix}job:{id_}:open")
            leases, jobs, calls, waiting, *rest = await pipe.execute()
        for state, members in zip(JobState, rest, strict=False):
            assert set(members) == {j.id for j in self.jobs.values() if j.state is state}
        found = iter(rest[len(JobState) :])
        for job in self.jobs.values():
            self.same(job, next(found), next(found), next(found), next(found))
            for name, piece in job.pieces.items():
                member = f"{job.id}|{name}"
                # whatever is not in one of these is found by nobody
                if piece.status == "running":
                    assert member in leases
                elif piece.status == "waiting":
                    assert (member in jobs + calls) == (piece.sent is not None)
                    assert piece.sent is not None or job.id in waiting
        for id_ in self.gone:
            assert not await self.redis.exists(
                *(
                    f"{prefix}job:{id_}{part}"
                    for part in ("", ":units", ":calls", ":open", ":memo", ":unusable", ":events")
                )
            )

    def same(
        self,
        job: Job,
        record: dict[str, str],
        units: dict[str, str],
        calls: dict[str, str],
        opened: set[str],
    ) -> None:
        assert record["state"] == job.state
        assert int(record["losses"]) == job.losses
        assert int(record["runs"]) == job.runs
        if job.partitions is None:
            assert "partitions" not in record
        else:
            read = tuple(int(record[name]) for name in ("partitions", "read", "unread"))
            assert read == (job.partitions, job.read, job.unread)
        result = json.loads(record["result"])["answer"] if "result" in record else None
        assert result == (job.answer if job.state is JobState.SUCCEEDED else None)
        assert all(count == 1 for count in job.reduces.values())
        assert units.keys() == job.pieces.keys()
        for name, piece in job.pieces.items():
            unit = json.loads(units[name])
            assert unit["s"] == piece.status
            if piece.status == "running":
                assert unit["t"] == piece.token
        outcomes = {id_: json.loads(raw).get("outcome") or "open" for id_, raw in calls.items()}
        assert outcomes == {id_: spent.outcome for id_, spent in job.attempts.items()}
        assert set(opened) == {id_ for id_, said in outcomes.items() if said == "open"}
        assert Decimal(record["known_nano"]) / NANO == job.known
        assert int(record["unknown_costs"]) == job.unknown

    def teardown(self) -> None:
        try:
            self.nothing_is_stuck()
            self.nothing_is_left()
        finally:
            self.wait(self.redis.aclose())
            self.loop.close()

    def nothing_is_stuck(self) -> None:
        """Time, the sweep and honest workers end every job, whatever the others did."""
        for _ in range(ROUNDS):
            start = len(self.messages)
            self.sweep(lost=True)
            sent = -1
            while sent != len(self.messages):
                sent = len(self.messages)
                self.take()
            # the list grows by what is sent next
            for unit in islice(self.messages, start, None):
                held = self._deliver(unit)
                if held is not None:
                    self.work(held)
            self.the_store_agrees()
            if all(job.over for job in self.jobs.values()):
                return
            self.pass_time(LEASE)
        raise AssertionError([job for job in self.jobs.values() if not job.over])

    def work(self, held: Held) -> None:
        match held.unit.kind:
            case "answer":
                self._decide(held, 2)
            case "extract":
                self._extracted(held, failed=False)
            case _:
                self._conclude(held, succeeds=True)

    def nothing_is_left(self) -> None:
        self.pass_time(RETENTION)
        self.sweep(lost=False)
        assert not self.jobs
        self.wait(self._nothing_is_left())

    async def _nothing_is_left(self) -> None:
        prefix = keys.prefix(self.bench.tenant)
        left = {name async for name in self.redis.scan_iter(match=f"{prefix}*", count=1000)}
        assert left <= {f"{prefix}metrics"}


@pytest.mark.timeout(3_600 if SEED else 120)
def test_no_history_breaks_what_the_store_promises(redis_url: str) -> None:
    Jobs.url = redis_url
    machine = Jobs if SEED is None else seed(int(SEED))(Jobs)
    run_state_machine_as_test(
        machine,
        settings=settings(
            max_examples=EXAMPLES,
            stateful_step_count=STEPS,
            derandomize=SEED is None,
            deadline=None,
            database=None,
            suppress_health_check=list(HealthCheck),
        ),
    )
