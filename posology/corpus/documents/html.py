"""Reader of pages in HTML, also gzipped: the paragraphs of one page become the passages of one article."""

from __future__ import annotations

import codecs
import re
from collections.abc import Iterator
from pathlib import Path

from posology.corpus.decoding import FAULTS, message, opened
from posology.corpus.documents.markup import Page, page_of
from posology.corpus.drafts import Broken, Draft, counted, file_id, file_title, parts, placed
from posology.corpus.items import Item
from posology.corpus.pieces import pack
from posology.corpus.pubmed.dates import written_date
from posology.corpus.record import says_retracted
from posology.corpus.references import fields
from posology.text.names import kept, person
from posology.types import Passage

SUFFIXES = (".html", ".htm", ".xhtml", ".html.gz")
#: bytes of a page, which is held whole
MAX_BYTES = 20_000_000

_MARKS = (
    (codecs.BOM_UTF8, "utf-8"),
    (codecs.BOM_UTF16_LE, "utf-16"),
    (codecs.BOM_UTF16_BE, "utf-16"),
)
#: bytes in which a page names its encoding
_HEAD = 4_096
_CHARSET = re.compile(
    rb"(?:charset|encoding)\s*=\s*[\"']?\s*([A-Za-z0-9_.:-]{1,40})", re.IGNORECASE
)
#: browsers read these as Windows-1252 (https://encoding.spec.whatwg.org/#names-and-labels)
_LATIN = frozenset({"ascii", "iso8859-1"})


class Unreadable(Exception):
    """A document that cannot be read, with the reason."""


def read(path: Path, *, after: int = 0) -> Iterator[Item]:
    """Return the passages of one page; see :mod:`posology.corpus.items`.

    Its id is :func:`~posology.corpus.drafts.file_id`. Menus, forms, footers, cells of tables without prose, and sections
    of references are left out. Title, PMID, DOI, journal and date are those of its metadata.
    """
    return placed(_drafts(path), path=path, after=after)


def count(path: Path) -> int:
    """Return the number of passages, up to where the file can be read."""
    return counted(_drafts(path))


def _drafts(path: Path) -> Iterator[Draft]:
    try:
        with opened(path) as stream:
            content = stream.read(MAX_BYTES + 1)
        page = page_of(_decoded(content).encode())
    except Unreadable as error:
        yield Broken(reason=str(error))
        return
    except FAULTS as error:
        yield Broken(reason=message(error))
        return
    yield from article(page, path, source="html", suffixes=SUFFIXES)


def article(
    page: Page | None, path: Path, *, source: str, suffixes: tuple[str, ...]
) -> Iterator[Draft]:
    """Yield the passages of a page as the parts of one article."""
    some = False
    if page is not None:
        title = page.title or file_title(path, *suffixes[::-1])
        published = written_date(
            page.meta("citation_publication_date", "citation_date", "dc.date", "dc.date.issued")
        )
        pmid = page.meta("citation_pmid")
        whole = Passage(
            id=file_id(path),
            text="",
            title=title,
            pmid=pmid if pmid.isascii() and pmid.isdigit() else None,
            doi=fields.doi_of({"doi": [page.meta("citation_doi", "dc.identifier")]}),
            journal=page.meta("citation_journal_abbrev", "citation_journal_title") or None,
            year=None if published is None else published.year,
            published=None if published is None else str(published),
            retracted=says_retracted(title),
            authors=kept(person(name, natural=True) for name in page.metas("citation_author")),
            source=source,
        )
        for draft in parts(pack(page.pieces()), of=whole):
            some = True
            yield draft
    if not some:
        yield Broken(reason="has no text")


def _decoded(content: bytes) -> str:
    if len(content) > MAX_BYTES:
        raise Unreadable(f"must have <= {MAX_BYTES:,} bytes")
    named = _CHARSET.search(content[:_HEAD])
    name = named[1].decode() if named else "utf-8"
    name = next((known for mark, known in _MARKS if content.startswith(mark)), name)
    try:
        codec = codecs.lookup(name)
        # codecs of bytes to bytes, such as gzip's, have names, too
        text = content.decode("cp1252" if codec.name in _LATIN else codec.name)
    except LookupError:
        raise Unreadable(f"unknown encoding {name}: save it as UTF-8") from None
    except UnicodeDecodeError as error:
        byte = content[error.start]
        raise Unreadable(
            f"not {name} (byte 0x{byte:02X} at {error.start:,}): save it as UTF-8"
        ) from None
    # what no UTF-8 can hold, no index can
    return text.encode(errors="replace").decode().replace("\0", "")
