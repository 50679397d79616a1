"""Names in Word's XML: short ones of elements, and attributes."""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from lxml.etree import _Element

W = "{http://schemas.openxmlformats.org/wordprocessingml/2006/main}"
M = "{http://schemas.openxmlformats.org/officeDocument/2006/math}"
MC = "{http://schemas.openxmlformats.org/markup-compatibility/2006}"

_PREFIXES = {
    W: "w:",
    M: "m:",
    MC: "mc:",
    "{http://schemas.openxmlformats.org/drawingml/2006/wordprocessingDrawing}": "wp:",
    "{http://schemas.openxmlformats.org/drawingml/2006/main}": "a:",
    "{http://schemas.microsoft.com/office/word/2015/wordml/symex}": "w16se:",
    "{urn:schemas-microsoft-com:vml}": "v:",
    "{urn:schemas-microsoft-com:office:office}": "o:",
}


@lru_cache(maxsize=4_096)
def short(tag: str) -> str:
    """Return the name of an element with the usual prefix, ``w:p``; one of an unknown namespace as it is."""
    namespace, brace, name = tag.partition("}")
    prefix = _PREFIXES.get(namespace + brace)
    return tag if prefix is None else prefix + name


def value(element: _Element | None) -> str | None:
    """Return what an element of Word's or of its mathematics says, its attribute ``val``; ``None``: nothing."""
    if element is None:
        return None
    return element.get(f"{W}val") or element.get(f"{M}val")


def is_on(element: _Element | None) -> bool:
    """Return whether a property is there and not switched off."""
    return element is not None and value(element) not in ("0", "false", "off", "none")
