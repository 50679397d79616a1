"""Published versions of an index, and their retention.

Every commit makes a version of the table; only some are published. A published version is pinned by a branch of the
table that is never written to: LanceDB's cleanup keeps the files of a branch (with a *tag* older than the versions to
remove, it refuses to clean at all). The branch's name holds the time of publication. So publishing is one atomic step,
and readers open the newest branch.

A first ingest publishes while it runs. The branches of these versions have names of their own, which also hold how far
the ingest was, and they are kept for :data:`LEAST` only.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from pathlib import Path
from typing import Any

from posology.errors import IndexFault, VersionGone
from posology.index.connection import translated
from posology.index.schema import TABLE
from posology.types import Growth

#: default retention of a replaced version: the month in which an answer may be reviewed
KEEP_VERSIONS = timedelta(days=30)
#: minimum retention: questions in flight keep reading the version that they began with
LEAST = timedelta(hours=1)
#: expired versions wait for each other, for this part of their retention and no longer than this: to remove their files,
#: LanceDB compacts the table, even a small one that needs it for nothing else
_WAIT, _LONGEST = 0.1, timedelta(hours=1)

_NAME = re.compile(r"published-(\d+)-(\d{8}T\d{12})Z|growing-(\d+)-(\d{8}T\d{12})Z-(\d+)-(\d+)")
_TIME = "%Y%m%dT%H%M%S%f"

#: where a table in a folder keeps its branches, as Lance's format says: a file each, named as the branch
_BRANCHES, _FILE = "_refs/branches", ".json"


@dataclass(frozen=True, kw_only=True, slots=True)
class Published:
    """A published version."""

    #: number of the table's version, as in ``index@17``
    number: int
    #: time of publication, UTC
    at: datetime
    #: name of the branch that pins it
    branch: str
    #: how far the first ingest was; ``None``: it is complete
    growth: Growth | None = None


def published(table: Any, uri: str) -> tuple[Published, ...]:
    """Return the readable versions, oldest first; readers open the last one.

    Args:
        table: a handle on any version.
        uri: the index's.

    Raises:
        IndexFault: they cannot be read.
    """
    found: dict[int, Published] = {}
    for name in _branches(table, uri):
        match = _NAME.fullmatch(name)
        if match is not None:
            number = int(match[1] or match[3])
            at = _time_of(match[2] or match[4])
            growth = Growth(done=int(match[5]), total=int(match[6])) if match[3] else None
            one = Published(number=number, at=at, branch=name, growth=growth)
            if number not in found or _before(one, found[number]):
                found[number] = one
    return tuple(found[number] for number in sorted(found))


def _branches(table: Any, uri: str) -> Iterable[str]:
    """Return the names of the branches.

    To list them, LanceDB reads a file of each, many at once, each in a thread of its own, which stays. In a folder, the
    names of these files are enough.
    """
    with translated(uri):
        # in a folder they are nowhere else, unless the format has changed
        return (() if "://" in uri else _named(uri)) or table.branches.list()


def _named(folder: str) -> list[str]:
    with (
        suppress(FileNotFoundError),
        os.scandir(Path(folder, f"{TABLE}.lance", _BRANCHES)) as files,
    ):
        return [file.name.removesuffix(_FILE) for file in files if file.name.endswith(_FILE)]
    return []


def _time_of(written: str) -> datetime:
    """Return a time as :data:`_TIME` writes it; ``strptime`` takes twenty times as long, and each list reads one a version."""
    return datetime.fromisoformat(f"{written[:-6]}.{written[-6:]}Z")


def _before(one: Published, other: Published) -> bool:
    """Return whether one branch of a version counts instead of another: complete first, then the earlier."""
    if (one.growth is None) != (other.growth is None):
        return one.growth is None
    return one.at < other.at


def publish(table: Any, uri: str, growth: Growth | None = None) -> int:
    """Publish the newest version, and return its number.

    Args:
        table: a handle on the newest version.
        uri: the index's.
        growth: how far the first ingest is; ``None``: it is complete.

    Raises:
        IndexFault: it cannot be written.
    """
    number = int(table.version)
    known = published(table, uri)
    last = known[-1] if known else None
    if last is None or last.number < number or (growth is None and last.growth is not None):
        at = f"{number}-{datetime.now(UTC).strftime(_TIME)}Z"
        name = f"published-{at}" if growth is None else f"growing-{at}-{growth.done}-{growth.total}"
        with translated(uri):
            table.branches.create(name, from_version=number)
    return number


def expire(table: Any, uri: str, keep: timedelta) -> tuple[int, ...]:
    """Unpin expired versions, so that the next cleanup removes them; return their numbers.

    Answers may use a version until it is replaced, so its retention begins then. None is unpinned until the first has been
    expired for a tenth of its retention, or for an hour: an index that changes every few seconds is not cleaned each time.

    Args:
        table: a handle on any version.
        uri: the index's.
        keep: retention of replaced versions; at least :data:`LEAST`.
    """
    known = published(table, uri)
    now = datetime.now(UTC)
    gone, overdue = [], False
    for one, following in pairwise(known):
        kept = LEAST if one.growth is not None else max(keep, LEAST)
        if (over := now - following.at - kept) > timedelta(0):
            gone.append(one)
            overdue = overdue or over > min(_WAIT * kept, _LONGEST)
    if not overdue:
        return ()
    for one in gone:
        with translated(uri):
            table.branches.delete(one.branch)
    return tuple(one.number for one in gone)


def at(table: Any, number: int, *, uri: str, name: str, keep: timedelta) -> Growth | None:
    """Check out a published version in a handle, and return how far a first ingest was in it.

    Args:
        table: the handle.
        number: the version's.
        uri: the index's.
        name: the index's.
        keep: retention, for the message.

    Raises:
        VersionGone: it was removed, or never published.
    """
    known = {one.number: one.growth for one in published(table, uri)}
    if known and number not in known:
        raise VersionGone(index=name, version=number, days=keep / timedelta(days=1))
    try:
        table.checkout(number)
    except ValueError as error:
        raise VersionGone(index=name, version=number, days=keep / timedelta(days=1)) from error
    except (OSError, RuntimeError) as error:
        raise IndexFault(f"version {number} of {uri} cannot be read: {error}", index=uri) from error
    return known.get(number)
