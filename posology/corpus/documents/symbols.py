"""Text in fonts that show signs instead of letters: an m in Symbol is a μ, an £ is a ≤.

What a program stores of such a font is the code of a sign, as itself, in Windows' encoding, or as U+F000 and the code.
"""

from __future__ import annotations

import re
from functools import cache
from importlib import resources

from posology.corpus.gaps import Gaps

#: other names, in small letters, of fonts with the same signs
_NAMES = {
    "symbol mt": "symbol",
    "symbolmt": "symbol",
    "symbol std": "symbol",
    "symbolps": "symbol",
    "symbolset": "symbol",
    "euclid symbol": "symbol",
    "standard symbols l": "symbol",
    "standard symbols ps": "symbol",
    "itc zapf dingbats": "zapfdingbats",
    "zapf dingbats": "zapfdingbats",
    "monotype sorts": "zapfdingbats",
}
#: other fonts of Windows and Office that show signs, of which no table is known
_UNKNOWN = frozenset(
    {"mt extra", "marlett", "ms outlook", "ms reference specialty", "bookshelf symbol 7"}
)
_FIRST = 0x20
_PRIVATE = re.compile("[\ue000-\uf8ff]")
_CODES = re.compile("[\x21-\x7e\xa1-\xff\ue000-\uf8ff]")


@cache
def _tables() -> dict[str, dict[str, str]]:
    """Return the signs of each font by what may be stored of them."""
    lines = (resources.files(__package__) / "symbols.txt").read_text(encoding="utf-8").splitlines()
    return {
        name.lower(): dict(_stored(signs))
        for name, _, signs in (line.partition("\t") for line in lines if not line.startswith("#"))
    }


def _stored(signs: str) -> list[tuple[str, str]]:
    found = []
    for code, sign in enumerate(signs, start=_FIRST):
        if sign == "\ufffd":
            continue
        windows = bytes([code]).decode("cp1252", errors="ignore")
        # a no-break space is none of a font's signs, although one may have its code
        own = {chr(code), windows} - {"", "\xa0"}
        found += [(form, sign) for form in (*own, chr(0xF000 + code))]
    return found


def shows_signs(font: str | None) -> bool:
    """Return whether a font is known to show signs."""
    name = _name(font)
    return name in _tables() or name in _UNKNOWN


def character(code: int) -> str | None:
    """Return the character of a code; ``None``: it has none that a text may hold."""
    held = 0x20 <= code < 0xD800 or 0xE000 <= code < 0xFFFE or 0x10000 <= code < 0x110000
    return chr(code) if held else None


def decoded(text: str, font: str | None, gaps: Gaps, *, signs: bool = False) -> str:
    """Return text as its font shows it, with a sign of ``gaps`` for each character that is not known.

    Args:
        text: as it is stored.
        font: its name; ``None``: unknown.
        gaps: of the document.
        signs: whether the document says of a font without a table that it shows signs.
    """
    table = _tables().get(_name(font))
    if table is not None:
        return "".join(_sign(char, table, font, gaps) for char in text)
    if signs or _name(font) in _UNKNOWN:
        return _CODES.sub(gaps.sign(f"character of the font {font}"), text)
    return _PRIVATE.sub(lambda found: _unknown(found[0], font, gaps), text)


def _name(font: str | None) -> str:
    name = (font or "").strip().lower()
    return _NAMES.get(name, name)


def _sign(char: str, table: dict[str, str], font: str | None, gaps: Gaps) -> str:
    if (sign := table.get(char)) is not None:
        return sign
    # other letters and signs are none of the font's, and are shown in another
    return (
        char
        if (char > "\xff" and not _PRIVATE.match(char)) or char.isspace()
        else _unknown(char, font, gaps)
    )


def _unknown(char: str, font: str | None, gaps: Gaps) -> str:
    return gaps.sign(f"character {ord(char):04X} of the font {font or 'that is not named'}")
