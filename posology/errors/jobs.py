"""What can go wrong with a job, the store of jobs, and the service in front of them."""

from __future__ import annotations

from posology.errors.base import PosologyError


class JobError(PosologyError):
    """A job cannot be worked on as asked."""

    exit_code = 8

    def __init__(self, message: str, *, job: str) -> None:
        super().__init__(message, job=job)

    #: the job's id
    job: str


class JobNotFound(JobError):
    """There is no job of that id, or no longer."""


class BatchNotFound(JobError):
    """There is no batch of that id, or no longer."""

    def __init__(self, message: str, *, batch: str) -> None:
        PosologyError.__init__(self, message, batch=batch)

    #: the batch's id
    batch: str


class IdempotencyConflict(JobError):
    """The idempotency key was used for another request."""


class JobFinished(JobError):
    """What was asked needs a job that has not ended."""


class JobNotFailed(JobError):
    """Only a failed, cancelled or expired job can be tried again."""


class JobNotSucceeded(JobError):
    """Only the answer of a job that has succeeded can be judged."""


class JobCancelled(JobError):
    """The job was cancelled: nothing more may be spent on it."""


class JobSuperseded(JobError):
    """Another worker has taken the work over; this one's result is not wanted."""


class StoreUnavailable(PosologyError):
    """Redis is out of reach: nothing is spent, and nothing is lost."""

    exit_code = 9

    def __init__(self, message: str, *, address: str) -> None:
        super().__init__(message, address=address)

    #: without the password
    address: str


class ApiError(PosologyError):
    """A service did not do as asked, and no other error says why."""

    exit_code = 10

    def __init__(
        self,
        message: str,
        *,
        status: int | None = None,
        type: str | None = None,  # noqa: A002  # the problem document's own word
    ) -> None:
        super().__init__(message, status=status, type=type)

    #: HTTP status; ``None``: no response came
    status: int | None
    #: the problem's type; ``None``: the response was no problem document
    type: str | None


class ApiUnreachable(ApiError):
    """No response came from the service, however often it was tried."""


class DecisionChanged(PosologyError):
    """What policies decided for jobs is not what they decide from the same records now."""

    exit_code = 15

    def __init__(self, message: str, *, changed: int, failed: int) -> None:
        super().__init__(message, changed=changed, failed=failed)

    #: jobs that are decided otherwise
    changed: int
    #: jobs that cannot be decided from their records any more
    failed: int


class DeadlineExceeded(PosologyError):
    """The time for the whole work is over."""

    exit_code = 7

    def __init__(self, message: str, *, seconds: float | None) -> None:
        super().__init__(message, seconds=seconds)

    #: the time that was given; ``None``: not known here
    seconds: float | None


class JobExpired(DeadlineExceeded):
    """A job's deadline passed, by the store's clock."""
