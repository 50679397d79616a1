"""A table over HTTP: its fields, its documents in the index, and how they are read."""

from __future__ import annotations

from decimal import Decimal
from typing import Annotated, Self

from pydantic import Field, model_validator
from pydantic_core import PydanticCustomError

from orchestrator.question.checks import check_file
from orchestrator.question.request import MAX_EFFORT, AskRequest, SearchRequest
from orchestrator.question.sent import CollectionName, Model, Text
from orchestrator.settings import MAX_TOKENS, MIN_TOKENS, Settings
from orchestrator.tables.request import FieldsRequest
from posology.budget.ledger.base import MAX_CAP
from strategies.tables.reading import PART_WORDS, Reading

#: maximum documents of a table
MAX_DOCUMENTS = 1_000
#: maximum characters of an id
_MAX_ID = 1_000

_Id = Annotated[Text, Field(min_length=1, max_length=_MAX_ID)]


class TableRequest(FieldsRequest):
    """An evidence table of articles of the index."""

    documents: Annotated[tuple[_Id, ...], Field(max_length=MAX_DOCUMENTS)] = ()
    """Ids of articles or passages, at most 1000. A passage stands for its whole article. Default: those of `search`."""
    collection: CollectionName = None
    """Name of the collection of `documents`; `search` names its own. Default: none, the default index."""
    search: SearchRequest | None = None
    """Search whose passages stand for their articles. Default: none; give either this or `documents`."""
    model: Model | None = None
    """Model that reads the documents. Default: POSOLOGY_MODEL."""
    max_tokens: int | None = Field(default=None, ge=MIN_TOKENS, le=MAX_TOKENS)
    """Maximum output tokens of one call, 64 to 200000. Default: POSOLOGY_MAX_TOKENS, else as many as the fields need."""
    effort: Annotated[Text, Field(max_length=MAX_EFFORT)] | None = None
    """Reasoning effort: none, minimal, low, medium, high, xhigh or max. Default: POSOLOGY_EFFORT, else the model's lowest."""
    part_words: int = Field(default=PART_WORDS, ge=200, le=200_000)
    """Words that one call reads, 200 to 200000. A longer article is read in parts. Default: 20000."""
    max_cost_usd: Decimal | None = Field(
        default=None, ge=0, le=MAX_CAP, max_digits=16, decimal_places=9
    )
    """Maximum cost of the whole table in dollars. Default: the tenant's limits alone."""

    @model_validator(mode="after")
    def _one(self) -> Self:
        if bool(self.documents) == (self.search is not None):
            raise PydanticCustomError("documents", "give either documents or a search")
        if self.search is not None and self.collection is not None:
            raise PydanticCustomError("documents", "name the collection in the search")
        return self

    @property
    def read(self) -> str | None:
        """The collection that is read; ``None``: the default index."""
        return self.collection if self.search is None else self.search.collection

    def settled(self, settings: Settings) -> Self:
        """Return the request with every default filled in, so that another process reads the documents alike.

        Raises:
            InvalidQuery: the model does not take the effort, or the fields do not fit together.
            UnknownModel: the provider is unknown, or the name has no provider.
        """
        self.to_fields()
        given = {"model": self.model, "max_tokens": self.max_tokens, "effort": self.effort}
        asked = {name: value for name, value in given.items() if value is not None}
        # the defaults of a question, and the same check of efforts
        found = AskRequest.parse({"question": "?", "tier": "standard", **asked})
        request = found.to_request(settings)
        check_file(request.model, settings)
        return self.model_copy(
            update={
                "model": request.model,
                "max_tokens": request.max_tokens,
                "effort": request.effort,
            }
        )

    def reading(self) -> Reading:
        """Return how a settled request has the documents read."""
        if self.model is None:
            raise ValueError("a settled request must name its model")
        return Reading(
            fields=self.to_fields(),
            model=self.model,
            max_tokens=self.max_tokens,
            effort=self.effort,
            part_words=self.part_words,
        )
