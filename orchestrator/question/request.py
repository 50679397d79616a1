"""What comes in as JSON: checked here, once, before anything is spent."""

from __future__ import annotations

from decimal import Decimal
from typing import Annotated, Any, Self

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, ValidationError, model_validator
from pydantic_core import PydanticCustomError

from orchestrator.compressors import check as check_compressor
from orchestrator.question.pipeline import Request
from orchestrator.settings import MAX_TOKENS, MIN_TOKENS, Settings
from policies.specs import parse as parse_policy
from posology.budget.ledger.base import MAX_CAP
from posology.errors import InvalidQuery
from posology.index.search.filters import MAX_NAME, MAX_NAMES, MAX_YEAR, MIN_YEAR, NONE
from posology.index.search.retriever import Mode
from posology.llm.models import parse
from posology.query import make_query
from posology.types import Filters, Form
from strategies import STRATEGIES

#: seconds; the longest that a job may wait and work
MAX_DEADLINE = 86_400.0
#: passages; more than this is a literature search, not a question's context
MAX_K = 200
#: number of an index's version
MAX_VERSION = 2**53
#: characters of a model's name; it becomes a label of metrics
MAX_MODEL = 200
#: characters of what a user says of an answer
MAX_COMMENT = 2_000
#: characters of a compressor's name
MAX_COMPRESSOR = 100
#: characters of a policy's name and settings
MAX_POLICY = 200


def _shown(value: str) -> str:
    if "\0" in value:
        raise PydanticCustomError("text", "the text holds a NUL character")
    return value


def _written(value: str) -> str:
    # JSON may hold halves of characters, which UTF-8 cannot write
    try:
        value.encode()
    except UnicodeEncodeError:
        raise PydanticCustomError("text", "the text is not valid Unicode") from None
    return value


def _named(value: str) -> str:
    if not (name := value.strip()):
        raise PydanticCustomError("text", "the name is empty")
    return name


Text = Annotated[str, AfterValidator(_shown), AfterValidator(_written)]
Model = Annotated[str, Field(max_length=MAX_MODEL), AfterValidator(_shown)]
Year = Annotated[int, Field(ge=MIN_YEAR, le=MAX_YEAR)]
Name = Annotated[Text, Field(min_length=1, max_length=MAX_NAME), AfterValidator(_named)]
Names = Annotated[tuple[Name, ...], Field(max_length=MAX_NAMES)]


class _Sent(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")

    @classmethod
    def parse(cls, data: Any) -> Self:
        """Read a JSON object.

        Raises:
            InvalidQuery: naming the first field that is wrong.
        """
        try:
            return cls.model_validate(data)
        except ValidationError as error:
            first = error.errors(include_url=False, include_input=False)[0]
            field = ".".join(map(str, first["loc"])) or "request"
            raise InvalidQuery(f"{field}: {first['msg']}", field=field) from None


class FiltersRequest(_Sent):
    """Which passages may be found, see :class:`~posology.types.Filters`: all that is given must hold."""

    #: the first year of publication
    since: Year | None = None
    #: the last year of publication, itself among them
    until: Year | None = None
    #: MEDLINE publication types, of which any will do, as below; in any case
    publication_types: Names = ()
    journals: Names = ()
    #: MeSH headings, whatever their qualifiers
    mesh: Names = ()
    #: MEDLINE's codes of three letters
    languages: Names = ()

    @model_validator(mode="after")
    def _in_order(self) -> Self:
        if self.since is not None and self.until is not None and self.since > self.until:
            raise PydanticCustomError(
                "years", "since is the first year, until the last: give them so"
            )
        return self

    def to_filters(self) -> Filters:
        """The same for the index."""
        return Filters(**{name: getattr(self, name) for name in type(self).model_fields})


class AskRequest(_Sent):
    """A question as a service sends it."""

    question: Annotated[str, AfterValidator(_shown)]
    form: Form = Form.FREE
    #: label (A to E) to wording
    options: dict[Text, Text] | None = None
    #: ``provider:name``; ``None``: as configured
    model: Model | None = None
    k: int = Field(default=8, ge=1, le=MAX_K)
    mode: Mode = "fused"
    #: whether retracted passages may be evidence
    retracted: bool = False
    #: which others may; ``None``: all
    filters: FiltersRequest | None = None
    #: number of the index's version to answer from, as in ``index@17``; ``None``: the newest
    index_version: int | None = Field(default=None, ge=1, le=MAX_VERSION)
    #: bound on output tokens of one call; ``None``: as configured, or else each stage's own
    max_tokens: int | None = Field(default=None, ge=MIN_TOKENS, le=MAX_TOKENS)
    #: ``None``: the policy decides
    strategy: Text | None = None
    #: share of the sentences that is kept, where the strategy compresses; ``None``: the strategy's own
    keep: float | None = Field(default=None, ge=0, le=1)
    #: name of the compressor, for the strategy that compresses or whichever policy decides, see
    #: ``docs/compressors.md``; ``None``: the policy's, or as configured
    compressor: Annotated[Text, Field(max_length=MAX_COMPRESSOR)] | None = None
    #: which policy decides where no strategy is asked for, e.g. ``router:preflight=published``; ``None``: as
    #: configured
    policy: Annotated[Text, Field(max_length=MAX_POLICY)] | None = None
    #: passages a partition, where the strategy has partitions; ``None``: the strategy's own
    partition_size: int | None = Field(default=None, ge=1, le=MAX_K)
    #: dollars for all of its model calls together; ``None``: the tenant's limits alone
    max_cost_usd: Decimal | None = Field(
        default=None, ge=0, le=MAX_CAP, max_digits=16, decimal_places=9
    )

    def to_request(self, settings: Settings) -> Request:
        """The request with the settings' defaults filled in.

        Raises:
            InvalidQuery: the question, its form and its options do not fit together, there is no such strategy,
                policy or compressor, or both a strategy and a policy are asked for.
            UnknownModel: no such provider, or a name without a provider.
        """
        if self.strategy is not None and self.policy is not None:
            raise InvalidQuery(
                f"a policy decides which strategy it is: leave out the policy, or the strategy {self.strategy}",
                field="policy",
            )
        return self._request(
            self.model or settings.model,
            self.max_tokens or settings.max_tokens,
            self.policy or settings.policy,
        )

    def _request(self, model: str, max_tokens: int | None, policy: str | None) -> Request:
        if self.strategy is not None and self.strategy not in STRATEGIES:
            known = ", ".join(STRATEGIES)
            raise InvalidQuery(
                f"no strategy {self.strategy!r}: choose one of {known}", field="strategy"
            )
        if self.keep is not None and self.strategy != "compressed":
            raise InvalidQuery(
                "keep is for the strategy compressed: ask for that, or write --policy router:keep=SHARE",
                field="keep",
            )
        if self.compressor is not None and self.strategy not in (None, "compressed"):
            raise InvalidQuery(
                f"compressor is for the strategy compressed or for a policy, not for {self.strategy}",
                field="compressor",
            )
        check_compressor(self.compressor)
        if policy is not None:
            check_compressor(parse_policy(policy).compressor, field="policy")
        return Request(
            query=make_query(self.question, form=self.form, options=self.options),
            model=str(parse(model)),
            k=self.k,
            mode=self.mode,
            retracted=self.retracted,
            filters=self.filters.to_filters() if self.filters else NONE,
            index_version=self.index_version,
            max_tokens=max_tokens,
            strategy=self.strategy,
            keep=self.keep,
            compressor=self.compressor,
            policy=None if self.strategy else policy,
            partition_size=self.partition_size,
        )


class JobRequest(AskRequest):
    """A question that is put into the queue."""

    #: seconds from submission after which nothing more is done for it
    deadline_seconds: float = Field(default=900.0, ge=1.0, le=MAX_DEADLINE)

    def settled(self, settings: Settings) -> Self:
        """The same with every default filled in, so that no worker's settings change the question.

        No bound on output tokens is a setting, too: each stage's own.

        Raises:
            InvalidQuery: the question, its form and its options do not fit together.
            UnknownModel: no such provider, or a name without a provider.
        """
        request = self.to_request(settings)
        return self.model_copy(
            update={
                "model": request.model,
                "max_tokens": request.max_tokens,
                "policy": request.policy,
            }
        )

    def as_settled(self) -> Request:
        """The request that :meth:`settled` made, as a job's record holds it: whatever is configured here.

        Raises:
            UnknownModel: a provider that this version does not know.
            ValueError: it was never settled.
        """
        if self.model is None:
            raise ValueError("a job's record names its model")
        return self._request(self.model, self.max_tokens, self.policy)


class FeedbackRequest(_Sent):
    """What a user says of an answer, as a service sends it."""

    #: how good it is
    score: float = Field(ge=0, le=1, allow_inf_nan=False)
    comment: Annotated[Text, Field(max_length=MAX_COMMENT)] | None = None
