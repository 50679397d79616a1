"""Articles out of a stream of XML, one after the other, and past those that are no XML.

A parser stops for good at the first wrong tag. Of a set the bytes since the last whole article are therefore held, and
another parser goes on where the next article begins, so that what is wrong in one article costs that one.
"""

from __future__ import annotations

import re
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from io import BufferedIOBase
from typing import TYPE_CHECKING, cast

from posology.corpus.items import sentence

if TYPE_CHECKING:
    from lxml.etree import _Element as Element

#: bytes of one article's XML; a longer one ends the reading of its file
LONGEST = 50_000_000
#: bytes of a file that are parsed a second time, behind broken articles: each could hide all that follow it
TWICE = 10 * LONGEST
#: errors of a byte stream that cannot be read further
FAULTS = (OSError, EOFError, zlib.error)

_CHUNK = 65_536
_LINE_END = "\n"
#: bytes that are kept while the next article is looked for: a tag's name fits into them
_TAG = 64
_START = re.compile(rb"<(?:[\w.-]+:)?article(?=[\s>])")
_END = re.compile(rb"</(?:[\w.-]+:)?article\s*>")
#: a file that ends with a tag is not cut off
_WHOLE = re.compile(rb"</[\w:.-]+\s*>\s*\Z")
#: in the parser's words: where, and that a character may not be in XML
_WHERE = re.compile(r",? line \d+(?:, column \d+)?| \(<string>[^)]*\)")
_FORBIDDEN = re.compile(r"invalid (?:xml)?Char value (\d+)")
_FORBIDS = "which XML forbids"
_CONTROL = re.compile(
    rb"[\x00-\x08\x0b\x0c\x0e-\x1f]|&#(?:0*(?:[0-8]|1[124-9]|2\d|3[01])|[xX]0*(?:[0-8bBcCeEfF]|1[\da-fA-F]));"
)
#: characters before it that are shown
_BEFORE = 40
#: the parser's words where another document begins behind the first, and what that begins with
_EXTRA = "Extra content"
_PROLOG = re.compile(rb"(?:\s|<\?[^>]*\?>|<!DOCTYPE[^\[>]*>)*")
_CLOSING = re.compile(rb"\s*(?:</[^<>]*>\s*)*")
#: bounded, so that what is never closed is not looked through from each of its words
_ID = re.compile(
    rb"<article-id\b[^<>]{0,200}?\b(pmcid|pmc|pmid|doi)\"[^<>]{0,200}>\s*([!-~]{1,100}?)\s*<"
)
#: Prolog for a parser that continues within a set: entities are the DTD's, and prefixes may be the set's.
_AROUND = (
    b'<!DOCTYPE set SYSTEM "JATS.dtd"><set xmlns:xlink="http://www.w3.org/1999/xlink" '
    b'xmlns:mml="http://www.w3.org/1998/Math/MathML" xmlns:xsi="http://www.w3.org/2001/XMLSchema-instance" '
    b'xmlns:ali="http://www.niso.org/schemas/ali/1.0/">'
)


@dataclass(frozen=True, kw_only=True, slots=True)
class Torn:
    """An article that is no well-formed XML."""

    reason: str
    #: the first of its identifiers; ``None``: none can be read
    record: str | None


@dataclass(frozen=True, kw_only=True, slots=True)
class Ended:
    """The stream cannot be read further."""

    reason: str


def articles(stream: BufferedIOBase) -> Iterator[Element | Torn | Ended]:
    """Yield every ``<article>`` of a stream, with any root; each is freed when the next is requested."""
    held = _Held()
    parser = _Parser(b"", held)
    again = outside = False
    twice = 0
    while True:
        try:
            chunk = stream.read1(_CHUNK)
        except FAULTS as error:
            yield Ended(reason=message(error))
            return
        held += chunk
        reason = parser.feed(chunk)
        while True:
            whole = 0
            for element in parser.articles():
                whole += 1
                outside = False
                yield element
            _drop(held, whole)
            reason = parser.torn or reason
            if reason is None:
                break
            broken = _START.search(held)
            if not parser.open and not outside and (broken or _EXTRA in reason):
                # The fault is before an article, which is read by itself: files that were put together are no XML.
                outside = True
                if broken and not _PROLOG.fullmatch(held, 0, broken.start()):
                    yield Torn(reason=reason, record=None)
                lost = bytes(held)
                if not _to_next(held, stream, 0)[0]:
                    if not (again and _CLOSING.fullmatch(lost)):
                        yield Ended(reason=reason)
                    return
            else:
                outside = False
                lost = bytes(held[broken.start() :] if broken else held)
                found, rest = _to_next(held, stream, broken.end() if broken else 0)
                if not found and again and _CLOSING.fullmatch(lost):
                    return
                reason += _after(lost) if _FORBIDS in reason else ""
                if not found and (broken is None or not _WHOLE.search(lost + rest)):
                    yield Ended(reason=reason)
                    return
                yield Torn(reason=reason, record=_record(lost))
                if not found:
                    return
            again = True
            twice += len(held)
            if twice > TWICE:
                yield Ended(reason=f"more than {TWICE:,} bytes of broken articles")
                return
            parser = _Parser(_AROUND, held)
            reason = parser.feed(bytes(held))
            if reason is None and not chunk:
                reason = parser.feed(b"")
        if not chunk:
            return
        if len(held) > LONGEST:
            yield Ended(reason=f"an article of more than {LONGEST:,} bytes")
            return


class _Held(bytearray):
    """Bytes of a file since the last whole article."""

    #: line ends of the file before them
    lines = 0

    def forget(self, count: int) -> None:
        """Let go of so many bytes from the beginning."""
        self.lines += self.count(b"\n", 0, count)
        del self[:count]


class _Parser:
    def __init__(self, before: bytes, held: _Held) -> None:
        from lxml import etree

        #: line of the file in which it begins
        self._line = held.lines

        self._faults = (etree.XMLSyntaxError, ValueError, LookupError)
        #: an article has begun and not ended
        self.open = False
        #: what is wrong with an article although it may yet be well-formed; ``None``: nothing
        self.torn: str | None = None
        self._parser = etree.XMLPullParser(
            events=("start", "end"),
            tag="{*}article",
            resolve_entities=False,
            load_dtd=False,
            no_network=True,
            remove_comments=True,
            remove_pis=True,
            huge_tree=False,
        )
        if before:
            self._parser.feed(before)

    def feed(self, chunk: bytes) -> str | None:
        """Go on with some bytes, or none at the end; why that cannot be, or ``None``."""
        try:
            if chunk:
                self._parser.feed(chunk)
            else:
                self._parser.close()
        except self._faults as error:
            # some of its messages go on with the file's words
            said = sentence(_WHERE.sub("", str(error).partition(_LINE_END)[0]))
            if forbidden := _FORBIDDEN.search(said):
                said = f"holds the character U+{int(forbidden[1]):04X}, {_FORBIDS}"
            line = getattr(error, "lineno", None)
            return f"no valid XML: {said}{f', in line {self._line + line:,}' if line else ''}"
        return None

    def articles(self) -> Iterator[Element]:
        """Those that have ended since, up to one that another begins in: no article holds another."""
        for event, found in self._parser.read_events():
            if event == "start" and self.open:
                self.torn = "is not closed before the next begins"
                return
            self.open = event == "start"
            if not self.open:
                element = cast("Element", found)
                yield element
                _forget(element)


def _forget(element: Element) -> None:
    """Free an article that has been read, and what stands before it."""
    element.clear()
    parent = element.getparent()
    while parent is not None and element.getprevious() is not None:
        del parent[0]


def _drop(held: _Held, whole: int) -> None:
    """Let go of so many articles from the beginning."""
    for _ in range(whole):
        end = _END.search(held)
        # written in an encoding whose bytes say nothing: then nothing can be found in it later
        held.forget(end.end() if end else len(held))


def _to_next(held: _Held, stream: BufferedIOBase, since: int) -> tuple[bool, bytes]:
    """Let go of everything before the next article that begins behind ``since``.

    Returns:
        Whether there is one; if not, the last bytes of a stream that could be read to its end.
    """
    while True:
        found = _START.search(held, since)
        if found is not None:
            held.forget(found.start())
            return True, b""
        held.forget(max(0, len(held) - _TAG))
        since = 0
        try:
            chunk = stream.read1(_CHUNK)
        except FAULTS:
            return False, b"<"
        if not chunk:
            return False, bytes(held)
        held += chunk


def _record(lost: bytes) -> str | None:
    found = _ID.search(_END.split(lost, maxsplit=1)[0])
    if found is None:
        return None
    kind, name = found[1].decode(), found[2].decode()
    if kind.startswith("pmc"):
        return f"pmcid:PMC{name.upper().removeprefix('PMC')}"
    return f"{kind}:{name}"


def _after(lost: bytes) -> str:
    """Return the words before the first character of an article that XML forbids."""
    found = _CONTROL.search(lost)
    if found is None:
        return ""
    before = lost[max(0, found.start() - 4 * _BEFORE) : found.start()].decode(errors="ignore")
    words = " ".join(before.rpartition(">")[2].split())[-_BEFORE:]
    return f", after “{words}”" if words else ""


def message(error: BaseException) -> str:
    """Return the reason why a stream cannot be read further."""
    reason = error.strerror if isinstance(error, OSError) else None
    return sentence(reason or str(error))
