"""Reader of RIS, also gzipped, as reference managers and databases export it."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

from posology.corpus.items import Item
from posology.corpus.pubmed.record import Parsed
from posology.corpus.references import entries, fields
from posology.corpus.references.entries import Entry, Values
from posology.corpus.references.tagged import Syntax, tagged

SUFFIXES = (".ris", ".ris.gz", ".txt", ".txt.gz")

_SYNTAX = Syntax(
    tag=re.compile(r"([A-Z][A-Z0-9])  -(?=\s|\Z)(.*)", re.DOTALL),
    first="TY",
    last="ER",
    closing="ER",
)
_BEGINS = re.compile(rb"\s*TY  - [A-Z]")
#: RIS's tags by field, the most telling first; database and providers put identifiers into custom tags
_TAGS = {
    "key": ("ID", "LB"),
    "text": ("AB", "N2"),
    "title": ("TI", "T1", "CT"),
    "authors": ("AU", "A1"),
    "doi": ("DO", "DI"),
    "pmcid": ("C2",),
    "journal": ("JA", "J2", "JF", "JO", "T2"),
    "date": ("PY", "Y1", "DA"),
    "types": ("M3", "PT"),
    "languages": ("LA",),
    "database": ("DB", "DP"),
    "accession": ("AN",),
    "notes": ("N1", "UR", "L2", "C1", "C2", "C3", "C5", "C6", "C7", "C8", "U2", "XR", "M1", "M2"),
}


def begins(start: bytes) -> bool:
    """Return whether a text is RIS, by its beginning."""
    return _BEGINS.match(start) is not None


def read(path: Path, *, after: int = 0) -> Iterator[Item]:
    """Return the references of one file; see :mod:`posology.corpus.items`. Places are numbers of lines."""
    return entries.items(_entries, _build, path, after=after)


def count(path: Path) -> int:
    """Return the number of references, up to where the file can be read."""
    return entries.count(_entries, path)


def _entries(path: Path) -> Iterator[Entry]:
    return tagged(path, _SYNTAX)


def _build(values: Values, path: Path) -> Parsed:
    found = {
        name: [value for tag in tags for value in values.get(tag, ())]
        for name, tags in _TAGS.items()
    }
    return fields.parsed(found, path, source="ris")
