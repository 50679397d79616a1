"""An element's words as a reader of the page sees them, in one line a block.

Words are written as :mod:`posology.corpus.pubmed.words` writes PubMed's abstracts, so that the two copies of an abstract
are the same. JATS has more: citations, lists, notes, and formulas in several forms.
"""

from __future__ import annotations

import html.entities
import re
from typing import TYPE_CHECKING

from posology.corpus.documents.grid import TOO_LARGE
from posology.corpus.gaps import PICTURE, SIGNS, Gaps, pictured, without_figures
from posology.corpus.pubmed.formula import render
from posology.corpus.pubmed.words import Line, plain

if TYPE_CHECKING:
    from collections.abc import Iterator

    from lxml.etree import _Element as Element

#: elements of a text that show nothing by themselves, or what other parts of the article say
EMPTY = frozenset({
    "abbrev", "attrib", "award-id", "bold", "boxed-text", "chem-struct-wrap", "code", "collab", "comment", "contrib-id",
    "def", "def-head", "def-item", "def-list", "disp-quote", "email", "etal", "ext-link", "fig", "fixed-case", "fn",
    "funding-source", "glyph-ref", "inline-supplementary-material", "institution", "italic", "label", "list",
    "list-item", "milestone-end", "milestone-start", "monospace", "name", "named-content", "overline", "overline-end",
    "overline-start", "p", "preformat", "price", "pub-id", "rb", "related-article", "related-object", "roman", "ruby",
    "sans-serif", "sc", "sec", "source", "speech", "statement", "styled-content", "subtitle", "target", "term", "title",
    "underline", "underline-end", "underline-start", "uri", "verse-group", "verse-line", "x", "xref", "year", "array",
    "tbody", "thead", "tfoot", "tr", "colgroup", "col", "textual-form", "answer", "question", "explanation",
})  # fmt: skip
#: Greek letters as ISO 8879 names them (ISOgrk1), which the DTD has and HTML has not
_GREEK = {
    "a": "α", "b": "β", "g": "γ", "d": "δ", "e": "ε", "z": "ζ", "ee": "η", "th": "θ", "i": "ι", "k": "κ", "l": "λ",
    "m": "μ", "n": "ν", "x": "ξ", "o": "ο", "p": "π", "r": "ρ", "s": "σ", "sf": "ς", "t": "τ", "u": "υ", "ph": "φ",
    "kh": "χ", "ps": "ψ", "oh": "ω",
}  # fmt: skip
#: elements that are skipped: captions of floats are read elsewhere, notes and pictures are not running text
FLOATS = frozenset({
    "fig", "fig-group", "table-wrap", "table-wrap-group", "boxed-text",
    "supplementary-material", "chem-struct-wrap",
})  # fmt: skip
_LEFT_OUT = FLOATS | {
    "fn", "fn-group", "table", "ref-list", "object-id", "alt-text", "long-desc", "sec-meta", "permissions", "index-term",
    "index-term-range-end", "rt", "rp", "processing-meta",
}  # fmt: skip
#: each begins and ends a line
_LINES = frozenset({
    "p", "list", "list-item", "def-list", "def-item", "disp-quote", "verse-line", "speech", "statement", "title", "sec",
    "attrib", "preformat", "disp-formula-group", "array", "tr",
})  # fmt: skip
_FORMULAS = frozenset({"math", "tex-math", "inline-formula", "disp-formula", "chem-struct"})
#: of several forms of one thing, those that are read, the best first; others are read if they have words
_FORMS = ("math", "tex-math", "textual-form")
_PICTURES = frozenset({"inline-graphic", "graphic", "media", "inline-media"})
_NOTES = frozenset({"fn", "author-notes", "corresp", "table-fn", "aff"})
_LANG = "{http://www.w3.org/XML/1998/namespace}lang"
_MARKS = {"sup": "^", "sub": "_"}
_STRUCK = re.compile(r"line-?through|strike", re.IGNORECASE)

#: signs of what cannot be read, beside a picture; see :class:`~posology.corpus.gaps.Gaps`
FORMULA, CHARACTER, NAMED, STRUCK, UNKNOWN, TABLE, CALS = map(chr, range(0x10FFF0, 0x10FFF7))
UNREAD = SIGNS | {
    FORMULA: "formula that is a picture",
    CHARACTER: "character that is a picture",
    NAMED: "character whose name is not known",
    STRUCK: "text that is struck through",
    UNKNOWN: "element that JATS does not have, without text",
    TABLE: TOO_LARGE,
    CALS: "table whose model is that of CALS",
}

_SPACE = re.compile(r"[ \t\r\n]+")
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
    lines = (without_figures(plain(one)) for one in out.text.split("\n"))
    return "\n".join(filter(None, lines))


def line(element: Element | None) -> str:
    """Return the words of a heading, in one line and without marks of notes."""
    return Gaps.marked(flat(element, notes=False)).replace("\n", " ")


def _inner(element: Element, out: Line, *, notes: bool) -> None:
    out.add(_SPACE.sub(" ", element.text or ""))
    for child in element:
        _render(child, out, notes=notes)
        out.add(_SPACE.sub(" ", child.tail or ""))


def _render(element: Element, out: Line, *, notes: bool) -> None:
    tag = element.tag
    if callable(tag):  # an entity, whatever lxml's types say
        out.add(character(element.text or "") or NAMED)
    elif tag in _FORMULAS:
        # a line of its own on the page
        apart = " " * (tag == "disp-formula")
        out.add(apart)
        out.formula(formula(element))
        out.add(apart)
    elif tag in _MARKS:
        _shift(element, out, notes=notes)
    elif tag == "xref":
        _point(element, out, notes=notes)
    elif tag in _PICTURES:
        _picture(element, out, notes=notes)
    elif tag == "alternatives":
        _alternatives(element, out, notes=notes)
    elif tag == "private-char":
        out.add(CHARACTER)
    elif tag == "strike" or _is_struck(element):
        out.add(STRUCK)
    elif tag in ("break", "hr"):
        out.add(" ")
    elif tag in ("td", "th"):
        out.add(" ")
        _inner(element, out, notes=notes)
        out.add(" ")
    elif tag == "def" and _is_of(element, "abbrev"):
        out.add(f" ({flat(element, notes=False)})".replace("\n", " "))
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
    elif tag in FLOATS or tag == "table":
        out.add(" ")
    elif tag not in _LEFT_OUT:
        if tag not in EMPTY and not any(str(text).strip() for text in element.itertext()):
            out.add(UNKNOWN)
        else:
            _inner(element, out, notes=notes)


def _is_of(element: Element, tag: str) -> bool:
    parent = element.getparent()
    return parent is not None and parent.tag == tag


def _is_struck(element: Element) -> bool:
    """Return whether an element's own style says that its text is struck through."""
    return any(_STRUCK.search(element.get(name, "")) for name in ("style", "style-type"))


def _picture(element: Element, out: Line, *, notes: bool) -> None:
    """Add the text of a small picture, or its sign; of other pictures the text is a description."""
    small = str(element.tag).startswith("inline")
    if words := " ".join(_own_text(element)):
        out.add(words)
    elif small:
        alt = element.find("alt-text")
        shown = pictured(None if alt is None else flat(alt))
        out.add(shown if notes or shown != PICTURE else "")
    else:
        out.add(PICTURE)


def _own_text(picture: Element) -> Iterator[str]:
    """Yield the words of an element that is a link as well as a picture."""
    for text in (picture.text, *(child.tail for child in picture)):
        if text and text.strip():
            yield " ".join(text.split())


def _alternatives(element: Element, out: Line, *, notes: bool) -> None:
    """Add one of several forms of one thing: pictures are read if there is no other."""
    forms = list(element)
    best = min(forms, key=_rank, default=None)
    if best is not None:
        _render(best, out, notes=notes)


def _rank(form: Element) -> int:
    if form.tag in _FORMS:
        return _FORMS.index(str(form.tag))
    return len(_FORMS) + (form.tag in _PICTURES or form.tag in _LEFT_OUT)


def _begins_item(element: Element) -> bool:
    """Return whether it stands in the line of its item's bullet or label."""
    parent, before = element.getparent(), element.getprevious()
    if parent is None or parent.tag != "list-item":
        return False
    return before is None or before.tag == "label"


def _shift(element: Element, out: Line, *, notes: bool) -> None:
    """Add superscript or subscript text; raised citations get brackets, or they would read as powers."""
    inner = Line()
    _inner(element, inner, notes=notes)
    words = inner.text.strip()
    cites = any(child.get("ref-type") == "bibr" for child in element.iter("xref"))
    if words and element.tag == "sup" and cites:
        out.add(_bracketed(words))
    else:
        out.shift(_MARKS[str(element.tag)], inner.text, behind=element.tail or "")


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
    """Return a formula on one line, or :data:`FORMULA`: its MathML, else its TeX source, and its other words."""
    if element.tag == "math":
        text = render(element)
    elif element.tag == "tex-math":
        text = _tex(element.text or "")
    else:
        out = Line()
        other = next((tag for tag in _FORMS[:2] if next(element.iter(tag), None) is not None), "")
        out.add(element.text)
        for child in element:
            # without an element that says so, these are forms of one thing, too
            form = child.tag in _PICTURES or child.tag == "tex-math"
            if child.tag != "label" and not (form and other not in ("", child.tag)):
                _render(child, out, notes=True)
            out.add(child.tail)
        text = out.text
    text = _BLANKS.sub(" ", text).strip()
    return text if text.strip(PICTURE + " ") else FORMULA


def _tex(source: str) -> str:
    _, begun, document = source.partition(_BEGIN)
    if begun and _END in document:
        source = document.partition(_END)[0]
    return source.strip().strip("$").strip()


def character(reference: str) -> str | None:
    """Return a named character that only the publisher's DTD defines; ``None``: it is in neither HTML nor ISOgrk1.

    Args:
        reference: ``&alpha;``.
    """
    name = reference[1:]
    if name in html.entities.html5:
        return html.entities.html5[name]
    letter = _GREEK.get(name.removesuffix("gr;").lower()) if name.endswith("gr;") else None
    return letter.upper() if letter and name[0].isupper() else letter
