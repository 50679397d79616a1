"""The one definition of a request: its fields, checked once, before anything is spent.

Command line, HTTP and the rows of a batch take names, types, bounds and descriptions from :class:`JobRequest`.
"""

from __future__ import annotations

from dataclasses import dataclass
from decimal import Decimal
from typing import Annotated, Any, ClassVar, Literal, Self

from pydantic import Field, field_serializer, model_validator

from orchestrator.question.checks import (
    check_awaited,
    check_compressor,
    check_file,
    check_judge,
    check_policy,
    check_strategy,
    own_prompts,
)
from orchestrator.question.sent import (
    MAX_VERSION,
    CollectionName,
    FiltersRequest,
    Model,
    Prose,
    Sent,
    Text,
)
from orchestrator.settings import MAX_TOKENS, MIN_TOKENS, Settings
from posology.budget.ledger.base import MAX_CAP
from posology.errors import InvalidQuery
from posology.index.search.filters import NONE
from posology.llm.models.effort import check_effort
from posology.llm.models.families import check_lane, lane_or_standard, tier_of
from posology.llm.models.names import model_forms, parse
from posology.published.base import dollars_text
from posology.query import make_query
from posology.types import (
    QUOTE_FORMS,
    SUPPORT_MODES,
    Filters,
    Form,
    Lane,
    Mode,
    PartitionMode,
    Query,
    QuoteForm,
    SupportMode,
)

#: seconds
_DAY = 86_400.0
#: maximum time from submission to the end of a job, seconds
MAX_DEADLINE = 14 * _DAY
#: seconds from submission to the end of a job in a batch, and of one in the tier batch, unless the request says:
#: each provider's batch may take a day, and a question needs several, one after the other
DEADLINE, LANE_DEADLINE = _DAY, 7 * _DAY
#: maximum number of retrieved passages; more is a literature search, not a question's context
MAX_K = 200
#: maximum length of a compressor's name, characters
MAX_COMPRESSOR = 100
#: maximum length of a policy's name and settings, characters
MAX_POLICY = 200
#: maximum length of an effort, with a level for each stage, characters
MAX_EFFORT = 100
#: in the place of a digest of templates: the packaged ones, whatever is configured
PACKAGED = "packaged"
#: forms of the field ``prompts``
TEMPLATES = rf"^([0-9a-f]{{16}}|{PACKAGED})$"
#: fields whose values settings of the same names fill in
_BY_SETTINGS = ("max_tokens", "effort", "policy", "quotes", "support", "support_model")
Preset = Literal["briefcontext", "leancontext", "tcra", "provence", "pathway"]


@dataclass(frozen=True, kw_only=True, slots=True)
class Request:
    """One question and how to answer it, with every default filled in."""

    query: Query
    #: ``provider:name``
    model: str
    #: number of passages to retrieve
    k: int = 8
    mode: Mode = "fused"
    #: whether retracted passages may be evidence
    retracted: bool = False
    #: filters that every passage must pass
    filters: Filters = NONE
    #: number of the index version, as in ``index@17``; ``None``: the newest
    index_version: int | None = None
    #: maximum output tokens of one call; ``None``: the bound of each stage
    max_tokens: int | None = None
    #: effort as :func:`~posology.llm.models.effort.parse_effort` takes it; ``None``: the default of each stage
    effort: str | None = None
    #: service tier of the calls
    tier: Lane = "standard"
    #: how a model names its evidence
    quotes: QuoteForm = "sentences"
    #: what follows if quotes do not support a sentence of the answer
    support: SupportMode = "mark"
    #: model that judges in the mode ``model``; ``None``: the one that answers
    support_model: str | None = None
    #: ``None``: the policy decides
    strategy: str | None = None
    #: share of sentences to keep, for the strategy compressed; ``None``: the compressor's own
    keep: float | None = None
    #: name of the compressor; ``None``: the policy's, or the configured one
    compressor: str | None = None
    #: the policy, see :mod:`policies.specs`; ``None``: as configured
    policy: str | None = None
    #: passages in a partition; ``None``: the strategy's own
    partition_size: int | None = None
    #: what BriefContext asks of each partition
    partitions: PartitionMode = "extract"
    #: digest of the user's own templates that replace packaged ones; ``None``: none
    prompts: str | None = None

    @property
    def repairs(self) -> bool:
        """Whether sentences that are not supported are sent back once; the offline reader's are not checked."""
        return self.support == "repair" and parse(self.model).provider != "offline"

    @property
    def judge(self) -> str | None:
        """Model that judges the sentences of the answer; ``None``: none does. The offline reader's are not checked."""
        if self.support != "model" or parse(self.model).provider == "offline":
            return None
        return self.support_model or self.model

    @property
    def models(self) -> tuple[str, ...]:
        """Models whose calls it pays for, the one that answers first; embeddings aside."""
        return (self.model,) if self.judge in (None, self.model) else (self.model, self.judge)

    @property
    def afterwards(self) -> int:
        """Most calls after the one that answers."""
        return int(self.repairs or self.judge is not None)


class AskRequest(Sent):
    """A question and how to answer it."""

    #: whether it goes into a queue, where it may wait for a provider's batch
    queued: ClassVar[bool] = False

    question: Prose
    """Question to answer."""
    preset: Preset | None = None
    """Method of a paper, which fills the fields that are not given: briefcontext, leancontext, tcra, provence or pathway.
    Default: none."""
    form: Form = Form.FREE
    """Form of the answer: free, choice, yes_no or yes_no_maybe. Default: free."""
    options: dict[Text, Text] | None = None
    """Answer options of a choice question: label (A to E) and wording. Default: none."""
    model: Model | None = Field(
        default=None, description=f"Model that answers: {model_forms()}. Default: POSOLOGY_MODEL."
    )
    k: int = Field(default=8, ge=1, le=MAX_K)
    """Number of passages to retrieve, 1 to 200. Default: 8."""
    mode: Mode = "fused"
    """Retrieval method: dense, bm25, fused, dense>bm25 or bm25>dense. Default: fused."""
    retracted: bool = False
    """Whether retracted passages may be evidence. Default: false."""
    filters: FiltersRequest | None = None
    """Filters that every passage must pass. Default: none."""
    index_version: int | None = Field(default=None, ge=1, le=MAX_VERSION)
    """Number of the index version to read, e.g. 17 for index@17. Default: the newest."""
    max_tokens: int | None = Field(default=None, ge=MIN_TOKENS, le=MAX_TOKENS)
    """Maximum output tokens of one call, 64 to 200000. Default: POSOLOGY_MAX_TOKENS, else the bound of each stage."""
    effort: Annotated[Text, Field(max_length=MAX_EFFORT)] | None = None
    """Reasoning effort: none, minimal, low, medium, high, xhigh or max, as far as the model has them; or by stage, e.g.
    answer=medium,extract=none. Default: POSOLOGY_EFFORT, else low to answer and the model's lowest to extract."""
    tier: Lane | None = None
    """Service tier: standard; flex, at about half the price, which may take minutes; flex-then-standard, which takes
    standard if there is no capacity in the first half of the job's time; batch, at half the price, which may take a day for
    each step; batch-then-standard, which sends failed calls and repairs as standard. Default: POSOLOGY_TIER, else standard."""
    quotes: QuoteForm | None = None
    """How a model names its evidence: sentences (by their numbers; the words are shown from the source) or copied (word for
    word, more tokens). Default: POSOLOGY_QUOTES, else sentences."""
    support: SupportMode | None = None
    """Treatment of sentences that their quotes do not support: mark; repair (one more call asks for a better answer); drop
    (left out of the answer); model (one more call judges all sentences, and they are marked); or off (no check).
    Default: POSOLOGY_SUPPORT, else mark."""
    # left out of records where it is not given, so that a request of an older version is the same request
    support_model: Model | None = Field(default=None, exclude_if=lambda name: name is None)
    """Model that judges in the mode model, of the same provider as the one that answers. Default: POSOLOGY_SUPPORT_MODEL,
    else the one that answers."""
    strategy: Text | None = None
    """Strategy: direct, compressed or briefcontext. Default: the policy decides."""
    keep: float | None = Field(default=None, ge=0, le=1)
    """Share of sentences that the strategy compressed keeps whole, 0 to 1. Default: the compressor's own."""
    compressor: Annotated[Text, Field(max_length=MAX_COMPRESSOR)] | None = None
    """Compressor of the strategy compressed or of the policy. Default: the policy's, else POSOLOGY_COMPRESSOR."""
    policy: Annotated[Text, Field(max_length=MAX_POLICY)] | None = None
    """Policy if no strategy is given, e.g. router:preflight=published,qtable=off. Default: POSOLOGY_POLICY."""
    partition_size: int | None = Field(default=None, ge=1, le=MAX_K)
    """Passages in each partition of the strategy briefcontext, 1 to 200. Default: the strategy's own."""
    partitions: PartitionMode = "extract"
    """Task of each partition with briefcontext: extract (findings), answer (an answer and why; the reduce call resolves
    answers that differ) or answer-by-rule (the stronger evidence decides first, as far as it can). Default: extract."""
    prompts: Annotated[Text, Field(max_length=16, pattern=TEMPLATES)] | None = None
    """Templates of your own instead of the packaged ones: their digest, on the command line also their folder; or packaged.
    Default: POSOLOGY_PROMPTS, else packaged."""
    max_cost_usd: Decimal | None = Field(
        default=None, ge=0, le=MAX_CAP, max_digits=16, decimal_places=9
    )
    """Maximum cost per question in dollars, for all of its model calls together. Default: the tenant's limits only."""

    @model_validator(mode="after")
    def _preset(self) -> Self:
        # afterwards, because the fields are read strictly, and a validator before would make Python objects of their JSON
        if self.preset is not None:
            from orchestrator.settings.presets import filled

            fields = {name: getattr(self, name) for name in self.model_fields_set}
            given = {name: value for name, value in fields.items() if value is not None}
            new = {name: value for name, value in filled(given).items() if name not in given}
            self.__dict__.update(new)
            self.__pydantic_fields_set__.update(new)
        return self

    @field_serializer("max_cost_usd", when_used="json")
    def _published(self, amount: Decimal | None) -> str | None:
        return None if amount is None else dollars_text(amount)

    def to_request(self, settings: Settings) -> Request:
        """Return the request with the settings' defaults filled in.

        Raises:
            InvalidQuery: the question, its form and its options do not fit together, the strategy, policy or
                compressor is unknown, the model lacks the effort or the tier, or both a strategy and a policy are
                given.
            UnknownModel: the provider is unknown, or the name has no provider.
            BadFile: the configured templates cannot be read or used.
        """
        if self.strategy is not None and self.policy is not None:
            raise InvalidQuery(
                f"give a strategy or a policy, not both (got {self.strategy} and {self.policy}): a policy "
                "chooses the strategy",
                field="policy",
            )
        model = self.model or settings.model
        check_effort(model, self.effort)
        tier = self.tier or lane_or_standard(model, settings.tier)
        if self.tier is not None:
            check_lane(model, self.tier)
        if tier_of(tier) == "batch" and not self.queued:
            check_awaited(self.tier)
            tier = "standard"
        filled: dict[str, Any] = {
            name: getattr(self, name) or getattr(settings, name) for name in _BY_SETTINGS
        }
        filled |= {"model": model, "tier": tier, "prompts": self.prompts or own_prompts(settings)}
        return self.model_copy(update=filled).as_settled()

    def as_settled(self) -> Request:
        """Return the request of fields that are filled in, as in a job's record, regardless of today's settings.

        Raises:
            UnknownModel: this version does not know the provider.
            ValueError: the request was never settled.
        """
        if self.model is None:
            raise ValueError("a job's record must name its model")
        check_strategy(self.strategy, keep=self.keep, compressor=self.compressor)
        if self.support == "model" and self.support_model is not None:
            check_judge(self.support_model, self.model)
        check_compressor(self.compressor, "compressor")
        check_policy(self.policy)
        return Request(
            query=make_query(self.question, form=self.form, options=self.options),
            model=str(parse(self.model)),
            k=self.k,
            mode=self.mode,
            retracted=self.retracted,
            filters=self.filters.to_filters() if self.filters else NONE,
            index_version=self.index_version,
            max_tokens=self.max_tokens,
            effort=self.effort,
            tier=self.tier or "standard",
            quotes=self.quotes or QUOTE_FORMS[0],
            support=self.support or SUPPORT_MODES[0],
            support_model=None if self.support_model is None else str(parse(self.support_model)),
            strategy=self.strategy,
            keep=self.keep,
            compressor=self.compressor,
            policy=None if self.strategy else self.policy,
            partition_size=self.partition_size,
            partitions=self.partitions,
            prompts=None if self.prompts == PACKAGED else self.prompts,
        )


class SearchRequest(Sent):
    """A search for passages."""

    query: Prose
    """Search query: a question or words."""
    k: int = Field(default=10, ge=1, le=MAX_K)
    """Number of passages to retrieve, 1 to 200. Default: 10."""
    mode: Mode = "fused"
    """Retrieval method: dense, bm25, fused, dense>bm25 or bm25>dense. Default: fused."""
    retracted: bool = False
    """Whether retracted passages may be found. Default: false."""
    filters: FiltersRequest | None = None
    """Filters that every passage must pass. Default: none."""
    index_version: int | None = Field(default=None, ge=1, le=MAX_VERSION)
    """Number of the index version to read, e.g. 17 for index@17. Default: the newest."""
    collection: CollectionName = None
    """Name of the collection to search. Default: none, the default index."""

    def to_query(self) -> Query:
        """Return the checked query.

        Raises:
            InvalidQuery: it is empty, too long or not valid Unicode.
        """
        return make_query(self.query, field="query")


class JobRequest(AskRequest):
    """A question for the queue, and how to answer it."""

    queued: ClassVar[bool] = True

    fetch: str | None = Field(default=None, pattern=r"^ingest_[0-9a-f]{28}$", max_length=40)
    """Id of the ingest that fetched literature for the question, which the job's record keeps. Default: none."""

    # left out of records where it is not given, as support_model is
    parent: str | None = Field(
        default=None,
        pattern=r"^job_[0-9a-f]{28}$",
        max_length=40,
        exclude_if=lambda one: one is None,
    )
    """Id of an earlier job: a question that continues its question ("And in children?") is asked with that. Default: none."""

    collection: CollectionName = None
    """Name of the collection that answers, of those that the tenant may read. Default: the parent's, else the default index."""

    deadline_seconds: float = Field(default=900.0, ge=1.0, le=MAX_DEADLINE)
    """Seconds from submission until an unfinished job expires, 1 to 1209600. Default: 900; 86400 in a batch; 604800 in the
    tier batch."""

    def settled(self, settings: Settings, *, deadline: float | None = None) -> Self:
        """Return the request with every default filled in, so that no worker's settings change the question.

        ``None`` as maximum output tokens is a setting, too: the bound of each stage.

        Args:
            settings: values of the fields that it omits.
            deadline: seconds until it expires in another tier than batch, if it does not say; ``None``: the default.

        Raises:
            InvalidQuery: the question, its form and its options do not fit together.
            UnknownModel: the provider is unknown, or the name has no provider.
        """
        request = self.to_request(settings)
        for model in request.models:
            check_file(model, settings)
        seconds = self.deadline_seconds
        if "deadline_seconds" not in self.model_fields_set:
            seconds = LANE_DEADLINE if tier_of(request.tier) == "batch" else deadline or seconds
        filled = {name: getattr(request, name) for name in ("model", "tier", *_BY_SETTINGS)}
        filled |= {"deadline_seconds": seconds, "prompts": request.prompts or PACKAGED}
        return self.model_copy(update=filled)


#: fields of a question that is submitted alone
ALONE = frozenset({"fetch", "parent"})
#: fields that have no default for a whole batch
NO_DEFAULT = frozenset({"question", "options"}) | ALONE
