"""Folding of several records of one work: copies, a preprint and its article, publications of one trial.

A model takes a finding that it reads twice for confirmed twice, and each copy displaces other evidence. The kept record
takes the best place of its group; the others are listed with it.

A shared identifier is not enough: passages of one article share its PMID and DOI, and differ in content.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING

from posology.types import Folded, Hit, Ranking, SameAs

if TYPE_CHECKING:
    import pyarrow as pa

#: factor of passages examined to those requested, to fill the places of folded records; 2 suffices if every record has
#: one copy
SPARE = 2
#: columns that identify the work of a passage
COLUMNS = (
    "id", "content", "same_work", "trials", "publication_types", "parent", "year", "retracted", "concern",
)  # fmt: skip

_PREPRINT = "preprint"
_STRENGTH = tuple(SameAs)
_LAST = (1 << 62, 0)


class Fold(StrEnum):
    """Records that count once."""

    #: every passage counts
    OFF = "off"
    #: copies of one text, and the records of one work, such as a preprint and its article
    WORKS = "works"
    #: these, and the publications of one trial
    TRIALS = "trials"


@dataclass(frozen=True, kw_only=True, slots=True)
class Work:
    """Identity of the work that a passage belongs to."""

    id: str
    #: equal for copies of one text, see :func:`posology.index.schema.content`
    content: str
    same_work: tuple[str, ...] = ()
    trials: tuple[str, ...] = ()
    preprint: bool = False
    #: whether it is a part of an article: parts report the same trial, and differ in content
    part: bool = False
    #: year of publication
    year: int | None = None
    retracted: bool = False
    concern: bool = False


def works(table: pa.Table) -> dict[str, Work]:
    """Return the rows of a table that has :data:`COLUMNS` and row numbers, by row number."""
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

    The kept record of a group is chosen by these rules, in order: not retracted; not a preprint; of records that name each
    other as one work, not of an earlier year (the new version of a review); of copies, the one with the strongest mark
    of retraction or concern, so that an unmarked copy cannot hide it; the best place in any ranking; of equal places,
    the earlier ranking. It takes the group's best place and score in every ranking that holds any record of the group.

    Args:
        rankings: name to ranking, with row numbers for ids.
        of: every row of the rankings.
        how: which records count once.

    Returns:
        The rankings without folded records, and the folded records by passage id, in no ranking's order.
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
    folded_rankings = {
        name: Ranking(method=ranking.method, hits=tuple(_once(ranking.hits, stays)))
        for name, ranking in rankings.items()
    }
    return folded_rankings, tuple(sorted(folded, key=lambda one: (one.into, one.id)))


def _worth(of: Mapping[str, Work]) -> dict[str, tuple[bool, bool, bool, bool]]:
    """Return the sort keys that choose the kept record of a work before its place does; the smallest wins."""
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
    """Return groups of two or more rows of one work, and each row's strongest tie."""
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
