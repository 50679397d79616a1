"""Fields of a Word document: of their code and their result, what Word shows.

ECMA-376, part 1, section 17.16. A field stands between marks in the text, which may be paragraphs apart: its code, then, if
Word has stored one, its result.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from posology.corpus.documents.symbols import character, decoded
from posology.corpus.documents.word.names import W, is_on, value
from posology.corpus.gaps import Gaps

if TYPE_CHECKING:
    from lxml.etree import _Element

#: show nothing
_SILENT = frozenset({
    "", "XE", "TC", "TA", "RD", "SET", "ASK", "NEXT", "NEXTIF", "SKIPIF", "PRIVATE", "ADVANCE", "ADDIN", "PRINT",
    "HYPERLINK", "TOC", "INDEX", "BIBLIOGRAPHY", "FORMTEXT",
})  # fmt: skip
#: show the words of their code behind the name of a macro or a bookmark
_BUTTONS = frozenset({"MACROBUTTON", "GOTOBUTTON"})
_SYMBOL = re.compile(r"\s*SYMBOL\s+(0x[0-9A-Fa-f]{1,5}|\d{1,6}|\S)", re.IGNORECASE)
_FONT = re.compile(r'\\f\s+(?:"([^"]*)"|(\S+))', re.IGNORECASE)
_UNICODE = re.compile(r"\\u\b", re.IGNORECASE)
_LAST = 0x10FFFF


@dataclass(slots=True)
class _Field:
    #: its first mark
    begin: _Element
    code: list[str] = field(default_factory=list)
    #: what is read now is its code
    coding: bool = True
    #: it is its code, or a result that is shown otherwise
    quiet: bool = True


class Fields:
    """The fields that are open at a place of a text."""

    def __init__(self, marks: Mapping[_Element, _Element], gaps: Gaps) -> None:
        """Begin a text.

        Args:
            marks: those of fields that are whole, see :func:`matched`.
            gaps: of the document.
        """
        self._marks = marks
        self._gaps = gaps
        self._open: list[_Field] = []
        self._quiet = 0

    @property
    def quiet(self) -> bool:
        """Return whether what is read now is not shown."""
        return self._quiet > 0

    def code(self, text: str) -> None:
        """Go on with the code of the innermost field."""
        if self._open:
            self._open[-1].code.append(text)

    def mark(self, mark: _Element) -> str:
        """Pass a field's mark; return the text that it shows itself, once its code or its result has ended."""
        begin = self._marks.get(mark)
        kind = mark.get(f"{W}fldCharType")
        if begin is mark:
            self._open.append(_Field(mark))
            self._quiet += 1
            return ""
        if begin is None or not self._open or self._open[-1].begin is not begin:
            return ""
        if kind == "separate":
            self._open[-1].coding = False
            shown = replacement("".join(self._open[-1].code), self._gaps)
            self._let(self._open[-1], quiet=shown is not None)
            return "" if self._quiet - self._open[-1].quiet else shown or ""
        ended = self._open.pop()
        self._let(ended, quiet=False)
        code = "".join(ended.code)
        if self.quiet or not (ended.coding or code.split()[:1] == ["FORMCHECKBOX"]):
            return ""
        shown = replacement(code, self._gaps)
        return unfilled(code, ended.begin, self._gaps) if shown is None else shown

    def _let(self, one: _Field, *, quiet: bool) -> None:
        self._quiet += quiet - one.quiet
        one.quiet = quiet


def matched(root: _Element) -> dict[_Element, _Element]:
    """Return the marks of fields that are whole, in a part of a document, each with its field's first.

    Others are no fields, and hide nothing.
    """
    open_marks: dict[_Element | None, list[list[_Element]]] = {}
    whole: dict[_Element, _Element] = {}
    for mark in root.iter(f"{W}fldChar"):
        # a text box is a text of its own
        stack = open_marks.setdefault(next(mark.iterancestors(f"{W}txbxContent"), None), [])
        kind = mark.get(f"{W}fldCharType")
        if kind == "begin":
            stack.append([mark])
        elif kind == "separate" and stack and len(stack[-1]) == 1:
            stack[-1].append(mark)
        elif kind == "end" and stack:
            marks = [*stack.pop(), mark]
            whole.update(dict.fromkeys(marks, marks[0]))
    return whole


def replacement(code: str, gaps: Gaps) -> str | None:
    """Return what a field shows whatever its result is; ``None``: it shows its result."""
    found = _SYMBOL.match(code)
    if found is None:
        return None
    given = found[1]
    if given[:2].lower() == "0x":
        number = int(given, 16)
    else:
        number = int(given) if given.isdecimal() else ord(given)
    font = _FONT.search(code)
    if number < 0x100 and not _UNICODE.search(code):
        char = bytes([number]).decode("cp1252", errors="replace")
    else:
        char = chr(min(number, _LAST))
    if character(ord(char)) is None or number > _LAST:
        return gaps.sign(f"field {' '.join(code.split())[:40]}")
    return decoded(char, font and (font[1] or font[2]), gaps)


def unfilled(code: str, mark: _Element | None, gaps: Gaps) -> str:
    """Return what a field without a result shows: a sign of ``gaps`` if Word makes it up from what is not read here."""
    words = code.split()
    name = words[0].upper() if words else ""
    if name in _BUTTONS:
        return " ".join(words[2:])
    if name == "FORMCHECKBOX":
        return _box(mark)
    if name == "FORMDROPDOWN" and (chosen := _chosen(mark)) is not None:
        return chosen
    if name in _SILENT:
        return ""
    return gaps.sign(f"field {name} without a result")


def _box(mark: _Element | None) -> str:
    box = None if mark is None else mark.find(f"{W}ffData/{W}checkBox")
    if box is None:
        return "☐"
    checked = box.find(f"{W}checked")
    return "☒" if is_on(box.find(f"{W}default") if checked is None else checked) else "☐"


def _chosen(mark: _Element | None) -> str | None:
    found = None if mark is None else mark.find(f"{W}ffData/{W}ddList")
    if found is None:
        return None
    result = value(found.find(f"{W}result")) or value(found.find(f"{W}default")) or "0"
    entries = [value(one) or "" for one in found.iterfind(f"{W}listEntry")]
    return entries[int(result)] if result.isdecimal() and int(result) < len(entries) else None
