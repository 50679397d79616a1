"""Columns of a page: its segments in parts, in reading order.

A column gap is where the fewest segments cross while many stand on either side; between rows that cross it, the left column
is read before the right one, and each is divided again. Rows whose segments are no prose are a table's, and are read
across.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import groupby

from posology.corpus.pdf.segments import Segment

#: columns of columns of columns
DEPTH = 3
#: points to which places are rounded
_STEP = 2.0
#: segments on each side of a column gap
_SIDE = 3
#: share of a column that a line of prose fills, but for a paragraph's last
_FILLED = 0.75
#: words of a shorter one, and its least width in heights of type
_PROSE_WORDS, _PROSE_WIDTH = 4, 6.0
#: share of the segments that are lines of prose where there are columns: of all, and of each column
_PROSE, _PROSE_SIDE = 0.45, 0.25
#: rows of a table between columns
_TABLE = 3


def ordered(segments: list[Segment], depth: int = 0) -> Iterator[list[Segment]]:
    """Yield the segments in parts that are read line by line, in reading order."""
    gutter = _gutter(segments) if depth < DEPTH else None
    if gutter is None:
        if segments:
            yield segments
        return
    together: list[Segment] = []
    for band, columns in _bands(segments, gutter):
        if not columns:
            together += band
            continue
        if together:
            yield together
            together = []
        for side in (0, 1):
            yield from ordered([one for one in band if _side(one, gutter) == side], depth + 1)
    if together:
        yield together


def _side(one: Segment, gutter: float) -> int:
    return int((one.x0 + one.x1) / 2 > gutter)


def _gutter(segments: Sequence[Segment]) -> float | None:
    """Return where columns are separated; ``None``: nowhere."""
    if len(segments) < 2 * _SIDE:
        return None
    low = min(one.x0 for one in segments)
    bins = int((max(one.x1 for one in segments) - low) / _STEP) + 2
    if bins > 10_000:
        return None
    # begun and ended segments by place: their difference crosses it
    begun, ended = [0] * (bins + 1), [0] * (bins + 1)
    for one in segments:
        begun[int((one.x0 - low) / _STEP)] += 1
        ended[min(bins, int((one.x1 - low) / _STEP) + 1)] += 1
    best, places, left, right = 0.0, list[int](), 0, len(segments)
    for place in range(bins):
        left += ended[place]
        right -= begun[place]
        if min(left, right) < _SIDE:
            continue
        score = min(left, right) - 0.25 * (len(segments) - left - right)
        if score > best:
            best, places = score, [place]
        elif score == best and places and places[-1] == place - 1:
            places.append(place)
    return low + _STEP * (sum(places) / len(places) + 0.5) if places else None


def _bands(segments: Sequence[Segment], gutter: float) -> Iterator[tuple[list[Segment], bool]]:
    """Yield segments from top to bottom, each time with whether they are columns."""
    low, high = min(one.x0 for one in segments), max(one.x1 for one in segments)
    rows = [list(row) for _, row in groupby(segments, key=lambda one: one.row)]
    rows.sort(key=lambda row: row[0].base)
    bands: list[tuple[list[list[Segment]], bool | None]] = []
    for crossing, group in groupby(rows, key=lambda row: _crosses(row, gutter)):
        some = list(group)
        if crossing:
            bands.append((some, False))
            continue
        bands += ((part, _columns(part, gutter, low, high)) for part in _parted(some))
    decided = _decided([columns for _, columns in bands])
    for columns, parts in groupby(zip(bands, decided, strict=True), key=lambda pair: pair[1]):
        yield [one for (part, _), _ in parts for row in part for one in row], columns


def _crosses(row: Sequence[Segment], gutter: float) -> bool:
    return any(one.x0 < gutter - _STEP and one.x1 > gutter + _STEP for one in row)


def _parted(rows: Sequence[list[Segment]]) -> Iterator[list[list[Segment]]]:
    """Yield rows between which no wide space is."""
    part: list[list[Segment]] = []
    for row in rows:
        size = max(one.size for one in row)
        if part and row[0].base - part[-1][0].base > 1.6 * size:
            yield part
            part = []
        part.append(row)
    if part:
        yield part


def _columns(
    rows: Sequence[Sequence[Segment]], gutter: float, low: float, high: float
) -> bool | None:
    """Return whether rows are lines of columns; ``None``: they may be either."""
    sides = {_side(one, gutter) for row in rows for one in row}
    if len(sides) < 2:
        return None
    prose = [0, 0]
    some = [0, 0]
    for one in (one for row in rows for one in row):
        side = _side(one, gutter)
        some[side] += 1
        prose[side] += _is_prose(one, (gutter - low, high - gutter)[side])
    enough = sum(prose) >= _PROSE * sum(some)
    if enough and all(of >= _PROSE_SIDE * all_ for of, all_ in zip(prose, some, strict=True)):
        return True
    # last lines of paragraphs are short, too
    table = len(rows) >= _TABLE or any(len(row) > 2 for row in rows)
    return False if table else None


def _is_prose(one: Segment, width: float) -> bool:
    wide = one.width > _FILLED * width or len(one.words) >= _PROSE_WORDS
    return wide and one.width > _PROSE_WIDTH * one.size


def _decided(columns: Sequence[bool | None]) -> list[bool]:
    """Return whether bands are columns; an undecided one is if its neighbour is."""
    found = list(columns)
    for i, one in enumerate(found):
        if one is None and i and found[i - 1]:
            found[i] = True
    for i in range(len(found) - 2, -1, -1):
        if found[i] is None and found[i + 1]:
            found[i] = True
    return [bool(one) for one in found]
