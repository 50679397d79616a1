"""Reader of EndNote's XML, which Zotero and Mendeley export, too."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from posology.corpus.decoding import opened
from posology.corpus.items import Item, sentence
from posology.corpus.pubmed.record import Parsed
from posology.corpus.pubmed.words import words
from posology.corpus.references import entries, fields
from posology.corpus.references.entries import Entry, Unreadable, Values

if TYPE_CHECKING:
    from lxml.etree import XMLPullParser, _Element

SUFFIXES = (".xml", ".xml.gz")
ROOTS = ("xml", "records")
#: bytes of one record
MAX_RECORD = 16_000_000

_CHUNK = 65_536
_RECORD = "record"
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

    No entity is expanded, and nothing is fetched. A file that declares entities of its own is not read, and one that is
    not well-formed XML only up to there.
    """
    return entries.items(_entries, _build, path, after=after)


def count(path: Path) -> int:
    """Return the number of records, up to where the file can be read."""
    return entries.count(_entries, path)


def _build(values: Values, path: Path) -> Parsed:
    return fields.parsed(values, path, source="endnote")


def _entries(path: Path) -> Iterator[Entry]:
    for place, element in enumerate(_records(path), start=1):
        yield Entry(line=place, values=_values(element))


def _records(path: Path) -> Iterator[_Element]:
    from lxml import etree

    parser = etree.XMLPullParser(
        events=("start", "end"),
        resolve_entities=False,
        load_dtd=False,
        no_network=True,
        huge_tree=False,
        remove_comments=True,
        remove_pis=True,
    )
    since = 0
    with opened(path) as stream:
        chunk = b"."
        while chunk:
            chunk = stream.read1(_CHUNK)  # type: ignore[attr-defined]  # both kinds of stream are buffered
            since += len(chunk)
            try:
                if chunk:
                    parser.feed(chunk)
                else:
                    parser.close()
                for element in _ended(parser):
                    since = 0
                    yield element
            except (etree.XMLSyntaxError, ValueError, LookupError) as error:
                reason = sentence(str(error).partition("\n")[0])
                raise Unreadable(f"not well-formed XML: {reason}") from None
            if since > MAX_RECORD:
                raise Unreadable(f"a record of more than {MAX_RECORD:,} bytes")


def _ended(parser: XMLPullParser) -> Iterator[_Element]:
    for event, found in parser.read_events():
        element = cast("_Element", found)
        parent = element.getparent()
        if event == "start":
            if parent is None:
                _without_entities(element)
        elif element.tag == _RECORD:
            yield element
            element.clear()
            while parent is not None and element.getprevious() is not None:
                del parent[0]


def _without_entities(root: _Element) -> None:
    declared: Any = root.getroottree().docinfo.internalDTD
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
