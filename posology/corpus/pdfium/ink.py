"""How the text of a page is shown; what is invisible, tiny, outside, clipped, white on white or on a layer that is off is not."""

from __future__ import annotations

import ctypes
import math
import re
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from enum import Enum, auto
from itertools import islice
from typing import Any

from pypdfium2 import raw

from posology.corpus.pdfium.objects import INVISIBLE, TINY, Layer, Objects, address, is_clipped
from posology.corpus.pdfium.places import height, loose_box, meet, page_box, tight_box

#: height and width of a glyph that its type does not have, in sizes of that
_OVER = 1.5
#: share of a page that a picture of it fills
_SCAN = 0.5
#: characters of a scanned page's layer, for each of a notice beside it
_LAYER = 2
#: least difference of brightness, of 255, of what is seen
_SEEN = 10
#: pixels of a drawing of a page, and of a point
_PIXELS, _SCALE = 1_500_000, 1.5
#: seconds of processor time for the drawings of a file's pages
_DRAWING = 60.0
#: layers of a page that are drawn each by itself
_LAYERS = 8

_BOLD = re.compile(rb"bold|black|heavy|semibold|demi", re.IGNORECASE)
#: fonts that show signs instead of letters
_SIGNS = re.compile(rb"symbol|dings|mt ?extra|marlett|monotype ?sorts", re.IGNORECASE)
_STROKED = (raw.FPDF_TEXTRENDERMODE_STROKE, raw.FPDF_TEXTRENDERMODE_STROKE_CLIP)


class Hidden(Enum):
    """Why nothing of a text is seen."""

    #: its mode paints nothing: the text layer of a scanned page, as a rule
    UNPAINTED = auto()
    TINY = auto()
    OUTSIDE = auto()
    #: transparent, clipped, of the color of what is behind it, or on a layer that is off
    UNSEEN = auto()


@dataclass(slots=True, eq=False)
class Piece:
    """Characters of one word and of one text object, without white space."""

    ink: Ink
    chars: str
    #: number of its first character
    first: int
    #: whether a space is before it
    spaced: bool


@dataclass(slots=True, eq=False)
class Ink:
    """How the characters of one text object are shown."""

    #: degrees, clockwise
    angle: float
    #: of its type, points
    size: float
    bold: bool
    #: name of its font if that shows signs instead of letters, else empty
    signs: str
    hidden: Hidden | None = None
    white: bool = False
    pieces: list[Piece] = field(default_factory=list)


@dataclass(slots=True)
class Drawings:
    """The time that is left for drawings of one file's pages."""

    #: seconds of processor time
    left: float = _DRAWING


class Inks:
    """The text objects of a page."""

    def __init__(self, page: Any, text: Any, drawings: Drawings) -> None:
        self._page = page
        self._text = text
        self._drawings = drawings
        self._box = page_box(page)
        self._found: dict[int, Ink] = {}
        #: characters that count as seen without a look: there was no time, or there were too many layers
        self.unlooked = 0

    def of(self, char: int) -> Ink:
        """Return the text object of a character."""
        thing = raw.FPDFText_GetTextObject(self._text, char)
        place = address(thing) if thing else 0
        if (ink := self._found.get(place)) is None:
            ink = self._found[place] = self._new(thing, char)
        return ink

    def piece(self, ink: Ink, chars: str, first: int, *, spaced: bool) -> Piece:
        """Return a new piece of a text object.

        Args:
            ink: the text object.
            chars: of the piece.
            first: number of its first character.
            spaced: whether a space is before it.
        """
        piece = Piece(ink, chars, first, spaced)
        ink.pieces.append(piece)
        if ink.hidden is Hidden.OUTSIDE and self._is_inside(first):
            ink.hidden = None
        return piece

    def _new(self, thing: Any, char: int) -> Ink:
        text = self._text
        font = ctypes.create_string_buffer(128)
        raw.FPDFText_GetFontInfo(text, char, font, 128, ctypes.c_int())
        ink = Ink(
            angle=round(math.degrees(raw.FPDFText_GetCharAngle(text, char)), 1) % 360,
            size=round(self._size(char), 2),
            bold=_BOLD.search(font.value) is not None,
            signs=font.value.decode(errors="replace") if _SIGNS.search(font.value) else "",
        )
        if not thing:
            return ink
        mode = raw.FPDFTextObj_GetTextRenderMode(thing)
        red, green, blue, alpha = color = [ctypes.c_uint() for _ in range(4)]
        of = raw.FPDFText_GetStrokeColor if mode in _STROKED else raw.FPDFText_GetFillColor
        known = of(text, char, red, green, blue, alpha)
        if mode in INVISIBLE:
            ink.hidden = Hidden.UNPAINTED
        elif ink.size <= TINY:
            ink.hidden = Hidden.TINY
        elif not self._is_inside(char):
            ink.hidden = Hidden.OUTSIDE
        elif (known and not alpha.value) or is_clipped(thing):
            ink.hidden = Hidden.UNSEEN
        elif known:
            ink.white = all(one.value >= 255 - _SEEN for one in color[:3])
        return ink

    def _size(self, char: int) -> float:
        """Return the size of a character's type; of a font that has another size than it says, that of its glyphs."""
        size = height(self._text, char)
        left, low, right, high = tight_box(self._text, char)
        return max(size, high - low) if min(high - low, right - left) > _OVER * size else size

    def _is_inside(self, char: int) -> bool:
        return meet(loose_box(self._text, char), self._box)

    def look(self, objects: Objects) -> None:
        """Find what is not seen since it has the color of what is behind it, or is on a layer that is off."""
        white: list[Ink] = []
        layers: dict[Layer, list[Ink]] = {}
        for place, ink in self._found.items():
            if ink.hidden is not None:
                continue
            if ink.white:
                white.append(ink)
            elif layer := objects.layers.get(place):
                layers.setdefault(layer, []).append(ink)
        if white:
            self._hide(white)
        active = set(objects.on)
        for inks in islice(layers.values(), _LAYERS, None):
            self._pass(inks)
        for layer, inks in islice(layers.items(), _LAYERS):
            # each by itself: what is on another layer may stand at the same place
            for other in active - {layer}:
                _show(objects.on[other], shown=False)
            _show(objects.on[layer], shown=True)
            active = {layer}
            self._hide(inks)

    def _hide(self, inks: Sequence[Ink]) -> None:
        """Draw the page, and mark what is not seen there."""
        if self._drawings.left <= 0:
            self._pass(inks)
            return
        begun = time.process_time()
        width, height = self._page.get_size()
        scale = min(_SCALE, math.sqrt(_PIXELS / max(1.0, width * height)))
        drawn = self._page.render(
            scale=scale, grayscale=True, draw_annots=False, may_draw_forms=False
        )
        for ink in inks:
            if not any(self._is_seen(piece, drawn) for piece in ink.pieces):
                ink.hidden = Hidden.UNSEEN
        self._drawings.left -= time.process_time() - begun

    def _pass(self, inks: Sequence[Ink]) -> None:
        self.unlooked += sum(length(ink.pieces) for ink in inks)

    def _is_seen(self, piece: Piece, drawn: Any) -> bool:
        """Return whether the place of a piece has more than one color."""
        x, y = ctypes.c_int(), ctypes.c_int()
        xs, ys = [], []
        for i in range(piece.first, piece.first + len(piece.chars)):
            left, low, right, high = tight_box(self._text, i)
            for across, up in ((left, low), (right, high)):
                raw.FPDF_PageToDevice(
                    self._page.raw, 0, 0, drawn.width, drawn.height, 0, across, up, x, y
                )
                xs.append(x.value)
                ys.append(y.value)
        first, last = max(0, min(xs)), min(drawn.width - 1, max(xs))
        colors: set[int] = set()
        for row in range(max(0, min(ys)), min(drawn.height - 1, max(ys)) + 1):
            start = row * drawn.stride
            colors.update(drawn.buffer[start + first : start + last + 1])
        return bool(colors) and max(colors) - min(colors) > _SEEN

    def read(self, pieces: Sequence[Piece], objects: Objects) -> Sequence[Piece]:
        """Return the pieces that are read: those that are seen, and those of the text layer of a scanned page.

        A page whose text is all invisible, or all tiny, is read.
        """
        seen = [one for one in pieces if one.ink.hidden is None]
        layer = [one for one in pieces if one.ink.hidden is Hidden.UNPAINTED]
        if not seen:
            return layer or [one for one in pieces if one.ink.hidden is Hidden.TINY]
        if self.is_scanned(objects) and length(layer) > _LAYER * length(seen):
            return [one for one in pieces if one.ink.hidden in (None, Hidden.UNPAINTED)]
        return seen

    def is_scanned(self, objects: Objects) -> bool:
        """Return whether pictures fill most of the page."""
        left, low, right, high = self._box
        return objects.pictures > _SCAN * (right - left) * (high - low)


def _show(things: Sequence[Any], *, shown: bool) -> None:
    for thing in things:
        raw.FPDFPageObj_SetIsActive(thing, shown)


def length(pieces: Sequence[Piece]) -> int:
    """Return the number of characters of pieces."""
    return sum(len(one.chars) for one in pieces)
