"""Write lock: one writer at a time, released when its process dies, or soon after."""

from __future__ import annotations

import threading
from collections.abc import Callable
from pathlib import Path
from types import TracebackType
from typing import Protocol, Self
from weakref import WeakMethod

from posology.errors import IndexLocked
from posology.index.places import Place


class Exclusive(Protocol):
    """Exclusive access to an index among all processes."""

    def take(self) -> None:
        """Take the lock.

        Raises:
            IndexLocked: another process holds it.
            IndexFault: the index cannot be written.
        """
        ...

    def check(self) -> None:
        """Check that the lock is still held.

        Raises:
            IndexLocked: it was lost.
        """
        ...

    def release(self) -> None:
        """Release the lock."""
        ...


class WriteLock:
    """Exclusive between processes, re-entrant within a thread.

    Taking it again within a thread checks that it is still held: a lease may have run out. A writer that continues
    without it cannot duplicate ids, since concurrent commits that add the same id conflict.
    """

    def __init__(
        self,
        place: Place | Path | None,
        *,
        taken: Callable[[], None] | None = None,
        by: Exclusive | None = None,
    ) -> None:
        """Set the lock up; it is not taken yet.

        Args:
            place: address of the index; a path is its folder, ``None`` has no other writers.
            taken: a method, called whenever the lock is taken first. It is held weakly: the lock is a part of its index,
                whose caches would otherwise stay until Python looks for cycles.
            by: excludes other processes; ``None``: a file lock for a folder, a lease for object storage.
        """
        if isinstance(place, Path):
            place = Place.of(place)
        self._index = str(place)
        self._by = by if by is not None or place is None else exclusive(place)
        self._taken = (lambda: None) if taken is None else WeakMethod(taken)
        self._within = threading.RLock()
        self._depth = 0

    def __enter__(self) -> Self:
        if not self._within.acquire(blocking=False):
            raise IndexLocked(
                "another thread of this process is writing the index: wait for it to end",
                index=self._index,
            )
        try:
            if self._depth == 0:
                if self._by is not None:
                    self._by.take()
                self._first()
            elif self._by is not None:
                self._by.check()
        except BaseException:
            self._within.release()
            raise
        self._depth += 1
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._depth -= 1
        try:
            if self._depth == 0 and self._by is not None:
                self._by.release()
        finally:
            self._within.release()

    def _first(self) -> None:
        taken = self._taken()
        if taken is None:
            return
        try:
            taken()
        except BaseException:
            if self._by is not None:
                self._by.release()
            raise


def exclusive(place: Place) -> Exclusive:
    """Return the lock of an index at a place."""
    if place.folder is not None:
        from posology.index.locking.file import FileLock

        return FileLock(place.folder)
    from posology.index.locking.lease import ObjectLease

    return ObjectLease(place)
