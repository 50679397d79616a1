"""Reader of CSV and TSV, also gzipped: a row is a reference, and its columns are known by their names.

The names are those that PubMed, Europe PMC, Scopus, Web of Science, Embase, Cochrane, Zotero and Rayyan export. The
delimiter is the one that finds most of them.
"""

from __future__ import annotations

import csv
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from posology.corpus.decoding import Lines, TooLong, text_lines, undecoded
from posology.corpus.items import Item
from posology.corpus.pubmed.record import Parsed
from posology.corpus.references import entries, fields
from posology.corpus.references.entries import Entry, Unreadable, Values
from posology.text.names import people

SUFFIXES = (".csv", ".csv.gz", ".tsv", ".tsv.gz", ".tab")
#: characters of one row
MAX_ROW = 5_000_000

_DELIMITERS = (",", "\t", ";", "|")
#: Excel's first line in some countries
_SEPARATOR = re.compile(r'"?sep=(.)"?\s*')
#: columns named in a message
_NAMED = 12

#: names of columns by field, in small letters and digits alone; the first of them that a file has is taken, and all
#: dates. Those of two letters are Web of Science's
COLUMNS: Mapping[str, Sequence[str]] = {
    "key": ("id", "key", "recordid", "recordnumber", "uid", "eid", "refid", "citekey"),
    "text": ("abstract", "abstracttext", "abstractnote", "ab", "text", "content", "summary"),
    "title": ("title", "articletitle", "documenttitle", "primarytitle", "papertitle", "ti"),
    "pmid": ("pmid", "pubmedid", "pubmed", "medlinepmid", "pubmedpmid", "pm"),
    "doi": ("doi", "articledoi", "doilink", "doiurl", "di"),
    "pmcid": ("pmcid", "pmc", "pmcids", "pubmedcentralid"),
    "journal": (
        "journal", "journalbook", "journaltitle", "journalname", "publicationtitle", "sourcetitle", "containertitle",
        "publicationname", "so",
    ),
    "authors": (
        "authors", "author", "authorfullnames", "authorstring", "authornames", "authorlist", "primaryauthors", "au",
    ),
    "date": (
        "publicationdate", "datepublished", "published", "date", "year", "publicationyear", "pubyear", "yearpublished",
        "py",
    ),
    "types": (
        "publicationtypes", "publicationtype", "documenttype", "articletype", "typeofpublication", "dt",
    ),
    "mesh": ("mesh", "meshterms", "meshheadings", "meshheading"),
    "languages": ("languages", "language", "languageoforiginaldocument", "la"),
    "retracted": ("retracted", "isretracted"),
    "notes": ("extra", "notes", "url", "link"),
}  # fmt: skip
#: fields that take all of their columns
_ALL = frozenset({"date", "notes"})


@dataclass(frozen=True, kw_only=True, slots=True)
class Header:
    """The names of a table's columns, and the fields that they are of."""

    names: tuple[str, ...]
    #: places of the columns of each field
    columns: Mapping[str, tuple[int, ...]]

    @property
    def known(self) -> int:
        """Return the number of columns that are read."""
        return sum(map(len, self.columns.values()))

    def values(self, row: Sequence[str]) -> Values:
        """Return the fields of a row, which may be shorter than the header."""
        return {
            name: [row[place] for place in places if place < len(row)]
            for name, places in self.columns.items()
        }


def read(path: Path, *, after: int = 0) -> Iterator[Item]:
    """Return the references of one table; see :mod:`posology.corpus.items`. Places are line numbers.

    A table without a column of abstracts is a :class:`~posology.errors.BadFile`. A row with more cells than the header
    is a bad record, and one with fewer if one of its cells has a line break: a quote is missing there.
    """
    return entries.items(_entries, _build, path, after=after)


def count(path: Path) -> int:
    """Return the number of rows, up to where the file can be read."""
    return entries.count(_entries, path)


def header_of(names: Sequence[str]) -> Header:
    """Return the fields that columns are of, by their names."""
    plain = [_plain(name) for name in names]
    columns: dict[str, tuple[int, ...]] = {}
    for field, known in COLUMNS.items():
        found = [place for name in known for place, one in enumerate(plain) if one == name]
        if field == "text" and not found:
            # such as Abstract (English)
            found = [place for place, one in enumerate(plain) if one.startswith("abstract")]
        if found:
            columns[field] = tuple(found if field in _ALL else found[:1])
    return Header(names=tuple(names), columns=columns)


def _plain(name: str) -> str:
    bare = name.strip().lower()
    letters = "".join(char for char in bare if char.isalnum())
    # of two letters they are tags: "a,b" is not AB
    return letters if len(letters) > 2 else bare


def _build(values: Values, path: Path) -> Parsed:
    authors = [name for text in values.get("authors", ()) for name in people(fields.clean(text))]
    return fields.parsed({**values, "authors": authors}, path, source="table")


def _entries(path: Path) -> Iterator[Entry]:
    with text_lines(path) as lines:
        try:
            delimiter, header = _header(lines)
        except TooLong as error:
            raise Unreadable(f"header: {error}: not a table") from None
        if header is not None:
            yield from _rows(lines, delimiter, header)


def _header(lines: Lines) -> tuple[str, Header | None]:
    """Return the delimiter and the header; ``None``: the file is empty."""
    first = ""
    asked: str | None = None
    for line in lines:
        if asked is None and (found := _SEPARATOR.fullmatch(line)):
            asked = found[1]
        elif line.strip():
            first = line
            break
    if not first:
        return "", None
    if wrong := undecoded(first):
        raise Unreadable(f"header: {wrong}")
    if "\0" in first:
        raise Unreadable("has NUL characters: save it as CSV in UTF-8")
    parted = [
        (delimiter, header_of(cells))
        for delimiter in ((asked,) if asked else _DELIMITERS)
        if (cells := _cells(first, delimiter))
    ]
    if not parted:
        raise Unreadable("header: a quote is not closed: write every name on the first line")
    delimiter, header = max(parted, key=lambda one: (one[1].known, len(one[1].names)))
    if "text" not in header.columns:
        raise Unreadable(_without_abstracts(header))
    return delimiter, header


def _cells(line: str, delimiter: str) -> list[str]:
    try:
        return next(csv.reader([line], delimiter=delimiter, strict=True), [])
    except (csv.Error, ValueError, TypeError):
        return []


def _without_abstracts(header: Header) -> str:
    names = ", ".join(name.strip()[:40] or "(no name)" for name in header.names[:_NAMED])
    more = ", …" if len(header.names) > _NAMED else ""
    if {"PMID", "Citation", "Journal/Book"} <= set(header.names):
        return "PubMed's CSV has no abstracts: in PubMed choose Save, Format PubMed, and ingest that file"
    if header.known:
        return f"no column of abstracts (columns: {names}{more}): name it 'abstract', or export the abstracts, too"
    return (
        f"no known column in the first line ({names}{more}): name the columns there, such as title, abstract, pmid, "
        "doi and year"
    )


def _rows(lines: Lines, delimiter: str, header: Header) -> Iterator[Entry]:
    reader = csv.reader(lines, delimiter=delimiter, strict=True)
    width = len(header.names)
    #: whether a record was torn, so that what follows may be the rest of it
    torn = False
    while True:
        line = lines.number + 1
        lines.room = MAX_ROW
        try:
            row = next(reader)
        except StopIteration:
            return
        except (TooLong, csv.Error) as error:
            torn = True
            yield Entry(line=line, reason=_fault(error))
            continue
        if not any(cell.strip() for cell in row):
            continue
        broken = torn or any("\n" in cell or "\r" in cell for cell in row)
        if len(row) > width or (len(row) < width and broken):
            yield Entry(
                line=line,
                reason=f"has {len(row)} cells, the header {width}: a quote or delimiter is missing",
            )
            continue
        torn = torn and len(row) < width
        yield Entry(line=line, values=header.values(row))


def _fault(error: Exception) -> str:
    if isinstance(error, TooLong):
        return f"longer than {MAX_ROW:,} characters"
    return f"not a row: {error}"
