"""Lease on object storage: an object that names the writer, renewed while the writer lives.

Every change is one conditional put (``If-None-Match: *`` for a new object, ``If-Match`` with the version read
otherwise), so that one of several concurrent writers succeeds. Only the server's clock counts: a lease has run out when
the object was last modified longer ago than the lease; the current time is taken from a probe object. The lease is
released by a write, never by a deletion, since deletions have no condition.
"""

from __future__ import annotations

import json
import os
import platform
import threading
import time
from contextlib import suppress
from dataclasses import asdict, dataclass, replace
from datetime import datetime
from typing import TYPE_CHECKING, Any
from uuid import uuid4

from posology.errors import IndexFault, IndexLocked
from posology.index.places import Place, storage_errors

if TYPE_CHECKING:
    from obstore.store import ObjectStore

#: seconds without a renewal before a writer is considered dead
LEASE = 60.0
#: renewals within a lease
_RENEWALS = 4
#: name of the lease object, below the index's address
OBJECT = "writer.lock"


@dataclass(frozen=True, kw_only=True, slots=True)
class LeaseRecord:
    """Content of the lease object."""

    #: random id, new for each take; ``None``: the lease is free
    owner: str | None
    #: machine and process, for messages
    who: str
    #: fencing token: number of takes; a writer with a smaller number has lost the lease
    fence: int
    #: seconds without a renewal before the writer is considered dead
    lease: float
    #: renewals since the take
    renewed: int = 0


class ObjectLease:
    """See :class:`posology.index.locking.lock.Exclusive`."""

    def __init__(self, place: Place, *, lease: float = LEASE) -> None:
        """Set the lease up; it is not taken yet.

        Args:
            place: address of the index.
            lease: seconds without a renewal before a writer is considered dead.
        """
        self._place = place
        self._lease = lease
        self._store: ObjectStore | None = None
        self._held: LeaseRecord | None = None
        self._version: Any = None
        #: monotonic time just before the last renewal was sent
        self._since = 0.0
        self._lost = False
        self._stop = threading.Event()
        self._renewing: threading.Thread | None = None

    def take(self) -> None:
        """Create the object, or take over a free or expired one."""
        from obstore.exceptions import AlreadyExistsError

        if self._store is None:
            self._store = self._place.store()
        mine = LeaseRecord(owner=uuid4().hex, who=_who(), fence=1, lease=self._lease)
        since = time.monotonic()
        with storage_errors(self._place.uri):
            try:
                version = self._put(mine, "create")
            except AlreadyExistsError:
                found, version, changed = self._read()
                if found.owner is not None and not self._ran_out(found, changed):
                    raise self._locked(found) from None
                mine = LeaseRecord(
                    owner=mine.owner, who=mine.who, fence=found.fence + 1, lease=self._lease
                )
                since = time.monotonic()
                version = self._take_over(mine, version)
        self._held, self._version, self._since, self._lost = mine, version, since, False
        self._stop = threading.Event()
        self._renewing = threading.Thread(
            target=self._renew, args=(self._stop,), name="posology-lease", daemon=True
        )
        self._renewing.start()

    def check(self) -> None:
        """Raise if another writer has taken the lease, or may have because it could not be renewed in time."""
        if self._lost or time.monotonic() - self._since > self._lease:
            raise IndexLocked(
                f"the lease on {self._place.uri} ran out before it could be renewed, and another process may be writing: "
                "run the command again, it resumes",
                index=self._place.uri,
            )

    def release(self) -> None:
        """Mark the lease as free, unless another writer has it; if that fails, it runs out."""
        self._stop.set()
        if self._renewing is not None:
            self._renewing.join()
            self._renewing = None
        held, self._held = self._held, None
        if held is None or self._lost:
            return
        from obstore.exceptions import BaseError

        with suppress(BaseError, OSError):
            # the work is done; a lease that cannot be released runs out
            self._put(replace(held, owner=None), self._version)

    def _renew(self, stop: threading.Event) -> None:
        from obstore.exceptions import BaseError, PreconditionError

        while not stop.wait(self._lease / _RENEWALS):
            assert self._held is not None
            once_more = replace(self._held, renewed=self._held.renewed + 1)
            since = time.monotonic()
            try:
                version = self._put(once_more, self._version)
            except (PreconditionError, FileNotFoundError):
                if not self._mine(once_more):
                    self._lost = True
                    return
            except (BaseError, OSError):
                # retried until the lease has run out
                continue
            else:
                self._held, self._version, self._since = once_more, version, since

    def _mine(self, sent: LeaseRecord) -> bool:
        """Return whether a renewal without a reply was stored; then it counts."""
        from obstore.exceptions import BaseError

        try:
            found, version, _ = self._read()
        except (BaseError, OSError, IndexFault):
            return False
        if found.owner != sent.owner:
            return False
        self._held, self._version = found, version
        return True

    def _take_over(self, mine: LeaseRecord, version: Any) -> Any:
        from obstore.exceptions import PreconditionError

        try:
            return self._put(mine, version)
        except PreconditionError:
            found, now, _ = self._read()
            if found.owner != mine.owner:
                # another writer was first
                raise self._locked(found) from None
            return now

    def _put(self, held: LeaseRecord, mode: Any) -> Any:
        assert self._store is not None
        content = json.dumps(asdict(held), sort_keys=True).encode()
        # in one piece: multipart uploads are not conditional
        result = self._store.put(OBJECT, content, mode=mode, use_multipart=False)
        return _version(result)

    def _read(self) -> tuple[LeaseRecord, Any, datetime]:
        assert self._store is not None
        found = self._store.get(OBJECT)
        meta = found.meta
        try:
            held = LeaseRecord(**json.loads(bytes(found.bytes())))
        except (TypeError, ValueError):
            raise IndexFault(
                f"{self._place.uri}/{OBJECT} is not a lock of Posology: remove it if no process writes the index",
                index=self._place.uri,
            ) from None
        return held, _version(meta), meta["last_modified"]

    def _ran_out(self, held: LeaseRecord, changed: datetime) -> bool:
        """Return whether a lease has run out, by the server's clock."""
        assert self._store is not None
        probe = f"{OBJECT}.{uuid4().hex}"
        self._store.put(probe, b"", use_multipart=False)
        try:
            now = self._store.head(probe)["last_modified"]
        finally:
            self._store.delete(probe)
        # the server's times are whole seconds
        return (now - changed).total_seconds() > held.lease + 1

    def _locked(self, held: LeaseRecord) -> IndexLocked:
        return IndexLocked(
            f"{held.who} is writing {self._place.uri}: wait for it to end. If it has died, its lease runs out {held.lease:g} s "
            "after its last renewal",
            index=self._place.uri,
        )


def _version(meta: Any) -> Any:
    """Return the version that a conditional put names."""
    return {name: meta[name] for name in ("e_tag", "version") if meta.get(name) is not None}


def _who() -> str:
    return f"process {os.getpid()} on {platform.node() or 'another machine'}"
