"""The parts of a Word file: members of an archive, which are found by their relations and unpacked within a bound."""

from __future__ import annotations

import posixpath
import zipfile
from typing import IO, TYPE_CHECKING

from posology.corpus.decoding import xml_parser
from posology.corpus.documents.html import Unreadable
from posology.corpus.documents.word.names import W
from posology.corpus.items import sentence

if TYPE_CHECKING:
    from lxml.etree import _Element

#: bytes of a file's XML, unpacked, which is held whole; pictures are not read
MAX_BYTES = 16_000_000
MAX_MEMBERS = 10_000

_CHUNK = 65_536
_XML = (".xml", ".rels")
_DOCTYPE = tuple("<!DOCTYPE".encode(encoding) for encoding in ("utf-8", "utf-16-le", "utf-16-be"))
#: names of Office's namespaces in its strict form, and in the usual one
_STRICT = (
    (
        b"http://purl.oclc.org/ooxml/wordprocessingml/main",
        b"http://schemas.openxmlformats.org/wordprocessingml/2006/main",
    ),
    (
        b"http://purl.oclc.org/ooxml/officeDocument/math",
        b"http://schemas.openxmlformats.org/officeDocument/2006/math",
    ),
    (
        b"http://purl.oclc.org/ooxml/drawingml/wordprocessingDrawing",
        b"http://schemas.openxmlformats.org/drawingml/2006/wordprocessingDrawing",
    ),
    (
        b"http://purl.oclc.org/ooxml/drawingml/main",
        b"http://schemas.openxmlformats.org/drawingml/2006/main",
    ),
)


class Package:
    """The parts of one Word file, as they were unpacked."""

    def __init__(self, document: _Element, parts: dict[str, _Element]) -> None:
        #: root of the main document
        self.document = document
        self._parts = parts

    def part(self, kind: str) -> _Element | None:
        """Return the root of another part; ``None``: the file has none.

        Args:
            kind: one of ``styles``, ``theme``, ``fontTable``, ``footnotes``, ``endnotes``.
        """
        return self._parts.get(kind)


def opened(stream: IO[bytes]) -> Package:
    """Return the parts of a file that hold its text.

    Raises:
        Unreadable: it is no Word file, damaged, encrypted, or too large.
        OSError: it cannot be read.
    """
    try:
        with zipfile.ZipFile(stream) as archive:
            return _Members(archive).package()
    except (Unreadable, OSError):
        raise
    except Exception as error:  # noqa: BLE001 - zipfile lets anything through, e.g. struct.error and zlib.error
        raise Unreadable(
            f"not a Word file, damaged, or encrypted: {sentence(str(error))}"
        ) from None


class _Members:
    def __init__(self, archive: zipfile.ZipFile) -> None:
        members = archive.infolist()
        if len(members) > MAX_MEMBERS:
            raise Unreadable(f"must have <= {MAX_MEMBERS:,} members (got {len(members):,})")
        if len({one.filename for one in members}) < len(members):
            raise Unreadable("damaged: has several members of one name")
        self._archive = archive
        self._members = {
            name: one
            for one in members
            if (name := one.filename.replace("\\", "/").lstrip("/").lower()).endswith(_XML)
        }
        self._left = MAX_BYTES

    def package(self) -> Package:
        main = self._related("", "officeDocument", "word/document.xml")
        document = self._root(main)
        if document is None or document.tag != f"{W}document":
            raise Unreadable("not a Word file, or damaged: has no main document")
        folder = posixpath.dirname(main)
        parts = {}
        for kind in ("styles", "theme", "fontTable", "footnotes", "endnotes"):
            default = "theme/theme1.xml" if kind == "theme" else f"{kind}.xml"
            root = self._root(self._related(main, kind, posixpath.join(folder, default)))
            if root is not None:
                parts[kind] = root
        return Package(document, parts)

    def _related(self, of: str, kind: str, default: str) -> str:
        """Return the name of a part that another one relates to; ``default``: it relates to none that is there."""
        folder, name = posixpath.split(of)
        relations = self._root(posixpath.join(folder, "_rels", f"{name}.rels"))
        for one in [] if relations is None else relations:
            target = str(one.get("Target") or "")
            if str(one.get("Type") or "").endswith(f"/{kind}"):
                found = posixpath.normpath(posixpath.join("/", folder, target)).lstrip("/")
                if found.lower() in self._members:
                    return found
        return default

    def _root(self, name: str) -> _Element | None:
        """Return the root of a part; ``None``: there is no such part."""
        from lxml import etree

        member = self._members.get(name.lower())
        if member is None:
            return None
        content = self._unpacked(member)
        if any(mark in content for mark in _DOCTYPE):
            raise Unreadable("declares entities, which Word does not: not read")
        for strict, usual in _STRICT:
            content = content.replace(strict, usual)
        try:
            return etree.fromstring(content, xml_parser())
        except (etree.XMLSyntaxError, ValueError) as error:
            first = str(error).partition("\n")[0]
            raise Unreadable(f"damaged: {name}: {sentence(first)}") from None

    def _unpacked(self, member: zipfile.ZipInfo) -> bytes:
        # sizes that a file states may be wrong
        content = bytearray()
        with self._archive.open(member) as stream:
            while part := stream.read(_CHUNK):
                content += part
                if len(content) > self._left:
                    raise Unreadable(f"must have <= {MAX_BYTES:,} bytes of text, unpacked")
        self._left -= len(content)
        return bytes(content)
