"""Ingesting of uploaded files, one after the other: each claimed, read in a thread, and ended."""

from __future__ import annotations

import logging
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Protocol

import anyio
from anyio import to_thread
from pydantic import ValidationError

from orchestrator.ingest.uploads.uploads import Uploads, bytes_of
from orchestrator.ingest.uploads.watch import SHOWN, TURN, Cancelled, Stopped, Watch, Yielded
from orchestrator.logs.events import note
from orchestrator.work.files import STORAGE
from orchestrator.work.items import Claim, LeaseLost
from orchestrator.work.lease import Lease
from posology.corpus.items import Remark
from posology.errors import (
    BadRecord,
    BudgetError,
    ConfigurationError,
    FetchFailed,
    IndexFault,
    InputError,
    PosologyError,
    ReaderUnavailable,
    StoreUnavailable,
)
from posology.index.build.report import IngestReport
from posology.network.failures import public
from posology.published.ingests import IngestFailure, IngestOutput, IngestState, RejectedRecord

_log = logging.getLogger(__name__)
#: how often an ingest is started; one that ends its process each time would keep all others waiting
MAX_RUNS = 3
#: bad records that a record of an ingest lists, and remarks
LISTED = 100
#: seconds between two looks for new files, and the first and longest wait after a fault of the service
PAUSE, _FIRST, _LONGEST = 1.0, 5.0, 60.0
#: characters of a reason
_REASON = 500
_WITHHELD = (
    "the service failed to ingest the file: ask its operator, who finds the reason in the logs"
)


class Ingest(Protocol):
    """Ingests one file. Blocking.

    Args:
        path: the file.
        tenant: pays for vectors that are bought.
        watch: records the progress, and may raise :class:`Stopped`, :class:`Yielded` or :class:`Cancelled`.
        last: whether no other file waits: the search indices are then updated.
    """

    def __call__(self, path: Path, *, tenant: str, watch: Watch, last: bool) -> IngestReport: ...


class Ingester:
    """Ingests files that wait, in turn of the tenants.

    Args:
        uploads: the files and their ingests.
        ingest: ingests one file.
        stop: set when the process must stop.
        lease: seconds without a heartbeat after which another process continues.
        process: name of this process.
        turn: seconds after which another tenant's file has its turn.
    """

    def __init__(
        self,
        uploads: Uploads,
        ingest: Ingest,
        stop: threading.Event,
        *,
        lease: float,
        process: str = "",
        turn: float = TURN,
    ) -> None:
        self._uploads = uploads
        self._ingest = ingest
        self._stop = stop
        self._lease = lease
        self._process = process
        self._turn = turn
        self._served = ""
        self._wait = _FIRST

    async def run(self) -> None:
        """Ingest until the process must stop. Redis, and a full or read-only disk of the uploads, are waited for."""
        note("ingesting process ready")
        while not self._stop.is_set():
            waits = True
            try:
                with _faults():
                    waits = await self.run_waiting()
            except _Fault:
                self._wait_more()
            await to_thread.run_sync(self._stop.wait, self._wait if waits else PAUSE)
        note("ingesting process stopped")

    def _wait_more(self) -> None:
        self._wait = min(2 * self._wait, _LONGEST)

    async def run_waiting(self) -> bool:
        """Ingest all files that wait and that no other process has.

        Returns:
            Whether this process cannot go on now: it must stop, or cannot write the index.

        Raises:
            StoreUnavailable: Redis is out of reach.
        """
        while not self._stop.is_set():
            waiting = await self._uploads.work.waiting()
            # each tenant in turn, so that one with many files does not keep the others waiting
            claim = await self._uploads.work.claim_next(
                self._served, lease=self._lease, by=self._process
            )
            if claim is None:
                return False
            if not await self._run(claim, last=sum(waiting.values()) <= 1):
                self._wait_more()
                return True
            self._served, self._wait = claim.group, _FIRST
        return True

    async def _run(self, claim: Claim, *, last: bool) -> bool:
        """Run an ingest to its end, or for a turn; false: the process must stop, or cannot write the index now."""
        try:
            ingest = IngestOutput.model_validate_json(claim.record)
        except ValidationError:
            # of another version of Posology: nothing can be said of it
            await self._uploads.work.finish(claim, IngestState.FAILED.value, size=0)
            return True
        watch = Watch(ingest, self._stop, turn=self._turn)
        watch.lease = Lease(self._uploads.work, claim, seconds=self._lease, record=watch.record)
        async with anyio.create_task_group() as group:
            group.start_soon(watch.lease.extend)
            group.start_soon(self._see_others, watch)
            try:
                goes_on = await self._read(watch, last=last)
            except LeaseLost:
                _log.warning("lease lost", extra={"fields": {"ingest": ingest.id}})
                goes_on = True
            group.cancel_scope.cancel()
        return goes_on

    async def _see_others(self, watch: Watch) -> None:
        while True:
            if watch.turn_is_over:
                try:
                    waiting = await self._uploads.work.waiting()
                except StoreUnavailable:
                    waiting = {}
                watch.others = bool(waiting.keys() - {watch.now.tenant})
            await anyio.sleep(min(SHOWN, self._turn))

    async def _read(self, watch: Watch, *, last: bool) -> bool:
        ingest, runs = watch.now, watch.lease.claim.runs
        if watch.lease.standing == "cancelling":
            return await self._end(watch, IngestState.CANCELLED)
        watch.now = ingest.model_copy(update={"runs": min(runs, MAX_RUNS)})
        if runs > MAX_RUNS:
            return await self._end(
                watch,
                IngestState.FAILED,
                error=IngestFailure(
                    type="Crashed",
                    message=f"the ingesting process ended {MAX_RUNS} times while it read this file: split the "
                    "file, or ask the operator of the service",
                ),
            )
        begun = {"state": IngestState.RUNNING, "started": ingest.started or datetime.now(UTC)}
        watch.now = watch.now.model_copy(update=begun)
        note(
            "ingest started",
            tenant=ingest.tenant,
            ingest=ingest.id,
            bytes=ingest.bytes,
            run=runs,
        )

        def read() -> IngestReport:
            path = self._uploads.files.local(bytes_of(ingest))
            return self._ingest(path, tenant=ingest.tenant, watch=watch, last=last)

        try:
            with _faults():
                report = await to_thread.run_sync(read)
        except (Stopped, Yielded, _Fault) as stopped:
            # none is the file's fault, so that the run does not count
            watch.now = watch.now.model_copy(update={"phase": _WAITS[type(stopped)]})
            await watch.lease.release()
            return isinstance(stopped, Yielded)
        except Cancelled:
            return await self._end(watch, IngestState.CANCELLED)
        except LeaseLost:
            raise
        except (InputError, BudgetError, ReaderUnavailable, FetchFailed) as error:
            reason = str(getattr(error, "reason", error.message))
            return await self._end(watch, IngestState.FAILED, error=_failure(error, reason))
        except Exception as error:  # noqa: BLE001 - a file may break a reader in any way
            _log.exception("ingest failed", extra={"fields": {"ingest": ingest.id}})
            return await self._end(watch, IngestState.FAILED, error=_failure(error, _WITHHELD))
        return await self._conclude(watch, report)

    async def _conclude(self, watch: Watch, report: IngestReport) -> bool:
        unread = next((one.reason for one in report.bad_files), None)
        error = None
        if unread is not None and not report.good:
            error = IngestFailure(type="BadFile", message=unread[:_REASON])
        watch.now = watch.now.model_copy(
            update={
                "done": report.good + report.bad,
                "written": report.written,
                "unchanged": report.unchanged,
                "replaced": report.replaced,
                "bad": report.bad,
                "rejected": _listed(report.bad_records),
                "remarks": _listed(report.remarks),
                "unread": None if unread is None else unread[:_REASON],
            }
        )
        state = IngestState.SUCCEEDED if error is None else IngestState.FAILED
        return await self._end(watch, state, error=error)

    async def _end(
        self, watch: Watch, state: IngestState, *, error: IngestFailure | None = None
    ) -> bool:
        ended = watch.now = watch.now.model_copy(
            update={"state": state, "phase": None, "ended": datetime.now(UTC), "error": error}
        )
        # its bytes count no more
        await watch.lease.finish(state.value, size=0)
        try:
            await self._uploads.drop(ended.tenant, ended.id)
        except (OSError, IndexFault) as fault:
            # a sweep does it later
            _log.warning("%s", fault)
        seconds = None
        if ended.started is not None and ended.ended is not None:
            seconds = round((ended.ended - ended.started).total_seconds(), 3)
        note(
            "ingest ended",
            logging.INFO if error is None else logging.WARNING,
            tenant=ended.tenant,
            ingest=ended.id,
            state=state.value,
            written=ended.written,
            unchanged=ended.unchanged,
            bad=ended.bad,
            seconds=seconds,
            error=None if error is None else error.type,
        )
        return True


def _listed(records: Sequence[BadRecord | Remark]) -> tuple[RejectedRecord, ...]:
    return tuple(
        RejectedRecord(line=one.line, record=one.record, reason=one.reason[:_REASON])
        for one in records[:LISTED]
    )


class _Fault(Exception):
    """The service cannot ingest anything now."""


#: what an ingest that waits again waits for
_WAITS = {
    Stopped: None,
    Yielded: "waiting for its next turn",
    _Fault: "waiting for the index to be writable",
}


@contextmanager
def _faults() -> Iterator[None]:
    """Tell faults of the service from those of a file: files wait for the former to be mended."""
    try:
        yield
    except ReaderUnavailable:
        raise
    except (ConfigurationError, IndexFault, StoreUnavailable) as error:
        _log.error("files wait: %s", error)
        raise _Fault from error
    except OSError as error:
        if error.errno not in STORAGE:
            raise
        _log.error("files wait: %s", error)
        raise _Fault from error


def _failure(error: Exception, reason: str) -> IngestFailure:
    kind = type(error).__name__ if isinstance(error, PosologyError) else "Defect"
    return IngestFailure(type=kind, message=public(reason)[:_REASON])
