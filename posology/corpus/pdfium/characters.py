"""The characters of a page: what PDFium says, and what it marks as its own or as unknown."""

from __future__ import annotations

import ctypes
import re
from collections.abc import Iterable
from itertools import repeat
from typing import Any

from pypdfium2 import raw

from posology.corpus.pdfium.places import height, tight_box

UNKNOWN = "\ufffd"
#: stands for a character that is not shown, and is none of a word
NONE = "\u2060"
#: what a font may say of a glyph that is no character, or none that is always shown
_ODD = re.compile("[\x00-\x08\x0e-\x1f\x7f-\x9f\xad\u200b\u2060\ufeff\ufffe\uffff]")
_SOFT = "\xad"
_UNSHOWN = "\u200b\u2060\ufeff"
#: height of what is drawn, in heights of its type
_DRAWN = 0.02


def characters(text: Any, size: int) -> str:
    """Return the characters of a page, one for each of PDFium's.

    What has no Unicode is :data:`UNKNOWN`. PDFium's own marks are white space and, where it sees that a word goes on in the
    next line, a hyphen.

    Args:
        text: of the page.
        size: number of its characters.
    """
    buffer = (ctypes.c_ushort * (size + 1))()
    count = raw.FPDFText_GetText(text, 0, size, buffer) - 1
    codes: Iterable[int] = buffer[:size]
    if count != size or max(buffer) >= 0xD800:
        # some are left out, or are pairs
        codes = (raw.FPDFText_GetUnicode(text, i) for i in range(size))
    chars = "".join(map(chr, codes))
    unmapped = list(map(raw.FPDFText_HasUnicodeMapError, repeat(text, size), range(size)))
    if 1 not in unmapped and not _ODD.search(chars):
        return chars
    every = list(chars)
    for i, (char, no_unicode) in enumerate(zip(chars, unmapped, strict=True)):
        if no_unicode == 1:
            every[i] = _glyph(text, i)
        elif _ODD.match(char):
            every[i] = _meant(text, i, char)
    return "".join(every)


def _meant(text: Any, i: int, char: str) -> str:
    """Return what an odd character stands for."""
    if raw.FPDFText_IsGenerated(text, i) == 1:
        return " "
    if raw.FPDFText_IsHyphen(text, i) == 1:
        return "-"
    if char == _SOFT:
        # within a line, a font's only hyphen; where it is not drawn, a place to divide the word
        return "-" if _is_drawn(text, i) else NONE
    return NONE if char in _UNSHOWN else _glyph(text, i)


def _glyph(text: Any, i: int) -> str:
    """Return what stands for a glyph without Unicode: white space if its font draws nothing."""
    if _is_drawn(text, i):
        return UNKNOWN
    font = raw.FPDFTextObj_GetFont(raw.FPDFText_GetTextObject(text, i))
    return " " if raw.FPDFFont_GetIsEmbedded(font) == 1 else UNKNOWN


def _is_drawn(text: Any, i: int) -> bool:
    left, low, right, high = tight_box(text, i)
    return min(high - low, right - left) > _DRAWN * height(text, i)
