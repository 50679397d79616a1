"""What comes in as JSON: checked here, once, before anything is spent."""

from __future__ import annotations

from decimal import Decimal
from typing import Annotated, Any, Self

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, ValidationError
from pydantic_core import PydanticCustomError

from orchestrator.pipeline import Request
from orchestrator.settings import MAX_TOKENS, MIN_TOKENS, Settings
from posology.budget.ledger.base import MAX_CAP
from posology.errors import InvalidQuery
from posology.index.retriever import Mode
from posology.llm.models import parse
from posology.query import make_query
from posology.types import Form
from strategies import STRATEGIES

#: seconds; the longest that a job may wait and work
MAX_DEADLINE = 86_400.0
#: passages; more than this is a literature search, not a question's context
MAX_K = 200
#: characters of a model's name; it becomes a label of metrics
MAX_MODEL = 200


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


Text = Annotated[str, AfterValidator(_shown), AfterValidator(_written)]
Model = Annotated[str, Field(max_length=MAX_MODEL), AfterValidator(_shown)]


class AskRequest(BaseModel):
    """A question as a service sends it."""

    model_config = ConfigDict(frozen=True, extra="forbid")

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
    #: bound on output tokens of one call; ``None``: as configured, or else each stage's own
    max_tokens: int | None = Field(default=None, ge=MIN_TOKENS, le=MAX_TOKENS)
    #: ``None``: the policy decides
    strategy: Text | None = None
    #: passages a partition, where the strategy has partitions; ``None``: the strategy's own
    partition_size: int | None = Field(default=None, ge=1, le=MAX_K)
    #: dollars for all of its model calls together; ``None``: the tenant's limits alone
    max_cost_usd: Decimal | None = Field(
        default=None, ge=0, le=MAX_CAP, max_digits=16, decimal_places=9
    )

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

    def to_request(self, settings: Settings) -> Request:
        """The request with the settings' defaults filled in.

        Raises:
            InvalidQuery: the question, its form and its options do not fit together, or there is no
                such strategy.
            UnknownModel: no such provider, or a name without a provider.
        """
        return self._request(self.model or settings.model, self.max_tokens or settings.max_tokens)

    def _request(self, model: str, max_tokens: int | None) -> Request:
        if self.strategy is not None and self.strategy not in STRATEGIES:
            known = ", ".join(STRATEGIES)
            raise InvalidQuery(
                f"no strategy {self.strategy!r}: choose one of {known}", field="strategy"
            )
        return Request(
            query=make_query(self.question, form=self.form, options=self.options),
            model=str(parse(model)),
            k=self.k,
            mode=self.mode,
            retracted=self.retracted,
            max_tokens=max_tokens,
            strategy=self.strategy,
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
        return self.model_copy(update={"model": request.model, "max_tokens": request.max_tokens})

    def as_settled(self) -> Request:
        """The request that :meth:`settled` made, as a job's record holds it: whatever is configured here.

        Raises:
            UnknownModel: a provider that this version does not know.
            ValueError: it was never settled.
        """
        if self.model is None:
            raise ValueError("a job's record names its model")
        return self._request(self.model, self.max_tokens)
