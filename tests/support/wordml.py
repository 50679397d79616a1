"""Pieces of a Word document's XML, made for tests."""

from __future__ import annotations

from tests.support.literature import WORDS_NAMES


def run(text: str, properties: str = "") -> str:
    """A run of text."""
    return f'<w:r><w:rPr>{properties}</w:rPr><w:t xml:space="preserve">{text}</w:t></w:r>'


def paragraph(*inner: str, properties: str = "") -> str:
    """A paragraph; what is no XML is a run."""
    shown = "".join(one if one.startswith("<") else run(one) for one in inner)
    return f"<w:p><w:pPr>{properties}</w:pPr>{shown}</w:p>"


def font(name: str) -> str:
    """The property of a run."""
    return f'<w:rFonts w:ascii="{name}" w:hAnsi="{name}"/>'


def mark(kind: str, more: str = "") -> str:
    """A mark of a field: ``begin``, ``separate`` or ``end``."""
    return f'<w:r><w:fldChar w:fldCharType="{kind}">{more}</w:fldChar></w:r>'


def field(code: str, result: str | None = None, more: str = "") -> str:
    """A field with its marks."""
    shown = "" if result is None else mark("separate") + result
    return f"{mark('begin', more)}<w:r><w:instrText>{code}</w:instrText></w:r>{shown}{mark('end')}"


def maths(*inner: str) -> str:
    """A formula; what is no XML is a run of it."""
    return f"<m:oMath>{''.join(map(of, inner))}</m:oMath>"


def of(inner: str, element: str = "") -> str:
    """A run of a formula, or XML as it is, in an element of mathematics if one is named."""
    shown = inner if inner.startswith("<") else f"<m:r><m:t>{inner}</m:t></m:r>"
    return f"<m:{element}>{shown}</m:{element}>" if element else shown


def part(element: str, inner: str) -> bytes:
    """Another part of the file, e.g. its theme."""
    return f"<{element} {WORDS_NAMES}>{inner}</{element}>".encode()


def style(name: str, inner: str = "", kind: str = "character", based_on: str = "") -> str:
    """A style, whose id is its name without spaces."""
    based = f'<w:basedOn w:val="{based_on}"/>' if based_on else ""
    return f'<w:style w:type="{kind}" w:styleId="{name.replace(" ", "")}"><w:name w:val="{name}"/>{based}{inner}</w:style>'


def text_box(text: str) -> str:
    """The content of a text box."""
    return f"<w:txbxContent>{paragraph(text)}</w:txbxContent>"


def alternatives(choice: str, fallback: str, *, requires: str = "wps") -> str:
    """Content for programs that know an extension, and for others."""
    return (
        f'<mc:AlternateContent><mc:Choice Requires="{requires}">{choice}</mc:Choice>'
        f"<mc:Fallback>{fallback}</mc:Fallback></mc:AlternateContent>"
    )
