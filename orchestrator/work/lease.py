"""The lease of a claimed item, extended in the background while its holder works."""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable

import anyio

from orchestrator.work.items import Claim, LeaseLost, Standing
from orchestrator.work.store import WorkStore
from posology.errors import StoreUnavailable

_log = logging.getLogger(__name__)
#: maximum seconds between two heartbeats, each of which records the progress
_SHOWN = 1.0


class Lease:
    """A lease.

    Args:
        work: the store of the item.
        claim: its claim.
        seconds: seconds without a heartbeat after which another process may claim it.
        record: returns the text of the item as it is now.
    """

    def __init__(
        self, work: WorkStore, claim: Claim, *, seconds: float, record: Callable[[], str]
    ) -> None:
        self.claim = claim
        #: as of the last heartbeat; may be read by any thread
        self.standing: Standing = "cancelling" if claim.cancelled else "held"
        #: set once the work is to end: it was cancelled, or the claim is lost
        self.ends = anyio.Event()
        self._work = work
        self._seconds = seconds
        self._record = record

    async def extend(self) -> None:
        """Extend the lease and record the progress, until the claim is lost. Redis may be out of reach meanwhile."""
        while self.standing != "lost":
            await anyio.sleep(min(self._seconds / 5, _SHOWN))
            await self.beat()

    async def beat(self) -> None:
        """Extend the lease, and record the progress once."""
        try:
            self._set(
                await self._work.heartbeat(self.claim, lease=self._seconds, record=self._record())
            )
        except StoreUnavailable as error:
            _log.warning("%s", error)

    async def finish(self, state: str, *, size: int | None = None, drop_rows: bool = False) -> None:
        """End the item as it is now; Redis is waited for.

        Args:
            state: in which it ends.
            size: bytes that it still has; ``None``: unchanged.
            drop_rows: whether its rows are not needed any more.

        Raises:
            LeaseLost: the claim does not hold.
        """
        await self._surely(
            lambda: self._work.finish(
                self.claim, state, record=self._record(), size=size, drop_rows=drop_rows
            )
        )

    async def release(self) -> None:
        """Return the item to the queue as it is now, by a claim that does not count; Redis is waited for.

        Raises:
            LeaseLost: the claim does not hold.
        """
        await self._surely(lambda: self._work.release(self.claim, record=self._record()))

    async def append(self, before: int, rows: list[str]) -> None:
        """Append rows to the item's list; Redis is waited for.

        Args:
            before: number of rows before these.
            rows: the rows.

        Raises:
            LeaseLost: the claim does not hold.
        """
        await self._surely(lambda: self._work.append(self.claim, before, rows))

    async def _surely(self, change: Callable[[], Awaitable[bool]]) -> None:
        while True:
            try:
                holds = await change()
            except StoreUnavailable as error:
                _log.warning("%s", error)
                await anyio.sleep(_SHOWN)
                continue
            if not holds:
                self._set("lost")
                raise LeaseLost(self.claim.name)
            return

    def _set(self, standing: Standing) -> None:
        self.standing = standing
        if standing != "held":
            self.ends.set()
