"""Cutting of long texts into passages: between paragraphs, else between sentences, never within one."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

from posology.text.sentences import split
from posology.types import Pages

#: Words of a passage that is cut from a longer text. The packaged embedder reads 256 tokens of title and text; a word
#: of a full text is 1.49 tokens (3,482 sections of 298 trial reports) and a title 26 (median): 153 words remain. Of
#: passages cut so the passage's vector reads 98 % of the text, of 180 words 96 % (docs/reference/corpora.md).
WORDS = 150
#: between the paragraphs of one passage; a blank line always ends a sentence
BREAK = "\n\n"

_WORD = re.compile(r"\S+")


@dataclass(frozen=True, kw_only=True, slots=True)
class Piece:
    """A text with its section."""

    text: str
    #: path of headings; ``None``: unknown
    section: str | None = None
    #: where its pages begin; ``None``: unknown
    pages: Pages | None = None

    def part(self, start: int, end: int) -> Piece:
        """Return a part of it, from code point ``start`` to before ``end``."""
        pages = None if self.pages is None else self.pages.cut(start, end)
        return replace(self, text=self.text[start:end], pages=pages)


def words(text: str) -> int:
    """Return the number of words of a text, separated by white space."""
    return sum(1 for _ in _WORD.finditer(text))


def pack(paragraphs: Iterable[Piece], *, limit: int = WORDS) -> Iterator[Piece]:
    """Yield passages of neighbouring paragraphs of one section, as many as fit in ``limit`` words. In constant memory.

    A paragraph of more words is cut between sentences, into parts of about equal length; a sentence of more words
    stays whole. Every character of a paragraph that is not white space comes in exactly one passage, in order.

    Args:
        paragraphs: in order; blank ones are passed over.
        limit: words of a passage, 1 or more.
    """
    held: list[Piece] = []
    length = 0
    for paragraph in paragraphs:
        for part in _parts(paragraph, limit):
            size = words(part.text)
            if held and (part.section != held[0].section or length + size > limit):
                yield _joined(held)
                held, length = [], 0
            held.append(part)
            length += size
    if held:
        yield _joined(held)


def _joined(pieces: Sequence[Piece]) -> Piece:
    """Return neighbouring pieces of one section as one."""
    stretches: list[tuple[int, int]] = []
    start = 0
    for piece in pieces:
        if piece.pages is not None:
            at = zip(piece.pages.numbers, piece.pages.starts, strict=True)
            stretches += ((number, start + place) for number, place in at)
        start += len(piece.text) + len(BREAK)
    return Piece(
        text=BREAK.join(piece.text for piece in pieces),
        section=pieces[0].section,
        pages=Pages.of(stretches),
    )


def _parts(paragraph: Piece, limit: int) -> Iterator[Piece]:
    """Yield a paragraph, or its sentences in groups of at most ``limit`` words."""
    text = paragraph.text
    total = words(text)
    if total <= limit:
        if total:
            yield paragraph.part(len(text) - len(text.lstrip()), len(text.rstrip()))
        return
    sentences = split(text)
    aim = total / -(-total // limit)
    start = end = sentences[0].start
    length = 0
    for sentence in sentences:
        size = words(sentence.of(text))
        # a sentence goes to the part that it brings nearer to an equal share
        if length and (length + size > limit or length + size / 2 > aim):
            yield paragraph.part(start, end)
            start, length = sentence.start, 0
        end = sentence.end
        length += size
    yield paragraph.part(start, end)
