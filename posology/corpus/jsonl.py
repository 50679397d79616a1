"""Reads JSON-lines files, plain or gzipped, one passage a line.

Nothing is raised for what a file holds: a line that is no passage is yielded as a
:class:`~posology.errors.BadRecord` and a file that ends early as a
:class:`~posology.errors.BadFile`, in their places, and the good lines around them are kept.
"""

from __future__ import annotations

import gzip
import re
import zlib
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import BinaryIO

from posology.corpus.items import Record, sentence
from posology.corpus.record import RecordError, parse, says_retracted
from posology.errors import BadFile, BadRecord
from posology.types import Passage

#: bytes; a longer line is reported and skipped without being held in memory
MAX_LINE = 10_000_000
SUFFIXES = (".jsonl", ".jsonl.gz")

_BOM = b"\xef\xbb\xbf"
_GZIP = b"\x1f\x8b"


def read(path: Path, *, after: int = 0) -> Iterator[Record | BadRecord | BadFile]:
    """The records of one file, in constant memory.

    Args:
        path: whether it is gzipped is told from its first two bytes, not from its name.
        after: the lines up to this one are passed over unread.

    Yields:
        For every line after ``after`` that is not blank, its record or what is wrong with it;
        last, a ``BadFile`` when the file could not be read to its end.
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
    """How many lines of a file are not blank, up to where it can be read."""
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
    """Numbered lines without their ends; ``None`` stands for one that is too long."""
    with path.open("rb") as raw:
        packed = raw.read(2) == _GZIP
        raw.seek(0)
        with gzip.open(raw, "rb") if packed else raw as stream:
            yield from _bounded(stream)  # type: ignore[arg-type]  # GzipFile reads like a file


def _bounded(stream: BinaryIO) -> Iterator[tuple[int, bytes | None]]:
    line = 0
    while content := stream.readline(MAX_LINE + 1):
        line += 1
        if len(content) > MAX_LINE and not content.endswith(b"\n"):
            while (rest := stream.readline(MAX_LINE)) and not rest.endswith(b"\n"):
                pass
            yield line, None
        else:
            yield line, content.removeprefix(_BOM) if line == 1 else content


_PUBMED = re.compile(r"pubmed[0-9]{2}n[0-9]{4}_[0-9]+")
_STATPEARLS = re.compile(r"(article-[0-9]+)_[0-9]+")
_WIKIPEDIA = re.compile(r"wiki[0-9]{8}en[0-9]{3}_[0-9]+")
#: between an article's name and its headings in a title of StatPearls
_STEP = " -- "


def told(passage: Passage, *, wiki_id: object = None) -> Passage:
    """A chunk with the collection as its source, and its article as its parent; what it has already stays.

    The id is kept, so that results can be compared with MedRAG's. A chunk of PubMed is a whole abstract: its parent is
    ``pmid:N``, so that whatever NLM withdraws under that number goes; if its title begins with ``RETRACTED:`` it was.
    A textbook is no article: its chunks have no parent. An id of another form tells nothing.

    Args:
        passage: as it was read.
        wiki_id: number of the page that a chunk of Wikipedia is of.
    """
    if _PUBMED.fullmatch(passage.id):
        # the files have no other word of it
        known = replace(passage, retracted=passage.retracted or says_retracted(passage.title))
        return _with(known, "pubmed", passage.pmid and f"pmid:{passage.pmid}")
    if article := _STATPEARLS.fullmatch(passage.id):
        title, _, headings = passage.title.partition(_STEP)
        section = " > ".join(part for part in headings.split(_STEP) if part) or None
        cut = replace(passage, title=title, section=passage.section or section)
        return _with(cut, "statpearls", article[1])
    if _WIKIPEDIA.fullmatch(passage.id):
        page = str(wiki_id) if isinstance(wiki_id, int | str) else ""
        return _with(passage, "wikipedia", f"wikipedia:{page}" if page.isdigit() else None)
    return passage


def _with(passage: Passage, collection: str, parent: str | None) -> Passage:
    return replace(
        passage,
        source=passage.source or f"medrag:{collection}",
        parent=passage.parent or parent or None,
    )
