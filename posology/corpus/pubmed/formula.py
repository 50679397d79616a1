"""MathML on one line: ``x^2``, ``(a + b)/c``, ``√(n)``; without its tags ``10`` to the ninth would be 109.

Elements of presentation, MathML 3.0 chapter 3. What is not known is written as what it holds.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from lxml.etree import _Element

#: operators that are written with a space on both sides
_SPACED = frozenset("=<>≤≥≈≠≡∼≪≫±×→⇒∝")
#: signs that no page shows: function application, invisible times, separator and plus
_INVISIBLE = dict.fromkeys(range(0x2061, 0x2065))
_SIMPLE = re.compile(r"[^\W_]*(?:[.,][^\W_]*)?|[-+−][^\W_]+|[^\w\s]")
_SPACE = re.compile(r"\s+")
#: thickness of a fraction's line
_NO_LINE = re.compile(r"\s*0(?:[.]0+)?\s*(?:[a-z%]+\s*)?\Z")


def render(math: _Element) -> str:
    """Return a formula as text of one line."""
    return _SPACE.sub(" ", _of(math)).strip()


def _of(node: _Element) -> str:
    parts = [_of(child) for child in node]
    match _name(node):
        case "mi" | "mn" | "mtext" | "ms":
            return _text(node)
        case "mo":
            sign = _text(node).strip()
            return f" {sign} " if sign in _SPACED else sign
        case "mspace":
            return " "
        case "annotation" | "annotation-xml" | "mphantom" | "none" | "mprescripts":
            return ""
        case "semantics" if parts:
            return parts[0]
        case "msup" if len(parts) == 2:
            return f"{whole(parts[0])}^{whole(parts[1])}"
        case "msub" | "munder" if len(parts) == 2:
            return f"{whole(parts[0])}_{whole(parts[1])}"
        case "msubsup" | "munderover" if len(parts) == 3:
            return f"{whole(parts[0])}_{whole(parts[1])}^{whole(parts[2])}"
        case "mover" if len(parts) == 2:
            over = parts[1].strip()
            accent = len(over) == 1 and not over.isalnum()
            return f"{parts[0]}{over}" if accent else f"{whole(parts[0])}^{whole(over)}"
        case "mfrac" if len(parts) == 2 and _NO_LINE.match(node.get("linethickness", "")):
            # one above the other, as "n choose k" is written
            return f"{parts[0].strip()}; {parts[1].strip()}"
        case "mfrac" if len(parts) == 2:
            return f"{whole(parts[0])}/{whole(parts[1])}"
        case "msqrt":
            return f"√({_joined(node, parts).strip()})"
        case "mroot" if len(parts) == 2:
            return f"{whole(parts[0])}^(1/{whole(parts[1])})"
        case "mfenced":
            opening, closing = node.get("open", "("), node.get("close", ")")
            between = (node.get("separators", ",").strip() or " ")[0].strip() + " "
            return opening + between.join(part.strip() for part in parts) + closing
        case "mtable":
            return f"[{'; '.join(part.strip() for part in parts)}]"
        case "mtr" | "mlabeledtr":
            return ", ".join(part.strip() for part in parts)
        case "mmultiscripts":
            return _scripts(node, parts)
    return _joined(node, parts)


def _name(node: _Element) -> str:
    # a page of HTML has prefixes without namespaces
    return str(node.tag).rpartition("}")[2].rpartition(":")[2]


def _text(node: _Element) -> str:
    return "".join(str(text) for text in node.itertext()).translate(_INVISIBLE)


def whole(part: str) -> str:
    """Return a part of a formula: in brackets, unless it is a name, a number or a sign."""
    part = part.strip()
    if _SIMPLE.fullmatch(part) or (part.startswith("(") and part.find(")") == len(part) - 1):
        return part
    return f"({part})"


def _joined(node: _Element, parts: list[str]) -> str:
    written = [_loose(node.text)]
    before = written[0][-1:]
    for child, part in zip(node, parts, strict=True):
        for piece in filter(None, (part, _loose(child.tail))):
            # two numbers side by side are two numbers
            apart = before.isdigit() and piece[0].isdigit()
            written.append(f" {piece}" if apart else piece)
            before = piece[-1]
    return "".join(written)


def _loose(text: str | None) -> str:
    """Return text outside of the elements that hold text: there should be none but line breaks."""
    return text if text and text.strip() else ""


def _scripts(node: _Element, parts: list[str]) -> str:
    """Return a base with scripts behind and before it: isotopes, tensors."""
    behind: list[str] = []
    before: list[str] = []
    target, mark = behind, "_"
    for child, part in list(zip(node, parts, strict=True))[1:]:
        if _name(child) == "mprescripts":
            target, mark = before, "_"
            continue
        if part.strip():
            target.append(mark + whole(part))
        mark = "^" if mark == "_" else "_"
    return "".join(before) + (whole(parts[0]) if parts else "") + "".join(behind)
