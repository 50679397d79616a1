"""What a reader of the literature yields, one after the other, in the order of the file.

Every reader is ``read(path, *, after=0)``: it raises nothing for what a file holds, uses constant memory, and
passes over the items up to the place ``after``. A file that is read twice yields the same places.

An article of several passages is read as its passages, ``ID#1`` to ``ID#n``, each with ``parent=ID``, and then one
:class:`Parts` that says how many they are. A part that has not changed is then recognised by its digest and left
alone, and what an earlier version had beyond them is removed: deleting the article first would compute it all anew
at every reading. Without a ``Parts``, as when the file ends early, nothing is removed.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import TypeAlias

from posology.errors import BadFile, BadRecord
from posology.types import Passage

#: between an article's id and the number of a part of it
PART = "#"


def part_id(article: str, number: int) -> str:
    """Return the id of an article's part, e.g. ``pmcid:PMC3395386#4``, counted from 1 in the order of reading.

    A number, because neither headings nor the identifiers of sections are unique in an article or always there.
    """
    return f"{article}{PART}{number}"


@dataclass(frozen=True, kw_only=True, slots=True)
class Record:
    """A passage and where it was read."""

    passage: Passage
    path: Path
    #: its place in the file, counted from 1: the line of a file of lines, else the how-manieth item; of the
    #: several passages of one article each has its own
    line: int
    #: which of the file's lines that are not blank, counted from 0: the row of the passage's
    #: vector in an array of vectors; bad records count, so that they shift nothing
    row: int


@dataclass(frozen=True, kw_only=True, slots=True)
class Deletion:
    """A record that its publisher has withdrawn: whatever the index has of it goes."""

    #: of the passage, or of the article whose parts the passages are
    id: str
    path: Path
    #: its place in the file, counted from 1
    line: int

    @property
    def silenced(self) -> tuple[str, str]:
        """Whose notices go with it: a passage's are by its own id, an article's by its first part's."""
        return self.id, part_id(self.id, 1)


@dataclass(frozen=True, kw_only=True, slots=True)
class Parts:
    """All parts of an article have been read: whatever else the index has of it goes.

    That is every passage whose ``parent`` is :attr:`id` and which :meth:`keep` does not keep. It comes after the
    parts; the rows that it speaks of are those of this file or of earlier ones.
    """

    #: of the article, the ``parent`` of its parts
    id: str
    #: how many there are, 1 or more
    count: int
    path: Path
    #: its place in the file, counted from 1, after its last part's
    line: int

    def keep(self, passage_id: str) -> bool:
        """Return whether a passage whose parent is :attr:`id` is still one of its parts."""
        before, mark, number = passage_id.rpartition(PART)
        if not mark or before != self.id or not (number.isascii() and number.isdigit()):
            return False
        return part_id(self.id, int(number)) == passage_id and 1 <= int(number) <= self.count


class NoticeKind(StrEnum):
    """What was published about a passage."""

    RETRACTION = "retraction"
    CONCERN = "concern"


@dataclass(frozen=True, kw_only=True, slots=True)
class Notice:
    """One record says of another that it is retracted, or that there is concern about it.

    Or of itself: copies of it that do not know of it may be in the index. A record's notices come
    before it, with its place, so that a place that is done with has given all that it has.

    The notice often comes years after the record that it is of, or before a copy of that record that does not
    know of it yet: it holds for what is in the index and for what is read later.
    """

    #: id of the passage that is warned of, e.g. ``pmid:9500320``
    target: str
    kind: NoticeKind
    #: id of the record that says so
    by: str
    path: Path
    #: the place in the file of the record that says so, counted from 1
    line: int


Item: TypeAlias = Record | Deletion | Notice | Parts | BadRecord | BadFile


def sentence(reason: str) -> str:
    """Zlib's and the system's words, without their punctuation."""
    return reason.strip().rstrip(".") or "cannot be read"
