"""Cuts a file of PubMed's XML into its records, byte by byte and in constant memory, without reading them.

A parser that is given a whole file stops for good at the first wrong byte, or goes on by guessing. Here the
file is cut where records begin and end, so that each is parsed by itself: what is wrong in one costs that
one, no guess is made, and no record of any length is held that is longer than :data:`MAX_RECORD`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from posology.corpus.pubmed.window import Window, opened
from posology.errors import BadFile

#: bytes; a longer record is reported and skipped without being held in memory. Those with thousands of
#: collaborators come to some 6 MB
MAX_RECORD = 16_000_000
#: of each root element, the elements that are its records (DTD pubmed_250101, "Set-level elements";
#: MedlineCitationSet is of the files before 2017)
SETS: dict[str, tuple[str, ...]] = {
    "PubmedArticleSet": ("PubmedArticle", "PubmedBookArticle", "DeleteCitation"),
    "PubmedBookArticleSet": ("PubmedBookArticle",),
    "BookDocumentSet": ("BookDocument", "DeleteDocument"),
    "MedlineCitationSet": ("MedlineCitation", "DeleteCitation"),
    # a record that was saved by itself
    "PubmedArticle": ("PubmedArticle",),
    "PubmedBookArticle": ("PubmedBookArticle",),
}
DELETIONS = frozenset({"DeleteCitation", "DeleteDocument"})

#: bytes in which the root element must begin
_PROLOG_WITHIN = 1_000_000
#: bytes that the longest tag's name fits into, with what is around it
_NAME = 64
#: bytes in which the next tag is looked for first, and then in twice as many; more than twice a name's
_STEP = 4_096
#: bytes of a record in which its PMID stands
_HEAD = 1_000
_BOM = b"\xef\xbb\xbf"
_WIDE = (b"\xff\xfe", b"\xfe\xff", b"<\0", b"\0<", b"\0\0")

_DECLARATION = re.compile(
    rb"\s*(?:<\?.*?\?>|<!--.*?-->"
    rb"|<!DOCTYPE(?:[^\[<>\"']|\"[^\"]*\"|'[^']*')*+(?:\[(?P<subset>.*?)\]\s*)?>)",
    re.DOTALL,
)
_ROOT = re.compile(rb"\s*<(?P<name>[A-Za-z_][\w.:-]*)(?:\s[^<>]*)?(?P<empty>/?)>")
_ENCODING = re.compile(rb"<\?xml[^>]*?encoding\s*=\s*[\"']([A-Za-z0-9._-]+)[\"']")
#: of one byte a character below 128, so that tags can be looked for; empty: the parser's default
_ENCODINGS = re.compile(r"(?P<default>utf-?8|us-ascii|ascii)|iso-8859-\d{1,2}|windows-125\d")
#: comments, sections of characters and instructions begin so
_SPECIAL = re.compile(rb"<[!?]")
#: begins a document
_DOCUMENT = re.compile(
    rb"(?:\xef\xbb\xbf)?(?:<\?xml\s|<!DOCTYPE\s|<(?:" + "|".join(SETS).encode() + rb")[\s/>])"
)
_PMID_TAG = re.compile(rb"<PMID[\s/>]")


@dataclass(frozen=True, kw_only=True, slots=True)
class Frame:
    """One record as it stands in the file."""

    #: name of its element; empty: it is no record
    tag: str
    #: from its ``<`` to its ``>``; ``None``: its end is unknown, or it is too long
    content: bytes | None
    #: how it begins
    head: bytes
    #: why there is no content
    reason: str = ""

    @property
    def places(self) -> int:
        """Return the number of items: one per PMID for a list of deletions, else 1."""
        if self.tag not in DELETIONS or self.content is None:
            return 1
        return max(1, len(_PMID_TAG.findall(self.content)))


@dataclass(frozen=True, kw_only=True, slots=True)
class Prolog:
    """Prolog of a file: the text before the records."""

    #: name of the root element
    root: str
    #: the one that the file declares, where that is not the default; else ``None``
    encoding: str | None
    #: it has no content
    empty: bool


def frames(path: Path) -> Iterator[Prolog | Frame]:
    """Yield a file's prolog, then its records in order; of several documents in one file one after the other.

    Raises:
        BadFile: it is not a PubMed file, or cannot be read further; raised after the records before the fault.
    """
    with opened(path) as window:
        while True:
            prolog = _prolog(window, path)
            yield prolog
            cut = _Cutter(window, SETS[prolog.root], str(path))
            single = prolog.root in SETS[prolog.root]
            root = None if single else prolog.root.encode()
            yield from cut.records(root, ended=prolog.empty and not single)
            if not len(window):
                return


def named_root(start: bytes) -> str | None:
    """Return the name of the root element in the beginning of a text that need not be XML; ``None``: there is none."""
    at = len(_BOM) if start.startswith(_BOM) else 0
    while found := _DECLARATION.match(start, at):
        at = found.end()
    root = _ROOT.match(start, at)
    return None if root is None else root["name"].decode().rpartition(":")[2]


def _prolog(window: Window, path: Path) -> Prolog:
    window.need(_NAME)
    if not len(window):
        raise BadFile(window.broken or "is empty", path=str(path))
    if window.buffer.startswith(_WIDE):
        raise BadFile("encoded as UTF-16 or UTF-32: PubMed files must be UTF-8", path=str(path))
    if window.buffer.startswith(_BOM, window.at):
        window.at += len(_BOM)
    encoding = None
    while True:
        found = _DECLARATION.match(window.buffer, window.at)
        if found is not None:
            if b"<!ENTITY" in (found["subset"] or b""):
                raise BadFile(
                    "declares entities of its own, which PubMed files do not: not read",
                    path=str(path),
                )
            if declared := _ENCODING.match(found[0].lstrip()):
                encoding = declared[1].decode().lower()
            window.at = found.end()
            continue
        root = _ROOT.match(window.buffer, window.at)
        if root is not None:
            break
        if len(window) > _PROLOG_WITHIN or not window.fill():
            reason = window.broken or "is no XML, or ends before its first element"
            raise BadFile(reason, path=str(path))
    name = root["name"].decode(errors="replace")
    if name not in SETS:
        raise BadFile(
            f"unknown root element {name}: PubMed's are {', '.join(SETS)}", path=str(path)
        )
    known = _ENCODINGS.fullmatch(encoding or "utf-8")
    if known is None:
        raise BadFile(f"encoded as {encoding}: PubMed files must be UTF-8", path=str(path))
    empty = bool(root["empty"])
    if name not in SETS[name]:
        window.at = root.end()
    return Prolog(root=name, encoding=None if known["default"] else encoding, empty=empty)


class _Cutter:
    """Finds where the records of one file begin and end."""

    def __init__(self, window: Window, tags: tuple[str, ...], path: str) -> None:
        self._window = window
        self._path = path
        self._starts = [b"<" + tag.encode() for tag in tags]
        names = b"|".join(tag.encode() for tag in tags)
        self._start = re.compile(rb"<(" + names + rb")(?=[\s/>])")
        #: up to which byte of the stream something was looked for and is not: else every unclosed record looks anew
        self._barren: dict[bytes, int] = {}
        #: from which byte something was looked for, and at which it was found, for the same reason
        self._known: dict[bytes, tuple[int, int]] = {}

    def records(self, root: bytes | None, *, ended: bool) -> Iterator[Frame]:
        """Yield the records up to the end of the file, or to another document in it.

        Args:
            root: the root element, whose end must come; ``None``: a record is the root.
            ended: whether it has ended.
        """
        window = self._window
        while True:
            window.drop()
            window.skip_space()
            window.need(_HEAD)
            if not len(window):
                if (root is None or ended) and window.broken is None:
                    return
                raise self._cut_off(f"ends before </{(root or b'').decode()}>: it is not whole")
            start = self._start.match(window.buffer, window.at)
            if ended and start is None and _DOCUMENT.match(window.buffer, window.at):
                return
            if root is not None and _closes(window.buffer, window.at, root):
                window.at = window.buffer.index(b">", window.at) + 1
                ended = True
                continue
            for opening, closing in ((b"<!--", b"-->"), (b"<?", b"?>")):
                if window.buffer.startswith(opening, window.at):
                    # one that is not closed hides no record
                    end = self._find(closing, window.at + len(opening), window.at)
                    if end is not None:
                        window.at = end + len(closing)
                        break
            else:
                yield self._junk(root, ended=ended) if start is None else self._record(start)

    def _record(self, start: re.Match[bytes]) -> Frame:
        window = self._window
        tag = start[1]
        begin = start.start()
        head = self._head()
        opened_to = window.find(b">", begin, within=MAX_RECORD)
        if opened_to is not None and window.buffer[opened_to - 1] == ord("/"):
            window.at = opened_to + 1
            content = bytes(window.buffer[begin : window.at])
            return Frame(tag=tag.decode(), content=content, head=content[:_HEAD])
        end, why = self._end(tag, begin)
        if not why:
            window.at = end
            content = bytes(window.buffer[begin:end])
            return Frame(tag=tag.decode(), content=content, head=content[:_HEAD])
        if end > begin:
            # what follows is another record, with a number of its own
            head = bytes(window.buffer[begin : min(end, begin + _HEAD)])
            window.at = end
        elif len(window) >= MAX_RECORD:
            # what is left of it: up to its end, or to the next that begins
            window.at += 1
            self._skip(rb"</" + tag + rb"\s*>")
        else:
            raise self._cut_off("ends within a record: it is not whole")
        return Frame(tag=tag.decode(), content=None, head=head, reason=why)

    def _end(self, tag: bytes, begin: int) -> tuple[int, str]:
        """Where a record ends; or where the next begins, or ``begin`` if nothing is found, and why."""
        window = self._window
        closing = b"</" + tag
        end: int | None = begin
        at, step = begin + 1, _STEP
        unclosed: set[bytes] = set()
        while True:
            if end is not None and end < at:
                end = self._find(closing, at, begin)
            limit = len(window.buffer) if end is None else end
            # the end may be another record's, far away: what lies before it is not looked at for each record again
            until = min(limit, at + step)
            found = _SPECIAL.search(window.buffer, at, until)
            special = -1 if found is None else found.start()
            nested = self._starting(at, until if special < 0 else special)
            if nested is not None:
                return nested, "is not closed before the next begins"
            if special >= 0:
                at = self._past(special, begin, unclosed)
                continue
            if until < limit:
                at, step = until - _NAME, 2 * step
                continue
            if end is None:
                return begin, f"longer than {MAX_RECORD:,} bytes"
            window.need_to(end + _NAME)
            if _closes(window.buffer, end, tag):
                return window.buffer.index(b">", end) + 1, ""
            if not window.buffer[end + len(closing) : end + len(closing) + 1].strip(b"> \t\r\n"):
                at = end + 1
                continue
            return end, "is not closed"

    def _past(self, special: int, begin: int, unclosed: set[bytes]) -> int:
        """Behind a comment, a section of characters or an instruction, in which nothing is a tag."""
        window = self._window
        for opening, closing in ((b"<!--", b"-->"), (b"<![CDATA[", b"]]>"), (b"<?", b"?>")):
            if window.buffer.startswith(opening, special) and closing not in unclosed:
                inside = special + len(opening)
                end = self._find(closing, inside, begin)
                if end is not None:
                    return end + len(closing)
                unclosed.add(closing)
        return special + 2

    def _find(self, wanted: bytes, at: int, begin: int) -> int | None:
        """Where ``wanted`` stands from ``at`` on, within the bound of a record that begins at ``begin``."""
        window = self._window
        since, place = self._known.get(wanted, (0, -1))
        if since <= window.dropped + at <= place:
            return place - window.dropped
        at = max(at, self._barren.get(wanted, 0) - window.dropped)
        found = window.find(wanted, at, within=MAX_RECORD, since=begin)
        if found is not None:
            self._known[wanted] = window.dropped + at, window.dropped + found
        else:
            looked = min(len(window.buffer), begin + MAX_RECORD) - len(wanted) + 1
            self._barren[wanted] = window.dropped + max(at, looked)
        return found

    def _starting(self, at: int, until: int) -> int | None:
        found = [self._window.buffer.find(start, at, until) for start in self._starts]
        if all(place < 0 for place in found):
            return None
        nested = self._start.search(self._window.buffer, at, until)
        return None if nested is None else nested.start()

    def _junk(self, root: bytes | None, *, ended: bool) -> Frame:
        head = self._head()
        if head.startswith(b"<") and len(head) < _NAME and b">" not in head and not ended:
            raise self._cut_off("ends within a tag: it is not whole")
        window = self._window
        begin = window.dropped + window.at
        window.at += 1
        self._skip(None if root is None else rb"</" + root + rb"\s*>", stay=True)
        if (following := self._start.search(head, 1)) is not None:
            head = head[: following.start()]
        reason = "is no record of PubMed's"
        if ended:
            size = window.dropped + window.at - begin
            reason = f"stands behind the document's end, and {reason}: {size:,} bytes are not read"
        return Frame(tag="", content=None, head=head, reason=reason)

    def _skip(self, end: bytes | None, *, stay: bool = False) -> None:
        """Go on to where the next record begins or behind ``end``, or, if ``stay``, before it."""
        pattern = self._start.pattern + (b"" if end is None else b"|(?P<end>" + end + b")")
        looked_for = re.compile(pattern)
        window = self._window
        while True:
            found = looked_for.search(window.buffer, window.at)
            if found is not None:
                behind = not stay and found.groupdict().get("end") is not None
                window.at = found.end() if behind else found.start()
                return
            window.at = max(window.at, len(window.buffer) - _NAME)
            window.drop()
            if not window.fill():
                window.at = len(window.buffer)
                return

    def _head(self) -> bytes:
        window = self._window
        window.need(_HEAD)
        return bytes(window.buffer[window.at : window.at + _HEAD])

    def _cut_off(self, reason: str) -> BadFile:
        return BadFile(self._window.broken or reason, path=self._path)


def _closes(buffer: bytearray, at: int, tag: bytes) -> bool:
    return re.compile(rb"</" + tag + rb"\s*>").match(buffer, at) is not None
