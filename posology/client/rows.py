"""Requests and rows of a batch, as they are sent."""

from __future__ import annotations

import gzip
import json
import zlib
from collections.abc import Iterable, Iterator, Mapping
from decimal import Decimal
from io import BytesIO
from pathlib import Path
from typing import Any

from posology.errors import BadFile

#: a request, or a line that is one
Row = Mapping[str, Any] | str | bytes
#: fast: the network is seldom slower than a higher level
_LEVEL = 1


def packed(rows: str | Path | Iterable[Row]) -> bytes:
    """Rows as they are sent, whole, so that they can be sent again.

    Raises:
        BadFile: the file cannot be read.
    """
    out = BytesIO()
    # without the time, the same rows are the same bytes
    with gzip.GzipFile(fileobj=out, mode="wb", compresslevel=_LEVEL, mtime=0) as file:
        for line in lines(rows):
            file.write(line)
    return out.getvalue()


def lines(rows: str | Path | Iterable[Row]) -> Iterator[bytes]:
    """Yield rows as lines of JSON.

    Args:
        rows: path of a file of JSON Lines, perhaps compressed with gzip; or the rows themselves.

    Raises:
        BadFile: the file cannot be read.
    """
    yield from _file(Path(rows)) if isinstance(rows, str | Path) else map(_line, rows)


def written(value: Any) -> str:
    """Return a value as JSON in ASCII, which can represent every string; a decimal is its text, as the API takes it."""
    return json.dumps(value, default=_decimal)


def _decimal(value: object) -> str:
    if isinstance(value, Decimal):
        return str(value)
    raise TypeError(f"a request cannot hold a {type(value).__name__}: give it as text or a number")


def _line(row: Row) -> bytes:
    text = written(row) if isinstance(row, Mapping) else row
    # what is no valid text is the service's to refuse, as one row among others
    line = text.encode(errors="surrogatepass") if isinstance(text, str) else text
    return line.rstrip(b"\r\n") + b"\n"


def _file(path: Path) -> Iterator[bytes]:
    try:
        with gzip.open(path) if path.suffix == ".gz" else path.open("rb") as file:
            yield from file
    except (OSError, EOFError, zlib.error) as error:
        raise BadFile(str(error), path=str(path)) from None
