"""The tools: their descriptions for a model, their forms, and their work at a desk."""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from functools import partial
from types import MappingProxyType
from typing import Annotated, Any, cast

from anyio import to_thread
from mcp_types import Tool, ToolAnnotations
from pydantic import BaseModel, Field, TypeAdapter, ValidationError

from orchestrator.api.mcp.desk import Desk, Told
from orchestrator.jobs.store import MAX_KEY
from orchestrator.question.request import AskRequest, SearchRequest
from orchestrator.question.sent import (
    MAX_VERSION,
    CollectionName,
    QuoteRequest,
    Text,
    invalid_field,
)
from orchestrator.rendering.text import answer_as_text
from orchestrator.rendering.words import safe
from orchestrator.retrieval import quote_check
from posology.errors import PassageNotFound
from posology.published.answers import AskOutput, PassageOutput
from posology.published.base import Described, Published, parse_strictly
from posology.published.estimates import EstimateOutput
from posology.published.jobs import AskPending
from posology.published.literature import (
    ArticleStanding,
    QuoteCheck,
    QuoteSearch,
    SearchOutput,
    Standings,
)

#: maximum characters of a passage's id
MAX_ID = 1_000
#: maximum characters of a quote
MAX_QUOTE = 20_000
#: maximum articles of one check
MAX_ARTICLES = 20

Id = Annotated[Text, Field(min_length=1, max_length=MAX_ID)]
Version = Annotated[int | None, Field(ge=1, le=MAX_VERSION)]


class EstimateArguments(AskRequest):
    """A question and how to answer it."""

    collection: CollectionName = None
    """Name of the collection that answers. Default: none, the default index."""


class AskArguments(EstimateArguments):
    """A question and how to answer it."""

    idempotency_key: Annotated[Text, Field(min_length=1, max_length=MAX_KEY)] | None = None
    """Idempotency key of your choice: the same key and question give the same job, which is paid for once. Default: the same
    arguments give the same job until 10 minutes after its answer."""


class PassageArguments(Described):
    """A passage."""

    passage: Id
    """Id of the passage, e.g. pmid:10051933, or a PMID."""
    version: Version = None
    """Number of the index version to read, e.g. 17 for index@17. Default: the newest."""
    collection: CollectionName = None
    """Name of the collection to read. Default: none, the default index."""


class QuoteArguments(PassageArguments):
    """A quote and the passage that it is from."""

    quote: Annotated[Text, Field(min_length=1, max_length=MAX_QUOTE)]
    """The quote, word for word."""


class StandingArguments(Described):
    """Articles."""

    passages: Annotated[tuple[Id, ...], Field(min_length=1, max_length=MAX_ARTICLES)]
    """Ids of passages, e.g. pmid:10051933, or PMIDs; at most 20."""
    collection: CollectionName = None
    """Name of the collection to read. Default: none, the default index."""


#: key of a result's metadata with the id of its job
JOB = "posology/job"
Work = Callable[[Desk, Any, Told], Awaitable["Done"]]


@dataclass(frozen=True, kw_only=True, slots=True)
class Done:
    """The result of a tool."""

    out: Published
    #: for models that read text, without characters that are not seen
    text: str
    #: id of the job; ``None``: there is none
    job: str | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class Offer:
    """A tool that is offered."""

    title: str
    description: str
    takes: type[BaseModel]
    #: form of its results, or a union of them
    gives: Any
    work: Work
    #: whether it spends nothing and leaves nothing
    reads: bool = True
    #: whether it ends something that is kept
    ends: bool = False

    def tool(self, name: str) -> Tool:
        """Return its definition for a client."""
        return Tool(
            name=name,
            title=self.title,
            description=self.description,
            input_schema=self.takes.model_json_schema(),
            # the protocol wants the type of a union, too
            output_schema={"type": "object"}
            | TypeAdapter[Any](self.gives).json_schema(mode="serialization"),
            annotations=ToolAnnotations(
                read_only_hint=self.reads,
                destructive_hint=self.ends,
                idempotent_hint=self.reads,
                # the index alone is searched
                open_world_hint=False,
            ),
        )

    def parse(self, arguments: Mapping[str, Any] | None) -> BaseModel:
        """Read the arguments of a call, strictly.

        Raises:
            InvalidQuery: naming the first invalid field.
        """
        try:
            return parse_strictly(self.takes, json.dumps(arguments or {}))
        except ValidationError as error:
            found = error.errors(include_url=False, include_input=False)
        raise invalid_field(found, self.takes)


async def _search(desk: Desk, asked: SearchRequest, _: Told) -> Done:
    return as_data(await desk.search(asked))


async def _passage(desk: Desk, asked: PassageArguments, _: Told) -> Done:
    async with desk.reading():
        return as_data(await desk.passage(asked.passage, asked.version, asked.collection))


async def _estimate(desk: Desk, asked: AskRequest, _: Told) -> Done:
    return as_data(await desk.estimate(asked))


async def _ask(desk: Desk, asked: AskArguments, told: Told) -> Done:
    found = await desk.ask(asked, key=asked.idempotency_key, told=told)
    out = found.out
    if isinstance(out, AskPending):
        known = f"{out.stage} " if out.stage else ""
        return Done(out=out, text=f"{known}{out.advice}", job=found.job)
    return Done(out=out, text=answer_as_text(out), job=found.job)


async def _quote(desk: Desk, asked: QuoteArguments, _: Told) -> Done:
    async with desk.reading():
        output = await desk.passage(asked.passage, asked.version, asked.collection)
        check = partial(quote_check, asked.quote, output.passage, output.text, index=output.index)
        return as_data(await to_thread.run_sync(check))


async def _found(desk: Desk, asked: QuoteRequest, _: Told) -> Done:
    async with desk.reading():
        return as_data(await desk.find_quote(asked))


async def _standing(desk: Desk, asked: StandingArguments, _: Told) -> Done:
    async with desk.reading():
        found = [await _standing_of(desk, one, asked.collection) for one in asked.passages]
    return as_data(Standings(articles=tuple(found)))


async def _standing_of(desk: Desk, passage: str, collection: str | None) -> ArticleStanding:
    try:
        output: PassageOutput | None = await desk.passage(passage, None, collection)
    except PassageNotFound:
        output = None
    source = None if output is None else output.passage
    return ArticleStanding(
        id=passage,
        found=source is not None,
        retracted=None if source is None else source.retracted,
        concern=None if source is None else source.concern,
        title=None if source is None else source.title,
        flags=() if source is None else source.flags,
        index=None if output is None else output.index,
    )


def as_data(out: Published) -> Done:
    """Return a result as JSON: texts of the literature are strings in it."""
    data = _visible(out.model_dump(mode="json"))
    return Done(out=out, text=json.dumps(data, ensure_ascii=False))


def _visible(value: Any) -> Any:
    match value:
        case str():
            return safe(value)
        case list():
            return [_visible(one) for one in value]
        case dict():
            return {name: _visible(one) for name, one in cast("dict[str, Any]", value).items()}
        case _:
            return value


#: by name, in the order in which clients list them
OFFERS: Mapping[str, Offer] = MappingProxyType(
    {
        "search": Offer(
            title="Search the literature",
            description="Search the index of medical literature. Returns passages with PMID, DOI, title, year, "
            "publication types, retraction flags and the sentence nearest to the query. Calls no language model. Read a "
            "passage in full with get_passage.",
            takes=SearchRequest,
            gives=SearchOutput,
            work=_search,
        ),
        "ask": Offer(
            title="Answer a question",
            description="Answer a medical question from the index, or refuse. Every quote is checked word for word "
            "against its passage; contradictions and retractions are reported. The question must stand alone: there is "
            "no conversation. It may call paid language models within the tenant's budget and takes seconds to minutes; "
            "set max_cost_usd to bound the cost, and call estimate to know it before. After 45 seconds it returns the status "
            "pending: then call it again with the same arguments, and it goes on with the same question.",
            takes=AskArguments,
            gives=AskOutput | AskPending,
            work=_ask,
            reads=False,
        ),
        "get_passage": Offer(
            title="Read a passage",
            description="Return one passage in full by its id or PMID, with its sentences, MeSH headings and metadata.",
            takes=PassageArguments,
            gives=PassageOutput,
            work=_passage,
        ),
        "verify_quote": Offer(
            title="Verify a quote",
            description="Check whether a passage contains a quote word for word, and whether the quote leaves out a "
            "negation, a comparison or part of a number; if it differs, which words do. Use it before you quote an "
            "article. `passage` of the result says whether the article was retracted.",
            takes=QuoteArguments,
            gives=QuoteCheck,
            work=_quote,
        ),
        "find_quote": Offer(
            title="Find a quote",
            description="Find which passages of the whole index contain a sentence word for word, or nearly: then the "
            "result says which words differ. Use it when you have a quote and do not know its article, or verify_quote "
            "did not find it. No place means that none of the passages that share most words with it has it.",
            takes=QuoteRequest,
            gives=QuoteSearch,
            work=_found,
        ),
        "check_retraction": Offer(
            title="Check for retractions",
            description="Return for up to 20 articles whether they were retracted, or an expression of concern was "
            "published, according to every source that the index has. `found` false means unknown, not sound.",
            takes=StandingArguments,
            gives=Standings,
            work=_standing,
        ),
        "estimate": Offer(
            title="Estimate the cost of a question",
            description="Estimate what ask would cost in dollars by each strategy (low, expected, worst case), and what is "
            "left of the budget. Calls no language model and reserves nothing.",
            takes=EstimateArguments,
            gives=EstimateOutput,
            work=_estimate,
        ),
    }
)
