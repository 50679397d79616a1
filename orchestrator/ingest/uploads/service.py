"""The process that ingests uploaded files, one after the other: the only one that writes the index for the API."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Protocol

from orchestrator.ingest.uploads.folder import STORAGE, Uploads
from orchestrator.logs.events import note
from posology.errors import (
    BudgetError,
    ConfigurationError,
    FetchFailed,
    IndexFault,
    InputError,
    PosologyError,
    ReaderUnavailable,
    StoreUnavailable,
)
from posology.index.build.report import IngestProgress, IngestReport
from posology.network.failures import public
from posology.published.ingests import (
    FetchOutput,
    IngestFailure,
    IngestOutput,
    IngestState,
    RejectedRecord,
)

_log = logging.getLogger(__name__)
#: how often an ingest is started; one that ends its process each time would keep all others waiting
MAX_RUNS = 3
#: seconds; so long that files which end the process do not make its supervisor give it up
AGAIN = 10.0
#: bad records that a record of an ingest lists
LISTED = 100
#: seconds between two looks for new files, and the first and longest wait after a fault of the service
_PAUSE, _FIRST, _LONGEST = 1.0, 5.0, 60.0
#: seconds between two records of the progress
_SHOWN = 1.0
#: seconds of a turn, after which the file of another tenant that waits has its turn
TURN = 30.0
#: characters of a reason
_REASON = 500
_WITHHELD = (
    "the service failed to ingest the file: ask its operator, who finds the reason in the logs"
)


class Stopped(Exception):
    """The process stops; the ingest resumes at its last commit."""


class Yielded(Exception):
    """The file of another tenant has its turn; the ingest resumes at its last commit."""


class Cancelled(Exception):
    """The ingest is to end; what it has committed stays."""


class Ingest(Protocol):
    """Ingests one file. Blocking.

    Args:
        path: the file.
        tenant: pays for vectors that are bought.
        watch: records the progress, and may raise :class:`Stopped`, :class:`Yielded` or :class:`Cancelled`.
        last: whether no other file waits: the search indices are then updated.
    """

    def __call__(self, path: Path, *, tenant: str, watch: Watch, last: bool) -> IngestReport: ...


class Watch:
    """Records the progress of an ingest, about once a second.

    Args:
        uploads: the folder.
        ingest: its record.
        stop: set when the process must stop.
        turn: seconds after which another tenant's file has its turn.
        clock: seconds, growing.
    """

    def __init__(
        self,
        uploads: Uploads,
        ingest: IngestOutput,
        stop: threading.Event,
        *,
        turn: float = TURN,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._uploads = uploads
        #: the record as it was saved last
        self.now = ingest
        self._stop = stop
        self._clock = clock
        self._done = 0
        self._saved = clock()
        self._until = self._saved + turn

    def phase(self, name: str) -> None:
        """Record what begins."""
        self._save(phase=name)

    def count(self, total: int) -> None:
        """Record the number of records."""
        self._save(total=total)

    def fetched(self, fetch: FetchOutput) -> None:
        """Record what was fetched."""
        self._save(fetch=fetch)

    def row(self) -> None:
        """Count an encoded record.

        Raises:
            Stopped: the process must stop.
            Cancelled: the ingest is to end.
        """
        self._done += 1
        if self._clock() - self._saved >= _SHOWN:
            self._save(done=self._done)

    def committed(self, now: IngestProgress) -> None:
        """Record what is committed.

        Raises:
            Stopped: the process must stop.
            Cancelled: the ingest is to end.
            Yielded: the turn is over, and another tenant's file waits. Only here, so that each turn commits something.
        """
        self._done = now.written + now.unchanged + now.replaced + now.bad
        self._save(done=self._done)
        if self._clock() >= self._until and self._uploads.pending().keys() - {self.now.tenant}:
            raise Yielded

    def look(self) -> None:
        """Look whether the work is to end.

        Raises:
            Stopped: the process must stop.
            Cancelled: the ingest is to end.
        """
        if self._stop.is_set():
            raise Stopped
        if self._uploads.is_cancelled(self.now):
            raise Cancelled

    def _save(self, **changed: object) -> None:
        self.now = self.now.model_copy(update=changed)
        self._uploads.save(self.now)
        self._saved = self._clock()
        self.look()


class Ingester:
    """Ingests what waits, in turn of the tenants.

    Args:
        uploads: the folder.
        ingest: ingests one file.
        stop: set when the process must stop.
        retention: seconds for which the record of an ended ingest is kept.
        again: seconds before the second run of a file in whose first run the process ended; the third waits twice as
            long.
        turn: seconds after which another tenant's file has its turn.
        clock: seconds, growing.
    """

    def __init__(
        self,
        uploads: Uploads,
        ingest: Ingest,
        stop: threading.Event,
        *,
        retention: float,
        again: float = AGAIN,
        turn: float = TURN,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._uploads = uploads
        self._ingest = ingest
        self._clock = clock
        self._stop = stop
        self._retention = timedelta(seconds=retention)
        self._again = again
        self._turn = turn
        self._served: str | None = None
        self._wait = _FIRST

    def run(self) -> None:
        """Ingest until the process must stop. A full or read-only disk of the uploads is waited for.

        Raises:
            Busy: another process ingests.
        """
        while not self._stop.is_set():
            try:
                with self._uploads.serving():
                    self._serve()
            except OSError as error:
                if error.errno not in STORAGE:
                    raise
                # a process that ends again and again would be the end of `posology up`, and of its API
                _log.error("files wait: %s", error)
                self._wait_more()

    def _serve(self) -> None:
        note("ingesting process ready")
        while not self._stop.is_set():
            waits = self.run_waiting()
            if not waits:
                self._uploads.sweep(datetime.now(UTC) - self._retention)
            self._stop.wait(self._wait if waits else _PAUSE)
        note("ingesting process stopped")

    def _wait_more(self) -> None:
        self._stop.wait(self._wait)
        self._wait = min(2 * self._wait, _LONGEST)

    def run_waiting(self) -> bool:
        """Ingest all that waits.

        Returns:
            Whether something still waits: the process must stop, or cannot write the index now.
        """
        while not self._stop.is_set():
            pending = self._uploads.pending()
            if not pending:
                return False
            waiting = (one for ones in pending.values() for one in ones)
            if cancelled := [one for one in waiting if self._uploads.is_cancelled(one)]:
                for one in cancelled:
                    self._end(one, IngestState.CANCELLED)
                continue
            # each tenant in turn, so that one with many files does not keep the others waiting
            names = sorted(pending)
            tenant = next((n for n in names if self._served is None or n > self._served), names[0])
            left = sum(map(len, pending.values()))
            if not self._run(pending[tenant][0], last=left == 1):
                self._wait = min(2 * self._wait, _LONGEST)
                return True
            self._served, self._wait = tenant, _FIRST
        return True

    def _run(self, ingest: IngestOutput, *, last: bool) -> bool:
        """Run an ingest to its end, or for a turn; false: the process must stop, or cannot write the index now."""
        if ingest.over:
            # the process was killed between its last two steps
            self._uploads.end(ingest)
            return True
        if ingest.runs >= MAX_RUNS:
            return self._end(
                ingest,
                IngestState.FAILED,
                error=IngestFailure(
                    type="Crashed",
                    message=f"the ingesting process ended {ingest.runs} times while it read this file: split the "
                    "file, or ask the operator of the service",
                ),
            )
        crashed = ingest.state is IngestState.RUNNING
        if crashed and self._stop.wait(self._again * ingest.runs):
            return False
        begun = ingest.model_copy(
            update={
                "state": IngestState.RUNNING,
                "runs": ingest.runs + 1,
                "started": ingest.started or datetime.now(UTC),
            }
        )
        # before the work: a crash counts
        self._uploads.save(begun)
        note(
            "ingest started",
            tenant=begun.tenant,
            ingest=begun.id,
            bytes=begun.bytes,
            run=begun.runs,
        )
        watch = Watch(self._uploads, begun, self._stop, turn=self._turn, clock=self._clock)
        try:
            with _faults():
                report = self._ingest(
                    self._uploads.path(begun), tenant=begun.tenant, watch=watch, last=last
                )
        except (Stopped, Yielded, _Fault) as stopped:
            # none is the file's fault, so that the run does not count
            back = {
                "state": IngestState.WAITING,
                "runs": ingest.runs,
                "phase": _WAITS[type(stopped)],
            }
            self._uploads.save(watch.now.model_copy(update=back))
            return isinstance(stopped, Yielded)
        except Cancelled:
            return self._end(watch.now, IngestState.CANCELLED)
        except (InputError, BudgetError, ReaderUnavailable, FetchFailed) as error:
            reason = str(getattr(error, "reason", error.message))
            return self._end(watch.now, IngestState.FAILED, error=_failure(error, reason))
        except Exception as error:  # noqa: BLE001 - a file may break a reader in any way
            _log.exception("ingest failed", extra={"fields": {"ingest": begun.id}})
            return self._end(watch.now, IngestState.FAILED, error=_failure(error, _WITHHELD))
        return self._conclude(watch.now, report)

    def _conclude(self, ingest: IngestOutput, report: IngestReport) -> bool:
        unread = next((one.reason for one in report.bad_files), None)
        error = None
        if unread is not None and not report.good:
            error = IngestFailure(type="BadFile", message=unread[:_REASON])
        counted = ingest.model_copy(
            update={
                "done": report.good + report.bad,
                "written": report.written,
                "unchanged": report.unchanged,
                "replaced": report.replaced,
                "bad": report.bad,
                "rejected": tuple(
                    RejectedRecord(line=one.line, record=one.record, reason=one.reason[:_REASON])
                    for one in report.bad_records[:LISTED]
                ),
                "unread": None if unread is None else unread[:_REASON],
            }
        )
        state = IngestState.SUCCEEDED if error is None else IngestState.FAILED
        return self._end(counted, state, error=error)

    def _end(
        self, ingest: IngestOutput, state: IngestState, *, error: IngestFailure | None = None
    ) -> bool:
        ended = ingest.model_copy(
            update={"state": state, "phase": None, "ended": datetime.now(UTC), "error": error}
        )
        self._uploads.end(ended)
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
