"""Delivers the messages of webhooks.

Any worker delivers any message. A message is in Redis from the event on; a worker that takes it has it for a while, so
that one that dies leaves it to the next, with the same id: it may arrive twice, and is never lost.
"""

from __future__ import annotations

import logging
import random
import time
from collections.abc import Awaitable, Callable, Coroutine, Sequence
from contextlib import suppress
from functools import partial
from typing import Any
from urllib.parse import urlsplit

import anyio
from anyio.abc import TaskGroup

from orchestrator.logs.events import note
from orchestrator.webhooks.delivery import TIMEOUT, Delivery, Result
from orchestrator.webhooks.outbox import Due, Outbox, Place
from orchestrator.webhooks.signing import headers
from posology.errors import StoreUnavailable
from posology.published.webhooks.messages import WebhookEvent, message_of
from posology.store.keys import at

logger = logging.getLogger(__name__)

#: seconds between attempts at one message (Standard Webhooks 1.0.0, example schedule); then it is given up
SCHEDULE = (5.0, 300.0, 1_800.0, 7_200.0, 18_000.0, 36_000.0, 50_400.0, 72_000.0, 86_400.0)
#: a wait is longer by up to this fraction of it, so that messages that failed together are not all tried together
_JITTER = 0.1
#: seconds after an event when its message is given up although attempts are left: a queue may not let it come to them
PATIENCE = 5 * 86_400.0
#: seconds for which a worker has a message that it took
_LEASE = 4 * TIMEOUT
#: seconds for which an endpoint rests after a failure, and after many in a row
_HOLD = (1.0, 60.0)
#: messages of one endpoint that a process sends at the same time, and of all endpoints
_AT_ONCE, _ALL_AT_ONCE = 8, 128
#: seconds between two looks for messages
_PAUSE = 1.0
#: seconds between two looks at all endpoints, by one of all processes
_LOOK_AT_ALL = 30.0


class Sender:
    """Sends due messages of all tenants. A slow endpoint delays itself alone.

    Args:
        outbox: the messages.
        delivery: sends one request.
        pause: seconds between two looks.
        places: messages of all endpoints that are sent at the same time.
    """

    def __init__(
        self,
        outbox: Outbox,
        delivery: Delivery,
        *,
        pause: float = _PAUSE,
        places: int = _ALL_AT_ONCE,
    ) -> None:
        self._outbox = outbox
        self._delivery = delivery
        self._pause = pause
        self._busy: set[Place] = set()
        self._places = anyio.Semaphore(places)

    async def run(
        self, forever: Callable[[Callable[[], Awaitable[None]]], Coroutine[Any, Any, None]]
    ) -> None:
        """Send until cancelled.

        Args:
            forever: repeats a step; errors of Redis are its business.
        """
        async with anyio.create_task_group() as group:
            group.start_soon(forever, partial(self._look_at_all, group))
            await forever(partial(self._look, group))

    async def _look(self, group: TaskGroup) -> None:
        for place in await self._outbox.due():
            self._start(place, group)
        await anyio.sleep(self._pause)

    async def _look_at_all(self, group: TaskGroup) -> None:
        if await self._outbox.is_turn(_LOOK_AT_ALL):
            for tenant in await self._outbox.tenants():
                for place in await self._outbox.plan(tenant, held=max(_HOLD[1], _LEASE)):
                    self._start(place, group)
        await anyio.sleep(_LOOK_AT_ALL)

    def _start(self, place: Place, group: TaskGroup) -> None:
        if place not in self._busy:
            self._busy.add(place)
            group.start_soon(self._tend, place)

    async def _tend(self, place: Place) -> None:
        try:
            while await self.step(place):
                pass
        except StoreUnavailable as error:
            logger.warning("%s", error)
        except Exception:
            # one endpoint's damaged records must not stop the others' messages
            logger.exception(
                "internal error in webhooks tenant=%s webhook=%s", place.tenant, place.webhook
            )
        finally:
            self._busy.discard(place)

    async def step(self, place: Place) -> int:
        """Send some messages of an endpoint that are due, and return their number.

        A message is taken when there is a place for it: its lease does not run while it waits for one.

        Raises:
            StoreUnavailable: Redis is unreachable; what was taken is due again later.
        """
        held = await self._hold()
        try:
            due = await self._outbox.take(place, most=held, seconds=_LEASE, patience=PATIENCE)
            while held > len(due):
                self._places.release()
                held -= 1
            await self._send_all(place, due)
        finally:
            for _ in range(held):
                self._places.release()
        return len(due)

    async def _hold(self) -> int:
        """Wait for a place, and return how many were free."""
        await self._places.acquire()
        held = 1
        with suppress(anyio.WouldBlock):
            while held < _AT_ONCE:
                self._places.acquire_nowait()
                held += 1
        return held

    async def _send_all(self, place: Place, due: Sequence[Due]) -> None:
        failed: list[StoreUnavailable] = []

        async def send(message: Due) -> None:
            try:
                await self._send(place.tenant, message)
            except StoreUnavailable as error:
                failed.append(error)
            except Exception:
                # a damaged message must not stop the others; it is given up when it is too old
                logger.exception("internal error in webhooks message=%s", message.message)

        async with anyio.create_task_group() as group:
            for message in due:
                group.start_soon(send, message)
        if failed:
            raise failed[0]

    async def _send(self, tenant: str, due: Due) -> None:
        now = time.time()
        try:
            kind = WebhookEvent(due.type)
        except ValueError:
            await self._leave(tenant, due)
            return
        body = message_of(tenant, kind, at(due.at), due.data)
        signed = headers(due.endpoint.secrets(now), due.message, int(now), body)
        result = await self._delivery.post(due.endpoint.url, body, signed)
        outcome = _said(result, due.tries)
        settled = await self._outbox.settle(
            tenant,
            due,
            outcome,
            delay=_delay(due.tries, result),
            status=result.status,
            error=result.error,
            hold=_HOLD,
        )
        if not settled:
            return
        fields = {
            "tenant": tenant,
            "webhook": due.endpoint.id,
            "message": due.message,
            "type": due.type,
            # the rest of an address may hold a token
            "host": urlsplit(due.endpoint.url).hostname,
            "tries": due.tries,
            "status": result.status,
            "seconds": round(time.time() - now, 3),
        }
        if outcome == "delivered":
            note("webhook delivered", **fields)
        elif outcome == "again":
            note("webhook not delivered", logging.WARNING, **fields)
        else:
            note("webhook given up", logging.WARNING, **fields, disabled=outcome == "gone" or None)

    async def _leave(self, tenant: str, due: Due) -> None:
        """Leave a message to a newer version beside this one, or to this one's successor."""
        error = f"the workers' version does not know the type {due.type}"
        await self._outbox.settle(
            tenant, due, "unknown", delay=_LEASE, status=None, error=error, hold=_HOLD
        )
        note(
            "webhook of unknown type",
            logging.WARNING,
            tenant=tenant,
            webhook=due.endpoint.id,
            message=due.message,
            type=due.type,
        )


def _said(result: Result, tries: int) -> str:
    if result.delivered:
        return "delivered"
    if result.status == 410:
        return "gone"
    return "again" if tries <= len(SCHEDULE) else "failed"


def _delay(tries: int, result: Result) -> float:
    planned = SCHEDULE[min(tries, len(SCHEDULE)) - 1]
    asked = min(result.after or 0.0, SCHEDULE[-1])
    return max(planned, asked) * (1 + _JITTER * random.random())  # noqa: S311 - jitter
