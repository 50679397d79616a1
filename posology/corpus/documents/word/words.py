"""A paragraph of a Word document while it is read: its words, with what is raised and lowered, as an element of a page."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from lxml.etree import _Element

_LINE, _MATH = "br", "math"


class Words:
    """The words of one paragraph."""

    def __init__(self) -> None:
        #: texts, each in line (empty), in an element of a page, or an element without text
        self._parts: list[tuple[str, list[str]]] = []

    @property
    def text(self) -> str:
        """Return the words, in one line."""
        marks = {"sup": "^", "sub": "_", _LINE: " "}
        return "".join(marks.get(tag, "") + "".join(texts) for tag, texts in self._parts)

    def add(self, text: str, shift: str = "") -> None:
        """Go on with text.

        Args:
            text: as it is shown.
            shift: ``sup`` or ``sub`` if it is raised or lowered.
        """
        if self._parts and self._parts[-1][0] == shift:
            self._parts[-1][1].append(text)
        elif text:
            self._parts.append((shift, [text]))

    def line(self) -> None:
        """End a line."""
        self._parts.append((_LINE, []))

    def formula(self, text: str) -> None:
        """Go on with a formula: its numbers are its own."""
        if text:
            self._parts.append((_MATH, [text]))

    def paragraph(self, tag: str, out: _Element) -> None:
        """Add the words to a page, as an element of its own if there are any, and begin anew."""
        from lxml import etree

        if not self._parts:
            return
        paragraph = etree.SubElement(out, tag)
        last: _Element | None = None
        for name, texts in self._parts:
            text = "".join(texts)
            if name == _MATH:
                last = etree.SubElement(paragraph, _MATH)
                etree.SubElement(last, "mtext").text = text
            elif name:
                last = etree.SubElement(paragraph, name)
                last.text = text or None
            elif last is None:
                paragraph.text = text
            else:
                last.tail = text
        self._parts = []
