"""Which versions of the table readers may read, and for how long.

Every commit makes a version of the table; only some are published. A published version is pinned by a branch of the
table that nobody ever writes to: LanceDB's cleaning keeps what a branch needs (it refuses to clean at all where a
*tag* is older than what it is to remove). The branch's name says when it was published, so that publishing is one
atomic step, and the newest branch is what readers open.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from typing import Any

from posology.errors import IndexFault, VersionGone
from posology.index.connection import translated

#: for how long a version can be read after it was replaced, unless it is said otherwise: the month in which an
#: answer is looked into
KEEP_VERSIONS = timedelta(days=30)
#: at least so long, whatever is said: questions under way read on in the version that they began with
LEAST = timedelta(hours=1)

_NAME = re.compile(r"published-(\d+)-(\d{8}T\d{12})Z")
_TIME = "%Y%m%dT%H%M%S%f"


@dataclass(frozen=True, kw_only=True, slots=True)
class Published:
    """A version that readers may read."""

    #: the table's, as in ``index@17``
    number: int
    #: when, UTC
    at: datetime
    #: name of the branch that pins it
    branch: str


def published(table: Any, uri: str) -> tuple[Published, ...]:
    """The versions that can be read, oldest first; the last is the one that readers open.

    Args:
        table: a handle on any version.
        uri: the index's.

    Raises:
        IndexFault: they cannot be read.
    """
    with translated(uri):
        branches = table.branches.list()
    found: dict[int, Published] = {}
    for name in branches:
        match = _NAME.fullmatch(name)
        if match is not None:
            number = int(match[1])
            at = datetime.strptime(match[2], _TIME).replace(tzinfo=UTC)
            one = Published(number=number, at=at, branch=name)
            if number not in found or at < found[number].at:
                found[number] = one
    return tuple(found[number] for number in sorted(found))


def publish(table: Any, uri: str) -> int:
    """Let readers read the newest version, from now on; returns its number.

    Args:
        table: a handle on the newest version.
        uri: the index's.

    Raises:
        IndexFault: it cannot be written.
    """
    number = int(table.version)
    known = published(table, uri)
    if not known or known[-1].number < number:
        name = f"published-{number}-{datetime.now(UTC).strftime(_TIME)}Z"
        with translated(uri):
            table.branches.create(name, from_version=number)
    return number


def expire(table: Any, uri: str, keep: timedelta) -> tuple[int, ...]:
    """Unpin the versions whose time is over, so that the next cleaning removes them; returns their numbers.

    An answer may have been made on a version until it was replaced, so that is when its time begins.

    Args:
        table: a handle on any version.
        uri: the index's.
        keep: for how long versions are kept after they were replaced; at least :data:`LEAST`.
    """
    known = published(table, uri)
    now = datetime.now(UTC)
    gone = [one for one, following in pairwise(known) if now - following.at > max(keep, LEAST)]
    for one in gone:
        with translated(uri):
            table.branches.delete(one.branch)
    return tuple(one.number for one in gone)


def at(table: Any, number: int, *, uri: str, name: str, keep: timedelta) -> None:
    """Have a handle read a published version.

    Args:
        table: the handle.
        number: the version's.
        uri: the index's.
        name: the index's.
        keep: as versions are kept, for the message.

    Raises:
        VersionGone: its time is over, or it never was published.
    """
    known = {one.number for one in published(table, uri)}
    if known and number not in known:
        raise VersionGone(index=name, version=number, days=keep / timedelta(days=1))
    try:
        table.checkout(number)
    except ValueError as error:
        raise VersionGone(index=name, version=number, days=keep / timedelta(days=1)) from error
    except (OSError, RuntimeError) as error:
        raise IndexFault(f"version {number} of {uri} cannot be read: {error}", index=uri) from error
