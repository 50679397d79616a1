"""Order of the files of a folder, and which of them are still to be applied."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from posology.errors import SyncRefused
from posology.index.manifest import Applied, State

#: NLM's names of PubMed files: two digits of the year, and a number that continues from the baseline to the updates
_PUBMED = re.compile(r"pubmed(\d{2})n(\d{4,})\.xml(?:\.gz)?", re.IGNORECASE)
#: names listed in a message
_SHOWN = 5


@dataclass(frozen=True, kw_only=True, slots=True)
class Plan:
    """Files to apply."""

    #: files to apply, in order
    files: tuple[Path, ...] = ()
    #: names of those applied or begun before, which are applied again from their beginning because an earlier one is
    again: tuple[str, ...] = ()
    #: names of those applied before with other content
    revised: tuple[str, ...] = ()
    #: number of files already applied
    done: int = 0
    #: names of files missing from PubMed's numbering, also after the last file of the folder
    missing: tuple[str, ...] = ()


@dataclass(frozen=True, kw_only=True, slots=True)
class _Place:
    #: empty for files that are not PubMed's
    year: str
    number: int
    name: str

    @property
    def key(self) -> tuple[str, int, str]:
        return (self.year, self.number, self.name)


def place(name: str) -> tuple[str, int, str]:
    """Return the sort key of a name: PubMed's files by year and number, after all others, by name."""
    return _place(name).key


def plan(
    files: Iterable[Path],
    known: Mapping[str, Applied],
    md5: Callable[[Path], str],
    *,
    allow_gaps: bool = False,
    reapply: bool = False,
) -> Plan:
    """Return the files to apply, so that the result is as if all had been applied in order, once each.

    Args:
        files: the folder's files.
        known: applied files, by name.
        md5: returns a file's MD5; called only where size or modification time changed.
        allow_gaps: whether files of PubMed's numbering may be missing.
        reapply: whether a new file may precede applied ones, which are then applied again.

    Raises:
        SyncRefused: the files cannot be applied in order as they are.
        OSError: a file cannot be read.
    """
    paths = {file.name: file for file in sorted(files, key=lambda file: place(file.name))}
    _not_rebuilding(known)
    _one_year(paths, known)
    _none_lost(paths, known)
    todo, again, revised = [], [], []
    for names in _sequences(paths, known):
        first = None
        for name in names:
            state = _state(paths.get(name), known.get(name), md5)
            if first is None and state in ("new", "revised", "begun"):
                first = name
                later = [n for n in names if place(n) > place(name) and n in known]
                _may_come_again(name, state, later, paths, reapply=reapply)
            if first is not None and name in paths:
                todo.append(paths[name])
                # commits of a begun file must not stay below what an older file writes now
                if state == "same" or (state == "begun" and name != first):
                    again.append(name)
            if state == "revised":
                revised.append(name)
    missing = _missing(todo, {*paths, *known})
    _may_be_missing(missing, allow_gaps=allow_gaps)
    return Plan(
        files=tuple(todo),
        again=tuple(again),
        revised=tuple(revised),
        done=len(paths) - len(todo),
        missing=missing,
    )


def plan_rebuild(
    files: Iterable[Path], known: Iterable[Applied] = (), *, allow_gaps: bool = False
) -> Plan:
    """Return all files of a folder, in order, for an index that holds nothing else.

    Args:
        files: the folder's files.
        known: applied files: PubMed files after the folder's last one count as missing.
        allow_gaps: whether files of PubMed's numbering, from 1 on, may be missing.

    Raises:
        SyncRefused: the files are of several years, or some are missing.
    """
    todo = sorted(files, key=lambda file: place(file.name))
    names = [file.name for file in todo]
    years = sorted({_place(name).year for name in names} - {""})
    if len(years) > 1:
        older = tuple(name for name in names if _place(name).year in years[:-1])
        raise SyncRefused(
            f"The folder holds baseline files of {_years(years)}, and an index is rebuilt from the files of one year. "
            f"Remove the older ones ({_listed(older)}).",
            files=older,
        )
    missing = _missing(todo, names, first=1) + _newer(names, known)
    _may_be_missing(missing, allow_gaps=allow_gaps)
    return Plan(files=tuple(todo), missing=missing)


def _place(name: str) -> _Place:
    match = _PUBMED.fullmatch(name)
    if match is None:
        return _Place(year="", number=0, name=name)
    return _Place(year=match[1], number=int(match[2]), name=name)


def _sequences(found: Iterable[str], known: Iterable[str]) -> tuple[list[str], list[str]]:
    names = sorted({*found, *known}, key=place)
    return [n for n in names if not _place(n).year], [n for n in names if _place(n).year]


def _state(file: Path | None, known: Applied | None, md5: Callable[[Path], str]) -> str:
    if file is None:
        return "away"  # applied, and deleted from the folder since
    if known is None:
        return "new"
    stat = file.stat()
    untouched = (stat.st_size, stat.st_mtime_ns) == (known.size, known.mtime_ns)
    if not untouched and md5(file) != known.md5:
        return "revised"
    return "begun" if known.state is State.BEGUN else "same"


def _may_come_again(
    name: str, state: str, later: Sequence[str], found: Mapping[str, Path], *, reapply: bool
) -> None:
    if state == "begun" or not later:
        return
    if state == "new" and not reapply:
        raise SyncRefused(
            f"{name} comes before {_listed(later)}, which is already applied, and would overwrite newer records. "
            "Pass --reapply to apply it and all later files again, or remove it.",
            files=(name,),
        )
    away = tuple(n for n in later if n not in found)
    if away:
        raise SyncRefused(
            f"{name} is {'changed' if state == 'revised' else 'new'}, so all later files must be applied again, but "
            f"{_listed(away)} is not in the folder. Put it back.",
            files=away,
        )


def _one_year(found: Iterable[str], known: Iterable[str]) -> None:
    there = {_place(name).year for name in found} - {""}
    applied = {_place(name).year for name in known} - {""}
    if len(there | applied) <= 1:
        return
    names = tuple(sorted(n for n in {*found} - {*known} if _place(n).year))
    if not names:
        return
    raise SyncRefused(
        f"These are files of several baselines ({_years(sorted(there | applied))}), and records that a new baseline drops "
        "must be removed. Put only the newest one's files into a folder, and rebuild the index from it (--rebuild).",
        files=names,
    )


def _none_lost(found: Mapping[str, Path], known: Mapping[str, Applied]) -> None:
    lost = tuple(sorted(n for n, a in known.items() if a.state is State.BEGUN and n not in found))
    if lost:
        raise SyncRefused(
            f"{_listed(lost)} was begun and is no longer in the folder. Put it back, or rebuild the index from the "
            "folder (--rebuild).",
            files=lost,
        )


def _not_rebuilding(known: Mapping[str, Applied]) -> None:
    begun = tuple(sorted(n for n, a in known.items() if a.state is State.REBUILDING))
    if begun:
        raise SyncRefused(
            "A rebuild of this index was interrupted. Finish it with --rebuild.",
            files=begun,
        )


def _years(years: Iterable[str]) -> str:
    return ", ".join(f"20{year}" for year in years)


def _may_be_missing(missing: tuple[str, ...], *, allow_gaps: bool) -> None:
    if missing and not allow_gaps:
        raise SyncRefused(
            f"{_listed(missing)} is missing, and its revisions and deletions would be lost. Fetch it, or continue "
            "without it (--allow-gaps).",
            files=missing,
        )


def _missing(
    todo: Iterable[Path], names: Iterable[str], *, first: int | None = None
) -> tuple[str, ...]:
    """Return missing names between ``first``, or the first file, and the last file to apply."""
    wanted = [p for file in todo if (p := _place(file.name)).year]
    there = {(p.year, p.number) for name in names if (p := _place(name)).year}
    if not wanted:
        return ()
    last = max(p.number for p in wanted)
    year = wanted[0].year
    if first is None:
        first = min(number for y, number in there if y == year)
    return tuple(
        f"pubmed{year}n{number:04}.xml.gz"
        for number in range(first, last)
        if (year, number) not in there
    )


def _newer(names: Iterable[str], known: Iterable[Applied]) -> tuple[str, ...]:
    """Return applied PubMed files that come after the last of these: without them the index would be older."""
    last = max((p.key[:2] for name in names if (p := _place(name)).year), default=None)
    if last is None:
        return ()
    applied = (file.name for file in known if file.applied is not None)
    return tuple(sorted((n for n in applied if _place(n).key[:2] > last), key=place))


def _listed(names: Sequence[str]) -> str:
    shown = ", ".join(names[:_SHOWN])
    return shown if len(names) <= _SHOWN else f"{shown} and {len(names) - _SHOWN} more"
