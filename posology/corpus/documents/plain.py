"""Reader of plain text in UTF-8, also gzipped: its paragraphs become the passages of one article."""

from __future__ import annotations

import codecs
import re
import zlib
from collections.abc import Iterator
from pathlib import Path

from posology.corpus.decoding import opened
from posology.corpus.drafts import Broken, Draft, counted, file_id, file_title, parts, placed
from posology.corpus.items import Item, sentence
from posology.corpus.pieces import Piece, pack
from posology.corpus.pubmed.words import visible
from posology.corpus.references.lists import no_prose
from posology.text.sentences import split
from posology.types import Passage

SUFFIXES = (".txt", ".txt.gz")

#: characters of a paragraph beyond which it is cut at the end of a sentence, and if there is none at a space
LONGEST = 100_000

_BLOCK = 65_536
#: Blank lines and form feeds; a line of a file may end as on any system.
_BORDER = re.compile(r"(?:\r\n|\n|\r)(?:[ \t\xa0]*(?:\r\n|\n|\r))+|\f")
_OTHERS = (
    (codecs.BOM_UTF32_LE, "UTF-32"),
    (codecs.BOM_UTF32_BE, "UTF-32"),
    (codecs.BOM_UTF16_LE, "UTF-16"),
    (codecs.BOM_UTF16_BE, "UTF-16"),
)


def read(path: Path, *, after: int = 0) -> Iterator[Item]:
    """Return the passages of one text, in constant memory; see :mod:`posology.corpus.items`.

    Its id is :func:`~posology.corpus.drafts.file_id` and its title the file's name. Paragraphs are parted by blank lines
    or form feeds; their characters are kept as they are, line ends among them, except those that are not shown. A list of references or identifiers is a
    :class:`~posology.errors.BadFile` that says how to get the records.
    """
    return placed(_drafts(path), path=path, after=after)


def count(path: Path) -> int:
    """Return the number of passages, up to where the file can be read."""
    return counted(_drafts(path))


class _NotText(Exception):
    """A file that is not text, with the reason."""


def _drafts(path: Path) -> Iterator[Draft]:
    if reason := no_prose(path):
        yield Broken(reason=reason)
        return
    article = Passage(
        id=file_id(path), text="", title=file_title(path, *SUFFIXES[::-1]), source="text"
    )
    broken: list[Broken] = []
    some = False
    for draft in parts(pack(_paragraphs(path, broken)), of=article):
        some = True
        if not broken or isinstance(draft, Passage):
            yield draft
    if not some and not broken:
        broken.append(Broken(reason="the file is empty"))
    yield from broken


def _paragraphs(path: Path, broken: list[Broken]) -> Iterator[Piece]:
    """Yield the paragraphs up to where the file can be read, and there into ``broken`` why it cannot be read further.

    The paragraph that the break is in is left out: half a sentence may say the contrary of the whole.
    """
    rest = ""
    try:
        for text in _decoded(path):
            rest += text
            begin = 0
            for border in _BORDER.finditer(rest):
                if border.end() == len(rest):
                    break  # more of it may follow
                yield from _bounded(rest[begin : border.start()])
                begin = border.end()
            rest = rest[begin:]
            while len(rest) > LONGEST:
                end = _sentence_end(rest)
                yield Piece(text=rest[:end])
                rest = rest[end:]
    except (OSError, EOFError, zlib.error) as error:
        reason = error.strerror if isinstance(error, OSError) else None
        broken.append(Broken(reason=sentence(reason or str(error))))
    except _NotText as error:
        broken.append(Broken(reason=str(error)))
    else:
        yield from _bounded(rest)


def _bounded(paragraph: str) -> Iterator[Piece]:
    # of an accent that a block began with, the letter was in the one before
    paragraph = visible(paragraph)
    while len(paragraph) > LONGEST:
        end = _sentence_end(paragraph)
        yield Piece(text=paragraph[:end])
        paragraph = paragraph[end:]
    yield Piece(text=paragraph)


def _sentence_end(text: str) -> int:
    """Return where to cut a text of more than :data:`LONGEST` characters."""
    sentences = split(text[:LONGEST])
    if len(sentences) > 1:
        return sentences[-2].end
    return max(text.rfind(space, 1, LONGEST) for space in " \n\t") + 1 or LONGEST


def _decoded(path: Path) -> Iterator[str]:
    decoder = codecs.getincrementaldecoder("utf-8-sig")()
    read_bytes = 0
    with opened(path) as stream:
        block = stream.read1(_BLOCK)
        for mark, name in _OTHERS:
            if block.startswith(mark):
                raise _NotText(f"encoded as {name}: save it as UTF-8")
        while block:
            if b"\0" in block:
                raise _NotText("has NUL characters: not plain text")
            try:
                yield visible(decoder.decode(block))
            except UnicodeDecodeError as error:
                raise _not_utf8(error, read_bytes) from None
            read_bytes += len(block)
            block = stream.read1(_BLOCK)
    try:
        yield visible(decoder.decode(b"", final=True))
    except UnicodeDecodeError as error:
        raise _not_utf8(error, read_bytes) from None


def _not_utf8(error: UnicodeDecodeError, before: int) -> _NotText:
    about = max(before + error.start, 0)
    return _NotText(f"not UTF-8 (about byte {about:,}): save it as UTF-8")
