"""Reader of PubMed files: annual baseline, daily updates, and replies of the E-utilities.

Nothing is raised for a file's content. A record that is not well-formed XML, or lacks a PMID or an abstract, is a
:class:`~posology.errors.BadRecord` in its place, and the other records are read. A file that ends early, declares
entities or does not match its checksum is a :class:`~posology.errors.BadFile`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from posology.corpus import checksums
from posology.corpus.decoding import xml_parser
from posology.corpus.items import Deletion, Item, sentence
from posology.corpus.pubmed.frames import DELETIONS, SETS, Frame, Prolog, frames
from posology.corpus.pubmed.record import Parsed, article, chapter
from posology.corpus.pubmed.relations import pmid_of
from posology.errors import BadFile, BadRecord

if TYPE_CHECKING:
    from lxml.etree import XMLParser, _Element

SUFFIXES = (".xml", ".xml.gz")
#: the root elements of PubMed's files
ROOTS = tuple(SETS)

_PMID = re.compile(
    rb"<PMID(?:\s+Version\s*=\s*[\"']([0-9]{1,9})[\"'])?\s*>\s*([1-9][0-9]{0,11})\s*<"
)
#: namespace of formulas, which is in the DTD if it is not in the file
_AROUND = (b'<set xmlns:mml="http://www.w3.org/1998/Math/MathML">', b"</set>")
_WHERE = re.compile(r",? line \d+(?:, column \d+)?")


def read(path: Path, *, after: int = 0) -> Iterator[Item]:
    """Yield the items of one file, in constant memory.

    Args:
        path: plain or gzipped (detected by content). If it does not match the file ``NAME.md5`` beside it, nothing of it
            is read.
        after: the items up to this place are passed over unread.

    Yields:
        For every record its notices and then, last of its place, its passage or what is wrong with it; a
        place and a :class:`~posology.corpus.items.Deletion` for every PMID of a list of deletions. Of
        several versions of one record in a file, one that stands behind a later version is passed over. At
        the end a ``BadFile`` when the file could not be read to its end.
    """
    place = 0
    parser: XMLParser | None = None
    versions: dict[bytes, int] = {}
    bad = checksums.check(path)
    if bad is not None:
        yield bad
        return
    try:
        for frame in frames(path):
            if isinstance(frame, Prolog):
                parser = xml_parser(frame.encoding)
                continue
            first, place = place + 1, place + frame.places
            superseded = _superseded(frame, versions)
            if place > after and not superseded:
                assert parser is not None
                for item in _items(frame, parser, path, first):
                    if _place(item) > after:
                        yield item
    except BadFile as error:
        yield BadFile(error.reason, path=str(path), line=place or None)
    except OSError as error:
        yield BadFile(sentence(error.strerror or str(error)), path=str(path))


def count(path: Path) -> int:
    """Return the number of places, up to where the file can be read: records, and PMIDs of deletions."""
    places = 0
    try:
        for frame in frames(path):
            places += frame.places if isinstance(frame, Frame) else 0
    except (BadFile, OSError):
        pass  # `read` reports it with its place
    return places


def _superseded(frame: Frame, versions: dict[bytes, int]) -> bool:
    """Return whether a later version of the record came before it in the file; some hundred records have any."""
    if frame.content is None or frame.tag in DELETIONS:
        return False
    found = _PMID.search(frame.head)
    if found is None:
        return False
    version = int(found[1] or 1)
    latest = versions.get(found[2], 1)
    if version > latest:
        versions[found[2]] = version
    return version < latest


def _items(frame: Frame, parser: XMLParser, path: Path, first: int) -> Iterator[Item]:
    from lxml import etree

    if frame.content is None:
        yield BadRecord(frame.reason, path=str(path), line=first, record=_named(frame))
        return
    try:
        (element,) = etree.fromstring(frame.content.join(_AROUND), parser)
    except etree.XMLSyntaxError as error:
        yield BadRecord(_reason(error), path=str(path), line=first, record=_named(frame))
        return
    if frame.tag in DELETIONS:
        yield from _deletions(element, path, first)
        return
    yield from _parse(element).items(path=path, line=first, row=first - 1)


def _parse(element: _Element) -> Parsed:
    match str(element.tag):
        case "PubmedArticle":
            citation = element.find("MedlineCitation")
            if citation is None:
                return Parsed(reason="has no MedlineCitation")
            return article(citation, element.find("PubmedData"))
        case "MedlineCitation":
            return article(element, None)
        case "BookDocument":
            return chapter(element, None)
    document = element.find("BookDocument")
    if document is None:
        return Parsed(reason="has no BookDocument")
    return chapter(document, element.find("PubmedBookData"))


def _deletions(element: _Element, path: Path, first: int) -> Iterator[Item]:
    for line, one in enumerate(element.iter("PMID"), start=first):
        number = pmid_of(one)
        if number is None:
            yield BadRecord("deletion without a PMID", path=str(path), line=line)
        else:
            yield Deletion(id=f"pmid:{number}", path=path, line=line)


def _named(frame: Frame) -> str | None:
    found = _PMID.search(frame.head)
    return None if found is None else f"pmid:{found[2].decode()}"


def _reason(error: SyntaxError) -> str:
    """Return the parser's words, without places, which would be counted from the record's beginning."""
    return f"not well-formed XML: {sentence(_WHERE.sub('', error.msg or '').splitlines()[0])}"


def _place(item: Item) -> int:
    return item.line or 0
