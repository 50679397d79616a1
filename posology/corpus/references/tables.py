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
from posology.corpus.references.columns import GUESSED, IGNORED, Columns, Header, header_of
from posology.corpus.references.entries import Entry, Unreadable, Values
from posology.text.names import people

SUFFIXES = (".csv", ".csv.gz", ".tsv", ".tsv.gz", ".tab", ".txt", ".txt.gz")
#: characters of one row
MAX_ROW = 5_000_000

_DELIMITERS = (",", "\t", ";", "|")
#: Excel's first line in some countries
_SEPARATOR = re.compile(r'"?sep=(.)"?\s*')
#: columns named in a message
_NAMED = 12
#: lines in which the header must stand: Embase writes the search before it, Dimensions a note
_HEAD = 20
#: fields that a text's first lines must name to be a table: by tabs, or by other marks, which prose has, too
_BY_TABS, _BY_OTHERS = 2, 4
#: a cell that Excel must not read as a number, as EBSCO writes it: ="19326203"
_FORMULA = re.compile(r'="(.*)"', re.DOTALL)


def read(path: Path, *, after: int = 0, columns: Columns = GUESSED) -> Iterator[Item]:
    """Return the references of one table; see :mod:`posology.corpus.items`. Places are line numbers.

    A table without a column of abstracts, or without a column that is named, is a :class:`~posology.errors.BadFile`. A row with more cells than the header
    is a bad record, and one with fewer if one of its cells has a line break: a quote is missing there.
    """
    return entries.items(partial(_entries, columns=columns), _build, path, after=after)


def count(path: Path, *, columns: Columns = GUESSED) -> int:
    """Return the number of rows, up to where the file can be read."""
    return entries.count(partial(_entries, columns=columns), path)


def begins(start: str) -> bool:
    """Return whether a text is a table with a column of abstracts, by its beginning."""
    for line in start.split("\n")[:_HEAD]:
        for delimiter in _DELIMITERS:
            header = header_of(_cells(line, delimiter))
            least = _BY_TABS if delimiter == "\t" else _BY_OTHERS
            if "text" in header.columns and header.sure >= least:
                return True
    return False


def _build(values: Values, path: Path) -> Parsed:
    plain = {name: [_bare(text) for text in texts] for name, texts in values.items()}
    authors = [name for text in plain.get("authors", ()) for name in people(fields.clean(text))]
    return fields.parsed({**plain, "authors": authors}, path, source="table")


def _bare(cell: str) -> str:
    found = _FORMULA.fullmatch(cell)
    return found[1] if found else cell


def _entries(path: Path, *, columns: Columns) -> Iterator[Entry]:
    with text_lines(path) as lines:
        try:
            delimiter, header = _header(lines, columns)
        except TooLong as error:
            raise Unreadable(f"header: {error}: not a table") from None
        if header is None:
            return
        last = ignored = 0
        for entry in rows(lines, delimiter, header):
            last = entry.line
            read = entry.values.get("text", ())
            ignored += any(
                cell.strip() and cell not in read for cell in entry.values.get(IGNORED, ())
            )
            yield entry
        if ignored:
            yield Entry(line=last, of_all=_not_read(header, ignored))


def _not_read(header: Header, count: int) -> str:
    names = ", ".join(header.names[place].strip() for place in header.ignored)
    read = header.names[header.columns["text"][0]].strip()
    rows = "a row has text" if count == 1 else f"{count:,} rows have text"
    return (
        f"{rows} in columns that are not read ({names}): the abstract is {read}. "
        "Name another with --column text=NAME"
    )


def _header(lines: Lines, columns: Columns) -> tuple[str, Header | None]:
    """Return the delimiter and the header; ``None``: the file is empty.

    The header is the first of some lines that names a column of abstracts and another one, else the first line.
    """
    first: tuple[str, Header] | str = ""
    asked: str | None = None
    read = 0
    for line in lines:
        if asked is None and (found := _SEPARATOR.fullmatch(line)):
            asked = found[1]
            continue
        if not line.strip():
            continue
        found_in = _header_in(line, asked, columns)
        if isinstance(found_in, tuple) and _is_header(found_in[1], alone=not read):
            return found_in
        first = first or found_in
        read += 1
        if read == _HEAD:
            break
    if not first:
        return "", None
    if isinstance(first, str):
        raise Unreadable(f"header: {first}")
    header = first[1]
    if header.missing:
        absent = ", ".join(map(repr, header.missing))
        raise Unreadable(f"has no column {absent} (columns: {_names(header)})")
    raise Unreadable(_without_abstracts(header))


def _header_in(line: str, delimiter: str | None, columns: Columns) -> tuple[str, Header] | str:
    """Return the delimiter of a line, the one that finds most columns, and its header; or why it is none."""
    if wrong := undecoded(line):
        return wrong
    if "\0" in line:
        return "has NUL characters: save it as CSV in UTF-8"
    parted = [
        (one, header_of(cells, columns))
        for one in ((delimiter,) if delimiter else _DELIMITERS)
        if (cells := _cells(line, one))
    ]
    if not parted:
        return "a quote is not closed: write every name on the first line"
    return max(parted, key=lambda one: (one[1].known, len(one[1].names)))


def _is_header(header: Header, *, alone: bool) -> bool:
    """Return whether a line is a table's first; behind others it must name more than abstracts."""
    return (
        "text" in header.columns
        and not header.missing
        and (alone or not {"title", "pmid", "doi"}.isdisjoint(header.columns))
    )


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
