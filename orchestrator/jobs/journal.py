"""The account of a job's model calls in Redis, and the replies that they were given."""

from __future__ import annotations

import json
from dataclasses import fields
from decimal import ROUND_CEILING, Decimal

import anyio

from orchestrator.jobs import keys
from orchestrator.jobs.connection import translated
from orchestrator.jobs.records import NANO
from orchestrator.jobs.units import Held
from orchestrator.jobs.work import WorkStore, refuse
from posology.errors import StoreUnavailable
from posology.types import Attempt, Completion, Finish, Opening, Usage

#: seconds for which the end of an attempt is told again and again to a store that is out of reach: what
#: was spent must not be forgotten
PATIENCE = 300.0
_OPENING, _COMPLETION, _USAGE = (
    tuple(field.name for field in fields(kind)) for kind in (Opening, Completion, Usage)
)


class JobJournal:
    """A :class:`~posology.seams.Journal` for one held unit, and the :class:`~posology.seams.Recall` of its job.

    Every attempt is written down before it is sent, which is also where it is refused once the job is
    cancelled, over its time, or another worker's. How it ended is written down whoever holds the unit
    by then: the money is spent.
    """

    def __init__(self, work: WorkStore, held: Held) -> None:
        self._work = work
        self._held = held
        self._prefix = keys.prefix(held.unit.tenant)

    async def open(self, opening: Opening) -> int:
        """Write down an attempt before it is sent.

        Raises:
            JobCancelled: the job was cancelled.
            JobExpired: its deadline passed.
            JobSuperseded: the unit is another worker's by now.
            StoreUnavailable: Redis is out of reach, so nothing is spent.
        """
        unit = self._held.unit
        said, *rest = await self._work.store.run(
            "open_attempt",
            self._prefix,
            unit.job,
            unit.name,
            self._held.token,
            _opening(opening),
        )
        refuse(self._held, said)
        return int(rest[0])

    async def close(self, attempt: Attempt, completion: Completion | None) -> None:
        """Write down how an attempt ended.

        Raises:
            StoreUnavailable: Redis was out of reach for :data:`PATIENCE` seconds. The attempt stands
                as opened, and will be taken for billed, amount unknown.
        """
        usage = attempt.usage or Usage()
        closing = {
            "outcome": attempt.outcome,
            "error": attempt.error,
            "usage": _usage(attempt.usage),
            "cost": str(attempt.cost) if attempt.cost is not None else None,
            "latency": round(attempt.latency, 6),
            "request_id": attempt.request_id,
        }
        arguments = (
            self._held.unit.job,
            attempt.id,
            attempt.outcome,
            json.dumps(closing),
            "" if attempt.cost is None else nano(attempt.cost),
            usage.total_input,
            usage.total_output,
            round(attempt.latency * 1000),
            "" if completion is None else _reply(completion),
        )
        give_up = anyio.current_time() + PATIENCE
        while True:
            try:
                await self._work.store.run("close_attempt", self._prefix, *arguments)
            except StoreUnavailable:
                if anyio.current_time() >= give_up:
                    raise
                await anyio.sleep(1.0)
            else:
                return

    async def recall(self, key: str, /) -> Completion | None:
        """The reply that a call of the same content had earlier in this job.

        Raises:
            StoreUnavailable: Redis is out of reach.
        """
        if self._held.fresh:
            return None
        name = f"{self._prefix}job:{self._held.unit.job}:memo"
        with translated(self._work.store.url):
            found = await self._work.store.redis.hget(name, key)
        return None if found is None else _replayed(found)


def nano(cost: Decimal) -> int:
    """Nano-dollars, rounded up: a counter may say too much by less than one, never too little."""
    return int((cost * NANO).to_integral_value(ROUND_CEILING))


# Written out and not by `asdict`, which copies every value deeply, at every call of every job.


def _opening(opening: Opening) -> str:
    prompt = {"name": opening.prompt.name, "digest": opening.prompt.digest}
    return json.dumps({field: getattr(opening, field) for field in _OPENING} | {"prompt": prompt})


def _usage(usage: Usage | None) -> dict[str, int] | None:
    return None if usage is None else {field: getattr(usage, field) for field in _USAGE}


def _reply(completion: Completion) -> str:
    # the structure is read from the text again, by whoever replays it
    plain = {field: getattr(completion, field) for field in _COMPLETION}
    return json.dumps(plain | {"usage": _usage(completion.usage), "parsed": None})


def _replayed(stored: str | bytes) -> Completion:
    found = json.loads(stored)
    usage = found.pop("usage")
    return Completion(
        **found | {"finish": Finish(found["finish"])},
        usage=None if usage is None else Usage(**usage),
    )
