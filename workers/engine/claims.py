"""The worker's side of the job store: claim, heartbeat, record, requeue, and find orphaned units."""

from __future__ import annotations

import json
import logging
from collections.abc import Callable, Mapping, Sequence
from typing import Any, cast

import anyio
from pydantic import TypeAdapter

from orchestrator.jobs import tenants
from orchestrator.jobs.store import JobStore
from orchestrator.logs.events import note
from orchestrator.logs.texts import of_answer
from posology.errors import DeadlineExceeded, JobCancelled, JobExpired, JobSuperseded, MissingKey
from posology.published.answers import AskOutput
from posology.published.calls import ErrorBody
from posology.store import keys
from posology.store.connection import translated
from posology.store.scripts import read_together
from posology.types import Decision, Extraction, Partition
from workers.engine.units import DECISION, DRAFT, PARTITION, ClaimedUnit, Draft, Unit

#: seconds for which a claim holds without a heartbeat; then the unit is orphaned
LEASE = 15.0
#: workers that a unit may lose before it is considered the cause
LOSSES = 8

_extraction = TypeAdapter(Extraction)


class WorkStore:
    """Changes that one worker process makes to job records.

    Args:
        store: the job records.
        worker: name of this process, for records and logs.
        lease: seconds for which a claim holds without a heartbeat.
        losses: workers that a unit may lose before its job fails.
        clock: seconds, from any origin: what is left of a job's time is measured by it.
    """

    def __init__(
        self,
        store: JobStore,
        *,
        worker: str,
        lease: float = LEASE,
        losses: int = LOSSES,
        clock: Callable[[], float] = anyio.current_time,
    ) -> None:
        self.store = store
        self.worker = worker
        self.lease = lease
        self._lease = int(lease * 1000)
        self._losses = losses
        self._clock = clock

    async def take(self, tenant: str) -> Unit | None:
        """Take the tenant's job that has waited longest, to send it to the broker."""
        while True:
            member = cast("str | None", await self.store.run("take", keys.prefix(tenant)))
            if member is None:
                await tenants.emptied(self.store, tenant)
                return None
            if member != "more":
                return Unit.of(tenant, member)

    async def claim(self, unit: Unit, *, delivery: str) -> ClaimedUnit | None:
        """Claim a unit; ``None`` if there is nothing to do: it is done, over, or another worker's.

        Args:
            unit: unit that a message named.
            delivery: unique id of this delivery of the message.
        """
        began = self._clock()
        reply = await self._run(
            "claim", unit.tenant, unit.job, unit.name, delivery, self.worker, self._lease
        )
        if reply[0] != "claimed":
            return None
        _, token, left, patience, request, fresh, returned, batch, *more = reply
        kind = unit.kind
        if kind == "answer":
            note(
                "job started",
                tenant=unit.tenant,
                job=unit.job,
                batch=batch or None,
                worker=self.worker,
            )
        return ClaimedUnit(
            unit=unit,
            token=int(token),
            # the script ran after it was called: the deadline is never taken for later than it is
            deadline=began + int(left) / 1000,
            patience=int(patience) / 1000,
            request=request,
            fresh=fresh == "1",
            returned=int(returned),
            batch=batch or None,
            partition=more[0] if kind == "extract" else None,
            decision=(more[0] or None) if kind != "extract" else None,
            draft=more[1] if kind == "reduce" else None,
            elapsed=int(more[2]) / 1000 if kind == "reduce" else 0.0,
            clock=self._clock,
        )

    async def heartbeat(self, claimed: Sequence[ClaimedUnit]) -> dict[ClaimedUnit, str]:
        """Extend the leases, and return the status of each unit: ok, cancelling, over, superseded or gone."""
        reply: dict[ClaimedUnit, str] = {}
        for tenant in {one.unit.tenant for one in claimed}:
            own = [one for one in claimed if one.unit.tenant == tenant]
            flat = [x for one in own for x in (one.unit.job, one.unit.name, one.token)]
            reply |= dict(
                zip(own, await self._run("heartbeat", tenant, self._lease, *flat), strict=True)
            )
        return reply

    async def decide(
        self,
        claimed: ClaimedUnit,
        decision: Decision,
        *,
        calls: int,
        draft: Draft | None = None,
        partitions: Sequence[Partition] = (),
    ) -> tuple[Unit, ...]:
        """Record the decision; with partitions, create a unit for each.

        Args:
            claimed: the job's ``answer`` unit.
            decision: the decision.
            calls: most model calls, repeats excluded.
            draft: values for the output; ``None``: there are no partitions.
            partitions: partitions to extract from; empty: ``claimed`` continues itself.

        Returns:
            The units to send.

        Raises:
            JobCancelled: the job may not spend any more.
            JobSuperseded: the unit is another worker's.
        """
        reply = await self._run(
            "decide",
            claimed.unit.tenant,
            claimed.unit.job,
            claimed.token,
            DECISION.dump_json(decision).decode(),
            "{}" if draft is None else DRAFT.dump_json(draft).decode(),
            calls,
            *(PARTITION.dump_json(part).decode() for part in partitions),
        )
        raise_if_refused(claimed, reply[0])
        note(
            "decision made",
            **claimed.ids,
            strategy=decision.dose.strategy,
            policy=decision.policy,
            calls=calls,
            partitions=len(partitions),
        )
        return tuple(
            Unit(tenant=claimed.unit.tenant, job=claimed.unit.job, name=n) for n in reply[1:]
        )

    async def extracted(self, claimed: ClaimedUnit, extraction: Extraction) -> tuple[Unit, ...]:
        """Record the result of a partition.

        Returns:
            The ``reduce`` unit to send if this was the last partition; it is returned once.

        Raises:
            JobCancelled: the job was cancelled; the spending is recorded.
            JobSuperseded: the partition is another worker's.
        """
        reply = await self._run(
            "extracted",
            claimed.unit.tenant,
            claimed.unit.job,
            claimed.unit.index,
            claimed.token,
            _extraction.dump_json(extraction).decode(),
            "1" if extraction.failure else "0",
        )
        raise_if_refused(claimed, reply[0])
        reduce = Unit(tenant=claimed.unit.tenant, job=claimed.unit.job, name="reduce")
        return (reduce,) if reply[0] == "reduce" else ()

    async def gathered(self, unit: Unit) -> tuple[tuple[Partition, ...], tuple[Extraction, ...]]:
        """Return a job's partitions and their extractions, in order."""
        name = f"{keys.prefix(unit.tenant)}job:{unit.job}"
        with translated(self.store.url):
            context, extractions = await read_together(
                self.store.redis, f"{name}:context", f"{name}:extractions"
            )
        order = sorted(context, key=int)
        return (
            tuple(PARTITION.validate_json(context[i]) for i in order),
            tuple(_extraction.validate_json(extractions[i]) for i in order),
        )

    async def succeed(self, claimed: ClaimedUnit, out: AskOutput) -> None:
        """End the job with an answer or a refusal.

        Raises:
            JobCancelled: the job was cancelled meanwhile.
            JobSuperseded: the unit is another worker's.
        """
        await self._conclude(claimed, "succeeded", out.model_dump_json(), status=out.status)
        note(
            "job succeeded",
            logging.INFO,
            of_answer(out.question, out.refusal if out.answer is None else out.answer),
            **claimed.ids,
            status=out.status,
            strategy=out.strategy,
            seconds=round(out.seconds, 3),
        )

    async def fail(self, claimed: ClaimedUnit, error: ErrorBody, *, expired: bool = False) -> None:
        """End the job with an error; a cancelled job is cancelled instead.

        Raises:
            JobSuperseded: the unit is another worker's.
        """
        try:
            await self._conclude(
                claimed, "expired" if expired else "failed", error.model_dump_json()
            )
        except JobCancelled:
            note("job cancelled", **claimed.ids)
            return
        state = "job expired" if expired else "job failed"
        # the name of a variable, never its value
        variable = error.details.get("variable") if error.type == MissingKey.__name__ else None
        note(state, logging.WARNING, **claimed.ids, error=error.type, variable=variable)

    async def release(self, claimed: ClaimedUnit, *, counted: bool = False) -> None:
        """Requeue a unit, for another worker to claim at once.

        Args:
            claimed: the unit.
            counted: whether :attr:`ClaimedUnit.returned` of the next claim grows by one.
        """
        unit = claimed.unit
        await self._run("release", unit.tenant, unit.job, unit.name, claimed.token, int(counted))
        note("unit requeued", **claimed.ids)

    async def sweep(
        self,
        tenant: str,
        *,
        jobs_before: int,
        calls_before: int,
        leases: bool = True,
        put_back: bool = False,
    ) -> list[Unit]:
        """Requeue orphaned units, and end jobs past their deadline.

        Args:
            tenant: name of the tenant.
            jobs_before: time, milliseconds; unclaimed units of the jobs' queue that were sent before it are lost.
            calls_before: the same for the calls' queue.
            leases: whether an ended lease means that its worker is dead.
            put_back: whether the clock was put back lately.

        Returns:
            The units to send again.
        """
        lost = ErrorBody(
            type="WorkerLost",
            message=f"more than {self._losses} workers died while they ran one unit of this job: check "
            "their logs before you retry it",
            exit_code=1,
            details={"losses": self._losses},
            spending=None,
        )
        late = ErrorBody(
            type="DeadlineExceeded",
            message="the job's deadline passed: allow more time, or add workers",
            exit_code=DeadlineExceeded.exit_code,
            details={},
            spending=None,
        )
        members, happened = await self._run(
            "sweep",
            tenant,
            self._losses,
            lost.model_dump_json(),
            late.model_dump_json(),
            jobs_before,
            calls_before,
            int(leases),
            self._lease,
            int(put_back),
        )
        for one in json.loads(happened):
            _note_event(tenant, **one)
        return [Unit.of(tenant, member) for member in members]

    async def sent_at(self, units: Sequence[Unit]) -> list[int]:
        """Return when the unclaimed ones of the units were last sent, milliseconds."""
        with translated(self.store.url):
            async with self.store.redis.pipeline(transaction=False) as pipe:
                for unit in units:
                    queue = "jobs" if unit.kind == "answer" else "calls"
                    name = f"{keys.prefix(unit.tenant)}unclaimed:{queue}"
                    pipe.zscore(name, f"{unit.job}|{unit.name}")
                found = await pipe.execute()
        return [int(score) for score in found if score is not None]

    async def _conclude(
        self, claimed: ClaimedUnit, state: str, payload: str, *, status: str = ""
    ) -> None:
        unit = claimed.unit
        reply = await self._run(
            "conclude", unit.tenant, unit.job, unit.name, claimed.token, state, payload, status
        )
        raise_if_refused(claimed, reply[0])

    async def _run(self, script: str, tenant: str, *arguments: str | int) -> list[Any]:
        return cast("list[Any]", await self.store.run(script, keys.prefix(tenant), *arguments))


def _note_event(tenant: str, job: str, kind: str, data: Mapping[str, Any]) -> None:
    """Write the line of what a sweep did to a job."""
    match kind, data.get("state") or data.get("outcome"):
        case "lost", _:
            note("lease lost", logging.WARNING, tenant=tenant, job=job, **data)
        case "call", "lost":
            note("attempt lost", logging.WARNING, tenant=tenant, job=job, **data)
        case "state", "failed" | "expired" as state:
            note(f"job {state}", logging.WARNING, tenant=tenant, job=job)
        case "state", "cancelled":
            note("job cancelled", tenant=tenant, job=job)


def raise_if_refused(claimed: ClaimedUnit, reply: str) -> None:
    """Raise the error that a script's reply stands for, if any.

    Raises:
        JobCancelled: the job may not spend any more.
        JobExpired: its deadline passed.
        JobSuperseded: the unit is another worker's, or the job is over or gone.
    """
    job = claimed.unit.job
    match reply:
        case "cancelled":
            raise JobCancelled(f"job {job} was cancelled", job=job)
        case "expired":
            raise JobExpired(
                f"job {job} has passed its deadline of {claimed.patience:g} s",
                seconds=claimed.patience,
            )
        case "superseded" | "over" | "gone":
            raise JobSuperseded(
                f"{claimed.unit.name} of job {job} is no longer claimed by this worker: {reply}",
                job=job,
            )
