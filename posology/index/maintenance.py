"""Maintenance of a table for quick search: indices and files."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from datetime import timedelta
from typing import Any

from posology.index.search import ann, filters
from posology.index.search.ann import APPROXIMATE_FROM, EXACT_FROM, Built, Plan
from posology.index.search.recall import Sample

__all__ = [
    "APPROXIMATE_FROM",
    "EXACT_FROM",
    "KEEP",
    "compact",
    "cover_ids",
    "prepare",
    "tune",
    "vector_index",
]

#: age at which versions are removed. A reader takes up a new one within seconds; until the removal, the files before a
#: compaction take as much space again
KEEP = timedelta(hours=1)
#: share of unindexed rows above which an index is rebuilt, not extended; also the share of rows by which the table may have
#: grown, shrunk or been rewritten since an index was trained
STALE = 0.2
#: share of rows by which the table has grown, shrunk or been rewritten before recall is measured again
DRIFT = 0.05
#: files up to which a small table is not compacted at the end of an ingest: the files before a compaction stay on disk
#: until a later write, and a question reads so few as quickly
FEW_FILES = 16
#: columns searched by filters, notices and abbreviations, besides the id, with their LanceDB index: ``BTree`` for mostly
#: distinct values, ``Bitmap`` for few values, ``LabelList`` for lists
SCALAR = {
    "year": "BTree",
    "pmid": "BTree",
    "doi": "BTree",
    "pmcid": "BTree",
    "parent": "BTree",
    "retracted": "Bitmap",
    filters.COLUMN: "LabelList",
    "shorts": "LabelList",
    "longs": "LabelList",
}


def prepare(table: Any) -> None:
    """Create the id and full-text indices of a new table.

    Passages that the full-text index does not hold yet are then tokenised in the same way.
    """
    _scalar(table, "id", "BTree", rows=0)
    _full_text(table, rows=0)


def cover_ids(table: Any) -> None:
    """Build the index of ids anew if it lacks many rows."""
    _scalar(table, "id", "BTree", rows=int(table.count_rows()))


def compact(table: Any) -> None:
    """Join small files, add new rows to existing indices, and remove old versions.

    The number of rows added to an approximate index since its training is stored with it: revisions change the training
    data without changing the number of rows.
    """
    written = _unindexed(table, "vector") if Built.read(table.schema) else None
    table.optimize(cleanup_older_than=KEEP)
    if written and (kept := Built.read(table.schema)):
        table.update_field_metadata(replace(kept, written=kept.written + written).dump())


def tune(
    table: Any,
    *,
    exact_from: int = EXACT_FROM,
    approximate_from: int = APPROXIMATE_FROM,
    floor: float = ann.FLOOR,
    step: Callable[[str], None] = lambda _: None,
    expired: bool = False,
) -> Built | None:
    """Compact the table if it has many rows, files or expired versions, and build the indices that its number of rows requires.

    An approximate index is searched for sentences of its own passages, more and more widely until its recall suffices.
    The width and the recall are stored with the table.

    Args:
        table: LanceDB's; no other writer may write it meanwhile.
        exact_from: rows from which vectors and the columns of :data:`SCALAR` are indexed.
        approximate_from: rows from which the index of the vectors is approximate.
        floor: minimum recall of the 16 nearest.
        step: called after each step with its name: ``files``, ``columns``, ``words``, ``vectors``, ``recall``.
        expired: whether versions are no longer readable, so that their files can be removed.

    Returns:
        The approximate index, if there is one.
    """
    rows = int(table.count_rows())
    if expired or rows >= exact_from or _files(table) > FEW_FILES:
        compact(table)
    step("files")
    if not rows:
        return None
    _scalar(table, "id", "BTree", rows=rows)
    if rows >= exact_from:
        for column, kind in SCALAR.items():
            _scalar(table, column, kind, rows=rows)
    step("columns")
    _full_text(table, rows=rows)
    step("words")
    planned = ann.plan(rows, _dim(table), exact_from=exact_from, approximate_from=approximate_from)
    if planned is None:
        return None
    start = _train(table, planned, rows)
    step("vectors")
    if planned.kind == "IvfFlat":
        return None
    changed = max(abs(rows - start.measured), start.written - start.seen)
    if changed > DRIFT * start.measured or start.recall is None:
        sample = Sample.of(table)
        start = ann.settle(start, lambda search: sample.recall(table, search), floor=floor)
        start = replace(start, queries=len(sample.queries), measured=rows, seen=start.written)
        table.update_field_metadata(start.dump())
        step("recall")
    return start


def _files(table: Any) -> int:
    return int(table.stats()["fragment_stats"]["num_fragments"])


def vector_index(table: Any) -> str | None:
    """Return the kind of the vectors' index: ``IvfFlat``, ``IvfPq`` or ``None``."""
    return next((str(i.index_type) for i in table.list_indices() if i.columns == ["vector"]), None)


def built(table: Any) -> Built | None:
    """Return the approximate index of a table's version; ``None``: its search is exact."""
    if vector_index(table) != "IvfPq":
        return None
    if kept := Built.read(table.schema):
        return kept
    # the measurement is lost: use the defaults from before any measurement
    rows = int(table.count_rows())
    planned = ann.plan(rows, _dim(table), exact_from=0, approximate_from=0)
    return ann.begin(planned, rows) if planned and planned.kind == "IvfPq" else None


def _scalar(table: Any, column: str, kind: str, *, rows: int) -> None:
    from lancedb import index

    if column in table.schema.names and not _covered(table, column, rows):
        table.create_index(column, config=getattr(index, kind)(), replace=True)


def _full_text(table: Any, *, rows: int) -> None:
    from lancedb.index import FTS

    if not _covered(table, "document", rows):
        # Stop words stay in: BM25 weighs them down by itself, and "no" and "not" are not noise
        # in a claim. The limit on a token's length is for runaway base pairs, not for words.
        config = FTS(stem=True, remove_stop_words=False, ascii_folding=True, max_token_length=60)
        table.create_index("document", config=config, replace=True)


def _train(table: Any, planned: Plan, rows: int) -> Built:
    """Build the vectors' index, unless the existing one still fits; return how it is searched."""
    kept = Built.read(table.schema)
    fits = vector_index(table) == planned.kind and _covered(table, "vector", rows)
    if planned.kind == "IvfPq":
        fits = fits and kept is not None
        if kept is not None:
            fits = fits and max(abs(rows - kept.rows), kept.written) <= STALE * kept.rows
    if not fits:
        table.create_index("vector", config=ann.config(planned), replace=True)
    return kept if fits and kept is not None else ann.begin(planned, rows)


def _dim(table: Any) -> int:
    return int(table.schema.field("vector").type.list_size)


def _covered(table: Any, column: str, rows: int) -> bool:
    """Return whether an index on ``column`` holds nearly all rows."""
    unindexed = _unindexed(table, column)
    return unindexed is not None and unindexed <= STALE * rows


def _unindexed(table: Any, column: str) -> int | None:
    """Return the number of rows missing from a column's index; ``None``: no index, or unknown."""
    for index in table.list_indices():
        if index.columns == [column]:
            stats = table.index_stats(index.name)
            return int(stats.num_unindexed_rows) if stats else None
    return None
