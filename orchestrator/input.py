"""What comes in as JSON: checked here, once, before anything is spent."""

from __future__ import annotations

from typing import Annotated, Any, Self

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, ValidationError
from pydantic_core import PydanticCustomError

from orchestrator.pipeline import Request
from orchestrator.settings import Settings
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
    #: bound on output tokens of one call; ``None``: as configured
    max_tokens: int | None = Field(default=None, ge=64)
    #: ``None``: the policy decides
    strategy: Text | None = None
    #: passages a partition, where the strategy has partitions; ``None``: the strategy's own
    partition_size: int | None = Field(default=None, ge=1, le=MAX_K)

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
        if self.strategy is not None and self.strategy not in STRATEGIES:
            known = ", ".join(STRATEGIES)
            raise InvalidQuery(
                f"no strategy {self.strategy!r}: choose one of {known}", field="strategy"
            )
        return Request(
            query=make_query(self.question, form=self.form, options=self.options),
            model=str(parse(self.model or settings.model)),
            k=self.k,
            mode=self.mode,
            retracted=self.retracted,
            max_tokens=self.max_tokens or settings.max_tokens,
            strategy=self.strategy,
            partition_size=self.partition_size,
        )


class JobRequest(AskRequest):
    """A question that is put into the queue."""

    #: seconds from submission after which nothing more is done for it
    deadline_seconds: float = Field(default=900.0, ge=1.0, le=MAX_DEADLINE)

    def settled(self, settings: Settings) -> Self:
        """The same with every default filled in, so that no worker's settings change the question.

        Raises:
            InvalidQuery: the question, its form and its options do not fit together.
            UnknownModel: no such provider, or a name without a provider.
        """
        request = self.to_request(settings)
        return self.model_copy(update={"model": request.model, "max_tokens": request.max_tokens})
