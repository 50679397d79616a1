"""The words of a page's picture, with their places."""

from __future__ import annotations

import math
import re
from typing import TYPE_CHECKING, Any

import cv2
import numpy as np

from posology.corpus.ocr.models import Models, Seen

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Picture = NDArray[np.uint8]

#: pixels of an inch: lines are read at the first, and found at half of it
DPI = 300
#: pixels of a page, so that one of any size fits into memory; A4 has 8,700,000
PIXELS = 12_000_000
#: probability below which a word is not legible, and one with digits; docs/decisions/0076-scans.md
SURE, SURE_NUMBER = 0.5, 0.8
UNKNOWN = "\ufffd"

#: height of a box, in widths of it, of a line that stands upright
_UPRIGHT = 1.5
#: lines by which is found whether a page stands on its head, and the probability of their words if it does not
_LOOKS, _KNOWN = 5, 0.8
#: heights of boxes that count as those of one type, and as of its size
_STEP, _TYPE = 1.5, 0.92
#: place of a baseline, from the middle of a line, in sizes of its type
_BASE = 0.28
#: gap between words of one box that parts cells, in sizes of type, and a word space's
_WIDE, _SPACE = 1.8, 0.25
#: least width of a line, in heights, whose slope is measured
_LONG = 6.0
#: a power whose raised digits were read as others: 5 × 109 is written as 545
_POWER = re.compile(r"10\d{1,2}(?!\d)")
_TIMES = re.compile(r"[×x·*]")
#: signs that stand for what the reader does not know
_ODD = re.compile("[■□◆◇�]")


def picture(page: Any) -> Picture:
    """Return the picture of a page of PDFium, shape ``(height, width)``, and no more than :data:`PIXELS` of it."""
    width, height = page.get_size()
    scale = min(DPI / 72, math.sqrt(PIXELS / max(1.0, width * height)))
    drawn = page.render(scale=scale, grayscale=True)
    shown: Picture = drawn.to_numpy().reshape(drawn.height, -1)[:, : drawn.width].copy()
    drawn.close()
    return shown


def reply(shown: Picture, models: Models) -> dict[str, Any]:
    """Return the words of a page, see :mod:`posology.corpus.ocr`.

    Args:
        shown: the page's picture.
        models: that read it.
    """
    boxes = _found(shown, models)
    if len(boxes) and _tall(boxes).mean() > 0.5:
        shown = np.ascontiguousarray(np.rot90(shown))
        boxes = _found(shown, models)
    boxes = boxes[~_tall(boxes) | (_heights(boxes) < 2 * _usual(boxes))]
    longest = boxes[np.argsort(-_widths(boxes), kind="stable")[:_LOOKS]]
    if len(boxes) and (sure := _surety(shown, longest, models)) < _KNOWN:
        turned = np.ascontiguousarray(shown[::-1, ::-1])
        # the corner that was lower right is upper left
        over = np.roll(np.array(shown.shape[::-1]) - boxes, 2, axis=1)
        again = np.roll(np.array(shown.shape[::-1]) - longest, 2, axis=1)
        if _surety(turned, again, models) > sure:
            shown, boxes = turned, over
    words: list[list[Any]] = []
    for box, straight, size in zip(boxes, _straight(boxes), _sizes(boxes), strict=True):
        words += _placed(models.read(_cut(shown, box)), straight * 72 / DPI, size * 72 / DPI)
    return {"words": words, "illegible": sum(run[0] == UNKNOWN for _, _, (run,) in words)}


def _found(shown: Picture, models: Models) -> NDArray[np.float64]:
    half = cv2.resize(shown, None, fx=0.5, fy=0.5, interpolation=cv2.INTER_AREA)
    return 2 * models.find(_colored(half))


def _colored(gray: Any) -> Picture:
    return np.asarray(cv2.cvtColor(gray, cv2.COLOR_GRAY2BGR), dtype=np.uint8)


def _widths(boxes: NDArray[np.float64]) -> NDArray[np.float64]:
    return np.asarray(np.hypot(*(boxes[:, 1] - boxes[:, 0]).T), dtype=float)


def _heights(boxes: NDArray[np.float64]) -> NDArray[np.float64]:
    return np.asarray(np.hypot(*(boxes[:, 3] - boxes[:, 0]).T), dtype=float)


def _usual(boxes: NDArray[np.float64]) -> float:
    return float(np.median(_heights(boxes))) if len(boxes) else 0.0


def _tall(boxes: NDArray[np.float64]) -> NDArray[np.bool_]:
    return _heights(boxes) > _UPRIGHT * _widths(boxes)


def _surety(shown: Picture, boxes: NDArray[np.float64], models: Models) -> float:
    sure = [word.sure for box in boxes for word in models.read(_cut(shown, box))]
    return float(np.mean(sure)) if sure else 0.0


def _cut(shown: Picture, box: NDArray[np.float64]) -> Picture:
    """Return the picture of a line, as if it were straight."""
    width, height = (max(1, round(float(of(box[None])[0]))) for of in (_widths, _heights))
    flat = np.array([[0, 0], [width, 0], [width, height], [0, height]], dtype=np.float32)
    turn = cv2.getPerspectiveTransform(box.astype(np.float32), flat)
    cut = cv2.warpPerspective(
        shown, turn, (width, height), flags=cv2.INTER_CUBIC, borderMode=cv2.BORDER_REPLICATE
    )
    return _colored(cut)


def _sizes(boxes: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the size of each line's type: a box with a ``g`` is higher than one without, and both are of one size."""
    heights = _heights(boxes)
    if not len(boxes):
        return heights
    usual = float(np.median(heights))
    steps = np.round(np.log(heights / usual) / math.log(_STEP))
    sizes: NDArray[np.float64] = _TYPE * usual * _STEP**steps
    return sizes


def _straight(boxes: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the ends of each line on a page that lies straight: left, right and middle, shape ``(lines, 3)``.

    The slope of lines may change from the top of a photograph to its foot.
    """
    if not len(boxes):
        return np.zeros((0, 3))
    left, right = (boxes[:, 0] + boxes[:, 3]) / 2, (boxes[:, 1] + boxes[:, 2]) / 2
    (x, y), across = ((left + right) / 2).T, right - left
    long = _widths(boxes) > _LONG * _heights(boxes)
    slopes = across[long, 1] / across[long, 0] if long.any() else np.zeros(1)
    usual = float(np.median(slopes))
    slope = np.full(len(boxes), usual)
    if long.sum() > 2 * _LOOKS:
        near = np.abs(slopes - usual) < 0.1
        slope = np.polyval(np.polyfit(y[long][near], slopes[near], 1), y)
    middle = y - slope * (x - float(np.median(x)))
    shift = usual * y
    return np.stack([left[:, 0] + shift, right[:, 0] + shift, middle], axis=1)


def _placed(seen: list[Seen], place: NDArray[np.float64], size: float) -> list[list[Any]]:
    """Return the words of a line; those of one box are neighbours, unless a wide gap parts them.

    Args:
        seen: its words.
        place: left, right and middle of the line, points.
        size: of its type, points.
    """
    left, right, middle = (float(value) for value in place)
    base = middle + _BASE * size
    starts = [left + one.start * (right - left) for one in seen]
    words: list[list[Any]] = []
    for i, (one, x0) in enumerate(zip(seen, starts, strict=True)):
        x1 = left + one.end * (right - left)
        after = starts[i + 1] if i + 1 < len(seen) else math.inf
        end = max(x0, after - _SPACE * size) if after - x1 < _WIDE * size else x1
        text = one.text if _legible(one, seen[i - 1].text if i else "") else UNKNOWN
        places = (x0, end, base - 0.9 * size, base, base + 0.1 * size)
        words.append([0.0, 0, [[text, *(round(value, 2) for value in places)]]])
    return words


def _legible(one: Seen, before: str) -> bool:
    least = SURE_NUMBER if any(map(str.isdigit, one.text)) else SURE
    if one.sure < least or _ODD.search(one.text):
        return False
    times = _TIMES.fullmatch(before) or _TIMES.match(one.text)
    return not (times and _POWER.match(one.text.lstrip("×x·*")))
