"""Names in JATS: of characters, and of elements that may be empty."""

from __future__ import annotations

import html.entities

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
