"""A page in HTML: its paragraphs by their headings, and what its metadata say."""

from __future__ import annotations

import re
from collections.abc import Iterator
from html import escape
from typing import TYPE_CHECKING

from posology.corpus.documents.flow import is_hidden, paragraphs
from posology.corpus.gaps import Gaps
from posology.corpus.pieces import Piece
from posology.corpus.pubmed.words import plain

if TYPE_CHECKING:
    from lxml.etree import _Element

_HEADING = re.compile(r"h([1-6])")
_WORD = re.compile(r"\w")
#: headings of sections that are left out
_NO_TEXT = re.compile(
    r"(?:\d+\.?\s+)?(?:references?|bibliography|literature cited|acknowledge?ments?|footnotes)\W*",
    re.IGNORECASE,
)


class Page:
    """A page, parsed."""

    def __init__(self, root: _Element, gaps: Gaps, *, broken: str | None = None) -> None:
        """Look at a page.

        Args:
            root: its elements have names of HTML.
            gaps: whose signs it may hold, and that counts what cannot be read.
            broken: why it could not be read to its end; ``None``: it could.
        """
        self._root = root
        self.gaps = gaps
        self.broken = broken
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
        headings = [text for one in self._root.iter("h1") if (text := self._words(one))]
        if len(headings) == 1:
            return headings[0]
        return next((text for one in self._root.iter("title") if (text := self._words(one))), "")

    @property
    def hides(self) -> bool:
        """Return whether it holds words that are hidden."""
        return any(
            is_hidden(one, str(one.tag)) and any(map(_WORD.search, map(str, one.itertext())))
            for one in self._root.iter()
        )

    def pieces(self) -> Iterator[Piece]:
        """Yield the paragraphs. The section is the path of headings below the title, which may be of the same level."""
        path: dict[int, str] = {}
        title, several = self.title, sum(1 for _ in self._root.iter("h1")) > 1
        for tag, text in self._paragraphs():
            heading = _HEADING.fullmatch(tag)
            if heading is not None:
                level = int(heading[1])
                path = {one: name for one, name in path.items() if one < level}
                if level > 1 or (several and text != title):
                    path[level] = text
            elif not any(map(_NO_TEXT.fullmatch, path.values())):
                yield Piece(text=text, section=" > ".join(path.values()) or None)

    def _paragraphs(self) -> Iterator[tuple[str, str]]:
        found = paragraphs(self._root, self.gaps)
        if self.broken is None:
            yield from found
            return
        # half a sentence may say the contrary of the whole
        before = next(found, None)
        for one in found:
            if before is not None:
                yield before
            before = one

    def _words(self, element: _Element) -> str:
        return " ".join(text for _, text in paragraphs(element, self.gaps)).replace("\n", " ")


def page_of(text: str) -> Page | None:
    """Return a page; ``None``: it has no element. Nothing is fetched."""
    from lxml import etree

    if text.lstrip().startswith("<?xml"):
        text = _without_sections(text)

    # Its length is bounded by who calls: what lxml bounds else is the depth, and what is deeper would end the text.
    parser = etree.HTMLParser(
        encoding="utf-8", remove_comments=True, remove_pis=True, no_network=True, huge_tree=True
    )
    try:
        # a lone surrogate is no character
        root = etree.fromstring(text.encode(errors="replace"), parser)
    except (etree.XMLSyntaxError, ValueError):
        return None
    if root is None:
        return None
    # of all that it mends, only this ends the text
    broken = next(
        (
            f"nested too deeply from line {one.line:,} on: not read further"
            for one in parser.error_log
            if "depth" in one.message
        ),
        None,
    )
    return Page(root, Gaps(), broken=broken)


def _without_sections(text: str) -> str:
    """Return XML without sections of characters, which HTML takes for comments."""
    first, *others = text.split("<![CDATA[")
    sections = (other.partition("]]>") for other in others)
    return first + "".join(escape(one, quote=False) + behind for one, _, behind in sections)
