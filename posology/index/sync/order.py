"""In which order the files of a folder are applied, and which of them still are to be."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from posology.errors import SyncRefused
from posology.index.manifest import Applied, State

#: as NLM names the files of PubMed, baseline and updates alike: the year's two digits, and a number that goes on
#: from the baseline to the updates
_PUBMED = re.compile(r"pubmed(\d{2})n(\d{4,})\.xml(?:\.gz)?", re.IGNORECASE)
#: names that a message lists
_SHOWN = 5


@dataclass(frozen=True, kw_only=True, slots=True)
class Plan:
    """What there is to do."""

    #: the files that are to be applied, in order
    files: tuple[Path, ...] = ()
    #: names of those among them that were applied or begun before and are from their beginning, since an earlier one is
    again: tuple[str, ...] = ()
    #: names of those among them that were applied before with another content
    revised: tuple[str, ...] = ()
    #: how many are applied already
    done: int = 0
    #: names of files that the numbering wants and that are not there, also of those that come after all that are there
    missing: tuple[str, ...] = ()


@dataclass(frozen=True, kw_only=True, slots=True)
class _Place:
    #: empty for what is no file of PubMed
    year: str
    number: int
    name: str

    @property
    def key(self) -> tuple[str, int, str]:
        return (self.year, self.number, self.name)


def place(name: str) -> tuple[str, int, str]:
    """By what names are ordered: PubMed's by year and number, after all others, which are by name."""
    return _place(name).key


def plan(
    files: Iterable[Path],
    known: Mapping[str, Applied],
    md5: Callable[[Path], str],
    *,
    allow_gaps: bool = False,
    reapply: bool = False,
) -> Plan:
    """What is to be applied, so that the end is as if all files had been applied in order, once each.

    Args:
        files: those of the folder.
        known: what was applied, by name.
        md5: gives a file's; asked only where size or time of change are not those that are known.
        allow_gaps: whether files that the numbering wants may be missing.
        reapply: whether a new file may come before some that were applied, which are then applied again.

    Raises:
        SyncRefused: they cannot be applied in order as they are.
        OSError: a file cannot be read.
    """
    found = {file.name: file for file in sorted(files, key=lambda file: place(file.name))}
    _not_rebuilding(known)
    _one_year(found, known)
    lost = sorted(n for n, a in known.items() if a.state is State.BEGUN and n not in found)
    if lost:
        raise SyncRefused(
            f"{_listed(lost)} was begun and is not in the folder any more: put it back, so that it can be finished, or "
            "make the index anew from what is in the folder (--rebuild)",
            files=tuple(lost),
        )
    todo, again, revised = [], [], []
    for names in _sequences(found, known):
        first = None
        for name in names:
            state = _state(found.get(name), known.get(name), md5)
            if first is None and state in ("new", "revised", "begun"):
                first = name
                later = [n for n in names if place(n) > place(name) and n in known]
                _may_come_again(name, state, later, found, reapply=reapply)
            if first is not None and name in found:
                todo.append(found[name])
                # also of what was begun, what is committed already would stay under what is older
                if state == "same" or (state == "begun" and name != first):
                    again.append(name)
            if state == "revised":
                revised.append(name)
    missing = _missing(todo, {*found, *known})
    _may_be_missing(missing, allow_gaps=allow_gaps)
    return Plan(
        files=tuple(todo),
        again=tuple(again),
        revised=tuple(revised),
        done=len(found) - len(todo),
        missing=missing,
    )


def plan_rebuild(
    files: Iterable[Path], known: Iterable[Applied] = (), *, allow_gaps: bool = False
) -> Plan:
    """All files of a folder, in order, where they are all that an index is to hold.

    Args:
        files: those of the folder.
        known: what was applied: files of PubMed that come after the folder's last are missing, too.
        allow_gaps: whether files that the numbering wants, from 1 on, may be missing.

    Raises:
        SyncRefused: they are of several years, or some are missing.
    """
    todo = sorted(files, key=lambda file: place(file.name))
    names = [file.name for file in todo]
    years = sorted({_place(name).year for name in names} - {""})
    if len(years) > 1:
        older = tuple(name for name in names if _place(name).year in years[:-1])
        raise SyncRefused(
            f"these are files of the baselines of {_years(years)}: a baseline is all of PubMed anew, so an index is "
            f"rebuilt from the files of one year. Take the older ones away ({_listed(older)})",
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
        return "away"  # applied, and deleted since
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
            f"{name} comes before {_listed(later)}, which was applied already: what is newer would be overwritten. "
            "Apply it, and all that come after it once more (--reapply), or take it away",
            files=(name,),
        )
    away = tuple(n for n in later if n not in found)
    if away:
        raise SyncRefused(
            f"{name} is {'another file than before' if state == 'revised' else 'new'}, so all that come after it "
            f"must be applied again, and {_listed(away)} is not in the folder: put it back",
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
        f"these are files of the baselines of {_years(sorted(there | applied))}: a baseline is all of PubMed anew, and "
        "what it does not hold any more has to go. Put the newest one's files alone into a folder, and make the index "
        "anew from it (--rebuild)",
        files=names,
    )


def _not_rebuilding(known: Mapping[str, Applied]) -> None:
    begun = tuple(sorted(n for n, a in known.items() if a.state is State.REBUILDING))
    if begun:
        raise SyncRefused(
            "a rebuild of this index was begun and broken off: finish it with --rebuild",
            files=begun,
        )


def _years(years: Iterable[str]) -> str:
    return ", ".join(f"20{year}" for year in years)


def _may_be_missing(missing: tuple[str, ...], *, allow_gaps: bool) -> None:
    if missing and not allow_gaps:
        raise SyncRefused(
            f"{_listed(missing)} is missing: what it revises and deletes would be lost. Fetch it, or go on "
            "without it (--allow-gaps)",
            files=missing,
        )


def _missing(
    todo: Iterable[Path], names: Iterable[str], *, first: int | None = None
) -> tuple[str, ...]:
    """Names between ``first``, or the first that is there, and the last that is to be applied."""
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
    """Names of PubMed's files that were applied and come after the last of these: without them it is what it was before."""
    last = max((p.key[:2] for name in names if (p := _place(name)).year), default=None)
    if last is None:
        return ()
    applied = (file.name for file in known if file.applied is not None)
    return tuple(sorted((n for n in applied if _place(n).key[:2] > last), key=place))


def _listed(names: Sequence[str]) -> str:
    shown = ", ".join(names[:_SHOWN])
    return shown if len(names) <= _SHOWN else f"{shown} and {len(names) - _SHOWN} more"
