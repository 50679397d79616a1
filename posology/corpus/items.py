"""Items that a reader of literature yields, in the order of the file.

Every reader is ``read(path, *, after=0)``: it raises nothing for a file's content, uses constant memory, and skips the
items up to the place ``after``. Reading a file twice yields the same places.

An article of several passages is read as its passages, ``ID#1`` to ``ID#n``, each with ``parent=ID``, and then one
:class:`Parts` with their number. Unchanged parts are recognised by their digests and kept, and surplus parts of an
earlier version are removed; deleting the article first would encode all parts again at every reading. Without a
``Parts``, e.g. when the file ends early, nothing is removed. A record that is too long for a passage is read as parts, too,
which have its place.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import TypeAlias

from posology.errors import BadFile, BadRecord
from posology.types import Passage

#: separator between an article's id and the number of a part
PART = "#"


def part_id(article: str, number: int) -> str:
    """Return the id of an article's part, e.g. ``pmcid:PMC3395386#4``, counted from 1 in the order of reading.

    Numbers are used because headings and section identifiers may be missing or repeated in an article.
    """
    return f"{article}{PART}{number}"


def is_part(passage: str, article: str) -> bool:
    """Return whether an id is that of a part of an article, as :func:`part_id` makes them."""
    before, mark, number = passage.rpartition(PART)
    if not mark or before != article or not (number.isascii() and number.isdigit()):
        return False
    return number[0] != "0"


def article_of(name: str) -> str:
    """Return the id of the article that an id is a part of; else the id itself."""
    before = name.rpartition(PART)[0]
    return before if is_part(name, before) else name


@dataclass(frozen=True, kw_only=True, slots=True)
class Record:
    """A passage and where it was read."""

    passage: Passage
    path: Path
    #: place in the file, counted from 1: the line number in a file of lines, else the number of the item; each passage of
    #: an article has its own
    line: int
    #: number of the non-blank line, counted from 0: the row of the passage's vector in an array of vectors; bad records
    #: count, too
    row: int

    @property
    def states_standing(self) -> bool:
        """Whether it is silent about notices because there are none any more.

        Under the number of an article, an export that knows nothing of its retraction is no news of it; under a name of its
        own, a record alone has given its notices.
        """
        passage = self.passage
        return passage.source in _STATING or not passage.id.lower().startswith(_SHARED)


@dataclass(frozen=True, kw_only=True, slots=True)
class Deletion:
    """A withdrawn record: all its passages are removed from the index."""

    #: id of the passage, or of the article
    id: str
    path: Path
    #: place in the file, counted from 1
    line: int

    @property
    def silenced(self) -> tuple[str, str]:
        """Return the sources whose notices are withdrawn: the passage's id, and the id of the article's first part."""
        return self.id, part_id(self.id, 1)


@dataclass(frozen=True, kw_only=True, slots=True)
class Parts:
    """End of an article's parts: its other passages are removed from the index.

    These are the passages whose ``parent`` is :attr:`id` and which :meth:`keep` rejects. It comes after the parts, and
    applies to rows of this file and of earlier ones.
    """

    #: id of the article, the ``parent`` of its parts
    id: str
    #: number of parts, 1 or more
    count: int
    path: Path
    #: place in the file, counted from 1, after the last part
    line: int
    #: whether the parts are those of one record of this id, which its passage is then no more, nor a source of notices but
    #: of those at this place
    whole: bool = False

    def keep(self, passage_id: str) -> bool:
        """Return whether a passage whose parent is :attr:`id` is still one of its parts."""
        if not is_part(passage_id, self.id):
            return False
        number = passage_id.rpartition(PART)[2]
        # one of thousands of digits is not made a number
        return len(number) <= len(str(self.count)) and int(number) <= self.count


#: columns of a passage that a target may name: they are also the prefixes before its colon
NAMED_BY = ("pmid", "doi", "pmcid")


def targets_of(passage: Passage) -> tuple[str, ...]:
    """Return the targets of notices that a passage fits: its id, its article's, and its PMID, DOI and PMC number."""
    numbers = ((kind, getattr(passage, kind)) for kind in NAMED_BY)
    known = (f"{kind}:{value}" for kind, value in numbers if value)
    article = () if passage.parent is None else (passage.parent,)
    return tuple(dict.fromkeys(canonical(key) for key in (passage.id, *article, *known)))


def canonical(target: str) -> str:
    """Return a target as passages write it: DOIs in lower case, PMC numbers in upper case."""
    kind, colon, value = target.partition(":")
    match kind if colon else "":
        case "doi" | "DOI":
            return f"doi:{value.lower()}"
        case "pmcid" | "PMCID":
            return f"pmcid:{value.upper()}"
        case "PMID":
            return f"pmid:{value}"
    return target


#: sources whose records say of an article whether it is retracted: those of an export, or of anybody, do not
_STATING = frozenset({"pubmed", "pmc", "jats", "europepmc", "clinicaltrials"})
_SHARED = tuple(f"{kind}:" for kind in NAMED_BY)


class NoticeKind(StrEnum):
    """Kind of a notice about a passage."""

    RETRACTION = "retraction"
    CONCERN = "concern"


@dataclass(frozen=True, kw_only=True, slots=True)
class Notice:
    """A record's statement that another one is retracted, or of concern.

    A record may also give notice of itself, for copies of it without the mark. A record's notices come before it, with its
    place, so that a finished place is complete.

    A notice may come years after its target, or before an unmarked copy of it. So it holds for passages in the index and
    for passages read later.
    """

    #: id of the target passage, e.g. ``pmid:9500320``
    target: str
    kind: NoticeKind
    #: id of the record that gives the notice
    by: str
    path: Path
    #: place of that record in the file, counted from 1
    line: int


@dataclass(frozen=True, kw_only=True, slots=True)
class Remark:
    """A remark on a record that was read, e.g. that a page of it was not, or on a file; the record is valid."""

    reason: str
    path: Path
    #: place in the file, counted from 1
    line: int
    #: id of the record, or the part of it that is meant, e.g. ``page 3``; ``None``: the file
    record: str | None = None

    def __str__(self) -> str:
        return f"{self.path}:{self.line}: {self.reason}"


Item: TypeAlias = Record | Deletion | Notice | Parts | Remark | BadRecord | BadFile


def sentence(reason: str) -> str:
    """Return an error message of zlib or the system, without its final punctuation."""
    return reason.strip().rstrip(".") or "cannot be read"
