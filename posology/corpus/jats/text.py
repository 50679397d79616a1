"""An element's words as a reader of the page sees them, in one line a block.

Words are written as :mod:`posology.corpus.pubmed.words` writes PubMed's abstracts, so that the two copies of an abstract
are the same. JATS has more: citations, lists, notes, and formulas in several forms.
"""

from __future__ import annotations

import html.entities
import re
from typing import TYPE_CHECKING

from posology.corpus.pubmed.formula import render
from posology.corpus.pubmed.words import Line, plain

if TYPE_CHECKING:
    from lxml.etree import _Element as Element

#: elements that are skipped: captions of floats are read elsewhere, notes and pictures are not running text
FLOATS = frozenset({
    "fig", "fig-group", "table-wrap", "table-wrap-group", "boxed-text",
    "supplementary-material", "chem-struct-wrap",
})  # fmt: skip
_LEFT_OUT = FLOATS | {
    "fn", "fn-group", "table", "graphic", "media", "inline-media", "ref-list", "object-id",
    "alt-text", "long-desc", "sec-meta", "permissions", "inline-supplementary-material", "index-term",
}  # fmt: skip
#: each begins and ends a line
_LINES = frozenset({
    "p", "list", "list-item", "def-list", "def-item", "disp-quote", "verse-line", "speech", "statement", "title", "sec",
    "attrib", "preformat", "disp-formula-group",
})  # fmt: skip
_FORMULAS = frozenset({"math", "tex-math", "inline-formula", "disp-formula", "chem-struct"})
_NOTES = frozenset({"fn", "author-notes", "corresp", "table-fn", "aff"})
_LANG = "{http://www.w3.org/XML/1998/namespace}lang"
_MARKS = {"sup": "^", "sub": "_"}

#: stands where a sign is only a picture, so that no sentence hides that one is missing: it may be a "≤"
IMAGE = "[image]"
_SPACE = re.compile(r"[ \t\r\n]+")
#: placeholder of a formula that is only a picture, so that the gap stays visible
PICTURE = "[formula]"
_BEGIN, _END = r"\begin{document}", r"\end{document}"
_BLANKS = re.compile(r"\s+")


def language(element: Element) -> str:
    """Return the language that an element says of itself, without its country, in lower case; empty: it says none."""
    return (element.get(_LANG) or "").lower().partition("-")[0]


def flat(element: Element | None, *, notes: bool = True) -> str:
    """Return the words of an element; list items and paragraphs within it have a line each.

    Args:
        element: its namespaces are gone already; ``None``: no words.
        notes: whether marks that point to notes are kept, as they are not in headings.
    """
    if element is None:
        return ""
    out = Line()
    if element.tag in _FORMULAS:
        out.formula(formula(element))
    else:
        _inner(element, out, notes=notes)
    lines = filter(None, map(plain, out.text.split("\n")))
    return "\n".join(lines)


def line(element: Element | None) -> str:
    """Return the words of a heading, in one line and without marks of notes."""
    return flat(element, notes=False).replace("\n", " ")


def _inner(element: Element, out: Line, *, notes: bool) -> None:
    out.add(_SPACE.sub(" ", element.text or ""))
    for child in element:
        _render(child, out, notes=notes)
        out.add(_SPACE.sub(" ", child.tail or ""))


def _render(element: Element, out: Line, *, notes: bool) -> None:
    tag = element.tag
    if callable(tag):  # an entity, whatever lxml's types say
        out.add(_entity(element))
    elif tag in _FORMULAS:
        out.formula(formula(element))
    elif tag in _MARKS:
        _shift(element, out, notes=notes)
    elif tag == "xref":
        _point(element, out, notes=notes)
    elif tag == "inline-graphic":
        out.add(IMAGE if notes else "")
    elif tag == "break":
        out.add(" ")
    elif tag in _LINES:
        if tag == "list-item" and element.find("label") is None:
            out.end()
            out.add("• ")
        elif not _begins_item(element):
            out.end()
        _inner(element, out, notes=notes)
        out.end()
    elif tag == "label":
        _inner(element, out, notes=notes)
        out.add(" ")
    elif tag not in _LEFT_OUT:
        _inner(element, out, notes=notes)


def _begins_item(element: Element) -> bool:
    """Return whether it stands in the line of its item's bullet or label."""
    parent, before = element.getparent(), element.getprevious()
    if parent is None or parent.tag != "list-item":
        return False
    return before is None or before.tag == "label"


def _entity(node: Element) -> str:
    """Return a named character that only the publisher's DTD defines; one that HTML has not is shown by its name."""
    shown = node.text or ""
    return html.entities.html5.get(shown[1:], shown)


def _shift(element: Element, out: Line, *, notes: bool) -> None:
    """Add superscript or subscript text; raised citations get brackets, or they would read as powers."""
    inner = Line()
    _inner(element, inner, notes=notes)
    words = inner.text.strip()
    cites = any(child.get("ref-type") == "bibr" for child in element.iter("xref"))
    if words and element.tag == "sup" and cites:
        out.add(_bracketed(words))
    else:
        out.shift(_MARKS[str(element.tag)], words, behind=element.tail or "")


def _point(element: Element, out: Line, *, notes: bool) -> None:
    """Add the text of a reference; after a number, numbers of references and notes are set apart."""
    kind = element.get("ref-type")
    if kind in _NOTES and not notes:
        return
    inner = Line()
    _inner(element, inner, notes=notes)
    words = inner.text.strip()
    raised = next(element.iter("sup"), None) is not None
    parent = element.getparent()
    if parent is not None and parent.tag == "sup":
        # its brackets are around all of them
        out.add(f" {words}" if out.counts and words[:1].isdigit() else inner.text)
    elif (kind == "bibr" and raised and words) or (out.counts and words[:1].isdigit()):
        out.add(_bracketed(words))
    elif raised:
        out.shift("^", words)
    else:
        out.add(inner.text)


def _bracketed(words: str) -> str:
    return words if words[0] in "[(" else f"[{words}]"


def formula(element: Element) -> str:
    """Return a formula on one line: its MathML, else its TeX source, else its other text, else :data:`PICTURE`."""
    math = element if element.tag == "math" else next(element.iter("math"), None)
    tex = element if element.tag == "tex-math" else next(element.iter("tex-math"), None)
    if math is not None:
        found = render(math)
    elif tex is not None:
        found = _tex(tex.text or "")
    else:
        found = " ".join(str(part) for part in element.itertext())
    return _BLANKS.sub(" ", found).strip() or PICTURE


def _tex(source: str) -> str:
    _, begun, document = source.partition(_BEGIN)
    if begun and _END in document:
        source = document.partition(_END)[0]
    return source.strip().strip("$").strip()
