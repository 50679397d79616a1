"""What was published about passages: retractions and expressions of concern, kept beside them.

A notice may be read before the passage that it is of, after it, or between two revisions of it: so it is kept, and
holds for every row that fits its target, whenever that is written.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from typing import Any, TypeAlias

from posology.corpus.items import NoticeKind
from posology.index.connection import translated
from posology.index.maintenance import compact
from posology.types import Passage

_TABLE = "notices"
#: columns of a passage that a target may name, by what stands before its colon
_COLUMNS = {"pmid": "pmid", "doi": "doi", "pmcid": "pmcid"}
#: how ids may begin that are made of a DOI, or of PMC's number
_DOI = ("doi:", "DOI:")
_PMCID = ("pmcid:PMC", "pmcid:pmc", "PMCID:PMC", "PMCID:pmc")
#: rows that one notice can fit
MOST_ROWS = 10_000_000
#: ids that one statement names
NAMED = 10_000
#: columns that tell whom a row's marks come from
MARKED = (
    "id", "parent", "retracted", "concern", "own_retracted", "own_concern", *_COLUMNS.values(),
)  # fmt: skip
_NOTHING: frozenset[NoticeKind] = frozenset()
#: whether a passage is shown as retracted, and as of concern
Flags: TypeAlias = tuple[bool, bool]

#: by whom, then of what, what was published
Said: TypeAlias = Mapping[str, Mapping[str, AbstractSet[NoticeKind]]]


class Known:
    """What is known of passages, beside what their records say of themselves."""

    def __init__(self, said: Said) -> None:
        self.said: Said = {by: targets for by, targets in said.items() if targets}
        self._of = _by_target(self.said)

    def of(self, passage: Passage) -> frozenset[NoticeKind]:
        """What was published about a passage."""
        if not self._of:
            return _NOTHING
        return _NOTHING.union(*(self._of.get(key, _NOTHING) for key in keys(passage)))

    def target(self, name: str) -> frozenset[NoticeKind]:
        """What was published about one target."""
        return self._of.get(canonical(name), _NOTHING)

    def after(self, said: Said) -> Known:
        """What is known once these have been read: each takes the place of all that its source said before."""
        return Known({**self.said, **said})

    def differing(self, other: Known) -> frozenset[str]:
        """The targets about which the two do not say the same."""
        targets = {
            canonical(target)
            for by in {*self.said, *other.said}
            if self.said.get(by) != other.said.get(by)
            for target in {*self.said.get(by, ()), *other.said.get(by, ())}
        }
        return frozenset(name for name in targets if self.target(name) != other.target(name))


class Notices:
    """All notices of an index. There are some ten thousand in all of PubMed: they are held in memory.

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
        said: dict[str, dict[str, set[NoticeKind]]] = {}
        for row in rows.to_pylist():
            targets = said.setdefault(row["by"], {})
            targets.setdefault(row["target"], set()).add(NoticeKind(row["kind"]))
        self.known = Known(said)

    def news(self, said: Said) -> Said:
        """What of this is not known yet: nearly all records say nothing of others, and never did."""
        before = self.known.said
        return {by: targets for by, targets in said.items() if targets != before.get(by, {})}

    def keep(self, said: Said) -> None:
        """Write down what these say now, in the place of what they said.

        Raises:
            IndexFault: it cannot be written.
        """
        with translated(self._uri):
            # one commit, so that no crash loses a notice
            merge = self._table.merge_insert(["by", "target", "kind"]).when_matched_update_all()
            merge = merge.when_not_matched_insert_all()
            merge = merge.when_not_matched_by_source_delete(f"`by` IN ({quoted(sorted(said))})")
            merge.execute(self._rows(said))
        self.known = self.known.after(said)

    def replace(self, said: Said) -> None:
        """Write down that this is all that was published, in one commit.

        Raises:
            IndexFault: it cannot be written.
        """
        known = Known(said)
        if known.said == self.known.said:
            return
        with translated(self._uri):
            self._table.add(self._rows(known.said), mode="overwrite")
        self.known = known

    def tidy(self) -> None:
        """Compact the table, of which every commit left a version."""
        with translated(self._uri):
            compact(self._table)

    def _rows(self, said: Said) -> Any:
        import pyarrow as pa

        rows = [
            {"target": target, "kind": str(kind), "by": by}
            for by, targets in said.items()
            for target, kinds in targets.items()
            for kind in kinds
        ]
        return pa.Table.from_pylist(rows, schema=self._schema)


def keys(passage: Passage) -> tuple[str, ...]:
    """The targets that a passage fits: its own id, its article's, and what it is known by elsewhere."""
    numbers = ((kind, getattr(passage, name)) for kind, name in _COLUMNS.items())
    known = (f"{kind}:{value}" for kind, value in numbers if value)
    article = () if passage.parent is None else (passage.parent,)
    return tuple(dict.fromkeys(canonical(key) for key in (passage.id, *article, *known)))


def canonical(target: str) -> str:
    """A target as passages write it: DOIs in lower case, PMC's numbers in upper case."""
    kind, colon, value = target.partition(":")
    match kind if colon else "":
        case "doi" | "DOI":
            return f"doi:{value.lower()}"
        case "pmcid" | "PMCID":
            return f"pmcid:{value.upper()}"
    return target


def predicates(targets: Iterable[str]) -> list[str]:
    """The rows that fit any of these targets, as SQL: those of any of these conditions.

    Each is one that indices of the columns answer; all of them in one would read every row.
    """
    names = {canonical(target) for target in targets}
    values: dict[str, list[str]] = defaultdict(list)
    for name in sorted(names):
        kind, _, value = name.partition(":")
        if kind in _COLUMNS and value:
            values[_COLUMNS[kind]].append(value)
    # ids are written as whoever gave them liked
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
    """Have the rows that fit these targets say what the notices, and their own records, say of them.

    Only the rows of which something else is to be said are rewritten.

    Args:
        table: of the passages, newest version.
        targets: see :func:`predicates`.
        known: all that is.

    Returns:
        How many rows were rewritten.
    """
    rows: dict[str, Mapping[str, Any]] = {}
    for fitting in predicates(targets):
        reader = table.search().where(fitting).select(list(MARKED)).limit(MOST_ROWS)
        rows |= {row["id"]: row for row in reader.to_arrow().to_pylist()}
    wanted = differing(rows.values(), known)
    rewrite(table, wanted)
    return sum(map(len, wanted.values()))


def differing(rows: Iterable[Mapping[str, Any]], known: Known) -> dict[Flags, list[str]]:
    """The ids of rows that do not say of retraction and concern what they ought to, by what that is.

    Args:
        rows: with the columns :data:`MARKED`.
        known: all that was published.
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
    """Have the rows of these ids say of retraction and concern what is wanted, and nothing else of them change."""
    for (retracted, concern), ids in wanted.items():
        for some in chunked(ids):
            table.update(
                where=f"id IN ({quoted(some)})",
                values={"retracted": retracted, "concern": concern},
            )


def chunked(ids: Sequence[str]) -> Iterator[Sequence[str]]:
    """As many ids as one statement is to name, at a time."""
    for start in range(0, len(ids), NAMED):
        yield ids[start : start + NAMED]


def quoted(values: Sequence[str]) -> str:
    """Strings for ``IN (…)``; of none, what is in nothing."""
    return ", ".join("'" + value.replace("'", "''") + "'" for value in values) or "NULL"


def _by_target(said: Said) -> dict[str, frozenset[NoticeKind]]:
    found: dict[str, set[NoticeKind]] = defaultdict(set)
    for targets in said.values():
        for target, kinds in targets.items():
            found[canonical(target)].update(kinds)
    return {target: frozenset(kinds) for target, kinds in found.items()}
