"""Formulas of Word on one line, as :mod:`posology.corpus.pubmed.formula` writes those of MathML: ``x^2``, ``(a + b)/c``.

Office's mathematics, ECMA-376, part 1, section 22.1.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from posology.corpus.documents.word.names import M, is_on, short, value
from posology.corpus.gaps import Gaps
from posology.corpus.pubmed.formula import whole

if TYPE_CHECKING:
    from lxml.etree import _Element

#: the letter with a bar or another accent over it, which is a character of its own; else the accent is behind it
_BARS = {"top": "\u0305", "bot": "\u0332"}
_HAT = "\u0302"
_PROPERTIES = "Pr"
#: show what they hold
_HOLDERS = frozenset({"box", "borderBox", "groupChr", "phant", "e"})


class Formulas:
    """Writes the formulas of one document."""

    def __init__(self, run: Callable[[_Element], str], gaps: Gaps) -> None:
        """Prepare.

        Args:
            run: returns the text of a run, or of what stands in its place.
            gaps: of the document.
        """
        self._run = run
        self._gaps = gaps

    def text(self, element: _Element) -> str:
        """Return a formula, or several that stand one below the other."""
        return " ".join(self._inner(element).split())

    def _inner(self, element: _Element) -> str:
        written: list[str] = []
        before = ""
        for child in element:
            text, name = self._of(child), short(str(child.tag))
            if not text:
                continue
            # Digits of neighbouring runs are of one number; side by side with anything else they are two numbers.
            apart = written and written[-1][-1].isdigit() and text[0].isdigit()
            if apart and {before, name} != {"m:r"}:
                written.append(" ")
            written.append(text)
            before = name
        return "".join(written)

    def _of(self, element: _Element) -> str:
        name = short(str(element.tag))
        if not name.startswith("m:"):
            # changes that are tracked are around parts of formulas
            inside = any(short(str(child.tag)).startswith("m:") for child in element)
            return self._inner(element) if inside and name != "w:r" else self._run(element)
        match name[2:]:
            case "r":
                return self._run(element)
            case name if name.endswith(_PROPERTIES):
                return ""
            case "oMath":
                return (
                    f"{self._inner(element)} "
                    if element.getnext() is not None
                    else self._inner(element)
                )
            case "f":
                return self._fraction(element)
            case "sSup":
                return self._scripts(element, sup="sup")
            case "sSub":
                return self._scripts(element, sub="sub")
            case "sSubSup":
                return self._scripts(element, sub="sub", sup="sup")
            case "sPre":
                scripts = self._marks(element, sub="sub", sup="sup")
                return f"{scripts}{whole(self._part(element, 'e'))}"
            case "limLow":
                return self._scripts(element, sub="lim")
            case "limUpp":
                return self._scripts(element, sup="lim")
            case "rad":
                return self._root(element)
            case "nary":
                return self._nary(element)
            case "d":
                return self._delimited(element)
            case "func":
                function, of = self._part(element, "fName"), self._part(element, "e")
                return (
                    f"{function} {of}"
                    if function[-1:].isalnum() and of[:1].isalnum()
                    else function + of
                )
            case "m":
                rows = (self._row(row) for row in element.iterfind(f"{M}mr"))
                return f"[{'; '.join(rows)}]"
            case "eqArr":
                return "; ".join(self._inner(one).strip() for one in element.iterfind(f"{M}e"))
            case "acc":
                accent = _said(element, "acc", "chr")
                return _under(self._part(element, "e"), _HAT if accent is None else accent)
            case "bar":
                bar = _BARS.get(_said(element, "bar", "pos") or "", _BARS["bot"])
                return _under(self._part(element, "e"), bar)
            case "phant" if not _shows(element):
                return ""
            case name if name in _HOLDERS:
                return self._inner(element)
        return self._gaps.sign(f"element {name}")

    def _part(self, element: _Element, name: str) -> str:
        found = element.find(f"{M}{name}")
        return "" if found is None else self._inner(found).strip()

    def _marks(self, element: _Element, *, sub: str = "", sup: str = "") -> str:
        lower, upper = (self._part(element, name) if name else "" for name in (sub, sup))
        return (f"_{whole(lower)}" if lower else "") + (f"^{whole(upper)}" if upper else "")

    def _scripts(self, element: _Element, *, sub: str = "", sup: str = "") -> str:
        return whole(self._part(element, "e")) + self._marks(element, sub=sub, sup=sup)

    def _fraction(self, element: _Element) -> str:
        above, below = self._part(element, "num"), self._part(element, "den")
        if not above and not below:
            return ""
        if _said(element, "f", "type") == "noBar":
            # one above the other, as "n choose k" is written
            return f"{above}; {below}"
        return f"{whole(above)}/{whole(below)}"

    def _root(self, element: _Element) -> str:
        degree, of = self._part(element, "deg"), self._part(element, "e")
        hidden = element.find(f"{M}radPr/{M}degHide")
        if not degree or is_on(hidden):
            return f"√({of})"
        return f"{whole(of)}^(1/{whole(degree)})"

    def _nary(self, element: _Element) -> str:
        sign = _said(element, "nary", "chr")
        marks = self._marks(element, sub="sub", sup="sup")
        return f"{'∫' if sign is None else sign}{marks} {self._part(element, 'e')}"

    def _delimited(self, element: _Element) -> str:
        opening, closing, between = (
            _said(element, "d", name) for name in ("begChr", "endChr", "sepChr")
        )
        parts = ("|" if between is None else between).join(
            self._inner(one).strip() for one in element.iterfind(f"{M}e")
        )
        return f"{'(' if opening is None else opening}{parts}{')' if closing is None else closing}"

    def _row(self, row: _Element) -> str:
        return ", ".join(self._inner(one).strip() for one in row.iterfind(f"{M}e"))


def _said(element: _Element, name: str, what: str) -> str | None:
    found = element.find(f"{M}{name}{_PROPERTIES}/{M}{what}")
    return None if found is None else found.get(f"{M}val", "")


def _shows(phantom: _Element) -> bool:
    shown = phantom.find(f"{M}phantPr/{M}show")
    return shown is None or value(shown) is None or is_on(shown)


def _under(base: str, accent: str) -> str:
    return base + accent if len(base) == 1 else whole(base) + accent
