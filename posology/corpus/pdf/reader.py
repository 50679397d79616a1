"""From a PDF to the passages of one article."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence, Set
from contextlib import closing
from pathlib import Path

from posology.corpus import decoding
from posology.corpus.drafts import (
    Broken,
    Draft,
    Remarked,
    counted,
    file_id,
    file_title,
    parts,
    placed,
)
from posology.corpus.items import Item, sentence
from posology.corpus.pdf.blocks import Block, Role, blocks, body_size, paragraphs
from posology.corpus.pdf.layout import Line
from posology.corpus.pdf.lines import joined, learn
from posology.corpus.pdf.margins import without_heads
from posology.corpus.pdf.numbering import without_numbers
from posology.corpus.pdf.process import Glyphs, Unreadable, glyphs
from posology.corpus.pdf.scans import Scans, available
from posology.corpus.pdf.tables.place import Tables
from posology.corpus.pdf.title import titled
from posology.corpus.pieces import Piece, pack
from posology.corpus.references.standing import says_retracted
from posology.errors import ReaderUnavailable
from posology.types import Pages, Passage

SUFFIXES = (".pdf",)

#: between the headings of a section
_STEP = " > "
_OCR = "scanned pages need OCR: pip install 'posology[ocr]'"


def _drafts(path: Path, *, ocr: bool = True) -> Iterator[Draft]:
    """Yield the passages of a file as the parts of one article.

    Its id is :func:`~posology.corpus.drafts.file_id`. ``title`` is found by :func:`~posology.corpus.pdf.title.titled`,
    else it is the file's name; ``section`` is the path of headings, and ``pages`` the pages of the text.

    Args:
        path: of the file.
        ocr: whether scanned pages are read, if the packages for it are installed.
    """
    try:
        pages, read, tables = _read(path, ocr=ocr)
    except Unreadable as error:
        yield Broken(reason=str(error))
        return
    except OSError as error:
        yield Broken(reason=sentence(error.strerror or str(error)))
        return
    yield from read.remarks
    if tables.refused:
        yield Remarked(reason=tables.refused)
    pages = without_heads(pages)
    body = body_size(line for page in pages for line in page)
    title, content = titled(blocks(pages), read.title, body) if any(pages) else ("", [])
    known: Counter[str] = Counter()
    learn((line.text for page in pages for line in page), known)
    content = tables.inserted(content, known)
    article = Passage(
        id=file_id(path),
        text="",
        title=title or file_title(path, *SUFFIXES),
        source="pdf",
        unread_pages=len(read.unread),
        retracted=says_retracted(title),
    )
    yield from parts(pack(_pieces(content, known, set(read.scanned))), of=article)


def require() -> None:
    """Check that the package that reads PDF is installed.

    Raises:
        ReaderUnavailable: it is not.
    """
    decoding.require("pypdfium2", package="pypdfium2", extra="pdf", files="PDF files")


def read(path: Path, *, after: int = 0) -> Iterator[Item]:
    """Return the items of a file; see :mod:`posology.corpus.items`.

    Raises:
        ReaderUnavailable: the package is not installed.
    """
    require()
    return placed(_drafts(path), path=path, after=after)


def count(path: Path) -> int:
    """Return the number of passages; 0 if the package is not installed."""
    try:
        require()
    except ReaderUnavailable:
        return 0
    # for a progress bar: scanned pages are not worth the time
    return counted(_drafts(path, ocr=False))


def _read(path: Path, *, ocr: bool) -> tuple[Sequence[Sequence[Line]], Glyphs, Tables]:
    """Return the lines of every page, what else is known of the file, and its tables, for each of which a line stands."""
    ocr = ocr and available()
    contents = glyphs(path, Scans(path) if ocr else None)
    tables = Tables()
    pages: list[list[Line]] = []
    with closing(contents.pages) as words:
        for number, some in enumerate(without_numbers(words), start=1):
            pages.append(tables.lines(some, number, contents.rules.pop(number, {})))
    if not any(pages):
        if contents.remarks:
            one = contents.remarks[0]
            raise Unreadable(f"has no text that can be read: {one.record}: {one.reason}")
        raise Unreadable("has no text, and OCR finds none" if ocr else f"has no text: {_OCR}")
    if contents.pictures:
        first, *more = contents.pictures
        which = f"page {first} and {len(more):,} more are" if more else f"page {first} is"
        reason = f"{which} a picture without text, not read: {_OCR}"
        contents.remarks.append(Remarked(reason=reason, record=f"page {first}"))
    return pages, contents, tables


def _pieces(found: Sequence[Block], known: Counter[str], scanned: Set[int]) -> Iterator[Piece]:
    """Yield the paragraphs, each with the path of headings above it; headings without text are paragraphs."""
    path: list[Block] = []
    unused: list[Block] = []
    for block in paragraphs(found):
        if block.role is Role.HEADING:
            kept = [one for one in path if _rank(one) > _rank(block)]
            for heading in path:
                if heading in unused and heading not in kept:
                    yield _piece(heading, known, None, scanned)
                    unused.remove(heading)
            path = [*kept, block]
            unused.append(block)
            continue
        unused.clear()
        section = _STEP.join(joined([line.text for line in one.lines], known)[0] for one in path)
        yield _piece(block, known, section or None, scanned)
    for heading in unused:
        yield _piece(heading, known, None, scanned)


def _rank(heading: Block) -> tuple[float, bool, bool]:
    return round(heading.size * 2) / 2, heading.bold, heading.text.isupper()


def _piece(block: Block, known: Counter[str], section: str | None, scanned: Set[int]) -> Piece:
    text, starts = joined([line.text for line in block.lines], known)
    pages = Pages.of(
        (-line.page if line.page in scanned else line.page, start)
        for line, start in zip(block.lines, starts, strict=True)
    )
    return Piece(text=text, section=section, pages=pages)
