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
    by_row: dict[str, Work] = {}
    for row in table.to_pylist():
        kinds = {kind.casefold() for kind in row["publication_types"] or ()}
        by_row[str(row["_rowid"])] = Work(
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
    return by_row


def fold(
    rankings: Mapping[str, Ranking], of: Mapping[str, Work], *, how: Fold
) -> tuple[dict[str, Ranking], tuple[Folded, ...]]:
    """Rankings in which each work has one place, and what was folded.

    Copies of one text are one work, and so are records that name each other. One that alone names the other gives way to it,
    unless it is newer or better. What a record claims never hides another text: a copy speaks for a text only if all of
    its copies say the same.

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
    texts = _texts(of, _places(rankings.values()))
    into = _into(texts, how)
    stays = {row: texts[into[work.content]].kept for row, work in of.items()}
    folded = [
        Folded(id=of[row].id, into=of[kept].id, why=_why(of[row], of[kept], texts))
        for row, kept in stays.items()
        if row != kept
    ]
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
            comparable = work.preprint == other.preprint and other.content not in withdrawn
            if comparable and _is_older(work.year, other.year):
                newest[work.id] = max(newest.get(work.id, 0), other.year or 0)
    return {
        row: (
            work.content in withdrawn,
            work.preprint,
            work.year is not None and newest.get(work.id, 0) > work.year,
            (work.retracted, work.concern) != warned[work.content, work.preprint],
        )
        for row, work in of.items()
    }


def _is_older(year: int | None, other: int | None) -> bool:
    return year is not None and other is not None and year < other


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


@dataclass(frozen=True, kw_only=True, slots=True)
class _Text:
    """The copies of one text."""

    #: row of the one that is shown
    kept: str
    #: what chooses between texts of one work; the smallest wins
    key: tuple[tuple[bool, ...], tuple[int, int], str]
    #: contents of the texts that each of the copies names as the same work
    named: frozenset[str]
    #: trials that are reported by copies that are whole articles: its parts report one trial, and are not each other
    trials: frozenset[str]
    #: the last year of a copy, and whether all are preprints
    year: int | None
    preprint: bool

    def is_newer(self, other: _Text) -> bool:
        return _is_older(other.year, self.year) and self.preprint == other.preprint


def _texts(of: Mapping[str, Work], places: Mapping[str, tuple[int, int]]) -> dict[str, _Text]:
    """Return the texts of rows by their content."""
    worth = _worth(of)
    contents = {work.id: work.content for work in of.values()}
    rows: dict[str, list[str]] = {}
    for row, work in of.items():
        rows.setdefault(work.content, []).append(row)
    texts = {}
    for content, copies in rows.items():
        works = [of[row] for row in copies]
        keys = {row: (worth[row], places.get(row, _LAST), row) for row in copies}
        names = [{contents[name] for name in one.same_work if name in contents} for one in works]
        texts[content] = _Text(
            kept=min(copies, key=keys.__getitem__),
            key=(min(worth[row] for row in copies), *min(key[1:] for key in keys.values())),
            named=frozenset(set.intersection(*names) - {content}),
            trials=frozenset(trial for one in works if not one.part for trial in one.trials),
            year=max((one.year for one in works if one.year is not None), default=None),
            preprint=all(one.preprint for one in works),
        )
    return texts


def _into(texts: Mapping[str, _Text], how: Fold) -> dict[str, str]:
    """Return for each text, by content, the one that stands for its work."""

    def key(content: str) -> tuple[tuple[bool, ...], tuple[int, int], str]:
        return texts[content].key

    above: dict[str, str] = {}
    for pair in _agreed(texts, how):
        tops = {_top(above, one) for one in pair}
        first = min(tops, key=key)
        above |= dict.fromkeys(tops - {first}, first)
    claimed: dict[str, set[str]] = {}
    for content, text in texts.items():
        claimed.setdefault(_top(above, content), set()).update(text.named)
    # the worst first, so that of texts that name each other in a circle the best stays
    for content in sorted(claimed, key=key, reverse=True):
        text = texts[content]
        others = {_top(above, other) for other in claimed[content]} - {content}
        fair = [
            other
            for other in others
            if texts[other].key[0] <= text.key[0] and not text.is_newer(texts[other])
        ]
        if fair:
            above[content] = min(fair, key=key)
    return {content: _top(above, content) for content in texts}


def _agreed(texts: Mapping[str, _Text], how: Fold) -> Iterator[tuple[str, str]]:
    """Yield pairs of contents that are one work by what both say."""
    holders: dict[str, str] = {}
    for content, text in texts.items():
        yield from ((content, other) for other in text.named if content in texts[other].named)
        for trial in text.trials if how is Fold.TRIALS else ():
            yield content, holders.setdefault(trial, content)


def _top(above: dict[str, str], content: str) -> str:
    top = content
    while top in above:
        top = above[top]
    # the next look is short
    while content != top:
        above[content], content = top, above[content]
    return top


def _why(work: Work, kept: Work, texts: Mapping[str, _Text]) -> SameAs:
    if work.content == kept.content:
        return SameAs.COPY
    return SameAs.VERSION if texts[work.content].named else SameAs.TRIAL
