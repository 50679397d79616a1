"""Reader of JSON-lines files, plain or gzipped, one passage per line.

Nothing is raised for a file's content: an invalid line is yielded as a :class:`~posology.errors.BadRecord`, and a file
that ends early as a :class:`~posology.errors.BadFile`, in their places. The good lines are kept.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterator
from io import BufferedIOBase
from pathlib import Path

from posology.corpus.decoding import opened
from posology.corpus.items import Record, sentence
from posology.corpus.record import RecordError, parse
from posology.errors import BadFile, BadRecord

#: bytes; a longer line is reported and skipped without being held in memory
MAX_LINE = 10_000_000
SUFFIXES = (".jsonl", ".jsonl.gz")

_BOM = b"\xef\xbb\xbf"


def read(path: Path, *, after: int = 0) -> Iterator[Record | BadRecord | BadFile]:
    """Yield the records of one file, in constant memory.

    Args:
        path: plain or gzipped (detected by content, not by name).
        after: number of the last line to skip.

    Yields:
        For every non-blank line after ``after``, its record or its fault; last, a ``BadFile`` if the file could not be
        read to its end.
    """
    line = row = 0
    try:
        for line, content in _lines(path):
            if content is not None and not content.strip():
                continue
            if line > after:
                yield _record(content, path=path, line=line, row=row)
            row += 1
    except (OSError, EOFError, zlib.error) as error:
        reason = error.strerror if isinstance(error, OSError) else None
        yield BadFile(sentence(reason or str(error)), path=str(path), line=line or None)


def count_rows(path: Path) -> int:
    """Return the number of non-blank lines, up to where the file can be read."""
    rows = 0
    try:
        for _, content in _lines(path):
            rows += content is None or bool(content.strip())
    except (OSError, EOFError, zlib.error):
        pass  # `read` reports it with its line
    return rows


def _record(content: bytes | None, *, path: Path, line: int, row: int) -> Record | BadRecord:
    if content is None:
        return BadRecord(f"longer than {MAX_LINE:,} bytes", path=str(path), line=line)
    try:
        passage = parse(content)
    except RecordError as error:
        return BadRecord(str(error), path=str(path), line=line, record=error.record)
    return Record(passage=passage, path=path, line=line, row=row)


def _lines(path: Path) -> Iterator[tuple[int, bytes | None]]:
    """Yield numbered lines without their ends; ``None`` for a line that is too long."""
    with opened(path) as stream:
        yield from _bounded(stream)


def _bounded(stream: BufferedIOBase) -> Iterator[tuple[int, bytes | None]]:
    line = 0
    while content := stream.readline(MAX_LINE + 1):
        line += 1
        if len(content) > MAX_LINE and not content.endswith(b"\n"):
            while (rest := stream.readline(MAX_LINE)) and not rest.endswith(b"\n"):
                pass
            yield line, None
        else:
            yield line, content.removeprefix(_BOM) if line == 1 else content
