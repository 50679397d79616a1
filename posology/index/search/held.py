"""Rows of one version by their numbers, with their small columns in memory.

A version never changes, so what is held needs no check. Reading a row of the table costs about as much for every column as
for its text, so a question's candidates, of which most are never shown, are looked up in memory.
"""

from __future__ import annotations

import threading
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from posology.index.connection import translated
from posology.index.schema import STORED
from posology.index.search.ann import APPROXIMATE_FROM
from posology.index.search.folding import COLUMNS

if TYPE_CHECKING:
    import pyarrow as pa

#: row number, as LanceDB names it
ROW = "_rowid"
#: columns of a passage that are too large to hold
LARGE = frozenset(
    {"document", "vector", "starts", "ends", "sentence_vectors", "phrases", "tokens", "roles"}
)
#: columns that are held; a table of an earlier version may lack some
SMALL = tuple(name for name in dict.fromkeys((*STORED, *COLUMNS)) if name not in LARGE)
#: reads before the small columns are held: a process that asks once or twice does not scan the table
READS = 6


class Held:
    """Columns of all rows, looked up by row number.

    Args:
        table: all rows, with their numbers in :data:`ROW`, in any order.
    """

    def __init__(self, table: pa.Table) -> None:
        numbers = table[ROW].to_numpy()
        order = np.argsort(numbers)
        self._table = table.take(order).combine_chunks()
        self._numbers = numbers[order]
        #: names of its columns, without the number
        self.columns = frozenset(table.column_names) - {ROW}

    def take(self, numbers: Sequence[int], columns: Sequence[str]) -> pa.Table:
        """Return these columns, and the row numbers, of existing rows in this order."""
        at = np.searchsorted(self._numbers, numbers)
        return self._table.select([*columns, ROW]).take(at)


class Rows:
    """Reads rows of one version of a table. Blocking, and thread-safe.

    Args:
        table: LanceDB's, at this version.
        uri: address of the index, for messages.
    """

    def __init__(self, table: Any, uri: str) -> None:
        self._table = table
        self._uri = uri
        self._reads = 0
        self._held: Held | None = None
        self._lock = threading.Lock()

    def take(self, rows: Iterable[str], columns: Sequence[str]) -> pa.Table:
        """Return columns of these rows and their numbers, once each, in no order.

        Raises:
            IndexFault: the table's files cannot be read.
        """
        numbers = sorted({int(row) for row in rows})
        held = self._hold()
        if held is None:
            return self._read(numbers, columns)
        small = [name for name in columns if name in held.columns]
        if len(small) == len(columns):
            return held.take(numbers, columns)
        found = self._read(numbers, [name for name in columns if name not in held.columns])
        known = held.take(found[ROW].to_numpy(), small)
        for name in small:
            found = found.append_column(name, known[name])
        return found

    def _read(self, numbers: Sequence[int], columns: Sequence[str]) -> pa.Table:
        with translated(self._uri):
            query = self._table.take_row_ids(list(numbers)).with_row_id().select(list(columns))
            return query.to_arrow()

    def _hold(self) -> Held | None:
        """Return the small columns of all rows; ``None``: they are not held, or another thread is reading them."""
        if self._held is None and self._lock.acquire(blocking=False):
            try:
                self._reads += 1
                if self._reads == READS + 1:
                    self._held = self._scan()
            finally:
                self._lock.release()
        return self._held

    def _scan(self) -> Held | None:
        """Read the small columns; ``None``: the table is so large that its vectors are not in memory, either."""
        with translated(self._uri):
            count = self._table.count_rows()
            if not 0 < count < APPROXIMATE_FROM:
                return None
            wanted = [name for name in SMALL if name in self._table.schema.names]
            query = self._table.search().select(wanted).with_row_id(with_row_id=True)
            return Held(query.limit(count).to_arrow())
