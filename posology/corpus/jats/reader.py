"""Reader of JATS files, one article at a time: single articles, sets, and PMC archives."""

from __future__ import annotations

import tarfile
from collections.abc import Iterator
from dataclasses import replace
from io import BufferedIOBase
from itertools import chain
from pathlib import Path
from typing import IO, TYPE_CHECKING, Self, cast

from posology.corpus.decoding import opened
from posology.corpus.drafts import Broken, Draft, Warned, Wrong, counted, file_id, parts, placed
from posology.corpus.gaps import Gaps, told
from posology.corpus.items import Item, part_id
from posology.corpus.jats.body import ABSTRACT, abstract, body
from posology.corpus.jats.front import front
from posology.corpus.jats.stream import FAULTS, Ended, Torn, articles, message
from posology.corpus.jats.text import UNREAD
from posology.types import Passage

if TYPE_CHECKING:
    from lxml.etree import _Element as Element

#: ``.xml`` files with one of :data:`ROOTS` as root element; PubMed's have others
SUFFIXES = (".nxml", ".nxml.gz", ".xml", ".xml.gz")
#: of archives whose members are articles
ARCHIVES = (".tar.gz", ".tgz", ".tar")
ROOTS = ("article", "pmc-articleset", "articles", "OAI-PMH")

#: bytes of a long name or an extended header of an archive's member
LONGEST_HEADER = 65_536

_CHUNK = 65_536
_EXTENDED = (
    tarfile.GNUTYPE_LONGNAME,
    tarfile.GNUTYPE_LONGLINK,
    tarfile.XHDTYPE,
    tarfile.XGLTYPE,
    tarfile.SOLARIS_XHDTYPE,
)
_SPARSE = "sparse members are not read"


def read(path: Path, *, after: int = 0) -> Iterator[Item]:
    """Return the passages of a file of articles; see :mod:`posology.corpus.items`.

    One article is held at a time. No entity is expanded, and nothing is fetched. An article without an identifier
    of its own is named after its file if it is alone in it.
    """
    return placed(_file(path), path=path, after=after)


def read_archive(path: Path, *, after: int = 0) -> Iterator[Item]:
    """Return the same of a tar archive, packed or not, whose members ``*.xml`` and ``*.nxml`` hold articles.

    It is read as a stream and nothing is written to disk. A member that is broken is a
    :class:`~posology.errors.BadRecord` with its name, and the others are read.
    """
    return placed(_archive(path), path=path, after=after)


def count(path: Path) -> int:
    """Return the number of passages in a file, up to where it can be read."""
    return counted(_file(path))


def count_archive(path: Path) -> int:
    """Return the number of passages in an archive, up to where it can be read."""
    return counted(_archive(path))


def _file(path: Path) -> Iterator[Draft]:
    try:
        with opened(path) as stream:
            yield from _articles(stream, name=file_id(path))
    except FAULTS as error:
        yield Broken(reason=message(error))


def _archive(path: Path) -> Iterator[Draft]:
    some = False
    try:
        with (
            opened(path) as stream,
            tarfile.open(
                fileobj=cast("IO[bytes]", _Available(stream)), mode="r|", tarinfo=_Header
            ) as archive,
        ):
            for member in archive:
                # else every name stays in memory, and every global header
                archive.members = []  # type: ignore[attr-defined]
                archive.pax_headers = {}
                if member.isfile() and member.name.lower().endswith((".xml", ".nxml")):
                    some = True
                    yield from _member(archive, member)
            # where a packed archive breaks off behind its last member, only its end tells
            while stream.read1(_CHUNK):
                pass
    except RecursionError:
        yield Broken(reason="a member has too many headers")
        return
    except (*FAULTS, tarfile.TarError, ValueError) as error:
        yield Broken(reason=message(error))
        return
    if not some:
        yield Broken(reason="the archive holds no file of .xml or .nxml")


class _Header(tarfile.TarInfo):
    """A member's header, of bounded size: ``tarfile`` holds long names and extended headers whole in memory."""

    @classmethod
    def frombuf(cls, buf: bytes | bytearray, encoding: str, errors: str) -> Self:
        found = super().frombuf(buf, encoding, errors)
        if found.type in _EXTENDED and found.size > LONGEST_HEADER:
            # no HeaderError: that would be taken for the end
            raise tarfile.ReadError(
                f"a header of {found.size:,} bytes: at most {LONGEST_HEADER:,} are read"
            )
        if found.type == tarfile.GNUTYPE_SPARSE:
            raise tarfile.ReadError(_SPARSE)
        return found

    def _proc_gnusparse_10(self, *_: object) -> None:
        # its map is as long as the file says
        raise tarfile.ReadError(_SPARSE)


class _Available:
    """Reads what is there, not as much as is asked for: a full read loses what comes before a break."""

    def __init__(self, stream: BufferedIOBase) -> None:
        self._stream = stream

    def read(self, size: int) -> bytes:
        return self._stream.read1(size)


def with_body(stream: BufferedIOBase) -> Iterator[str]:
    """Yield the PMC numbers of the articles of a stream of XML that come with more than abstracts."""
    for found in articles(stream):
        if isinstance(found, Torn | Ended):
            continue
        _strip_namespaces(found)
        head = front(found, fallback=None)
        if head is not None and head.article.pmcid and next(body(found), None) is not None:
            yield head.article.pmcid


def _member(archive: tarfile.TarFile, member: tarfile.TarInfo) -> Iterator[Draft]:
    stream = archive.extractfile(member)
    # a member that is a file has a stream
    for draft in _articles(cast("BufferedIOBase", stream), name=None):
        if isinstance(draft, Broken) or (isinstance(draft, Wrong) and draft.record is None):
            yield Wrong(reason=draft.reason, record=_shown(member))
        else:
            yield draft


def _articles(stream: BufferedIOBase, *, name: str | None) -> Iterator[Draft]:
    """Yield the drafts of every article in a stream of XML."""
    some = False
    for found in articles(stream):
        if isinstance(found, Ended):
            yield Broken(reason=found.reason)
            return
        some = True
        if isinstance(found, Torn):
            yield Wrong(reason=found.reason, record=found.record)
        else:
            yield from _article(found, name=name if found.getparent() is None else None)
    if not some:
        yield Broken(reason="holds no <article>")


def _article(element: Element, *, name: str | None) -> Iterator[Draft]:
    _strip_namespaces(element)
    head = front(element, fallback=name)
    if head is None:
        yield Wrong(reason="has neither a PMC identifier nor a PMID nor a DOI")
        return
    for target, kind in head.notices:
        yield Warned(target=target, kind=kind, by=part_id(head.article.id, 1))
    some = False
    found = parts(chain(abstract(element), body(element)), of=head.article)
    for draft in told(found, Gaps(UNREAD), record=head.article.id):
        if not some and isinstance(draft, Passage) and draft.section == ABSTRACT:
            yield replace(draft, same_work=head.same_work)
        else:
            yield draft
        some = True
    if not some:
        yield Wrong(reason="has neither an abstract nor a text", record=head.article.id)


def _strip_namespaces(element: Element) -> None:
    for node in element.iter():
        # an entity's tag is no string, whatever lxml's types say
        if str(node.tag).startswith("{"):
            node.tag = str(node.tag).rpartition("}")[2]


def _shown(member: tarfile.TarInfo) -> str:
    return "".join(char if char.isprintable() else "\ufffd" for char in member.name)
