"""What a batch of the literature changes in an index: passages that come, go, and are warned of."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from posology.corpus.items import Deletion, Notice, NoticeKind, Parts, Record
from posology.index.build.batches import Batch
from posology.index.build.report import Tally
from posology.index.build.rows import Making
from posology.index.build.vectors import GivenVectors
from posology.index.schema import digest
from posology.index.store import Index


@dataclass(frozen=True, kw_only=True, slots=True)
class Changes:
    """What is left to do of several items, where later ones undo earlier ones."""

    #: by the passage's id
    records: Mapping[str, Record]
    #: ids of passages and articles that go, unless they are among :attr:`records`
    deleted: tuple[str, ...]
    #: ids of passages that came and went: what was there under them goes, whatever it was a part of
    lost: frozenset[str]
    #: articles of which no other parts than these, and those among :attr:`records`, remain, by id
    parts: Mapping[str, Parts]
    #: by whom, then of what
    said: Mapping[str, Mapping[str, frozenset[NoticeKind]]]
    #: records that a later item took the place of
    replaced: int


def changes(items: Iterable[Record | Deletion | Notice | Parts]) -> Changes:
    """The same as these items one after the other.

    A record that is read again takes back what it said of others before, as far as it does not say it again.
    """
    latest: dict[str, Record] = {}
    lost: set[str] = set()
    deleted: dict[str, None] = {}
    parts: dict[str, Parts] = {}
    said: dict[str, dict[str, set[NoticeKind]]] = {}
    #: the place in the file at which each said it
    places: dict[str, int] = {}
    records = 0

    def speaks(by: str, line: int) -> dict[str, set[NoticeKind]]:
        if places.get(by) != line:
            places[by], said[by] = line, {}
        return said[by]

    def lose(names: list[str]) -> None:
        for name in names:
            del latest[name]
        lost.update(names)

    for item in items:
        match item:
            case Record(passage=passage):
                records += 1
                latest.pop(passage.id, None)
                latest[passage.id] = item
                lost.discard(passage.id)
                speaks(passage.id, item.line)
            case Deletion():
                lose([n for n, r in latest.items() if item.id in (n, r.passage.parent)])
                deleted[item.id] = None
                parts.pop(item.id, None)
                for by in item.silenced:
                    speaks(by, item.line)
            case Parts():
                ours = [n for n, r in latest.items() if r.passage.parent == item.id]
                lose([n for n in ours if not item.keep(n)])
                # of what was there before, all have their say: what one of them lets go does not come back by another
                if item.id not in parts or item.count < parts[item.id].count:
                    parts[item.id] = item
            case Notice():
                speaks(item.by, item.line).setdefault(item.target, set()).add(item.kind)
    return Changes(
        records=latest,
        deleted=tuple(deleted),
        lost=frozenset(lost),
        parts=parts,
        said={by: {t: frozenset(k) for t, k in targets.items()} for by, targets in said.items()},
        replaced=records - len(latest),
    )


def apply(
    part: Batch, index: Index, maker: Making, given: GivenVectors | None, tally: Tally
) -> int:
    """Commit a batch. Doing it twice, wholly or in part, does no more than doing it once.

    Args:
        part: the batch.
        index: where to; the caller holds its lock.
        maker: computes rows.
        given: the vectors that came with the file; ``None``: none did.
        tally: is told what was done.

    Returns:
        How many good records are not in the index, since no row of them could be made.
    """
    net = changes(part.items)
    known = index.digests(list(net.records)) if net.records else {}
    changed: list[tuple[Record, str]] = []
    for name, record in net.records.items():
        found = digest(record.passage, given.raw(record.row) if given else b"")
        if known.get(name) != found:
            changed.append((record, found))
    rows = tuple(maker.rows(changed, given)) if changed else ()
    refused = maker.refused()
    # of a record without a row, nothing stands in the way of what removes its passage
    missing = {record.passage.id for record, _ in changed} - {row.passage.id for row in rows}
    standing = net.records.keys() - missing
    removed = index.delete(net.deleted, but=standing) if net.deleted else 0
    removed += index.delete(net.lost, parts=False) if net.lost else 0
    for article in net.parts.values():
        old = [n for n in index.parts(article.id) if not article.keep(n) and n not in standing]
        removed += index.delete(old, parts=False) if old else 0
    warned = index.warn(net.said) if net.said else 0
    if rows:
        index.upsert(rows)
    tally.add(
        written=len(rows),
        unchanged=part.passed + len(net.records) - len(changed),
        replaced=net.replaced,
        removed=removed,
        warned=warned,
        bad=(*part.bad, *refused),
        broken=part.broken,
    )
    return len(refused)
