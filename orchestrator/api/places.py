"""Places for requests that hold something: a few in the process, fewer for each tenant."""

from __future__ import annotations

from collections import Counter
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import anyio

from orchestrator.api.problems import RETRY_AFTER, RequestProblem


class Places:
    """Places of one kind.

    Args:
        name: name of the problem that a request without a place gets, in the form of a class name.
        what: the requests, in the plural.
        total: maximum requests in the process.
        each: maximum requests of a tenant.
        queue: maximum requests of a tenant that wait for one of their own to end.
    """

    def __init__(self, name: str, what: str, *, total: int, each: int, queue: int = 0) -> None:
        self._name = name
        self._what = what
        self._total = total
        self._each = each
        self._queue = queue
        #: requests with a place, and those that wait, by tenant
        self._known: Counter[str] = Counter()
        self._turns: dict[str, anyio.Semaphore] = {}

    @property
    def taken(self) -> int:
        """Number of requests that have a place or wait for one."""
        return self._known.total()

    @asynccontextmanager
    async def of(self, tenant: str) -> AsyncIterator[None]:
        """Hold a place for a tenant during the block.

        Raises:
            RequestProblem: 503 if the process has no place left; 429 if the tenant has too many.
        """
        if self._known[tenant] >= self._each + self._queue:
            raise self._refusal(429, f"{self._known[tenant]} of this tenant are under way")
        if self.taken >= self._total:
            raise self._refusal(503, f"{self._total} are under way")
        self._known[tenant] += 1
        try:
            turn = self._turns.setdefault(tenant, anyio.Semaphore(self._each))
            async with turn:
                yield
        finally:
            self._known[tenant] -= 1
            if not self._known[tenant]:
                # names come from requests
                del self._known[tenant]
                self._turns.pop(tenant, None)

    def _refusal(self, status: int, detail: str) -> RequestProblem:
        return RequestProblem(
            status,
            self._name,
            f"Too many {self._what} are under way",
            f"{detail}: retry later",
            headers={"Retry-After": str(RETRY_AFTER)},
        )
