"""The states of a job, and how they follow each other."""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from types import MappingProxyType


class JobState(StrEnum):
    """The state of a job."""

    #: waits for a worker
    QUEUED = "queued"
    #: a worker retrieves, decides, and answers unless it decides for partitions
    RUNNING = "running"
    #: workers read the partitions
    EXTRACTING = "extracting"
    #: every partition is read or has failed; a worker writes the answer
    REDUCING = "reducing"
    #: no more calls are sent; in-flight calls settle
    CANCELLING = "cancelling"
    #: it has an answer or a refusal
    SUCCEEDED = "succeeded"
    #: it has an error, and stands in the dead-letter list
    FAILED = "failed"
    CANCELLED = "cancelled"
    #: its deadline passed
    EXPIRED = "expired"

    @property
    def over(self) -> bool:
        """Whether the job has ended; only a retry reopens it."""
        return self in OVER


class BatchState(StrEnum):
    """The state of a batch."""

    #: some row has not ended
    RUNNING = "running"
    #: every row has ended
    ENDED = "ended"
    #: its cancellation was requested before every row had ended; jobs in flight settle
    CANCELLED = "cancelled"


class WatchState(StrEnum):
    """The state of a watch."""

    #: it is checked when it is due
    ACTIVE = "active"
    #: it is not checked until it is resumed
    PAUSED = "paused"
    #: it is not checked any more, and its record expires
    ENDED = "ended"


OVER = frozenset({JobState.SUCCEEDED, JobState.FAILED, JobState.CANCELLED, JobState.EXPIRED})
#: states of jobs that can still be cancelled
OPEN = frozenset(JobState) - OVER - {JobState.CANCELLING}

_S = JobState
#: allowed transitions; the store's scripts refuse all others
TRANSITIONS: Mapping[JobState, frozenset[JobState]] = MappingProxyType(
    {
        _S.QUEUED: frozenset({_S.RUNNING, _S.CANCELLED, _S.EXPIRED}),
        _S.RUNNING: frozenset(
            {_S.EXTRACTING, _S.SUCCEEDED, _S.FAILED, _S.CANCELLING, _S.CANCELLED, _S.EXPIRED}
        ),
        _S.EXTRACTING: frozenset({_S.REDUCING, _S.FAILED, _S.CANCELLING, _S.CANCELLED, _S.EXPIRED}),
        _S.REDUCING: frozenset({_S.SUCCEEDED, _S.FAILED, _S.CANCELLING, _S.CANCELLED, _S.EXPIRED}),
        _S.CANCELLING: frozenset({_S.CANCELLED}),
        _S.SUCCEEDED: frozenset(),
        _S.FAILED: frozenset({_S.QUEUED}),
        _S.CANCELLED: frozenset({_S.QUEUED}),
        _S.EXPIRED: frozenset({_S.QUEUED}),
    }
)
