"""One writer at a time: a lock that dies with its process, or soon after it."""

from __future__ import annotations

import threading
from collections.abc import Callable
from pathlib import Path
from types import TracebackType
from typing import Protocol, Self

from posology.errors import IndexLocked
from posology.index.places import Place


class Exclusive(Protocol):
    """What keeps an index for one writer among all processes."""

    def take(self) -> None:
        """Be the one.

        Raises:
            IndexLocked: another is.
            IndexFault: the index cannot be written.
        """
        ...

    def check(self) -> None:
        """See that one still is.

        Raises:
            IndexLocked: it was lost meanwhile.
        """
        ...

    def release(self) -> None:
        """Be it no longer."""
        ...


class WriteLock:
    """Exclusive between processes, re-entrant within a thread.

    Taking it once more within checks that it is still held: of a lease, time may have run out. Whoever goes on
    regardless doubles no id, since commits that add the same id at the same time conflict.
    """

    def __init__(
        self,
        place: Place | Path | None,
        *,
        taken: Callable[[], None] = lambda: None,
        by: Exclusive | None = None,
    ) -> None:
        """Set the lock up; nothing is taken yet.

        Args:
            place: the index's; a path is its folder, ``None`` has no other writers.
            taken: called whenever the lock was free and is now held.
            by: what keeps other processes out; ``None``: a file in a folder, a lease on object storage.
        """
        if isinstance(place, Path):
            place = Place.of(place)
        self._index = str(place)
        self._by = by if by is not None or place is None else exclusive(place)
        self._taken = taken
        self._within = threading.RLock()
        self._depth = 0

    def __enter__(self) -> Self:
        if not self._within.acquire(blocking=False):
            raise IndexLocked("another thread is writing this index", index=self._index)
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
        try:
            self._taken()
        except BaseException:
            if self._by is not None:
                self._by.release()
            raise


def exclusive(place: Place) -> Exclusive:
    """What keeps an index at this place for one writer."""
    if place.folder is not None:
        from posology.index.locking.file import FileLock

        return FileLock(place.folder)
    from posology.index.locking.lease import ObjectLease

    return ObjectLease(place)
