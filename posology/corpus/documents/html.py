"""Reader of pages in HTML, also gzipped: the paragraphs of one page become the passages of one article."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from posology.corpus.decoding import FAULTS, message, opened
from posology.corpus.documents.encoding import Undecodable, decoded
from posology.corpus.documents.markup import Page, page_of
from posology.corpus.drafts import (
    Broken,
    Draft,
    Whole,
    counted,
    file_id,
    file_title,
    parts,
    placed,
)
from posology.corpus.gaps import Gaps, told
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
        if len(content) > MAX_BYTES:
            raise Unreadable(f"must have <= {MAX_BYTES:,} bytes")
        page = page_of(decoded(content))
    except (Unreadable, Undecodable) as error:
        yield Broken(reason=str(error))
        return
    except FAULTS as error:
        yield Broken(reason=message(error))
        return
    yield from article(page, path, source="html", suffixes=SUFFIXES)


def article(
    page: Page | None, path: Path, *, source: str, suffixes: tuple[str, ...]
) -> Iterator[Draft]:
    """Yield the passages of a page as the parts of one article, and then what could not be read of it."""
    if page is None:
        yield Broken(reason="has no text")
        return
    title = Gaps.marked(page.title) or file_title(path, *suffixes[::-1])
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
    some = False
    for draft in told(parts(pack(page.pieces()), of=whole), page.gaps, record=whole.id):
        some = True
        # of a page that breaks off, earlier parts may be behind the break
        if page.broken is None or not isinstance(draft, Whole):
            yield draft
    if page.broken is not None:
        yield Broken(reason=page.broken)
    elif not some:
        yield Broken(reason="has no text that is shown" if page.hides else "has no text")
