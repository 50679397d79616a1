"""Formats of literature files, and their readers.

A new format is a module with ``read(path, *, after=0)`` and a row in :data:`KINDS`. XML formats share a suffix, and are
distinguished by the root element.
"""

from __future__ import annotations

import gzip
import zlib
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from posology.corpus import jats, jsonl, pdf, plain, pubmed
from posology.corpus.items import Item, sentence
from posology.errors import BadFile

#: bytes in which the root element must begin: a declaration, a document type and comments come before it
WITHIN = 1_000_000

_CHUNK = 8_192
_GZIP = b"\x1f\x8b"


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


#: all formats; the first with a matching suffix and root element is used, and the first of all if no suffix matches
KINDS: tuple[Kind, ...] = (
    Kind(
        name="jsonl",
        suffixes=jsonl.SUFFIXES,
        read=jsonl.read,
        count=jsonl.count_rows,
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
    Kind(name="text", suffixes=plain.SUFFIXES, read=plain.read, count=plain.count),
    Kind(name="pdf", suffixes=pdf.SUFFIXES, read=pdf.read, count=pdf.count),
)


#: prefixes of file names that are skipped in a folder, since they are not literature; such a file is read if it is named
ABOUT = ("readme", "license", "licence", "copying", "changelog", "oa_file_list", "manifest")


def known_suffixes() -> tuple[str, ...]:
    """Return the suffixes of all formats, sorted."""
    return tuple(sorted({suffix for kind in KINDS for suffix in kind.suffixes}))


def kind_of(path: Path) -> Kind | None:
    """Return a file's format by its name and, for XML, its root element; ``None``: unknown.

    XML without a readable root element gets the first format of its suffix, whose reader reports the fault.
    """
    fitting = _by_name(path)
    if not any(kind.roots for kind in fitting):
        return next(iter(fitting), None)
    root = root_of(path)
    if root is None:
        return fitting[0]
    return next((kind for kind in fitting if root in kind.roots), None)


def read(path: Path, *, after: int = 0) -> Iterator[Item]:
    """Return the items of a file; see :mod:`posology.corpus.items`."""
    kind = kind_of(path)
    if kind is not None:
        return kind.read(path, after=after)
    if fitting := _by_name(path):
        known = ", ".join(root for kind in fitting for root in kind.roots)
        reason = f"unknown root element {root_of(path)}: literature in XML has one of {known}"
        return iter((BadFile(reason, path=str(path)),))
    return KINDS[0].read(path, after=after)


def count_rows(path: Path) -> int:
    """Return the number of items in a file, up to where it can be read."""
    kind = kind_of(path)
    if kind is not None:
        return kind.count(path)
    return 0 if _by_name(path) else KINDS[0].count(path)


def _is_literature(path: Path) -> bool:
    name = path.name.lower()
    about = name.startswith(ABOUT) or name.endswith(".filelist.txt")
    return not about and kind_of(path) is not None


def _by_name(path: Path) -> list[Kind]:
    name = path.name.lower()
    return [kind for kind in KINDS if name.endswith(kind.suffixes)]


def expand(paths: Iterable[Path]) -> Iterator[Path | BadFile]:
    """Yield the files of ``paths``, in order; of a folder, its files of known formats, sorted.

    Files of a folder with a prefix of :data:`ABOUT` are skipped. A file named twice is yielded once; a missing or
    unreadable one is a ``BadFile``.
    """
    seen: set[Path] = set()
    for path in paths:
        try:
            files = [(file, file.resolve()) for file in _named(path)]
        except BadFile as bad:
            yield bad
            continue
        except OSError as error:
            yield BadFile(sentence(error.strerror or str(error)), path=str(path))
            continue
        for file, identity in files:
            if identity not in seen:
                seen.add(identity)
                yield file


def _named(path: Path) -> list[Path]:
    if path.is_dir():
        files = sorted(p for p in path.iterdir() if _is_literature(p) and p.is_file())
        if not files:
            known = ", ".join(known_suffixes())
            reason = (
                f"no literature in the folder: files must be {known} (XML: PubMed sets or JATS)"
            )
            raise BadFile(reason, path=str(path))
        return files
    if not path.exists():
        raise BadFile("no such file or folder", path=str(path))
    return [path]


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
