"""Quotes that a text nearly repeats: its sentences that come nearest, and what differs."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from difflib import Match, SequenceMatcher

from posology.text.quotes import EQUIVALENT, Span
from posology.text.quoting.edges import sentence_at

#: words and numbers of a quote that is compared: fewer are like any text, and more are looked up word for word alone
MIN_WORDS, MAX_WORDS = 5, 400
#: least share of the words of both that are the same and in the same order (Dice)
NEAR = 0.75
#: words of the text between two runs of a quote's, by word of the shorter run, over which they are not of one place
GAP = 4

#: a number, a word, or a mark that turns a meaning; a minus sign or a hyphen only in front of a number
_WORD = re.compile(r"\d+(?:[.,·]\d+)*|[^\W_]+|[<>=≤≥±+%]|-(?=\d)")


@dataclass(frozen=True, kw_only=True, slots=True)
class Difference:
    """Words that differ, as each writes them; empty where it has none."""

    quote: str
    text: str


@dataclass(frozen=True, kw_only=True, slots=True)
class Nearly:
    """The sentences of a text that come nearest to a quote."""

    #: whole sentences, so that nothing near the words is hidden
    span: Span
    #: share of the words of both that agree, 0 to 1
    share: float
    #: in order; none: only case, spaces or punctuation differ
    differences: tuple[Difference, ...]


@dataclass(frozen=True, kw_only=True, slots=True)
class _Word:
    form: str
    start: int
    end: int


def nearest(quote: str, text: str) -> Nearly | None:
    """Find the place in ``text`` that says most of ``quote`` in the same words and order.

    Args:
        quote: the quote as it was given.
        text: the passage.

    Returns:
        The place, or ``None`` if none is as near as :data:`NEAR`, or the quote has too few or too many words.
    """
    wanted, given = _words(quote), _words(text)
    if not MIN_WORDS <= len(wanted) <= MAX_WORDS or not given:
        return None
    middle, margin = _densest(wanted, given), len(wanted) // 2
    window = given[max(0, middle - margin) : middle + len(wanted) + margin]
    blocks = _trimmed(_compared(wanted, window).get_matching_blocks()[:-1])
    if not blocks:
        return None
    share = _share(blocks, len(wanted))
    if share < NEAR:
        return None
    start, end = blocks[0].b, blocks[-1].b + blocks[-1].size
    first = sentence_at(text, window[start].start)
    last = sentence_at(text, window[end - 1].end - 1)
    # as many words more as the quote has there, since these are what stands in their place
    before, after = blocks[0].a, len(wanted) - blocks[-1].a - blocks[-1].size
    found = [
        one
        for one in window[max(0, start - before) : end + after]
        if first.start <= one.start < last.end
    ]
    differences = tuple(
        Difference(quote=_of(quote, wanted[a:b]), text=_of(text, found[c:d]))
        for kind, a, b, c, d in _compared(wanted, found).get_opcodes()
        if kind != "equal"
    )
    span = Span(start=first.start, end=last.end)
    return Nearly(span=span, share=share, differences=differences)


def _words(text: str) -> Sequence[_Word]:
    return [
        _Word(form=one[0].lower(), start=one.start(), end=one.end())
        for one in _WORD.finditer(text.translate(EQUIVALENT))
    ]


def _compared(wanted: Sequence[_Word], given: Sequence[_Word]) -> SequenceMatcher[str]:
    forms = [one.form for one in wanted], [one.form for one in given]
    return SequenceMatcher(None, *forms, autojunk=False)


def _densest(wanted: Sequence[_Word], given: Sequence[_Word]) -> int:
    """Return where the run of as many words as are wanted begins that shares most of them, in any order."""
    left = Counter(one.form for one in wanted)
    size, common, best, at = len(wanted), 0, -1, 0
    for number, word in enumerate(given):
        common += left[word.form] > 0
        left[word.form] -= 1
        if number >= size:
            gone = given[number - size].form
            left[gone] += 1
            common -= left[gone] > 0
        if common > best:
            best, at = common, max(0, number - size + 1)
    return at


def _trimmed(blocks: Sequence[Match]) -> Sequence[Match]:
    """Return the blocks without short ones at either end that stand far off: a stray "of" is no part of a quote."""
    while len(blocks) > 1:
        first, second, last, before = blocks[0], blocks[1], blocks[-1], blocks[-2]
        if second.b - (first.b + first.size) > GAP * first.size:
            blocks = blocks[1:]
        elif last.b - (before.b + before.size) > GAP * last.size:
            blocks = blocks[:-1]
        else:
            break
    return blocks


def _share(blocks: Sequence[Match], size: int) -> float:
    """Return the share of words that agree, of a quote of ``size`` words and the range from the first block to the last."""
    length = blocks[-1].b + blocks[-1].size - blocks[0].b
    return 2 * sum(one.size for one in blocks) / (size + length)


def _of(text: str, words: Sequence[_Word]) -> str:
    return text[words[0].start : words[-1].end] if words else ""
