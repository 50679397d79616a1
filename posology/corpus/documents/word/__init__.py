"""Reader of Word's files (``.docx``): what Word shows of them, as a page."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from posology.corpus.decoding import message
from posology.corpus.documents.html import Unreadable, article
from posology.corpus.documents.word.document import page
from posology.corpus.documents.word.package import opened
from posology.corpus.drafts import Broken, Draft, counted, placed
from posology.corpus.items import Item

SUFFIXES = (".docx",)


def read(path: Path, *, after: int = 0) -> Iterator[Item]:
    """Return the passages of one document; see :mod:`posology.corpus.items`.

    Tracked insertions are read and deletions are not; footnotes and endnotes come last; headers, comments and pictures are
    not read. What cannot be read is U+FFFD in its place, and a bad record. A file whose XML is larger than
    :data:`~posology.corpus.documents.word.package.MAX_BYTES`, or declares entities, is a bad file.
    """
    return placed(_drafts(path), path=path, after=after)


def count(path: Path) -> int:
    """Return the number of passages, up to where the file can be read."""
    return counted(_drafts(path))


def _drafts(path: Path) -> Iterator[Draft]:
    try:
        with path.open("rb") as stream:
            read_page = page(opened(stream))
    except Unreadable as error:
        yield Broken(reason=str(error))
        return
    except OSError as error:
        yield Broken(reason=message(error))
        return
    yield from article(read_page, path, source="word", suffixes=SUFFIXES)
