"""Errors of calls to models."""

from __future__ import annotations

from typing import TYPE_CHECKING

from posology.errors.base import PosologyError

if TYPE_CHECKING:
    from posology.types import Served, Usage


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
        served: Served | None = None,
    ) -> None:
        super().__init__(
            message,
            provider=provider,
            model=model,
            status=status,
            request_id=request_id,
            retry_after=retry_after,
            usage=usage,
            served=served,
        )

    provider: str
    #: as the caller named it
    model: str
    #: HTTP status, where there was a response; of an error in a reply of status 200, the one that it tells
    status: int | None
    request_id: str | None
    #: seconds to wait, as the provider asks
    retry_after: float | None
    #: usage of the failed attempt; ``None``: unknown
    usage: Usage | None
    #: service tier that the reply names; ``None``: none
    served: Served | None


class ProviderUnreachable(ProviderError):
    """No connection, or it was cut."""


class ProviderTimeout(ProviderError):
    """No reply in time. The provider may have billed it."""


class RateLimited(ProviderError):
    """Too many requests or tokens at the moment (429)."""


class NoCapacity(ProviderError):
    """The provider has no capacity in the tier flex at the moment (429), and bills nothing."""


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
    """The messages, or messages and reply together, have more tokens than the model's window."""


class UnusableReply(ProviderError):
    """A reply came, and may have been billed, but cannot be used."""


class MalformedReply(UnusableReply):
    """The body is not of the provider's own format."""

    @property
    def billed(self) -> bool:
        """Whether it came whole and was billed: another attempt would be billed, too."""
        return self.usage is not None and self.usage.total_input > 0


class SchemaViolation(UnusableReply):
    """The reply is not of the asked-for structure, even after one repair."""


class TruncatedReply(UnusableReply):
    """The reply was cut at ``max_tokens`` before its structure closed."""


class NotProcessed(ProviderError):
    """The provider's batch expired or was cancelled before the request was processed: not billed."""


class NothingRead(ProviderError):
    """No partition of a question could be read: every call failed, retries included."""

    def __init__(
        self, message: str, *, provider: str, model: str, failures: dict[str, int]
    ) -> None:
        super().__init__(message, provider=provider, model=model)
        self.failures = failures
        self._details["failures"] = failures

    #: number of failed partitions, by :class:`~posology.types.Failure`
    failures: dict[str, int]
