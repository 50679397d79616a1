"""Requests, replies and the journal of a fetch, which is written into its folder, so that it resumes."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import date, datetime
from typing import Literal, Protocol

from pydantic import BaseModel, ConfigDict, Field

from posology.published.ingests import FetchedFile, MissingText

ServiceName = Literal["pubmed", "europepmc", "clinicaltrials"]
#: articles instead of the given ones: those related to them, or those that cite them
Links = Literal["related", "cited_by"]
#: maximum records of one fetch: PubMed's search returns no more ids
MAX_RECORDS = 10_000
#: one of so many records is reserved for those that were added since a day
_RESERVED = 4


class _Form(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class Asked(_Form):
    """A fetch as it is asked for: queries, PMIDs or registration numbers."""

    service: ServiceName
    #: tried in this order until one finds enough; empty: PMIDs are given
    queries: tuple[str, ...] = ()
    #: PubMed ids, without repetitions
    pmids: tuple[str, ...] = ()
    #: what is fetched instead of the PMIDs; ``None``: they themselves
    links: Links | None = None
    #: registration numbers of ClinicalTrials.gov, without repetitions
    trials: tuple[str, ...] = ()
    #: question that the queries were made of; ``None``: none
    question: str | None = None
    #: maximum records
    limit: int
    #: whether the full text of open articles is fetched, too
    full_text: bool = False
    #: whether the queries after the one that was taken fill up the limit; left out where they do not, so that a fetch of an
    #: older version is the same fetch
    wider: bool = Field(default=False, exclude_if=lambda wider: not wider)
    #: day since which the service has added what a part of the limit is reserved for; ``None``: none is
    added_since: date | None = Field(default=None, exclude_if=lambda day: day is None)

    @property
    def relevant(self) -> Asked:
        """The same without what is reserved."""
        reserved = 0 if self.added_since is None else self.limit // _RESERVED
        return self.model_copy(update={"limit": self.limit - reserved})


class PubMedState(_Form):
    """The place in a list of PubMed ids that NCBI's history server keeps."""

    #: ids that are not fetched yet, as they stand in the history from ``start`` on
    ids: tuple[str, ...]
    #: address of the list on the history server
    webenv: str
    key: str
    #: position of the first of ``ids`` in it
    start: int = 0


class CursorState(_Form):
    """The place in the results of Europe PMC or ClinicalTrials.gov."""

    query: str
    #: ``*``: the beginning
    cursor: str = "*"
    #: records that are still wanted
    left: int
    #: ids that came, of those that were given
    got: frozenset[str] = frozenset()


State = PubMedState | CursorState


class Begun(_Form):
    """Reply to a search."""

    #: query that found it; ``None``: ids were given
    query: str | None
    #: records that match
    found: int
    #: the service's reading of the query; ``None``: unknown
    translation: str | None = None
    notes: tuple[str, ...] = ()
    #: place of the first page; ``None``: nothing was found
    state: State | None


class Page(_Form):
    """A page of records."""

    content: bytes
    #: suffix of its file, by which the readers know it
    suffix: str
    #: number of records
    records: int
    #: ids that were asked for and did not come
    missing: tuple[str, ...] = ()
    #: place of the next page; ``None``: this is the last
    state: State | None


class Text(_Form):
    """Full texts."""

    content: bytes
    #: PubMed Central ids of the articles with more than an abstract
    whole: tuple[str, ...]


class Wanted(_Form):
    """An article whose full text is wanted."""

    #: its id
    record: str
    #: PubMed Central id; ``None``: it has none
    pmcid: str | None
    #: ``None``: it has none
    doi: str | None


class Service(Protocol):
    """A literature service."""

    #: base address
    url: str

    async def begin(self, asked: Asked) -> Begun:
        """Search.

        Raises:
            FetchFailed: the service gave no usable reply, or refused the query.
        """

    async def page(self, state: State) -> Page:
        """Return the page at a place.

        Raises:
            FetchFailed: the service gave no usable reply.
        """


class TextService(Protocol):
    """A service that sends full texts."""

    #: articles in one request
    texts_at_once: int

    async def texts(self, pmcids: Sequence[str]) -> Text | None:
        """Return the full texts of articles in PubMed Central; ``None``: none of them is open.

        Raises:
            FetchFailed: the service gave no usable reply.
        """


class Journal(_Form):
    """How far a fetch is."""

    asked: Asked
    started: datetime
    begun: Begun
    state: State | None
    #: reply to the query for what was added since a day; ``None``: it was not asked
    added: Begun | None = None
    #: replies to the wider queries that were asked after it; the last without a query: it failed
    wider: tuple[Begun, ...] = ()
    files: tuple[FetchedFile, ...] = ()
    records: int = 0
    #: number of full texts by the place that sent them
    full_texts: dict[str, int] = {}
    missing: tuple[str, ...] = ()
    #: articles whose full texts are still to be looked for; ``None``: not known before the last page
    texts: tuple[Wanted, ...] | None = None
    #: number of articles whose full text was not found, and the first of them
    without: int = 0
    told: tuple[MissingText, ...] = ()
    ended: datetime | None = None

    @property
    def found(self) -> int:
        """Number of records that match in the service; a wider query leaves out those of the one before."""
        return self.begun.found + sum(one.found for one in self.wider)
