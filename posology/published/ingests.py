"""Uploaded files, what was fetched from literature services, and their ingests as JSON."""

from __future__ import annotations

from datetime import datetime
from enum import StrEnum

from pydantic import Field

from posology.published.base import Published


class FetchedFile(Published):
    """A file of a fetch."""

    name: str
    """Name of the file."""
    bytes: int
    """Size of the file."""
    sha256: str
    """SHA-256 of the file, in hexadecimal digits."""


class MissingText(Published):
    """An article without a full text, and why."""

    record: str
    """Id of the article."""
    why: dict[str, str]
    """Reason of each place where it was looked for: `pmc` (PubMed Central), `europepmc`, `unpaywall`."""
    copy_at: str | None = None
    """Address of a free copy that Unpaywall knows; it is not fetched. null: none is known."""


class FetchOutput(Published):
    """A fetch from a literature service: the provenance of an answer from it."""

    id: str
    """Id of the fetch."""
    service: str
    """Service: `pubmed`, `europepmc` or `clinicaltrials`."""
    url: str
    """Base address of the service."""
    question: str | None
    """Question that the query was made of, by a rule without a model; null: the query or ids were given."""
    query: str | None
    """Query as it was sent; null: ids were given."""
    wider: tuple[str, ...] = ()
    """Wider queries that were sent after it, in order, each without what the one before finds."""
    newer: str | None = None
    """Query for what the service had added since a day, which was sent after it, too; null: none."""
    translation: str | None
    """How the service read the query; null: it does not say."""
    started: datetime
    """Time of the first request."""
    ended: datetime
    """Time after the last one."""
    found: int
    """Number of records that match in the service."""
    limit: int
    """Maximum number of records to fetch."""
    records: int
    """Number of records that were fetched."""
    full_texts: int
    """Number of articles whose full text was fetched."""
    missing: tuple[str, ...]
    """The first 100 ids that the service did not send although it was asked for them."""
    notes: tuple[str, ...]
    """Remarks: queries that found nothing, and the service's own warnings."""
    files: tuple[FetchedFile, ...]
    """Files, in the order in which they were fetched."""
    sha256: str
    """SHA-256 of the digests of all files, one on a line: two fetches with the same one brought the same."""
    text_places: dict[str, int] = Field(default_factory=dict)
    """Number of full texts by the place that sent them: `pmc` or `europepmc`."""
    without_text: int = 0
    """Number of articles whose full text was looked for and not found."""
    texts_missing: tuple[MissingText, ...] = ()
    """The first 100 of them."""

    @property
    def sentence(self) -> str:
        """Return the fetch in one sentence."""
        asked = f"for `{self.query}`" if self.query is not None else "by id"
        if self.newer is not None:
            asked += f" and `{self.newer}`"
        if self.wider:
            asked += f" and {len(self.wider)} wider quer{'ies' if len(self.wider) > 1 else 'y'}"
        return (
            f"Fetched from {self.service} {asked} on {self.ended:%Y-%m-%d %H:%M} UTC: {self.records:,} of "
            f"{self.found:,} records, {self.full_texts:,} full texts (fetch {self.id}, sha256 {self.sha256[:12]})."
        )


class IngestState(StrEnum):
    """State of an ingest."""

    #: the file is complete and waits for the ingesting process
    WAITING = "waiting"
    #: the file is being read
    RUNNING = "running"
    #: the file was read; some of its records may be bad
    SUCCEEDED = "succeeded"
    #: nothing of the file could be read, or the ingest failed
    FAILED = "failed"
    #: its tenant or an operator cancelled it; records that were written before stay
    CANCELLED = "cancelled"


class RejectedRecord(Published):
    """A record of a file, and what of it cannot be read."""

    line: int
    """Line of the record, or its place among the file's records, from 1."""
    record: str | None
    """Id of the record; null: it has none that can be read."""
    reason: str
    """What is wrong with it."""


class IngestFailure(Published):
    """Why an ingest failed."""

    type: str
    """Name of the error."""
    message: str
    """What is wrong, and what to do."""


class IngestOutput(Published):
    """An uploaded file and its ingest."""

    id: str
    """Id of the ingest."""
    tenant: str
    """Tenant that uploaded the file."""
    name: str
    """Name of the file."""
    bytes: int
    """Size of the file."""
    sha256: str
    """SHA-256 of the file, in hexadecimal digits."""
    state: IngestState
    """State: waiting, running, succeeded, failed or cancelled."""
    phase: str | None
    """What is being done, in words; null: nothing."""
    done: int
    """Number of records that were read so far, bad ones included."""
    total: int | None
    """Number of records in the file; null: not counted yet."""
    runs: int
    """How often the ingest was started; more than 1 after a crash or restart of the service."""
    submitted: datetime
    """Time at which the upload was complete."""
    started: datetime | None
    """Time of the first start."""
    ended: datetime | None
    """Time of the end."""
    written: int
    """Records that were embedded and written in the last run."""
    unchanged: int
    """Records that the index had already, also from an interrupted run."""
    replaced: int
    """Records that a later record of the same id replaced at once."""
    bad: int
    """Records that cannot be read."""
    rejected: tuple[RejectedRecord, ...]
    """The first 100 of them."""
    unread: str | None
    """Why the file cannot be read, or not to its end; null: it was read to its end."""
    error: IngestFailure | None
    """Why the ingest failed; null: it did not."""
    fetch: FetchOutput | None = None
    """What was fetched from a literature service; null: nothing yet, or a file was uploaded."""
    remarks: tuple[RejectedRecord, ...] = ()
    """The first 100 remarks on records that were read, e.g. that a page of them was not."""

    @property
    def over(self) -> bool:
        """Whether the ingest has ended."""
        return self.state not in (IngestState.WAITING, IngestState.RUNNING)


class IngestPage(Published):
    """Ingests of a tenant."""

    ingests: tuple[IngestOutput, ...]
    """Ingests whose records are kept, newest first."""
