"""Sentence boundaries with exact code-point offsets, for English biomedical prose.

The text is read once as words and the gaps between them; every gap is decided from the words
around it and from whether it lies inside brackets. No pattern backtracks and no slice grows with
the text, so the cost is linear. Figures: ``docs/decisions/0002-sentence-splitter.md``.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from enum import Enum, auto

from posology.text._lexicon import GREEK, NAME_LINKS, NEVER_FINAL, NUMBERED, SELDOM_FINAL, STARTERS
from posology.text.quoting.rows import rows_of
from posology.types import Sentence

#: A bracketed aside longer than this (code points) is taken for a stray bracket.
MAX_ASIDE = 400
#: A heading longer than this (code points) is taken for a sentence in capitals.
MAX_HEADING = 60

_TERMINATORS = ".!?…؟।۔"
_CLOSERS = "\"'”’»›)]}*_"
_OPENERS = "\"'“‘«‹([{*_¿¡"
_BULLETS = frozenset("-–—•·*▪●◦‣")
_LINE_ENDS = re.compile("\r\n|[\n\r\x85\u2028]")

_WORD = re.compile(r"\S+")
#: after a word without these, and a space, no sentence ends
_ENDING = re.compile(rf"[{_TERMINATORS})\]]")
_BRACKET = re.compile(r"[()\[\]]")
_WIDE_STOP = re.compile(r"[。！？][”’」』）]?")
_GLUED = re.compile(r"([a-z]{3,}\.)([A-Z][a-z]*)")
_DOTTED = re.compile(r"(?:[^\W\d_]{1,2}\.)+[^\W\d_]{1,2}")
_INITIAL = re.compile(r"[A-Z]\.")
_ITEM = re.compile(r"\(?(?:\d{1,2}|[A-Za-z]|[ivx]{1,4}|[IVX]{1,4})[.)]")
_NUMBERED_ITEM = re.compile(r"\(?\d{1,2}[.)]")
_REFERENCE = "0123456789,–-[]"
_NLM_NOTE = re.compile(r"\[(?:see comment|published erratum|comment|editorial)", re.IGNORECASE)


class _Kind(Enum):
    """Kind of a word, for the full stop before it."""

    CAPITAL = auto()
    NUMBER = auto()
    #: lower case, but a name that begins sentences: p53, mRNA, c-Fos, alpha
    NAME = auto()
    LOWER = auto()
    BULLET = auto()
    SYMBOL = auto()


def split(text: str) -> tuple[Sentence, ...]:
    """Split ``text`` into sentences.

    Whatever the input, the sentences are in order, do not overlap, neither begin nor end with
    whitespace, and together hold every character that is not whitespace. A blank line always
    ends a sentence; a semicolon or a colon never does; a stretch without punctuation stays whole,
    and so does a row of a table (:mod:`posology.text.quoting.rows`).

    Args:
        text: any Unicode text.

    Returns:
        The sentences as code-point offsets: ``text[s.start:s.end]`` is the sentence.
    """
    pieces = list(_pieces(text))
    brackets, inside = _brackets(text)
    rows = _within_rows(text)
    sentences: list[Sentence] = []
    first = 0
    for i in range(1, len(pieces) + 1):
        last = i == len(pieces)
        if not last and rows and rows[pieces[i][0]]:
            continue
        if last or _is_boundary(text, pieces, first, i, brackets=brackets, inside=inside):
            sentences.append(Sentence(start=pieces[first][0], end=pieces[i - 1][1]))
            first = i
    return tuple(sentences)


def _pieces(text: str) -> Iterator[tuple[int, int]]:
    """Yield the words of ``text``, cut further where a full stop needs no space after it."""
    wide = _WIDE_STOP.search(text) is not None
    for word in _WORD.finditer(text):
        start, end = word.span()
        if glued := _GLUED.fullmatch(text, start, end):
            if glued[2] in STARTERS:
                yield start, glued.end(1)
                start = glued.end(1)
        elif wide:
            for stop in _WIDE_STOP.finditer(text, start, end):
                yield start, stop.end()
                start = stop.end()
        if start < end:
            yield start, end


def _within_rows(text: str) -> bytearray:
    """Return which offsets lie within a row of a table, behind its first; empty: there is no row."""
    spans = list(rows_of(text))
    within = bytearray(len(text) if spans else 0)
    for start, end in spans:
        within[start + 1 : end] = b"\1" * (end - start - 1)
    return within


def _brackets(text: str) -> tuple[dict[int, int], bytearray]:
    """Return the matched brackets (closing to opening offset), and which offsets lie inside a pair."""
    unclosed: dict[str, list[int]] = {")": [], "]": []}
    pairs: dict[int, int] = {}
    inside = bytearray(len(text))
    for bracket in _BRACKET.finditer(text):
        i, char = bracket.start(), bracket[0]
        if char in "([":
            unclosed[")" if char == "(" else "]"].append(i)
        elif unclosed[char]:
            start = unclosed[char].pop()
            if i - start <= MAX_ASIDE:
                pairs[i] = start
                inside[start:i] = b"\1" * (i - start)
    return pairs, inside


def _is_boundary(
    text: str,
    pieces: list[tuple[int, int]],
    first: int,
    i: int,
    *,
    brackets: dict[int, int],
    inside: bytearray,
) -> bool:
    """Return whether a sentence that begins with piece ``first`` ends before piece ``i``."""
    begin = pieces[first][0]
    start, end = pieces[i - 1]
    gap = text[end : pieces[i][0]]
    if gap == " " and not _ENDING.search(text, start, end):
        return False
    word, following = text[start:end], text[slice(*pieces[i])]
    lines = len(_LINE_ENDS.findall(gap))
    if not gap or lines > 1 or "\u2029" in gap:
        return True
    if lines and (_begins_item(following) or _is_heading(text, begin, end, following)):
        return True
    if inside[end - 1]:
        return False
    if i - 1 == first and _ITEM.fullmatch(word):
        return False
    opened = brackets.get(end - 1)
    if (
        opened is not None
        and _kind(following) is _Kind.CAPITAL
        and (
            # MEDLINE brackets translated titles and its own notes instead of ending them by a stop.
            _NLM_NOTE.match(text, opened) or (opened == begin and i - 1 > first)
        )
    ):
        return True
    before = text[slice(*pieces[i - 2])] if i - 1 > first else ""
    return _ends(before, word, following)


def _begins_item(word: str) -> bool:
    return word in _BULLETS or _NUMBERED_ITEM.fullmatch(word) is not None


def _is_heading(text: str, begin: int, end: int, following: str) -> bool:
    """Return whether ``text[begin:end]``, which ends a line, is a heading such as ``METHODS``."""
    if not 4 <= end - begin <= MAX_HEADING or _kind(following) is not _Kind.CAPITAL:
        return False
    return text[begin:end].isupper() and text[end - 1] not in ",;-"


def _ends(before: str, word: str, following: str) -> bool:
    """Return whether ``word``, between ``before`` and ``following``, is the last of its sentence."""
    core = word.rstrip(_CLOSERS)
    stem = core.rstrip(_TERMINATORS)
    kind = _kind(following)
    if stem == core:
        return kind is _Kind.CAPITAL and _carries_reference(word)
    token = stem.lstrip(_OPENERS)
    if not token or core.endswith(("..", "…")):
        return bool(token) and kind in {_Kind.CAPITAL, _Kind.BULLET}
    if not core.endswith("."):
        return kind not in {_Kind.LOWER, _Kind.SYMBOL}
    closed = core != word
    starter = following.strip(_OPENERS + ",;:") in STARTERS
    acronym = len(token) > 1 and token.isupper() and "." not in token
    key = "" if acronym else token.lower()
    if key in NEVER_FINAL or (key in NUMBERED and kind is _Kind.NUMBER):
        return False
    if key in SELDOM_FINAL or _DOTTED.fullmatch(token):
        return kind is _Kind.CAPITAL and (starter or closed)
    if len(token) == 1 and token.isalpha() and not starter:
        initial = token.isupper() and (
            not before
            or before.endswith(",")
            or before.lower() in NAME_LINKS
            or _INITIAL.fullmatch(before)
            or _INITIAL.fullmatch(following)
        )
        return not initial and kind in {_Kind.CAPITAL, _Kind.NUMBER, _Kind.BULLET}
    return kind not in {_Kind.LOWER, _Kind.SYMBOL} or (closed and kind is _Kind.LOWER)


def _carries_reference(word: str) -> bool:
    """Return whether ``word`` ends a sentence and a reference is glued to its stop: ``disease.1,2``."""
    stem = word.rstrip(_REFERENCE)
    if stem == word or not stem.endswith("."):
        return False
    abbreviated = stem[:-1].lower() in NEVER_FINAL | SELDOM_FINAL | NUMBERED
    return stem[-4:-1].isalpha() and stem[-4:-1].islower() and len(stem) > 3 and not abbreviated


def _kind(word: str) -> _Kind:
    if word in _BULLETS:
        return _Kind.BULLET
    bare = word.lstrip(_OPENERS)
    if not bare:
        return _Kind.SYMBOL
    initial = bare[0]
    if initial.isnumeric():
        return _Kind.NUMBER
    if initial.isalpha() and not initial.islower():
        return _Kind.CAPITAL
    if not initial.islower():
        return _Kind.SYMBOL
    prefix = bare[:12].split("-")[0].rstrip(",;:")
    if prefix in GREEK or (len(prefix) == 1 and "-" in bare[:2]):
        return _Kind.NAME
    return _Kind.NAME if any(c.isdigit() or c.isupper() for c in bare[:12]) else _Kind.LOWER
