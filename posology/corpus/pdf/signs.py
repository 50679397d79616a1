"""Text in fonts that show signs instead of letters, and text of private use."""

from __future__ import annotations

import re

from posology.types import UNREADABLE

_PREFIX = re.compile(r"[A-Z]{6}\+")
#: and halves of pairs of surrogates, which no UTF-8 can hold
_PRIVATE = re.compile("[\ud800-\udfff\ue000-\uf8ff\U000f0000-\U000ffffd\U00100000-\U0010fffd]")
#: of Symbol, from its code 0x20, as Adobe maps them
_SYMBOL = (
    " !∀#∃%&∋()*+,−./0123456789:;<=>?≅ΑΒΧΔΕΦΓΗΙϑΚΛΜΝΟΠΘΡΣΤΥςΩΞΨΖ[∴]⊥_‾αβχδεφγηιϕκλμνοπθρστυϖωξψζ{|}∼"
    + UNREADABLE * 33
    + "€ϒ′≤⁄∞ƒ♣♦♥♠↔←↑→↓°±″≥×∝∂•÷≠≡≈…⏐⎯↵ℵℑℜ℘⊗⊕∅∩∪⊃⊇⊄⊂⊆∈∉∠∇®©™∏√⋅¬∧∨⇔⇐⇑⇒⇓◊⟨®©™∑⎛⎜⎝⎡⎢⎣⎧⎨⎩⎪�⟩∫⌠⎮⌡⎞⎟⎠⎤⎥⎦⎫⎬⎭�"
)
#: what PDFium itself says of Symbol's glyphs
_KNOWN = frozenset(_SYMBOL) | {"µ", "∆", "Ω", "ϖ"}


def decoded(text: str, font: str) -> str:
    """Return text with the signs that its font shows, :data:`~posology.types.UNREADABLE` for what is not known.

    Args:
        text: as PDFium reads it.
        font: name of a font of signs; empty: of letters.
    """
    if font and _PREFIX.sub("", font).casefold().startswith("symbol"):
        return "".join(map(_symbol, text))
    if font:
        return "".join(
            UNREADABLE if char <= "\xff" or _PRIVATE.match(char) else char for char in text
        )
    return text if text.isascii() else _PRIVATE.sub(UNREADABLE, text)


def _symbol(char: str) -> str:
    if char in _KNOWN:
        return char
    code = ord(char) - (0xF000 if char >= "\uf000" else 0)
    return _SYMBOL[code - 0x20] if 0x20 <= code <= 0xFF else char
