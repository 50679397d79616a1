"""What keeps a table quick to search: its indices and its files."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

#: rows from which the vectors are indexed exactly: below, reading them all is as quick
EXACT_FROM = 2_000
#: rows from which the vectors are indexed approximately: below, the exact index is quick enough
APPROXIMATE_FROM = 200_000
#: versions older than this are removed: a reader takes up a new one within seconds, and until then
#: the files before a compaction take as much room again
KEEP = timedelta(hours=1)
#: an index that misses more than this share of the rows is built anew, not patched
_STALE = 0.2


def prepare(table: Any) -> None:
    """Give a new table its indices by id and by word.

    Passages that are not in the full-text index yet are then read as it reads them.
    """
    _scalar(table, rows=0)
    _full_text(table, rows=0)


def compact(table: Any) -> None:
    """Join small files, add new rows to the indices that there are, and remove old versions."""
    table.optimize(cleanup_older_than=KEEP)


def tune(table: Any, *, exact_from: int = EXACT_FROM, approximate_from: int) -> None:
    """Compact, and give every column the index that its number of rows calls for."""
    compact(table)
    rows = int(table.count_rows())
    if not rows:
        return
    _scalar(table, rows=rows)
    _full_text(table, rows=rows)
    _vectors(table, rows, exact_from=exact_from, approximate_from=approximate_from)


def vector_index(table: Any) -> str | None:
    """The kind of index that the vectors have: ``IvfFlat``, ``IvfHnswSq`` or ``None``."""
    return next((str(i.index_type) for i in table.list_indices() if i.columns == ["vector"]), None)


def _scalar(table: Any, *, rows: int) -> None:
    from lancedb.index import BTree

    if not _covered(table, "id", rows):
        table.create_index("id", config=BTree(), replace=True)


def _full_text(table: Any, *, rows: int) -> None:
    from lancedb.index import FTS

    if not _covered(table, "document", rows):
        # Stop words stay in: BM25 weighs them down by itself, and "no" and "not" are not noise
        # in a claim. The limit on a token's length is for runaway base pairs, not for words.
        config = FTS(stem=True, remove_stop_words=False, ascii_folding=True, max_token_length=60)
        table.create_index("document", config=config, replace=True)


def _vectors(table: Any, rows: int, *, exact_from: int, approximate_from: int) -> None:
    from lancedb.index import HnswSq, IvfFlat

    if rows < min(exact_from, approximate_from):
        return
    config: IvfFlat | HnswSq
    if rows < approximate_from:
        # One partition holds every vector, so the search is exact; what is gained is that the
        # vectors stay decoded in LanceDB's cache (7 ms instead of 57 at 45,000 rows).
        kind, config = "IvfFlat", IvfFlat(distance_type="dot", num_partitions=1)
    else:
        kind, config = "IvfHnswSq", HnswSq(distance_type="dot")
    if vector_index(table) != kind or not _covered(table, "vector", rows):
        table.create_index("vector", config=config, replace=True)


def _covered(table: Any, column: str, rows: int) -> bool:
    """Whether an index on ``column`` holds nearly all rows."""
    for index in table.list_indices():
        if index.columns == [column]:
            stats = table.index_stats(index.name)
            return bool(stats and stats.num_unindexed_rows <= _STALE * rows)
    return False
