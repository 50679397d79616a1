"""The chain of an archive: each record carries its number and the SHA-256 digest of the record before it.

A digest is that of a record's line, without the line feed. The first record carries the digest of its tenant's
:func:`origin`. Redis keeps the :class:`Link` of the last archived record, so an archive that was cut, or written
again as a whole, does not end as Redis remembers.

Records of versions before the chain have neither number nor digest. They are read, and counted as unchained.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from posology.budget.books.reader import START, Entry, order
from posology.errors import BadFile


@dataclass(frozen=True, kw_only=True, slots=True)
class Link:
    """A record of the chain, as the next one remembers it."""

    #: id of its entry
    place: str
    #: its number in the tenant's archive, from 1; 0: before the first record
    number: int
    #: SHA-256 of its line, hexadecimal
    digest: str

    def __str__(self) -> str:
        return f"{self.place} {self.number} {self.digest}"


@dataclass(frozen=True, kw_only=True, slots=True)
class Record:
    """A line of an archived file."""

    entry: Entry
    #: number of the line, from 1
    line: int
    #: SHA-256 of the line, hexadecimal
    digest: str
    #: number in the tenant's archive; ``None``: unchained
    number: int | None
    #: digest of the record before; ``None``: unchained
    before: str | None

    @property
    def link(self) -> Link | None:
        """Return what the next record remembers; ``None``: unchained."""
        if self.number is None:
            return None
        return Link(place=self.entry.place, number=self.number, digest=self.digest)


def origin(tenant: str) -> Link:
    """Return the link before a tenant's first record."""
    digest = hashlib.sha256(f"posology ledger archive of {tenant}".encode()).hexdigest()
    return Link(place=START, number=0, digest=digest)


def parse(link: str) -> Link:
    """Return a link from its text.

    Raises:
        ValueError: it is none.
    """
    place, number, digest = link.split()
    return Link(place=place, number=int(number), digest=digest)


def chained(entry: Entry, before: Link) -> tuple[bytes, Link]:
    """Return the line of the record after a link, without its line feed, and the record's own link."""
    number = before.number + 1
    told = {
        "place": entry.place,
        "number": number,
        "before": before.digest,
        "fields": dict(entry.fields),
    }
    line = json.dumps(told).encode()
    return line, Link(place=entry.place, number=number, digest=_digest(line))


def records(path: Path) -> Iterator[Record]:
    """Yield the records of an archived file.

    Raises:
        BadFile: it cannot be read, or is none.
    """
    number: int | None = None
    try:
        with path.open("rb") as file:
            for number, text in enumerate(file, 1):
                yield _record(text.removesuffix(b"\n"), number)
    except OSError as error:
        raise BadFile(error.strerror or str(error), path=str(path)) from None
    except (ValueError, KeyError, TypeError, AttributeError):
        raise BadFile("it is no archive of a ledger", path=str(path), line=number) from None


def _record(text: bytes, line: int) -> Record:
    found = json.loads(text)
    number, before = found.get("number"), found.get("before")
    if (number is None) is not (before is None):
        raise ValueError("one half of a link")
    order(found["place"])
    return Record(
        entry=Entry(place=found["place"], fields=dict(found["fields"])),
        line=line,
        digest=_digest(text),
        number=None if number is None else int(number),
        before=before,
    )


def _digest(line: bytes) -> str:
    return hashlib.sha256(line).hexdigest()
