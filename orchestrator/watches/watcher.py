"""Checks of due watches: the first passages and the cited ones are looked at again, and the question is asked if they changed.

Where a watch is live, its literature is fetched first, by the process that ingests uploads; fetching is free of charge.

A watch is taken for a while, looked at, and its result recorded in one step. If the process dies in between, the next one
repeats the look: a job that was submitted is found again by its key.
"""

from __future__ import annotations

import json
import logging
import random
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from datetime import timedelta
from typing import TYPE_CHECKING, Any

import anyio
from anyio import to_thread

from orchestrator.ingest.live.request import LiveRequest
from orchestrator.ingest.uploads.fetches import Fetches, FetchesSpent
from orchestrator.jobs.records import public
from orchestrator.jobs.store import JobStore
from orchestrator.logs.events import note
from orchestrator.question.changes import Changes
from orchestrator.question.embedding import Spend, seeing
from orchestrator.question.report import error_body
from orchestrator.watches.comparison import answer_of, difference
from orchestrator.watches.store import LOOK, Taken, WatchStore
from orchestrator.work.items import NoRoom
from posology.budget.tenants.grants import check_grants
from posology.errors import (
    IndexFault,
    IngestNotAllowed,
    JobCancelled,
    JobNotFound,
    PosologyError,
    StoreUnavailable,
    VersionGone,
)
from posology.index.schema import digest
from posology.published.affected import EvidenceChange
from posology.published.calls import ErrorBody
from posology.published.ingests import IngestFailure, IngestState
from posology.published.watches.forms import WatchChange

if TYPE_CHECKING:
    from orchestrator.service import Service

logger = logging.getLogger(__name__)

#: seconds between two sweeps of all processes together; a sweep begins no check after this time
PAUSE = 10.0
#: milliseconds until an answer is looked at again that could not be compared
_AGAIN = 3_600_000
#: how long after the day of a record the services' search may find it first
_OVERLAP = timedelta(days=2)


@dataclass(frozen=True, kw_only=True, slots=True)
class Fetched:
    """How the fetch of a check has ended."""

    #: id of its ingest; ``None``: it failed
    ingest: str | None = None
    #: when it began, in milliseconds since 1970; ``None``: it failed
    begun: int | None = None
    #: type and message; ``None``: it succeeded
    error: str | None = None
    #: whether it is tried again before the next check
    soon: bool = False


class Watcher:
    """Checks the due watches of all tenants.

    Args:
        store: the job store.
        service: opens the index of a collection and its encoder on first use.
        fetches: of literature for live watches; ``None``: the service fetches nothing.
    """

    def __init__(
        self,
        store: JobStore,
        service: Callable[[str | None], Awaitable[Service]],
        fetches: Fetches | None = None,
    ) -> None:
        self._store = store
        self._fetches = fetches
        self._watches = WatchStore(store)
        self._opened = service

    async def sweep(self) -> None:
        """Look at each watch that is due, once; harmless if two processes do it at once.

        Raises:
            StoreUnavailable: Redis is unreachable.
        """
        ends = anyio.current_time() + PAUSE
        tenants = await self._watches.tenants()
        # so that those at the end have their turn, too
        random.shuffle(tenants)
        for tenant in tenants:
            for watch in await self._watches.due(tenant):
                if anyio.current_time() > ends:
                    return
                try:
                    await self._look(watch, tenant)
                except StoreUnavailable:
                    raise
                except Exception:
                    # one damaged record must not stop the others
                    logger.exception("internal error in watches tenant=%s watch=%s", tenant, watch)

    async def _look(self, watch: str, tenant: str) -> None:
        taken = await self._watches.take(watch, tenant=tenant)
        if taken is None:
            return
        try:
            await (self._check(taken) if taken.job is None else self._end(taken, taken.job))
        except StoreUnavailable:
            raise
        except PosologyError as error:
            # an answer that was paid for is looked at again; a question is asked again in its time
            failed, again = self._failed(error_body(error, None)), taken.next
            if taken.job is None:
                failed |= {"checked": taken.now, "asked": taken.asked + 1, "fetch": None}
            else:
                again = min(again, taken.now + _AGAIN)
            await self._record(taken, failed, again)

    async def _check(self, taken: Taken) -> None:
        """Ask the question, unless it was answered and nothing changed since."""
        done: dict[str, Any] = {"checked": taken.now, "error": None}
        request = taken.request
        if taken.live is not None:
            fetched = await self._fetched(taken, taken.live)
            if fetched is None:
                return
            done |= {"error": fetched.error, "fetch": None}
            if fetched.error is None:
                request = request.model_copy(update={"fetch": fetched.ingest})
                done |= {"fetched": fetched.begun}
            elif taken.answer is None:
                # nothing is paid for without the literature that the first answer is to be made from
                again = min(taken.next, taken.now + _AGAIN) if fetched.soon else None
                await self._record(taken, done | {"asked": taken.asked + 1}, again)
                return
        if taken.answer is not None:
            version = await self._unchanged(taken)
            if version is not None:
                await self._record(taken, done | {"version": version})
                return
        made = await self._store.submit(request, tenant=taken.tenant, key=taken.key)
        note("watch asked", tenant=taken.tenant, watch=taken.id, job=made.job)
        await self._record(taken, done | {"job": made.job}, taken.now + int(LOOK * 1000))

    async def _fetched(self, taken: Taken, live: LiveRequest) -> Fetched | None:
        """Fetch the literature of a check; ``None``: it has not ended, and is looked at again.

        A failure is an outcome, too: the index is checked as it is, since it may have changed otherwise.
        """
        wait = LOOK
        try:
            if self._fetches is None:
                raise IngestNotAllowed(
                    "this service takes no uploads, so that none of its processes fetches literature",
                    tenant=taken.tenant,
                )
            if taken.fetch is None:
                asked = live.of(taken.request)
                if (last := taken.fetched) is not None:
                    asked = asked.model_copy(update={"added_since": last.date() - _OVERLAP})
                made, _ = await self._fetches.offer(taken.tenant, asked)
            else:
                made = await self._fetches.uploads.get(taken.fetch, tenant=taken.tenant)
        except StoreUnavailable:
            raise
        except FetchesSpent as spent:
            wait = spent.seconds
        except (NoRoom, OSError, IndexFault) as fault:
            logger.warning("fetch waits tenant=%s watch=%s: %s", taken.tenant, taken.id, fault)
        except PosologyError as error:
            return Fetched(error=self._failed(error_body(error, None))["error"])
        else:
            if made.state is IngestState.SUCCEEDED:
                begun = made.submitted if made.fetch is None else made.fetch.started
                return Fetched(ingest=made.id, begun=int(begun.timestamp() * 1000))
            if made.over:
                why = made.error or IngestFailure(
                    type="FetchFailed", message=f"the ingest {made.id} was cancelled"
                )
                return Fetched(error=f"{why.type}: {why.message}", soon=why.type == "FetchFailed")
            await self._record(taken, {"fetch": made.id}, taken.now + int(LOOK * 1000))
            return None
        await self._record(taken, {}, taken.now + int(wait * 1000))
        return None

    async def _unchanged(self, taken: Taken) -> str | None:
        """Return the newest version if nothing in it is new to the last answer; ``None``: something is."""
        index = (await self._service(taken)).index
        version = await to_thread.run_sync(lambda: index.version)
        if version == taken.record.get("version"):
            return version
        first = await self._first(taken, version)
        if any(taken.seen.get(passage) != known for passage, known in first.items()):
            return None
        return None if await self._changes(taken) else version

    async def _end(self, taken: Taken, job: str) -> None:
        """Compare the answer of a job that has ended with the last one."""
        asked = {"job": None, "asked": taken.asked + 1}
        try:
            out = await self._store.get(job, tenant=taken.tenant)
        except JobNotFound as error:
            await self._record(taken, asked | self._failed(error_body(error, None)))
            return
        if not out.state.over:
            return
        if out.result is None:
            why = out.error or error_body(JobCancelled(f"job {job} was {out.state}", job=job), None)
            await self._record(taken, asked | self._failed(why))
            return
        after, before = answer_of(out), taken.answer
        change = None
        if before is not None:
            change = difference(before, after, await self._changes(taken))
        try:
            first = await self._first(taken, after.index)
        except VersionGone:
            first = await self._first(taken, None)
        done = {
            "answer": after.model_dump_json(),
            "seen": json.dumps(first),
            "version": after.index,
            "error": None,
        }
        if change is not None:
            done["changed"] = str(taken.now)
        recorded = await self._record(taken, asked | done, change=change)
        if recorded and change is not None:
            note("watch changed", tenant=taken.tenant, watch=taken.id, job=job)

    async def _first(self, taken: Taken, version: str | None) -> Mapping[str, str]:
        """Return the digests of the first passages of a version by id; ``None``: of the newest. Nothing is paid for."""
        service, request = await self._service(taken), taken.request.as_settled()
        spend = Spend(tenant=taken.tenant, blind=True)
        vectors = await service.encode(request.query, spend)
        found = await service.search(
            request.query,
            k=request.k,
            mode=seeing(request.mode, vectors),
            retracted=request.retracted,
            filters=request.filters,
            vectors=vectors,
            version=version,
        )
        return {one.passage.id: digest(one.passage) for one in found.passages}

    async def _service(self, taken: Taken) -> Service:
        """Open the index of a watch, whose tenant must still be allowed to read it."""
        collection = taken.request.collection
        await check_grants(self._store.redis, self._store.url, taken.tenant, [collection])
        return await self._opened(collection)

    async def _changes(self, taken: Taken) -> tuple[EvidenceChange, ...]:
        """Return the changes of the passages that the last answer cites."""
        answer, index = taken.answer, (await self._service(taken)).index
        assert answer is not None
        return await to_thread.run_sync(lambda: Changes(index).of(answer))

    def _failed(self, error: ErrorBody) -> dict[str, Any]:
        told = public(error, advice=self._store.advice)
        return {"error": f"{told.type}: {told.message}"}

    async def _record(
        self,
        taken: Taken,
        fields: Mapping[str, Any],
        look: int | None = None,
        change: WatchChange | None = None,
    ) -> bool:
        """Record the result of a look; the next one is at a time in milliseconds, or else at the next check."""
        return await self._watches.step(
            taken,
            {**fields, "next": taken.next},
            look=taken.next if look is None else look,
            change=change,
        )
