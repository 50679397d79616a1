"""Stored answers of a tenant whose evidence has changed since, and the events that say so."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Awaitable, Callable
from datetime import datetime
from typing import cast

from anyio import to_thread

from orchestrator.jobs.store import JobStore
from orchestrator.question.changes import Changes
from posology.index.store import Index
from posology.published.affected import AffectedAnswer, AffectedPage, EvidenceChange
from posology.published.answers import AskOutput
from posology.published.jobs import JobSummary
from posology.store import keys
from posology.store.connection import translated
from posology.types import JobState

#: stored answers on one page
MAX_PAGE = 100


async def affected(
    store: JobStore,
    index: Index,
    *,
    tenant: str,
    since: datetime,
    cursor: str | None = None,
    limit: int = MAX_PAGE,
    notify: bool = False,
    collection: str | None = None,
) -> AffectedPage:
    """Compare a page of a tenant's stored answers with the newest version of an index.

    Args:
        store: the job store; answers are there as long as the records of their jobs are kept.
        index: the index; answers of an index of another name or collection are skipped.
        tenant: name of the tenant.
        since: only questions submitted at this time or later.
        cursor: ``next`` of the page before.
        limit: stored answers to compare, up to :data:`MAX_PAGE`.
        collection: name of the index's collection, whose answers are compared; ``None``: those of the default index.
        notify: whether to write an event ``evidence_changed`` to each job, once for each change.

    Raises:
        InvalidQuery: ``cursor`` or ``limit`` cannot be one.
        IndexFault: the index cannot be read.
        StoreUnavailable: Redis is unreachable.
    """
    page = await store.page(
        tenant=tenant, state=JobState.SUCCEEDED, cursor=cursor, limit=min(limit, MAX_PAGE)
    )
    jobs = [job for job in page.jobs if job.created >= since]
    prefix = keys.prefix(tenant)
    with translated(store.url):
        async with store.redis.pipeline(transaction=False) as pipe:
            for job in jobs:
                pipe.hmget(f"{prefix}job:{job.id}", ["request", "result"])
            results = cast("list[tuple[str, str | None]]", await pipe.execute())
    all_stored = [
        (job, text, json.loads(request).get("collection") == collection)
        for job, (request, text) in zip(jobs, results, strict=True)
        if text is not None
    ]
    stored = [(job, text) for job, text, own in all_stored if own]
    answers, skipped, version = await to_thread.run_sync(_compare, index, stored)
    skipped += len(all_stored) - len(stored)
    notified = 0
    if notify:
        for one in answers:
            for change in one.changes:
                notified += await _tell(store, one.job, change, tenant=tenant)
    return AffectedPage(
        answers=tuple(answers),
        checked=len(all_stored) - skipped,
        skipped=skipped,
        notified=notified,
        index=version,
        next=page.next if len(jobs) == len(page.jobs) else None,
    )


def _compare(
    index: Index, stored: list[tuple[JobSummary, str]]
) -> tuple[list[AffectedAnswer], int, str]:
    changes = Changes(index)
    answers: list[AffectedAnswer] = []
    skipped = 0
    outs = [AskOutput.model_validate_json(text) for _, text in stored]
    changes.load(outs)
    for (job, _), out in zip(stored, outs, strict=True):
        skipped += not changes.comparable(out)
        if found := changes.of(out):
            answers.append(
                AffectedAnswer(
                    job=job.id,
                    batch=job.batch,
                    row=job.row,
                    question=job.question,
                    answered=job.ended,
                    index=out.index,
                    changes=found,
                )
            )
    return answers, skipped, changes.version


async def _tell(store: JobStore, job: str, change: EvidenceChange, *, tenant: str) -> bool:
    """Write the event of a change to a job, unless it has it; return whether it was written."""
    data = change.model_dump_json(exclude_defaults=True)
    # the version is no part of it: old versions expire, and the first readable one with the change is another then
    parts = (change.passage, change.kind, change.source, change.by, change.date, change.digest)
    name = hashlib.sha256("\0".join(map(str, parts)).encode()).hexdigest()
    run = cast("Callable[..., Awaitable[str]]", store.run)
    return await run("tell_change", keys.prefix(tenant), job, f"told:{name[:32]}", data) == "told"
