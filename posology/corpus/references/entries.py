"""Entries of an export, and the items that they become."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TypeAlias

from posology.corpus.decoding import FAULTS, message
from posology.corpus.items import Item, Remark
from posology.corpus.pubmed.record import Parsed
from posology.errors import BadFile

#: texts by the name of their field, in the order of the file
Values: TypeAlias = Mapping[str, Sequence[str]]


@dataclass(frozen=True, kw_only=True, slots=True)
class Entry:
    """One entry of an export, as it stands in the file."""

    #: place in the file, counted from 1; places ascend, and what is said of all entries has the last one's
    line: int
    values: Values = field(default_factory=dict)
    #: why it cannot be read; empty: it can
    reason: str = ""
    #: what of it was not understood
    remarks: tuple[str, ...] = ()
    #: what is said of all entries, in place of one; empty: it is one
    of_all: str = ""


class Unreadable(Exception):
    """A file that cannot be read further, with the reason."""


#: reads an entry's fields
Build: TypeAlias = Callable[[Values, Path], Parsed]
#: reads a file's entries; it raises :class:`Unreadable`, or one of the faults of a text
Entries: TypeAlias = Callable[[Path], Iterable[Entry]]


def items(entries: Entries, build: Build, path: Path, *, after: int) -> Iterator[Item]:
    """Yield the items of a file of entries; see :mod:`posology.corpus.items`.

    A file without any entry is a :class:`~posology.errors.BadFile`.
    """
    last, keys = 0, _Keys()
    try:
        for row, entry in enumerate(entries(path)):
            last = entry.line
            if entry.of_all:
                if last > after:
                    yield Remark(reason=entry.of_all, path=path, line=last)
                continue
            parsed = Parsed(reason=entry.reason) if entry.reason else build(entry.values, path)
            # what was read before has taken its keys
            parsed = keys.apart(parsed)
            if last > after:
                if entry.remarks and parsed.passage is not None:
                    parsed = replace(parsed, remarks=entry.remarks + parsed.remarks)
                yield from parsed.items(path=path, line=last, row=row)
        if not last:
            yield BadFile("holds no record", path=str(path))
    except Unreadable as error:
        yield BadFile(str(error), path=str(path), line=last or None)
    except FAULTS as error:
        yield BadFile(message(error), path=str(path), line=last or None)


class _Keys:
    """Tells the references of a file apart that have one key: a study's, or a label's."""

    def __init__(self) -> None:
        #: what the first article of each key is called
        self._known: dict[int, int] = {}

    def apart(self, parsed: Parsed) -> Parsed:
        """Return a reference; of another article than the first of its key with a digest of what it is called behind that."""
        passage = parsed.passage
        if passage is None or not passage.id.startswith("file:"):
            return parsed
        called = passage.title or passage.text
        if self._known.setdefault(hash(passage.id), hash(called)) == hash(called):
            return parsed
        digest = hashlib.blake2b(called.encode(errors="surrogatepass"), digest_size=4).hexdigest()
        name = f"{passage.id}:{digest}"
        warned = tuple(replace(one, by=name) for one in parsed.warned)
        return replace(parsed, id=name, passage=replace(passage, id=name), warned=warned)


def count(entries: Entries, path: Path) -> int:
    """Return the number of entries, up to where the file can be read."""
    found = 0
    try:
        for entry in entries(path):
            found += not entry.of_all
    except (Unreadable, *FAULTS):
        pass  # `items` reports it with its line
    return found
