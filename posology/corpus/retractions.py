"""Reader of Retraction Watch's CSV, as Crossref publishes it: a row states the standing of an article.

The columns that are read are those of :data:`COLUMNS`; of the others, only their number counts. Dates are written
``M/D/YYYY H:MM``. A missing DOI is empty or ``unavailable``, a missing PMID also ``0``.
"""

from __future__ import annotations

import re
from collections.abc import Container, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from datetime import date
from pathlib import Path
from types import MappingProxyType

from posology.corpus.decoding import FAULTS, Lines, TooLong, message, text_lines, undecoded
from posology.corpus.record import plain_doi
from posology.corpus.references import tables
from posology.corpus.references.columns import Header
from posology.corpus.references.entries import Unreadable, Values
from posology.errors import BadFile, BadRecord
from posology.types import FlagKind

#: fields and the columns that they are read from
COLUMNS: Mapping[str, str] = MappingProxyType(
    {
        "record": "Record ID",
        "kind": "RetractionNature",
        "date": "RetractionDate",
        "doi": "OriginalPaperDOI",
        "pmid": "OriginalPaperPubMedID",
        "notice_doi": "RetractionDOI",
        "notice_pmid": "RetractionPubMedID",
    }
)
_KINDS: Mapping[str, FlagKind] = MappingProxyType(
    {
        "retraction": FlagKind.RETRACTION,
        "expression of concern": FlagKind.CONCERN,
        "correction": FlagKind.CORRECTION,
        "reinstatement": FlagKind.REINSTATEMENT,
    }
)
_MISSING = frozenset({"", "unavailable"})
_PMID = re.compile(r"0*([1-9][0-9]{0,11})(?:\.0)?")
_DOI = re.compile(r"10\.[0-9]{4,9}/\S+")
_AMERICAN = re.compile(
    r"([0-9]{1,2})/([0-9]{1,2})/([0-9]{4})(?:\s+[0-9:]+(?:\s*[AP]M)?)?", re.IGNORECASE
)
_ISO = re.compile(r"([0-9]{4})-([0-9]{2})-([0-9]{2})(?:[T ][0-9:.Z]+)?")
#: characters of a cell that a message shows
_SHOWN = 60


@dataclass(frozen=True, kw_only=True, slots=True)
class Statement:
    """A row: the standing of one article."""

    kind: FlagKind
    #: the article's PubMed identifier; ``None``: unknown
    pmid: str | None
    #: the article's DOI in lower case, without the resolver; ``None``: unknown
    doi: str | None
    #: date of the statement, ISO 8601; ``None``: unknown
    date: str | None
    #: id of the published notice, e.g. ``pmid:20137807``; ``None``: unknown, or the article's own
    by: str | None
    #: line in the file, counted from 1
    line: int


def read(path: Path) -> Iterator[Statement | BadRecord | BadFile]:
    """Yield the statements of a file, plain or gzipped. A row is held at a time; content raises nothing.

    A row is a :class:`~posology.errors.BadRecord` if a cell that is read cannot be understood. Other cells may hold
    anything: a wrong byte in an author's name costs no retraction. A file without the columns, or without any row, is a
    :class:`~posology.errors.BadFile`.
    """
    last = 0
    try:
        with text_lines(path) as lines:
            header = _header(lines)
            for entry in tables.rows(lines, ",", header):
                last = entry.line
                reason = entry.reason
                if not reason:
                    try:
                        yield _statement(entry.values, last)
                        continue
                    except ValueError as error:
                        reason = str(error)
                yield BadRecord(reason, path=str(path), line=last, record=_record(entry.values))
        if not last:
            yield BadFile("holds no row", path=str(path))
    except (Unreadable, *FAULTS) as error:
        reason = str(error) if isinstance(error, Unreadable) else message(error)
        yield BadFile(reason, path=str(path), line=last or None)


def _header(lines: Lines) -> Header:
    """Return the places of the columns.

    Raises:
        Unreadable: a column that is needed is missing.
    """
    try:
        first = next((line for line in lines if line.strip()), "")
    except TooLong as error:
        raise Unreadable(f"header: {error}: not a table") from None
    names = [name.strip() for name in first.strip().split(",")]
    # no name of the form holds a comma or a line break
    plain = [name.strip('"').strip() for name in names]
    places = {field: (plain.index(name),) for field, name in COLUMNS.items() if name in plain}
    if "kind" not in places or not {"doi", "pmid"} & places.keys():
        needed = "RetractionNature, and OriginalPaperDOI or OriginalPaperPubMedID"
        raise Unreadable(f"not a file of Retraction Watch's form: it needs the columns {needed}")
    return Header(names=tuple(plain), columns=places)


def _statement(values: Values, line: int) -> Statement:
    """Return what a row states.

    Raises:
        ValueError: a cell cannot be understood; the message names its column.
    """
    nature = _cell(values, "kind")
    kind = _KINDS.get(nature.casefold())
    if kind is None:
        known = ", ".join(one.capitalize() for one in _KINDS)
        raise ValueError(f"RetractionNature must be one of {known} (got {nature[:_SHOWN]!r})")
    pmid, doi = _pmid(values, "pmid"), _doi(values, "doi")
    by = _notice(values, {f"pmid:{pmid}", f"doi:{doi}"})
    return Statement(kind=kind, pmid=pmid, doi=doi, date=_date(values), by=by, line=line)


def _notice(values: Values, own: Container[str]) -> str | None:
    """Return the id of the published notice; ``None``: unknown, unreadable, or one of the article's own."""
    with suppress(ValueError):
        if (pmid := _pmid(values, "notice_pmid")) and f"pmid:{pmid}" not in own:
            return f"pmid:{pmid}"
    with suppress(ValueError):
        if (doi := _doi(values, "notice_doi")) and f"doi:{doi}" not in own:
            return f"doi:{doi}"
    return None


def _record(values: Values) -> str | None:
    cell = "".join(values.get("record", ())).strip()[:_SHOWN]
    return None if not cell or undecoded(cell) else cell


def _cell(values: Values, field: str) -> str:
    cell = "".join(values.get(field, ())).strip()
    if wrong := undecoded(cell):
        raise ValueError(f"{COLUMNS[field]}: {wrong}")
    return cell


def _pmid(values: Values, field: str) -> str | None:
    cell = _cell(values, field)
    if cell.casefold() in _MISSING or not cell.strip("0."):
        return None
    found = _PMID.fullmatch(cell)
    if found is None:
        raise ValueError(
            f"{COLUMNS[field]} must be digits, 0 or unavailable (got {cell[:_SHOWN]!r})"
        )
    return found[1]


def _doi(values: Values, field: str) -> str | None:
    cell = _cell(values, field)
    if cell.casefold() in _MISSING:
        return None
    found = plain_doi(cell) or ""
    if not _DOI.fullmatch(found):
        raise ValueError(f"{COLUMNS[field]} must be a DOI or unavailable (got {cell[:_SHOWN]!r})")
    return found


def _date(values: Values) -> str | None:
    cell = _cell(values, "date")
    if cell.casefold() in _MISSING:
        return None
    if found := _AMERICAN.fullmatch(cell):
        month, day, year = map(int, found.groups())
    elif found := _ISO.fullmatch(cell):
        year, month, day = map(int, found.groups())
    else:
        raise ValueError(f"RetractionDate must be month/day/year (got {cell[:_SHOWN]!r})")
    try:
        return date(year, month, day).isoformat()
    except ValueError:
        raise ValueError(f"RetractionDate is no date (got {cell[:_SHOWN]!r})") from None
