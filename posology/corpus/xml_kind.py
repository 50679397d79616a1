"""What kind of XML a file holds, by its first element: PubMed's sets and JATS articles end in ``.xml`` both."""

from __future__ import annotations

import gzip
import zlib
from collections.abc import Iterator
from pathlib import Path

#: bytes in which the root element must begin: a declaration, a document type and comments come before it
WITHIN = 1_000_000

_CHUNK = 8_192
_GZIP = b"\x1f\x8b"


def root_of(path: Path) -> str | None:
    """Return the name of a file's root element, without its namespace; ``None``: none can be read.

    Args:
        path: XML, plain or gzipped, which is told from its first bytes. Only its beginning is read,
            no entity is expanded and nothing is fetched.
    """
    from lxml import etree

    parser = etree.XMLPullParser(
        events=("start",), resolve_entities=False, load_dtd=False, no_network=True, huge_tree=False
    )
    try:
        for chunk in _beginning(path):
            parser.feed(chunk)
            for _, element in parser.read_events():
                if isinstance(element, etree._Element):  # noqa: SLF001 - lxml's name of its class
                    return etree.QName(element).localname
    except (OSError, EOFError, zlib.error, etree.XMLSyntaxError, ValueError):
        return None
    return None


def _beginning(path: Path) -> Iterator[bytes]:
    with path.open("rb") as raw:
        packed = raw.read(2) == _GZIP
        raw.seek(0)
        with gzip.open(raw, "rb") if packed else raw as stream:
            for _ in range(0, WITHIN, _CHUNK):
                if not (chunk := stream.read(_CHUNK)):
                    return
                yield chunk
