"""Tables of Word as tables of a page: cells that span rows and columns, and rows of headings."""

from __future__ import annotations

from typing import TYPE_CHECKING

from posology.corpus.documents.word.names import W, is_on, value
from posology.corpus.documents.word.shown import merged

if TYPE_CHECKING:
    from lxml.etree import _Element

#: attributes of a cell that is part of one before it, and of a row of headings, while a table is read
_MERGED, _HEAD = "merged", "head"
#: bit of ``w:tblLook`` that says that the first row is one of headings
_FIRST_ROW = 0x0020
#: words of a cell from which on it is no heading
_LONG = 10


def begin_row(row: _Element, out: _Element) -> None:
    """Begin a row of a page's table: with a blank cell for columns before its first, and as headings if it says so."""
    from lxml import etree

    if before := value(row.find(f"{W}trPr/{W}gridBefore")):
        etree.SubElement(out, "td", colspan=before)
    if is_on(row.find(f"{W}trPr/{W}tblHeader")):
        out.set(_HEAD, "1")


def describe(cell: _Element, out: _Element) -> None:
    """Say of a page's cell how many columns it spans, whether it is part of one before it, and whether it is set off."""
    if across := value(cell.find(f"{W}tcPr/{W}gridSpan")):
        out.set("colspan", across)
    if how := merged(cell):
        out.set(_MERGED, how)
    indent = cell.find(f"{W}p/{W}pPr/{W}ind")
    if indent is not None and any(
        (indent.get(W + side) or "0").strip("0") for side in ("left", "start", "firstLine")
    ):
        out.set("style", "text-indent: 1em")


def finish(table: _Element, out: _Element) -> None:
    """Join the parts of cells in a page's table, and mark its headings.

    Args:
        table: Word's.
        out: the page's, with its rows.
    """
    above: dict[int, _Element] = {}
    rows = out.findall("tr")
    for row in rows:
        column = 0
        before: _Element | None = None
        for cell in row.findall("td"):
            span = _span(cell, "colspan")
            how = cell.attrib.pop(_MERGED, "")
            origin = before if how == "hMerge" else above.get(column)
            if how and origin is not None:
                side = "colspan" if how == "hMerge" else "rowspan"
                origin.set(side, str(_span(origin, side) + (span if side == "colspan" else 1)))
                row.remove(cell)
            else:
                before = above[column] = cell
            column += span
    heads = [row for row in rows if row.attrib.pop(_HEAD, "")]
    if not heads and rows and _has_first_row(table) and _heads(rows[0]):
        heads = rows[:1]
    for row in heads:
        for cell in row.iterchildren("td"):
            cell.tag = "th"


def _span(cell: _Element, side: str) -> int:
    said = cell.get(side) or ""
    return max(1, int(said)) if said.isdecimal() and len(said) < 4 else 1


def _has_first_row(table: _Element) -> bool:
    look = table.find(f"{W}tblPr/{W}tblLook")
    if look is None:
        return False
    if (said := look.get(f"{W}firstRow")) is not None:
        return said in ("1", "true", "on")
    try:
        return bool(int(value(look) or "0", 16) & _FIRST_ROW)
    except ValueError:
        return False


def _heads(row: _Element) -> bool:
    """Return whether the cells of a first row are headings: short, without figures, and none blank but the first."""
    texts = ["".join(map(str, cell.itertext())).strip() for cell in row]
    return len(texts) > 1 and all(
        (text or not i) and not text[:1].isdigit() and len(text.split()) < _LONG
        for i, text in enumerate(texts)
    )
