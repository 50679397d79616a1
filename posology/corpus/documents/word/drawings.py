"""Drawings in a Word document: text boxes are read, and for the rest that stands in a line there is a sign."""

from __future__ import annotations

from typing import TYPE_CHECKING

from posology.corpus.documents.word.names import W, short
from posology.corpus.gaps import PICTURE, Gaps

if TYPE_CHECKING:
    from lxml.etree import _Element

#: programs whose objects are equations, as their names begin
_EQUATIONS = ("equation", "mathtype")
_BOX = f"{W}txbxContent"
#: attribute of a line across the page
_RULE = "{urn:schemas-microsoft-com:office:office}hr"


def boxes(drawing: _Element) -> list[_Element]:
    """Return the contents of the text boxes of a drawing, without those within others."""
    found = dict.fromkeys(drawing.iter(_BOX))
    return [box for box in found if next(box.iterancestors(_BOX), None) not in found]


def sign(drawing: _Element, gaps: Gaps) -> str:
    """Return the sign of ``gaps`` for a drawing without text; empty: it stands beside or behind the text."""
    if _is_equation(drawing):
        return gaps.sign("equation that is an embedded object")
    return PICTURE if _is_in_line(drawing) else ""


def _is_equation(drawing: _Element) -> bool:
    return any(
        (one.get("ProgID") or "").lower().startswith(_EQUATIONS)
        for one in drawing.iter()
        if short(str(one.tag)) == "o:OLEObject"
    )


def _is_in_line(drawing: _Element) -> bool:
    name = short(str(drawing.tag))
    if name == "w:drawing":
        return any(short(str(child.tag)) == "wp:inline" for child in drawing)
    return name == "w:contentPart" or any(map(_is_shape_in_line, drawing))


def _is_shape_in_line(element: _Element) -> bool:
    name = short(str(element.tag))
    if not name.startswith("v:") or name == "v:shapetype" or element.get(_RULE) is not None:
        return False
    return "position:absolute" not in (element.get("style") or "").replace(" ", "")
