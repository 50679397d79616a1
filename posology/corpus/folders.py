"""Paths that a user gives: their files, what is not read and why, and whether anything can be read at all."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path

from posology.corpus import checksums
from posology.corpus.files import (
    Kind,
    by_beginning,
    by_name,
    kind_of,
    known_suffixes,
    read,
    unknown,
    unread,
)
from posology.corpus.items import Remark, sentence
from posology.corpus.references.columns import GUESSED, Columns
from posology.errors import BadFile, BadRecord, InputError, ReaderUnavailable

#: prefixes and ends of file names that are skipped in a folder, since they are not literature; such a file is read if
#: it is named
ABOUT = ("readme", "license", "licence", "copying", "changelog", "oa_file_list", "manifest")
ABOUT_ENDS = (".filelist.txt", ".filelist.csv", "_stats.html")
#: the same for files of the system, with the reason
SYSTEM = {"._": "metadata of macOS", "~$": "a lock file of Office"}

#: folders of programs, which are not searched within a given folder; nor are hidden ones
PROGRAMS = ("__MACOSX", "__pycache__", "node_modules")

#: files that a message names
_SHOWN = 20


@dataclass(frozen=True, kw_only=True, slots=True)
class Skipped:
    """A file or folder in a given folder that is not read."""

    path: Path
    reason: str


def expand(paths: Iterable[Path], *, subfolders: bool = True) -> Iterator[Path | BadFile]:
    """Yield the files of ``paths``, in order; of a folder, its files of known formats, sorted.

    Files of a folder with a prefix of :data:`ABOUT` or :data:`SYSTEM` are skipped, and those whose package is not
    installed: see :func:`lacking`. A file named twice is yielded once; a missing or unreadable one is a ``BadFile``.

    Args:
        paths: files and folders.
        subfolders: whether to search the folders in a folder, at any depth; never hidden ones, those of programs
            (:data:`PROGRAMS`), indexes and links.

    Raises:
        ReaderUnavailable: all literature of a folder needs packages that are not installed.
    """
    seen: set[Path] = set()
    for path in paths:
        try:
            files = [(file, file.resolve()) for file in _named(path, subfolders=subfolders)]
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


def check(paths: Iterable[Path], *, columns: Columns = GUESSED) -> None:
    """Check given paths before anything is written: all are there, and a record of one of them can be read.

    Faults of other files and records are found when they are read.

    Raises:
        BadFile: a path is missing or cannot be read, a folder holds no literature, a file is of no known format, or none
            of its records can be read.
        BadRecord: it is the only fault of a file without a readable record.
        InputError: this holds for several paths; the message and :attr:`paths` name them.
        ReaderUnavailable: the package that reads a given file, or all files of a given folder, is not installed.
    """
    found = list(expand(paths))
    files = [one for one in found if isinstance(one, Path)]
    bad: list[BadFile | BadRecord] = [one for one in found if isinstance(one, BadFile)]
    if not bad:
        for kind in {one.name: one for one in map(kind_of, files) if one is not None}.values():
            if kind.require is not None:
                kind.require()
        for file in files:
            first: BadFile | BadRecord | None = None
            for item in read(file, columns=columns):
                if isinstance(item, BadFile | BadRecord):
                    first = first or item
                elif not isinstance(item, Remark):
                    return
            bad.append(first or BadFile("holds no record", path=str(file)))
    if len(bad) > 1:
        raise _several(bad)
    if bad:
        raise bad[0]


def _several(bad: Sequence[BadFile | BadRecord]) -> InputError:
    shown = "; ".join(map(str, bad[:_SHOWN]))
    more = f"; and {len(bad) - _SHOWN:,} more" if len(bad) > _SHOWN else ""
    return InputError(
        f"{len(bad)} inputs cannot be read: {shown}{more}", paths=tuple(one.path for one in bad)
    )


def skipped(paths: Iterable[Path]) -> Iterator[Skipped]:
    """Yield the files and folders in the folders among ``paths`` that are not read, in order, with the reason.

    Checksums of files beside them are left out: they are checked.
    """
    given = list(paths)
    named = set(map(_resolved, given))
    for folder in filter(Path.is_dir, given):
        try:
            inside = list(_inside(folder))
        except OSError:
            continue  # `expand` reports it
        if lack := lacking(folder):
            yield Skipped(path=folder, reason=lack)
        for path in inside:
            if _resolved(path) not in named and (reason := _left_out(path)):
                yield Skipped(path=path, reason=reason)


def lacking(folder: Path) -> str | None:
    """Return how many files in a folder need packages that are not installed, and what installs them all.

    Such files are not read with their folder. ``None``: there are none, or it is no folder that can be read.
    """
    try:
        files = _candidates(folder) if folder.is_dir() else []
    except OSError:
        return None
    return _lack(_without_package(files).values())


def require_all(folder: Path) -> None:
    """Check that the packages of all files of a folder are installed, where each counts; its subfolders are not read.

    Raises:
        ReaderUnavailable: one of them is not.
    """
    _require(_without_package(_candidates(folder, subfolders=False)))


def _resolved(path: Path) -> Path:
    try:
        return path.resolve()
    except (OSError, RuntimeError):
        # a link that leads to itself
        return path.absolute()


def _left_out(path: Path) -> str | None:
    """Return why a file or folder in a folder is not read; ``None``: it is read."""
    if path.is_dir():
        return _not_searched(path) or "a folder that cannot be read"
    if not path.is_file():
        return "a link that leads nowhere" if path.is_symlink() else "not a file"
    if path.name.endswith(checksums.SUFFIX) and path.with_suffix("").is_file():
        return None
    if system := _of_system(path):
        return f"{system}, not literature"
    if not by_name(path):
        return unread(path)
    if _about(path):
        return "about the folder, by its name: pass it, too, to read it"
    return unknown(path) if kind_of(path) is None else None


def _not_searched(folder: Path) -> str | None:
    """Return why a folder in a folder is not searched; ``None``: it is."""
    if folder.is_symlink():
        return "a link to a folder: pass it, too, to read it"
    if folder.name in PROGRAMS:
        return "a folder of programs: pass it, too, to read it"
    if folder.name.startswith("."):
        return "a hidden folder: pass it, too, to read it"
    return None if next(folder.glob("*.lance"), None) is None else "an index"


def _of_system(path: Path) -> str | None:
    return next((what for start, what in SYSTEM.items() if path.name.startswith(start)), None)


def _about(path: Path) -> bool:
    name = path.name.lower()
    return name.startswith(ABOUT) or name.endswith(ABOUT_ENDS)


def _named(path: Path, *, subfolders: bool) -> list[Path]:
    if path.is_dir():
        files = _literature(path, subfolders=subfolders)
        if not files:
            raise BadFile(_no_literature(path), path=str(path))
        lack = _without_package(files)
        if len(lack) == len(files):
            _require(lack)
        return [file for file in files if file not in lack]
    if not path.exists():
        raise BadFile("no such file or folder", path=str(path))
    path.open("rb").close()
    if kind_of(path) is None and by_beginning(path) is None:
        raise BadFile(unknown(path), path=str(path))
    return [path]


def _literature(folder: Path, *, subfolders: bool) -> list[Path]:
    """Return the files in a folder that are of known formats, sorted."""
    return [
        file for file in _candidates(folder, subfolders=subfolders) if kind_of(file) is not None
    ]


def _candidates(folder: Path, *, subfolders: bool = True) -> list[Path]:
    """Return the files in a folder that may be literature, by their names, sorted."""
    return [
        file
        for file in (_inside(folder) if subfolders else sorted(folder.iterdir()))
        if file.is_file() and not _about(file) and not _of_system(file)
    ]


def _inside(folder: Path) -> Iterator[Path]:
    """Yield the files in a folder and in its subfolders, sorted, and the subfolders that are not searched."""
    for path in sorted(folder.iterdir()):
        if not path.is_dir() or _not_searched(path):
            yield path
            continue
        try:
            inside = list(_inside(path))
        except OSError:
            inside = [path]
        yield from inside


@dataclass(frozen=True, kw_only=True, slots=True)
class _Lack:
    """A format whose package is not installed."""

    kind: Kind
    error: ReaderUnavailable


def _without_package(files: Iterable[Path]) -> dict[Path, _Lack]:
    """Return the files whose package is not installed, with their formats."""
    tried: dict[str, _Lack | None] = {}
    found = {}
    for file in files:
        kind = next((one for one in by_name(file) if one.require is not None), None)
        if kind is None:
            continue
        if kind.name not in tried:
            tried[kind.name] = _tried(kind)
        if (lack := tried[kind.name]) is not None:
            found[file] = lack
    return found


def _tried(kind: Kind) -> _Lack | None:
    try:
        if kind.require is not None:
            kind.require()
    except ReaderUnavailable as error:
        return _Lack(kind=kind, error=error)
    return None


def _lack(lacks: Iterable[_Lack]) -> str | None:
    counts = Counter((one.kind.suffixes[0], one.kind.extra or one.kind.name) for one in lacks)
    if not counts:
        return None
    said = ", ".join(
        f"{count:,} {suffix} {'file' if count == 1 else 'files'}"
        for (suffix, _), count in sorted(counts.items())
    )
    extras = ",".join(sorted(extra for _, extra in counts))
    return f"{said} not read, their package is missing: pip install 'posology[{extras}]'"


def _require(lacks: dict[Path, _Lack]) -> None:
    """Raise the error of one missing package, or one that names all that are missing."""
    errors = {one.error.package: one.error for one in lacks.values()}
    if len(errors) == 1:
        raise next(iter(errors.values()))
    if reason := _lack(lacks.values()):
        raise ReaderUnavailable(reason, package=", ".join(sorted(errors)))


def _no_literature(folder: Path) -> str:
    known = ", ".join(known_suffixes())
    first = [f"{one.path.name}: {one.reason}" for one in islice(skipped([folder]), _SHOWN)]
    why = f" ({'; '.join(first)})" if first else ", it is empty"
    return (
        f"no literature in the folder{why}: files must be {known} (XML: with a known root element)"
    )
