"""Places of characters and objects, as PDFium says them and on a page that is turned."""

from __future__ import annotations

import ctypes
import math
from collections import Counter
from collections.abc import Iterable
from typing import Any, TypeAlias

from pypdfium2 import raw

#: left, bottom, right and top
Box: TypeAlias = tuple[float, float, float, float]

#: degrees by which characters of one direction may differ
NEAR = 5.0
#: the same from a multiple of 90 degrees that counts as one
_EXACT = 0.15
#: cosine and sine of four directions, in degrees
_QUARTERS = {0.0: (1.0, 0.0), 90.0: (0.0, 1.0), 180.0: (-1.0, 0.0), 270.0: (0.0, -1.0)}


def page_box(page: Any) -> Box:
    """Return the part of a page that is shown."""
    box = raw.FS_RECTF()
    raw.FPDF_GetPageBoundingBox(page.raw, box)
    return box.left, box.bottom, box.right, box.top


def object_box(thing: Any) -> Box:
    """Return the rectangle around a page's object."""
    left, low, right, high = (ctypes.c_float() for _ in range(4))
    raw.FPDFPageObj_GetBounds(thing, left, low, right, high)
    return left.value, low.value, right.value, high.value


def loose_box(text: Any, char: int) -> Box:
    """Return the rectangle of a character with the whole height of its font."""
    box = raw.FS_RECTF()
    raw.FPDFText_GetLooseCharBox(text, char, box)
    return box.left, box.bottom, box.right, box.top


def tight_box(text: Any, char: int) -> Box:
    """Return the rectangle around a character's glyph."""
    left, right, low, high = (ctypes.c_double() for _ in range(4))
    raw.FPDFText_GetCharBox(text, char, left, right, low, high)
    return left.value, low.value, right.value, high.value


def meet(one: Box, other: Box) -> bool:
    """Return whether two rectangles have a part in common."""
    return one[0] < other[2] and one[2] > other[0] and one[1] < other[3] and one[3] > other[1]


def height(text: Any, char: int) -> float:
    """Return the height of a character's type, points."""
    at = raw.FS_MATRIX()
    raw.FPDFText_GetMatrix(text, char, at)
    return abs(float(raw.FPDFText_GetFontSize(text, char))) * math.hypot(at.c, at.d)


def turns(angles: Iterable[float]) -> dict[float, float]:
    """Return the direction that each angle belongs to, degrees: the most frequent one near it."""
    found: dict[float, float] = {}
    for angle, _ in Counter(angles).most_common():
        near = (turn for turn in found.values() if _apart(angle, turn) <= NEAR)
        exact = (turn for turn in _QUARTERS if _apart(angle, turn) <= _EXACT)
        found[angle] = next(near, next(exact, angle))
    return found


def _apart(angle: float, other: float) -> float:
    return abs((angle - other + 180) % 360 - 180)


def turned(x: float, y: float, turn: float) -> tuple[float, float]:
    """Return a place of a page as of a page that is turned, ``y`` downwards."""
    cos, sin = _QUARTERS.get(turn) or (math.cos(math.radians(turn)), math.sin(math.radians(turn)))
    return x * cos - y * sin, -x * sin - y * cos


def baseline(text: Any, char: int, turn: float) -> float:
    """Return the baseline of a character, on a page that is turned with it."""
    x, y = ctypes.c_double(), ctypes.c_double()
    raw.FPDFText_GetCharOrigin(text, char, x, y)
    return -y.value if turn == 0 else turned(x.value, y.value, turn)[1]


def place(text: Any, char: int, turn: float) -> tuple[float, float, float, float]:
    """Return left, top, right and bottom of a character, on a page that is turned with it."""
    left, low, right, high = loose_box(text, char)
    if turn == 0:
        return left, -high, right, -low
    if turn in _QUARTERS:
        (x0, y0), (x1, y1) = turned(left, low, turn), turned(right, high, turn)
        return min(x0, x1), min(y0, y1), max(x0, x1), max(y0, y1)
    x, y = ctypes.c_double(), ctypes.c_double()
    raw.FPDFText_GetCharOrigin(text, char, x, y)
    start, base = turned(x.value, y.value, turn)
    size = height(text, char)
    # the box is one around the slanted character
    cos, sin = abs(math.cos(math.radians(turn))), abs(math.sin(math.radians(turn)))
    extent = right - left if cos > sin else high - low
    width = (extent - 1.2 * size * min(cos, sin)) / max(cos, sin)
    return start, base - size, start + min(max(width, 0.2 * size), size), base + 0.2 * size
