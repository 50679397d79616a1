"""The reader of PDF of before, through pypdf, for comparison: see :mod:`evals.pdf`."""

from __future__ import annotations

import logging
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from posology.corpus.drafts import Broken, Draft, Wrong, file_id, file_title, parts, placed
from posology.corpus.items import Item, sentence
from posology.corpus.pdf.lines import joined, learn
from posology.corpus.pieces import Piece, pack
from posology.corpus.pubmed.words import plain
from posology.text.sentences import split
from posology.types import Passage

if TYPE_CHECKING:
    from pypdf import PdfReader

SUFFIXES = (".pdf",)
MAX_BYTES = 200_000_000
MAX_PAGES = 5_000
MAX_CHARACTERS = 50_000_000
REPEATED = 3
EDGE = 2
LONGEST_NUMBER = 60

_DIGITS = re.compile(r"\d+")
_NUMBER = re.compile(r"\W*(?:page\W*)?\d{1,5}(?:\W*(?:of|/)\W*\d{1,5})?\W*", re.IGNORECASE)
_REFERENCE = re.compile(r"IndirectObject\((\d+), \d+, \d+\)")
_ENDED = re.compile(r"""[.!?…]["'”’)\]\d,–-]*\Z""")


class _Unreadable(Exception):
    """A file that cannot be read, with the reason."""


def read(path: Path) -> Iterator[Item]:
    """Return the passages of a file; ``section`` is the page."""
    logging.getLogger("pypdf").setLevel(logging.CRITICAL)
    return placed(_drafts(path), path=path, after=0)


def _drafts(path: Path) -> Iterator[Draft]:
    wrong: list[Wrong] = []
    try:
        with path.open("rb") as stream:
            if path.stat().st_size > MAX_BYTES:
                raise _Unreadable(f"must have <= {MAX_BYTES:,} bytes")
            reader = _opened(stream)
            pages = _texts(reader, wrong)
            title = _title(reader, pages) or file_title(path, *SUFFIXES)
    except _Unreadable as error:
        yield Broken(reason=str(error))
        return
    except OSError as error:
        yield Broken(reason=sentence(error.strerror or str(error)))
        return
    yield from wrong
    article = Passage(id=file_id(path), text="", title=title, source="pdf")
    yield from parts(pack(_pieces(_without_heads(pages))), of=article)


def _opened(stream: object) -> PdfReader:
    from pypdf import PdfReader
    from pypdf.errors import DependencyError

    try:
        reader = PdfReader(stream)  # type: ignore[arg-type]  # a binary file
        # many are encrypted against changes only, and have an empty password
        if reader.is_encrypted and not reader.decrypt(""):
            raise _Unreadable("encrypted: remove its password")
        pages = len(reader.pages)
    except _Unreadable:
        raise
    except DependencyError:
        raise _Unreadable("encrypted: pip install 'posology[pdf]' to read it") from None
    except Exception as error:  # noqa: BLE001 - pypdf lets anything through, as its documentation says
        raise _Unreadable(f"damaged: {_message(error)}") from None
    if pages > MAX_PAGES:
        raise _Unreadable(f"must have <= {MAX_PAGES:,} pages (got {pages:,})")
    return reader


def _texts(reader: PdfReader, wrong: list[Wrong]) -> list[list[str]]:
    """Return the lines of every page; unreadable pages are empty, and added to ``wrong``."""
    pages: list[list[str]] = []
    size = 0
    for number in range(len(reader.pages)):
        try:
            text = reader.pages[number].extract_text()
        except Exception as error:  # noqa: BLE001 - see `_opened`
            wrong.append(
                Wrong(reason=f"cannot be read: {_message(error)}", record=_page(number + 1))
            )
            text = ""
        size += len(text)
        if size > MAX_CHARACTERS:
            raise _Unreadable(f"must have <= {MAX_CHARACTERS:,} characters")
        # what no UTF-8 can hold, no index can
        clean = text.encode(errors="replace").decode().replace("\0", "")
        # invisible elsewhere, a soft hyphen at a line's end was printed
        lines = [re.sub("\u00ad\\s*\\Z", "-", line) for line in clean.splitlines()]
        pages.append([line for line in map(plain, lines) if line])
    if not wrong and not any(pages):
        raise _Unreadable("has no text: scanned pages need OCR first")
    return pages


def _title(reader: PdfReader, pages: Sequence[Sequence[str]]) -> str:
    """Return the title of the file's own data, if the first page shows it: else it is often another's."""
    try:
        title = plain(str((reader.metadata and reader.metadata.title) or ""))
    except Exception:  # noqa: BLE001 - see `_opened`
        return ""
    shown = " ".join(pages[0]) if pages else ""
    return title if len(title) > 8 and _bare(title) in _bare(shown) else ""


def _bare(text: str) -> str:
    return "".join(char for char in text.casefold() if char.isalnum())


def _without_heads(pages: Sequence[Sequence[str]]) -> Sequence[Sequence[str]]:
    """Return the pages without running heads, feet and page numbers.

    A line goes only where it is certain: it stands at an edge, and the same line, numbers aside, stands at that edge of
    :data:`REPEATED` pages and of half of all. Numbers alone go where most pages have one. Where nothing would be left of
    any page, everything stays.
    """
    tops = Counter(_key(line) for page in pages for line in {*page[:EDGE]})
    feet = Counter(_key(line) for page in pages for line in {*page[-EDGE:]})
    filled = sum(map(bool, pages))

    def runs(line: str, edges: Counter[str]) -> bool:
        return edges[_key(line)] >= max(REPEATED, filled / 2)

    kept: list[Sequence[str]] = []
    for page in pages:
        start, end = 0, len(page)
        while start < min(EDGE, end) and runs(page[start], tops):
            start += 1
        while end > max(start, len(page) - EDGE) and runs(page[end - 1], feet):
            end -= 1
        kept.append(page[start:end])
    return kept if any(kept) else pages


def _key(line: str) -> str:
    numbers = len(line) <= LONGEST_NUMBER and _NUMBER.fullmatch(line)
    return "#" if numbers else _DIGITS.sub("#", line)


def _pieces(pages: Sequence[Sequence[str]]) -> Iterator[Piece]:
    """Yield a paragraph a page: where paragraphs end, PDF does not say."""
    known: Counter[str] = Counter()
    carried: list[str] = []
    number = 0
    for number, page in enumerate(pages, start=1):
        learn(page, known)
        text, _ = joined([*carried, *page], known)
        carried = []
        if text and not _ENDED.search(text):
            last = split(text)[-1]
            # a heading or a table's end would travel on over page after page
            if last.start > 0 and last.end - last.start < 2_000:
                carried = [last.of(text)]
                text = text[: last.start]
        if text.strip():
            yield Piece(text=text, section=_page(number))
    if carried:
        yield Piece(text=carried[0], section=_page(number))


def _page(number: int) -> str:
    return f"page {number}"


def _message(error: BaseException) -> str:
    message = _REFERENCE.sub(r"object \1", " ".join(str(error).split()))
    return sentence(message[:200] or type(error).__name__)
