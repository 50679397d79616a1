"""Files of literature of every known format: which there are, and how each is read.

A new format is a module with ``read(path, *, after=0)`` and a row in :data:`KINDS`. Formats that share a
suffix, as all that are XML do, are told apart by the files' root element.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from posology.corpus import jats, jsonl, pdf, plain, pubmed
from posology.corpus.items import Item, sentence
from posology.corpus.xml_kind import root_of
from posology.errors import BadFile


class Read(Protocol):
    """Reads a file; see :mod:`posology.corpus.items`."""

    def __call__(self, path: Path, *, after: int = 0) -> Iterator[Item]: ...


@dataclass(frozen=True, kw_only=True, slots=True)
class Kind:
    """A format of files."""

    name: str
    #: how names of such files end, in lower case
    suffixes: tuple[str, ...]
    read: Read
    #: how many items the file holds, bad ones among them, without making them; for a progress bar
    count: Callable[[Path], int]
    #: of XML: names of the root elements by which such files are told from others with the same suffix
    roots: tuple[str, ...] = ()


#: every format; the first whose suffix, and root element, fits is taken, and the first of all where no
#: suffix does
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


#: how names begin of files that tell of a folder's others and are no literature; read if they are named themselves
ABOUT = ("readme", "license", "licence", "copying", "changelog", "oa_file_list", "manifest")


def known_suffixes() -> tuple[str, ...]:
    """How names of files of a known format end, sorted."""
    return tuple(sorted({suffix for kind in KINDS for suffix in kind.suffixes}))


def kind_of(path: Path) -> Kind | None:
    """Return the format that a file's name says, of XML its root element; ``None``: none that is known.

    XML whose root element cannot be read is of the first format of its suffix, which says what is wrong.
    """
    fitting = _by_name(path)
    if not any(kind.roots for kind in fitting):
        return next(iter(fitting), None)
    root = root_of(path)
    if root is None:
        return fitting[0]
    return next((kind for kind in fitting if root in kind.roots), None)


def read(path: Path, *, after: int = 0) -> Iterator[Item]:
    """Return the items of one file, by the format that its name says; see :mod:`posology.corpus.items`."""
    kind = kind_of(path)
    if kind is not None:
        return kind.read(path, after=after)
    if fitting := _by_name(path):
        known = ", ".join(root for kind in fitting for root in kind.roots)
        reason = (
            f"its root element is {root_of(path)}: literature in XML begins with one of {known}"
        )
        return iter((BadFile(reason, path=str(path)),))
    return KINDS[0].read(path, after=after)


def count_rows(path: Path) -> int:
    """How many items a file holds, up to where it can be read."""
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
    """Yield the files that ``paths`` name, in order; of a folder, sorted, those that are of a known format.

    Files that only tell of a folder's others, see :data:`ABOUT`, are passed over in it.

    A file named twice comes once; what is not there or cannot be read is a ``BadFile``.
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
            reason = f"the folder holds no file of {known}; of XML, PubMed's sets and JATS count"
            raise BadFile(reason, path=str(path))
        return files
    if not path.exists():
        raise BadFile("no such file or folder", path=str(path))
    return [path]
