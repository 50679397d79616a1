"""One version of an index, to read from: nothing that is written later changes it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from posology.errors import IndexFault
from posology.index.faults import translated
from posology.index.schema import STORED, from_arrow
from posology.types import Hit, Ranking, Retrieved

if TYPE_CHECKING:
    import pyarrow as pa
    from numpy.typing import NDArray

#: candidates of an approximate search that are compared exactly, in multiples of k
REFINE = 3
#: width of an approximate search
EF = 200
#: partitions that an approximate search looks into
PROBES = 20


class View:
    """Reads from one version of the table. Blocking: call it from a worker thread.

    Every read raises an :class:`~posology.errors.IndexFault` when the table's files cannot be read.
    """

    def __init__(self, table: Any, *, uri: str, name: str, approximate: bool) -> None:
        self._table = table
        self._uri = uri
        self._name = name
        self._approximate = approximate
        #: the table's version, growing with every commit
        self.number: int = table.version

    @property
    def version(self) -> str:
        """Name and version of the index, e.g. ``index@17``."""
        return f"{self._name}@{self.number}"

    def count(self) -> int:
        """How many passages there are."""
        with translated(self._uri):
            return int(self._table.count_rows())

    @cached_property
    def retracted(self) -> int:
        """How many of the passages are retracted."""
        with translated(self._uri):
            return int(self._table.count_rows("retracted = true"))

    def dense(self, vector: NDArray[np.float32], k: int, *, retracted: bool = False) -> Ranking:
        """The k passages with the largest inner product with ``vector``.

        Args:
            vector: shape ``(dim,)``, unit length.
            k: how many; fewer come when the index is smaller.
            retracted: whether retracted passages may be among them.
        """
        return self._named(self.dense_rows(vector, k, retracted=retracted))

    def bm25(self, text: str, k: int, *, retracted: bool = False) -> Ranking:
        """The k passages with the best BM25 score for the words of ``text``; none may match.

        Any text will do: it is words, never query syntax.
        """
        return self._named(self.bm25_rows(text, k, retracted=retracted))

    def dense_rows(
        self, vector: NDArray[np.float32], k: int, *, retracted: bool = False
    ) -> Ranking:
        """As :meth:`dense`, with row numbers for ids: they are had without reading the rows."""
        with translated(self._uri):
            query = self._table.search(vector, vector_column_name="vector").distance_type("dot")
            if self._approximate:
                query = query.nprobes(PROBES).ef(max(EF, 2 * k)).refine_factor(REFINE)
            rows, distances = self._run(query, "_distance", k, retracted=retracted)
        # Lance's dot distance is one minus the inner product
        return _ranking("dense", rows, [1.0 - distance for distance in distances])

    def bm25_rows(self, text: str, k: int, *, retracted: bool = False) -> Ranking:
        """As :meth:`bm25`, with row numbers for ids."""
        from lancedb.query import MatchQuery

        words = text.encode(errors="replace").decode()
        match: Any = MatchQuery  # its annotations make every option required
        with translated(self._uri):
            query = self._table.search(match(words, "document"), query_type="fts")
            rows, scores = self._run(query, "_score", k, retracted=retracted)
        return _ranking("bm25", rows, scores)

    def take(self, rows: Iterable[str]) -> dict[str, Retrieved]:
        """The passages in these rows of this version, by row number."""
        found = self._take(rows, STORED)
        numbers = map(str, found["_rowid"].to_pylist())
        return dict(zip(numbers, from_arrow(found), strict=True))

    def fetch(self, ids: Sequence[str]) -> tuple[Retrieved, ...]:
        """The passages of these ids, in this order.

        Raises:
            IndexFault: naming the ids that are not there.
        """
        rows = {row.passage.id: row for row in from_arrow(self._rows(ids, STORED))}
        if missing := [i for i in ids if i not in rows]:
            raise IndexFault(
                f"{self.version} does not hold {', '.join(missing[:5])}", index=self._name
            )
        return tuple(rows[i] for i in ids)

    def digests(self, ids: Sequence[str]) -> dict[str, str]:
        """Id to digest of those passages that are there."""
        found = self._rows(ids, ("id", "digest"))
        return dict(zip(found["id"].to_pylist(), found["digest"].to_pylist(), strict=True))

    def _rows(self, ids: Sequence[str], columns: Sequence[str]) -> pa.Table:
        wanted = ", ".join("'" + i.replace("'", "''") + "'" for i in dict.fromkeys(ids))
        with translated(self._uri):
            query = self._table.search().where(f"id IN ({wanted or 'NULL'})").select(list(columns))
            return query.limit(max(len(ids), 1)).to_arrow()

    def _take(self, rows: Iterable[str], columns: Sequence[str]) -> pa.Table:
        numbers = sorted({int(row) for row in rows})
        with translated(self._uri):
            query = self._table.take_row_ids(numbers).with_row_id().select(list(columns))
            return query.to_arrow()

    def _named(self, ranking: Ranking) -> Ranking:
        found = self._take(ranking.ids, ("id",)).to_pydict()
        names = dict(zip(map(str, found["_rowid"]), found["id"], strict=True))
        return rename(ranking, names)

    def _run(
        self, query: Any, score: str, k: int, *, retracted: bool
    ) -> tuple[list[int], list[float]]:
        if not retracted and self.retracted:
            query = query.where("retracted = false", prefilter=True)
        found = query.limit(k).select([score]).with_row_id(with_row_id=True).to_arrow().to_pydict()
        return found["_rowid"], found[score]


def rename(ranking: Ranking, names: Mapping[str, str]) -> Ranking:
    """The same ranking with other ids, as :meth:`View.dense_rows` needs it at last."""
    hits = (Hit(passage_id=names[hit.passage_id], score=hit.score) for hit in ranking.hits)
    return Ranking(method=ranking.method, hits=tuple(hits))


def _ranking(method: str, rows: Iterable[int], scores: Iterable[float]) -> Ranking:
    # equal scores come in no order that can be relied on
    best = sorted(zip(rows, scores, strict=True), key=lambda hit: (-hit[1], hit[0]))
    hits = tuple(Hit(passage_id=str(row), score=float(score)) for row, score in best)
    return Ranking(method=method, hits=hits)
