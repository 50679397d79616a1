"""Random histories of jobs on a real Redis, compared with a model after every step.

Workers crash by doing nothing more, and come back late: every hold that was ever given may be used at
any time, every message may be delivered again. To look longer than the suite does::

    JOBS_EXAMPLES=2000 JOBS_SEED=1 pytest tests/integration/jobs_store/test_machine.py
"""

from __future__ import annotations

import os
from decimal import Decimal
from itertools import islice

import pytest
from hypothesis import HealthCheck, Phase, seed, settings
from hypothesis import strategies as st
from hypothesis.stateful import initialize, precondition, rule, run_state_machine_as_test

from posology.types import JobState, Outcome
from tests.integration.jobs_store.helpers import LEASE, PATIENCE, RETENTION
from tests.integration.jobs_store.machine import Machine
from tests.integration.jobs_store.model import Job
from workers.engine.units import ClaimedUnit

# not read from the settings: they say how long a person wants to look, and nothing of Posology
EXAMPLES = int(os.environ.get("JOBS_EXAMPLES", "80"))
SEED = os.environ.get("JOBS_SEED")
STEPS = 40
#: rounds in which honest workers must end every job
ROUNDS = 4

ANY = st.integers(0, 40)
#: mostly what has an effect, else histories would end before a job has come far
LIVE = st.sampled_from([True, True, True, False])
COSTS = st.sampled_from([Decimal("0.001"), Decimal("0.02"), None])


class Jobs(Machine):
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

    @precondition(lambda self: self.holds)
    @rule(i=ANY, live=LIVE, failed=st.booleans())
    def extracted(self, i: int, live: bool, failed: bool) -> None:
        held = self.pick(i, "extract", live=live)
        if held is not None:
            self._extracted(held, failed=failed)

    @precondition(lambda self: self.holds)
    @rule(i=ANY, live=LIVE, succeeds=st.booleans(), expired=st.booleans())
    def conclude(self, i: int, live: bool, succeeds: bool, expired: bool) -> None:
        held = self.pick(i, live=live)
        if held is not None:
            # an extraction is no answer
            succeeds = succeeds and held.unit.kind != "extract"
            self._conclude(held, succeeds=succeeds, expired=expired)

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

    def work(self, held: ClaimedUnit) -> None:
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


@pytest.mark.timeout(3_600 if SEED else 600)
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
            # a person who looks wants the shortest history, and waits for it
            phases=[Phase.generate] if SEED is None else list(Phase),
            suppress_health_check=list(HealthCheck),
        ),
    )
