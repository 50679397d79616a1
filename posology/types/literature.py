"""What is asked, and the literature that is found for it."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray


class Form(StrEnum):
    """What kind of answer a question wants."""

    FREE = "free"
    CHOICE = "choice"
    YES_NO = "yes_no"
    YES_NO_MAYBE = "yes_no_maybe"


@dataclass(frozen=True, kw_only=True, slots=True)
class Option:
    """One answer option of a multiple-choice question."""

    #: a capital letter, A to E
    label: str
    #: the option's wording
    text: str


@dataclass(frozen=True, kw_only=True, slots=True)
class Query:
    """A question as it was asked. Build it with :func:`posology.query.make_query`."""

    #: the question, stripped, never empty
    text: str
    #: the form of the answer that is wanted
    form: Form = Form.FREE
    #: the options of a ``CHOICE`` question, in order; else empty
    options: tuple[Option, ...] = ()

    @property
    def choices(self) -> tuple[str, ...]:
        """The verdicts that an answer may carry; empty for a free question."""
        match self.form:
            case Form.FREE:
                return ()
            case Form.CHOICE:
                return tuple(option.label for option in self.options)
            case Form.YES_NO:
                return ("yes", "no")
            case Form.YES_NO_MAYBE:
                return ("yes", "no", "maybe")


@dataclass(frozen=True, kw_only=True, slots=True)
class Passage:
    """One retrievable piece of literature, usually an abstract."""

    #: unique in an index, e.g. ``pmid:10051933``
    id: str
    #: the citable text; every offset in the system points into it
    text: str
    #: empty where the source has none
    title: str = ""
    #: PubMed identifier, digits only
    pmid: str | None = None
    journal: str | None = None
    #: year of publication
    year: int | None = None
    #: MEDLINE publication types, e.g. ``Randomized Controlled Trial``
    publication_types: tuple[str, ...] = ()
    #: MeSH headings
    mesh: tuple[str, ...] = ()
    #: a retracted passage is never evidence unless it was asked for
    retracted: bool = False
    #: the collection that it came from
    source: str | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class Sentence:
    """A sentence as offsets: ``text[start:end]`` is the sentence, without outer whitespace."""

    #: first code point
    start: int
    #: one past the last code point
    end: int

    def of(self, text: str) -> str:
        """The sentence's words in the text that it was split from."""
        return text[self.start : self.end]


@dataclass(frozen=True, kw_only=True, slots=True)
class Excerpt:
    """What a model is shown of a passage: the passage and those of its sentences that are shown.

    Offsets stay those of the passage, so that a quote from an excerpt verifies against the source.
    """

    passage: Passage
    #: the shown sentences, in order; all of them in direct RAG
    sentences: tuple[Sentence, ...]


@dataclass(frozen=True, kw_only=True, slots=True)
class Hit:
    """One place in a ranking."""

    passage_id: str
    #: comparable within one ranking only
    score: float


@dataclass(frozen=True, kw_only=True, slots=True)
class Ranking:
    """Passages in the order that one method gives them, best first."""

    #: ``dense``, ``bm25``, ``bm25_rerank`` or ``fused``
    method: str
    hits: tuple[Hit, ...]

    @property
    def ids(self) -> tuple[str, ...]:
        """Passage ids, best first."""
        return tuple(hit.passage_id for hit in self.hits)

    def top(self, n: int) -> Ranking:
        """The same ranking cut after its ``n`` best."""
        return Ranking(method=self.method, hits=self.hits[:n])


@dataclass(frozen=True, kw_only=True, slots=True, eq=False)
class Encoded:
    """The vectors of one passage."""

    #: of title and text, shape ``(dim,)``, float32, unit length
    vector: NDArray[np.float32]
    #: one a sentence, shape ``(len(sentences), dim)``, float32, unit length
    sentence_vectors: NDArray[np.float32]


@dataclass(frozen=True, kw_only=True, slots=True, eq=False)
class TokenVectors:
    """The contextual vectors of a text's n tokens, special tokens left out."""

    #: shape ``(n, dim)``, float32, rows of unit length
    vectors: NDArray[np.float32]
    #: vocabulary ids, shape ``(n,)``
    ids: NDArray[np.int64]
    #: code-point offsets into the text, shape ``(n,)`` each
    starts: NDArray[np.int64]
    ends: NDArray[np.int64]


@dataclass(frozen=True, kw_only=True, slots=True, eq=False)
class Retrieved:
    """A retrieved passage with what was computed of it at ingest."""

    passage: Passage
    sentences: tuple[Sentence, ...]
    #: the passage's vector, shape ``(dim,)``, float32, unit length
    vector: NDArray[np.float32]
    #: one vector a sentence, shape ``(len(sentences), dim)``, int8: cosine times 127
    sentence_vectors: NDArray[np.int8]


@dataclass(frozen=True, kw_only=True, slots=True, eq=False)
class Retrieval:
    """What the index gave for one query: k passages, and every ranking that led to them."""

    query: Query
    #: in the order of the ranking that was asked for
    passages: tuple[Retrieved, ...]
    #: the query's vector, shape ``(dim,)``, float32, unit length
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
