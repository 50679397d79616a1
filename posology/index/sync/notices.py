"""Notices of retraction and of concern, stored beside the passages, and the flags of the rows that they fit.

Reports of files (:mod:`posology.index.sync.reports`) set flags in the same way.

A notice may be read before its passage, after it, or between two revisions of it. So it is stored, and holds for every
row that fits its target, whenever that row is written.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, replace
from typing import Any, TypeAlias

from posology.corpus.items import NAMED_BY, NoticeKind, canonical, targets_of
from posology.index.connection import translated
from posology.index.maintenance import compact
from posology.index.schema import marks, own_flags, read_flags
from posology.index.search.filters import quoted
from posology.index.sync.reports import Reported, Reports
from posology.index.view import View
from posology.types import Flag, FlagKind, Passage
from posology.types.flags import NOTICE, OWN

_TABLE = "notices"
#: prefixes of ids that are made of a DOI, a PMID or a PMC number
_DOI = ("doi:", "DOI:")
_PMID = ("pmid:", "PMID:")
_PMCID = ("pmcid:PMC", "pmcid:pmc", "PMCID:PMC", "PMCID:pmc")
#: rows that one notice can fit
MOST_ROWS = 10_000_000
#: ids in one statement
NAMED = 10_000
#: columns that a row's marks are derived from
MARKED = (
    "id", "parent", "retracted", "concern", "flags", "own_retracted", "own_concern", "publication_types",
    *NAMED_BY,
)  # fmt: skip
_NOTHING: frozenset[Flag] = frozenset()

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
    """All notices and reports, looked up by the passages that they fit.

    Args:
        notices: by source and target.
        reported: the reports of files.
    """

    def __init__(self, notices: NoticesBySource, reported: Reported) -> None:
        self.by_source: NoticesBySource = {
            by: targets for by, targets in notices.items() if targets
        }
        self.reported = reported
        self._of = _by_target(self.by_source)

    def flags(self, passage: Passage) -> tuple[Flag, ...]:
        """Return the flags of a passage, those of its own marks first, then by source and date.

        A retraction that its source undid by a reinstatement of the same day or later is left out.
        """
        own = own_flags(passage)
        said: AbstractSet[Flag] = _NOTHING.union(*map(self.target, targets_of(passage)))
        if not said:
            return own
        # its own record may give notice of itself, for its copies
        said = {
            replace(flag, source=OWN) if (flag.source, flag.by) == (NOTICE, passage.id) else flag
            for flag in said
        }
        return own + tuple(sorted(_standing(said - {*own}), key=_order))

    def target(self, name: str) -> frozenset[Flag]:
        """Return the flags of one target."""
        target = canonical(name)
        return self._of.get(target, _NOTHING) | self.reported.of(target)

    def after(self, notices: NoticesBySource) -> Known:
        """Return all flags after an update: each source's new notices replace all its earlier ones."""
        return Known({**self.by_source, **notices}, self.reported)

    def differing(self, other: Known) -> frozenset[str]:
        """Return the targets whose flags differ."""
        targets = {
            canonical(target)
            for by in {*self.by_source, *other.by_source}
            if self.by_source.get(by) != other.by_source.get(by)
            for target in {*self.by_source.get(by, ()), *other.by_source.get(by, ())}
        }
        targets |= self.reported.differing(other.reported)
        return frozenset(name for name in targets if self.target(name) != other.target(name))


def _standing(flags: Iterable[Flag]) -> Iterator[Flag]:
    """Yield the flags that their own source has not undone."""
    said = list(flags)
    undone: dict[str, str] = {}
    for flag in said:
        if flag.kind is FlagKind.REINSTATEMENT:
            # without a date it undoes all of them
            undone[flag.source] = max(undone.get(flag.source, ""), flag.date or "9999")
    for flag in said:
        until = undone.get(flag.source)
        retraction = flag.kind is FlagKind.RETRACTION
        if until is None or not retraction or (flag.date or "") > until:
            yield flag


def _order(flag: Flag) -> tuple[str, str, str, str]:
    return flag.source, flag.date or "", flag.kind, flag.by or ""


class Notices:
    """All notices and reports of an index, in memory: some ten thousand in all of PubMed, and a file of some 70,000.

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
        self._reports = Reports(connection, uri)
        self.known = Known(notices, self._reports.reported)

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
        known = Known(notices, self.known.reported)
        if known.by_source == self.known.by_source:
            return
        with translated(self._uri):
            self._table.add(self._rows(known.by_source), mode="overwrite")
        self.known = known

    def report(self, reported: Reported) -> None:
        """Store the reports of files in place of all others, in one commit.

        Raises:
            IndexFault: it cannot be written.
        """
        self._reports.replace(reported)
        self.known = Known(self.known.by_source, reported)

    def tidy(self) -> None:
        """Compact the tables: each commit leaves a version."""
        with translated(self._uri):
            compact(self._table)
        self._reports.tidy()

    def _rows(self, notices: NoticesBySource) -> Any:
        import pyarrow as pa

        rows = [
            {"target": target, "kind": str(kind), "by": by}
            for by, targets in notices.items()
            for target, kinds in targets.items()
            for kind in kinds
        ]
        return pa.Table.from_pylist(rows, schema=self._schema)


def predicates(targets: Iterable[str]) -> list[str]:
    """Return SQL conditions; the rows that fit any of the targets are those that meet any of them.

    Each one can be answered by column indices; a single combined condition would read every row.
    """
    names = {canonical(target) for target in targets}
    values: dict[str, list[str]] = defaultdict(list)
    for name in sorted(names):
        kind, _, value = name.partition(":")
        if kind in NAMED_BY and value:
            values[kind].append(value)
    # the case of prefixes differs between sources of ids
    numbers = [name.removeprefix(_PMCID[0]) for name in names if name.startswith(_PMCID[0])]
    names.update(before + number for number in numbers for before in _PMCID)
    names.update(before + number for number in values["pmid"] for before in _PMID)
    either = [f"{column} IN ({quoted(sorted(names))})" for column in ("id", "parent")]
    either += [f"{column} IN ({quoted(found)})" for column, found in values.items()]
    dois = quoted([f"doi:{value}" for value in values["doi"]])
    return [" OR ".join(either)] + [
        f"{column} >= '{first}' AND {column} < '{first[:-1]};' AND lower({column}) IN ({dois})"
        for column in ("id", "parent")
        for first in _DOI
        if values["doi"]
    ]


@dataclass(frozen=True, kw_only=True, slots=True)
class Right:
    """The right flags of a row that has others."""

    flags: tuple[Flag, ...]
    #: whether its marks of retraction or concern change with them
    marked: bool


def mark(table: Any, targets: Iterable[str], known: Known) -> Sequence[Right]:
    """Update the flags of the rows that fit these targets; only rows whose flags change are rewritten.

    Args:
        table: the passages, newest version.
        targets: see :func:`predicates`.
        known: all notices and reports.

    Returns:
        The new flags of the rewritten rows.
    """
    rows: dict[str, Mapping[str, Any]] = {}
    for some in chunked(sorted(targets)):
        for fitting in predicates(some):
            reader = table.search().where(fitting).select(list(MARKED)).limit(MOST_ROWS)
            rows |= {row["id"]: row for row in reader.to_arrow().to_pylist()}
    wanted = differing(rows.values(), known)
    rewrite(table, wanted)
    return tuple(wanted.values())


def differing(rows: Iterable[Mapping[str, Any]], known: Known) -> dict[str, Right]:
    """Return the right flags of rows that have others, by id.

    Args:
        rows: with the columns :data:`MARKED`.
        known: all notices and reports.
    """
    wanted = {}
    for row in rows:
        numbers = {name: row[name] for name in NAMED_BY}
        own = {"retracted": row["own_retracted"], "concern": row["own_concern"]}
        types = tuple(row["publication_types"] or ())
        flags = known.flags(
            Passage(
                id=row["id"],
                text="",
                parent=row["parent"],
                publication_types=types,
                **numbers,
                **own,
            )
        )
        if flags != read_flags(row["flags"]):
            kinds = {flag.kind for flag in flags}
            now = (FlagKind.RETRACTION in kinds, FlagKind.CONCERN in kinds)
            marked = now != (row["retracted"], row["concern"])
            wanted[row["id"]] = Right(flags=flags, marked=marked)
    return wanted


def rewrite(table: Any, wanted: Mapping[str, Right]) -> None:
    """Set the flags of the rows with these ids, and the marks that follow from them, and nothing else."""
    import pyarrow as pa

    for ids in chunked(sorted(wanted)):
        columns = {"id": ids, **marks([wanted[one].flags for one in ids])}
        schema = pa.schema([table.schema.field(name) for name in columns])
        changed = pa.table(columns, schema=schema)
        table.merge_insert("id").when_matched_update_all().execute(changed)


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
    wrong: dict[str, Right] = {}
    for batch in rows.scan(("digest", *MARKED)):
        kept = []
        for row in batch.to_pylist():
            if holds(row["id"], row["digest"]):
                kept.append(row)
            else:
                gone.append(row["id"])
        wrong |= differing(kept, known)
        if len(gone) >= NAMED:
            removed += _remove(table, gone)
            gone = []
    if gone:
        removed += _remove(table, gone)
    # at most some hundred thousand ids, as there are notices and reports
    rewrite(table, wrong)
    return Settled(removed=removed, marked=sum(one.marked for one in wrong.values()))


def chunked(ids: Sequence[str]) -> Iterator[Sequence[str]]:
    """Yield ids in chunks of :data:`NAMED`."""
    for start in range(0, len(ids), NAMED):
        yield ids[start : start + NAMED]


def _by_target(notices: NoticesBySource) -> dict[str, frozenset[Flag]]:
    found: dict[str, set[Flag]] = defaultdict(set)
    for by, targets in notices.items():
        for target, kinds in targets.items():
            flags = (Flag(kind=FlagKind(kind), source=NOTICE, by=by, date=None) for kind in kinds)
            found[canonical(target)].update(flags)
    return {target: frozenset(flags) for target, flags in found.items()}


def _remove(table: Any, ids: list[str]) -> int:
    table.delete(f"id IN ({quoted(ids)})")
    return len(ids)
