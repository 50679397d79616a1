"""Endpoints and their queues of messages in Redis."""

from __future__ import annotations

import json
import time
from collections.abc import Awaitable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, cast

from orchestrator.jobs.tenants import Store
from orchestrator.webhooks.signing import new_secret
from orchestrator.webhooks.targets import Networks, check_url
from posology.errors import InvalidQuery, WebhookNotFound
from posology.published.webhooks.endpoints import WebhookFailure, WebhookFailures, WebhookOutput
from posology.published.webhooks.messages import DEFAULT_EVENTS, WebhookEvent
from posology.store import keys
from posology.store.connection import translated
from posology.store.keys import at

#: endpoints of a tenant
MAX_ENDPOINTS = 5
#: seconds for which the old secret signs, too, after a rotation, unless told otherwise, and at most
OVERLAP, MAX_OVERLAP = 24 * 3_600.0, 30 * 24 * 3_600.0
#: failures on one page
MAX_PAGE = 100
#: messages that one step queues again: a script blocks Redis
_AGAIN = 100
_KNOWN = frozenset(WebhookEvent)


@dataclass(frozen=True, kw_only=True, slots=True)
class Endpoint:
    """An endpoint as it is stored."""

    #: the record itself, JSON
    raw: str

    @property
    def _read(self) -> dict[str, Any]:
        found: dict[str, Any] = json.loads(self.raw)
        return found

    @property
    def id(self) -> str:
        """Its id."""
        return str(self._read["id"])

    @property
    def url(self) -> str:
        """Its address."""
        return str(self._read["url"])

    def secrets(self, now: float) -> list[str]:
        """Return the secrets that sign at a time, POSIX seconds; the newest first."""
        found = self._read["secrets"]
        return [one["secret"] for one in found if "until" not in one or now < one["until"]]

    def changed(self, **fields: Any) -> str:
        """Return the record with other fields."""
        return json.dumps({**self._read, **fields})

    def output(self, tenant: str, figures: Mapping[str, str]) -> WebhookOutput:
        """Return the published form.

        Args:
            tenant: its tenant.
            figures: that the scripts keep of it.
        """
        read = self._read
        tried, status, paused = (figures.get(name) for name in ("tried", "status", "paused"))
        return WebhookOutput(
            id=read["id"],
            tenant=tenant,
            url=read["url"],
            # a newer version beside this one may know more
            events=tuple(WebhookEvent(one) for one in read["events"] if one in _KNOWN),
            created=at(read["created"]),
            disabled=at(read["disabled"]) if "disabled" in read else None,
            paused=at(paused) if paused else None,
            secrets=len(self.secrets(time.time())),
            queued=int(figures.get("queued", 0)),
            delivered=int(figures.get("delivered", 0)),
            failed=int(figures.get("failed", 0)),
            tried=at(tried) if tried else None,
            status=int(status) if status else None,
            error=figures.get("said") or None,
        )


class WebhookStore:
    """Endpoints of all tenants, and their messages.

    Args:
        store: the job store: the scripts that end a job queue its messages in the same step.
        allowed: networks that endpoints may be in besides the public ones.
    """

    def __init__(self, store: Store, allowed: Networks = ()) -> None:
        self._store = store
        self._allowed = allowed

    async def create(
        self, url: str, *, tenant: str, events: Sequence[WebhookEvent] = DEFAULT_EVENTS
    ) -> tuple[WebhookOutput, str]:
        """Create an endpoint, and return it with its secret.

        Args:
            url: address that receives messages.
            tenant: name of the tenant.
            events: types of the messages that it receives.

        Raises:
            InvalidQuery: the address or an event is none, or the tenant has :data:`MAX_ENDPOINTS`.
            StoreUnavailable: Redis is unreachable.
        """
        await check_url(url, self._allowed)
        wanted = tuple(dict.fromkeys(events))
        if not wanted or WebhookEvent.TEST in wanted:
            raise InvalidQuery(
                "events: name at least one type other than webhook.test, which every endpoint receives",
                field="events",
            )
        webhook, secret = keys.new_id("wh"), new_secret()
        record = {
            "id": webhook,
            "url": url,
            "events": wanted,
            "secrets": [{"secret": secret}],
            "created": str(time.time_ns() // 1_000_000),
        }
        prefix = keys.prefix(tenant)
        raw = json.dumps(record)
        # before it, so that no message of it is without a sender
        await self._list(tenant)
        said = await self._store.run("put_webhook", prefix, webhook, raw, "", MAX_ENDPOINTS)
        # and after it: a sender that looked in between has dropped the tenant
        await self._list(tenant)
        if said == "full":
            raise InvalidQuery(
                f"url: {tenant} has {MAX_ENDPOINTS} endpoints, which is the maximum: delete one",
                field="url",
            )
        return Endpoint(raw=raw).output(tenant, {}), secret

    async def all(self, *, tenant: str) -> tuple[WebhookOutput, ...]:
        """Return the endpoints of a tenant, oldest first.

        Raises:
            StoreUnavailable: Redis is unreachable.
        """
        name = f"{keys.prefix(tenant)}webhooks"
        with translated(self._store.url):
            found = await cast("Awaitable[dict[str, str]]", self._store.redis.hgetall(name))
            if not found:
                return ()
            async with self._store.redis.pipeline(transaction=False) as pipe:
                for webhook in sorted(found):
                    pipe.hgetall(f"{keys.prefix(tenant)}webhook:{webhook}")
                figures = await pipe.execute()
        return tuple(
            Endpoint(raw=found[webhook]).output(tenant, some)
            for webhook, some in zip(sorted(found), figures, strict=True)
        )

    async def get(self, webhook: str, *, tenant: str) -> WebhookOutput:
        """Return an endpoint.

        Raises:
            WebhookNotFound: the tenant has no such endpoint.
            StoreUnavailable: Redis is unreachable.
        """
        found = [one for one in await self.all(tenant=tenant) if one.id == webhook]
        if not found:
            raise _missing(webhook)
        return found[0]

    async def delete(self, webhook: str, *, tenant: str) -> None:
        """Delete an endpoint and its messages.

        Raises:
            WebhookNotFound: the tenant has no such endpoint.
            StoreUnavailable: Redis is unreachable.
        """
        if not await self._store.run("delete_webhook", keys.prefix(tenant), webhook):
            raise _missing(webhook)

    async def rotate(
        self, webhook: str, *, tenant: str, overlap: float = OVERLAP
    ) -> tuple[WebhookOutput, str]:
        """Give an endpoint a new secret, and return both.

        Args:
            webhook: id of the endpoint.
            tenant: name of the tenant.
            overlap: seconds for which the secret of until now signs, too; 0: it leaked.

        Raises:
            InvalidQuery: ``overlap`` is negative or more than :data:`MAX_OVERLAP`.
            WebhookNotFound: the tenant has no such endpoint.
            StoreUnavailable: Redis is unreachable.
        """
        if not 0 <= overlap <= MAX_OVERLAP:
            raise InvalidQuery(
                f"overlap_seconds must be 0 to {MAX_OVERLAP:.0f} (got {overlap:g})",
                field="overlap_seconds",
            )
        secret = new_secret()
        now = time.time()

        def rotated(old: Endpoint) -> str:
            # at most two: a third would let a leaked one live on
            kept = [{"secret": one, "until": now + overlap} for one in old.secrets(now)[:1]]
            return old.changed(secrets=[{"secret": secret}, *(kept if overlap else [])])

        while True:
            old = await self._endpoint(webhook, tenant)
            said = await self._store.run(
                "put_webhook", keys.prefix(tenant), webhook, rotated(old), old.raw, MAX_ENDPOINTS
            )
            if said == "put":
                return await self.get(webhook, tenant=tenant), secret

    async def pause(self, webhook: str, *, tenant: str, paused: bool = True) -> WebhookOutput:
        """Let an endpoint's messages wait, or have them sent again, and return the endpoint.

        Args:
            webhook: id of the endpoint.
            tenant: name of the tenant.
            paused: whether they wait; an attempt under way still ends.

        Raises:
            WebhookNotFound: the tenant has no such endpoint.
            StoreUnavailable: Redis is unreachable.
        """
        prefix = keys.prefix(tenant)
        if not await self._store.run("pause_webhook", prefix, webhook, int(paused)):
            raise _missing(webhook)
        return await self.get(webhook, tenant=tenant)

    async def test(self, webhook: str, *, tenant: str) -> str:
        """Queue a test message for an endpoint, whatever its events are, and return its id.

        Raises:
            WebhookNotFound: the tenant has no such endpoint.
            StoreUnavailable: Redis is unreachable.
        """
        found = await self._store.run("test_webhook", keys.prefix(tenant), webhook)
        if not found:
            raise _missing(webhook)
        return str(found)

    async def redeliver(self, webhook: str, *, tenant: str) -> int:
        """Queue the messages that were given up again, oldest first, enable the endpoint, and return their number.

        Raises:
            WebhookNotFound: the tenant has no such endpoint.
            StoreUnavailable: Redis is unreachable.
        """
        queued = 0
        while True:
            some = int(await self._store.run("redeliver", keys.prefix(tenant), webhook, _AGAIN))
            if some < 0:
                raise _missing(webhook)
            queued += some
            if some < _AGAIN:
                return queued

    async def failures(
        self, webhook: str, *, tenant: str, after: int = -1, limit: int = MAX_PAGE
    ) -> WebhookFailures:
        """Return messages of an endpoint that were given up, newest first.

        Args:
            webhook: id of the endpoint.
            tenant: name of the tenant.
            after: ``next`` of the previous page; newer failures shift the pages.
            limit: maximum number, up to :data:`MAX_PAGE`.

        Raises:
            WebhookNotFound: the tenant has no such endpoint.
            StoreUnavailable: Redis is unreachable.
        """
        await self._endpoint(webhook, tenant)
        name = f"{keys.prefix(tenant)}webhook:{webhook}:failed"
        with translated(self._store.url):
            found = await cast(
                "Awaitable[list[str]]", self._store.redis.lrange(name, after + 1, after + limit)
            )
        return WebhookFailures(
            failures=tuple(one for raw in found if (one := _failure(raw)) is not None),
            next=after + limit if len(found) == limit else None,
        )

    async def _list(self, tenant: str) -> None:
        with translated(self._store.url):
            await self._store.redis.sadd(keys.WEBHOOKS, tenant)

    async def _endpoint(self, webhook: str, tenant: str) -> Endpoint:
        name = f"{keys.prefix(tenant)}webhooks"
        with translated(self._store.url):
            raw = await cast("Awaitable[str | None]", self._store.redis.hget(name, webhook))
        if raw is None:
            raise _missing(webhook)
        return Endpoint(raw=raw)


def _failure(raw: str) -> WebhookFailure | None:
    read = json.loads(raw)
    if read["type"] not in _KNOWN:
        return None
    return WebhookFailure(
        message=read["id"],
        type=WebhookEvent(read["type"]),
        timestamp=at(read["at"]),
        subject=read["subject"],
        tries=int(read["tries"]),
        failed=at(read["failed"]),
        status=read.get("status"),
        error=read["error"],
    )


def _missing(webhook: str) -> WebhookNotFound:
    return WebhookNotFound(f"there is no endpoint {webhook}", webhook=webhook)
