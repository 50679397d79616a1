"""Stored answers over HTTP: those whose evidence has changed since."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Annotated

from fastapi import APIRouter, Query, Response

from orchestrator.api.context import Posology, Tenant
from orchestrator.api.examples import JOB, fails, shows
from orchestrator.api.routes.jobs import NO_COLLECTION, answered
from orchestrator.api.routes.listing import NEXT_LINK, Cursor, InCollection, next_link
from orchestrator.api.routes.spend import Day
from orchestrator.jobs.affected import MAX_PAGE, affected
from posology.published.affected import AffectedPage

router = APIRouter(prefix="/v1/answers", tags=["jobs"])

_PATH = f"{router.prefix}/affected"
_DAYS = 30
_EXAMPLE = {
    "answers": [
        {
            "job": JOB,
            "batch": None,
            "row": None,
            "question": "Does aspirin reduce the risk of preeclampsia?",
            "answered": "2026-01-15T09:30:00Z",
            "index": "index@17",
            "changes": [
                {
                    "passage": "pmid:10051933",
                    "title": "Aspirin and preeclampsia",
                    "kind": "retracted",
                    "source": "retraction-watch",
                    "by": "doi:10.1000/notice",
                    "date": "2026-01-20",
                    "version": "index@18",
                    "published": "2026-01-21T06:00:00Z",
                    "digest": None,
                    "standing_quotes": [],
                    "lost_quotes": [],
                }
            ],
        }
    ],
    "checked": 50,
    "skipped": 0,
    "notified": 0,
    "index": "index@18",
    "next": None,
}


@router.get(
    "/affected",
    operation_id="listAffectedAnswers",
    summary="List answers whose evidence has changed",
    response_model=AffectedPage,
    responses={
        200: shows(
            "The affected answers of a page of stored answers.", _EXAMPLE, headers=NEXT_LINK
        ),
        **fails(NO_COLLECTION),
    },
)
async def list_affected(
    api: Posology,
    tenant: Tenant,
    *,
    since: Annotated[
        Day | None,
        Query(
            description=f"First day of submission, UTC. Default: {_DAYS} days ago.",
            examples=["2026-01-15"],
        ),
    ] = None,
    cursor: Cursor = None,
    limit: Annotated[
        int,
        Query(
            ge=1,
            le=MAX_PAGE,
            description=f"Stored answers to compare for a page, 1 to {MAX_PAGE}. Default: 50.",
        ),
    ] = 50,
    collection: InCollection = None,
) -> Response:
    """Compare a page of stored answers, newest first, with the newest version of the index, and list the affected ones.

    An answer is affected if a passage that it cites was retracted, corrected, replaced or removed since, or an expression
    of concern was published. A page may be empty and have a next one.
    """
    index = await (await api.readable(tenant, collection)).index()
    first = datetime.now(UTC) - timedelta(days=_DAYS)
    if since is not None:
        first = datetime.combine(since, datetime.min.time(), tzinfo=UTC)
    page = await affected(
        api.jobs(),
        index,
        tenant=tenant,
        since=first,
        cursor=cursor,
        limit=limit,
        collection=collection,
    )
    if page.next is None:
        return answered(page)
    query = {"since": since.isoformat()} if since else {}
    query |= {"collection": collection} if collection else {}
    query |= {"cursor": page.next, "limit": str(limit)}
    return answered(page, headers=next_link(_PATH, query))
