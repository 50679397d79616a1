"""Changes that a batch of literature makes to an index: passages written, removed and marked."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass

from posology.corpus.items import Deletion, Notice, NoticeKind, Parts, Record
from posology.index.build.batches import Batch
from posology.index.build.report import Tally
from posology.index.build.rows import RowBuilder
from posology.index.build.vectors import GivenVectors
from posology.index.schema import Row, digest, provisional
from posology.index.store import Index
from posology.index.sync.notices import NoticesBySource


@dataclass(frozen=True, kw_only=True, slots=True)
class Changes:
    """The net effect of several items, of which later ones override earlier ones."""

    #: by the passage's id
    records: Mapping[str, Record]
    #: ids of passages and articles to remove, except those among :attr:`records`
    deleted: tuple[str, ...]
    #: ids of passages that were added and removed again: rows with these ids go, whatever article they belong to
    lost: frozenset[str]
    #: articles whose only remaining parts are these, and those among :attr:`records`, by id
    parts: Mapping[str, Parts]
    #: notices, by source and target
    notices: NoticesBySource
    #: records that a later item replaced
    replaced: int


def changes(items: Iterable[Record | Deletion | Notice | Parts]) -> Changes:
    """Return the net effect of items, applied one after the other.

    A record that is read again withdraws the notices that it gave before, unless it repeats them; see
    :attr:`~posology.corpus.items.Record.states_standing`.
    """
    merge = _Merge()
    for item in items:
        merge.add(item)
    return merge.changes()


class _Merge:
    """Merges items in order."""

    def __init__(self) -> None:
        self._latest: dict[str, Record] = {}
        self._lost: set[str] = set()
        self._deleted: dict[str, None] = {}
        self._parts: dict[str, Parts] = {}
        self._notices: dict[str, dict[str, set[NoticeKind]]] = {}
        #: the place in the file at which each source gave its notices
        self._places: dict[str, int] = {}
        self._records = 0

    def add(self, item: Record | Deletion | Notice | Parts) -> None:
        """Apply the next item."""
        match item:
            case Record(passage=passage):
                self._records += 1
                self._latest.pop(passage.id, None)
                self._latest[passage.id] = item
                self._lost.discard(passage.id)
                if item.states_standing:
                    self._notices_of(passage.id, item.line)
            case Deletion():
                self._remove(
                    [n for n, r in self._latest.items() if item.id in (n, r.passage.parent)]
                )
                self._deleted[item.id] = None
                self._parts.pop(item.id, None)
                for by in item.silenced:
                    self._notices_of(by, item.line)
            case Parts():
                ours = [n for n, r in self._latest.items() if r.passage.parent == item.id]
                self._remove([n for n in ours if not item.keep(n)])
                if item.whole:
                    self._latest.pop(item.id, None)
                    self._lost.add(item.id)
                    self._notices_of(item.id, item.line)
                # every list of parts counts: a part that one of them drops does not return with another
                if item.id not in self._parts or item.count < self._parts[item.id].count:
                    self._parts[item.id] = item
            case Notice():
                kinds = self._notices_of(item.by, item.line).setdefault(item.target, set())
                kinds.add(item.kind)

    def changes(self) -> Changes:
        """Return the net effect so far."""
        return Changes(
            records=self._latest,
            deleted=tuple(self._deleted),
            lost=frozenset(self._lost),
            parts=self._parts,
            notices={
                by: {target: frozenset(kinds) for target, kinds in targets.items()}
                for by, targets in self._notices.items()
            },
            replaced=self._records - len(self._latest),
        )

    def _notices_of(self, by: str, line: int) -> dict[str, set[NoticeKind]]:
        """Return the notices of a source at a place, without those that it gave at earlier places."""
        if self._places.get(by) != line:
            self._places[by], self._notices[by] = line, {}
        return self._notices[by]

    def _remove(self, names: list[str]) -> None:
        for name in names:
            del self._latest[name]
        self._lost.update(names)


def apply(
    part: Batch,
    index: Index,
    builder: RowBuilder,
    given: GivenVectors | None,
    tally: Tally,
    *,
    take: Callable[[list[Row]], None] = lambda _: None,
    quick: bool = False,
) -> int:
    """Commit a batch. Repeating it, wholly or in part, changes nothing.

    Args:
        part: the batch.
        index: the index to write; the caller holds its lock.
        builder: computes rows.
        given: vectors that came with the file; ``None``: there are none.
        tally: counts what is done.
        take: called after each computed row with the rows that are not written yet; it may write and clear them.
        quick: whether rows without vectors of sentences will do.

    Returns:
        The number of good records that are not in the index, because no row of them could be computed.
    """
    net = changes(part.items)
    known = index.digests(list(net.records)) if net.records else {}
    changed: list[tuple[Record, str]] = []
    for name, record in net.records.items():
        found = digest(record.passage, given.raw(record.row) if given else b"")
        enough = (found, provisional(found)) if quick else (found,)
        if known.get(name) not in enough:
            changed.append((record, found))
    rows: list[Row] = []
    missing = {record.passage.id for record, _ in changed}
    written = len(missing)
    for row in builder.rows(changed, given) if changed else ():
        rows.append(row)
        missing.remove(row.passage.id)
        take(rows)
    written -= len(missing)
    refused = builder.refused()
    # a record without a row does not keep its old passage from being removed
    removed = _remove(net, index, standing=net.records.keys() - missing)
    warned = index.warn(net.notices) if net.notices else 0
    if rows:
        index.upsert(rows)
    tally.add(
        written=written,
        unchanged=part.passed + len(net.records) - len(changed),
        replaced=net.replaced,
        removed=removed,
        warned=warned,
        bad=(*part.bad, *refused),
        remarks=part.remarks,
        broken=part.broken,
    )
    return len(refused)


def _remove(net: Changes, index: Index, *, standing: set[str]) -> int:
    """Remove deleted, lost and dropped passages, except standing ones; return how many."""
    removed = index.delete(net.deleted, but=standing) if net.deleted else 0
    removed += index.delete(net.lost, parts=False) if net.lost else 0
    for article in net.parts.values():
        old = [n for n in index.parts(article.id) if not article.keep(n) and n not in standing]
        removed += index.delete(old, parts=False) if old else 0
    return removed
