"""Tables that were requested over HTTP, as JSON."""

from __future__ import annotations

from datetime import datetime
from enum import StrEnum

from posology.published.base import Dollars, Published
from posology.published.tables.forms import TableEstimate


class TableState(StrEnum):
    """State of a table."""

    #: nothing is read yet, or it waits to continue
    WAITING = "waiting"
    #: documents are being read
    RUNNING = "running"
    #: it was cancelled, and calls in progress have not ended yet
    CANCELLING = "cancelling"
    #: each document was read; a row says if its call failed
    SUCCEEDED = "succeeded"
    #: it ended early; its file has the rows that were read
    FAILED = "failed"
    #: it was cancelled; its file has the rows that were read
    CANCELLED = "cancelled"


class TableFailure(Published):
    """Why a table ended early."""

    type: str
    """Name of the error."""
    message: str
    """What is wrong, and what to do."""


class TableOrder(Published):
    """A table that was requested over HTTP."""

    id: str
    """Id of the table."""
    tenant: str
    """Tenant that pays."""
    state: TableState
    """State: waiting, running, cancelling, succeeded, failed or cancelled."""
    model: str
    """Model that reads the documents."""
    fields: tuple[str, ...]
    """Names of the columns."""
    index: str
    """Version of the index that the documents are from."""
    documents: int
    """Number of documents."""
    done: int
    """Number of documents that were read, with or without an error."""
    cells: int
    """Number of cells of the documents that were read."""
    values: int | None
    """Number of these that have a value with a verified quote; null: the table has not ended."""
    runs: int
    """How often reading was started; more than 1 after a crash of the service or a second request."""
    submitted: datetime
    """Time of the request."""
    started: datetime | None
    """Time of the first start."""
    ended: datetime | None
    """Time of the end."""
    spent_usd: Dollars
    """Spent so far."""
    cap_usd: Dollars | None
    """Maximum cost; null: the tenant's limits alone."""
    estimate: TableEstimate
    """Estimated cost at the last request."""
    error: TableFailure | None
    """Why it ended early; null: it has not."""

    @property
    def over(self) -> bool:
        """Whether it has ended."""
        return self.ended is not None


class TablePage(Published):
    """Tables of a tenant."""

    tables: tuple[TableOrder, ...]
    """Newest first."""
