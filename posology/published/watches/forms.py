"""Watches, their last answers and the changes that they have found, as JSON."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from posology.published.affected import EvidenceChange
from posology.published.answers import Disagreement, Evidence, Source, Status
from posology.published.base import Published
from posology.types.jobs import WatchState


class WatchAnswer(Published):
    """The last answer of a watch; it stays when the record of its job has expired."""

    job: str
    """Id of its job."""
    answered: datetime
    """Time of the answer."""
    index: str
    """Name and version of the index that it used."""
    status: Status
    """Answered, unsupported or refused."""
    choice: str | None
    """Verdict, if the question asked for one and the model gave one."""
    answer: str | None
    """Text of the answer; null: refused."""
    refusal: str | None
    """Reason of the refusal; null: answered."""
    evidence: tuple[Evidence, ...]
    """Verified quotes."""
    conflicts: tuple[Disagreement, ...]
    """Contradictions among the sources, resolved or not."""


class WatchChange(Published):
    """A difference between an answer of a watch and the one before."""

    at: datetime
    """Time of the later answer."""
    job: str
    """Id of the job with the later answer."""
    index: str
    """Name and version of the index that it used."""
    status_before: Status
    """Outcome before: answered, unsupported or refused."""
    status: Status
    """Outcome now."""
    choice_before: str | None
    """Verdict before; null: none."""
    choice: str | None
    """Verdict now; null: none."""
    sources_new: tuple[Source, ...]
    """Passages that only the later answer cites."""
    sources_gone: tuple[Source, ...]
    """Passages that only the earlier answer cites."""
    conflicts_new: tuple[Disagreement, ...]
    """Contradictions between passages that only the later answer has, or resolves so."""
    conflicts_gone: tuple[Disagreement, ...]
    """Contradictions between passages that only the earlier answer has, or resolves so."""
    evidence: tuple[EvidenceChange, ...]
    """Changes of passages that the earlier answer cites: retractions, concerns, corrections, lost quotes and removals."""


class WatchSummary(Published):
    """A watch without its answer and its changes."""

    id: str
    """Id of the watch."""
    tenant: str
    """Tenant that pays for its jobs."""
    state: WatchState
    """State: active, paused or ended."""
    question: str
    """The question."""
    every_seconds: int
    """Seconds from one check to the next."""
    created: datetime
    """Time of its creation."""
    next: datetime | None
    """Time of the next check, or of the first one after a pause; null: it has ended."""
    checked: datetime | None
    """Time of the last check; null: none yet."""
    changed: datetime | None
    """Time of the last change; null: none yet."""
    asked: int
    """Number of attempts to ask the question that have ended, with an answer or with an error."""
    fetch: str | None = None
    """Id of the ingest that fetches its literature now; null: none does."""
    job: str | None
    """Id of the job that asks the question now; null: none does."""
    error: str | None
    """Error of the last check, which the next one repeats; null: it succeeded."""


class WatchOutput(WatchSummary):
    """A watch."""

    request: dict[str, Any]
    """The request of its jobs, with every default filled in."""
    live: dict[str, Any] | None = None
    """Literature that is fetched before each check: service, query, maximum records; null: none is."""
    answer: WatchAnswer | None
    """The last answer; null: none yet."""
    changes: tuple[WatchChange, ...]
    """The last 20 changes, newest first."""


class WatchList(Published):
    """Watches of a tenant, oldest first; those that have ended are there for 7 days."""

    watches: tuple[WatchSummary, ...]
    """The watches."""
