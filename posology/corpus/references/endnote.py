"""Reader of EndNote's XML, which Zotero and Mendeley export, too."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from posology.corpus.decoding import opened
from posology.corpus.items import Item
from posology.corpus.jats.stream import Ended, Sought, Torn, elements
from posology.corpus.pubmed.record import Parsed
from posology.corpus.pubmed.words import words
from posology.corpus.references import entries, fields
from posology.corpus.references.entries import Entry, Unreadable, Values

if TYPE_CHECKING:
    from lxml.etree import _Element

SUFFIXES = (".xml", ".xml.gz")
ROOTS = ("xml", "records")
#: bytes of one record
MAX_RECORD = 16_000_000

_FACES = {"superscript": "sup", "subscript": "sub"}
#: paths within a record by field, the most telling first
_PATHS = {
    "key": ("rec-number", "label"),
    "text": ("abstract",),
    "title": ("titles/title",),
    "authors": ("contributors/authors/author",),
    "doi": ("electronic-resource-num",),
    "pmcid": ("custom2",),
    "journal": (
        "periodical/abbr-1",
        "titles/alt-title",
        "periodical/full-title",
        "titles/secondary-title",
    ),
    "date": ("dates/pub-dates/date", "dates/year"),
    "types": ("work-type", "ref-type"),
    "languages": ("language",),
    "database": ("remote-database-name", "remote-database-provider"),
    "accession": ("accession-num",),
    "notes": ("notes", "urls/related-urls/url", "urls/web-urls/url"),
}


def read(path: Path, *, after: int = 0) -> Iterator[Item]:
    """Return the references of one file; see :mod:`posology.corpus.items`. Places are numbers of records.

    No entity is expanded, and nothing is fetched. A file that declares entities of its own is not read. A record that is
    not well-formed XML is a bad record.
    """
    return entries.items(_entries, _build, path, after=after)


def count(path: Path) -> int:
    """Return the number of records, up to where the file can be read."""
    return entries.count(_entries, path)


def _build(values: Values, path: Path) -> Parsed:
    return fields.parsed(values, path, source="endnote")


def _entries(path: Path) -> Iterator[Entry]:
    sought = Sought(name="record", longest=MAX_RECORD)
    with opened(path) as stream:
        for place, found in enumerate(elements(stream, sought), start=1):
            if isinstance(found, Ended):
                raise Unreadable(found.reason)
            if isinstance(found, Torn):
                yield Entry(line=place, reason=found.reason)
                continue
            _without_entities(found)
            yield Entry(line=place, values=_values(found))


def _without_entities(record: _Element) -> None:
    declared: Any = record.getroottree().docinfo.internalDTD
    if declared is not None and any(True for _ in declared.iterentities()):
        raise Unreadable("declares entities of its own, which EndNote does not: not read")


def _values(element: _Element) -> Values:
    for style in element.iter("style"):
        for face, tag in _FACES.items():
            if face in style.get("face", ""):
                style.tag = tag
    values = {
        name: [words(one) for path in paths for one in element.iterfind(path)]
        for name, paths in _PATHS.items()
    }
    # "May 1" stands beside the year
    year = words(element.find("dates/year"))
    values["date"] = [f"{year} {date}" for date in values["date"]] + values["date"]
    values["types"] += [one.get("name", "") for one in element.iterfind("ref-type")]
    return values
