"""What the job store promises, in plain Python: the other side of the state machine's comparison."""

from __future__ import annotations

from dataclasses import dataclass, field
from decimal import Decimal

from posology.types import JobState
from posology.types.jobs import OVER, TRANSITIONS
from tests.integration.jobs_store.helpers import LEASE, LOSSES, PATIENCE, RETENTION

S = JobState


@dataclass(slots=True)
class Piece:
    """A unit."""

    #: waiting, running or done
    status: str = "waiting"
    token: int = 0
    #: milliseconds; of a running one
    lease: int = 0
    losses: int = 0
    #: milliseconds when it was sent to the broker; ``None``: it was not, or somebody took it up
    sent: int | None = None


@dataclass(slots=True)
class Spent:
    """An attempt at a model call."""

    unit: str
    token: int
    #: open, lost, or how it ended
    outcome: str = "open"
    cost: Decimal | None = None


@dataclass(slots=True)
class Job:
    """A job."""

    id: str
    body: str
    deadline: int
    key: str | None = None
    state: JobState = S.QUEUED
    token: int = 0
    runs: int = 0
    tries: int = 0
    losses: int = 0
    ends: int | None = None
    partitions: int | None = None
    read: int = 0
    unread: int = 0
    answer: str | None = None
    #: how often the reduce was asked for, by try
    reduces: dict[int, int] = field(default_factory=dict)
    pieces: dict[str, Piece] = field(default_factory=lambda: {"answer": Piece()})
    attempts: dict[str, Spent] = field(default_factory=dict)

    @property
    def over(self) -> bool:
        return self.state in OVER

    @property
    def held(self) -> bool:
        return any(piece.status == "running" for piece in self.pieces.values())

    @property
    def known(self) -> Decimal:
        return sum((a.cost for a in self.attempts.values() if a.cost is not None), Decimal(0))

    @property
    def unknown(self) -> int:
        return sum(a.outcome != "open" and a.cost is None for a in self.attempts.values())

    def to(self, state: JobState) -> None:
        assert state in TRANSITIONS[self.state], f"{self.state} to {state}"
        self.state = state

    def dispatch(self, name: str, now: int) -> None:
        piece = self.pieces.setdefault(name, Piece())
        piece.status, piece.sent = "waiting", now

    def done(self, name: str) -> None:
        if self.pieces[name].status == "running":
            self.lose(name)
        self.pieces[name].status = "done"
        self.pieces[name].sent = None

    def lose(self, name: str | None = None) -> None:
        for attempt in self.attempts.values():
            if attempt.outcome == "open" and name in (None, attempt.unit):
                attempt.outcome = "lost"

    def end(self, state: JobState, now: int) -> None:
        self.stop_waiting()
        self.to(state)
        self.ends = now + int(RETENTION * 1000)

    def stop_waiting(self) -> None:
        for name, piece in self.pieces.items():
            if piece.status == "waiting":
                self.done(name)

    def settle(self, now: int) -> None:
        if self.state is S.CANCELLING and not self.held:
            self.end(S.CANCELLED, now)

    def fenced(self, name: str, token: int) -> str | None:
        """Why the holder of a token is refused."""
        piece = self.pieces.get(name)
        if piece is None or piece.status != "running" or piece.token != token:
            return "superseded"
        if self.over:
            self.done(name)
            return "superseded"
        return None

    def claim(self, name: str, now: int) -> bool:
        piece = self.pieces.get(name)
        if self.over or self.state is S.CANCELLING or piece is None or piece.status != "waiting":
            return False
        self.token += 1
        piece.status, piece.token, piece.sent = "running", self.token, None
        piece.lease = now + int(LEASE * 1000)
        if name == "answer":
            self.runs += 1
            if self.state is S.QUEUED:
                self.to(S.RUNNING)
        return True

    def decide(self, token: int, partitions: int, now: int) -> str:
        if refusal := self.fenced("answer", token):
            return refusal
        if self.state is S.CANCELLING:
            self.done("answer")
            self.settle(now)
            return "cancelled"
        if partitions:
            self.partitions, self.read, self.unread = partitions, 0, 0
            for index in range(partitions):
                self.dispatch(f"extract:{index}", now)
            self.done("answer")
            self.to(S.EXTRACTING)
        return "done"

    def extracted(self, name: str, token: int, now: int, *, failed: bool) -> str:
        if refusal := self.fenced(name, token):
            return refusal
        self.done(name)
        self.unread += failed
        self.read += not failed
        if self.state is S.CANCELLING:
            self.settle(now)
            return "cancelled"
        if self.read + self.unread == self.partitions:
            self.dispatch("reduce", now)
            self.to(S.REDUCING)
            self.reduces[self.tries] = self.reduces.get(self.tries, 0) + 1
            return "reduce"
        return "done"

    def conclude(self, name: str, token: int, state: JobState, now: int) -> str:
        if refusal := self.fenced(name, token):
            return refusal
        self.lose(name)
        self.done(name)
        if self.state is S.CANCELLING:
            self.settle(now)
            return "cancelled"
        self.end(state, now)
        return "done"

    def release(self, name: str, token: int, now: int) -> None:
        if self.fenced(name, token):
            return
        self.lose(name)
        if self.state is S.CANCELLING:
            self.done(name)
            self.settle(now)
        else:
            self.dispatch(name, 0)

    def heartbeat(self, name: str, token: int, now: int) -> str:
        piece = self.pieces.get(name)
        if piece is None or piece.status != "running" or piece.token != token:
            return "superseded"
        piece.lease = now + int(LEASE * 1000)
        if self.over:
            return "over"
        return "cancelling" if self.state is S.CANCELLING else "ok"

    def open(self, name: str, token: int, attempt: str, now: int) -> str:
        if refusal := self.fenced(name, token):
            return refusal
        if self.state is S.CANCELLING:
            return "cancelled"
        if now >= self.deadline:
            return "expired"
        self.attempts[attempt] = Spent(unit=name, token=token)
        return "done"

    def close(self, attempt: str, outcome: str, cost: Decimal | None) -> None:
        spent = self.attempts[attempt]
        if spent.outcome in ("open", "lost"):
            spent.outcome, spent.cost = outcome, cost

    def cancel(self, now: int) -> str:
        if self.over:
            return "done" if self.state is S.CANCELLED else "finished"
        if self.state is not S.CANCELLING:
            if not self.held:
                self.end(S.CANCELLED, now)
            else:
                self.stop_waiting()
                self.to(S.CANCELLING)
        return "done"

    def retry(self, now: int) -> str:
        if S.QUEUED not in TRANSITIONS[self.state]:
            return "refused"
        self.lose()
        self.to(S.QUEUED)
        self.tries += 1
        self.losses = 0
        self.pieces = {"answer": Piece()}
        self.partitions, self.answer, self.ends = None, None, None
        self.read = self.unread = 0
        self.deadline = now + int(PATIENCE * 1000)
        return "done"

    def sweep(self, now: int, cutoff: int) -> set[str]:
        """The names of the units that are to be sent again."""
        again = set()
        for name, piece in list(self.pieces.items()):
            if piece.status != "running" or piece.lease > now:
                continue
            self.lose(name)
            self.losses += 1
            piece.losses += 1
            if self.over or self.state is S.CANCELLING:
                self.done(name)
                self.settle(now)
            elif piece.losses > LOSSES:
                self.done(name)
                self.end(S.FAILED, now)
            else:
                self.dispatch(name, now)
                again.add(name)
        # whoever holds a unit knows the deadline itself, unless it hangs
        waited = self.deadline + (2 * int(LEASE * 1000) if self.held else 0)
        if waited <= now and not self.over:
            self.end(S.CANCELLED if self.state is S.CANCELLING else S.EXPIRED, now)
        for name, piece in self.pieces.items():
            if piece.status == "waiting" and piece.sent is not None and piece.sent < cutoff:
                piece.sent = now
                again.add(name)
        return {name for name in again if self.pieces[name].status == "waiting"}
