"""Reader of CSV and TSV, also gzipped: a row is a reference, and its columns are known by their names.

The names are those that PubMed, Europe PMC, Scopus, Web of Science, Embase, Cochrane, Zotero and Rayyan export. The
delimiter is the one that finds most of them.
"""

from __future__ import annotations

import csv
import re
from collections.abc import Iterator
from functools import partial
from pathlib import Path

from posology.corpus.decoding import Lines, TooLong, text_lines, undecoded
from posology.corpus.items import Item
from posology.corpus.pubmed.record import Parsed
from posology.corpus.references import entries, fields
from posology.corpus.references.columns import GUESSED, Columns, Header, header_of
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


def read(path: Path, *, after: int = 0, columns: Columns = GUESSED) -> Iterator[Item]:
    """Return the references of one table; see :mod:`posology.corpus.items`. Places are line numbers.

    A table without a column of abstracts, or without a column that is named, is a :class:`~posology.errors.BadFile`. A row with more cells than the header
    is a bad record, and one with fewer if one of its cells has a line break: a quote is missing there.
    """
    return entries.items(partial(_entries, columns=columns), _build, path, after=after)


def count(path: Path, *, columns: Columns = GUESSED) -> int:
    """Return the number of rows, up to where the file can be read."""
    return entries.count(partial(_entries, columns=columns), path)


def _build(values: Values, path: Path) -> Parsed:
    authors = [name for text in values.get("authors", ()) for name in people(fields.clean(text))]
    return fields.parsed({**values, "authors": authors}, path, source="table")


def _entries(path: Path, *, columns: Columns) -> Iterator[Entry]:
    with text_lines(path) as lines:
        try:
            delimiter, header = _header(lines, columns)
        except TooLong as error:
            raise Unreadable(f"header: {error}: not a table") from None
        if header is not None:
            yield from rows(lines, delimiter, header)


def _header(lines: Lines, columns: Columns) -> tuple[str, Header | None]:
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
        (delimiter, header_of(cells, columns))
        for delimiter in ((asked,) if asked else _DELIMITERS)
        if (cells := _cells(first, delimiter))
    ]
    if not parted:
        raise Unreadable("header: a quote is not closed: write every name on the first line")
    delimiter, header = max(parted, key=lambda one: (one[1].known, len(one[1].names)))
    if header.missing:
        absent = ", ".join(map(repr, header.missing))
        raise Unreadable(f"has no column {absent} (columns: {_names(header)})")
    if "text" not in header.columns:
        raise Unreadable(_without_abstracts(header))
    return delimiter, header


def _cells(line: str, delimiter: str) -> list[str]:
    try:
        return next(csv.reader([line], delimiter=delimiter, strict=True), [])
    except (csv.Error, ValueError, TypeError):
        return []


def _without_abstracts(header: Header) -> str:
    names = _names(header)
    if {"PMID", "Citation", "Journal/Book"} <= set(header.names):
        return "PubMed's CSV has no abstracts: in PubMed choose Save, Format PubMed, and ingest that file"
    if set(header.columns) <= {"pmid", "key", "notes"} and "pmid" in header.columns:
        return (
            f"PMIDs without abstracts (columns: {names}): search PubMed for them, choose Save, Format PubMed, and "
            "ingest that file"
        )
    if header.known:
        return f"no column of abstracts (columns: {names}): name it with --column text=NAME, or export the abstracts, too"
    return f"no known column in the first line ({names}): name the columns, e.g. --column text=NAME --column title=NAME"


def _names(header: Header) -> str:
    names = ", ".join(name.strip()[:40] or "(no name)" for name in header.names[:_NAMED])
    return f"{names}, …" if len(header.names) > _NAMED else names


def rows(lines: Lines, delimiter: str, header: Header) -> Iterator[Entry]:
    """Yield the rows below a table's header, with their line numbers; a torn row has a reason instead of values."""
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
    if "field limit" in str(error):
        return f"has a cell of more than {csv.field_size_limit():,} characters"
    return f"not a row: {error}"
