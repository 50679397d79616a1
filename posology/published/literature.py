"""Searches, passages and indices as JSON."""

from __future__ import annotations

from datetime import datetime

from pydantic import Field

from posology.published.answers import Ranked, Source
from posology.published.base import Published
from posology.types import Filters, Flag, SentenceRole


class Found(Ranked):
    """A passage that was found."""

    snippet: str = ""
    """The sentence of the passage that is nearest to the query in meaning, at most 300 characters."""
    role: SentenceRole | None = None
    """Role of that sentence: background, aim, methods, results or conclusion; null: unknown to the index."""


class SearchOutput(Published):
    """Passages that were found: the output of `posology search --json` and of `POST /v1/search`."""

    query: str
    """The search query."""
    mode: str
    """Retrieval method: dense, bm25, fused, dense>bm25 or bm25>dense."""
    k: int
    """Number of passages that were asked for."""
    hits: tuple[Found, ...]
    """The passages, in the order of the method's ranking."""
    dense: tuple[str, ...]
    """Passage ids in the order of the dense ranking, best first."""
    bm25_rerank: tuple[str, ...]
    """The passages of `dense` in the order of BM25."""
    bm25: tuple[str, ...]
    """Passage ids in the order of the BM25 ranking, best first."""
    fused: tuple[str, ...]
    """Passage ids in the order of the fused ranking, best first."""
    index: str
    """Name and version of the index, e.g. `index@17`."""
    filters: Filters | None = None
    """Filters of the search; null: none."""
    seconds: float
    """Duration in seconds."""
    growth: str | None = None
    """How far the first ingest of the index is, in words; null: it is complete."""
    added: tuple[str, ...] = ()
    """Synonyms that BM25 searched for beside the query's own words."""


class IndexVersion(Published):
    """A readable version of an index."""

    index: str = Field(examples=["index@17"])
    """Name and version."""
    number: int
    """Number of the version, for `index_version` and `version`."""
    published: datetime
    """Time of publication."""
    until: datetime | None
    """Time until which it stays readable; null: it is the newest."""


class IndexStatus(Published):
    """An index as readers see it."""

    index: str
    """Name and newest version, e.g. `index@17`."""
    passages: int
    """Number of passages."""
    retracted: int
    """Number of retracted passages among them."""
    embedder: str
    """Embedder of the passages and questions."""
    growth: str | None
    """How far the first ingest is, in words; null: it is complete."""
    versions: tuple[IndexVersion, ...]
    """Readable versions, oldest first; the last is the newest."""
    collections: tuple[str, ...] = ()
    """Collections that the tenant may read besides the default index."""


class QuoteDifference(Published):
    """Words of a quote and of a passage that differ; empty where it has none."""

    quote: str
    """Words of the quote."""
    passage: str
    """Words of the passage in their place."""


class QuoteCheck(Published):
    """A quote compared with the text of a passage."""

    passage: Source
    """The passage."""
    quote: str
    """The quote as it was given."""
    verified: bool
    """Whether the passage contains it. Forgiven are marks around it, spaces, kinds of quotation marks and dashes, and
    the case of its first letter."""
    reason: str | None
    """Why it is not verified: not_found, differs (a sentence of the passage says nearly the same), too_short, cuts_token
    (begins or ends within a word or number), drops_comparison or drops_negation (leaves out what turns its meaning),
    unreadable (its sentence was not read whole from the file); null: it is verified."""
    wording: str | None
    """The words of the passage, of `differs` its whole sentences; null: neither verified nor near."""
    differences: tuple[QuoteDifference, ...] = ()
    """Of `differs`: what differs, in order. Empty: nothing, or only case, spaces and punctuation."""
    start: int | None
    """First code point of the wording in the passage's text; null: there is none."""
    end: int | None
    """Code point after the last one; null: there is none."""
    page: int | None = None
    """Page of the file on which the wording begins, counted from 1; null: unknown."""
    last_page: int | None = None
    """Page on which it ends; null: unknown."""
    ocr: bool = False
    """Whether OCR read any of the wording from a scanned page: letters and numbers may differ from what the page shows."""
    index: str
    """Name and version of the index."""


class QuoteSearch(Published):
    """The places of a quote in an index: the output of `posology quote --json` and of `POST /v1/quotes`."""

    quote: str
    """The quote as it was given."""
    places: tuple[QuoteCheck, ...]
    """Passages that contain it, word for word first, then those that nearly do, nearest first; at most 10."""
    compared: int
    """Number of passages that were compared: those that share most words with it."""
    index: str
    """Name and version of the index."""


class ArticleStanding(Published):
    """The standing of an article."""

    id: str
    """Id as it was given."""
    found: bool
    """Whether the index holds it. If not, nothing is known about its standing."""
    retracted: bool | None
    """Whether it was retracted; null: unknown to the index."""
    concern: bool | None
    """Whether an expression of concern was published about it; null: unknown to the index."""
    title: str | None
    """Title; null: unknown to the index."""
    flags: tuple[Flag, ...]
    """Statements about its standing, of every source."""
    index: str | None
    """Name and version of the index; null: unknown to the index."""


class Standings(Published):
    """The standing of articles, in the order they were asked for."""

    articles: tuple[ArticleStanding, ...]
    """The articles."""
