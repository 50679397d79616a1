"""Cutting of long texts into passages: between paragraphs, else between sentences, never within one."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from posology.text.sentences import split

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
    #: path of headings, or a page; ``None``: unknown
    section: str | None = None


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
    held: list[str] = []
    length = 0
    section: str | None = None
    for paragraph in paragraphs:
        for part in _parts(paragraph.text, limit):
            size = words(part)
            if held and (paragraph.section != section or length + size > limit):
                yield Piece(text=BREAK.join(held), section=section)
                held, length = [], 0
            held.append(part)
            length += size
            section = paragraph.section
    if held:
        yield Piece(text=BREAK.join(held), section=section)


def _parts(paragraph: str, limit: int) -> Iterator[str]:
    """Yield a paragraph, or its sentences in groups of at most ``limit`` words."""
    total = words(paragraph)
    if total <= limit:
        if total:
            yield paragraph.strip()
        return
    sentences = split(paragraph)
    aim = total / -(-total // limit)
    start = end = sentences[0].start
    length = 0
    for sentence in sentences:
        size = words(sentence.of(paragraph))
        # a sentence goes to the part that it brings nearer to an equal share
        if length and (length + size > limit or length + size / 2 > aim):
            yield paragraph[start:end]
            start, length = sentence.start, 0
        end = sentence.end
        length += size
    yield paragraph[start:end]
