"""Formats of literature files, and their readers.

A new format is a module with ``read(path, *, after=0)`` and a row in :data:`KINDS`. Formats that share a suffix are
distinguished by the root element if they are XML, and by the beginning of the text if not.
"""

from __future__ import annotations

import gzip
import zlib
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from posology.corpus import checksums, jats, jsonl, pdf, plain, pubmed
from posology.corpus.decoding import beginning
from posology.corpus.documents import html, word
from posology.corpus.items import Item, sentence
from posology.corpus.references import bibtex, endnote, medline, ris, tables
from posology.errors import BadFile, InputError

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
    #: whether a text is in the format, by its beginning, where several have the suffix; ``None``: every text is
    begins: Callable[[bytes], bool] | None = None
    #: raises :class:`~posology.errors.ReaderUnavailable` if the package that reads it is not installed
    require: Callable[[], None] | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class Skipped:
    """A file of a folder that is not read."""

    path: Path
    reason: str


#: all formats; the first with a matching suffix, and a matching root element or beginning, is used
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
    Kind(
        name="endnote",
        suffixes=endnote.SUFFIXES,
        read=endnote.read,
        count=endnote.count,
        roots=endnote.ROOTS,
    ),
    Kind(name="table", suffixes=tables.SUFFIXES, read=tables.read, count=tables.count),
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
        name="bibtex",
        suffixes=bibtex.SUFFIXES,
        read=bibtex.read,
        count=bibtex.count,
        require=bibtex.require,
    ),
    Kind(name="html", suffixes=html.SUFFIXES, read=html.read, count=html.count),
    Kind(
        name="word",
        suffixes=word.SUFFIXES,
        read=word.read,
        count=word.count,
        require=word.require,
    ),
    Kind(name="text", suffixes=plain.SUFFIXES, read=plain.read, count=plain.count),
    Kind(
        name="pdf",
        suffixes=pdf.SUFFIXES,
        read=pdf.read,
        count=pdf.count,
        require=pdf.require,
    ),
)


#: prefixes and ends of file names that are skipped in a folder, since they are not literature; such a file is read if
#: it is named
ABOUT = ("readme", "license", "licence", "copying", "changelog", "oa_file_list", "manifest")
ABOUT_ENDS = (".filelist.txt", ".filelist.csv", "_stats.html")

#: what to do with files that people have and that are not read, by their suffixes
INSTEAD: dict[str, str] = {
    **dict.fromkeys((".xlsx", ".xls", ".ods", ".numbers"), "save it as CSV (UTF-8)"),
    **dict.fromkeys((".doc", ".odt", ".rtf", ".pages", ".epub"), "save it as PDF or .docx"),
    **dict.fromkeys((".enl", ".enlx", ".enw", ".nbk"), "export it as EndNote XML or RIS"),
    **dict.fromkeys((".zip", ".7z", ".rar"), "unpack it"),
    ".json": "write one record per line (.jsonl)",
    ".md": "save it as .txt",
}


def known_suffixes() -> tuple[str, ...]:
    """Return the suffixes of all formats, sorted."""
    return tuple(sorted({suffix for kind in KINDS for suffix in kind.suffixes}))


def kind_of(path: Path) -> Kind | None:
    """Return a file's format by its name and, where formats share a suffix, its content; ``None``: unknown.

    XML without a readable root element gets the first format of its suffix, whose reader reports the fault.
    """
    fitting = _by_name(path)
    if len(fitting) < 2:
        return next(iter(fitting), None)
    if any(kind.roots for kind in fitting):
        root = root_of(path)
        if root is None:
            return fitting[0]
        return next((kind for kind in fitting if root in kind.roots), None)
    return _by_content(path, fitting)


def recognised(path: Path) -> Kind:
    """Return a file's format by its name and beginning, before it is read.

    Raises:
        BadFile: it is of no known format.
        ReaderUnavailable: the package that reads it is not installed.
    """
    kind = kind_of(path) or _unnamed(path)
    if kind is None:
        raise BadFile(_unknown(path), path=str(path))
    if kind.require is not None:
        kind.require()
    return kind


def read(path: Path, *, after: int = 0) -> Iterator[Item]:
    """Return the items of a file; see :mod:`posology.corpus.items`.

    A file without a known suffix is read if its beginning shows its format.
    """
    kind = kind_of(path) or _unnamed(path)
    if kind is not None:
        return kind.read(path, after=after)
    return iter((BadFile(_unknown(path), path=str(path)),))


def count_rows(path: Path) -> int:
    """Return the number of items in a file, up to where it can be read."""
    kind = kind_of(path) or _unnamed(path)
    return 0 if kind is None else kind.count(path)


def _by_content(path: Path, fitting: Iterable[Kind]) -> Kind | None:
    start = beginning(path, _CHUNK)
    return next((kind for kind in fitting if kind.begins is None or kind.begins(start)), None)


def _unnamed(path: Path) -> Kind | None:
    """Return the format of a file without a known suffix; ``None``: its beginning shows none."""
    if _by_name(path):
        return None
    if beginning(path, _CHUNK).lstrip().startswith(b"{"):
        return KINDS[0]
    return _by_content(path, (kind for kind in KINDS if kind.begins is not None))


def _unknown(path: Path) -> str:
    if fitting := _by_name(path):
        known = ", ".join(root for kind in fitting for root in kind.roots)
        return f"unknown root element {root_of(path)}: literature in XML has one of {known}"
    return f"{_unread(path)}; formats are {', '.join(known_suffixes())}"


def _unread(path: Path) -> str:
    """Return why a file without a known suffix is not read, and what to do with it."""
    instead = INSTEAD.get(path.suffix.lower())
    reason = "not a format that ingest reads"
    return f"{reason}: {instead}" if instead else reason


def _about(path: Path) -> bool:
    name = path.name.lower()
    return name.startswith(ABOUT) or name.endswith(ABOUT_ENDS)


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


def check(paths: Iterable[Path]) -> None:
    """Check given paths before anything is written.

    The content of a file is read only where it is the only one. Faults of the others are found when they are read.

    Raises:
        BadFile: a path is missing or cannot be read, a folder holds no literature, or a file is of no known format.
        InputError: this holds for several paths; the message and :attr:`paths` name all.
        ReaderUnavailable: the package that reads one of the files is not installed.
    """
    found = list(expand(paths))
    bad = [one for one in found if isinstance(one, BadFile)]
    files = [one for one in found if isinstance(one, Path)]
    if len(found) == 1 and not bad:
        first = next(read(files[0]), None)
        bad = [first] if isinstance(first, BadFile) else []
    if len(bad) > 1:
        shown = "; ".join(map(str, bad))
        raise InputError(
            f"{len(bad)} inputs cannot be read: {shown}", paths=tuple(one.path for one in bad)
        )
    if bad:
        raise bad[0]
    for kind in {kind.name: kind for kind in map(kind_of, files) if kind is not None}.values():
        if kind.require is not None:
            kind.require()


def skipped(paths: Iterable[Path]) -> Iterator[Skipped]:
    """Yield the files and folders in the folders among ``paths`` that are not read, in order, with the reason.

    Checksums of files beside them are left out: they are checked.
    """
    given = list(paths)
    named = {path.resolve() for path in given}
    for folder in filter(Path.is_dir, given):
        try:
            inside = sorted(folder.iterdir())
        except OSError:
            continue  # `expand` reports it
        for path in inside:
            if path.resolve() not in named and (reason := _left_out(path)):
                yield Skipped(path=path, reason=reason)


def _left_out(path: Path) -> str | None:
    """Return why a file or folder in a folder is not read; ``None``: it is read."""
    if path.is_dir():
        return "a subfolder: pass it, too, to read it"
    if not path.is_file():
        return "not a file"
    if path.name.endswith(checksums.SUFFIX) and path.with_suffix("").is_file():
        return None
    if not _by_name(path):
        return _unread(path)
    if _about(path):
        return "about the folder, by its name: pass it, too, to read it"
    return _unknown(path) if kind_of(path) is None else None


def _named(path: Path) -> list[Path]:
    if path.is_dir():
        files = [
            file
            for file in sorted(path.iterdir())
            if file.is_file() and not _about(file) and kind_of(file) is not None
        ]
        if not files:
            known = ", ".join(known_suffixes())
            reason = f"no literature in the folder: files must be {known} (XML: with a known root element)"
            raise BadFile(reason, path=str(path))
        return files
    if not path.exists():
        raise BadFile("no such file or folder", path=str(path))
    path.open("rb").close()
    if kind_of(path) is None and _unnamed(path) is None:
        raise BadFile(_unknown(path), path=str(path))
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
