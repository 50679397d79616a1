"""Markup that exports leave in texts: tags of JATS and HTML, and character references, as words.

Crossref's abstracts are JATS, publishers' are HTML, and either may be encoded once or twice more on its way into a
table or a reference manager. ``10<jats:sup>9</jats:sup>`` and ``p&lt;0.05`` would hide a number and a comparison. Only
tags that are known go, and of HTML's only those that are closed: ``p<0.05 and n>3`` is text.
"""

from __future__ import annotations

import html
import html.entities
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from posology.corpus.decoding import xml_parser
from posology.corpus.gaps import Gaps
from posology.corpus.jats.text import flat
from posology.types import UNREADABLE

if TYPE_CHECKING:
    from lxml.etree import _Element as Element

#: times that a text may have been encoded
_ENCODED = 3
#: tags within tags that are read; deeper ones are as good as none
_DEPTH = 20
#: tags that are named in a message
_SHOWN = 5

_REFERENCE = re.compile(r"&(?:#[0-9]{1,7}|#[xX][0-9a-fA-F]{1,6}|[A-Za-z][A-Za-z0-9]{1,31});")
#: none holds the beginning of another, so that those that are never closed are not looked through again and again
_CDATA = re.compile(r"<!\[CDATA\[((?:(?!<!\[CDATA\[).)*?)\]\]>", re.DOTALL)
#: attributes have values: "a<b and b>c" is text
_TAG = re.compile(
    r"<(?P<end>/?)(?:(?P<prefix>[A-Za-z][\w.-]{0,15}):)?(?P<name>[A-Za-z][A-Za-z0-9-]{0,31})"
    r"(?P<attributes>(?:\s+[\w:.-]{1,40}\s*=\s*(?:\"[^\"<>]*\"|'[^'<>]*'))*+)\s*(?P<empty>/?)>"
)
_CITES = re.compile(r"ref-type\s*=\s*[\"']bibr[\"']")
#: characters that no XML may hold
_FORBIDDEN = re.compile("[\0-\x08\x0b\x0c\x0e-\x1f\ud800-\udfff\ufffe\uffff]")

#: elements of JATS that known tags stand for
_AS: dict[str, str] = {
    "sup": "sup", "sub": "sub", "inf": "sub",
    **dict.fromkeys(
        (
            "p", "para", "simple-para", "div", "br", "hr", "break", "abstract", "section", "blockquote", "article", "pre",
            "tr", "dt", "dd", "caption",
        ),
        "p",
    ),
    **dict.fromkeys(("title", "section-title", "h1", "h2", "h3", "h4", "h5", "h6"), "title"),
    "sec": "sec", "ul": "list", "ol": "list", "list": "list", "li": "list-item", "list-item": "list-item",
    "label": "label", "xref": "xref",
}  # fmt: skip
#: tags that only say how their words look
_PLAIN = frozenset({
    "i", "b", "u", "em", "strong", "span", "small", "big", "font", "a", "tt", "mark", "center", "cite", "italic", "bold",
    "underline", "sc", "monospace", "roman", "sans-serif", "styled-content", "named-content", "ext-link", "uri",
    "abstracttext", "ins", "q", "abbr", "acronym", "dfn", "code", "kbd", "samp", "var", "time", "bdi", "dl", "table",
    "thead", "tbody", "tfoot", "td", "th", "html", "body",
})  # fmt: skip
_FORMULAS = frozenset({"math", "inline-formula", "disp-formula", "tex-math"})
_PICTURES = frozenset({"img", "inline-graphic", "graphic", "inline-media", "media"})
#: their words are not in the text: struck through, or no text at all
_STRUCK = frozenset({"del", "s", "strike"})
_UNSHOWN = frozenset({"style", "script"})
_CELLS = frozenset({"td", "th"})
#: HTML's that need no end
_OPEN = frozenset({"p", "br", "hr", "li", "img"})
_NAMES = frozenset(_AS) | _PLAIN | _FORMULAS | _PICTURES | _STRUCK | _UNSHOWN
#: where one is not closed, how far it goes is not known
_FAR = frozenset({"sup", "sub", *_STRUCK})
_COMMENT = re.compile(r"<!--(?:(?!<!--).)*?-->|<!\[(?:end)?if\b[^<>]{0,80}\]>", re.DOTALL)
_ALT = re.compile(r"\balt\s*=\s*(?:\"([^\"<>]*)\"|'([^'<>]*)')", re.IGNORECASE)
_EMPTY = frozenset({"br", "hr", "break"})
#: read up to their end, tags and all
_WHOLE = _FORMULAS | _STRUCK | _UNSHOWN
#: of formulas, which are parsed by themselves: prefixes of elements, and attributes with one
_PREFIX = re.compile(r"(</?)[\w.-]+:")
_SPACED = re.compile(r"\s[\w.-]+:[\w.-]+\s*=\s*(?:\"[^\"]*\"|'[^']*')")
#: headings of the whole
_NO_HEADING = frozenset({"", "abstract", "summary"})
#: ends a heading's line, which the next one continues; a noncharacter, which no text holds
_JOIN = "\ufdd0"
_BLOCKS = frozenset({"p", "sec", "title", "list", "list-item"})
#: elements that a block ends
_ENDED = frozenset({"sup", "sub", "xref", "label", "p", "title"})


def unmarked(text: str) -> str:
    """Return the words of a text, in a line a block; what is not known as markup stays as it is.

    Raised and lowered figures are written as :mod:`posology.corpus.pubmed.words` writes them (10^9), a heading before the
    words that it is of (``Methods: …``). Where something is known to be missing stands
    :data:`~posology.types.UNREADABLE`.
    """
    for _ in range(_ENCODED):
        if "<" not in text and "&" not in text:
            break
        before, text = text, _once(text)
        if text == before:
            break
    return text


def remarks(text: str) -> Iterator[str]:
    """Yield what was not understood in a text that :func:`unmarked` returned."""
    if "<" in text:
        unknown = Counter(_unknown(text))
        if unknown:
            count = unknown.total()
            tags = (
                "1 tag of an unknown kind stays"
                if count == 1
                else f"{count} tags of unknown kinds stay"
            )
            yield f"{tags} in its text: {', '.join(f'<{name}>' for name in list(unknown)[:_SHOWN])}"
    if lost := text.count(UNREADABLE):
        places = "place" if lost == 1 else "places"
        yield f"{lost} {places} could not be read ({UNREADABLE}): the sentence there is not quoted"


def _unknown(text: str) -> Iterator[str]:
    """Yield the names of the tags that are closed behind them, since ``<p>`` may also be two comparisons."""
    opened: Counter[str] = Counter()
    for tag in _TAG.finditer(text):
        name = tag["name"]
        if not tag["end"]:
            opened[name] += 1
        elif opened[name]:
            opened[name] -= 1
            yield name


@dataclass(frozen=True, kw_only=True, slots=True)
class _Tag:
    """A known tag in a text."""

    start: int
    end: int
    name: str
    closes: bool
    empty: bool
    attributes: str
    #: end of the tag that closes it; ``None``: none does
    until: int | None = None

    @property
    def stands_for(self) -> str:
        """Return the element of JATS that it stands for; empty: it only says how words look."""
        return _AS.get(self.name, "")


def _once(text: str) -> str:
    if "<" not in text:
        return decoded(text)
    text = _COMMENT.sub("", _CDATA.sub(lambda found: html.escape(found[1], quote=False), text))
    tags = _known(text)
    if not tags:
        return decoded(text)
    # in HTML a line end is a space; a text without blocks of its own has its lines
    tree = _Tree(lines=not any(tag.stands_for in _BLOCKS for tag in tags))
    at = 0
    for tag in tags:
        if tag.start < at:
            continue  # within what was read as a whole
        tree.add(decoded(text[at : tag.start]))
        at = tag.end
        if tag.name in _WHOLE and not tag.closes:
            if tag.until is None or tag.name in _STRUCK:
                tree.add(UNREADABLE)
            elif tag.name in _FORMULAS:
                tree.formula(text[tag.start : tag.until])
            at = tag.until or at
        elif tag.name in _FAR and not tag.closes and tag.until is None:
            tree.add(UNREADABLE)
        elif tag.name in _PICTURES:
            tree.picture(tag)
        elif tag.name in _CELLS:
            tree.add(" ")
        elif tag.closes:
            tree.close(tag)
        else:
            tree.open(tag)
    tree.add(decoded(text[at:]))
    return tree.text()


def decoded(text: str) -> str:
    """Return text with its references to characters resolved; an unknown one stays, one of no character is lost."""
    if "&" not in text:
        return text
    return _REFERENCE.sub(_character, text)


def _character(found: re.Match[str]) -> str:
    if found[0][1] != "#":
        # html.unescape also takes a beginning, such as "&not" of "&notes;"
        return html.entities.html5.get(found[0][1:], found[0])
    return html.unescape(found[0]) or UNREADABLE


def _known(text: str) -> Sequence[_Tag]:
    """Return the known tags of a text that are markup, in order."""
    tags: list[_Tag] = []
    #: places of the open tags of each name
    opened: dict[str, list[int]] = {}
    sure: set[int] = set()
    for match in _TAG.finditer(text):
        prefix, name = (match["prefix"] or "").lower(), match["name"].lower()
        if prefix == "mml":
            if name != "math" and opened.get("math"):
                continue  # within a formula, which is read as a whole
            name = "math"
        elif prefix != "jats" and name not in _NAMES:
            continue
        place = len(tags)
        tag = _Tag(
            start=match.start(),
            end=match.end(),
            name=name,
            closes=bool(match["end"]),
            empty=bool(match["empty"]),
            attributes=match["attributes"],
            until=match.end() if match["empty"] else None,
        )
        tags.append(tag)
        # of one letter it may be a comparison: "n<b and b>5" is none, but "n<b>5" may be
        if prefix or tag.empty or len(name) > 1 or (name in _OPEN and _stands_apart(text, tag)):
            sure.add(place)
        if tag.closes:
            if before := opened.get(name):
                opening = before.pop()
                tags[opening] = replace(tags[opening], until=tag.end)
                sure |= {opening, place}
        elif not tag.empty:
            opened.setdefault(name, []).append(place)
    return [tag for place, tag in enumerate(tags) if place in sure]


def _stands_apart(text: str, tag: _Tag) -> bool:
    """Return whether a tag without an end does not stand between two words, as a comparison would: ``n<p>0``."""
    before, behind = text[tag.start - 1 : tag.start], text[tag.end : tag.end + 1]
    return tag.name != "p" or not (before.isalnum() and behind.isalnum())


class _Tree:
    """Elements of JATS, made of the tags and texts of a text that need not be XML.

    Args:
        lines: whether line ends in it are kept.
    """

    def __init__(self, *, lines: bool) -> None:
        from lxml import etree

        self._make = etree.SubElement
        self._lines = lines
        self._open: list[Element] = [etree.Element("abstract")]
        #: the last child of each: to ask for it is slow where there are many
        self._last: list[Element | None] = [None]
        #: text that is in no element yet
        self._parts: list[str] = []

    def add(self, text: str) -> None:
        """Go on with text."""
        first, *others = text.split("\n") if self._lines else [text]
        self._parts.append(first)
        for line in others:
            self._begin("p")
            self._parts.append(line)

    def open(self, tag: _Tag) -> None:
        """Begin an element; one that only says how words look is none."""
        name = tag.stands_for
        if not name:
            return
        element = self._begin(name)
        if _CITES.search(tag.attributes):
            element.set("ref-type", "bibr")
        if not tag.empty and tag.name not in _EMPTY and len(self._open) < _DEPTH:
            self._open.append(element)
            self._last.append(None)

    def picture(self, tag: _Tag) -> None:
        """Go on with a picture's own text: it may be a sign, such as ≤."""
        found = _ALT.search(tag.attributes)
        shown = found and decoded(found[1] or found[2] or "").strip()
        self._parts.append("" if tag.closes else shown or UNREADABLE)

    def close(self, tag: _Tag) -> None:
        """End an element, and those in it; nothing if it is not open."""
        if not tag.stands_for:
            return
        self._flush()
        for place in range(len(self._open) - 1, 0, -1):
            if self._open[place].tag == tag.stands_for:
                del self._open[place:], self._last[place:]
                return

    def formula(self, source: str) -> None:
        """Go on with a formula, as XML."""
        from lxml import etree

        plain = _PREFIX.sub(r"\1", _SPACED.sub("", _REFERENCE.sub(_named, source)))
        try:
            element = etree.fromstring(plain, xml_parser())
        except (etree.XMLSyntaxError, ValueError):
            self._parts.append(UNREADABLE)
            return
        self._flush()
        for node in element.iter():
            node.tag = str(node.tag).rpartition("}")[2]
        self._open[-1].append(element)
        self._last[-1] = element

    def text(self) -> str:
        """Return the words, in a line a block."""
        self._flush()
        root = self._open[0]
        for title in root.iter("title"):
            heading = flat(title).replace("\n", " ")
            for child in list(title):
                title.remove(child)
            if heading.rstrip(":. ").lower() in _NO_HEADING:
                title.text = None
            else:
                title.text = f"{heading}{'' if heading[-1] in ':.?!' else ':'}{_JOIN}"
        return Gaps.marked(flat(root)).replace(f"{_JOIN}\n", " ").replace(_JOIN, "")

    def _begin(self, name: str) -> Element:
        self._flush()
        if name in _BLOCKS:
            # a block ends what is raised, and the paragraph before
            while self._open[-1].tag in _ENDED:
                del self._open[-1], self._last[-1]
        element = self._last[-1] = self._make(self._open[-1], name)
        return element

    def _flush(self) -> None:
        if not self._parts:
            return
        text = _FORBIDDEN.sub(UNREADABLE, "".join(self._parts).replace(_JOIN, ""))
        self._parts.clear()
        last, element = self._last[-1], self._open[-1]
        if last is None:
            element.text = (element.text or "") + text
        else:
            last.tail = (last.tail or "") + text


def _named(found: re.Match[str]) -> str:
    """Return a reference that XML knows: those of HTML as their characters."""
    if found[0] in {"&lt;", "&gt;", "&amp;", "&quot;", "&apos;"} or found[0][1] == "#":
        return found[0]
    return html.entities.html5.get(found[0][1:], found[0])
