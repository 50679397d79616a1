"""Notices of retraction and of concern, stored beside the passages, and the marks of the rows that they fit.

A notice may be read before its passage, after it, or between two revisions of it. So it is stored, and holds for every
row that fits its target, whenever that row is written.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from typing import Any, TypeAlias

from posology.corpus.items import NoticeKind
from posology.index.connection import translated
from posology.index.maintenance import compact
from posology.index.view import View
from posology.types import Passage

_TABLE = "notices"
#: columns of a passage that a target may name, by the prefix before its colon
_COLUMNS = {"pmid": "pmid", "doi": "doi", "pmcid": "pmcid"}
#: prefixes of ids that are made of a DOI, or of a PMC number
_DOI = ("doi:", "DOI:")
_PMCID = ("pmcid:PMC", "pmcid:pmc", "PMCID:PMC", "PMCID:pmc")
#: rows that one notice can fit
MOST_ROWS = 10_000_000
#: ids in one statement
NAMED = 10_000
#: columns that a row's marks are derived from
MARKED = (
    "id", "parent", "retracted", "concern", "own_retracted", "own_concern", *_COLUMNS.values(),
)  # fmt: skip
_NOTHING: frozenset[NoticeKind] = frozenset()
#: whether a passage is marked as retracted, and as of concern
Flags: TypeAlias = tuple[bool, bool]

#: kinds of notices, by source, then by target
NoticesBySource: TypeAlias = Mapping[str, Mapping[str, AbstractSet[NoticeKind]]]


@dataclass(frozen=True, kw_only=True, slots=True)
class Settled:
    """Rows that a settlement changed."""

    #: rows removed
    removed: int = 0
    #: rows whose marks changed
    marked: int = 0


class Known:
    """All notices, looked up by the passages that they fit."""

    def __init__(self, notices: NoticesBySource) -> None:
        self.by_source: NoticesBySource = {
            by: targets for by, targets in notices.items() if targets
        }
        self._of = _by_target(self.by_source)

    def of(self, passage: Passage) -> frozenset[NoticeKind]:
        """Return the notices that fit a passage."""
        if not self._of:
            return _NOTHING
        return _NOTHING.union(*(self._of.get(key, _NOTHING) for key in keys(passage)))

    def target(self, name: str) -> frozenset[NoticeKind]:
        """Return the notices of one target."""
        return self._of.get(canonical(name), _NOTHING)

    def after(self, notices: NoticesBySource) -> Known:
        """Return the notices after an update: each source's new notices replace all its earlier ones."""
        return Known({**self.by_source, **notices})

    def differing(self, other: Known) -> frozenset[str]:
        """Return the targets whose notices differ."""
        targets = {
            canonical(target)
            for by in {*self.by_source, *other.by_source}
            if self.by_source.get(by) != other.by_source.get(by)
            for target in {*self.by_source.get(by, ()), *other.by_source.get(by, ())}
        }
        return frozenset(name for name in targets if self.target(name) != other.target(name))


class Notices:
    """All notices of an index, in memory: there are some ten thousand in all of PubMed.

    Blocking; under the index's lock.

    Args:
        connection: LanceDB's.
        uri: the index's.
    """

    def __init__(self, connection: Any, uri: str) -> None:
        import pyarrow as pa

        self._uri = uri
        self._schema = pa.schema([(name, pa.string()) for name in ("target", "kind", "by")])
        with translated(uri):
            self._table = connection.create_table(_TABLE, schema=self._schema, exist_ok=True)
            rows = self._table.search().limit(max(self._table.count_rows(), 1)).to_arrow()
        notices: dict[str, dict[str, set[NoticeKind]]] = {}
        for row in rows.to_pylist():
            targets = notices.setdefault(row["by"], {})
            targets.setdefault(row["target"], set()).add(NoticeKind(row["kind"]))
        self.known = Known(notices)

    def news(self, notices: NoticesBySource) -> NoticesBySource:
        """Return the sources whose notices change: nearly all records never give any."""
        before = self.known.by_source
        return {by: targets for by, targets in notices.items() if targets != before.get(by, {})}

    def keep(self, notices: NoticesBySource) -> None:
        """Store the notices of these sources, in place of their earlier ones.

        Raises:
            IndexFault: it cannot be written.
        """
        with translated(self._uri):
            # one commit, so that no crash loses a notice
            merge = self._table.merge_insert(["by", "target", "kind"]).when_matched_update_all()
            merge = merge.when_not_matched_insert_all()
            merge = merge.when_not_matched_by_source_delete(f"`by` IN ({quoted(sorted(notices))})")
            merge.execute(self._rows(notices))
        self.known = self.known.after(notices)

    def replace(self, notices: NoticesBySource) -> None:
        """Store these notices in place of all others, in one commit.

        Raises:
            IndexFault: it cannot be written.
        """
        known = Known(notices)
        if known.by_source == self.known.by_source:
            return
        with translated(self._uri):
            self._table.add(self._rows(known.by_source), mode="overwrite")
        self.known = known

    def tidy(self) -> None:
        """Compact the table: each commit leaves a version."""
        with translated(self._uri):
            compact(self._table)

    def _rows(self, notices: NoticesBySource) -> Any:
        import pyarrow as pa

        rows = [
            {"target": target, "kind": str(kind), "by": by}
            for by, targets in notices.items()
            for target, kinds in targets.items()
            for kind in kinds
        ]
        return pa.Table.from_pylist(rows, schema=self._schema)


def keys(passage: Passage) -> tuple[str, ...]:
    """Return the targets that a passage fits: its id, its article's, and its PMID, DOI and PMC number."""
    numbers = ((kind, getattr(passage, name)) for kind, name in _COLUMNS.items())
    known = (f"{kind}:{value}" for kind, value in numbers if value)
    article = () if passage.parent is None else (passage.parent,)
    return tuple(dict.fromkeys(canonical(key) for key in (passage.id, *article, *known)))


def canonical(target: str) -> str:
    """Return a target as passages write it: DOIs in lower case, PMC numbers in upper case."""
    kind, colon, value = target.partition(":")
    match kind if colon else "":
        case "doi" | "DOI":
            return f"doi:{value.lower()}"
        case "pmcid" | "PMCID":
            return f"pmcid:{value.upper()}"
    return target


def predicates(targets: Iterable[str]) -> list[str]:
    """Return SQL conditions; the rows that fit any of the targets are those that meet any of them.

    Each one can be answered by column indices; a single combined condition would read every row.
    """
    names = {canonical(target) for target in targets}
    values: dict[str, list[str]] = defaultdict(list)
    for name in sorted(names):
        kind, _, value = name.partition(":")
        if kind in _COLUMNS and value:
            values[_COLUMNS[kind]].append(value)
    # the case of prefixes differs between sources of ids
    numbers = [name.removeprefix(_PMCID[0]) for name in names if name.startswith(_PMCID[0])]
    names.update(before + number for number in numbers for before in _PMCID)
    either = [f"{column} IN ({quoted(sorted(names))})" for column in ("id", "parent")]
    either += [f"{column} IN ({quoted(found)})" for column, found in values.items()]
    dois = quoted([f"doi:{value}" for value in values["doi"]])
    return [" OR ".join(either)] + [
        f"{column} >= '{first}' AND {column} < '{first[:-1]};' AND lower({column}) IN ({dois})"
        for column in ("id", "parent")
        for first in _DOI
        if values["doi"]
    ]


def mark(table: Any, targets: Iterable[str], known: Known) -> int:
    """Update the marks of the rows that fit these targets; only rows whose marks change are rewritten.

    Args:
        table: the passages, newest version.
        targets: see :func:`predicates`.
        known: all notices.

    Returns:
        The number of rewritten rows.
    """
    rows: dict[str, Mapping[str, Any]] = {}
    for fitting in predicates(targets):
        reader = table.search().where(fitting).select(list(MARKED)).limit(MOST_ROWS)
        rows |= {row["id"]: row for row in reader.to_arrow().to_pylist()}
    wanted = differing(rows.values(), known)
    rewrite(table, wanted)
    return sum(map(len, wanted.values()))


def differing(rows: Iterable[Mapping[str, Any]], known: Known) -> dict[Flags, list[str]]:
    """Return the ids of rows with wrong marks, by the right marks.

    Args:
        rows: with the columns :data:`MARKED`.
        known: all notices.
    """
    wanted: dict[Flags, list[str]] = defaultdict(list)
    for row in rows:
        numbers = {name: row[name] for name in _COLUMNS.values()}
        kinds = known.of(Passage(id=row["id"], text="", parent=row["parent"], **numbers))
        retracted = row["own_retracted"] or NoticeKind.RETRACTION in kinds
        concern = row["own_concern"] or NoticeKind.CONCERN in kinds
        if (retracted, concern) != (row["retracted"], row["concern"]):
            wanted[retracted, concern].append(row["id"])
    return wanted


def rewrite(table: Any, wanted: Mapping[Flags, Sequence[str]]) -> None:
    """Set the marks of the rows with these ids, and nothing else."""
    for (retracted, concern), ids in wanted.items():
        for some in chunked(ids):
            table.update(
                where=f"id IN ({quoted(some)})",
                values={"retracted": retracted, "concern": concern},
            )


def settle(table: Any, rows: View, holds: Callable[[str, str], bool], known: Known) -> Settled:
    """Remove rows that do not belong in the index, and correct the marks of the others.

    Args:
        table: the passages, newest version.
        rows: that version, to read from; later writes do not change it.
        holds: returns whether the passage with this id and digest belongs in the index.
        known: all notices.
    """
    removed = 0
    gone: list[str] = []
    wrong: dict[Flags, list[str]] = defaultdict(list)
    for batch in rows.scan(("digest", *MARKED)):
        kept = []
        for row in batch.to_pylist():
            if holds(row["id"], row["digest"]):
                kept.append(row)
            else:
                gone.append(row["id"])
        for flags, ids in differing(kept, known).items():
            wrong[flags] += ids
        if len(gone) >= NAMED:
            removed += _remove(table, gone)
            gone = []
    if gone:
        removed += _remove(table, gone)
    # at most some ten thousand ids, as there are notices
    rewrite(table, wrong)
    return Settled(removed=removed, marked=sum(map(len, wrong.values())))


def chunked(ids: Sequence[str]) -> Iterator[Sequence[str]]:
    """Yield ids in chunks of :data:`NAMED`."""
    for start in range(0, len(ids), NAMED):
        yield ids[start : start + NAMED]


def quoted(values: Sequence[str]) -> str:
    """Return strings for ``IN (…)``; for none, a value that matches nothing."""
    return ", ".join("'" + value.replace("'", "''") + "'" for value in values) or "NULL"


def _by_target(notices: NoticesBySource) -> dict[str, frozenset[NoticeKind]]:
    found: dict[str, set[NoticeKind]] = defaultdict(set)
    for targets in notices.values():
        for target, kinds in targets.items():
            found[canonical(target)].update(kinds)
    return {target: frozenset(kinds) for target, kinds in found.items()}


def _remove(table: Any, ids: list[str]) -> int:
    table.delete(f"id IN ({quoted(ids)})")
    return len(ids)
