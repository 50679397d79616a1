"""Exports: detects the format of a file from its content, and reads it."""

from __future__ import annotations

import csv
import gzip
import hashlib
import io
import json
import re
import zlib
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from decimal import Decimal
from functools import partial
from itertools import chain
from pathlib import Path
from typing import Any, TextIO

from pydantic import BaseModel, ConfigDict

from posology.budget.reconcile.records import (
    OWN,
    PAGES,
    PROVIDERS,
    Bad,
    Record,
    names_of,
    normal,
    parsed,
)
from posology.budget.reconcile.report import Kind
from posology.budget.reconcile.rows import Row, provider_of, request, usage_and_costs
from posology.errors import BadFile, BadRecord

#: maximum characters of a JSON page, which is read whole; one has some hundred thousand
MAX_PAGE = 128 * 1024 * 1024
_GZIP = b"\x1f\x8b"
#: a number that may be of thousands, or have a decimal comma
_COMMA = re.compile(r"\s*-?[$€]?\d+,\d+\s*")
_COST, _INPUT = names_of("cost"), names_of("whole", "input", "uncached")
#: names that only requests have; ``id`` alone tells nothing
_REQUEST = names_of("request_id", "client_id")
_FIGURES, _TIMES = _COST | _INPUT | names_of("output"), names_of("start", "end")


@dataclass(frozen=True, kw_only=True, slots=True)
class Export:
    """A file with a known format."""

    path: Path
    #: format, for people
    format: str
    provider: str
    kind: Kind

    def rows(self) -> Iterator[Row]:
        """Yield its rows.

        Raises:
            BadRecord: a row cannot be read.
            BadFile: the file cannot be read further.
        """
        with _opened(self.path) as stream:
            source = _source(stream)
            table = source.form == "CSV"
            priced = table and bool(source.names & _COST)
            for line, place, cells in source.records:
                try:
                    record = parsed(Record, cells)
                    if self.kind is Kind.REQUESTS:
                        yield request(record, self.provider, f"{self.path}:{line}", table=table)
                    else:
                        yield from usage_and_costs(
                            record, self.provider, table=table, priced=priced
                        )
                except Bad as error:
                    reason = f"{place}{error}"
                    raise BadRecord(reason, path=str(self.path), line=line) from None


def inspect(path: Path, *, provider: str | None = None) -> Export:
    """Detect a file's format.

    Args:
        path: plain or gzipped, CSV or JSON.
        provider: of a file that does not name its own.

    Raises:
        BadFile: it cannot be read, is of no known format, or of another provider.
    """
    with _opened(path) as stream:
        source = _source(stream)
        names, (line, _, first) = source.names, next(source.records, (1, "", {}))
        signs = PAGES if source.form == "JSON" else OWN
        whose = next((name for name in PROVIDERS if names & signs[name]), None)
        if source.form == "JSON lines" or names & _REQUEST or (whose is None and "id" in names):
            kind, shown = Kind.REQUESTS, "requests one by one"
            whose = provider or provider_of(parsed(Record, first, line))
        else:
            kind = Kind.COST if names & _COST and not names & _INPUT else Kind.USAGE
            whose = whose or provider
            shown = f"{PROVIDERS.get(whose or '', '')} {kind}"
        if whose is None or not (names & _FIGURES or names <= _TIMES):
            found = ", ".join(sorted(names))[:300]
            raise Bad(f"unknown export: its columns are {found}; name the provider with --provider")
        if provider not in (None, whose):
            raise Bad(f"it is an export of {whose}, not of {provider}: check --provider")
    return Export(path=path, format=f"{shown}, {source.form}", provider=whose, kind=kind)


def once(paths: Sequence[Path]) -> None:
    """Raise an error for a file that is given twice.

    Raises:
        BadFile: two files are the same, or one cannot be read.
    """
    seen: dict[bytes, Path] = {}
    for path in paths:
        with _opened(path), path.open("rb") as raw:
            digest = hashlib.file_digest(raw, "sha256").digest()
            if digest in seen:
                raise Bad(f"same content as {seen[digest]}: give it once")
        seen[digest] = path


#: line, place within it, and values by name
_Found = tuple[int, str, Mapping[str, Any]]


@dataclass(frozen=True, kw_only=True, slots=True)
class _Source:
    """The records of a file."""

    #: ``CSV``, ``JSON lines`` or ``JSON``
    form: str
    #: names of a table or a page, and those of the first of JSON lines
    names: frozenset[str]
    records: Iterator[_Found]


class _Bucket(BaseModel):
    model_config = ConfigDict(extra="allow")

    results: list[dict[str, Any]]


class _Page(BaseModel):
    data: list[_Bucket]


def _source(stream: TextIO) -> _Source:
    """Return the records of a table, of JSON lines, or of one page of a provider's report."""
    head = next((line for line in iter(partial(stream.readline, MAX_PAGE), "") if line.strip()), "")
    if not head:
        raise Bad("it is empty")
    if head.lstrip()[0] not in "{[":
        return _table(head, stream)
    try:
        first = _json(head)
    except Bad:
        first = None
    if isinstance(first, dict) and not {"data", "error"} & {*first}:
        usage = first.get("usage")
        names = map(normal, (*first, *(usage if isinstance(usage, dict) else ())))
        lines = _lines(chain([head], stream))
        return _Source(form="JSON lines", names=frozenset(names), records=lines)
    text = head + stream.read(MAX_PAGE)
    if len(text) >= MAX_PAGE:
        raise Bad("too large for a page of a report")
    records = _results(_json(text))
    found = frozenset(name for _, _, cells in records for name in cells)
    return _Source(form="JSON", names=found, records=iter(records))


def _table(head: str, stream: TextIO) -> _Source:
    delimiter = max(",;\t", key=head.count)
    rows = csv.reader(chain([head], stream), delimiter=delimiter, strict=True)

    def following() -> list[str] | None:
        try:
            return next(rows, None)
        except csv.Error as error:
            raise Bad(f"not CSV: {error}", line=rows.line_num) from None

    columns = [normal(column) for column in following() or ()]
    if "" in columns:
        raise Bad("the first line does not name the columns")
    if twice := next((column for column in columns if columns.count(column) > 1), None):
        raise Bad(f"duplicate column {twice}")

    def records() -> Iterator[_Found]:
        while (row := following()) is not None:
            if len(row) not in (0, len(columns)):
                raise Bad(f"{len(row)} cells, but {len(columns)} columns", line=rows.line_num)
            if delimiter == ";" and (comma := next(filter(_COMMA.fullmatch, row), None)):
                raise Bad(
                    f"{comma} may have a decimal comma: save the table with points",
                    line=rows.line_num,
                )
            if any(map(str.strip, row)):
                yield rows.line_num, "", dict(zip(columns, row, strict=True))

    return _Source(form="CSV", names=frozenset(columns), records=records())


def _lines(lines: Iterator[str]) -> Iterator[_Found]:
    for number, text in enumerate(lines, 1):
        if text.strip():
            found = _json(text, line=number)
            if not isinstance(found, dict):
                raise Bad("not a JSON object", line=number)
            yield number, "", found


def _results(page: Any) -> list[_Found]:
    if isinstance(page, dict) and "error" in page:
        said = page["error"]
        said = said.get("message", said) if isinstance(said, dict) else said
        raise Bad(f"an error of the provider, not a report: {' '.join(str(said).split())[:200]}")
    if not isinstance(page, dict) or not isinstance(page.get("data"), list):
        raise Bad("it is not one page of a usage or cost report")
    buckets = parsed(_Page, page).data
    found: list[_Found] = []
    for number, bucket in enumerate(buckets):
        times = {
            name: value for name, value in (bucket.model_extra or {}).items() if name != "object"
        }
        # a bucket without results says that nothing was used
        for place, result in enumerate(bucket.results or [{}]):
            found.append((1, f"data[{number}].results[{place}].", times | result))
    if not found:
        raise Bad("it has no buckets: export a longer period")
    return found


def _json(text: str, line: int | None = None) -> Any:
    """Return a JSON value with exact fractions."""
    try:
        return json.loads(text, parse_float=Decimal)
    except RecursionError:
        raise Bad("not JSON: nested too deeply", line=line) from None
    except ArithmeticError:
        raise Bad("not JSON: a number out of range", line=line) from None
    except ValueError as error:
        raise Bad(f"not JSON: {error}; give each page of a report as a file", line=line) from None


@contextmanager
def _opened(path: Path) -> Iterator[TextIO]:
    try:
        with path.open("rb") as raw:
            packed = raw.read(2) == _GZIP
            raw.seek(0)
            with (
                gzip.open(raw, "rb") if packed else raw as stream,
                io.TextIOWrapper(stream, encoding="utf-8-sig", newline="") as text,
            ):
                yield text
    except UnicodeDecodeError:
        raise BadFile("it is not UTF-8", path=str(path)) from None
    except Bad as error:
        if error.line is None:
            raise BadFile(str(error), path=str(path)) from None
        raise BadRecord(str(error), path=str(path), line=error.line) from None
    except (OSError, EOFError, zlib.error) as error:
        reason = error.strerror if isinstance(error, OSError) else None
        raise BadFile(reason or str(error) or "cannot be read", path=str(path)) from None
