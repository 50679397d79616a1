"""Who waits for headroom, in one process, each in turn."""

from __future__ import annotations

from posology.budget.ledger.scripts import QUEUED


class Tickets:
    """Tickets in their order. Who has not asked again for :data:`QUEUED` ms has left."""

    def __init__(self) -> None:
        self._seen: dict[str, int] = {}
        self._asked = 0

    def leave(self, ticket: str) -> None:
        """Take a ticket out."""
        self._seen.pop(ticket, None)

    def line_up(self, ticket: str, now: int) -> int:
        """How many stand before a ticket, after it has been put last if it was not there."""
        self._expire(now)
        self._asked = self._seen[ticket] = now
        return list(self._seen).index(ticket)

    def behind(self, ticket: str, now: int) -> bool:
        """Whether somebody else who still waits is to be served first."""
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
