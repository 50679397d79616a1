"""Prints the words of a PDF with their places: a program of its own, which :mod:`posology.corpus.pdf.process` runs.

PDFium is native code that reads files from anywhere. So it runs in a process whose memory and processor time are
limited, and a crash ends that process alone. This file imports nothing of Posology and begins within 0.1 s.

Standard output has one JSON object per line: first ``{"pages": n, "title": s}`` or ``{"unreadable": reason}``, then one
object per page, ``{"words": [...]}`` or ``{"wrong": reason}``. A word is ``[turn, bold, runs]``, and a run is
``[text, x0, x1, top, base, bottom]`` in points, as if its page were turned so that the word is upright; ``y`` grows
downwards. A raised or lowered part of a word is a run of its own.
"""

from __future__ import annotations

import ctypes
import json
import math
import re
import sys
from collections.abc import Iterable, Iterator
from typing import Any

import pypdfium2
from pypdfium2 import raw

_BOLD = re.compile(rb"bold|black|heavy|semibold|demi", re.IGNORECASE)
_WORD = re.compile(r"\S+")
#: PDFium has marks of its own for a hyphen at a line's end; other controls are not shown
_AS = {**dict.fromkeys(range(32), " "), **{ord(end): end for end in "\r\n"}, 2: "-", 0xFFFE: "-"}
#: share of a character's height by which two baselines may differ and count as one
_SAME = 0.04


def main(path: str, memory: int, seconds: int, most: int) -> None:
    """Print the words of a file.

    Args:
        path: of the file.
        memory: maximum bytes of this process.
        seconds: maximum processor time of this process.
        most: maximum number of characters of a page.
    """
    _limit(memory, seconds)
    try:
        document = pypdfium2.PdfDocument(path)
        count = len(document)
        title = document.get_metadata_value("Title")
    except pypdfium2.PdfiumError as error:
        locked = getattr(error, "err_code", None) == raw.FPDF_ERR_PASSWORD
        _print({"unreadable": "encrypted: remove its password" if locked else "damaged, or no PDF"})
        return
    _print({"pages": count, "title": title})
    for number in range(count):
        try:
            page = document[number]
            text = page.get_textpage()
            size = text.count_chars()
            if size > most:
                _print({"wrong": f"must have <= {most:,} characters (got {size:,})"})
            else:
                _print({"words": list(_words(text.raw, size))})
            text.close()
            page.close()
        except pypdfium2.PdfiumError as error:
            _print({"wrong": f"cannot be read: {error}"})


def _limit(memory: int, seconds: int) -> None:
    try:
        import resource
    except ImportError:
        return  # on Windows, there is none
    for kind, most in (
        (resource.RLIMIT_AS, memory),
        (resource.RLIMIT_CPU, seconds),
        (resource.RLIMIT_CORE, 0),
    ):
        _, hard = resource.getrlimit(kind)
        bound = most if hard == resource.RLIM_INFINITY else min(most, hard)
        resource.setrlimit(kind, (bound, hard))


def _print(value: dict[str, Any]) -> None:
    # a part of a pair of surrogates is escaped
    # bytes: the environment may name any encoding of text
    sys.stdout.buffer.write(json.dumps(value, separators=(",", ":")).encode() + b"\n")
    sys.stdout.buffer.flush()


class _Run:
    """Characters of one baseline, without white space."""

    def __init__(self, chars: str, first: int, turn: int, across: float) -> None:
        self.chars = chars
        self.first = first
        self.last = first + len(chars) - 1
        self.turn = turn
        #: the baseline's place, across the direction of writing
        self.across = across


def _words(text: Any, size: int) -> Iterator[list[Any]]:
    """Yield the words of a page, in the order of its content."""
    word: list[list[Any]] = []
    turn = bold = 0
    for run, spaced in _runs(text, size):
        box = _box(text, run)
        # a raised part comes as a line of its own
        if word and (spaced or run.turn != turn or not _touch(word[-1], box)):
            yield [turn, bold, word]
            word = []
        if not word:
            turn, bold = run.turn, _is_bold(text, run.first)
        word.append(box)
    if word:
        yield [turn, bold, word]


def _touch(left: list[Any], right: list[Any]) -> bool:
    """Return whether two runs are parts of one word."""
    height = max(left[5] - left[3], right[5] - right[3])
    return bool(
        -0.2 * height < right[1] - left[2] < 0.12 * height
        and abs(right[4] - left[4]) < 0.6 * height
    )


def _runs(text: Any, size: int) -> Iterator[tuple[_Run, bool]]:
    """Yield the runs of a page, each with whether a space is before it."""
    shown = _shown(text, size)
    end = 0
    for found in _WORD.finditer(shown):
        # PDFium ends a line where a raised character begins
        spaced = end == 0 or bool(shown[end : found.start()].strip("\r\n"))
        end = found.end()
        for run in _of_word(text, found[0], found.start()):
            yield run, spaced
            spaced = False


def _shown(text: Any, size: int) -> str:
    """Return the characters of a page, one for each of PDFium's; controls are white space."""
    buffer = (ctypes.c_ushort * (size + 1))()
    count = raw.FPDFText_GetText(text, 0, size, buffer) - 1
    codes: Iterable[int] = buffer[:size]
    if count != size or max(buffer) >= 0xD800:
        # some are left out, or are pairs
        codes = (raw.FPDFText_GetUnicode(text, i) for i in range(size))
    return "".join(map(chr, codes)).translate(_AS)


def _of_word(text: Any, word: str, first: int) -> Iterator[_Run]:
    """Yield the runs of a word; of a word of letters, the ends tell whether it has several."""
    x, y = ctypes.c_double(), ctypes.c_double()
    turn = round(raw.FPDFText_GetCharAngle(text, first) / (math.pi / 2)) % 4
    _, top, _, bottom = _place(text, first, turn)
    limit = _SAME * (bottom - top)

    def across(i: int) -> float:
        raw.FPDFText_GetCharOrigin(text, first + i, x, y)
        return x.value if turn % 2 else y.value

    last = len(word) - 1
    base = across(0)
    if last == 0 or (word.isalpha() and abs(across(last) - base) <= limit):
        yield _Run(word, first, turn, base)
        return
    start = 0
    for i in range(1, last + 1):
        if abs((place := across(i)) - base) > limit:
            yield _Run(word[start:i], first + start, turn, base)
            start, base = i, place
    yield _Run(word[start:], first + start, turn, base)


def _box(text: Any, run: _Run) -> list[Any]:
    x0, top, _, bottom = _place(text, run.first, run.turn)
    _, _, x1, _ = _place(text, run.last, run.turn)
    base = {0: -run.across, 1: -run.across, 2: run.across, 3: run.across}[run.turn]
    places = (x0, x1, top, base, bottom)
    return [run.chars, *(round(place, 2) for place in places)]


def _place(text: Any, char: int, turn: int) -> tuple[float, float, float, float]:
    """Return left, top, right and bottom of a character, on a page that is turned with it."""
    box = raw.FS_RECTF()
    raw.FPDFText_GetLooseCharBox(text, char, box)
    left, right, low, high = box.left, box.right, box.bottom, box.top
    match turn:
        case 0:
            return left, -high, right, -low
        case 1:
            return -high, -right, -low, -left
        case 2:
            return -right, low, -left, high
        case _:
            return low, left, high, right


def _is_bold(text: Any, char: int) -> int:
    name = ctypes.create_string_buffer(128)
    flags = ctypes.c_int()
    raw.FPDFText_GetFontInfo(text, char, name, 128, flags)
    return int(_BOLD.search(name.value) is not None)


if __name__ == "__main__":
    try:
        main(sys.argv[1], *map(int, sys.argv[2:]))
    except MemoryError:
        _print({"unreadable": "needs more memory than allowed"})
