"""Progress of an ingest, and the reasons to end it before the end of its file."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable

from orchestrator.work.items import LeaseLost
from orchestrator.work.lease import Lease
from posology.index.build.report import IngestProgress
from posology.published.ingests import FetchOutput, IngestOutput

#: seconds between two looks whether the work is to end
SHOWN = 1.0
#: seconds of a turn, after which the file of another tenant that waits has its turn
TURN = 30.0


class Stopped(Exception):
    """The process stops; the ingest resumes at its last commit."""


class Yielded(Exception):
    """The file of another tenant has its turn; the ingest resumes at its last commit."""


class Cancelled(Exception):
    """The ingest is to end; what it has committed stays."""


class Watch:
    """The progress of an ingest, set by its thread. The lease records it, and says whether the work is to end.

    Args:
        ingest: its record.
        stop: set when the process must stop.
        turn: seconds after which another tenant's file has its turn.
        clock: seconds, growing.
    """

    def __init__(
        self,
        ingest: IngestOutput,
        stop: threading.Event,
        *,
        turn: float = TURN,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        #: the record as it is now
        self.now = ingest
        #: set before the work begins
        self.lease: Lease
        #: whether files of other tenants wait
        self.others = False
        self._stop = stop
        self._clock = clock
        self._done = 0
        self._looked = clock()
        self._until = self._looked + turn

    @property
    def turn_is_over(self) -> bool:
        """Whether another tenant's file has its turn."""
        return self._clock() >= self._until

    def record(self) -> str:
        """Return the record as JSON."""
        return self.now.model_dump_json()

    def phase(self, name: str) -> None:
        """Record what begins."""
        self._set(phase=name)

    def count(self, total: int) -> None:
        """Record the number of records."""
        self._set(total=total)

    def fetched(self, fetch: FetchOutput) -> None:
        """Record what was fetched."""
        self._set(fetch=fetch)

    def row(self) -> None:
        """Count an encoded record.

        Raises:
            Stopped: the process must stop.
            Cancelled: the ingest is to end.
        """
        self._done += 1
        if self._clock() - self._looked >= SHOWN:
            self._set(done=self._done)

    def committed(self, now: IngestProgress) -> None:
        """Record what is committed.

        Raises:
            Stopped: the process must stop.
            Cancelled: the ingest is to end.
            Yielded: the turn is over, and another tenant's file waits. Only here, so that each turn commits something.
        """
        self._done = now.written + now.unchanged + now.replaced + now.bad
        # what was written stays, however the ingest ends
        self._set(
            done=self._done,
            written=now.written,
            unchanged=now.unchanged,
            replaced=now.replaced,
            bad=now.bad,
        )
        if self.turn_is_over and self.others:
            raise Yielded

    def look(self) -> None:
        """Look whether the work is to end.

        Raises:
            Stopped: the process must stop.
            Cancelled: the ingest is to end.
            LeaseLost: another process has it.
        """
        self._looked = self._clock()
        if self._stop.is_set():
            raise Stopped
        if self.lease.standing == "lost":
            raise LeaseLost(self.now.id)
        if self.lease.standing == "cancelling":
            raise Cancelled

    def _set(self, **changed: object) -> None:
        self.now = self.now.model_copy(update=changed)
        self.look()
