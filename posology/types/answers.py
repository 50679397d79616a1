"""Answers, refusals, and their evidence."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from posology.described import published
from posology.types.calls import PartitionMode, QuoteForm, Tier, Usage
from posology.types.compression import Compression
from posology.types.literature import Query
from posology.types.retrieval import Retrieval


@dataclass(frozen=True, kw_only=True, slots=True)
class Citation:
    """A verified quote: ``passage.text[start:end] == quote``, always."""

    passage_id: str
    start: int
    end: int
    quote: str


class QuoteFault(StrEnum):
    """A fault of a quote that a model copied."""

    #: it stands in other passages than the one that the model named
    MISATTRIBUTED = "misattributed"
    #: it stands in none of the passages
    INVENTED = "invented"


@published("FaultyQuoteOutput")
@dataclass(frozen=True, kw_only=True, slots=True)
class FaultyQuote:
    """A quote of the model that is not in the passage that it named."""

    fault: QuoteFault
    """`misattributed`: in other passages; `invented`: in none of those shown."""
    quote: str
    """The quote as the model wrote it."""
    named: str | None
    """Id of the passage that the model named; null: none of those shown."""
    passages: tuple[str, ...]
    """Ids of the passages that contain it; if it is one alone, the quote is cited from there."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Statement:
    """A sentence of an answer, and the quotes that the model put behind it."""

    #: first code point in the answer's text
    start: int
    #: one past the last code point
    end: int
    #: places of its quotes among the answer's citations, from 0
    citations: tuple[int, ...]
    #: sentences that it names and that failed a rule, so that they are no citations
    refused: tuple[Citation, ...] = ()


class Backing(StrEnum):
    """Verdict of the quotes behind a sentence on it."""

    SUPPORTED = "supported"
    #: the packaged judge does not support it and no rule objects, or a rule objects to what the judge supports
    UNCLEAR = "unclear"
    #: a rule objects, no quote stands behind it, or a language model that was asked to judge finds it in none
    UNSUPPORTED = "unsupported"
    #: the judge says that its quotes contradict it, and a rule objects or the judge is a language model that was asked
    CONTRADICTED = "contradicted"


class Rule(StrEnum):
    """A rule that a sentence can fail beside its quotes, or beside all passages."""

    #: shares neither content words nor a number with them
    SUBJECT = "subject"
    #: a number with comparison and unit that they lack
    NUMBER = "number"
    #: a number that a row of a table has under another heading, or that another row has
    COLUMN = "column"
    DRUG = "drug"
    #: a name with digits, such as IL-6
    NAME = "name"
    #: negates what they state, or the reverse
    NEGATION = "negation"
    #: an increase where they have a decrease of the same thing, and the like
    DIRECTION = "direction"
    #: other people or animals than theirs
    POPULATION = "population"
    #: an author, a journal, a trial or a drug that no passage names
    INVENTED = "invented"
    #: they say the opposite, to a judge whose word counts
    OPPOSITE = "opposite"
    #: they do not say it, to a language model that was asked to judge
    UNSAID = "unsaid"

    @property
    def objects(self) -> bool:
        """Whether readers see a failure. Sound sentences often have other words and names than their quotes."""
        return self not in (Rule.SUBJECT, Rule.NAME)


@dataclass(frozen=True, kw_only=True, slots=True)
class Difference:
    """A difference between a sentence and its sources, found by a rule: both sides, in their own words."""

    rule: Rule
    #: words of the sentence; empty: it lacks what its quotes say
    said: str = ""
    #: words of the quotes in their place; empty: they have none
    quoted: str = ""

    def __str__(self) -> str:
        """Return it in words, e.g. ``the quote says 12 %, the sentence 21 %``."""
        match self.rule:
            case Rule.SUBJECT:
                return "the quote shares no words with the sentence"
            case Rule.INVENTED:
                return f"no shown passage names {self.said}"
            case Rule.OPPOSITE:
                return "the quote seems to say the opposite"
            case Rule.UNSAID:
                return "the quote does not seem to say this"
            case Rule.NEGATION if self.said and self.quoted:
                return "the sentence and the quote negate something else"
            case Rule.NEGATION if self.said:
                return f"the sentence says “{self.said}”, the quote does not"
            case Rule.NEGATION:
                return f"the quote says “{self.quoted}”, the sentence does not"
        verb = {Rule.DRUG: "names", Rule.NAME: "names", Rule.POPULATION: "is on"}.get(
            self.rule, "says"
        )
        if not self.quoted:
            return f"no quote {verb} {self.said}"
        said = f"on {self.said}" if self.rule is Rule.POPULATION else self.said
        return f"the quote {verb} {self.quoted}, the sentence {said}"


@dataclass(frozen=True, kw_only=True, slots=True)
class SentenceSupport:
    """The support of one sentence of an answer."""

    #: first code point of the sentence in the answer's text
    start: int
    #: one past its last code point
    end: int
    backing: Backing
    #: probability that its quotes support it, 0 to 1; ``None``: not judged, or it repeats a quote word for word
    probability: float | None
    #: places of its quotes among the answer's citations, from 0
    citations: tuple[int, ...] = ()
    #: sentences that it names and that are no citations, since they do not bear it out
    refused: tuple[Citation, ...] = ()
    #: what rules found
    differences: tuple[Difference, ...] = ()
    #: whether a rule fails what the judge supports, or the judge contradicts what passes every rule
    disagrees: bool = False

    @property
    def failed(self) -> tuple[Rule, ...]:
        """Rules that it fails."""
        return tuple(dict.fromkeys(one.rule for one in self.differences))

    @property
    def stands(self) -> bool:
        """Whether no rule objects, or the judge supports it all the same; and a quote stands behind it."""
        return self.backing in (Backing.SUPPORTED, Backing.UNCLEAR)


class Repair(StrEnum):
    """The outcome of asking a model once more for sentences that their quotes do not support."""

    #: the second answer has fewer of them, and is the one that is returned
    BETTER = "better"
    #: the second answer has as many or more
    NO_BETTER = "no better"
    #: the second reply is no answer
    REFUSED = "refused"
    #: the budget has no room for the call
    UNAFFORDABLE = "unaffordable"
    #: the call failed, or the deadline passed
    FAILED = "failed"


@dataclass(frozen=True, kw_only=True, slots=True)
class Support:
    """The support of every sentence of an answer."""

    #: identity of the judge; ``None``: none was asked, so that rules alone decided
    judge: str | None
    #: in the order of the text
    sentences: tuple[SentenceSupport, ...]
    #: number of sentences that were removed because their quotes do not support them
    removed: int = 0
    #: ``None``: the model was not to be asked once more
    repair: Repair | None = None

    @property
    def unsupported(self) -> int:
        """Return the number of shown sentences that a rule objects to, or that no quote stands behind."""
        return sum(not one.stands for one in self.sentences)


class Level(StrEnum):
    """Evidence level of a kind of publication, strongest first."""

    SYSTEMATIC_REVIEW = "systematic review"
    TRIAL = "trial"
    COHORT = "cohort"
    CASE_REPORT = "case report"
    #: narrative reviews, editorials, animal studies, or an unknown kind
    OTHER = "other"

    @property
    def rank(self) -> int:
        """0 for the strongest."""
        return list(Level).index(self)


class Resolution(StrEnum):
    """The outcome of a conflict between sources."""

    SUPPORTING = "supporting"
    OPPOSING = "opposing"
    UNRESOLVED = "unresolved"


@dataclass(frozen=True, kw_only=True, slots=True)
class Side:
    """One source on one side of a conflict."""

    passage_id: str
    level: Level
    #: year of publication
    year: int | None
    retracted: bool
    #: verified quotes of its findings
    citations: tuple[Citation, ...]
    #: whether an expression of concern was published about it
    concern: bool = False


@dataclass(frozen=True, kw_only=True, slots=True)
class Conflict:
    """Sources that contradict each other on one claim, and the outcome."""

    claim: str
    supporting: tuple[Side, ...]
    opposing: tuple[Side, ...]
    resolution: Resolution
    #: one sentence: how it was resolved, or why it was not
    how: str


@published("CoverageOutput")
@dataclass(frozen=True, kw_only=True, slots=True)
class Coverage:
    """Partitions that BriefContext read."""

    partitions: int
    """Number of partitions."""
    found: int
    """Partitions with findings."""
    empty: int
    """Partitions that were read and hold nothing relevant."""
    failed: int
    """Partitions that could not be read."""
    calls: int
    """Model calls without repetitions: one for each partition, and the reduce."""

    @property
    def partial(self) -> bool:
        """Whether the answer rests on only some of the retrieved passages."""
        return self.failed > 0


@published("StepOutput")
@dataclass(frozen=True, kw_only=True, slots=True)
class Rung:
    """One call of a ladder; it shows more passages than the call before."""

    passages: int
    """Number of passages shown."""
    first: int
    """Place of the first of them among the retrieved passages, from 0."""
    usage: Usage | None
    """Tokens of the call; null: the provider did not report them."""
    refused: bool
    """Whether the reply was that the passages do not answer the question."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Answer:
    """An answer whose quotes were verified in the sources."""

    text: str
    #: one of :attr:`Query.choices`; ``None``: a free question, or the model gave none
    choice: str | None
    citations: tuple[Citation, ...]
    #: number of quotes that could not be verified
    dropped_quotes: int
    #: the strategy that answered
    strategy: str
    #: remarks that a reader must see, e.g. that the text is truncated
    notes: tuple[str, ...] = ()
    #: contradictions among the sources, resolved or not
    conflicts: tuple[Conflict, ...] = ()
    #: ``None`` for strategies that read all passages in one call
    coverage: Coverage | None = None
    #: steps of the ladder that led here; empty: no ladder
    rungs: tuple[Rung, ...] = ()
    #: share of the retrieved words that the calls showed; more than 1 if steps of a ladder repeat passages;
    #: ``None``: not counted
    shown: float | None = None
    #: compression in all steps of a ladder together; ``None``: nothing was compressed
    compression: Compression | None = None
    #: its statements in order; empty: the reply does not say which quote stands behind which sentence
    statements: tuple[Statement, ...] = ()
    #: quotes that are not in the passage that the model named
    faulty_quotes: tuple[FaultyQuote, ...] = ()
    #: support of each sentence; ``None``: not checked
    support: Support | None = None
    #: verdict that its first words give, where that is another than :attr:`choice`; ``None``: the same, or none
    worded: str | None = None

    @property
    def supported(self) -> bool:
        """Whether at least one quote is verified."""
        return bool(self.citations)


@dataclass(frozen=True, kw_only=True, slots=True)
class Refusal:
    """The result that the passages do not answer the question."""

    #: in the model's words or ours
    reason: str
    strategy: str
    #: whether the provider's safety system declined, which says nothing about the passages
    filtered: bool = False
    notes: tuple[str, ...] = ()
    #: ``None`` for strategies that read all passages in one call
    coverage: Coverage | None = None
    #: steps of the ladder that led here; empty: no ladder
    rungs: tuple[Rung, ...] = ()
    #: share of the retrieved words that the calls showed; more than 1 if steps of a ladder repeat passages;
    #: ``None``: not counted
    shown: float | None = None
    #: compression in all steps of a ladder together; ``None``: nothing was compressed
    compression: Compression | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class Step:
    """The place of a task in a ladder whose every prompt begins as the one before it."""

    #: passages that each of the steps before showed
    before: tuple[int, ...]
    #: passages that the last step shows: the form of a reply is that of all, since caches hold it with the prompt
    last: int
    #: passages of the steps whose prompts a provider is to cache: of ``before``, and of this step
    cached: frozenset[int] = frozenset()


@dataclass(frozen=True, kw_only=True, slots=True, eq=False)
class Task:
    """The task of a strategy."""

    query: Query
    retrieval: Retrieval
    #: ``provider:name``
    model: str
    #: maximum output tokens of one call; ``None``: the stage's default
    max_tokens: int | None
    #: effort that the question asks for, as :func:`~posology.llm.models.effort.parse_effort` takes it; ``None``: defaults
    effort: str | None = None
    #: service tier that its calls are sent in first, for estimates
    tier: Tier = "standard"
    #: how replies name their evidence
    quotes: QuoteForm = "sentences"
    #: what BriefContext asks of each partition
    partitions: PartitionMode = "extract"
    #: digest of the user's own templates that replace packaged ones; ``None``: none
    prompts: str | None = None
    #: place in a ladder; ``None``: no call comes before or after this one
    step: Step | None = None
