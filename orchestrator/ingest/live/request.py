"""A fetch as callers ask for it."""

from __future__ import annotations

import hashlib
from datetime import date, datetime
from typing import Annotated

from pydantic import AfterValidator, Field, model_validator
from pydantic_core import PydanticCustomError

from orchestrator.question.request import JobRequest
from orchestrator.question.sent import Sent, Text
from policies.specs import searches_again
from posology.corpus.live.forms import MAX_RECORDS, Asked, Links, ServiceName
from posology.corpus.live.question import queries
from posology.errors import InvalidQuery
from posology.query import MAX_QUESTION, make_query

#: name of an upload that is a fetch to make; no uploaded file may have it, because no format has its suffix
FETCH = "request.fetch"
#: registration numbers of one fetch: they stand in an address
MAX_TRIALS = 300
#: articles of which those that are related, or cite them, are fetched at once
MAX_LINKED = 20
#: records that a fetch brings unless it says
RECORDS = 100


def _no_blank(value: str) -> str:
    if not (text := value.strip()):
        raise PydanticCustomError("text", "the query is empty")
    return text


class FetchRequest(Sent):
    """A fetch from a literature service: one of `question`, `query`, `pmids` and `trials`."""

    question: Annotated[Text, Field(max_length=MAX_QUESTION)] | None = None
    """Question, which becomes a query by a rule without a model. Default: none."""
    query: Annotated[Text, Field(max_length=MAX_QUESTION), AfterValidator(_no_blank)] | None = None
    """Query in the language of the service, sent as it is. Default: none."""
    pmids: Annotated[
        tuple[Annotated[str, Field(pattern=r"^[1-9][0-9]{0,11}$")], ...],
        Field(max_length=MAX_RECORDS),
    ] = ()
    """PubMed ids, at most 10000. Default: none."""
    links: Links | None = None
    """Articles to fetch instead of at most 20 `pmids`: those related to them (pubmed only), or those that cite them
    (cited_by). Default: none."""
    trials: Annotated[
        tuple[Annotated[str, Field(pattern=r"^NCT[0-9]{8}$")], ...], Field(max_length=MAX_TRIALS)
    ] = ()
    """Registration numbers of ClinicalTrials.gov, which is then the service, at most 300. Default: none."""
    service: ServiceName = "pubmed"
    """Service: pubmed (NCBI's E-utilities), europepmc or clinicaltrials. Default: pubmed."""
    max_records: int = Field(default=RECORDS, ge=1, le=MAX_RECORDS)
    """Maximum number of records, 1 to 10000; over HTTP at most POSOLOGY_FETCH_RECORDS. Default: 100."""
    full_text: bool = False
    """Whether to look for the full text of each article, too: in PubMed Central, then Europe PMC, then by Unpaywall.
    Default: false."""
    wider: bool = False
    """Whether wider queries of the question, with terms dropped, are sent until max_records are there. Default: false."""
    added_since: date | None = None
    """Day since which the service has added (ClinicalTrials.gov: or changed) records for which a quarter of max_records
    is reserved, the most relevant of them first. Default: none."""

    @model_validator(mode="after")
    def _one(self) -> FetchRequest:
        asked = (self.question, self.query, self.pmids or None, self.trials or None)
        if sum(one is not None for one in asked) != 1:
            raise PydanticCustomError("fetch", "give one of question, query, pmids and trials")
        studies = self.trials or self.service == "clinicaltrials"
        if studies and (self.pmids or self.full_text):
            raise PydanticCustomError(
                "fetch", "clinicaltrials has study records: no pmids and no full_text"
            )
        if self.added_since is not None and (self.pmids or self.trials):
            raise PydanticCustomError("fetch", "added_since needs a question or a query")
        if self.links and not 1 <= len(self.pmids) <= MAX_LINKED:
            raise PydanticCustomError("fetch", f"links need 1 to {MAX_LINKED} pmids")
        if self.links == "related" and self.service != "pubmed":
            raise PydanticCustomError("fetch", "related articles are known to pubmed alone")
        return self

    def asked(self) -> Asked:
        """Return the fetch, with the query of its question.

        Raises:
            InvalidQuery: the question is empty or has no word.
        """
        tried: tuple[str, ...] = (self.query,) if self.query is not None else ()
        question = None
        if self.question is not None:
            question = make_query(self.question).text
            tried = queries(question)
        return Asked(
            service="clinicaltrials" if self.trials else self.service,
            queries=tried,
            pmids=tuple(dict.fromkeys(self.pmids)),
            links=self.links,
            trials=tuple(dict.fromkeys(self.trials)),
            question=question,
            limit=self.max_records,
            full_text=self.full_text,
            wider=self.wider and len(tried) > 1,
            added_since=self.added_since,
        )


class LiveRequest(Sent):
    """Literature that is fetched for a question."""

    query: Annotated[Text, Field(max_length=MAX_QUESTION), AfterValidator(_no_blank)] | None = None
    """Query in the language of the service. Default: made of the question by a rule."""
    service: ServiceName = "pubmed"
    """Service: pubmed, europepmc or clinicaltrials. Default: pubmed."""
    max_records: int = Field(default=RECORDS, ge=1, le=MAX_RECORDS)
    """Maximum number of records, at most POSOLOGY_FETCH_RECORDS. Default: 100."""
    full_text: bool = False
    """Whether to look for free full texts, too. Default: false."""

    def of(self, asked: JobRequest) -> FetchRequest:
        """Return the fetch for a question, with wider queries where its policy may search a second time.

        Raises:
            InvalidQuery: the question is for a collection, or the service has no full texts.
        """
        if asked.collection is not None:
            raise InvalidQuery(
                "literature is fetched into the default index: omit collection, or live",
                field="collection",
            )
        what = {"question": asked.question} if self.query is None else {"query": self.query}
        more = {name: getattr(self, name) for name in ("service", "max_records", "full_text")}
        return FetchRequest.parse({**what, **more, "wider": searches_again(asked.policy)})


def fetch_id(asked: Asked, now: datetime) -> str:
    """Return the id of a fetch: its day and the digest of what is asked for, so that a day's fetches are made once."""
    digest = hashlib.sha256(asked.model_dump_json().encode()).hexdigest()
    return f"{now:%Y-%m-%d}-{digest[:12]}"
