"""How runs of text look: by their own properties, their styles, the document's defaults and its theme.

ECMA-376, part 1, sections 17.3.2 (properties of runs) and 17.7 (styles). Only what changes the words is read: the font,
whether they are raised or lowered, and whether they are shown.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

from posology.corpus.documents.symbols import decoded, shows_signs
from posology.corpus.documents.word.names import W, is_on, short, value
from posology.corpus.gaps import Gaps

if TYPE_CHECKING:
    from lxml.etree import _Element

#: a property's name, and what is said of it
_Said = dict[str, str | bool | float]

_SWITCHES = {
    "w:vanish": "hidden",
    "w:strike": "struck",
    "w:dstrike": "struck twice",
    "w:rtl": "complex",
    "w:cs": "complex",
}
#: of these, each style that switches them switches them to the contrary (17.7.3)
_TOGGLES = ("hidden", "struck")
_SLOTS = {
    "ascii": "asciiTheme",
    "hAnsi": "hAnsiTheme",
    "cs": "cstheme",
    "eastAsia": "eastAsiaTheme",
}
_NUMBER = re.compile(r"[-+]?\d+(?:\.\d+)?")
_NAMED = re.compile(r"heading ([1-9])", re.IGNORECASE)
_TITLE = "title"
#: of a style that is no heading although one that it is based on is
_BODY = 9
#: levels of headings that a page has
_LEVELS = 6
_ASCII = re.compile(r"[\x00-\x7f]+|[^\x00-\x7f\ue000-\uf8ff]+|[\ue000-\uf8ff]+")
#: fonts of Unicode that documents call fonts of signs
_UNICODE = frozenset({"opensymbol", "starsymbol"})


@dataclass(frozen=True, kw_only=True, slots=True)
class Look:
    """How a run looks."""

    #: ``sup``, ``sub``, or empty: in line
    shift: str
    #: it is neither hidden nor struck through
    shown: bool
    #: fonts of ASCII and of other characters; ``None``: unknown
    font: str | None
    other: str | None


class Looks:
    """The styles of one document."""

    def __init__(
        self, styles: _Element | None, theme: _Element | None, fonts: _Element | None
    ) -> None:
        """Read the styles.

        Args:
            styles: root of the part; ``None``: the document has none.
            theme: the same.
            fonts: the same, of the table of fonts.
        """
        self._theme = _theme(theme)
        self._signs = _signs(fonts)
        self._styles: dict[str, _Element] = {}
        #: the style of paragraphs without one
        self._usual: str | None = None
        for style in () if styles is None else styles.iterfind(f"{W}style"):
            name = style.get(f"{W}styleId") or ""
            self._styles.setdefault(name, style)
            if style.get(f"{W}type") == "paragraph" and style.get(f"{W}default") in ("1", "true"):
                self._usual = name
        defaults = None if styles is None else styles.find(f"{W}docDefaults/{W}rPrDefault/{W}rPr")
        self._defaults = self._said(defaults)
        self._chains: dict[str | None, _Said] = {}
        self._plain: dict[str | None, Look] = {}

    def of(self, properties: _Element | None, style: str | None) -> Look:
        """Return the look of a run.

        Args:
            properties: its element ``w:rPr``; ``None``: it has none.
            style: id of its paragraph's style; ``None``: it has none.
        """
        if properties is None or not len(properties):
            if style not in self._plain:
                self._plain[style] = self._look({}, style)
            return self._plain[style]
        return self._look(self._said(properties), style)

    def _look(self, said: _Said, style: str | None) -> Look:
        own = said.pop("style", None)
        paragraph = self._chain(style or self._usual)
        run = self._chain(own if isinstance(own, str) else None)
        whole = self._defaults | paragraph | run | said
        for name in _TOGGLES:
            if name not in said:
                whole[name] = bool(paragraph.get(name)) != bool(run.get(name))
        return _look(whole)

    def tag(self, style: str | None) -> str:
        """Return the tag of a page for paragraphs of a style: Word's headings begin below the title."""
        for found in self._based(style):
            name = value(found.find(f"{W}name")) or ""
            level = value(found.find(f"{W}pPr/{W}outlineLvl"))
            if name.lower() == _TITLE:
                return "h1"
            if named := _NAMED.fullmatch(name):
                return f"h{min(int(named[1]) + 1, _LEVELS)}"
            if level is not None and level.isdecimal():
                return "p" if int(level) >= _BODY else f"h{min(int(level) + 2, _LEVELS)}"
        return "p"

    def text(self, text: str, look: Look, gaps: Gaps) -> str:
        """Return a run's text as its fonts show it, with signs of ``gaps`` for characters that are not known."""
        if look.font == look.other and text.isascii():
            return decoded(text, look.font, gaps, signs=self.shows_signs(look.font))
        return "".join(self._part(part[0], look, gaps) for part in _ASCII.finditer(text))

    def shows_signs(self, font: str | None) -> bool:
        """Return whether the document says that a font shows signs, of which no table is known."""
        return (font or "").lower() in self._signs

    def _part(self, text: str, look: Look, gaps: Gaps) -> str:
        font = look.font if text[0] < "\x80" else look.other
        if "\ue000" <= text[0] <= "\uf8ff":
            # signs' codes, whichever of the fonts they are of
            font = next((one for one in (look.other, look.font) if shows_signs(one)), font)
        return decoded(text, font, gaps, signs=self.shows_signs(font))

    def _said(self, properties: _Element | None) -> _Said:
        formatting: _Said = {}
        for element in () if properties is None else properties:
            name = short(str(element.tag))
            if name in _SWITCHES:
                formatting[_SWITCHES[name]] = is_on(element)
            elif name == "w:rStyle":
                formatting["style"] = value(element) or ""
            elif name == "w:vertAlign":
                formatting["align"] = value(element) or ""
            elif name == "w:position":
                number = _NUMBER.match(value(element) or "")
                formatting["position"] = float(number[0]) if number else 0.0
            elif name == "w:rFonts":
                for slot, themed in _SLOTS.items():
                    of_theme = self._theme.get(element.get(f"{W}{themed}") or "")
                    if font := of_theme or element.get(f"{W}{slot}"):
                        formatting[slot] = font
        return formatting

    def _chain(self, style: str | None) -> _Said:
        """Return what a style and those that it is based on say; the nearest counts."""
        if style not in self._chains:
            said: _Said = {}
            for one in reversed(list(self._based(style))):
                said |= self._said(one.find(f"{W}rPr"))
            said.pop("style", None)
            self._chains[style] = said
        return self._chains[style]

    def _based(self, style: str | None) -> Iterator[_Element]:
        """Yield a style and those that it is based on, the nearest first."""
        seen: set[str] = set()
        while style is not None and style not in seen and style in self._styles:
            seen.add(style)
            found = self._styles[style]
            yield found
            style = value(found.find(f"{W}basedOn"))


def _look(said: _Said) -> Look:
    shift = {"superscript": "sup", "subscript": "sub"}.get(str(said.get("align")), "")
    position = said.get("position", 0.0)
    if not shift and isinstance(position, float) and position:
        shift = "sup" if position > 0 else "sub"
    fonts = [said.get("cs" if said.get("complex") else slot) for slot in ("ascii", "hAnsi")]
    font, other = (one if isinstance(one, str) else None for one in fonts)
    return Look(
        shift=shift,
        shown=not (said.get("hidden") or said.get("struck") or said.get("struck twice")),
        font=font,
        other=other,
    )


def _theme(theme: _Element | None) -> dict[str, str]:
    """Return the fonts of a theme by the names that runs call them by."""
    found: dict[str, str] = {}
    scripts = {"latin": ("Ascii", "HAnsi"), "ea": ("EastAsia",), "cs": ("Bidi",)}
    for one in () if theme is None else theme.iter():
        name = short(str(one.tag))
        if name not in ("a:majorFont", "a:minorFont"):
            continue
        for child in one:
            for script in scripts.get(short(str(child.tag)).removeprefix("a:"), ()):
                found[name[2:7] + script] = child.get("typeface") or ""
    return found


def _signs(fonts: _Element | None) -> frozenset[str]:
    """Return the fonts, in small letters, whose characters are signs, by the table of fonts."""
    marked = () if fonts is None else fonts.iterfind(f"{W}font")
    return (
        frozenset(
            (font.get(f"{W}name") or "").lower()
            for font in marked
            if (value(font.find(f"{W}charset")) or "").lower() in ("02", "2")
        )
        - _UNICODE
    )
