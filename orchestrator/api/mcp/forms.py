"""Arguments of the tools. Questions and searches have the fields that they have over HTTP."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from orchestrator.jobs.store import MAX_KEY
from orchestrator.question.request import MAX_VERSION, AskRequest, Text
from posology.published.base import Described

#: maximum characters of a passage's id
MAX_ID = 1_000
#: maximum characters of a quote
MAX_QUOTE = 20_000
#: maximum articles of one check
MAX_ARTICLES = 20

Id = Annotated[Text, Field(min_length=1, max_length=MAX_ID)]
Version = Annotated[int | None, Field(ge=1, le=MAX_VERSION)]


class AskArguments(AskRequest):
    """A question and how to answer it."""

    idempotency_key: Annotated[Text, Field(min_length=1, max_length=MAX_KEY)] | None = None
    """Idempotency key of your choice: the same key and question give the same job, which is paid for once. Default: none."""


class PassageArguments(Described):
    """A passage."""

    passage: Id
    """Id of the passage, e.g. pmid:10051933, or a PMID."""
    version: Version = None
    """Number of the index version to read, e.g. 17 for index@17. Default: the newest."""


class QuoteArguments(PassageArguments):
    """A quote and the passage that it is from."""

    quote: Annotated[Text, Field(min_length=1, max_length=MAX_QUOTE)]
    """The quote, word for word."""


class StandingArguments(Described):
    """Articles."""

    passages: Annotated[tuple[Id, ...], Field(min_length=1, max_length=MAX_ARTICLES)]
    """Ids of passages, e.g. pmid:10051933, or PMIDs; at most 20."""
