"""Errors of jobs, their store, and the HTTP service."""

from __future__ import annotations

from posology.errors.base import PosologyError


class JobError(PosologyError):
    """An operation on a job failed."""

    exit_code = 8

    def __init__(self, message: str, *, job: str) -> None:
        super().__init__(message, job=job)

    #: the job's id
    job: str


class JobNotFound(JobError):
    """No job has that id (any more)."""


class BatchNotFound(JobError):
    """No batch has that id (any more)."""

    def __init__(self, message: str, *, batch: str) -> None:
        PosologyError.__init__(self, message, batch=batch)

    #: the batch's id
    batch: str


class IngestNotFound(JobError):
    """No ingest has that id (any more)."""

    def __init__(self, message: str, *, ingest: str) -> None:
        PosologyError.__init__(self, message, ingest=ingest)

    #: id of the ingest
    ingest: str


class WebhookNotFound(JobError):
    """The tenant has no endpoint of webhooks with that id."""

    def __init__(self, message: str, *, webhook: str) -> None:
        PosologyError.__init__(self, message, webhook=webhook)

    #: id of the endpoint
    webhook: str


class WatchNotFound(JobError):
    """The tenant has no watch of that id (any more)."""

    def __init__(self, message: str, *, watch: str) -> None:
        PosologyError.__init__(self, message, watch=watch)

    #: id of the watch
    watch: str


class WatchEnded(JobError):
    """The watch has ended: it cannot be paused or resumed."""

    def __init__(self, message: str, *, watch: str) -> None:
        PosologyError.__init__(self, message, watch=watch)

    #: id of the watch
    watch: str


class TableNotFound(JobError):
    """The tenant has no table of that id (any more)."""

    def __init__(self, message: str, *, table: str) -> None:
        PosologyError.__init__(self, message, table=table)

    #: id of the table
    table: str


class TableUnfinished(JobError):
    """The table has no rows yet."""

    def __init__(self, message: str, *, table: str) -> None:
        PosologyError.__init__(self, message, table=table)

    #: id of the table
    table: str


class BatchCancelled(JobError):
    """The batch was cancelled: no more rows of it are submitted."""

    def __init__(self, message: str, *, batch: str) -> None:
        PosologyError.__init__(self, message, batch=batch)

    #: the batch's id
    batch: str


class IdempotencyConflict(JobError):
    """The idempotency key was used for another request."""


class JobFinished(JobError):
    """The job has ended already."""


class JobNotFailed(JobError):
    """Only a failed, cancelled or expired job can be retried."""


class JobNotSucceeded(JobError):
    """Only a succeeded job has an answer and takes feedback."""


class JobCancelled(JobError):
    """The job was cancelled: no more calls are made for it."""


class JobSuperseded(JobError):
    """Another worker has taken over the unit; this worker's result is dropped."""


class StoreUnavailable(PosologyError):
    """Redis is unreachable: nothing is spent, and nothing is lost."""

    exit_code = 9

    def __init__(self, message: str, *, address: str) -> None:
        super().__init__(message, address=address)

    #: without the password
    address: str


class ApiError(PosologyError):
    """A service refused a request, with no known cause."""

    exit_code = 10

    def __init__(
        self,
        message: str,
        *,
        status: int | None = None,
        type: str | None = None,  # noqa: A002  # the problem document's own word
    ) -> None:
        super().__init__(message, status=status, type=type)

    #: HTTP status; ``None``: no response
    status: int | None
    #: type of the problem document; ``None``: the response was none
    type: str | None


class ApiUnreachable(ApiError):
    """The service did not respond, retries included."""


class FetchFailed(ApiError):
    """A literature service gave no usable reply, or refused the query."""

    def __init__(self, message: str, *, service: str, status: int | None = None) -> None:
        PosologyError.__init__(self, message, service=service, status=status)

    #: name of the service
    service: str


class DecisionChanged(PosologyError):
    """Replayed decisions differ from the recorded ones."""

    exit_code = 15

    def __init__(self, message: str, *, changed: int, failed: int) -> None:
        super().__init__(message, changed=changed, failed=failed)

    #: number of jobs with another decision
    changed: int
    #: number of jobs that cannot be replayed
    failed: int


class DeadlineExceeded(PosologyError):
    """The deadline of the work has passed."""

    exit_code = 7

    def __init__(self, message: str, *, seconds: float | None) -> None:
        super().__init__(message, seconds=seconds)

    #: the timeout; ``None``: unknown
    seconds: float | None


class JobExpired(DeadlineExceeded):
    """A job's deadline passed, by the store's clock."""
