"""Formulas of a page: MathML, and what MathJax, KaTeX and MediaWiki make of TeX."""

from __future__ import annotations

from typing import TYPE_CHECKING

from posology.corpus.decoding import xml_parser
from posology.corpus.gaps import Gaps
from posology.corpus.pubmed.formula import render

if TYPE_CHECKING:
    from lxml.etree import _Element

#: tags of formulas, whatever their attributes
_MATHML = frozenset({"math", "mml:math", "m:math"})
FORMULAS = _MATHML | {"mjx-container"}
#: classes of elements that show one formula; within it its letters stand as they are drawn, "x2" for the square of x
_DRAWN = frozenset({
    "katex", "katex-display", "mwe-math-element",
    "MathJax", "MathJax_Display", "MathJax_CHTML", "MathJax_SVG", "MathJax_SVG_Display", "mjx-chtml",
})  # fmt: skip
#: of those, that stand in a line of their own
_DISPLAYED = frozenset({"katex-display", "MathJax_Display", "MathJax_SVG_Display", "MJXc-display"})
_PREVIEW = "MathJax_Preview"
_KIND = "formula that is only drawn"


def formula(element: _Element, tag: str, gaps: Gaps) -> str | None:
    """Return a formula on one line, or a sign of ``gaps`` if it cannot be read; empty: it is shown elsewhere.

    Args:
        element: of a page.
        tag: its name.
        gaps: of the page.

    Returns:
        ``None``: the element is no formula.
    """
    if tag == "script":
        if not (element.get("type") or "").startswith("math/"):
            return None
        # behind what was drawn of it, if it was drawn
        before = element.getprevious()
        drawn = "" if before is None or not _is_drawn(before, str(before.tag)) else _read(before)
        return "" if drawn else _source(element) or gaps.sign(_KIND)
    if tag in _MATHML:
        return _written(element) or gaps.sign(_KIND)
    if _PREVIEW in (element.get("class") or "").split():
        return ""
    if not _is_drawn(element, tag):
        return None
    following = element.getnext()
    if (found := _read(element)) or (
        following is not None and (following.get("type") or "").startswith("math/")
    ):
        return found
    return gaps.sign(_KIND)


def is_displayed(element: _Element) -> bool:
    """Return whether a formula stands in a line of its own."""
    classes = (element.get("class") or "").split()
    return (
        element.get("display") in ("block", "true")
        or not _DISPLAYED.isdisjoint(classes)
        or "display" in (element.get("type") or "")
    )


def _is_drawn(element: _Element, tag: str) -> bool:
    return tag == "mjx-container" or not _DRAWN.isdisjoint((element.get("class") or "").split())


def _read(element: _Element) -> str:
    """Return the formula that something drawn was made of; empty: it does not say."""
    for math in element.iter("math"):
        if found := _written(math):
            return found
    for one in element.iter():
        if (source := one.get("data-mathml")) and (found := _rendered(source)):
            return found
        if found := (one.get("data-latex") or one.get("alt") or "").strip():
            return found
    return ""


def _written(math: _Element) -> str:
    """Return MathML on one line, else its text, else the TeX that it was made from."""
    try:
        found = render(math)
    except RecursionError:
        # a page may nest as deep as it likes
        found = ""
    if found := found or (math.get("alttext") or "").strip():
        return found
    sources = (
        str(one.text or "") for one in math.iter("annotation") if "tex" in one.get("encoding", "")
    )
    return next(filter(None, map(str.strip, sources)), "")


def _source(script: _Element) -> str:
    text = (script.text or "").strip()
    return _rendered(text) if (script.get("type") or "").startswith("math/mml") else text


def _rendered(mathml: str) -> str:
    from lxml import etree

    try:
        return render(etree.fromstring(mathml.encode(), xml_parser()))
    except (etree.XMLSyntaxError, ValueError):
        return ""
