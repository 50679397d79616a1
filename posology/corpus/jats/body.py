"""Text of an article: abstracts, paragraphs of the body with their headings, and rows of tables."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import TYPE_CHECKING

from posology.corpus.documents.grid import UNLABELLED, Grid
from posology.corpus.jats.text import CALS, FLOATS, TABLE, flat, language, line
from posology.corpus.pieces import Piece, pack, words
from posology.corpus.references.markup import unmarked

if TYPE_CHECKING:
    from lxml.etree import _Element as Element

#: words up to which an abstract is one passage, as PubMed's are
ABSTRACT_WORDS = 400
#: between the headings of a path
STEP = " > "
#: heading of the main abstract
ABSTRACT = "Abstract"
#: heading of figures and tables that the publisher has put behind the text
FLOATING = "Figures and tables"

_NO_ABSTRACTS = frozenset({
    "graphical", "graphic", "teaser", "toc", "web-summary", "video", "stereochemical", "editor",
    "editors-summary", "trans-abstract",
})  # fmt: skip
_LEFT_OUT = frozenset({
    "title", "label", "sec-meta", "ref-list", "ack", "supplementary-material", "glossary", "fn-group", "bio", "notes",
    "sig-block", "table-wrap-foot", "object-id", "alternatives", "graphic", "media", "permissions",
    "related-article", "related-object", "sub-article", "response",
})  # fmt: skip
#: mark a note of a table
_MARKS = frozenset({"label", "sup"})
#: hold notes of a table
_NOTES = ("fn", "p", "attrib")
#: hold blocks themselves
_HOLDERS = frozenset({"sec", "app", "app-group", "boxed-text", "fig-group", "table-wrap-group"})


def abstract(article: Element) -> Iterator[Piece]:
    """Yield the passages of the abstracts in the article's language or in English, the main one first and whole.

    One in another language is read where there is no other.

    A section of an abstract is a line, ``Heading: words``.
    """
    found = [
        (element, (element.get("abstract-type") or "").lower())
        for element in article.findall("front/article-meta/abstract")
    ]
    chosen = [(element, kind) for element, kind in found if kind not in _NO_ABSTRACTS]
    read = {"", "en", language(article)}
    chosen = [one for one in chosen if language(one[0]) in read] or chosen[:1]
    chosen.sort(key=lambda pair: bool(pair[1]))
    for place, (element, kind) in enumerate(chosen):
        # publishers also put the encoded HTML of their pages there
        text = unmarked("\n".join(_lines(element)))
        heading = ABSTRACT
        if place:
            own = line(element.find("title")) or kind.replace("-", " ").capitalize()
            heading = own or heading
        if words(text) <= ABSTRACT_WORDS:
            if text:
                yield Piece(text=text, section=heading)
        else:
            yield from pack(Piece(text=one, section=heading) for one in text.split("\n"))


def body(article: Element) -> Iterator[Piece]:
    """Return the passages of the body and the appendices, cut by :func:`~posology.corpus.pieces.pack`."""
    return pack(_body(article))


def _body(article: Element) -> Iterator[Piece]:
    for element in article.findall("body"):
        yield from _blocks(element, ())
    for element in article.findall("back"):
        for child in element.iterchildren("app-group", "app", "sec"):
            if child.tag != "sec":
                yield from _blocks(child, () if child.tag == "app-group" else _path(child, ()))
    for element in article.findall("floats-group"):
        yield from _blocks(element, (FLOATING,))


def _lines(element: Element) -> Iterator[str]:
    title = ""
    for child in element:
        if child.tag in ("title", "label"):
            if child.tag == "title" and element.tag == "sec":
                title = line(child)
        elif child.tag == "sec":
            yield from _lines(child)
        elif child.tag not in FLOATS:
            text = flat(child)
            if title and text:
                text = f"{title}{'' if title[-1] in ':.?!' else ':'} {text}"
                title = ""
            yield from filter(None, text.split("\n"))


def _path(element: Element, above: tuple[str, ...]) -> tuple[str, ...]:
    title = line(element.find("title")) or line(element.find("caption/title"))
    if not title and element.tag == "app":
        title = line(element.find("label")) or "Appendix"
    return (*above, title) if title else above


def _blocks(element: Element, path: tuple[str, ...]) -> Iterator[Piece]:
    """Yield the paragraphs of an element that holds blocks, in order, each with its path of headings."""
    section = STEP.join(path) or None
    for child in element:
        tag = child.tag
        if tag in _LEFT_OUT:
            continue
        if tag in _HOLDERS:
            yield from _blocks(child, _path(child, path))
        elif tag in FLOATS or tag == "table":
            yield from _float(child, section)
        elif tag == "caption":
            # a box's, of which the title is the heading; a figure's title is in its caption
            yield from _blocks(child, path)
        else:
            if text := flat(child):
                yield Piece(text=text, section=section)
            yield from _floating(child, path)


def _floating(element: Element, path: tuple[str, ...]) -> Iterator[Piece]:
    """Yield the figures and tables that stand within a paragraph, and the boxes."""
    for child in element:
        if child.tag in _HOLDERS & FLOATS:
            yield from _blocks(child, _path(child, path))
        elif child.tag in FLOATS or child.tag == "table":
            yield from _float(child, STEP.join(path) or None)
        else:
            yield from _floating(child, path)


def _float(element: Element, section: str | None) -> Iterator[Piece]:
    """Yield the caption of a figure or a table, the rows of a table, and its notes."""
    if element.tag == "supplementary-material":
        return
    text = flat(element.find("caption"))
    label = line(element.find("label"))
    if text:
        stop = "" if not label or label[-1] in ".:" else "."
        yield Piece(text=f"{label}{stop} {text}".strip().replace("\n", " "), section=section)
    for table in element.iter("table"):
        _drop_marks(table, element)
        if table.find("tgroup") is not None:
            yield Piece(text=f"{label or UNLABELLED}: {CALS}", section=section)
        for row in Grid.read(table, _words).lines(label, TABLE):
            yield Piece(text=row, section=section)
    for mark in _marks(element):
        # an isotope is no mark: 18F
        said = "".join(map(str, mark.itertext()))
        if mark.tag == "sup" and said.isalpha() and (mark.tail or "")[:1].isalnum():
            mark.tail = f" {mark.tail}"
    for note in filter(None, map(flat, _notes(element))):
        text = f"{label.rstrip(' .:') or UNLABELLED}, note: {note}"
        yield Piece(text=text.replace("\n", " "), section=section)


def _notes(wrap: Element) -> Iterator[Element]:
    """Yield the notes of a table."""
    for foot in wrap.iterfind("table-wrap-foot"):
        yield from (
            one for part in (foot, *foot.iterfind("fn-group")) for one in part.iterchildren(*_NOTES)
        )


def _marks(wrap: Element) -> Iterator[Element]:
    """Yield the labels of a table's notes, and what is raised in their place: not "high" of CD14^high."""
    for one in wrap.iterfind("table-wrap-foot//*"):
        if one.tag == "label" or (one.tag == "sup" and (_begins_note(one) or not _ends_word(one))):
            yield one


def _begins_note(raised: Element) -> bool:
    """Return whether one raised letter stands before a sentence: "bMedian" behind "aMean"."""
    said = "".join(map(str, raised.itertext())).strip()
    return len(said) == 1 and said.isalpha() and (raised.tail or "")[:1].isupper()


def _ends_word(element: Element) -> bool:
    """Return whether an element stands right behind a word."""
    before, parent = element.getprevious(), element.getparent()
    assert parent is not None
    text = (parent.text if before is None else before.tail) or ""
    return text[-1:].isalnum() or text[-1:] in (")", "]")


def _drop_marks(table: Element, wrap: Element) -> None:
    """Empty the raised letters of a table that point to its notes: "12.1 a" is no number, and "na" no heading."""
    marks = {"".join(map(str, one.itertext())).strip(" )") for one in _marks(wrap)}
    for raised in table.iter("sup"):
        said = re.split(r"[\s,]+", "".join(map(str, raised.itertext())).strip())
        if all(one.isalpha() and one in marks for one in said):
            behind = raised.tail
            raised.clear()
            raised.tail = behind


def _words(cell: Element) -> str:
    return flat(cell, notes=False).replace("\n", ", ")
