"""Queue of calls that wait for headroom, in one process."""

from __future__ import annotations

from posology.budget.ledger.scripts import QUEUED


class Tickets:
    """Tickets in order. A ticket without a request for :data:`QUEUED` ms is removed."""

    def __init__(self) -> None:
        self._seen: dict[str, int] = {}
        self._asked = 0

    def leave(self, ticket: str) -> None:
        """Remove a ticket."""
        self._seen.pop(ticket, None)

    def enqueue(self, ticket: str, now: int) -> int:
        """Return the number of tickets before a ticket; append it if it is new."""
        self._expire(now)
        self._asked = self._seen[ticket] = now
        return list(self._seen).index(ticket)

    def behind(self, ticket: str, now: int) -> bool:
        """Whether an earlier ticket still waits."""
        self._expire(now)
        while self._seen:
            first, seen = next(iter(self._seen.items()))
            if first == ticket:
                return False
            if now - seen < QUEUED:
                return True
            del self._seen[first]
        return False

    def _expire(self, now: int) -> None:
        if now - self._asked >= QUEUED:
            self._seen.clear()
