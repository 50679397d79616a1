"""Results of retrieval: passages in the order of rankings."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, Literal, TypeAlias, get_args

from posology.described import published
from posology.types.literature import (
    Excerpt,
    Passage,
    Phrases,
    Query,
    Sentence,
    SentenceRole,
    TokenCodes,
    TokenVectors,
)

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray


# A field with several values matches any of them. Names are compared without regard to case. A passage whose field is unknown
# does not match.
@published("FiltersOutput")
@dataclass(frozen=True, kw_only=True, slots=True)
class Filters:
    """Filters of the passages; a passage must pass all of them."""

    since: int | None = None
    """First year of publication; null: any."""
    until: int | None = None
    """Last year of publication, inclusive; null: any."""
    publication_types: tuple[str, ...] = ()
    """Publication types, one of which must match; empty: all."""
    journals: tuple[str, ...] = ()
    """Journals, one of which must match; empty: all."""
    mesh: tuple[str, ...] = ()
    """MeSH headings, one of which must match; empty: all."""
    languages: tuple[str, ...] = ()
    """Language codes, one of which must match; empty: all."""

    def __bool__(self) -> bool:
        """Whether any field is set."""
        return self != Filters()


#: methods of retrieval; `a>b` takes candidates from `a` and ranks them by `b`
Mode: TypeAlias = Literal["dense", "bm25", "fused", "dense>bm25", "bm25>dense"]
MODES: tuple[Mode, ...] = get_args(Mode)


@dataclass(frozen=True, kw_only=True, slots=True)
class Hit:
    """One place in a ranking."""

    passage_id: str
    #: comparable within one ranking only
    score: float


@dataclass(frozen=True, kw_only=True, slots=True)
class Ranking:
    """Passages in the order that one method gives them, best first."""

    #: ``dense``, ``bm25``, ``bm25_rerank``, ``fused`` or ``reranked``
    method: str
    hits: tuple[Hit, ...]

    @property
    def ids(self) -> tuple[str, ...]:
        """Passage ids, best first."""
        return tuple(hit.passage_id for hit in self.hits)

    def top(self, n: int) -> Ranking:
        """Return the ranking cut after its ``n`` best."""
        return Ranking(method=self.method, hits=self.hits[:n])


@dataclass(frozen=True, kw_only=True, slots=True, eq=False)
class Retrieved:
    """A retrieved passage with the data computed at ingest."""

    passage: Passage
    sentences: tuple[Sentence, ...]
    #: the passage's vector, shape ``(dim,)``, float32; see :class:`Encoded` for its length
    vector: NDArray[np.float32]
    #: one vector for each sentence, shape ``(len(sentences), dim)``, int8: cosine times 127
    sentence_vectors: NDArray[np.int8]
    #: ``None``: the index was built without an annotator
    phrases: Phrases | None = None
    #: ``None``: the index was built without a codec
    tokens: TokenCodes | None = None
    #: one for each sentence; ``None``: an index of an earlier version, or of an embedder without a head for roles
    roles: tuple[SentenceRole, ...] | None = None

    def excerpt(
        self, sentences: Sequence[Sentence] | None = None, *, summary: str | None = None
    ) -> Excerpt:
        """Return an excerpt with the roles of its sentences.

        Args:
            sentences: the passage's, or parts of them, in order, none across two; ``None``: all.
            summary: see :attr:`Excerpt.summary`.
        """
        shown = self.sentences if sentences is None else tuple(sentences)
        roles = self.roles
        if roles is not None and shown is not self.sentences:
            starts = [sentence.start for sentence in self.sentences]
            roles = tuple(roles[bisect_right(starts, span.start) - 1] for span in shown)
        return Excerpt(passage=self.passage, sentences=shown, summary=summary, roles=roles)


class SameAs(StrEnum):
    """The reason why two passages count as one, strongest first."""

    #: their texts agree in every letter and digit
    COPY = "copy"
    #: one names the other as a record of the same work, e.g. a preprint and its article
    VERSION = "version"
    #: they report one registered trial
    TRIAL = "trial"


@dataclass(frozen=True, kw_only=True, slots=True)
class Folded:
    """A passage that was found and omitted, because another passage is of the same work."""

    id: str
    #: id of the passage that represents it
    into: str
    why: SameAs


@dataclass(frozen=True, kw_only=True, slots=True)
class Growth:
    """How far the first ingest of an index is."""

    #: records that are indexed
    done: int
    #: records of the ingest's files; ``None``: unknown
    total: int | None = None

    def __str__(self) -> str:
        if self.total is None:
            return "The index is empty: no record is indexed yet."
        return f"The index is not complete: {self.done:,} of {self.total:,} records are indexed so far."


@dataclass(frozen=True, kw_only=True, slots=True, eq=False)
class Retrieval:
    """The result of one search: k passages, and all rankings behind them."""

    query: Query
    #: in the order of the requested ranking, or of ``reranked``
    passages: tuple[Retrieved, ...]
    #: the query's vector, shape ``(dim,)``, float32; of unit length if passages' vectors are
    query_vector: NDArray[np.float32]
    #: top k by inner product with the query's vector
    dense: Ranking
    #: the same passages as ``dense``, ordered by BM25 among themselves
    bm25_rerank: Ranking
    #: top k of BM25 over the whole corpus
    bm25: Ranking
    #: reciprocal rank fusion of dense and corpus-wide BM25
    fused: Ranking
    #: name and version of the index, e.g. ``index@17``
    index_version: str
    #: token vectors of the query; ``None``: the embedder has none
    query_tokens: TokenVectors | None = None
    #: name of the codec of the passages' token codes; ``None``: the index has none
    codec: str | None = None
    #: top k after re-ranking; ``None``: no re-ranker
    reranked: Ranking | None = None
    #: name of the order of the passages: a mode, or ``RERANKER of MODE``; ``None``: unknown
    order: str | None = None
    #: restrictions of the search
    filters: Filters = Filters()
    #: passages omitted as duplicates of a returned one
    folded: tuple[Folded, ...] = ()
    #: search terms added to the question's own words
    added: tuple[str, ...] = ()
    #: how far the first ingest of the index is; ``None``: it is complete
    growth: Growth | None = None
