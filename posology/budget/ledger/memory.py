"""The ledger in memory: the same rules as in Redis, until the process ends."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from decimal import Decimal

from posology.budget.ledger import entries
from posology.budget.ledger.base import LEASE, Ledger, dollars, lease_of, nano
from posology.budget.ledger.refusals import refuse
from posology.budget.ledger.scripts import MODELS, OTHER, REMEMBERED
from posology.budget.ledger.tickets import Tickets
from posology.budget.ledger.windows import day_of, resets, window
from posology.store import keys as clock
from posology.store.keys import DEFAULT_TENANT
from posology.types import Attempt, Balance, Limits, Outcome, Reservation, Scope, Usage

_WINDOWS = (Scope.TOTAL, Scope.MONTH, Scope.DAY)
#: a word, and for a refusal the numbers that :func:`posology.budget.ledger.refusals.refuse` reads
_Reply = list[str | int]


@dataclass(slots=True)
class _Counter:
    """Spent and reserved nano-dollars of one window or run."""

    spent: int = 0
    reserved: int = 0
    #: cap of a run; the caps of windows are the tenant's
    cap: int | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class _Scope:
    """The balance of a capped scope, nano-dollars."""

    name: str
    cap: int
    spent: int
    #: spent or reserved
    taken: int

    @classmethod
    def of(cls, scope: Scope, cap: int, at: _Counter) -> _Scope:
        return cls(name=str(scope), cap=cap, spent=at.spent, taken=at.spent + at.reserved)


@dataclass(frozen=True, kw_only=True, slots=True)
class _Reserved:
    """A reservation that is open or orphaned."""

    nano: int
    #: end of its lease, or time when it was swept, ms
    at: int
    day: str
    job: str
    stage: str
    strategy: str
    model: str
    label: str
    #: service tier that it was sent in; at its end, that it is billed at
    tier: str
    #: the opening, JSON
    entry: str
    #: whether it is in a provider's batch
    batch: bool


@dataclass(frozen=True, kw_only=True, slots=True)
class _End:
    """The end of an attempt, reported or assumed."""

    kind: str
    outcome: str
    #: nano-dollars; ``None``: unknown
    cost: int | None = None
    input: int = 0
    output: int = 0
    #: service tier that it is billed at; ``None``: no reply named one
    served: str | None = None
    #: the attempt, JSON; ``None``: only its opening is known
    entry: str | None = None


class MemoryLedger(Ledger):
    """The ledger of a tenant whose only spender is this process.

    No await stands between a check and its effect, so one event loop needs no lock. It keeps all entries:
    use it for a command or a test, not for a service.

    Args:
        limits: of the tenant.
        tenant: name of the tenant, for messages.
        disabled: whether the tenant is disabled.
        lease: seconds until a reservation expires without an extension, see :func:`~posology.budget.ledger.base.lease_of`.
        floor: fewest tokens a second of a reply; ``None``: the lease covers every reply.
        clock: POSIX milliseconds.
    """

    def __init__(
        self,
        limits: Limits = Limits(),  # noqa: B008 - a frozen value
        *,
        tenant: str = DEFAULT_TENANT,
        disabled: bool = False,
        lease: float = LEASE,
        floor: float | None = None,
        clock: Callable[[], int] = lambda: time.time_ns() // 1_000_000,
    ) -> None:
        self.limits = limits
        self.tenant = tenant
        self.disabled = disabled
        #: number of calls that cost more than their bound
        self.over = 0
        self._lease = lease
        self._floor = floor
        self._clock = clock
        self._windows: dict[str, _Counter] = {}
        self._runs: dict[str, _Counter] = {}
        self._open: dict[str, _Reserved] = {}
        self._lost: dict[str, _Reserved] = {}
        self._models: set[str] = set()
        self._queue = Tickets()
        self._queues: dict[str, Tickets] = {}
        self._entries: list[Mapping[str, str]] = []

    @property
    def entries(self) -> tuple[Mapping[str, str], ...]:
        """The entries, with the fields of the Redis ledger's stream (decision 11)."""
        return tuple(self._entries)

    async def reserve(self, asked: Reservation) -> None:
        """See :meth:`Ledger.reserve`."""
        refuse(self._reserve(asked, self._clock()), asked.opening, self.tenant)

    async def settle(self, attempt: Attempt) -> None:
        """See :meth:`Ledger.settle`."""
        usage = attempt.usage or Usage()
        end = _End(
            kind="settle",
            outcome=attempt.outcome,
            cost=None if attempt.cost is None else nano(attempt.cost),
            input=usage.total_input,
            output=usage.total_output,
            served=attempt.served,
            entry=json.dumps(entries.ended(attempt)),
        )
        self._close(attempt.id, end)

    async def release(self, attempt: str) -> None:
        """See :meth:`Ledger.release`."""
        self._close(attempt, _End(kind="release", outcome="released", cost=0))

    async def leave(self, ticket: str, job: str) -> None:
        """See :meth:`Ledger.leave`."""
        self._leave(ticket, job)

    async def extend(self, attempts: Sequence[str]) -> int:
        """See :meth:`Ledger.extend`."""
        found = [attempt for attempt in attempts if attempt in self._open]
        for attempt in found:
            until = max(self._open[attempt].at, self._clock() + int(self._lease * 1000))
            self._open[attempt] = replace(self._open[attempt], at=until)
        return len(found)

    async def sweep(self) -> list[str]:
        """See :meth:`Ledger.sweep`."""
        now = self._clock()
        ended = sorted((o.at, id_) for id_, o in self._open.items() if o.at <= now)
        for _, id_ in ended:
            self._close(id_, _End(kind="lose", outcome=Outcome.LOST))
        for id_ in [id_ for id_, o in self._lost.items() if o.at <= now - REMEMBERED]:
            del self._lost[id_]
        return [id_ for _, id_ in ended]

    async def job_limit(self) -> Decimal | None:
        """See :meth:`Ledger.job_limit`."""
        return self.limits.job

    async def balances(self, job: str | None = None) -> tuple[Balance, ...]:
        """See :meth:`Ledger.balances`."""
        now = self._clock()
        at, day = clock.at(now), day_of(clock.at(now))
        found = []
        for scope in reversed(_WINDOWS):
            counter = self._windows.get(window(scope, day), _Counter())
            found.append(_balance(scope, self._cap(scope), counter, resets(scope, at)))
        if job is not None:
            own = self._runs.get(job, _Counter())
            found.append(_balance(Scope.JOB, own.cap, own, None))
        return tuple(found)

    def _reserve(self, asked: Reservation, now: int) -> _Reply:
        opening, n, own = asked.opening, nano(asked.opening.reserved), self._run(asked)
        if opening.id in self._open or opening.id in self._lost:
            return ["reserved"]
        refused = self._refused(opening.model, n, own, now)
        if refused is not None:
            self._leave(asked.ticket, asked.job)
            return refused
        busy = self._busy(asked, n, own, now)
        if busy is not None:
            return busy
        self._leave(asked.ticket, asked.job)
        held = _Reserved(
            nano=n,
            at=now + int(lease_of(opening, self._lease, self._floor) * 1000),
            day=day_of(clock.at(now)),
            job=asked.job,
            stage=opening.stage,
            strategy=opening.strategy,
            model=opening.model,
            label=OTHER,
            tier=opening.tier,
            entry=json.dumps(entries.opened(opening) | {"call": asked.call}),
            batch=asked.batch,
        )
        self._open[opening.id] = held
        self._count(held, n, 0)
        self._enter("reserve", opening.id, held, now, n, 0)
        return ["reserved"]

    def _refused(self, model: str, n: int, own: _Counter, now: int) -> _Reply | None:
        """Return the refusal that no end of an in-flight call can lift; ``None``: there is none."""
        if self.disabled:
            return ["disabled"]
        allowed = self.limits.models
        if allowed is not None and not {model, f"{model.partition(':')[0]}:*"} & set(allowed):
            return ["model"]
        for short in (*self._scopes(n, now), *_of_the_run(n, own)):
            if short.spent + n > short.cap:
                return ["exhausted", *_numbers(short, now)]
        return None

    def _busy(self, asked: Reservation, n: int, own: _Counter, now: int) -> _Reply | None:
        """Return the refusal while in-flight calls or earlier tickets hold the rest, and queue the ticket."""
        ticket, theirs = asked.ticket, self._of(asked.job)
        for mine in _of_the_run(n, own):
            if mine.taken + n > mine.cap or theirs.behind(ticket, now):
                self._queue.leave(ticket)
                return ["busy", *_numbers(mine, now), theirs.enqueue(ticket, now)]
        scopes, calls, refusal = self._scopes(n, now), self.limits.calls, None
        under_way = sum(not held.batch for held in self._open.values())
        short = next((scope for scope in scopes if scope.taken + n > scope.cap), None)
        if short is not None:
            refusal = _numbers(short, now)
        # what a provider does within a day keeps no connection
        elif calls is not None and not asked.batch and under_way >= calls:
            refusal = ["calls", calls, 0, under_way, ""]
        elif ((calls is not None and not asked.batch) or scopes) and self._queue.behind(
            ticket, now
        ):
            refusal = ["turn", 0, 0, 0, ""]
        if refusal is None:
            return None
        theirs.leave(ticket)
        return ["busy", *refusal, self._queue.enqueue(ticket, now)]

    def _scopes(self, n: int, now: int) -> list[_Scope]:
        """Return the tenant's scopes that limit an amount."""
        if n == 0:
            return []  # a free call waits for no budget
        day = day_of(clock.at(now))
        found = ((s, self._cap(s), self._windows.get(window(s, day))) for s in _WINDOWS)
        return [_Scope.of(s, cap, at or _Counter()) for s, cap, at in found if cap is not None]

    def _close(self, id_: str, end: _End) -> None:
        now, held, was = self._clock(), self._open.pop(id_, None), 0
        kind, charged = end.kind, end.cost
        if held is None:
            if id_ not in self._lost or kind == "lose":
                return
            held = self._lost.pop(id_)
            was, kind = held.nano, "correct"
        else:
            replied = end.outcome == Outcome.OK
            label = self._label(held.model, replied=replied)
            held = replace(held, label=label, tier=end.served or held.tier)
        if charged is None:
            charged = held.nano
        freed = 0 if kind == "correct" else -held.nano
        self._count(held, freed, charged - was)
        if charged > held.nano:
            self.over += 1
        if kind == "lose":
            self._lost[id_] = replace(held, at=now)
        self._enter(
            kind,
            id_,
            held,
            now,
            freed,
            charged - was,
            bound=held.nano,
            charged=charged,
            known=int(end.cost is not None),
            outcome=end.outcome,
            stage=held.stage,
            strategy=held.strategy,
            model=held.model,
            label=held.label,
            tier=held.tier,
            input=end.input,
            output=end.output,
            entry=end.entry or held.entry,
        )

    def _enter(
        self,
        kind: str,
        id_: str,
        held: _Reserved,
        now: int,
        reserved: int,
        spent: int,
        **more: str | int,
    ) -> None:
        changed: dict[str, str | int] = {"reserved": reserved, "spent": spent}
        known = {"kind": kind, "id": id_, "at": now, "job": held.job, "day": held.day}
        self._entries.append({k: str(v) for k, v in (known | changed | more).items()})

    def _count(self, held: _Reserved, reserved: int, spent: int) -> None:
        counters = [self._windows.setdefault(window(s, held.day), _Counter()) for s in _WINDOWS]
        for counter in (*counters, self._runs[held.job]):
            counter.reserved += reserved
            counter.spent += spent

    def _run(self, asked: Reservation) -> _Counter:
        if asked.job not in self._runs:
            caps = [cap for cap in (asked.cap, self.limits.job) if cap is not None]
            self._runs[asked.job] = _Counter(cap=nano(min(caps)) if caps else None)
        return self._runs[asked.job]

    def _of(self, job: str) -> Tickets:
        return self._queues.setdefault(job, Tickets())

    def _leave(self, ticket: str, job: str) -> None:
        self._queue.leave(ticket)
        self._of(job).leave(ticket)

    def _label(self, model: str, *, replied: bool) -> str:
        if replied and len(self._models) < MODELS:
            self._models.add(model)
        return model if model in self._models else OTHER

    def _cap(self, scope: Scope) -> int | None:
        cap = getattr(self.limits, scope)
        return None if cap is None else nano(cap)


def _of_the_run(n: int, own: _Counter) -> list[_Scope]:
    return [] if n == 0 or own.cap is None else [_Scope.of(Scope.JOB, own.cap, own)]


def _numbers(scope: _Scope, now: int) -> _Reply:
    at = resets(scope.name, clock.at(now))
    over = "" if at is None else round(at.timestamp() * 1000)
    return [scope.name, scope.cap, scope.spent, scope.taken - scope.spent, over]


def _balance(scope: Scope, cap: int | None, counter: _Counter, at: datetime | None) -> Balance:
    return Balance(
        scope=scope,
        cap=None if cap is None else dollars(cap),
        spent=dollars(counter.spent),
        reserved=dollars(counter.reserved),
        resets=at,
    )
