"""Exports: detects the format of a file from its content, and reads it."""

from __future__ import annotations

import gzip
import hashlib
import io
import zlib
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TextIO

from posology.budget.reconcile.formats import anthropic, openai, pages, requests, tabular
from posology.budget.reconcile.formats.values import Bad
from posology.budget.reconcile.measures import Kind
from posology.budget.reconcile.rows import RequestRow, Row
from posology.errors import BadFile, BadRecord

#: maximum characters of JSON pages in memory; a page of a report has some hundred thousand
MAX_PAGES = 128 * 1024 * 1024
PROVIDERS = (openai.PROVIDER, anthropic.PROVIDER)
_MODULES: Any = {module.PROVIDER: module for module in (openai, anthropic)}
_GZIP = b"\x1f\x8b"


@dataclass(frozen=True, kw_only=True, slots=True)
class Export:
    """A file with a known format."""

    path: Path
    #: format, for people
    format: str
    provider: str
    #: of JSON pages, which may hold both usage and costs, the first one's
    kind: Kind
    #: what JSON pages hold; ``None``: the file is read row by row
    rows_read: tuple[Row, ...] | None = None
    #: whether each line is a JSON object
    lines: bool = False

    def rows(self) -> Iterator[Row]:
        """Yield its rows by period and model.

        Raises:
            BadRecord: a row cannot be read.
            BadFile: the file cannot be read further.
        """
        if self.rows_read is not None:
            yield from self.rows_read
            return
        with _opened(self.path) as stream:
            _, rows = tabular.read(stream, str(self.path))
            for row in rows:
                with _named(self.path, row.line):
                    yield from _MODULES[self.provider].of_cells(row.cells)

    def requests(self) -> Iterator[RequestRow]:
        """Yield its rows of single requests.

        Raises:
            BadRecord: a row cannot be read.
            BadFile: the file cannot be read further.
        """
        with _opened(self.path) as stream:
            for line, cells in _cells(stream, self.path, lines=self.lines):
                with _named(self.path, line):
                    yield requests.of_cells(
                        cells, provider=self.provider, path=str(self.path), line=line
                    )


def inspect(path: Path, *, provider: str | None = None) -> Export:
    """Detect a file's format.

    Args:
        path: plain or gzipped, CSV or JSON.
        provider: of a file that does not name its own.

    Raises:
        BadFile: it cannot be read, is of no known format, or of another provider.
        BadRecord: something in it cannot be read.
    """
    with _opened(path) as stream:
        start = stream.read(tabular.HEAD)
    if not start.strip():
        raise BadFile("it is empty", path=str(path))
    found = _json(path, start, provider) if start.lstrip()[0] in "{[" else _csv(path, provider)
    if provider not in (None, found.provider):
        raise BadFile(
            f"it is an export of {found.provider}, not of {provider}: check --provider",
            path=str(path),
        )
    return found


def once(paths: Sequence[Path]) -> None:
    """Raise an error for a file that is given twice.

    Raises:
        BadFile: two files are the same, or one cannot be read.
    """
    seen: dict[bytes, Path] = {}
    for path in paths:
        try:
            with path.open("rb") as stream:
                digest = hashlib.file_digest(stream, "sha256").digest()
        except OSError as error:
            raise BadFile(error.strerror or str(error), path=str(path)) from None
        if digest in seen:
            raise BadFile(f"same content as {seen[digest]}: give it once", path=str(path))
        seen[digest] = path


def _json(path: Path, start: str, provider: str | None) -> Export:
    first = _object(start.strip().partition("\n")[0])
    if first is not None and not {"data", "results", "error"} & set(first):
        cells = _flat(first)
        if requests.has(frozenset(cells)):
            return _of_requests(path, cells, provider, lines=True)
    with _opened(path) as stream:
        text = stream.read(MAX_PAGES + 1)
    if len(text) > MAX_PAGES:
        raise BadFile("too large for pages of a report: give each page as a file", path=str(path))
    whose, rows = pages.read(text, str(path))
    kinds = sorted({row.kind for row in rows})
    return Export(
        path=path,
        format=f"{_MODULES[whose].SHOWN} {' and '.join(kinds)}, JSON",
        provider=whose,
        kind=rows[0].kind,
        rows_read=tuple(rows),
    )


def _csv(path: Path, provider: str | None) -> Export:
    with _opened(path) as stream:
        names, rows = tabular.read(stream, str(path))
        columns = frozenset(names)
        own = next((module for module in (anthropic, openai) if module.has(columns)), None)
        if requests.has(columns) and (columns & requests.SIGNS or own is None):
            return _of_requests(path, getattr(next(rows, None), "cells", {}), provider, lines=False)
    if own is None and provider is not None:
        own = _MODULES[provider]
    if own is None:
        raise BadFile(
            f"unknown export: its columns are {', '.join(names)[:300]}; name the provider with --provider",
            path=str(path),
            line=1,
        )
    kind = own.kind(columns)
    return Export(path=path, format=f"{own.SHOWN} {kind}, CSV", provider=own.PROVIDER, kind=kind)


def _of_requests(
    path: Path, cells: Mapping[str, Any], provider: str | None, *, lines: bool
) -> Export:
    with _named(path, 2 - lines):
        whose = provider or requests.provider_of(cells)
    if whose is None:
        raise BadFile("it does not name the provider: use --provider", path=str(path))
    shown = "JSON lines" if lines else "CSV"
    return Export(
        path=path,
        format=f"requests one by one, {shown}",
        provider=whose,
        kind=Kind.REQUESTS,
        lines=lines,
    )


def _cells(stream: TextIO, path: Path, *, lines: bool) -> Iterator[tuple[int, Mapping[str, Any]]]:
    if not lines:
        _, rows = tabular.read(stream, str(path))
        for row in rows:
            yield row.line, row.cells
        return
    number = 0
    while text := stream.readline(MAX_PAGES):
        number += 1
        if not text.strip():
            continue
        found = _object(text)
        if found is None:
            raise BadRecord("no JSON object", path=str(path), line=number)
        yield number, _flat(found)


def _object(text: str) -> dict[str, Any] | None:
    try:
        found = pages.decode(text.strip())
    except ValueError:
        return None
    return found if isinstance(found, dict) else None


def _flat(found: Mapping[str, Any]) -> dict[str, Any]:
    """Return an object's keys as columns, with those of ``usage`` and its details."""
    cells: dict[str, Any] = {}
    for key, value in found.items():
        if not isinstance(value, dict):
            cells[tabular.normal(key)] = value
        elif key in ("usage", "prompt_tokens_details", "input_tokens_details"):
            cells |= _flat(value)
    return cells


@contextmanager
def _named(path: Path, line: int) -> Iterator[None]:
    try:
        yield
    except Bad as error:
        raise BadRecord(str(error), path=str(path), line=line) from None


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
    except (OSError, EOFError, zlib.error) as error:
        reason = error.strerror if isinstance(error, OSError) else None
        raise BadFile(reason or str(error) or "cannot be read", path=str(path)) from None
