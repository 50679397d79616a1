"""The part of a document's XML that Word shows: of alternatives one, and nothing that was deleted, moved away or hidden as a whole."""

from __future__ import annotations

from typing import TYPE_CHECKING

from posology.corpus.documents.word.names import MC, W, is_on, short, value

if TYPE_CHECKING:
    from lxml.etree import _Element

#: of these some are not shown, see :func:`_is_dropped`
_DROPPED = [W + name for name in ("del", "moveFrom", "tr", "tc", "rt")]
#: namespaces of extensions that Word knows begin so
_KNOWN = (
    "http://schemas.microsoft.com/",
    "http://schemas.openxmlformats.org/",
    "urn:schemas-microsoft-com:",
)


def reduce(part: _Element) -> None:
    """Choose between the alternatives in a part of a document, and drop what is not shown."""
    for alternatives in list(part.iter(f"{MC}AlternateContent")):
        for child in _chosen(alternatives):
            alternatives.addprevious(child)
        _remove(alternatives)
    for one in list(part.iter(*_DROPPED)):
        if _is_dropped(one):
            _remove(one)
        elif merged(one):
            for child in list(one):
                if child.tag != f"{W}tcPr":
                    one.remove(child)


def goes_on(mark: _Element | None) -> bool:
    """Return whether a paragraph goes on in the next: its mark was deleted or moved, or is hidden."""
    if mark is None:
        return False
    if mark.find(f"{W}del") is not None or mark.find(f"{W}moveFrom") is not None:
        return True
    # a heading that runs in is one all the same
    return is_on(mark.find(f"{W}vanish")) and not is_on(mark.find(f"{W}specVanish"))


def merged(cell: _Element) -> str:
    """Return how a cell is part of one before it, ``vMerge`` or ``hMerge``; empty: it is none. Its own text is not shown."""
    for name in ("vMerge", "hMerge"):
        mark = cell.find(f"{W}tcPr/{W}{name}")
        if mark is not None and value(mark) in (None, "continue"):
            return name
    return ""


def _is_dropped(element: _Element) -> bool:
    """Return whether an element is not shown: it was deleted, moved away, or hidden."""
    match short(str(element.tag)):
        case "w:del" | "w:moveFrom":
            parent = element.getparent()
            # among properties it is a mark
            return parent is not None and not str(parent.tag).endswith("Pr")
        case "w:tr":
            row = element.find(f"{W}trPr")
            return row is not None and (
                row.find(f"{W}del") is not None or is_on(row.find(f"{W}hidden"))
            )
        case "w:tc":
            return element.find(f"{W}tcPr/{W}cellDel") is not None
    return True  # readings above ruby bases


def _chosen(alternatives: _Element) -> list[_Element]:
    """Return the first alternative that Word knows, else the one for programs that know none (part 3, 7.3)."""
    for choice in alternatives.iterfind(f"{MC}Choice"):
        names = (choice.get("Requires") or "").split()
        if names and all((choice.nsmap.get(name) or "").startswith(_KNOWN) for name in names):
            return list(choice)
    fallback = alternatives.find(f"{MC}Fallback")
    return [] if fallback is None else list(fallback)


def _remove(element: _Element) -> None:
    parent = element.getparent()
    if parent is not None:
        parent.remove(element)
