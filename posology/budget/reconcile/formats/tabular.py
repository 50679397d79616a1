"""CSV files: their columns, and their rows one by one."""

from __future__ import annotations

import csv
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TextIO

from posology.errors import BadFile, BadRecord

#: maximum characters of a file's first line
HEAD = 65_536


@dataclass(frozen=True, kw_only=True, slots=True)
class Line:
    """One row."""

    #: line, from 1
    line: int
    #: column, as :func:`normal` writes it, to cell
    cells: Mapping[str, str]


def normal(column: str) -> str:
    """Return a column's name in lower case with underscores: ``Usage Date (UTC)`` is ``usage_date_utc``."""
    return re.sub(r"[^a-z0-9]+", "_", column.strip().lower()).strip("_")


def read(stream: TextIO, path: str) -> tuple[tuple[str, ...], Iterator[Line]]:
    """Return the columns of a file, and an iterator over its rows.

    Raises:
        BadFile: there is no first line, or it names a column twice.
        BadRecord: while rows are asked for: a row has more or fewer cells than the first line.
    """
    head = stream.readline(HEAD)
    separator = max(",;\t", key=head.count)
    rows = csv.reader(_after(head, stream), delimiter=separator, strict=True)
    try:
        columns = tuple(map(normal, next(rows, ())))
    except csv.Error as error:
        raise BadFile(f"not CSV: {error}", path=path, line=1) from None
    named = [column for column in columns if column]
    if not named or len(named) < len(columns):
        raise BadFile("the first line does not name the columns", path=path, line=1)
    if twice := next((column for column in columns if columns.count(column) > 1), None):
        raise BadFile(f"duplicate column {twice}", path=path, line=1)
    return columns, _lines(rows, columns, path)


def _after(head: str, stream: TextIO) -> Iterator[str]:
    yield head
    yield from stream


def _lines(rows: Iterator[list[str]], columns: tuple[str, ...], path: str) -> Iterator[Line]:
    number = 1
    while True:
        try:
            row = next(rows, None)
        except csv.Error as error:
            raise BadRecord(f"not CSV: {error}", path=path, line=number + 1) from None
        if row is None:
            return
        number = rows.line_num  # type: ignore[attr-defined]  # csv.reader has it, its type is hidden
        if not any(cell.strip() for cell in row):
            continue
        if len(row) != len(columns):
            raise BadRecord(
                f"{len(row)} cells, but {len(columns)} columns",
                path=path,
                line=number,
            )
        yield Line(line=number, cells=dict(zip(columns, row, strict=True)))
