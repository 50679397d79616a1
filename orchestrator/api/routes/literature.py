"""The literature over HTTP: searches, passages, and the index."""

from __future__ import annotations

import time
from typing import Annotated, Any

from anyio import to_thread
from fastapi import APIRouter, Path, Query, Request, Response

from orchestrator.api import examples
from orchestrator.api.bodies import read_json, unless_left
from orchestrator.api.context import Posology, Tenant
from orchestrator.api.examples import fails, shows
from orchestrator.api.routes.jobs import NO_COLLECTION, Accept, Exported, answered, export_of
from orchestrator.api.routes.listing import InCollection
from orchestrator.question.passages import search_output
from orchestrator.question.request import SearchRequest
from orchestrator.question.sent import MAX_VERSION, QuoteRequest
from orchestrator.rendering.exports import export_search
from orchestrator.rendering.kinds import MEDIA
from orchestrator.retrieval import find_quote, read_passage
from posology import errors
from posology.budget.tenants.grants import granted
from posology.index.store import Index
from posology.published.answers import PassageOutput
from posology.published.literature import IndexStatus, IndexVersion, QuoteSearch, SearchOutput

router = APIRouter(prefix="/v1", tags=["literature"])

#: maximum characters of a passage's id
_MAX_PASSAGE = 1_000
_SOURCE: dict[str, Any] = {
    "id": "pmid:10051933",
    "pmid": "10051933",
    "title": "Aspirin and preeclampsia",
    "journal": "J Example",
    "year": 1999,
    "publication_types": ["Randomized Controlled Trial"],
    "retracted": False,
    "source": "pubmed",
}
_ABSENT = errors.PassageNotFound("index@17 does not hold pmid:1", index="index", passage="pmid:1")
_GONE = errors.VersionGone(index="index", version=3, days=30)


@router.post(
    "/search",
    operation_id="search",
    summary="Search for passages",
    response_model=SearchOutput,
    responses={
        200: examples.exported(
            shows(
                "The passages, with their places in every ranking; with `format`, as an export.",
                {
                    "query": "aspirin preeclampsia",
                    "mode": "fused",
                    "k": 10,
                    "hits": [
                        {
                            "passage": _SOURCE,
                            "dense": 1,
                            "bm25": 1,
                            "fused": 1,
                            "dense_score": 0.71,
                            "bm25_score": 12.4,
                            "fused_score": 0.033,
                            "snippet": "Aspirin reduced the risk of preeclampsia.",
                        }
                    ],
                    "dense": ["pmid:10051933"],
                    "bm25_rerank": ["pmid:10051933"],
                    "bm25": ["pmid:10051933"],
                    "fused": ["pmid:10051933"],
                    "index": "index@17",
                    "filters": None,
                    "seconds": 0.03,
                    "growth": None,
                    "added": [],
                },
            )
        ),
        **fails(
            400,
            examples.EXHAUSTED,
            examples.NOT_ALLOWED,
            413,
            415,
            429,
            _GONE,
            NO_COLLECTION,
            errors.InvalidQuery("the query is empty", field="query"),
            errors.ProviderUnreachable(
                "the provider cannot be reached: try again",
                provider="openai",
                model="text-embedding-3-small",
            ),
            errors.ProviderTimeout(
                "no reply within 60 s", provider="openai", model="text-embedding-3-small"
            ),
        ),
    },
    openapi_extra=examples.takes(
        SearchRequest, {"query": "aspirin preeclampsia", "k": 10, "filters": {"since": 1990}}
    ),
)
async def search(
    request: Request, api: Posology, tenant: Tenant, *, form: Exported = None, accept: Accept = ""
) -> Response:
    """Return the passages that a question would be answered from, with their places in every ranking.

    No model is called, except a paid embedder of the index: its call counts against the tenant's limits.
    """
    asked = await read_json(request, SearchRequest, limit=api.limits.job_bytes)
    query, literature = asked.to_query(), await api.readable(tenant, asked.collection)
    async with api.searches.of(tenant):
        started = time.perf_counter()
        found = await unless_left(
            request, lambda: literature.search(asked, query, tenant=tenant, store=api.jobs())
        )
        seconds = time.perf_counter() - started
    out = search_output(found, mode=asked.mode, k=asked.k, seconds=seconds)
    chosen = export_of(form, accept)
    if chosen is None:
        return answered(out)
    return Response(export_search(out, chosen), media_type=MEDIA[chosen])


@router.get(
    "/passages/{passage:path}",
    operation_id="getPassage",
    summary="Get a passage",
    response_model=PassageOutput,
    responses={
        200: shows(
            "The passage with its text.",
            {
                "passage": _SOURCE,
                "text": "Aspirin reduced the risk of preeclampsia.",
                "mesh": ["Aspirin"],
                "languages": ["eng"],
                "same_work": [],
                "index": "index@17",
            },
        ),
        **fails(429, _ABSENT, _GONE, NO_COLLECTION),
    },
)
async def passage(
    api: Posology,
    tenant: Tenant,
    passage: Annotated[
        str,
        Path(
            max_length=_MAX_PASSAGE,
            description="Id of the passage, which may contain slashes.",
            examples=["pmid:10051933"],
        ),
    ],
    *,
    version: Annotated[
        int | None,
        Query(
            ge=1,
            le=MAX_VERSION,
            description="Number of the index version to read, e.g. 17 for index@17. Default: the newest.",
        ),
    ] = None,
    collection: InCollection = None,
) -> Response:
    """Return a passage with its text and everything that the index stores about it. All tenants read the default index."""
    async with api.reads.of(tenant):
        index = await (await api.readable(tenant, collection)).index()
        return answered(await to_thread.run_sync(read_passage, index, passage, version))


@router.post(
    "/quotes",
    operation_id="findQuote",
    summary="Find a quote in the index",
    response_model=QuoteSearch,
    responses={
        200: shows(
            "The passages that contain the quote or nearly do.",
            {
                "quote": "Aspirin reduced the risk of pre-eclampsia.",
                "places": [
                    {
                        "passage": _SOURCE,
                        "quote": "Aspirin reduced the risk of pre-eclampsia.",
                        "verified": False,
                        "reason": "differs",
                        "wording": "Aspirin reduced the risk of preeclampsia.",
                        "differences": [{"quote": "pre-eclampsia", "passage": "preeclampsia"}],
                        "start": 0,
                        "end": 41,
                        "page": None,
                        "last_page": None,
                        "index": "index@17",
                    }
                ],
                "compared": 50,
                "index": "index@17",
            },
        ),
        **fails(
            400,
            413,
            415,
            429,
            _GONE,
            NO_COLLECTION,
            errors.InvalidQuery(
                "the quote is empty: give a sentence or a part of one", field="quote"
            ),
        ),
    },
    openapi_extra=examples.takes(
        QuoteRequest, {"quote": "Aspirin reduced the risk of pre-eclampsia."}
    ),
)
async def quotes(request: Request, api: Posology, tenant: Tenant) -> Response:
    """Return where the index has a sentence, word for word or nearly, and which words differ. No model is called."""
    asked = await read_json(request, QuoteRequest, limit=api.limits.job_bytes)
    async with api.reads.of(tenant):
        index = await (await api.readable(tenant, asked.collection)).index()
        return answered(
            await to_thread.run_sync(find_quote, index, asked.quote, asked.index_version)
        )


@router.get(
    "/index",
    operation_id="getIndex",
    summary="Get the state of the index",
    response_model=IndexStatus,
    responses={
        200: shows(
            "The index.",
            {
                "index": "index@17",
                "passages": 2000,
                "retracted": 3,
                "embedder": "all-MiniLM-L6-v2",
                "growth": None,
                "versions": [
                    {
                        "index": "index@12",
                        "number": 12,
                        "published": "2026-01-14T06:00:00Z",
                        "until": "2026-02-14T06:00:00Z",
                    },
                    {
                        "index": "index@17",
                        "number": 17,
                        "published": "2026-01-15T06:00:00Z",
                        "until": None,
                    },
                ],
                "collections": ["trials"],
            },
        ),
        **fails(NO_COLLECTION),
    },
)
async def index(api: Posology, tenant: Tenant, *, collection: InCollection = None) -> Response:
    """Return the number of passages of the newest version, the versions that can be read, and the tenant's collections."""
    found = await to_thread.run_sync(status, await (await api.readable(tenant, collection)).index())
    names = await granted(api.jobs().redis, api.jobs().url, tenant)
    here = api.settings.collection_places
    return answered(
        found.model_copy(update={"collections": tuple(name for name in names if name in here)})
    )


def status(index: Index) -> IndexStatus:
    """Return an index as readers see it."""
    view, known = index.view(), index.versions()
    ends = [one.at + index.keep for one in known[1:]]
    return IndexStatus(
        index=view.version,
        passages=view.count(),
        retracted=view.retracted,
        embedder=index.meta.embedder,
        growth=None if view.growth is None else str(view.growth),
        versions=tuple(
            IndexVersion(
                index=f"{index.name}@{one.number}",
                number=one.number,
                published=one.at,
                until=end,
            )
            for one, end in zip(known, [*ends, None], strict=True)
        )
        if known
        else (),
    )
