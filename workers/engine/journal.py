"""The account of a job's model calls in Redis, and their stored replies."""

from __future__ import annotations

import json
import logging
from dataclasses import fields

from orchestrator.logs.events import note, refusals, usd
from orchestrator.logs.texts import of_attempt
from posology.budget.ledger import entries
from posology.budget.ledger.base import nano
from posology.budget.ledger.journal import until_recorded
from posology.budget.ledger.redis import GONE, log_missing
from posology.budget.ledger.refusals import refuse as refuse_to_pay
from posology.llm.memo import Answered
from posology.store import keys
from posology.store.connection import translated
from posology.types import Attempt, Completion, Finish, Opening, Outcome, Usage
from workers.engine.claims import WorkStore, raise_if_refused
from workers.engine.units import ClaimedUnit

_COMPLETION = tuple(field.name for field in fields(Completion))


class JobJournal:
    """A :class:`~posology.seams.Journal` for one claimed unit, and the :class:`~posology.seams.Recall` of its job.

    Every attempt is recorded before it is sent; it is refused once the job is cancelled, past its deadline, or another
    worker's. Its end is recorded even if another worker has claimed the unit by then, since the money is spent.
    """

    def __init__(self, work: WorkStore, claimed: ClaimedUnit) -> None:
        self._work = work
        self._claimed = claimed
        self._prefix = keys.prefix(claimed.unit.tenant)

    async def open(self, opening: Opening) -> int:
        """Reserve the worst case of an attempt and record it, before it is sent.

        Raises:
            Answered: the reply of a worker that was taken for lost came late; nothing is reserved.
            BudgetError: the limits of the tenant or of the job do not allow it, or not yet.
            JobCancelled: the job was cancelled.
            JobExpired: its deadline passed.
            JobSuperseded: the unit is another worker's.
            StoreUnavailable: Redis is unreachable, so nothing is spent.
        """
        unit = self._claimed.unit
        reply = await self._work.store.run(
            "open_attempt",
            self._prefix,
            unit.job,
            unit.name,
            self._claimed.token,
            json.dumps(entries.opened(opening)),
            nano(opening.reserved),
        )
        raise_if_refused(self._claimed, reply[0])
        if reply[0] == "answered":
            raise Answered(_replayed(reply[1]))
        with refusals(**self._claimed.ids, attempt=opening.id, model=opening.model):
            refuse_to_pay(reply, opening, unit.tenant)
        return int(reply[1])

    async def close(self, attempt: Attempt, completion: Completion | None) -> None:
        """Record how an attempt ended.

        Raises:
            StoreUnavailable: Redis was unreachable for :data:`~posology.budget.ledger.journal.SETTLE_TIMEOUT` seconds.
                The reservation is orphaned and will be settled as billed-unknown.
        """
        usage = attempt.usage or Usage()
        arguments = (
            self._claimed.unit.job,
            attempt.id,
            attempt.outcome,
            json.dumps(entries.ended(attempt)),
            "" if attempt.cost is None else nano(attempt.cost),
            usage.total_input,
            usage.total_output,
            round(attempt.latency * 1000),
            "" if completion is None else _reply(completion),
        )
        reply = await until_recorded(
            lambda: self._work.store.run("close_attempt", self._prefix, *arguments)
        )
        if reply == [GONE, GONE]:
            log_missing(attempt)
        sent = attempt.outcome in (Outcome.OK, Outcome.UNUSABLE)
        failed = attempt.outcome is Outcome.FAILED
        note(
            "attempt settled" if sent else f"attempt {attempt.outcome}",
            logging.WARNING if failed else logging.INFO,
            of_attempt(attempt.id, attempt.stage, completion),
            **self._claimed.ids,
            attempt=attempt.id,
            call=attempt.call,
            stage=attempt.stage,
            model=attempt.model,
            tier=attempt.tier,
            served=attempt.served,
            outcome=attempt.outcome,
            error=attempt.error,
            charged_usd=usd(attempt.charged),
            tokens_in=usage.total_input,
            tokens_out=usage.total_output,
            seconds=round(attempt.latency, 3),
            provider_request=attempt.request_id,
            answered_by=None if completion is None else completion.served_model,
            finish=None if completion is None else completion.finish,
        )

    async def recall(self, key: str, /) -> Completion | None:
        """Return the stored reply to a call of the same content in this job; ``None``: there is none.

        Raises:
            StoreUnavailable: Redis is unreachable.
        """
        if self._claimed.fresh:
            return None
        name = f"{self._prefix}job:{self._claimed.unit.job}:memo"
        with translated(self._work.store.url):
            found = await self._work.store.redis.hget(name, key)
        return None if found is None else _replayed(found)


def _reply(completion: Completion) -> str:
    # a replay parses the text again
    plain = {field: getattr(completion, field) for field in _COMPLETION}
    return json.dumps(plain | {"usage": entries.usage(completion.usage), "parsed": None})


def _replayed(stored: str | bytes) -> Completion:
    found = json.loads(stored)
    usage = found.pop("usage")
    return Completion(
        **found | {"finish": Finish(found["finish"])},
        usage=None if usage is None else Usage(**usage),
    )
