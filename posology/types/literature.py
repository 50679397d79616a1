"""Questions, passages and their vectors."""

from __future__ import annotations

from dataclasses import dataclass, replace
from enum import StrEnum
from itertools import compress
from typing import TYPE_CHECKING

from posology.types.flags import Flag
from posology.types.pages import Pages

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray


#: What a reader puts into a text where something stands that it could not read. A sentence with it may say something else
#: than its source (5 g for 5 µg), so it is never quoted.
UNREADABLE = "\ufffd"

#: Maximum characters of a passage that a model is shown, its heading included: about 5,000 tokens, so that ten passages fit
#: into every model's window, and no record makes questions of others dear. An abstract of 1,000 words, the longest that a
#: Cochrane review may have, has about 7,000; readers of long texts cut them into passages of 150 words.
MAX_PASSAGE = 20_000


class Form(StrEnum):
    """The kind of answer that a question asks for."""

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
    #: form of the answer
    form: Form = Form.FREE
    #: the options of a ``CHOICE`` question, in order; else empty
    options: tuple[Option, ...] = ()

    @property
    def choices(self) -> tuple[str, ...]:
        """Allowed verdicts of an answer; empty: a free question."""
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
    #: empty: the source has none
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
    #: whether it is retracted; then it is evidence only on request
    retracted: bool = False
    #: name of its collection
    source: str | None = None
    #: whether an expression of concern was published about it; it may be evidence, with a remark
    concern: bool = False
    #: digital object identifier in lower case, without the resolver: ``10.1056/nejmoa1200303``
    doi: str | None = None
    #: PubMed Central identifier, e.g. ``PMC3395386``
    pmcid: str | None = None
    #: date of publication, as precise as known, ISO 8601: ``2012``, ``2012-07`` or ``2012-07-05``
    published: str | None = None
    #: MEDLINE's codes of three letters, e.g. ``eng``
    languages: tuple[str, ...] = ()
    #: registration numbers of its trials, as the registry writes them: ``NCT00000620``
    trials: tuple[str, ...] = ()
    #: ids of other records of the same work, e.g. of the article of a preprint: ``pmid:31234567``
    same_work: tuple[str, ...] = ()
    #: id of the article that it is a part of; ``None``: it is a whole article
    parent: str | None = None
    #: heading of that part, e.g. ``Methods > Randomisation``
    section: str | None = None
    #: ``Family, Given``, or the name of a group, see :mod:`posology.text.names`; empty: unknown
    authors: tuple[str, ...] = ()
    #: where the pages of its file begin in :attr:`text`; ``None``: unknown, as of all formats but PDF
    pages: Pages | None = None
    #: pages of its file that show something of which nothing was read; ``None``: unknown, as of all formats but PDF
    unread_pages: int | None = None
    #: statements of all sources about the article's standing; set by the index, and no part of the record's content
    flags: tuple[Flag, ...] = ()

    @property
    def length(self) -> int:
        """Return the number of characters that a model is shown of it, if it is shown whole."""
        heading = (self.title, self.section or "", *self.publication_types, *self.trials)
        return len(self.text) + sum(map(len, heading))

    @property
    def page(self) -> int | None:
        """Return the first page of its text; ``None``: unknown."""
        return None if self.pages is None else min(map(abs, self.pages.numbers))

    @property
    def last_page(self) -> int | None:
        """Return the last page of its text; ``None``: unknown."""
        return None if self.pages is None else max(map(abs, self.pages.numbers))

    @property
    def ocr(self) -> bool:
        """Return whether OCR read any of its text."""
        return self.pages is not None and min(self.pages.numbers) < 0


@dataclass(frozen=True, kw_only=True, slots=True)
class Sentence:
    """A sentence as offsets: ``text[start:end]`` is the sentence, without outer whitespace."""

    #: first code point
    start: int
    #: one past the last code point
    end: int

    def of(self, text: str) -> str:
        """Return the sentence's words, from the text that it was split from."""
        return text[self.start : self.end]


class SentenceRole(StrEnum):
    """Role of a sentence in its text; an index stores each as its place in this order."""

    #: known before the study, and why it matters
    BACKGROUND = "background"
    #: the question, objective or hypothesis
    AIM = "aim"
    #: design, participants, interventions, measurements, analysis
    METHODS = "methods"
    #: findings
    RESULTS = "results"
    #: what the findings mean
    CONCLUSION = "conclusion"


@dataclass(frozen=True, kw_only=True, slots=True)
class Excerpt:
    """The part of a passage that a model reads: the passage, and the sentences shown.

    Offsets stay those of the passage, so that a quote from an excerpt verifies against the source.
    """

    passage: Passage
    #: the shown sentences, in order, all of them in direct RAG; or, compressed, parts of sentences
    sentences: tuple[Sentence, ...]
    #: a model's summary of the passage, labelled as such beside its sentences; a quote from it is verified
    #: only if the passage says the same; ``None``: no summary
    summary: str | None = None
    #: one for each of :attr:`sentences`; ``None``: unknown. Make it with :meth:`Retrieved.excerpt`
    roles: tuple[SentenceRole, ...] | None = None

    def readable(self) -> Excerpt:
        """Return the excerpt without the sentences that hold :data:`UNREADABLE`."""
        text = self.passage.text
        if UNREADABLE not in text:
            return self
        kept = [UNREADABLE not in span.of(text) for span in self.sentences]
        return replace(
            self,
            sentences=tuple(compress(self.sentences, kept)),
            roles=None if self.roles is None else tuple(compress(self.roles, kept)),
        )


@dataclass(frozen=True, kw_only=True, slots=True, eq=False)
class Reading:
    """How well an excerpt answers a question, by a :class:`~posology.seams.PassageReader`."""

    #: probability that each shown sentence answers, shape ``(len(excerpt.sentences),)``, float32, 0 to 1
    sentences: NDArray[np.float32]
    #: probability that the excerpt answers at all, 0 to 1
    answers: float
    #: the words that answer, with offsets into the passage's text; ``None``: no span stands out
    span: Sentence | None = None


class Stance(StrEnum):
    """Stance of a text on a claim, in the order of a :class:`~posology.seams.SupportJudge`'s columns."""

    SUPPORTS = "supports"
    CONTRADICTS = "contradicts"
    SILENT = "silent"


@dataclass(frozen=True, kw_only=True, slots=True, eq=False)
class Encoded:
    """The vectors of one passage."""

    #: vector of title and text, shape ``(dim,)``, float32; of unit length, unless the embedder is
    #: :class:`~posology.seams.Unnormalised`
    vector: NDArray[np.float32]
    #: one vector for each sentence, shape ``(len(sentences), dim)``, float32, unit length
    sentence_vectors: NDArray[np.float32]
    #: ``None``: no codec was given, or the embedder has no token vectors
    tokens: TokenCodes | None = None


@dataclass(frozen=True, kw_only=True, slots=True, eq=False)
class TokenVectors:
    """The contextual vectors of a text's n tokens, without special tokens."""

    #: shape ``(n, dim)``, float32, rows of unit length
    vectors: NDArray[np.float32]
    #: vocabulary ids, shape ``(n,)``
    ids: NDArray[np.int64]
    #: code-point offsets into the text, shape ``(n,)`` each
    starts: NDArray[np.int64]
    ends: NDArray[np.int64]
    #: lengths of the vectors before scaling, shape ``(n,)``, float32; ``None``: not needed
    lengths: NDArray[np.float32] | None = None


@dataclass(frozen=True, kw_only=True, slots=True, eq=False)
class TokenCodes:
    """The contextual vectors of a passage's n tokens, as a :class:`~posology.seams.TokenCodec` compressed them."""

    #: one row for each token, without special tokens, shape ``(n, width)``, uint8
    codes: NDArray[np.uint8]
    #: number of tokens of the heading, then of each sentence, in order; shape
    #: ``(1 + len(sentences),)``, int32; their sum is n
    counts: NDArray[np.int32]


@dataclass(frozen=True, kw_only=True, slots=True, eq=False)
class EncodedQuery:
    """The vectors of one question."""

    #: shape ``(dim,)``, float32; of unit length if passages' vectors are
    vector: NDArray[np.float32]
    #: token vectors from the same pass; ``None``: the embedder has none
    tokens: TokenVectors | None = None


@dataclass(frozen=True, kw_only=True, slots=True, eq=False)
class Phrases:
    """The phrases of a passage, in order, with their information; together they cover all of its words."""

    #: code-point offsets into the passage's text, shape ``(n,)`` each, int32; no phrase crosses a sentence
    starts: NDArray[np.int32]
    ends: NDArray[np.int32]
    #: words in each, shape ``(n,)``, int32
    words: NDArray[np.int32]
    #: mean self-information of each phrase's words, bits, shape ``(n,)``, float32
    information: NDArray[np.float32]
    #: number of each phrase's clause, shape ``(n,)``, int32, ascending; no clause crosses a sentence
    clauses: NDArray[np.int32]
    #: whether its clause needs the phrase: a negation, a number, a medical dose, or a neighbour of one;
    #: shape ``(n,)``
    protected: NDArray[np.bool_]
