"""Text of a page in HTML: its paragraphs by their headings, and what its metadata say."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import TYPE_CHECKING

from posology.corpus.pieces import Piece, words
from posology.corpus.pubmed.words import Line, plain

if TYPE_CHECKING:
    from lxml.etree import _Element

#: words of a table's cell from which on it is prose; numbers without rows and columns are no evidence
CELL_WORDS = 10

_SKIPPED = frozenset(
    [
        "head",
        "script",
        "style",
        "noscript",
        "template",
        "nav",
        "footer",
        "aside",
        "form",
        "button",
        "select",
        "textarea",
        "svg",
        "iframe",
        "object",
        "audio",
        "video",
    ]
)
_BLOCKS = frozenset(
    [
        "html",
        "body",
        "main",
        "article",
        "section",
        "header",
        "div",
        "p",
        "ul",
        "ol",
        "li",
        "dl",
        "dt",
        "dd",
        "blockquote",
        "pre",
        "table",
        "caption",
        "thead",
        "tbody",
        "tfoot",
        "tr",
        "td",
        "th",
        "figure",
        "figcaption",
        "details",
        "summary",
        "address",
        "hr",
        "br",
        "h1",
        "h2",
        "h3",
        "h4",
        "h5",
        "h6",
    ]
)
_CELLS = frozenset({"td", "th"})
_MARKS = {"sup": "^", "sub": "_"}
_HEADING = re.compile(r"h([1-6])")
#: headings of sections that are left out
_NO_TEXT = re.compile(
    r"(?:\d+\.?\s+)?(?:references?|bibliography|literature cited|acknowledge?ments?|footnotes)\W*",
    re.IGNORECASE,
)


class Page:
    """A page, parsed."""

    def __init__(self, root: _Element) -> None:
        self._root = root
        self._meta: dict[str, list[str]] = {}
        for element in root.iter("meta"):
            name = (element.get("name") or element.get("property") or "").lower()
            if content := plain(element.get("content")):
                self._meta.setdefault(name, []).append(content)

    def meta(self, *names: str) -> str:
        """Return the first of some metadata that the page has; empty: it has none."""
        return next((self._meta[name][0] for name in names if name in self._meta), "")

    def metas(self, name: str) -> list[str]:
        """Return all texts of one metadata."""
        return self._meta.get(name, [])

    @property
    def title(self) -> str:
        """Return the title of its metadata, else its only first heading, else its title for windows."""
        if named := self.meta("citation_title", "dc.title", "og:title"):
            return named
        headings = [text for one in self._root.iter("h1") if (text := _inline(one))]
        if len(headings) == 1:
            return headings[0]
        return next((text for one in self._root.iter("title") if (text := _inline(one))), "")

    def pieces(self) -> Iterator[Piece]:
        """Yield the paragraphs. The section is the path of headings below the first level."""
        path: dict[int, str] = {}
        for tag, text in _paragraphs(self._root):
            heading = _HEADING.fullmatch(tag)
            if heading is not None:
                level = int(heading[1])
                path = {one: name for one, name in path.items() if one < level}
                if level > 1:
                    path[level] = text
            elif not any(map(_NO_TEXT.fullmatch, path.values())):
                yield Piece(text=text, section=" > ".join(path.values()) or None)


def page_of(content: bytes) -> Page | None:
    """Return a page in UTF-8; ``None``: it has no element. Nothing is fetched."""
    from lxml import etree

    parser = etree.HTMLParser(
        encoding="utf-8", remove_comments=True, remove_pis=True, no_network=True, huge_tree=False
    )
    try:
        root = etree.fromstring(content, parser)
    except (etree.XMLSyntaxError, ValueError):
        return None
    return None if root is None else Page(root)


def _inline(element: _Element) -> str:
    return plain(" ".join(str(text) for text in element.itertext()))


def _paragraphs(root: _Element) -> Iterator[tuple[str, str]]:
    """Yield texts with the block that each stands in."""
    from lxml import etree

    #: the paragraph, and what is raised or lowered in it
    lines = [Line()]
    #: tags of open blocks, the innermost last
    blocks = ["body"]
    skipped = cells = 0

    def ended() -> Iterator[tuple[str, str]]:
        while len(lines) > 1:
            inner = lines.pop()
            lines[-1].add(inner.text)
        text = plain(lines[0].text)
        if text and (not cells or words(text) >= CELL_WORDS):
            yield blocks[-1], text
        lines[0] = Line()

    for event, element in etree.iterwalk(root, events=("start", "end")):
        tag = str(element.tag)
        if event == "start":
            skipped += tag in _SKIPPED
            if skipped:
                continue
            if tag in _BLOCKS:
                yield from ended()
                blocks.append(tag)
                cells += tag in _CELLS
            elif tag in _MARKS:
                lines.append(Line())
            lines[-1].add(element.text)
            continue
        if tag in _SKIPPED:
            skipped -= 1
        elif skipped:
            continue
        elif tag in _BLOCKS:
            yield from ended()
            blocks.pop()
            cells -= tag in _CELLS
        elif tag in _MARKS and len(lines) > 1:
            inner = lines.pop()
            lines[-1].shift(_MARKS[tag], inner.text, behind=element.tail or "")
        if not skipped:
            lines[-1].add(element.tail)
    yield from ended()
