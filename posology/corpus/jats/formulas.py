"""Formulas in one line: MathML's tree as PubMed's abstracts have it too, else TeX's source as it stands."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from posology.corpus.pubmed.formula import render

if TYPE_CHECKING:
    from lxml.etree import _Element as Element

#: stands where a formula is only a picture, so that no sentence hides that something is missing
PICTURE = "[formula]"

_BEGIN, _END = r"\begin{document}", r"\end{document}"
_SPACE = re.compile(r"\s+")


def formula(element: Element) -> str:
    """A formula's words: of its alternatives MathML, then TeX, then what else has words, else :data:`PICTURE`."""
    math = element if element.tag == "math" else next(element.iter("math"), None)
    tex = element if element.tag == "tex-math" else next(element.iter("tex-math"), None)
    if math is not None:
        found = render(math)
    elif tex is not None:
        found = _tex(tex.text or "")
    else:
        found = " ".join(str(part) for part in element.itertext())
    return _SPACE.sub(" ", found).strip() or PICTURE


def _tex(source: str) -> str:
    _, begun, document = source.partition(_BEGIN)
    if begun and _END in document:
        source = document.partition(_END)[0]
    return source.strip().strip("$").strip()
