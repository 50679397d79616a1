"""Requests as a stub provider accounts for them: the other side of the ledger."""

from __future__ import annotations

import time
from collections import Counter
from dataclasses import asdict, dataclass
from typing import Any

from posology.types import Usage


@dataclass(kw_only=True, slots=True)
class Entry:
    """One request: written when it arrives, completed when it ends."""

    #: the provider's, as in the reply's headers
    id: str
    #: the client's, from ``X-Client-Request-Id``; ``None``: it sent none
    client_id: str | None
    provider: str | None
    #: POSIX time
    arrived: float
    #: what became of it, e.g. ``reply``, ``status 429``, ``cut before the reply``
    played: str
    #: POSIX time; ``None``: under way
    ended: float | None = None
    #: whether the provider did the work, and bills it, also when the reply was lost
    finished: bool = False
    #: whether the whole of the reply went to a client that was still there
    delivered: bool = False
    #: billed; ``None``: nothing, or the step gives no usage
    usage: Usage | None = None


class StubLedger:
    """Every request since the start or the last reset."""

    def __init__(self) -> None:
        self._entries: list[Entry] = []
        self._since = time.time()
        self._in_flight = 0
        self._peak = 0
        self._connections = 0

    def connect(self) -> None:
        """Count a connection."""
        self._connections += 1

    def arrive(
        self, *, request_id: str, client_id: str | None, provider: str | None, played: str
    ) -> Entry:
        """Open an entry."""
        entry = Entry(
            id=request_id,
            client_id=client_id,
            provider=provider,
            arrived=time.time(),
            played=played,
        )
        self._entries.append(entry)
        self._in_flight += 1
        self._peak = max(self._peak, self._in_flight)
        return entry

    def end(self, entry: Entry, *, finished: bool, usage: Usage | None, delivered: bool) -> None:
        """Complete an entry."""
        entry.ended = time.time()
        entry.finished = finished
        entry.usage = usage if finished else None
        entry.delivered = delivered
        self._in_flight -= 1

    def reset(self) -> None:
        """Forget everything but what is under way."""
        self._entries.clear()
        self._since = time.time()
        self._peak = self._in_flight
        self._connections = 0

    def entries(self, *, start: int = 0) -> list[dict[str, Any]]:
        """The entries from a place on, in the order of arrival, as JSON can hold them."""
        return [asdict(entry) for entry in self._entries[start:]]

    def stats(self) -> dict[str, Any]:
        """Counts since the last reset."""
        usages = [e.usage for e in self._entries if e.usage is not None]
        return {
            "requests": len(self._entries),
            "finished": sum(e.finished for e in self._entries),
            #: finished, but the reply was not delivered
            "lost": sum(e.finished and not e.delivered for e in self._entries),
            "played": dict(Counter(e.played for e in self._entries)),
            #: that were made, not those that are open
            "connections": self._connections,
            "in_flight": self._in_flight,
            "peak_in_flight": self._peak,
            "input_tokens": sum(u.total_input for u in usages),
            "output_tokens": sum(u.total_output for u in usages),
            "seconds": time.time() - self._since,
            #: of the whole process, since its start
            "cpu_seconds": time.process_time(),
        }
