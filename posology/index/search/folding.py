"""Several records of one work count once: copies, a preprint and its article, publications of one trial.

What a model reads twice it takes for confirmed twice, and every place that a copy takes is lost for other evidence.
The record that stays takes the best place of its group; the others are named with it, never lost.

An identifier in common is not enough: several passages cut from one article share its PMID and its DOI, and each
says something else.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING

from posology.types import Folded, Hit, Ranking, SameAs

if TYPE_CHECKING:
    import pyarrow as pa

#: times as many passages are looked at as are asked for, to fill the places of what is folded: enough where
#: everything is there twice
SPARE = 2
#: what is read of a passage to tell whose record it is
COLUMNS = (
    "id", "content", "same_work", "trials", "publication_types", "parent", "year", "retracted", "concern",
)  # fmt: skip

_PREPRINT = "preprint"
_STRENGTH = tuple(SameAs)
_LAST = (1 << 62, 0)


class Fold(StrEnum):
    """What counts once."""

    #: every passage stands for itself
    OFF = "off"
    #: copies of one text, and the records of one work, such as a preprint and its article
    WORKS = "works"
    #: beyond these the publications of one trial
    TRIALS = "trials"


@dataclass(frozen=True, kw_only=True, slots=True)
class Work:
    """What tells whether two passages are of one work."""

    id: str
    #: equal for copies of one text, see :func:`posology.index.schema.content`
    content: str
    same_work: tuple[str, ...] = ()
    trials: tuple[str, ...] = ()
    preprint: bool = False
    #: whether it is a part of an article: those of one article report one trial, and each says something else
    part: bool = False
    #: of publication
    year: int | None = None
    retracted: bool = False
    concern: bool = False


def works(table: pa.Table) -> dict[str, Work]:
    """The rows of a table that has :data:`COLUMNS` and row numbers, by row number."""
    found: dict[str, Work] = {}
    for row in table.to_pylist():
        kinds = {kind.casefold() for kind in row["publication_types"] or ()}
        found[str(row["_rowid"])] = Work(
            id=row["id"],
            content=row["content"],
            same_work=tuple(row["same_work"] or ()),
            trials=tuple(row["trials"] or ()),
            preprint=_PREPRINT in kinds,
            part=row["parent"] is not None,
            year=row["year"],
            retracted=row["retracted"],
            concern=row["concern"],
        )
    return found


def fold(
    rankings: Mapping[str, Ranking], of: Mapping[str, Work], *, how: Fold
) -> tuple[dict[str, Ranking], tuple[Folded, ...]]:
    """Rankings in which each work has one place, and what was folded.

    Of a group stays what was not retracted, if anything was not; then what is no preprint; then, of records that
    name each other as one work, what is not of an earlier year: the new version of a review, not the old one. Of copies
    the one stays of which most is warned, so that no copy that does not know of it hides the warning. Of several the one with
    the best place in any ranking; of equal places that of the ranking that comes first. It takes the group's best
    place, and its score, in every ranking that holds any of the group.

    Args:
        rankings: name to ranking, with row numbers for ids.
        of: every row of the rankings.
        how: what counts once.

    Returns:
        The rankings without what was folded, and that, by the passages' own ids, in no ranking's order.
    """
    if how is Fold.OFF:
        return dict(rankings), ()
    groups, ties = _groups(of, how)
    places = _places(rankings.values())
    worth = _worth(of)
    stays: dict[str, str] = {}
    folded: list[Folded] = []
    for group in groups:
        kept = min(group, key=lambda row: (worth[row], places.get(row, _LAST), row))
        for row in group:
            stays[row] = kept
            if row != kept:
                folded.append(Folded(id=of[row].id, into=of[kept].id, why=ties[row]))
    shown = {
        name: Ranking(method=ranking.method, hits=tuple(_once(ranking.hits, stays)))
        for name, ranking in rankings.items()
    }
    return shown, tuple(sorted(folded, key=lambda one: (one.into, one.id)))


def _worth(of: Mapping[str, Work]) -> dict[str, tuple[bool, bool, bool, bool]]:
    """What decides which record of a work stays before its place does; the smallest stays."""
    named = {work.id: work for work in of.values()}
    warned: dict[tuple[str, bool], tuple[bool, bool]] = {}
    withdrawn = {work.content for work in of.values() if work.retracted}
    newest: dict[str, int] = {}
    for work in of.values():
        copies = (work.content, work.preprint)
        warned[copies] = max(warned.get(copies, (False, False)), (work.retracted, work.concern))
        for other in (named[name] for name in work.same_work if name in named):
            for one, two in ((work, other), (other, work)):
                comparable = two.year is not None and one.preprint == two.preprint
                if comparable and two.content not in withdrawn:
                    newest[one.id] = max(newest.get(one.id, 0), two.year or 0)
    return {
        row: (
            work.content in withdrawn,
            work.preprint,
            work.year is not None and newest.get(work.id, 0) > work.year,
            (work.retracted, work.concern) != warned[work.content, work.preprint],
        )
        for row, work in of.items()
    }


def _places(rankings: Iterable[Ranking]) -> dict[str, tuple[int, int]]:
    places: dict[str, tuple[int, int]] = {}
    for order, ranking in enumerate(rankings):
        for place, row in enumerate(ranking.ids):
            places[row] = min(places.get(row, _LAST), (place, order))
    return places


def _once(hits: Sequence[Hit], stays: Mapping[str, str]) -> Iterator[Hit]:
    seen: set[str] = set()
    for hit in hits:
        row = stays.get(hit.passage_id, hit.passage_id)
        if row not in seen:
            seen.add(row)
            yield Hit(passage_id=row, score=hit.score)


def _groups(of: Mapping[str, Work], how: Fold) -> tuple[list[list[str]], dict[str, SameAs]]:
    """Rows that are records of one work, two or more a group; and of each the strongest tie that it has."""
    above: dict[str, str] = {}
    ties: dict[str, SameAs] = {}

    def root(row: str) -> str:
        while (up := above.get(row, row)) != row:
            row = up
        return row

    for why, one, other in _ties(of, how):
        for row in (one, other):
            ties[row] = min(ties.get(row, why), why, key=_STRENGTH.index)
        above[root(other)] = root(one)
    groups: dict[str, list[str]] = {}
    for row in of:
        groups.setdefault(root(row), []).append(row)
    return [group for group in groups.values() if len(group) > 1], ties


def _ties(of: Mapping[str, Work], how: Fold) -> Iterator[tuple[SameAs, str, str]]:
    holder: dict[tuple[SameAs, str], str] = {}
    named = {work.id: row for row, work in of.items()}
    for row, work in of.items():
        keys = [(SameAs.COPY, work.content)]
        if how is Fold.TRIALS and not work.part:
            keys += [(SameAs.TRIAL, trial) for trial in work.trials]
        for key in keys:
            if (one := holder.setdefault(key, row)) != row:
                yield key[0], one, row
        for other in work.same_work:
            if other in named and named[other] != row:
                yield SameAs.VERSION, named[other], row
