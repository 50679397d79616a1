"""The objects of a page: what its characters do not tell."""

from __future__ import annotations

import ctypes
import math
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import zip_longest
from typing import Any, TypeAlias

from pypdfium2 import raw

from posology.corpus.pdfium.places import Box, meet, object_box

#: of text that nothing is drawn of
INVISIBLE = (raw.FPDF_TEXTRENDERMODE_INVISIBLE, raw.FPDF_TEXTRENDERMODE_CLIP)
#: forms within forms
_DEEPEST = 8
#: paths that clip an object, and points of one
_CLIPS = 64
#: characters of a layer's name
_NAME = 128
#: points of type that is not meant to be read, and width of an object of which nothing is drawn
TINY, _EMPTY = 2.5, 0.01
#: fonts of signs that PDFium has
_OWN = (b"Symbol", b"ZapfDingbats")


#: layers and forms that an object is in
Layer: TypeAlias = tuple[str, ...]


@dataclass(frozen=True, kw_only=True, slots=True)
class Lost:
    """A glyph that PDFium's text leaves out."""

    #: degrees, clockwise
    angle: float
    x: float
    y: float
    #: of its type
    height: float


class Objects:
    """The objects of a page and of the forms on it."""

    def __init__(self, page: Any) -> None:
        #: sum of the areas of pictures, square points
        self.pictures = 0.0
        #: layers of text, by its address, and objects by their layer: marks of that, or the forms that they are in; none: ()
        self.layers: dict[int, Layer] = {}
        self.on: dict[Layer, list[Any]] = {}
        self._texts: list[Any] = []
        count = raw.FPDFPage_CountObjects(page.raw)
        self._add((raw.FPDFPage_GetObject(page.raw, i) for i in range(count)), forms=())

    def _add(self, things: Iterable[Any], *, forms: Layer) -> None:
        for thing in things:
            kind = raw.FPDFPageObj_GetType(thing)
            layer = (*forms, *_layers(thing))
            if kind == raw.FPDF_PAGEOBJ_FORM and len(forms) < _DEEPEST:
                count = raw.FPDFFormObj_CountObjects(thing)
                inner = (raw.FPDFFormObj_GetObject(thing, i) for i in range(count))
                self._add(inner, forms=(*layer, str(address(thing))))
                continue
            self.on.setdefault(layer, []).append(thing)
            if kind == raw.FPDF_PAGEOBJ_TEXT:
                self.layers[address(thing)] = layer
                if not forms:
                    self._texts.append(thing)
            if kind == raw.FPDF_PAGEOBJ_IMAGE:
                left, low, right, high = object_box(thing)
                self.pictures += (right - left) * (high - low)

    def lost(self) -> Iterator[Lost]:
        """Yield the glyphs that PDFium's text leaves out.

        A font that is not in the file may have glyphs that no other font has. Each is a text object without width. So is a
        space: that is known by its width, which is where the next object begins.
        """
        for thing, following in zip_longest(self._texts, self._texts[1:]):
            left, _, right, _ = object_box(thing)
            font = raw.FPDFTextObj_GetFont(thing)
            if right - left > _EMPTY or raw.FPDFFont_GetIsEmbedded(font) == 1:
                continue
            if raw.FPDFTextObj_GetTextRenderMode(thing) in INVISIBLE:
                continue
            at, size = _matrix(thing), ctypes.c_float()
            raw.FPDFTextObj_GetFontSize(thing, size)
            height = abs(size.value) * math.hypot(at.c, at.d)
            if height > TINY and not _is_space(thing, following, at, size, 0.05 * height):
                angle = round(-math.degrees(math.atan2(at.b, at.a)), 1) % 360
                yield Lost(angle=angle, x=at.e, y=at.f, height=height)


def _is_space(thing: Any, following: Any, at: Any, size: Any, most: float) -> bool:
    font = raw.FPDFTextObj_GetFont(thing)
    width, other = ctypes.c_float(), ctypes.c_float()
    if following is None or not raw.FPDFFont_GetGlyphWidth(font, ord(" "), size, width):
        return False
    raw.FPDFFont_GetGlyphWidth(font, ord("m"), size, other)
    drawn = raw.FPDFFont_GetGlyphPath(font, ord("m"), size)
    if width.value == other.value and raw.FPDFGlyphPath_CountGlyphSegments(drawn) <= 0:
        name = ctypes.create_string_buffer(32)
        raw.FPDFFont_GetBaseFontName(font, name, 32)
        if name.value not in _OWN:
            # PDFium has no such font, and gives all of its glyphs one width
            return False
    then = _matrix(following)
    moved = math.hypot(then.e - at.e, then.f - at.f)
    return width.value > 0 and abs(moved - width.value * math.hypot(at.a, at.b)) < most


def _matrix(thing: Any) -> Any:
    found = raw.FS_MATRIX()
    raw.FPDFPageObj_GetMatrix(thing, found)
    return found


def address(thing: Any) -> int:
    """Return what two pointers to one object have in common."""
    return ctypes.addressof(thing.contents)


def _layers(thing: Any) -> Layer:
    """Return the names of the layers that an object is marked to be on."""
    found = []
    for i in range(max(0, raw.FPDFPageObj_CountMarks(thing))):
        mark = raw.FPDFPageObj_GetMark(thing, i)
        if _text(raw.FPDFPageObjMark_GetName, mark) == "OC":
            found.append(_text(raw.FPDFPageObjMark_GetParamStringValue, mark, b"Name"))
    return tuple(found)


def _text(of: Any, mark: Any, *key: bytes) -> str:
    size, name = ctypes.c_ulong(), (ctypes.c_ushort * _NAME)()
    if not of(mark, *key, name, ctypes.sizeof(name), size):
        return ""
    return bytes(name)[: size.value].decode("utf-16-le", "replace").rstrip("\0")


def is_clipped(thing: Any) -> bool:
    """Return whether all of an object is outside of the part of the page where it is drawn."""
    clip = raw.FPDFPageObj_GetClipPath(thing)
    paths = range(min(_CLIPS, raw.FPDFClipPath_CountPaths(clip)))
    parts = [_around(clip, path) for path in paths]
    if not parts:
        return False
    box = object_box(thing)
    return any(part is not None and not meet(box, part) for part in parts)


def _around(clip: Any, path: int) -> Box | None:
    """Return the rectangle around a path; ``None``: it has too many points."""
    count = raw.FPDFClipPath_CountPathSegments(clip, path)
    if not 0 < count <= _CLIPS:
        return None
    x, y = ctypes.c_float(), ctypes.c_float()
    points: list[tuple[float, float]] = []
    for i in range(count):
        raw.FPDFPathSegment_GetPoint(raw.FPDFClipPath_GetPathSegment(clip, path, i), x, y)
        points.append((x.value, y.value))
    xs, ys = zip(*points, strict=True)
    return min(xs), min(ys), max(xs), max(ys)
