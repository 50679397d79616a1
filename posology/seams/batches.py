"""A provider's batch endpoint. A batch here is the provider's, not the user's batch of questions."""

from __future__ import annotations

from collections.abc import AsyncIterator, Collection, Mapping
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import Protocol

from posology.errors import ProviderError
from posology.types import Call, Completion


@dataclass(frozen=True, kw_only=True, slots=True)
class BatchLine:
    """One call as a line of a provider's batch: plain text that can be stored until the batch is made."""

    #: ``provider:name``
    model: str
    #: path of the API that answers it; a batch has lines of one model and one path
    path: str
    #: JSON, exactly the body that a live call sends
    body: str


@dataclass(frozen=True, kw_only=True, slots=True)
class BatchLimits:
    """The largest batch that a provider accepts."""

    lines: int
    #: of all lines as they are sent
    bytes: int
    #: bytes that a line has beyond its body, at most
    per_line: int = 256


@dataclass(frozen=True, kw_only=True, slots=True)
class BatchStatus:
    """The state of a provider's batch."""

    #: whether the provider has stopped working on it: results can be read, and no more will come
    ended: bool
    #: whether a cancellation was asked for
    cancelling: bool
    #: lines by how they ended; providers report 0 until the batch ends, or count as they go
    succeeded: int
    failed: int
    #: when the provider gives up; ``None``: it does not say
    expires: datetime | None


class BatchFate(StrEnum):
    """How one line of a provider's batch ended."""

    SUCCEEDED = "succeeded"
    #: the provider refused the line or failed at it: not billed
    ERRORED = "errored"
    #: the batch expired before the line was processed: not billed
    EXPIRED = "expired"
    #: the batch was cancelled before the line was processed: not billed
    CANCELLED = "cancelled"
    #: the result is missing or cannot be read: billed at ``error.usage`` if it is known
    UNREADABLE = "unreadable"


@dataclass(frozen=True, kw_only=True, slots=True)
class BatchFound:
    """The result of looking for a batch that may have been created."""

    #: the provider's id; ``None``: none was found
    batch: str | None
    #: whether that is final. If not, ask again later: the provider may still be creating the batch, or only the
    #: results of a batch that has not ended can tell whose it is
    sure: bool


@dataclass(frozen=True, kw_only=True, slots=True)
class BatchResult:
    """The result of one line: a completion or an error, never both."""

    #: the attempt's
    id: str
    fate: BatchFate
    #: if it succeeded
    completion: Completion | None = None
    #: otherwise. Its ``usage`` says whether it was billed: ``Usage()`` no, ``None`` unknown
    error: ProviderError | None = None


class BatchEndpoint(Protocol):
    """A provider's batch endpoint: many calls sent at once, answered within a day at about half the price.

    It keeps no state of its own, so any process can go on with a batch that another one created. Every error is
    a :class:`~posology.errors.ProviderError` whose ``usage`` says about billing: ``Usage()`` for not billed,
    ``None`` for unknown.
    """

    @property
    def limits(self) -> BatchLimits:
        """The largest batch that :meth:`create` takes."""
        ...

    def line(self, call: Call) -> BatchLine:
        """Return a call as a line of a batch. Blocking, and sends nothing.

        Raises:
            UnknownModel: the model is of another provider.
        """
        ...

    async def create(self, lines: Mapping[str, BatchLine], *, label: str) -> str:
        """Create a batch, and return the provider's id of it.

        Args:
            lines: by the attempt's id; of one model and one path, within :attr:`limits`.
            label: our id of the batch, 1 to 64 characters of ``A-Za-z0-9_-``.

        Raises:
            ProviderError: with ``usage`` ``Usage()``, no batch was created; with ``None``, it may exist: ask
                :meth:`find`.
            ValueError: the lines do not make one batch.
        """
        ...

    async def find(
        self,
        label: str,
        *,
        model: str,
        ids: Collection[str],
        since: datetime,
        known: Collection[str],
    ) -> BatchFound:
        """Look for the batch of a :meth:`create` whose outcome is unknown.

        Args:
            label: as it was given to :meth:`create`.
            model: of the lines.
            ids: of the attempts in it.
            since: when :meth:`create` was called at the earliest, timezone-aware.
            known: provider's ids of batches that are known to be others.

        Raises:
            ProviderError: it cannot be told now; ask again later.
        """
        ...

    async def status(self, batch: str, *, model: str) -> BatchStatus:
        """Return the state of a batch.

        Raises:
            ModelNotFound: the provider has no such batch (any more).
            ProviderError: in its other kinds.
        """
        ...

    def results(
        self, batch: str, *, model: str, ids: Collection[str]
    ) -> AsyncIterator[BatchResult]:
        """Read the results of a batch that has ended, in any order.

        Each of ``ids`` comes at least once: those without a result come last, as expired, cancelled or
        unreadable. A result that the provider sends twice comes twice. Results of other ids are left out.

        Args:
            batch: the provider's id.
            model: of the lines.
            ids: of the attempts in it.

        Raises:
            MalformedReply: the results no longer exist.
            ProviderError: in its other kinds: they could not be read to the end; read them again later.
        """
        ...

    async def cancel(self, batch: str, *, model: str) -> None:
        """Ask the provider to stop; results of lines that were processed remain, and are billed.

        A batch that has ended is left as it is. Poll :meth:`status` until it has ended.
        """
        ...

    async def discard(self, batch: str, *, model: str) -> None:
        """Delete the questions and replies of a batch that has ended from the provider's storage.

        What is gone already is no error. Call it when all results are settled: they cannot be read again.
        """
        ...

    async def aclose(self) -> None:
        """Close the connections."""
        ...
