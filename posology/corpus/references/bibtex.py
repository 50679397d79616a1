"""Reader of BibTeX, also gzipped, through bibtexparser, an optional dependency."""

from __future__ import annotations

import logging
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from posology.corpus import decoding
from posology.corpus.items import Item, sentence
from posology.corpus.pubmed.record import Parsed
from posology.corpus.references import entries, fields
from posology.corpus.references.entries import Entry, Unreadable, Values
from posology.corpus.references.latex import LatexError, plain_of
from posology.errors import ReaderUnavailable
from posology.text import names

if TYPE_CHECKING:
    from bibtexparser.model import Block

SUFFIXES = (".bib", ".bib.gz", ".bibtex")
#: characters of a file, which is held whole
MAX_CHARACTERS = 50_000_000

#: BibTeX's and BibLaTeX's fields by ours, the most telling first
_FIELDS: Mapping[str, tuple[str, ...]] = {
    "text": ("abstract",),
    "title": ("title",),
    "pmid": ("pmid",),
    "authors": ("author",),
    "doi": ("doi",),
    "pmcid": ("pmcid", "pmc"),
    "journal": ("shortjournal", "journal", "journaltitle", "booktitle"),
    "date": ("date", "year"),
    "languages": ("language", "langid"),
    "notes": ("note", "annote", "annotation", "url"),
}
_BRACES = str.maketrans("", "", "{}")
_TYPES = {"article": "journal article"}


def require() -> None:
    """Check that bibtexparser is installed.

    Raises:
        ReaderUnavailable: it is not.
    """
    decoding.require("bibtexparser", package="bibtexparser", extra="bibtex", files="BibTeX files")


def read(path: Path, *, after: int = 0) -> Iterator[Item]:
    """Return the references of one file; see :mod:`posology.corpus.items`. Places are numbers of lines.

    An abstract with a LaTeX command that is not known is a bad record.

    Raises:
        ReaderUnavailable: bibtexparser is not installed.
    """
    require()
    return entries.items(_entries, _build, path, after=after)


def count(path: Path) -> int:
    """Return the number of references; 0 if bibtexparser is not installed."""
    try:
        require()
    except ReaderUnavailable:
        return 0
    return entries.count(_entries, path)


def _build(values: Values, path: Path) -> Parsed:
    shown = dict(values)
    for name in ("text", "title", "journal"):
        try:
            shown[name] = [plain_of(text) for text in values.get(name, ())]
        except LatexError as error:
            known = fields.parsed(values, path, source="bibtex")
            return Parsed(id=known.id, reason=f"{_FIELDS[name][0]}: {error}")
    shown["authors"] = [name for text in values.get("authors", ()) for name in _authors(text)]
    return fields.parsed(shown, path, source="bibtex")


def _authors(text: str) -> Iterator[str]:
    """Yield the names of a field; one that is not LaTeX as it stands, since no statement rests on it."""
    from bibtexparser.middlewares.names import (
        InvalidNameError,
        parse_single_name_into_parts,
        split_multiple_persons_names,
    )

    for name in split_multiple_persons_names(" ".join(text.split())):
        try:
            found = parse_single_name_into_parts(name, strict=True)
            parts = [
                plain_of(" ".join(words))
                for words in (found.von + found.last, found.first, found.jr)
            ]
        except (InvalidNameError, LatexError):
            yield names.group(name.translate(_BRACES))
            continue
        yield names.joined(*parts) if parts[1] else names.group(parts[0])


def _entries(path: Path) -> Iterator[Entry]:
    from bibtexparser.entrypoint import parse_string

    logging.getLogger("bibtexparser").setLevel(logging.CRITICAL)
    text = decoding.whole_text(path, MAX_CHARACTERS)
    if text is None:
        raise Unreadable(f"must have <= {MAX_CHARACTERS:,} characters")
    try:
        blocks = parse_string(text).blocks
    except Exception as error:  # noqa: BLE001 - of a damaged file it lets anything through
        raise Unreadable(f"not BibTeX: {sentence(str(error)[:200])}") from None
    last = 0
    for block in blocks:
        entry = _entry(block, last)
        if entry is not None:
            last = entry.line
            yield entry


def _entry(block: Block, last: int) -> Entry | None:
    """Return what a block holds; ``None``: it is not an entry. Of two on one line the second counts as the next line's."""
    from bibtexparser.model import (
        DuplicateBlockKeyBlock,
        ParsingFailedBlock,
    )
    from bibtexparser.model import (
        Entry as Reference,
    )

    line = max((block.start_line or 0) + 1, last + 1)
    key = True
    if isinstance(block, DuplicateBlockKeyBlock) and block.ignore_error_block is not None:
        block, key = block.ignore_error_block, False
    if isinstance(block, ParsingFailedBlock):
        reason = " ".join(str(block.error).split())[:200] or "a brace or comma is missing"
        return Entry(line=line, reason=f"not a BibTeX entry: {sentence(reason)}")
    if not isinstance(block, Reference):
        return None
    given = {field.key.lower(): str(field.value) for field in block.fields}
    values = {
        name: [given[one] for one in known if one in given] for name, known in _FIELDS.items()
    }
    values["key"] = [block.key] if key else []
    values["types"] = [_TYPES.get(block.entry_type.lower(), "")]
    month, year = given.get("month", ""), given.get("year", "")
    values["date"].insert(0, f"{year} {month.strip('{}')}")
    return Entry(line=line, values=values)
