"""The text of a page as it is shown: its paragraphs, with the blocks that they stand in.

Text is that of the page's accessible form (https://www.w3.org/TR/html-aam-1.0/): what is hidden is left out, also from
assistive technologies, and text that is for these alone is read. Deleted text is left out.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import islice
from typing import TYPE_CHECKING

from posology.corpus.documents.formulas import FORMULAS, formula, is_displayed
from posology.corpus.documents.grid import TOO_LARGE, Grid, label_of
from posology.corpus.documents.symbols import decoded, shows_signs
from posology.corpus.gaps import Gaps, pictured, without_figures
from posology.corpus.pieces import words
from posology.corpus.pubmed.words import Line, plain

if TYPE_CHECKING:
    from lxml.etree import _Element

#: Words of a cell from which on it is prose, in a table without headings, whose numbers are no evidence. As many words must
#: a form have outside its controls, or a paragraph with controls.
PROSE_WORDS = 10

_LEFT_OUT = frozenset({
    "head", "script", "style", "noscript", "noframes", "noembed", "template", "nav", "footer", "svg", "iframe", "object",
    "applet", "canvas", "audio", "video", "datalist", "progress", "meter", "label", "legend", "rt", "rp", "rtc",
    "del", "s", "strike",
})  # fmt: skip
#: and of these, which stand between paragraphs
_APART = frozenset({"nav", "footer"})
_CONTROLS = frozenset({"input", "select", "textarea"})
#: controls that show no text, or none of the page's
_MUTE = frozenset({"hidden", "submit", "button", "reset", "image", "file", "search", "password"})
#: of what has no attributes, these alone may be passed over
_SPECIAL = _LEFT_OUT | _CONTROLS | FORMULAS | {"img", "dialog"}
_BLOCKS = frozenset({
    "html", "body", "main", "article", "section", "header", "aside", "search", "hgroup", "div", "center", "p", "ul", "ol",
    "li", "dir", "menu", "dl", "dt", "dd", "blockquote", "pre", "listing", "xmp", "plaintext", "table", "caption", "thead",
    "tbody", "tfoot", "tr", "td", "th", "figure", "figcaption", "details", "summary", "dialog", "address", "form",
    "fieldset", "hr", "title", "h1", "h2", "h3", "h4", "h5", "h6",
})  # fmt: skip
_HEADINGS = frozenset({"h1", "h2", "h3", "h4", "h5", "h6"})
_CELLS = frozenset({"td", "th"})
_LINED = frozenset({"pre", "listing", "xmp", "plaintext"})
_MARKS = {"sup": "^", "sub": "_", "super": "^", "superscript": "^", "subscript": "_"}
#: parts of a page whose state of being hidden from assistive technologies is a dialog's that was open when it was saved
_PAGES = frozenset({"html", "body", "main", "article"})

_HIDDEN = re.compile(
    r"(?:^|;)\s*(?:display\s*:\s*none|visibility\s*:\s*(?:hidden|collapse)|mso-hide\s*:\s*all)\b",
    re.IGNORECASE,
)
_STRUCK = re.compile(r"(?:^|;)\s*text-decoration(?:-line)?\s*:[^;]*\bline-through\b", re.IGNORECASE)
_SHIFTED = re.compile(r"(?:^|;)\s*vertical-align\s*:\s*(super|sub)\b", re.IGNORECASE)
_FONT = re.compile(r"(?:^|;)\s*font(?:-family)?\s*:\s*([^;]+)", re.IGNORECASE)
#: numbers of references
_CITING = re.compile(r"\s*[\[(]?\d[\d\s,–-]*[\])]?\s*\Z")
_SPACE = re.compile(r"[ \t\r\n\f\v]+")
_LINE_SPACE = re.compile(r"[ \t\r\f\v]+")
_BLANK = re.compile(r"\n[ \t]*\n\s*")
_WORD = re.compile(r"\w")
#: of a picture that measures readers
_TINY = re.compile(r"\s*[0-3](?:px)?\s*")


def paragraphs(root: _Element, gaps: Gaps) -> Iterator[tuple[str, str]]:
    """Yield the paragraphs under an element, with the tag of the block that each stands in.

    Lines of one paragraph are kept; those of a heading are one. Each row of a table with headings is a paragraph.

    Args:
        root: an element of HTML, in lower case and without namespaces. The words of a cell are read however few they are.
        gaps: of the page, whose signs the texts may hold.
    """
    from lxml import etree

    flow = _Flow(gaps, root)
    walk = etree.iterwalk(root, events=("start", "end"))
    passed: _Element | None = None
    for event, element in walk:
        tag = str(element.tag)
        if event == "start":
            if flow.passes(element, tag) or (tag == "table" and flow.table(element)):
                walk.skip_subtree()
                passed = element
            else:
                flow.begin(element, tag)
        elif element is passed:
            passed = None
        else:
            flow.end(element, tag)
        if event == "end" and element is not root:
            flow.add(element.tail)
        if flow.done:
            yield from flow.done
            flow.done.clear()
    flow.part()
    yield from flow.done


@dataclass(slots=True)
class _Held:
    """A cell or a form, whose paragraphs are read if they have enough words."""

    tag: str
    #: paragraphs in order, and whether each is of a cell or form within it
    found: list[tuple[tuple[str, str], bool]] = field(default_factory=list)
    #: of its own paragraphs, and of the others
    words: int = 0
    within: int = 0

    def kept(self) -> list[tuple[str, str]]:
        """Return the paragraphs that are read."""
        if self.tag == "form":
            return [one for one, _ in self.found] if self.words + self.within >= PROSE_WORDS else []
        return [one for one, inner in self.found if inner or self.words >= PROSE_WORDS]


class _Flow:
    """The paragraph that is being read, and what is open around it."""

    def __init__(self, gaps: Gaps, root: _Element) -> None:
        self._gaps = gaps
        self._root = root
        #: label that the last paragraph, or the one before it, began with
        self._labels = ["", ""]
        #: the paragraph, and what is raised or lowered in it
        self._lines = [Line()]
        #: tags of open blocks, the innermost last
        self._blocks = ["body"]
        #: names of open fonts that show signs, the innermost last
        self._fonts: list[str] = []
        self._held: list[_Held] = []
        #: paragraphs that have ended
        self.done: list[tuple[str, str]] = []
        #: open elements, by their kind
        self._pre = self._asides = self._soft = 0
        #: the paragraph has words of its own: not of a button, of a picture, or of a link aside
        self._own = False
        self._controlled = False

    def passes(self, element: _Element, tag: str) -> bool:
        """Return whether an element is passed over: it is left out, or shown as something else, which is added."""
        plain_one = not element.keys()
        if plain_one and tag not in _SPECIAL:
            return False
        if (found := formula(element, tag, self._gaps)) is not None:
            if found:
                self._own = True
                # a line of its own on the page
                apart = " " * is_displayed(element)
                self._lines[-1].add(apart)
                self._lines[-1].formula(found)
                self._lines[-1].add(apart)
            return True
        if tag in _LEFT_OUT or (
            (not plain_one or tag == "dialog") and (is_hidden(element, tag) or _is_struck(element))
        ):
            if tag in _APART:
                self.part()
            return True
        if tag in _CONTROLS:
            if (element.get("type") or "").lower() not in _MUTE:
                self._controlled = True
                self._lines[-1].add(self._gaps.sign("form control in a line of text"))
            return True
        if tag == "img":
            self._picture(element)
            return True
        return False

    def table(self, element: _Element) -> bool:
        """Add the rows of a table, if it has headings and none within: else pages are laid out by it."""
        if (element.get("role") or "").lower() in ("presentation", "none") or (
            next(islice(element.iter("table"), 1, None), None) is not None
            or next(element.iter("th", "thead"), None) is None
        ):
            return False
        grid = Grid.read(
            element, self._words, lambda one: not (is_hidden(one, str(one.tag)) or _is_struck(one))
        )
        if not grid.headed:
            return False
        self.part()
        caption = element.find("caption")
        if caption is not None and (text := self._words(caption)):
            self._take(("caption", text), within=True)
        label = next(filter(None, reversed(self._labels)), "")
        for line in grid.lines(label, self._gaps.sign(TOO_LARGE)):
            self._take(("tr", line), within=True)
        self._labels = ["", ""]
        return True

    def begin(self, element: _Element, tag: str) -> None:
        """Open an element."""
        if tag in _BLOCKS:
            self.part()
            self._blocks.append(tag)
            if self._holds(element, tag):
                self._held.append(_Held(tag=tag))
        elif _mark(element, tag):
            self._lines.append(Line())
        elif tag == "br":
            self._line().end()
        self._open(tag, 1)
        if font := _font(element):
            self._fonts.append(font)
        self.add(element.text)

    def end(self, element: _Element, tag: str) -> None:
        """Close an element."""
        self._open(tag, -1)
        if _font(element):
            self._fonts.pop()
        if tag in _BLOCKS:
            self.part()
            self._blocks.pop()
            if self._holds(element, tag):
                self._release(self._held.pop())
        elif (mark := _mark(element, tag)) and len(self._lines) > 1:
            inner = self._lines.pop().text
            if mark == "^" and _CITING.match(inner) and _refers(element):
                # or it would read as a power, or a part of a word
                bare = inner.strip()
                self._lines[-1].add(bare if bare[0] in "[(" else f"[{bare}]")
            else:
                self._lines[-1].shift(mark, inner, behind=element.tail or "")

    def add(self, text: str | None) -> None:
        """Go on with text."""
        if not text:
            return
        text = (_LINE_SPACE if self._pre else _SPACE).sub(" ", text)
        if self._fonts:
            text = decoded(text, self._fonts[-1], self._gaps)
        self._own = self._own or (not self._soft and _WORD.search(text) is not None)
        self._lines[-1].add(text)

    def part(self) -> None:
        """End the paragraph."""
        tag = self._blocks[-1]
        text = self._line().text
        own, controlled = self._own or tag in _HEADINGS, self._controlled
        self._lines[0] = Line()
        self._own = self._controlled = False
        if not text.strip():
            return
        for part in _BLANK.split(text):
            shown = "\n".join(
                filter(None, (without_figures(plain(one)) for one in part.split("\n")))
            )
            if not shown or (not own and _WORD.search(shown)):
                continue
            if controlled and words(shown) < PROSE_WORDS:
                continue
            self._take((tag, shown.replace("\n", " ") if tag in _HEADINGS else shown))

    def _line(self) -> Line:
        """Return the paragraph's line; what is raised or lowered in it has ended."""
        while len(self._lines) > 1:
            inner = self._lines.pop()
            self._lines[-1].add(inner.text)
        return self._lines[0]

    def _open(self, tag: str, by: int) -> None:
        self._pre += by * (tag in _LINED)
        self._asides += by * (tag == "aside")
        self._soft += by * (tag == "button" or (tag == "a" and self._asides > 0))

    def _picture(self, element: _Element) -> None:
        """Add the text that stands for a picture, or its sign; nothing for one that only decorates."""
        text = element.get("alt")
        tiny = any(_TINY.fullmatch(element.get(side) or "") for side in ("width", "height"))
        if not tiny and (text is None or text.strip()):
            self._lines[-1].add(pictured(text))

    def _holds(self, element: _Element, tag: str) -> bool:
        return (tag in _CELLS and element is not self._root) or tag == "form"

    def _words(self, element: _Element) -> str:
        """Return the words of a cell or a caption in one line."""
        return ", ".join(text.replace("\n", " ") for _, text in paragraphs(element, self._gaps))

    def _take(self, found: tuple[str, str], *, within: bool = False) -> None:
        self._labels = [self._labels[-1], label_of(found[1])]
        if not self._held:
            self.done.append(found)
            return
        held = self._held[-1]
        held.found.append((found, within))
        if within:
            held.within += words(found[1])
        else:
            held.words += words(found[1])

    def _release(self, held: _Held) -> None:
        kept = held.kept()
        if not self._held:
            self.done += kept
            return
        outer = self._held[-1]
        outer.found += [(one, True) for one in kept]
        outer.within += held.words + held.within if kept else 0


def is_hidden(element: _Element, tag: str) -> bool:
    """Return whether an element itself says that it is hidden, from the eye or from assistive technologies."""
    if element.get("aria-hidden") == "true" and not _is_page(element, tag):
        return True
    if tag in ("html", "body"):
        return False  # a script shows it when the page is loaded
    if tag == "dialog" and element.get("open") is None:
        return True
    if element.get("hidden") is not None or element.get("popover") is not None:
        return True
    return _HIDDEN.search(element.get("style", "")) is not None


def _is_struck(element: _Element) -> bool:
    return _STRUCK.search(element.get("style", "")) is not None


def _is_page(element: _Element, tag: str) -> bool:
    return tag in _PAGES or next(element.iter("h1", "main", "article"), None) is not None


def _refers(element: _Element) -> bool:
    """Return whether an element is, holds or is in a link to a place of its page, as to a reference."""
    links = (*element.iter("a"), *element.iterancestors("a"))
    return any((one.get("href") or "").startswith("#") for one in links)


def _mark(element: _Element, tag: str) -> str | None:
    """Return the mark of text that is raised or lowered, by its tag, style or class."""
    if tag in ("sup", "sub"):
        return _MARKS[tag]
    if (style := element.get("style")) and (found := _SHIFTED.search(style)):
        return _MARKS[found[1].lower()]
    for name in (element.get("class") or "").split():
        if name.lower() in _MARKS:
            return _MARKS[name.lower()]
    return None


def _font(element: _Element) -> str | None:
    """Return the font that an element names; ``None``: it names none."""
    if face := element.get("face"):
        return face.partition(",")[0].strip(" \"'")
    if (style := element.get("style")) and (found := _FONT.search(style)):
        name = found[1].partition(",")[0].strip(" \"'")
        # behind a size and a weight, in the short form
        return name if shows_signs(name) else name.rpartition(" ")[2]
    return None
