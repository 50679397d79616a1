"""Straight rules of a page: lines and thin boxes that stand level or upright."""

from __future__ import annotations

import ctypes
from collections.abc import Iterable, Iterator
from itertools import pairwise
from typing import Any, TypeAlias

from pypdfium2 import raw

from posology.corpus.pdfium.places import turned

Point: TypeAlias = tuple[float, float]

#: points: of a filled box that is a rule, of what counts as straight, and of the shortest rule
_THIN, _STRAIGHT, _SHORTEST = 2.5, 0.4, 4.0
#: points of paths of a page, beyond which it is a drawing, and forms within forms
_MOST, _DEEPEST = 20_000, 4


class _TooMany(Exception):
    """The page is a drawing."""


class Rules:
    """The rules of one page, whose paths are looked at when they are asked for."""

    def __init__(self, page: Any) -> None:
        count = raw.FPDFPage_CountObjects(page.raw)
        self._objects = [raw.FPDFPage_GetObject(page.raw, i) for i in range(count)]
        self._left = _MOST

    def of(self, turns: Iterable[float]) -> list[list[float]] | None:
        """Return rules as ``[turn, x0, y0, x1, y1]``, see :mod:`posology.corpus.pdfium`; ``None``: there are too many.

        Args:
            turns: directions of words, degrees, each once.
        """
        try:
            ends = list(self._ends(self._objects, [], depth=0))
        except _TooMany:
            return None
        rules = []
        for turn in turns:
            for one, other in ends:
                (x0, y0), (x1, y1) = turned(*one, turn), turned(*other, turn)
                places = min(x0, x1), min(y0, y1), max(x0, x1), max(y0, y1)
                rules.append([turn, *(round(at, 2) for at in places)])
        return rules

    def _ends(
        self, things: Iterable[Any], around: list[Any], *, depth: int
    ) -> Iterator[tuple[Point, Point]]:
        """Yield both ends of each rule."""
        for thing in things:
            kind = raw.FPDFPageObj_GetType(thing)
            if kind == raw.FPDF_PAGEOBJ_FORM and depth < _DEEPEST:
                count = raw.FPDFFormObj_CountObjects(thing)
                inner = [raw.FPDFFormObj_GetObject(thing, i) for i in range(count)]
                yield from self._ends(inner, [_matrix(thing), *around], depth=depth + 1)
            elif kind == raw.FPDF_PAGEOBJ_PATH:
                yield from self._path(thing, [_matrix(thing), *around])

    def _path(self, thing: Any, matrices: list[Any]) -> Iterator[tuple[Point, Point]]:
        fill, stroke = ctypes.c_int(), ctypes.c_int()
        raw.FPDFPath_GetDrawMode(thing, fill, stroke)
        if not (fill.value or stroke.value):
            return
        for points in self._parts(thing, matrices):
            if stroke.value:
                yield from (
                    (one, other) for one, other in pairwise(points) if _straight(one, other)
                )
            elif box := _box(points):
                yield box

    def _parts(self, thing: Any, matrices: list[Any]) -> Iterator[list[Point]]:
        """Yield the points of each part of a path; what is bent has none."""
        count = raw.FPDFPath_CountSegments(thing)
        self._left -= max(0, count)
        if self._left < 0:
            raise _TooMany
        x, y = ctypes.c_float(), ctypes.c_float()
        points: list[Point] = []
        for i in range(count):
            segment = raw.FPDFPath_GetPathSegment(thing, i)
            kind = raw.FPDFPathSegment_GetType(segment)
            if kind == raw.FPDF_SEGMENT_MOVETO or kind == raw.FPDF_SEGMENT_BEZIERTO:
                if points:
                    yield points
                points = []
            if kind == raw.FPDF_SEGMENT_BEZIERTO:
                continue
            raw.FPDFPathSegment_GetPoint(segment, x, y)
            points.append(_moved((x.value, y.value), matrices))
            if raw.FPDFPathSegment_GetClose(segment) and len(points) > 2:
                points.append(points[0])
        if points:
            yield points


def _matrix(thing: Any) -> Any:
    found = raw.FS_MATRIX()
    raw.FPDFPageObj_GetMatrix(thing, found)
    return found


def _moved(point: Point, matrices: Iterable[Any]) -> Point:
    x, y = point
    for at in matrices:
        x, y = at.a * x + at.c * y + at.e, at.b * x + at.d * y + at.f
    return x, y


def _straight(one: Point, other: Point) -> bool:
    across, up = abs(one[0] - other[0]), abs(one[1] - other[1])
    return min(across, up) < _STRAIGHT and max(across, up) > _SHORTEST


def _box(points: list[Point]) -> tuple[Point, Point] | None:
    """Return the ends of a filled box that is thin."""
    xs, ys = zip(*points, strict=True)
    x0, x1, y0, y1 = min(xs), max(xs), min(ys), max(ys)
    across, up = x1 - x0, y1 - y0
    if min(across, up) > _THIN or max(across, up) <= max(_SHORTEST, 2 * min(across, up)):
        return None
    if across > up:
        return (x0, (y0 + y1) / 2), (x1, (y0 + y1) / 2)
    return ((x0 + x1) / 2, y0), ((x0 + x1) / 2, y1)
