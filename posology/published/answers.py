"""Answers and their evidence as JSON."""

from __future__ import annotations

from collections.abc import Iterable
from enum import StrEnum
from typing import Self

from posology.published.base import Dollars, Published
from posology.published.calls import Spending
from posology.published.decisions import DecisionOutput
from posology.published.ingests import FetchOutput
from posology.types import (
    Backing,
    Coverage,
    FaultyQuote,
    Filters,
    Flag,
    FlagKind,
    Form,
    Level,
    Repair,
    Resolution,
    Rule,
    Rung,
    SameAs,
    SentenceRole,
    Usage,
)
from posology.types.flags import WORDS


class Status(StrEnum):
    """Outcome of a question."""

    ANSWERED = "answered"
    #: answered, but no quote could be verified
    UNSUPPORTED = "unsupported"
    REFUSED = "refused"


def judged(model: str) -> bool:
    """Return whether a model is a language model; the offline reader is none."""
    return not model.startswith("offline:")


def standing(flags: Iterable[Flag]) -> str:
    """Return flags in words, by kind, with their sources: ``RETRACTED (own record; retraction-watch 2020-05-01)``."""
    said: dict[FlagKind, list[str]] = {}
    for flag in sorted(flags, key=lambda flag: list(FlagKind).index(flag.kind)):
        said.setdefault(flag.kind, []).append(flag.origin)
    return ", ".join(f"{WORDS[kind]} ({'; '.join(some)})" for kind, some in said.items())


class Source(Published):
    """A passage, without its text."""

    id: str
    """Id of the passage."""
    pmid: str | None
    """PubMed id; null: unknown."""
    title: str
    """Title of the article."""
    journal: str | None
    """Journal; null: unknown."""
    year: int | None
    """Year of publication; null: unknown."""
    publication_types: tuple[str, ...]
    """MEDLINE publication types."""
    retracted: bool
    """Whether the article was retracted."""
    source: str | None
    """Collection that the passage comes from; null: unknown."""
    concern: bool = False
    """Whether an expression of concern was published about it."""
    doi: str | None = None
    """DOI; null: unknown."""
    pmcid: str | None = None
    """PubMed Central id; null: unknown."""
    published: str | None = None
    """Date of publication as far as it is known, ISO 8601."""
    trials: tuple[str, ...] = ()
    """Registration numbers of the trials that it reports."""
    parent: str | None = None
    """Id of the article that it is a part of; null: it is whole."""
    section: str | None = None
    """Heading of that part; null: none."""
    authors: tuple[str, ...] = ()
    """Authors, as `Family, Given` or the name of a group; at most 100, then `et al.`. Empty: unknown."""
    page: int | None = None
    """First page of the passage in its file, counted from 1 as viewers do; null: unknown, as of all formats but PDF."""
    last_page: int | None = None
    """Its last page; null: unknown."""
    ocr: bool = False
    """Whether OCR read any of it from a scanned page: letters and numbers may differ from what the page shows."""
    unread_pages: int | None = None
    """Pages of its file of which nothing was read, e.g. scans without OCR; null: unknown, as of all formats but PDF."""
    flags: tuple[Flag, ...] = ()
    """Statements about the article's standing, of every source. Empty: none is known, or the index is of an earlier
    version and `retracted` and `concern` say all."""


class SentenceOutput(Published):
    """A sentence of a passage."""

    start: int
    """First code point in the passage's text."""
    end: int
    """Code point after the last one."""
    role: SentenceRole | None
    """Its role: background, aim, methods, results or conclusion; null: unknown to the index."""


class PassageOutput(Published):
    """A passage in full: the output of `posology show --json`."""

    passage: Source
    """Its article."""
    text: str
    """Its text; offsets of quotes count its code points."""
    mesh: tuple[str, ...] = ()
    """MeSH headings."""
    languages: tuple[str, ...] = ()
    """Language codes of MEDLINE."""
    same_work: tuple[str, ...] = ()
    """Ids of other records of the same work, e.g. of the article of a preprint."""
    index: str
    """Name and version of the index."""
    sentences: tuple[SentenceOutput, ...] = ()
    """Its sentences, in order."""


class Evidence(Published):
    """A verified quote."""

    passage: Source
    """Passage that contains the quote."""
    start: int
    """First code point of the quote in the passage's text."""
    end: int
    """Code point after the last one of the quote."""
    quote: str
    """The quote, word for word."""
    context_start: int
    """First code point of the sentences around the quote."""
    context: str
    """Whole sentences around the quote, so that nothing near it is hidden."""
    page: int | None = None
    """Page of the file on which the quote begins, counted from 1 as viewers do; null: unknown, as of all formats but
    PDF."""
    last_page: int | None = None
    """Page on which the quote ends; null: unknown."""
    ocr: bool = False
    """Whether OCR read any of the quote from a scanned page: letters and numbers may differ from what the page shows."""
    role: SentenceRole | None = None
    """Role of the sentence in which the quote begins: background, aim, methods, results or conclusion; null: unknown to
    the index."""


class DifferenceOutput(Published):
    """A difference between a sentence of an answer and its sources, found by a rule."""

    rule: Rule
    """The rule."""
    said: str
    """Words of the sentence; empty: it lacks what its quotes say."""
    quoted: str
    """Words of its quotes in their place; empty: they have none."""
    words: str
    """Both sides in plain words, e.g. `the quote says 12 %, the sentence 21 %`."""


class RefusedQuote(Published):
    """A sentence that the model named for a sentence of the answer, and that does not bear it out."""

    passage: str
    """Id of the passage."""
    start: int
    """First code point in the passage's text."""
    end: int
    """Code point after the last one."""
    quote: str
    """The sentence, word for word."""


class SentenceSupportOutput(Published):
    """Support of one sentence of an answer by the quotes behind it."""

    start: int
    """First code point of the sentence in `answer`."""
    end: int
    """Code point after its last one."""
    backing: Backing
    """`supported`: its quotes say so. `unclear`: the judge does not support it and no rule objects, or a rule objects to what
    the judge supports. `unsupported`: a rule objects, or no quote stands behind it. `contradicted`: a rule objects, and the judge
    says that its quotes contradict it. A judge alone never says `unsupported` or `contradicted`."""
    probability: float | None
    """Probability that its quotes support it, 0 to 1; null: not judged, or it repeats a quote word for word."""
    evidence: tuple[int, ...]
    """Places of its quotes in `evidence`, from 0."""
    failed: tuple[Rule, ...]
    """Rules that it fails beside its quotes, e.g. `number`: a number that they lack."""
    differences: tuple[DifferenceOutput, ...] = ()
    """What these rules found. A reader is shown all but those of `subject` and `name`, which sound sentences often fail."""
    refused: tuple[RefusedQuote, ...] = ()
    """Sentences that the model named for it and that are no evidence: they are beside the point, or say something else."""
    disagrees: bool
    """Whether rules and judge disagree: the judge supports what fails a rule, or contradicts what passes all."""


class SupportOutput(Published):
    """Support of every sentence of an answer."""

    judge: str | None
    """Model that judged; null: none was asked, so that rules alone decided. They find changed numbers, units, drugs, names,
    negations, directions and populations, but not every quote that says something else."""
    sentences: tuple[SentenceSupportOutput, ...]
    """Sentences in the order of the answer."""
    unsupported: int
    """Number of shown sentences that a rule objects to, or that no quote stands behind (unsupported and contradicted)."""
    removed: int
    """Number of such sentences that were left out of the answer."""
    repair: Repair | None = None
    """Outcome of asking the model once more: `better` (this is its second answer), `no better`, `refused` (the second
    reply is no answer), `unaffordable` or `failed`; null: it was not asked."""


class Position(Published):
    """One source on one side of a contradiction."""

    passage: Source
    """The source."""
    level: Level
    """Evidence level of its publication type."""
    quotes: tuple[str, ...]
    """Verified quotes that put it on this side."""


class Disagreement(Published):
    """Sources that contradict each other on one claim, and how that was resolved."""

    claim: str
    """The claim."""
    supporting: tuple[Position, ...]
    """Sources that support the claim."""
    opposing: tuple[Position, ...]
    """Sources that oppose the claim."""
    resolution: Resolution
    """Side that prevailed, or unresolved."""
    how: str
    """How it was resolved, or why it could not be."""


class Also(Published):
    """A retrieved record that was left out, because a shown one is of the same work."""

    id: str
    """Id of the record."""
    why: SameAs
    """Relation: `copy` (the same text), `version` (a preprint and its article) or `trial` (the same registered
    trial)."""


class Ranked(Published):
    """A retrieved passage and its places in the rankings, from 1; null: not in that ranking."""

    passage: Source
    """The passage."""
    dense: int | None
    """Place in the dense ranking."""
    bm25: int | None
    """Place in the BM25 ranking."""
    fused: int | None
    """Place in the fused ranking."""
    dense_score: float | None
    """Score in the dense ranking."""
    bm25_score: float | None
    """Score in the BM25 ranking."""
    fused_score: float | None
    """Score in the fused ranking."""
    also: tuple[Also, ...] = ()
    """Other records of the same work, which this one stands for."""


class CompressionOutput(Published):
    """Result and savings of compression, for all calls of a ladder together."""

    compressor: str
    """Name of the compressor."""
    extractive: bool
    """Whether only the sources' own words were shown. Otherwise a model wrote summaries, which cannot be quoted."""
    kept: int
    """Sentences that were shown whole."""
    sentences: int
    """All sentences."""
    seconds: float
    """Duration of compression in seconds, its own calls included."""
    usage: Usage | None
    """Tokens of the compressor's own calls; null: a provider did not report them."""
    tokens: int | None
    """Approximate tokens of the passages' texts, as the model counts them; null: not counted."""
    shown_tokens: int | None
    """Approximate tokens of the text that was shown; null: not counted."""
    saved_usd: Dollars | None
    """Dollars of input that was not sent, without the cost of compression; null: not counted."""
    calls_usd: Dollars | None
    """Dollars of the compressor's own calls, which are among the question's attempts; null: unknown."""
    machine_usd: Dollars | None
    """Dollars of the machine while it compressed, at the configured price; null: not counted."""
    cost_usd: Dollars | None
    """Dollars of calls and machine, as far as they are counted; null: the cost of the calls is unknown."""


class AskOutput(Published):
    """An answer or a refusal, with its evidence: the output of `posology ask --json`."""

    status: Status
    """Answered, unsupported (no quote passed the check) or refused. See `model`: `answered` by `offline:extractive`
    means that passages were found, and no language model read them."""
    question: str
    """The question."""
    form: Form
    """Form of the answer that was asked for."""
    model: str
    """Model that answered, as `provider:name`. `offline:extractive` is no language model: it quotes sentences."""
    answer: str | None
    """Text of the answer; null: refused."""
    choice: str | None
    """Verdict, if the question asked for one and the model gave one."""
    worded: str | None = None
    """Verdict that the first words of the answer give, where it is another than `choice`, e.g. `yes` in "Yes, …" beside the verdict
    no: trust neither. Null: the words give the same, or none."""
    refusal: str | None
    """Reason of the refusal; null: answered."""
    evidence: tuple[Evidence, ...]
    """Verified quotes."""
    dropped_quotes: int
    """Number of the model's quotes that failed the check."""
    faulty_quotes: tuple[FaultyQuote, ...] = ()
    """Quotes that are not in the passage that the model named, with where they are."""
    support: SupportOutput | None = None
    """Support of every sentence by its quotes; null: refused, or not checked."""
    notes: tuple[str, ...]
    """Remarks for the reader, e.g. that the text is truncated."""
    conflicts: tuple[Disagreement, ...]
    """Contradictions among the sources, resolved or not."""
    coverage: Coverage | None
    """Partitions that were read; null: the strategy reads all passages in one call."""
    shown: float | None = None
    """Share of the words of all retrieved text that the calls showed, repetitions included; null: not counted."""
    compression: CompressionOutput | None = None
    """Result of compression; null: nothing was compressed."""
    strategy: str
    """Strategy that answered."""
    rungs: tuple[Rung, ...] = ()
    """Steps of the ladder, also if it ended in a refusal and the policy decided again."""
    decision: DecisionOutput
    """The chosen dose, and why."""
    spending: Spending
    """Tokens and dollars of the model calls."""
    retrieved: tuple[Ranked, ...]
    """Retrieved passages, best first."""
    index: str
    """Name and version of the index."""
    filters: Filters | None = None
    """Filters of the passages; null: none."""
    retrieval_seconds: float
    """Duration of retrieval in seconds."""
    seconds: float
    """Duration of the whole in seconds."""
    fetch: FetchOutput | None = None
    """Fetch from a literature service that was made for the question; null: none."""

    def from_fetch(self, fetch: FetchOutput) -> Self:
        """Return the answer with the fetch that it was made from."""
        return self.model_copy(update={"fetch": fetch, "notes": (fetch.sentence, *self.notes)})

    @property
    def judged(self) -> bool:
        """Whether a language model read the passages."""
        return judged(self.model)

    @property
    def read(self) -> int:
        """Number of retrieved passages that calls showed."""
        most = len(self.retrieved)
        then = self.decision.then
        if self.coverage is not None or (then is not None and then.dose.skip):
            return most
        if self.rungs:
            return min(most, max(step.first + step.passages for step in self.rungs))
        dose = self.decision.dose.passages
        return most if dose is None else min(most, dose)
