"""A lease on object storage: an object that says who writes, until when, renewed while the writer lives.

Every change of it is one conditional put (``If-None-Match: *`` where there is none, ``If-Match`` of what was read
where there is), so that of several that try, one succeeds. Nobody's clock but the server's counts: a lease has run
out when the object's time of change is longer ago than the lease is long, by an object that is written to see what
time it is there. It is freed by writing so, never by deleting, since deletes have no condition.
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
from posology.index.places import Place, told

if TYPE_CHECKING:
    from obstore.store import ObjectStore

#: seconds after which a writer that does not renew counts as dead
LEASE = 60.0
#: renewals within a lease
_RENEWALS = 4
#: name of the object, below the index's address
OBJECT = "writer.lock"


@dataclass(frozen=True, kw_only=True, slots=True)
class Held:
    """What the object says."""

    #: made up anew whenever it is taken; ``None``: it is free
    owner: str | None
    #: machine and process, for people
    who: str
    #: how often it has been taken: whoever has a smaller number has lost it
    fence: int
    #: seconds
    lease: float
    #: renewals since it was taken
    renewed: int = 0


class ObjectLease:
    """See :class:`posology.index.locking.lock.Exclusive`."""

    def __init__(self, place: Place, *, lease: float = LEASE) -> None:
        """Say what is kept.

        Args:
            place: the index's.
            lease: seconds after which a writer that does not renew counts as dead.
        """
        self._place = place
        self._lease = lease
        self._store: ObjectStore | None = None
        self._held: Held | None = None
        self._version: Any = None
        #: by this process's clock, from before the last renewal was sent
        self._since = 0.0
        self._lost = False
        self._stop = threading.Event()
        self._renewing: threading.Thread | None = None

    def take(self) -> None:
        """Write the object, or take over one that is free or has run out."""
        from obstore.exceptions import AlreadyExistsError

        if self._store is None:
            self._store = self._place.store()
        mine = Held(owner=uuid4().hex, who=_who(), fence=1, lease=self._lease)
        since = time.monotonic()
        with told(self._place.uri):
            try:
                version = self._put(mine, "create")
            except AlreadyExistsError:
                found, version, changed = self._read()
                if found.owner is not None and not self._ran_out(found, changed):
                    raise self._locked(found) from None
                mine = Held(
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
        """Refuse where another has taken it, or may have, since it could not be renewed in time."""
        if self._lost or time.monotonic() - self._since > self._lease:
            raise IndexLocked(
                f"the lease on {self._place.uri} ran out before it could be renewed, and another may be writing: "
                "run it again, it goes on from what is written",
                index=self._place.uri,
            )

    def release(self) -> None:
        """Say that it is free, unless another has it; where that cannot be said, it runs out."""
        self._stop.set()
        if self._renewing is not None:
            self._renewing.join()
            self._renewing = None
        held, self._held = self._held, None
        if held is None or self._lost:
            return
        from obstore.exceptions import BaseError

        with suppress(BaseError, OSError):
            # the work is done; a lease that cannot be given back lapses by itself
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
                # tried again, until the lease has run out
                continue
            else:
                self._held, self._version, self._since = once_more, version, since

    def _mine(self, sent: Held) -> bool:
        """Whether a renewal arrived although its reply did not; then it counts."""
        from obstore.exceptions import BaseError

        try:
            found, version, _ = self._read()
        except (BaseError, OSError, IndexFault):
            return False
        if found.owner != sent.owner:
            return False
        self._held, self._version = found, version
        return True

    def _take_over(self, mine: Held, version: Any) -> Any:
        from obstore.exceptions import PreconditionError

        try:
            return self._put(mine, version)
        except PreconditionError:
            found, now, _ = self._read()
            if found.owner != mine.owner:
                # another was quicker
                raise self._locked(found) from None
            return now

    def _put(self, held: Held, mode: Any) -> Any:
        assert self._store is not None
        content = json.dumps(asdict(held), sort_keys=True).encode()
        # in one piece: only then it is conditional
        result = self._store.put(OBJECT, content, mode=mode, use_multipart=False)
        return _version(result)

    def _read(self) -> tuple[Held, Any, datetime]:
        assert self._store is not None
        found = self._store.get(OBJECT)
        meta = found.meta
        try:
            held = Held(**json.loads(bytes(found.bytes())))
        except (TypeError, ValueError):
            raise IndexFault(
                f"{self._place.uri}/{OBJECT} is no lock of Posology's: remove it if nobody writes the index",
                index=self._place.uri,
            ) from None
        return held, _version(meta), meta["last_modified"]

    def _ran_out(self, held: Held, changed: datetime) -> bool:
        """Whether it was not renewed for as long as it said it would be, by the server's clock."""
        assert self._store is not None
        probe = f"{OBJECT}.{uuid4().hex}"
        self._store.put(probe, b"", use_multipart=False)
        try:
            now = self._store.head(probe)["last_modified"]
        finally:
            self._store.delete(probe)
        # the server tells whole seconds
        return (now - changed).total_seconds() > held.lease + 1

    def _locked(self, held: Held) -> IndexLocked:
        return IndexLocked(
            f"{held.who} is writing {self._place.uri}: wait until it ends; should it have died, the index can be "
            f"written {held.lease:g} s after",
            index=self._place.uri,
        )


def _version(told: Any) -> Any:
    """What a change is on condition of."""
    return {name: told[name] for name in ("e_tag", "version") if told.get(name) is not None}


def _who() -> str:
    return f"process {os.getpid()} on {platform.node() or 'another machine'}"
