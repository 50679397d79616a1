"""Every error that Posology raises on purpose.

::

    PosologyError
    ├── InputError                  what was handed in is wrong
    │   ├── InvalidQuery            a question that cannot be asked
    │   ├── BadRecord               a record of a corpus file that cannot be read
    │   └── BadFile                 a file that cannot be read (further)
    ├── ConfigurationError          what Posology was set up with is wrong
    │   ├── UnknownModel            no such provider, or a name without a provider
    │   ├── MissingKey              the provider's key is not set
    │   ├── EmbedderUnavailable     the embedder's files cannot be loaded
    │   ├── StackRuns               another stack has the data folder
    │   └── ChildFailed             a process of the stack ends again and again
    ├── IndexFault                  the index cannot serve
    │   ├── IndexMissing            there is none at that place
    │   ├── IndexMismatch           it was made with another embedder, or by another format
    │   └── IndexLocked             another process is writing it
    ├── ProviderError               one attempt at a model call failed
    │   ├── ProviderUnreachable     no connection, or it was cut
    │   ├── ProviderTimeout         no reply in time
    │   ├── RateLimited             429
    │   ├── ProviderOverloaded      5xx, 529
    │   ├── AuthenticationFailed    401
    │   ├── PermissionRefused       403
    │   ├── QuotaExhausted          the account has no credit left
    │   ├── ModelNotFound           404
    │   ├── RequestRejected         400, 409, 413, 422
    │   │   └── ContextTooLong      more tokens than the model's window
    │   ├── UnusableReply           a reply came, and may have been billed, but cannot be used
    │   │   ├── MalformedReply      no valid body of that provider's format
    │   │   ├── SchemaViolation     not the asked-for structure, even after a repair
    │   │   └── TruncatedReply      cut at ``max_tokens`` before the structure closed
    │   └── NothingRead             not one partition of a question could be read
    ├── JobError                    a job cannot be worked on as asked
    │   ├── JobNotFound             there is none of that id (any more)
    │   ├── BatchNotFound           there is no batch of that id (any more)
    │   ├── IdempotencyConflict     the key was used for another question
    │   ├── JobFinished             what was asked needs a job that has not ended
    │   ├── JobNotFailed            only a failed, cancelled or expired job can be tried again
    │   ├── JobCancelled            the job was cancelled: nothing more may be spent on it
    │   └── JobSuperseded           another worker has taken the work over
    ├── StoreUnavailable            Redis is out of reach: nothing is spent
    ├── ApiError                    a service did not do as asked, and says no more than its status
    │   └── ApiUnreachable          no response came from it
    └── DeadlineExceeded            the time for the whole work is over

Errors carry their numbers as fields, survive pickling, and have a message that says what to do.
``exit_code`` is what the ``posology`` command ends with.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar

if TYPE_CHECKING:
    from posology.types import Usage


class PosologyError(Exception):
    """Base of all. Subclasses take keyword arguments only, kept as attributes."""

    #: exit status of the ``posology`` command
    exit_code: ClassVar[int] = 1

    def __init__(self, message: str, **details: Any) -> None:
        super().__init__(message)
        #: one line that says what to do
        self.message = message
        self._details = details
        for name, value in details.items():
            setattr(self, name, value)

    def __str__(self) -> str:
        return self.message

    def __reduce__(self) -> tuple[Any, ...]:
        return _rebuild, (type(self), self.message, self._details)

    @property
    def details(self) -> dict[str, Any]:
        """The error's fields, for records and ``--json``."""
        return dict(self._details)


def _rebuild(kind: type[PosologyError], message: str, details: dict[str, Any]) -> PosologyError:
    error = kind.__new__(kind)
    PosologyError.__init__(error, message, **details)
    return error


class InputError(PosologyError):
    """What was handed in is wrong."""

    exit_code = 3


class InvalidQuery(InputError):
    """A question that cannot be asked."""

    def __init__(self, message: str, *, field: str) -> None:
        super().__init__(message, field=field)

    #: the part of the query that is wrong
    field: str


class BadRecord(InputError):
    """A record of a corpus file that cannot be read; the records around it can."""

    def __init__(self, reason: str, *, path: str, line: int) -> None:
        super().__init__(f"{path}:{line}: {reason}", path=path, line=line, reason=reason)

    path: str
    #: counted from 1
    line: int
    reason: str


class BadFile(InputError):
    """A file that cannot be read, or not beyond a line."""

    def __init__(self, reason: str, *, path: str, line: int | None = None) -> None:
        where = path if line is None else f"{path}:{line}"
        super().__init__(f"{where}: {reason}", path=path, line=line, reason=reason)

    path: str
    #: the last line that was read, ``None`` when the file did not open
    line: int | None
    reason: str


class ConfigurationError(PosologyError):
    """What Posology was set up with is wrong."""

    exit_code = 4


class UnknownModel(ConfigurationError):
    """No such provider, or a model name without a provider."""

    def __init__(self, message: str, *, model: str) -> None:
        super().__init__(message, model=model)

    model: str


class MissingKey(ConfigurationError):
    """The provider's key is not set."""

    def __init__(self, *, variable: str) -> None:
        super().__init__(f"set {variable} to use this provider", variable=variable)

    variable: str


class EmbedderUnavailable(ConfigurationError):
    """The embedder's files cannot be loaded."""

    def __init__(self, message: str, *, embedder: str) -> None:
        super().__init__(message, embedder=embedder)

    embedder: str


class StackRuns(ConfigurationError):
    """Another stack has the data folder."""

    def __init__(self, message: str, *, pid: int | None, api: str | None) -> None:
        super().__init__(message, pid=pid, api=api)

    #: of the stack that runs, ``None`` when it has not said so yet
    pid: int | None
    #: where its API is, ``None`` without one
    api: str | None


class ChildFailed(ConfigurationError):
    """A process of the stack ends again and again, or is not ready in time."""

    def __init__(self, message: str, *, child: str, lines: tuple[str, ...]) -> None:
        super().__init__(message, child=child, lines=lines)

    #: the process's name in the stack, such as ``worker1``
    child: str
    #: the last lines that it wrote
    lines: tuple[str, ...]


class IndexFault(PosologyError):
    """The index cannot serve."""

    exit_code = 5

    def __init__(self, message: str, *, index: str) -> None:
        super().__init__(message, index=index)

    index: str


class IndexMissing(IndexFault):
    """There is no index at that place."""


class IndexMismatch(IndexFault):
    """The index was made with another embedder, or by another format."""


class IndexLocked(IndexFault):
    """Another process is writing the index."""


class ProviderError(PosologyError):
    """One attempt at a model call failed."""

    exit_code = 6

    def __init__(
        self,
        message: str,
        *,
        provider: str,
        model: str,
        status: int | None = None,
        request_id: str | None = None,
        retry_after: float | None = None,
        usage: Usage | None = None,
    ) -> None:
        super().__init__(
            message,
            provider=provider,
            model=model,
            status=status,
            request_id=request_id,
            retry_after=retry_after,
            usage=usage,
        )

    provider: str
    #: as the caller named it
    model: str
    #: HTTP status, where there was a response
    status: int | None
    request_id: str | None
    #: seconds that the provider asked to wait
    retry_after: float | None
    #: what the failed attempt cost, where the provider said
    usage: Usage | None


class ProviderUnreachable(ProviderError):
    """No connection, or it was cut."""


class ProviderTimeout(ProviderError):
    """No reply in time. The provider may have billed it."""


class RateLimited(ProviderError):
    """Too many requests or tokens for now (429)."""


class ProviderOverloaded(ProviderError):
    """The provider's own fault (5xx, 529)."""


class AuthenticationFailed(ProviderError):
    """The key is not accepted (401)."""


class PermissionRefused(ProviderError):
    """The key may not do this (403)."""


class QuotaExhausted(ProviderError):
    """The account has no credit left: waiting does not help."""


class ModelNotFound(ProviderError):
    """The provider has no such model (404)."""


class RequestRejected(ProviderError):
    """The provider does not accept the request as it is (400, 409, 413, 422)."""


class ContextTooLong(RequestRejected):
    """The messages have more tokens than the model's window."""


class UnusableReply(ProviderError):
    """A reply came, and may have been billed, but cannot be used."""


class MalformedReply(UnusableReply):
    """The body is not of the provider's own format."""


class SchemaViolation(UnusableReply):
    """The reply is not of the asked-for structure, even after one repair."""


class TruncatedReply(UnusableReply):
    """The reply was cut at ``max_tokens`` before its structure closed."""


class NothingRead(ProviderError):
    """Not one partition of a question could be read: each call failed, retries included."""

    def __init__(
        self, message: str, *, provider: str, model: str, failures: dict[str, int]
    ) -> None:
        super().__init__(message, provider=provider, model=model)
        self.failures = failures
        self._details["failures"] = failures

    #: how many partitions failed, by :class:`~posology.types.Failure`
    failures: dict[str, int]


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


class DeadlineExceeded(PosologyError):
    """The time for the whole work is over."""

    exit_code = 7

    def __init__(self, message: str, *, seconds: float | None) -> None:
        super().__init__(message, seconds=seconds)

    #: the time that was given; ``None``: not known here
    seconds: float | None
