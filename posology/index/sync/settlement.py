"""Brings every row of an index to what it ought to be, whatever was written before."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from posology.index.sync.notices import MARKED, NAMED, Flags, Known, differing, quoted, rewrite
from posology.index.view import View


@dataclass(frozen=True, kw_only=True, slots=True)
class Settled:
    """How many rows were not what they ought to be."""

    #: that are gone
    removed: int = 0
    #: that are warned of otherwise now
    marked: int = 0


def settle(table: Any, rows: View, holds: Callable[[str, str], bool], known: Known) -> Settled:
    """Remove the rows that do not belong here, and have the others say what was published of them.

    Args:
        table: of the passages, newest version.
        rows: that version, to read from; what is written meanwhile does not change it.
        holds: whether the passage of this id, with this digest, belongs here.
        known: all that was published.
    """
    removed = 0
    gone: list[str] = []
    wrong: dict[Flags, list[str]] = defaultdict(list)
    for batch in rows.scan(("digest", *MARKED)):
        kept = []
        for row in batch.to_pylist():
            if holds(row["id"], row["digest"]):
                kept.append(row)
            else:
                gone.append(row["id"])
        for flags, ids in differing(kept, known).items():
            wrong[flags] += ids
        if len(gone) >= NAMED:
            removed += _remove(table, gone)
            gone = []
    if gone:
        removed += _remove(table, gone)
    # some ten thousand at most, as there are notices
    rewrite(table, wrong)
    return Settled(removed=removed, marked=sum(map(len, wrong.values())))


def _remove(table: Any, ids: list[str]) -> int:
    table.delete(f"id IN ({quoted(ids)})")
    return len(ids)
