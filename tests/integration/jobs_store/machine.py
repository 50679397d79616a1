"""What the state machine does to a store and to the model, and how it compares the two."""

from __future__ import annotations

import asyncio
import json
import uuid
from collections import Counter
from collections.abc import Coroutine
from typing import Any, TypeVar

from hypothesis.stateful import RuleBasedStateMachine, invariant
from redis.asyncio import Redis

from posology.budget.ledger.base import dollars
from posology.errors import (
    IdempotencyConflict,
    JobCancelled,
    JobExpired,
    JobFinished,
    JobNotFailed,
    JobNotFound,
    JobSuperseded,
)
from posology.store import keys
from posology.store.connection import connect
from posology.types import Extraction, JobState
from tests.integration.jobs_store.helpers import (
    BOUND,
    DIRECT,
    ERROR,
    PARTED,
    Bench,
    answer,
    parts,
    unread,
)
from tests.integration.jobs_store.model import Job
from workers.engine.units import ClaimedUnit, Unit

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


class Machine(RuleBasedStateMachine):
    url = ""

    def __init__(self) -> None:
        super().__init__()
        self.loop = asyncio.Runner()
        # the client belongs to the loop
        self.bench = self.wait(self._bench())
        self.jobs: dict[str, Job] = {}
        self.gone: set[str] = set()
        self.looks = 0
        self.idem: dict[str, tuple[str, str]] = {}
        #: every message that was ever sent
        self.messages: list[Unit] = []
        #: every hold that was ever given
        self.holds: list[ClaimedUnit] = []
        self.opened: list[tuple[ClaimedUnit, str]] = []

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

    def _deliver(self, unit: Unit) -> ClaimedUnit | None:
        held = self.wait(self.bench.claim(unit.job, unit.name))
        job = self.jobs.get(unit.job)
        if job is None or not job.claim(unit.name, self.now):
            assert held is None
            return None
        assert held is not None
        assert held.token == job.token, "tokens grow by one"
        self.holds.append(held)
        return held

    def _decide(self, held: ClaimedUnit, partitions: int) -> None:
        said, units = self.said(
            self.bench.worker().decide(
                held,
                PARTED if partitions else DIRECT,
                calls=partitions + 1,
                partitions=parts(partitions),
            )
        )
        job = self.jobs.get(held.unit.job)
        expected = "superseded" if job is None else job.decide(held.token, partitions, self.now)
        assert said == expected
        if said == "done":
            assert [unit.name for unit in units] == [f"extract:{n}" for n in range(partitions)]
            self.sent(units)

    def _extracted(self, held: ClaimedUnit, *, failed: bool) -> None:
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

    def _conclude(self, held: ClaimedUnit, *, succeeds: bool, expired: bool = False) -> None:
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

    def _open(self, held: ClaimedUnit) -> None:
        attempt = uuid.uuid4().hex
        said, _ = self.said(self.bench.open(held, attempt))
        job = self.jobs.get(held.unit.job)
        expected = (
            "superseded" if job is None else job.open(held.unit.name, held.token, attempt, self.now)
        )
        assert said == expected
        if said == "done":
            self.opened.append((held, attempt))

    def pick(self, i: int, kind: str | None = None, *, live: bool) -> ClaimedUnit | None:
        found = [held for held in self.holds if kind in (None, held.unit.kind)]
        found = ([held for held in found if self.is_live(held)] if live else []) or found
        return found[-1 - i % len(found)] if found else None

    def is_live(self, held: ClaimedUnit) -> bool:
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
        self.looks += 1
        if self.looks % 5 == 0:
            await self._money_agrees(prefix)
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
        assert dollars(record["known_nano"]) == job.known
        assert int(record["unknown_costs"]) == job.unknown
        assert dollars(record.get("spent_nano", 0)) == job.known + job.unknown * BOUND
        assert dollars(record.get("reserved_nano", 0)) == len(opened) * BOUND

    async def _money_agrees(self, prefix: str) -> None:
        """What is reserved is what is open, and every counter is the sum of the ledger's entries."""
        async with self.redis.pipeline(transaction=True) as pipe:
            pipe.hgetall(f"{prefix}money")
            pipe.hkeys(f"{prefix}money:open")
            pipe.xrange(f"{prefix}ledger")
            counters, opened, entries = await pipe.execute()
        fold: Counter[str] = Counter()
        for _, entry in entries:
            day = entry["day"]
            for window in (f"day:{day}", f"month:{day[:7]}", "total"):
                for what in ("reserved", "spent"):
                    fold[f"{what}:{window}"] += int(entry[what])
        counters.pop("over", None)
        assert {k: int(v) for k, v in counters.items() if int(v)} == {
            k: v for k, v in fold.items() if v
        }
        assert dollars(fold["reserved:total"]) == len(opened) * BOUND
        live = {
            id_
            for job in self.jobs.values()
            for id_, spent in job.attempts.items()
            if spent.outcome == "open"
        }
        assert set(opened) == live

    async def _nothing_is_left(self) -> None:
        prefix = keys.prefix(self.bench.tenant)
        await self._money_agrees(prefix)
        left = {name async for name in self.redis.scan_iter(match=f"{prefix}*", count=1000)}
        # the account outlives the jobs
        money = ("money", "money:models", "money:lost", "money:lost:at", "ledger", "metrics")
        kept = {name for name in left if not name.startswith(f"{prefix}money:by:")}
        assert kept <= {f"{prefix}{part}" for part in money}
