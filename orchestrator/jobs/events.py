"""Where an event of a job stands in its stream, and what a read of the stream gives."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, cast

from posology.errors import InvalidQuery

#: where an event stands in its stream: milliseconds and a number
_EVENT = re.compile(r"(\d{1,20})(?:-(\d{1,20}))?", re.ASCII)
_MAX_PART = 2**64


def check_event(after: str) -> None:
    """Check what claims to be the id of an event.

    Raises:
        InvalidQuery: it is none.
    """
    given = _EVENT.fullmatch(after)
    if given is None or any(int(part or 0) >= _MAX_PART for part in given.groups()):
        raise InvalidQuery(f"{after!r} is not the id of an event", field="after")


def entries(read: Any) -> list[tuple[str, Mapping[str, str]]]:
    """The entries of one stream, in either form that the client gives them."""
    if not read:
        return []
    ((_, found),) = read.items() if isinstance(read, dict) else read
    # RESP3 wraps the entries once more
    while found and isinstance(found[0], list):
        found = found[0]
    return cast("list[tuple[str, Mapping[str, str]]]", found)
