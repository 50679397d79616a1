"""Formats of literature files, and their readers.

A new format is a module with ``read(path, *, after=0)`` and a row in :data:`KINDS`. Formats that share a suffix are
distinguished by the root element if they are XML, and by the beginning of the text if not.
"""

from __future__ import annotations

import re
import zlib
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Protocol

from posology.corpus import jsonl, pdf
from posology.corpus.clinicaltrials import reader as clinicaltrials
from posology.corpus.decoding import beginning_text, opened
from posology.corpus.documents import html, plain, word
from posology.corpus.drafts import Whole, parts
from posology.corpus.items import Item, Parts, Record
from posology.corpus.jats import reader as jats
from posology.corpus.pieces import Piece, pack
from posology.corpus.pubmed import reader as pubmed
from posology.corpus.pubmed.frames import named_root
from posology.corpus.references import bibtex, endnote, tables
from posology.corpus.references.columns import GUESSED, Columns
from posology.corpus.references.tagged import (
    cochrane,
    enw,
    medline,
    ovid,
    refworks,
    ris,
    wos,
)
from posology.corpus.zotero import reader as zotero
from posology.errors import BadFile, BadRecord
from posology.types import MAX_PASSAGE, Passage

#: bytes in which the root element must begin: a declaration, a document type and comments come before it
WITHIN = 1_000_000

_CHUNK = 8_192
#: a list of references in CSL JSON, by its beginning
_CSL = re.compile(r'\s*\[\s*\{(?=.*"type"\s*:)(?=.*"title"\s*:)', re.DOTALL)
#: between the paragraphs of a record
_BORDER = re.compile(r"\n\s*\n")


class Read(Protocol):
    """Reads a file; see :mod:`posology.corpus.items`."""

    def __call__(self, path: Path, *, after: int = 0) -> Iterator[Item]: ...


@dataclass(frozen=True, kw_only=True, slots=True)
class Kind:
    """A format of files."""

    name: str
    #: suffixes of file names, in lower case
    suffixes: tuple[str, ...]
    read: Read
    #: counts the items of a file, bad ones included, for a progress bar
    count: Callable[[Path], int]
    #: XML only: names of the root elements
    roots: tuple[str, ...] = ()
    #: whether a text is in the format, by its beginning, where several have the suffix; ``None``: every text is
    begins: Callable[[str], bool] | None = None
    #: raises :class:`~posology.errors.ReaderUnavailable` if the package that reads it is not installed
    require: Callable[[], None] | None = None
    #: extra of Posology that installs that package
    extra: str | None = None


_TABLE, _STUDIES = "table", "clinicaltrials"
#: all formats; the first with a matching suffix, and a matching root element or beginning, is used
KINDS: tuple[Kind, ...] = (
    Kind(name="jsonl", suffixes=jsonl.SUFFIXES, read=jsonl.read, count=jsonl.count_rows),
    Kind(
        name=_STUDIES,
        suffixes=clinicaltrials.SUFFIXES,
        read=clinicaltrials.read,
        count=clinicaltrials.count,
        begins=clinicaltrials.begins,
    ),
    Kind(
        name="pubmed",
        suffixes=pubmed.SUFFIXES,
        read=pubmed.read,
        count=pubmed.count,
        roots=pubmed.ROOTS,
    ),
    Kind(
        name="jats",
        suffixes=jats.SUFFIXES,
        read=jats.read,
        count=jats.count,
        roots=jats.ROOTS,
    ),
    Kind(
        name="jats archive",
        suffixes=jats.ARCHIVES,
        read=jats.read_archive,
        count=jats.count_archive,
    ),
    Kind(
        name="endnote",
        suffixes=endnote.SUFFIXES,
        read=endnote.read,
        count=endnote.count,
        roots=endnote.ROOTS,
    ),
    Kind(
        name="medline",
        suffixes=medline.SUFFIXES,
        read=medline.read,
        count=medline.count,
        begins=medline.begins,
    ),
    Kind(
        name="ris",
        suffixes=ris.SUFFIXES,
        read=ris.read,
        count=ris.count,
        begins=ris.begins,
    ),
    Kind(
        name="web of science",
        suffixes=wos.SUFFIXES,
        read=wos.read,
        count=wos.count,
        begins=wos.begins,
    ),
    Kind(
        name="cochrane",
        suffixes=cochrane.SUFFIXES,
        read=cochrane.read,
        count=cochrane.count,
        begins=cochrane.begins,
    ),
    Kind(
        name="ovid",
        suffixes=ovid.SUFFIXES,
        read=ovid.read,
        count=ovid.count,
        begins=ovid.begins,
    ),
    Kind(
        name="endnote text",
        suffixes=enw.SUFFIXES,
        read=enw.read,
        count=enw.count,
        begins=enw.begins,
    ),
    Kind(
        name="refworks",
        suffixes=refworks.SUFFIXES,
        read=refworks.read,
        count=refworks.count,
        begins=refworks.begins,
    ),
    Kind(
        name=_TABLE,
        suffixes=tables.SUFFIXES,
        read=tables.read,
        count=tables.count,
        begins=tables.begins,
    ),
    Kind(
        name="bibtex",
        suffixes=bibtex.SUFFIXES,
        read=bibtex.read,
        count=bibtex.count,
        require=bibtex.require,
        extra="bibtex",
    ),
    Kind(name="html", suffixes=html.SUFFIXES, read=html.read, count=html.count),
    Kind(name="word", suffixes=word.SUFFIXES, read=word.read, count=word.count),
    Kind(name="text", suffixes=plain.SUFFIXES, read=plain.read, count=plain.count),
    Kind(
        name="pdf",
        suffixes=pdf.SUFFIXES,
        read=pdf.read,
        count=pdf.count,
        require=pdf.require,
        extra="pdf",
    ),
    Kind(name="zotero", suffixes=zotero.SUFFIXES, read=zotero.read, count=zotero.count),
)


#: what to do with files that people have and that are not read, by their suffixes
INSTEAD: dict[str, str] = {
    **dict.fromkeys((".xlsx", ".xls", ".ods", ".numbers"), "save it as CSV (UTF-8)"),
    **dict.fromkeys((".doc", ".odt", ".rtf", ".pages", ".epub"), "save it as PDF or .docx"),
    **dict.fromkeys((".enl", ".enlx", ".nbk"), "export it as EndNote XML or RIS"),
    **dict.fromkeys((".rdf", ".ctv6"), "export it as RIS"),
    **dict.fromkeys((".zip", ".7z", ".rar"), "unpack it"),
    ".json": "write one record per line (.jsonl); of a reference manager, export RIS",
    ".md": "save it as .txt",
}


def known_suffixes() -> tuple[str, ...]:
    """Return the suffixes of all formats, sorted."""
    return tuple(sorted({suffix for kind in KINDS for suffix in kind.suffixes}))


def kind_of(path: Path) -> Kind | None:
    """Return a file's format by its name and, where several write its suffix, its content; ``None``: unknown.

    XML without a readable root element gets the first format of its suffix, whose reader reports the fault.
    """
    fitting = by_name(path)
    if len(fitting) < 2:
        named = next(iter(fitting), None)
        if named is None or named.begins is None or named.name == _TABLE:
            return named
        # PubMed's files are also saved as .ris
        tagged = (kind for kind in (named, *KINDS) if kind.begins and kind.name != _TABLE)
        found = _by_content(beginning_text(path, _CHUNK), tagged)
        # other JSON is no literature
        return found or (None if named.name == _STUDIES else named)
    if any(kind.roots for kind in fitting):
        root = root_of(path)
        if root is None:
            return fitting[0]
        return next((kind for kind in fitting if root in kind.roots), None)
    return _by_content(beginning_text(path, _CHUNK), fitting)


def recognised(path: Path) -> Kind:
    """Return a file's format by its name and beginning, before it is read.

    Raises:
        BadFile: it is of no known format.
        ReaderUnavailable: the package that reads it is not installed.
    """
    kind = _found(path)
    if kind is None:
        raise BadFile(unknown(path), path=str(path))
    if kind.require is not None:
        kind.require()
    return kind


def is_table(path: Path) -> bool:
    """Return whether a file is read as a table."""
    kind = _found(path)
    return kind is not None and kind.name == _TABLE


def read(path: Path, *, after: int = 0, columns: Columns = GUESSED) -> Iterator[Item]:
    """Return the items of a file; see :mod:`posology.corpus.items`.

    A file without a known suffix is read if its beginning shows its format. A record that is too long to be shown to a
    model is read as parts, whatever the format.

    Args:
        path: the file.
        after: the items up to this place are passed over.
        columns: names of columns, if it is a table.
    """
    kind = _found(path)
    if kind is None:
        return iter((BadFile(unknown(path), path=str(path)),))
    if kind.name == _TABLE:
        return _bounded(tables.read(path, after=after, columns=columns))
    return _bounded(kind.read(path, after=after))


def _bounded(items: Iterable[Item]) -> Iterator[Item]:
    """Yield items without passages that are too long to be shown: a record becomes its parts, at its place."""
    for item in items:
        if not isinstance(item, Record) or item.passage.length <= MAX_PASSAGE:
            yield item
        elif item.passage.parent is not None:
            yield _too_long(item)
        else:
            yield from _parts(item)


def _parts(record: Record) -> Iterator[Item]:
    whole, some = record.passage, False
    paragraphs = (Piece(text=text, section=whole.section) for text in _BORDER.split(whole.text))
    for draft in parts(pack(paragraphs), of=whole):
        if isinstance(draft, Passage):
            part = replace(record, passage=draft)
            fits = draft.length <= MAX_PASSAGE
            yield part if fits else _too_long(part)
            some |= fits
        elif isinstance(draft, Whole) and some:
            yield Parts(
                id=whole.id, count=draft.count, path=record.path, line=record.line, whole=True
            )


def _too_long(record: Record) -> BadRecord:
    passage = record.passage
    return BadRecord(
        f"{passage.length:,} characters that cannot be cut between sentences, and models are shown at most "
        f"{MAX_PASSAGE:,} of a passage: shorten the text or the title",
        path=str(record.path),
        line=record.line,
        record=passage.id,
    )


def count_rows(path: Path, *, columns: Columns = GUESSED) -> int:
    """Return the number of items in a file, up to where it can be read."""
    kind = _found(path)
    if kind is None:
        return 0
    return tables.count(path, columns=columns) if kind.name == _TABLE else kind.count(path)


def _found(path: Path) -> Kind | None:
    """Return a file's format by its name, and else by its beginning; ``None``: unknown."""
    return kind_of(path) or by_beginning(path)


def _by_content(start: str, fitting: Iterable[Kind]) -> Kind | None:
    return next((kind for kind in fitting if kind.begins is None or kind.begins(start)), None)


def by_beginning(path: Path) -> Kind | None:
    """Return the format of a file without a known suffix; ``None``: its beginning shows none."""
    if by_name(path):
        return None
    start = beginning_text(path, _CHUNK)
    if start.lstrip().startswith("{"):
        return KINDS[0]
    return _by_content(start, (kind for kind in KINDS if kind.begins is not None))


def unknown(path: Path) -> str:
    """Return why a file of no known format is not read."""
    if known := ", ".join(root for kind in by_name(path) for root in kind.roots):
        return f"unknown root element {root_of(path)}: literature in XML has one of {known}"
    if any(kind.name == _STUDIES for kind in by_name(path)):
        if _CSL.match(beginning_text(path, _CHUNK)):
            return 'CSL JSON (a list of objects with "type" and "title") is not read: export RIS or BibTeX'
        return f"JSON that is no study record of ClinicalTrials.gov: {INSTEAD['.json']}"
    return f"{unread(path)}; formats are {', '.join(known_suffixes())}"


def unread(path: Path) -> str:
    """Return why a file without a known suffix is not read, and what to do with it."""
    instead = INSTEAD.get(path.suffix.lower())
    reason = "not a format that ingest reads"
    return f"{reason}: {instead}" if instead else reason


def by_name(path: Path) -> list[Kind]:
    """Return the formats that a file may be in, by its suffix."""
    name = path.name.lower()
    return [kind for kind in KINDS if name.endswith(kind.suffixes)]


def root_of(path: Path) -> str | None:
    """Return the name of a file's root element, without its namespace; ``None``: none can be read.

    Args:
        path: XML, plain or gzipped (detected by content). Only its beginning is read; no entity is expanded and
            nothing is fetched.
    """
    from lxml import etree

    parser = etree.XMLPullParser(
        events=("start",), resolve_entities=False, load_dtd=False, no_network=True, huge_tree=False
    )
    fault = False
    start = b""
    try:
        for chunk in _beginning(path):
            start = start or chunk
            try:
                parser.feed(chunk)
            except (etree.XMLSyntaxError, ValueError):
                # it may stand behind the root element
                fault = True
            for _, element in parser.read_events():
                if isinstance(element, etree._Element):  # noqa: SLF001 - lxml's name of its class
                    return etree.QName(element).localname
            if fault:
                return named_root(start)
    except (OSError, EOFError, zlib.error, ValueError):
        return None
    return None


def _beginning(path: Path) -> Iterator[bytes]:
    with opened(path) as stream:
        for _ in range(0, WITHIN, _CHUNK):
            if not (chunk := stream.read(_CHUNK)):
                return
            yield chunk
