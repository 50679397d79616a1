"""What keeps a table quick to search: its indices and its files."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from datetime import timedelta
from typing import Any

from posology.index.search import ann, filters
from posology.index.search.ann import APPROXIMATE_FROM, EXACT_FROM, Built, Plan
from posology.index.search.recall import Sample

__all__ = ["APPROXIMATE_FROM", "EXACT_FROM", "KEEP", "compact", "prepare", "tune", "vector_index"]

#: versions older than this are removed: a reader takes up a new one within seconds, and until then
#: the files before a compaction take as much room again
KEEP = timedelta(hours=1)
#: an index that misses more than this share of the rows is built anew, not patched; so is one that was trained on
#: a table which has grown or shrunk by more since, or of which more was written since
STALE = 0.2
#: recall is measured anew when the table has grown or shrunk by this share, or as much of it was written
DRIFT = 0.05
#: the columns that filters, notices and abbreviations are looked up by, besides the id, and LanceDB's index for each: ``BTree``
#: where most values differ, ``Bitmap`` where few do, ``LabelList`` for lists
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
    """Give a new table its indices by id and by word.

    Passages that are not in the full-text index yet are then read as it reads them.
    """
    _scalar(table, "id", "BTree", rows=0)
    _full_text(table, rows=0)


def compact(table: Any) -> None:
    """Join small files, add new rows to the indices that there are, and remove old versions.

    How many rows an approximate index has come to hold since it was trained is kept with it: revisions change what it was
    trained on, and not how many rows there are.
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
) -> Built | None:
    """Compact, and give every column the index that its number of rows calls for.

    An approximate index is searched for sentences of its own passages, more and more widely until it finds enough;
    how widely, and how much it then finds, is kept with the table.

    Args:
        table: LanceDB's; nobody else may write it meanwhile.
        exact_from: rows from which vectors and the columns of :data:`SCALAR` are indexed.
        approximate_from: rows from which the index of the vectors is approximate.
        floor: share of the 16 nearest that it must find.
        step: told what is done, whenever something is: ``files``, ``columns``, ``words``, ``vectors``, ``recall``.

    Returns:
        The approximate index, if there is one.
    """
    compact(table)
    step("files")
    rows = int(table.count_rows())
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


def vector_index(table: Any) -> str | None:
    """The kind of index that the vectors have: ``IvfFlat``, ``IvfPq`` or ``None``."""
    return next((str(i.index_type) for i in table.list_indices() if i.columns == ["vector"]), None)


def built(table: Any) -> Built | None:
    """The approximate index of this version of a table; ``None``: it has none, its search is exact."""
    if vector_index(table) != "IvfPq":
        return None
    if kept := Built.read(table.schema):
        return kept
    # what was measured is lost: then as before anything was
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
    """Build the index of the vectors, unless the one that there is serves still; returns how it is searched."""
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
    """Whether an index on ``column`` holds nearly all rows."""
    unindexed = _unindexed(table, column)
    return unindexed is not None and unindexed <= STALE * rows


def _unindexed(table: Any, column: str) -> int | None:
    """How many rows the index on a column does not hold yet; ``None``: there is none, or it does not say."""
    for index in table.list_indices():
        if index.columns == [column]:
            stats = table.index_stats(index.name)
            return int(stats.num_unindexed_rows) if stats else None
    return None
