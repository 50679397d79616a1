"""What the ledger promises, in plain Python: no counters, only what became of each attempt."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from datetime import UTC, datetime

from tests.integration.ledger.helpers import names

#: ms
QUEUED, REMEMBERED = 5_000, 86_400_000


@dataclass(kw_only=True, slots=True)
class Try:
    """One attempt."""

    id: str
    run: str
    bound: int
    day: str
    #: when its lease ends, ms
    lease: int
    #: ``open``, ``settled``, ``released`` or ``lost``; then it may still be told of
    state: str = "open"
    charged: int = 0
    #: when it was lost, ms
    lost: int | None = None
    corrected: bool = False

    @property
    def reserved(self) -> int:
        return self.bound if self.state == "open" else 0

    @property
    def last_word(self) -> str:
        words = {"open": "reserve", "settled": "settle", "released": "release", "lost": "lose"}
        return "correct" if self.corrected else words[self.state]


@dataclass(kw_only=True, slots=True)
class Waiter:
    """A ticket in a queue."""

    ticket: str
    #: ``None``: the tenant's queue
    run: str | None
    seen: int


@dataclass(kw_only=True, slots=True)
class Model:
    """A tenant's attempts, caps in nano-dollars, and who waits."""

    caps: dict[str, int]
    #: of runs
    own: dict[str, int | None]
    calls: int | None
    tries: dict[str, Try] = field(default_factory=dict)
    #: in the order in which they came
    waiters: list[Waiter] = field(default_factory=list)

    def scopes(self, run: str, day: str) -> dict[str, tuple[str, int]]:
        """The window and the cap of every scope that limits a run's call."""
        windows = {"total": "total", "month": f"month:{day[:7]}", "day": f"day:{day}"}
        found = {scope: (windows[scope], cap) for scope, cap in self.caps.items()}
        own = self.own[run]
        return found if own is None else found | {"job": (run, own)}

    def sums(self, of: str) -> tuple[int, int]:
        """What is spent and what is reserved in a window or by a run."""
        found = [t for t in self.tries.values() if of in windows(t)]
        return sum(t.charged for t in found), sum(t.reserved for t in found)

    def counters(self) -> Counter[str]:
        every = {of for t in self.tries.values() for of in windows(t)}
        found: Counter[str] = Counter()
        for of in every:
            for name, n in zip(names(of), self.sums(of), strict=True):
                if n:
                    found[name] = n
        over = sum(t.charged > t.bound for t in self.tries.values())
        return found + Counter(over=over)

    def too_dear(self, run: str, n: int, day: str) -> set[str]:
        """The scopes that do not pay for it any more."""
        scopes = self.scopes(run, day).items() if n else ()
        return {scope for scope, (of, cap) in scopes if self.sums(of)[0] + n > cap}

    def held(self, run: str, n: int, day: str) -> set[str]:
        """The scopes in which calls under way hold what it needs."""
        scopes = self.scopes(run, day).items() if n else ()
        found = {scope for scope, (of, cap) in scopes if sum(self.sums(of)) + n > cap}
        if self.calls is not None and len(self.open) >= self.calls:
            found.add("calls")
        return found

    def before(self, ticket: str, run: str, n: int, now: int) -> set[str]:
        """Tickets that wait still, and are to be served before this one."""
        limited = (self.caps and n) or self.calls is not None
        queues: set[str | None] = {None} if limited else set()
        if n and self.own[run] is not None:
            queues.add(run)
        found = set()
        for queue in queues:
            for waiter in self.waiters:
                if waiter.run != queue:
                    continue
                if waiter.ticket == ticket:
                    break
                if now - waiter.seen < QUEUED:
                    found.add(waiter.ticket)
        return found

    @property
    def open(self) -> list[Try]:
        return [t for t in self.tries.values() if t.state == "open"]

    def wait(self, ticket: str, run: str | None, now: int) -> None:
        for waiter in self.waiters:
            if waiter.ticket == ticket and waiter.run == run:
                waiter.seen = now
                return
        self.leave(ticket)
        self.waiters.append(Waiter(ticket=ticket, run=run, seen=now))

    def leave(self, ticket: str) -> None:
        self.waiters = [waiter for waiter in self.waiters if waiter.ticket != ticket]

    def bury(self, now: int) -> None:
        """Forget who has left: whoever asks again after that is the last."""
        self.waiters = [waiter for waiter in self.waiters if now - waiter.seen < QUEUED]

    def settle(self, attempt: str, cost: int | None) -> None:
        t = self.tries[attempt]
        if t.state == "open" or t.lost is not None:
            t.corrected = t.state == "lost"
            t.state, t.lost = "settled", None
            t.charged = t.bound if cost is None else cost

    def release(self, attempt: str) -> None:
        t = self.tries[attempt]
        if t.state == "open" or t.lost is not None:
            t.corrected = t.state == "lost"
            t.state, t.lost, t.charged = "released", None, 0

    def sweep(self, now: int) -> set[str]:
        found = {t.id for t in self.open if t.lease <= now}
        for attempt in found:
            t = self.tries[attempt]
            t.state, t.lost, t.charged = "lost", now, t.bound
        for t in self.tries.values():
            if t.lost is not None and t.lost <= now - REMEMBERED:
                t.lost = None
        return found


def windows(t: Try) -> tuple[str, ...]:
    """Where an attempt counts."""
    return f"day:{t.day}", f"month:{t.day[:7]}", "total", t.run


def day_of(now: int) -> str:
    """Of milliseconds, by way of the calendar that every Python has."""
    return datetime.fromtimestamp(now / 1000, UTC).date().isoformat()
