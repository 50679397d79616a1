"""Text with markup, as plain words: what the page shows apart must not run together.

PubMed's titles and abstracts hold ``b``, ``i``, ``u``, ``sup``, ``sub``, ``mml:math`` and ``DispFormula``
(DTD pubmed_250101, entity ``%text;`` and elements AbstractText and ArticleTitle). Without its tags
``10<sup>9</sup>`` would be 109.
"""

from __future__ import annotations

import re
import unicodedata
from dataclasses import KW_ONLY, dataclass, replace
from typing import TYPE_CHECKING

from posology.corpus.pubmed.formula import render

if TYPE_CHECKING:
    from lxml.etree import _Element

#: invisible characters that no quote repeats: soft hyphens, joiners of words, marks of byte order and direction
_UNSEEN = re.compile("[\u00ad\u200b\u200e\u200f\u2060\ufeff]")
_SPACE = re.compile("[ \t\r\n\x7f\x85]+")
#: Controls that Windows' encodings use for characters: who writes 150 means an en dash, and every browser reads it so
#: (https://html.spec.whatwg.org/#numeric-character-reference-end-state).
_CONTROL = re.compile("[\x80-\x84\x86-\x9f]")
#: what, raised or lowered behind a number, would be read as a part of it: 10^-3, 10^.5, 2^n, 10^n-1
_NUMERIC = re.compile(r"[-+−–]?\s?[.·]?[0-9¼½¾]|[A-Za-z](?:\Z|\s?[-+−–])|[-−–]\s?[^\W\d_]")
#: and which of it also behind a space
_POWER = re.compile(r"[-+−–]?\s?[.·]?[0-9]")
_MARKS = {"sup": "^", "sub": "_"}


def words(element: _Element | None) -> str:
    """Return the words of an element, on one line; empty where there are none.

    Raised and lowered characters stay where they are, as MEDLINE writes them (CO2, CD4+, m2), but behind a
    number they are set off, raised ones by ``^`` and lowered ones by ``_``: 10^9/L, 10 ^9/L. Formulas become one
    line (:mod:`posology.corpus.pubmed.formula`). White space is one space, invisible characters go, and accents
    are composed (NFC), as they are in what a model quotes; nothing else is changed.
    """
    if element is None:
        return ""
    line = Line()
    _write(element, line)
    return plain(line.text)


def visible(text: str) -> str:
    """Return text without characters that are not shown, in NFC: with a soft hyphen in it, no search finds a word."""
    return unicodedata.normalize("NFC", _UNSEEN.sub("", text))


def plain(text: str | None) -> str:
    """Return text on one line, without invisible characters, in NFC."""
    if not text:
        return ""
    shown = _CONTROL.sub(_of_windows, _SPACE.sub(" ", visible(text)))
    return shown.strip()


def _of_windows(found: re.Match[str]) -> str:
    return found[0].encode("latin-1").decode("cp1252", errors="replace")


class Line:
    """Words that are written one after the other, so that numbers do not run together that the page shows apart."""

    def __init__(self) -> None:
        self._parts: list[str] = []
        #: the last character of the line that is no white space; empty: there is none
        self._last = ""
        #: white space is behind it
        self._spaced = False
        #: what was written last is raised, lowered or a formula, and ends with a digit
        self._number = False
        #: what was raised or lowered last, if nothing came behind it
        self._run: _Run | None = None

    @property
    def text(self) -> str:
        """Return all that was written."""
        return "".join(self._parts)

    @property
    def counts(self) -> bool:
        """Return whether a digit, written now, would be read as part of a number."""
        return self._last.isdigit() and not self._spaced

    def add(self, text: str | None) -> None:
        """Go on with text."""
        if not text:
            return
        if self._number and text[0].isdigit():
            self._parts.append(" ")
        self._parts.append(text)
        self._seen(text)

    def end(self) -> None:
        """Begin a new line."""
        self.add("\n")
        self._last = ""

    def formula(self, text: str) -> None:
        """Go on with a formula: its numbers are its own."""
        if not text:
            return
        if self.counts and text[0].isdigit():
            self._parts.append(" ")
        self._parts.append(text)
        self._seen(text)
        self._number = text[-1].isdigit()

    def shift(self, mark: str, text: str, *, behind: str = "") -> None:
        """Go on with what is raised, whose mark is ``^``, or lowered, ``_``.

        Args:
            mark: set before it where it would be read as a part of the number that it stands behind.
            text: of two such texts side by side the page shows one.
            behind: what follows. Numbers that are raised behind a space and before a letter are isotopes'.
        """
        bare = text.strip()
        if not bare:
            return
        run = self._run
        if run is not None and run.mark == mark:
            del self._parts[run.place :]
            text = run.text + text
            bare = text.strip()
        else:
            run = _Run(mark, len(self._parts), self._last, spaced=self._spaced, text="")
        numeric = run.ambiguous(bare, isotope=behind[:1].isalpha())
        if numeric:
            self._parts.append(mark)
        if numeric or not bare[0].isalpha():
            # words of its own are apart as they are; a number or sign belongs to what is before it
            text = text.lstrip()
        self._parts.append(text)
        self._seen(text)
        self._number = text[-1].isdigit()
        self._run = run.saying(text)

    def _seen(self, text: str) -> None:
        shown = text.rstrip()
        if shown:
            self._last = shown[-1]
        self._spaced = len(shown) < len(text)
        self._number = False
        self._run = None


@dataclass(frozen=True, slots=True)
class _Run:
    """Superscript or subscript text, and the text that it follows."""

    mark: str
    #: of its first part in the line
    place: int
    #: the character before it, and whether white space is between
    before: str
    _: KW_ONLY
    spaced: bool
    text: str

    def saying(self, text: str) -> _Run:
        return replace(self, text=text)

    def ambiguous(self, text: str, *, isotope: bool) -> bool:
        """Return whether it would be read as a part of the number before it."""
        raised = self.mark == "^"
        if self.spaced:
            power = raised and not isotope and self.before.isdigit()
            return power and _POWER.match(text) is not None
        # a lowered number behind a bracket counts molecules: Ca(OH)2
        counted = self.before.isdigit() or (raised and self.before in {")", "]"})
        return counted and _NUMERIC.match(text) is not None


def _write(element: _Element, line: Line) -> None:
    """Add what an element holds, without what follows it."""
    line.add(element.text)
    for child in element:
        name = str(child.tag).rpartition("}")[2]
        if name in _MARKS:
            inner = Line()
            _write(child, inner)
            line.shift(_MARKS[name], inner.text, behind=child.tail or "")
        elif name == "math":
            line.formula(render(child))
        elif name == "DispFormula":
            line.add(" ")
            _write(child, line)
            line.add(" ")
        else:
            _write(child, line)
        line.add(child.tail)
