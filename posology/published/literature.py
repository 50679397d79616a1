"""Searches, passages and indices as JSON."""

from __future__ import annotations

from datetime import datetime

from pydantic import Field

from posology.published.answers import FiltersOutput, Ranked
from posology.published.base import Published
from posology.types import SentenceRole


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
    filters: FiltersOutput | None = None
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
