"""Watches of all tenants in Redis."""

from __future__ import annotations

import json
from collections.abc import Awaitable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any, cast

from orchestrator.ingest.live.request import LiveRequest
from orchestrator.jobs.store import RETENTION, JobStore
from orchestrator.question.request import JobRequest
from posology.errors import InvalidQuery, WatchEnded, WatchNotFound
from posology.published.watches.forms import WatchAnswer, WatchChange, WatchOutput, WatchSummary
from posology.store import keys
from posology.store.connection import translated
from posology.types import WatchState

#: watches of a tenant that have not ended, and ended ones that are kept
MAX_WATCHES = 100
#: changes of a watch that are kept
MAX_CHANGES = 20
#: seconds for which no other process looks at a watch that is taken, and between two looks at its job
LOOK = 30.0
#: fields of a record that a list needs
_LISTED = (
    "id", "request", "every", "state", "created", "next", "checked", "changed", "asked", "fetch", "job", "error",
)  # fmt: skip


@dataclass(frozen=True, kw_only=True, slots=True)
class Taken:
    """A watch that this process looks at now."""

    tenant: str
    #: its record
    record: Mapping[str, str]
    #: time at which it was taken, milliseconds
    now: int

    @property
    def id(self) -> str:
        """Its id."""
        return self.record["id"]

    @property
    def job(self) -> str | None:
        """Id of the job that asks its question now; ``None``: none does."""
        return self.record.get("job")

    @property
    def live(self) -> LiveRequest | None:
        """Literature that is fetched before each check; ``None``: none is."""
        raw = self.record.get("live")
        return None if raw is None else LiveRequest.model_validate_json(raw)

    @property
    def fetch(self) -> str | None:
        """Id of the ingest that fetches it now; ``None``: none does."""
        return self.record.get("fetch")

    @property
    def fetched(self) -> datetime | None:
        """Time of the check with its last fetch that succeeded; ``None``: none has."""
        raw = self.record.get("fetched")
        return None if raw is None else keys.at(raw)

    @property
    def asked(self) -> int:
        """Number of attempts to ask that have ended."""
        return int(self.record["asked"])

    @property
    def request(self) -> JobRequest:
        """The request of its jobs."""
        return JobRequest.model_validate_json(self.record["request"])

    @property
    def key(self) -> str:
        """Idempotency key of its next job: the same until the end of that job is recorded, so a repeated step is paid once."""
        return f"{self.id}:{self.asked}"

    @property
    def answer(self) -> WatchAnswer | None:
        """Its last answer; ``None``: none yet."""
        raw = self.record.get("answer")
        return None if raw is None else WatchAnswer.model_validate_json(raw)

    @property
    def seen(self) -> Mapping[str, str]:
        """Digests of the first passages for its last answer, by id."""
        found: dict[str, str] = json.loads(self.record["seen"])
        return found

    @property
    def next(self) -> int:
        """Time of the first planned check that is yet to come, milliseconds: missed ones are left out."""
        first, every = int(self.record["next"]), int(self.record["every"])
        return first if first > self.now else first + ((self.now - first) // every + 1) * every


class WatchStore:
    """Watches of all tenants.

    Args:
        store: the job store: a change queues its webhook messages in the same step.
    """

    def __init__(self, store: JobStore) -> None:
        self._store = store

    async def create(
        self, request: JobRequest, every: int, *, tenant: str, live: LiveRequest | None = None
    ) -> tuple[WatchOutput, bool]:
        """Create a watch, unless the tenant has the same one; return it, and whether it is new.

        Args:
            request: with its defaults filled in.
            every: seconds from one check to the next.
            tenant: name of the tenant.
            live: literature to fetch before each check; ``None``: none.

        Raises:
            InvalidQuery: the tenant has :data:`MAX_WATCHES`, none of its jobs is the parent, or literature cannot be
                fetched for the parent's collection.
            CollectionNotFound: the tenant may not read the collection.
            StoreUnavailable: Redis is unreachable.
        """
        if request.parent or request.collection:
            from orchestrator.jobs.conversations import completed

            # now, since the record of the parent expires
            whole = await completed(request, tenant, self._store.get, self._store)
            request = whole.model_copy(update={"parent": None})
        if live is not None:
            live.of(request)
        body = request.model_dump_json(include=set(JobRequest.model_fields))
        watch = keys.new_id("watch")
        # before it, so that none is unseen
        await self._list(tenant)
        verdict, known = await self._store.run(
            "put_watch", keys.prefix(tenant), watch, body, every * 1000, MAX_WATCHES,
            "" if live is None else live.model_dump_json(),
        )  # fmt: skip
        # and after it: a sweep that looked in between has dropped the tenant
        await self._list(tenant)
        if verdict == "full":
            raise InvalidQuery(
                f"{tenant} has {MAX_WATCHES} watches, which is the maximum: end one",
                field="question",
            )
        # the script may be repeated when its reply is lost: our own id is known then
        return await self.get(known, tenant=tenant), verdict == "created" or known == watch

    async def all(self, *, tenant: str) -> tuple[WatchSummary, ...]:
        """Return the watches of a tenant, oldest first.

        Raises:
            StoreUnavailable: Redis is unreachable.
        """
        prefix = keys.prefix(tenant)
        with translated(self._store.url):
            ids = await self._store.redis.zrange(f"{prefix}watches", 0, -1)
            async with self._store.redis.pipeline(transaction=False) as pipe:
                for watch in sorted(cast("list[str]", ids)):
                    pipe.hmget(f"{prefix}watch:{watch}", _LISTED)
                found = await pipe.execute()
        records = ({n: v for n, v in zip(_LISTED, some, strict=True) if v} for some in found)
        return tuple(WatchSummary(**_shared(one, tenant)) for one in records if one)

    async def get(self, watch: str, *, tenant: str) -> WatchOutput:
        """Return a watch.

        Raises:
            WatchNotFound: the tenant has no such watch, or its record has expired.
            StoreUnavailable: Redis is unreachable.
        """
        redis, name = self._store.redis, self._key(watch, tenant)
        with translated(self._store.url):
            record = await cast("Awaitable[dict[str, str]]", redis.hgetall(name))
            listed = await cast("Awaitable[list[str]]", redis.lrange(f"{name}:changes", 0, -1))
        if not record:
            raise _missing(watch)
        taken = Taken(tenant=tenant, record=record, now=0)
        return WatchOutput(
            **_shared(record, tenant),
            request=taken.request.model_dump(mode="json"),
            live=None if taken.live is None else taken.live.model_dump(mode="json"),
            answer=taken.answer,
            changes=tuple(map(WatchChange.model_validate_json, listed)),
        )

    async def turn(self, watch: str, state: WatchState, *, tenant: str) -> WatchOutput:
        """Pause, resume or end a watch, and return it. A job under way goes on.

        Raises:
            WatchNotFound: the tenant has no such watch, or its record has expired.
            WatchEnded: it has ended, and is to be paused or resumed.
            StoreUnavailable: Redis is unreachable.
        """
        self._key(watch, tenant)
        kept = int(RETENTION * 1000)
        before = await self._store.run(
            "turn_watch", keys.prefix(tenant), watch, state.value, kept, MAX_WATCHES
        )
        if before == "":
            raise _missing(watch)
        if before == WatchState.ENDED and state is not WatchState.ENDED:
            raise WatchEnded(f"watch {watch} has ended: create another", watch=watch)
        return await self.get(watch, tenant=tenant)

    async def tenants(self) -> list[str]:
        """Return the tenants that may have watches, sorted.

        Raises:
            StoreUnavailable: Redis is unreachable.
        """
        with translated(self._store.url):
            found = self._store.redis.smembers(keys.WATCHES)
            return sorted(await cast("Awaitable[set[str]]", found))

    async def due(self, tenant: str) -> list[str]:
        """Return the ids of watches that are due, the earliest first; a tenant without watches is dropped from the list.

        Raises:
            StoreUnavailable: Redis is unreachable.
        """
        exist, *due = await self._store.run("due_watches", keys.prefix(tenant))
        if not exist:
            redis = self._store.redis
            with translated(self._store.url):
                await redis.srem(keys.WATCHES, tenant)
                # read after the removal: a watch that is created later adds the tenant after itself, too
                if await redis.exists(f"{keys.prefix(tenant)}watches"):
                    await self._list(tenant)
        return cast("list[str]", due)

    async def take(self, watch: str, *, tenant: str) -> Taken | None:
        """Take a watch that is due; ``None``: another process has taken it, or it is paused or ended.

        Raises:
            StoreUnavailable: Redis is unreachable; it is due again after :data:`LOOK`.
        """
        prefix = keys.prefix(tenant)
        found = await self._store.run("take_watch", prefix, watch, int(LOOK * 1000))
        if not found:
            return None
        now, *flat = found
        record = dict(zip(flat[::2], flat[1::2], strict=True))
        return Taken(tenant=tenant, record=record, now=int(now))

    async def step(
        self,
        taken: Taken,
        fields: Mapping[str, Any],
        *,
        look: int,
        change: WatchChange | None = None,
    ) -> bool:
        """Record the result of a look; return false where the watch was taken again, paused or ended meanwhile.

        Args:
            taken: the watch.
            fields: of its record; ``None``: removed.
            look: time of the next look, milliseconds.
            change: difference of a new answer; ``None``: there is none.

        Raises:
            StoreUnavailable: Redis is unreachable.
        """
        written = {name: False if value is None else str(value) for name, value in fields.items()}
        done = await self._store.run(
            "step_watch",
            keys.prefix(taken.tenant),
            taken.id,
            taken.record["step"],
            json.dumps(written),
            look,
            "" if change is None else change.model_dump_json(),
            "" if change is None else json.dumps(_told(taken.id, change)),
            MAX_CHANGES,
        )
        return bool(done)

    async def _list(self, tenant: str) -> None:
        with translated(self._store.url):
            await self._store.redis.sadd(keys.WATCHES, tenant)

    def _key(self, watch: str, tenant: str) -> str:
        # an id with a colon would name the key beside a record
        if not watch.isascii() or not watch.replace("_", "").isalnum():
            raise _missing(watch)
        return f"{keys.prefix(tenant)}watch:{watch}"


def _shared(record: Mapping[str, str], tenant: str) -> dict[str, Any]:
    def time(name: str) -> Any:
        return keys.at(record[name]) if name in record else None

    state = WatchState(record["state"])
    return {
        "id": record["id"],
        "tenant": tenant,
        "state": state,
        "question": json.loads(record["request"])["question"],
        "every_seconds": int(record["every"]) // 1000,
        "created": time("created"),
        "next": None if state is WatchState.ENDED else time("next"),
        "checked": time("checked"),
        "changed": time("changed"),
        "asked": int(record["asked"]),
        "fetch": record.get("fetch"),
        "job": record.get("job"),
        "error": record.get("error"),
    }


def _told(watch: str, change: WatchChange) -> dict[str, Any]:
    """Return what a webhook message says of a change: ids and numbers."""
    return {
        "watch": watch,
        "job": change.job,
        "status": change.status,
        "verdict_changed": (change.status, change.choice)
        != (change.status_before, change.choice_before),
        "sources_new": len(change.sources_new),
        "sources_gone": len(change.sources_gone),
        "conflicts_new": len(change.conflicts_new),
        "conflicts_gone": len(change.conflicts_gone),
        "evidence": len(change.evidence),
    }


def _missing(watch: str) -> WatchNotFound:
    return WatchNotFound(f"there is no watch {watch}, or its record has expired", watch=watch)
