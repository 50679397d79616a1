"""One version of an index, for reading; later writes do not change it."""

from __future__ import annotations

import unicodedata
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from posology.errors import PassageNotFound
from posology.index.connection import translated
from posology.index.schema import INCOMPLETE, from_arrow, stored
from posology.index.search import filters as filtering
from posology.index.search.ann import EXACT, Built
from posology.index.search.folding import COLUMNS, Work, works
from posology.index.search.held import ROW, Rows
from posology.types import MAX_PASSAGE, Filters, Growth, Hit, Ranking, Retrieved

if TYPE_CHECKING:
    import pyarrow as pa
    from numpy.typing import NDArray

#: number of filters whose match counts are cached
COUNTED = 256
#: maximum number of passages whose abbreviation definitions are read for a question
DEFINING = 5_000
#: rows read for suggestions of similar names
SAMPLE = 200_000
#: passages read at a time in a full scan
SCANNED = 10_000


class View:
    """Reads from one version of the table. Blocking: call it from a worker thread.

    Every read raises an :class:`~posology.errors.IndexFault` when the table's files cannot be read.
    """

    def __init__(
        self,
        table: Any,
        *,
        uri: str,
        name: str,
        built: Built | None,
        growth: Growth | None = None,
    ) -> None:
        self._table = table
        self._rows = Rows(table, uri)
        self._uri = uri
        self._name = name
        #: the approximate index of the vectors; ``None``: their search is exact
        self._built = built
        #: how far the first ingest was; ``None``: it is complete
        self._growth = growth
        #: number of matching passages, by predicate
        self._counts: dict[str, int] = {}
        #: the table's version, growing with every commit
        self.number: int = table.version
        #: labels known to exist
        self._seen: set[str] = set()

    @property
    def version(self) -> str:
        """Return name and version of the index, e.g. ``index@17``."""
        return f"{self._name}@{self.number}"

    @cached_property
    def growth(self) -> Growth | None:
        """Return how far the first ingest was; ``None``: it is complete."""
        if self._growth is None and not self.count():
            return Growth(done=0)
        return self._growth

    def count(self) -> int:
        """Return the number of passages."""
        with translated(self._uri):
            return int(self._table.count_rows())

    @cached_property
    def incomplete(self) -> int:
        """Return the number of passages whose sentences and tokens are not encoded yet."""
        with translated(self._uri):
            return int(self._table.count_rows(INCOMPLETE))

    @cached_property
    def lacking_roles(self) -> str:
        """Predicate of the passages whose sentences have no roles, although they are encoded."""
        with translated(self._uri):
            there = "roles" in self._table.schema.names
        return f"NOT ({INCOMPLETE})" + (" AND roles IS NULL" if there else "")

    @cached_property
    def roleless(self) -> int:
        """Return the number of such passages."""
        with translated(self._uri):
            return int(self._table.count_rows(self.lacking_roles))

    @cached_property
    def retracted(self) -> int:
        """Return the number of retracted passages."""
        with translated(self._uri):
            return int(self._table.count_rows("retracted = true"))

    @cached_property
    def _stored(self) -> tuple[str, ...]:
        """Columns of a passage that this version has."""
        with translated(self._uri):
            return stored(self._table.schema)

    def dense(
        self,
        vector: NDArray[np.float32],
        k: int,
        *,
        retracted: bool = False,
        filters: Filters = filtering.NONE,
    ) -> Ranking:
        """Return the k passages with the largest inner product with ``vector``.

        Args:
            vector: shape ``(dim,)``, as the embedder gives it.
            k: maximum number of passages; fewer if fewer match.
            retracted: whether to include retracted passages.
            filters: conditions that passages must meet.
        """
        return self._named(self.dense_rows(vector, k, retracted=retracted, filters=filters))

    def bm25(
        self, text: str, k: int, *, retracted: bool = False, filters: Filters = filtering.NONE
    ) -> Ranking:
        """Return the k passages with the best BM25 score for the words of ``text``; none may match.

        The text is read as words, never as query syntax.
        """
        return self._named(self.bm25_rows(text, k, retracted=retracted, filters=filters))

    def dense_rows(
        self,
        vector: NDArray[np.float32],
        k: int,
        *,
        retracted: bool = False,
        filters: Filters = filtering.NONE,
    ) -> Ranking:
        """Search as :meth:`dense` does, with row numbers for ids, without reading the rows."""
        with translated(self._uri):
            allowed = self._allowed(filters, retracted=retracted)
            query = self._table.search(vector, vector_column_name="vector").distance_type("dot")
            search = EXACT
            if self._built is not None:
                matching = self._count(allowed) if filters and allowed else None
                search = self._built.search(k, matching)
            query = search.apply(query)
            rows, distances = self._run(query, "_distance", k, allowed)
            if self._built is not None and len(rows) < k:
                # the nearest partitions may hold few matches: search all of them
                query = self._table.search(vector, vector_column_name="vector").distance_type("dot")
                query = self._built.widest(k).apply(query)
                rows, distances = self._run(query, "_distance", k, allowed)
        # Lance's dot distance is one minus the inner product
        return _ranking("dense", rows, [1.0 - distance for distance in distances])

    def bm25_rows(
        self, text: str, k: int, *, retracted: bool = False, filters: Filters = filtering.NONE
    ) -> Ranking:
        """Search as :meth:`bm25` does, with row numbers for ids."""
        from lancedb.query import MatchQuery

        words = unicodedata.normalize("NFC", text).encode(errors="replace").decode()
        match: Any = MatchQuery  # its annotations make every option required
        with translated(self._uri):
            query = self._table.search(match(words, "document"), query_type="fts")
            allowed = self._allowed(filters, retracted=retracted)
            rows, scores = self._run(query, "_score", k, allowed)
        return _ranking("bm25", rows, scores)

    def require(self, filters: Filters) -> None:
        """Check that the index has the names of the filters.

        Raises:
            InvalidQuery: it lacks one; the message names it, and similar names of the index.
        """
        for wanted in filtering.wanted_labels(filters):
            for label, name in wanted.items():
                if label not in self._seen:
                    if not self._has(label):
                        raise filtering.unknown(name, label, self._names_like(label))
                    self._seen.add(label)

    def take(self, rows: Iterable[str]) -> dict[str, Retrieved]:
        """Return the passages in these rows of this version, by row number."""
        found = self._rows.take(rows, self._stored)
        numbers = map(str, found[ROW].to_pylist())
        return dict(zip(numbers, from_arrow(found), strict=True))

    def names(self, rows: Iterable[str]) -> dict[str, str]:
        """Return the ids of the passages in these rows, by row number."""
        found = self._rows.take(rows, ("id",)).to_pydict()
        return dict(zip(map(str, found[ROW]), found["id"], strict=True))

    def documents(self, rows: Iterable[str]) -> dict[str, str]:
        """Return title and text of the passages in these rows, as BM25 reads them, by row number."""
        found = self._rows.take(rows, ("document",)).to_pydict()
        texts = (text[:MAX_PASSAGE] for text in found["document"])
        return dict(zip(map(str, found[ROW]), texts, strict=True))

    def definitions(self, shorts: Collection[str], longs: Collection[str]) -> list[tuple[str, str]]:
        """Return the definitions of abbreviations in at most :data:`DEFINING` passages.

        Args:
            shorts: short forms, as written.
            longs: long forms, in lower case.

        Returns:
            Short form, and long form in lower case, of every definition of any of these.
        """
        wanted = [
            f"array_has_any({column}, [{filtering.quoted(sorted(forms))}])"
            for column, forms in (("shorts", shorts), ("longs", longs))
            if forms
        ]
        if not wanted:
            return []
        with translated(self._uri):
            query = self._table.search().where(" OR ".join(wanted)).select(["shorts", "longs"])
            found = query.limit(DEFINING).to_arrow().to_pylist()
        pairs = (pair for row in found for pair in zip(row["shorts"], row["longs"], strict=True))
        return [(short, long) for short, long in pairs if short in shorts or long in longs]

    def works(self, rows: Iterable[str]) -> dict[str, Work]:
        """Return the works that the passages in these rows are records of, by row number."""
        return works(self._rows.take(rows, COLUMNS))

    def vectors(self, rows: Iterable[str]) -> dict[str, NDArray[np.float32]]:
        """Return vectors of the passages in these rows, by row number, shape ``(dim,)`` each."""
        found = self._rows.take(rows, ("vector",))
        column = found["vector"].combine_chunks()
        flat = column.flatten().to_numpy(zero_copy_only=False)
        numbers = map(str, found[ROW].to_pylist())
        return dict(zip(numbers, flat.reshape(len(column), column.type.list_size), strict=True))

    def fetch(self, ids: Sequence[str]) -> tuple[Retrieved, ...]:
        """Return the passages of these ids, in this order.

        Raises:
            PassageNotFound: an id is unknown; the message names the first five.
        """
        rows = {row.passage.id: row for row in from_arrow(self._by_id(ids, self._stored))}
        if missing := [i for i in ids if i not in rows]:
            raise PassageNotFound(
                f"{self.version} does not hold {', '.join(missing[:5])}",
                index=self._name,
                passage=missing[0],
            )
        return tuple(rows[i] for i in ids)

    def parts(self, articles: Collection[str]) -> dict[str, list[str]]:
        """Return the ids of the passages that articles consist of, by article, in no order; other ids are left out."""
        if not articles:
            return {}
        with translated(self._uri):
            query = self._table.search().where(f"parent IN ({filtering.quoted(articles)})")
            query = query.select(["id", "parent"]).limit(max(self.count(), 1))
            rows = query.to_arrow().to_pydict()
        found: dict[str, list[str]] = {}
        for part, article in zip(rows["id"], rows["parent"], strict=True):
            found.setdefault(article, []).append(part)
        return found

    def ids(self) -> list[str]:
        """Return the ids of all passages, in no order."""
        with translated(self._uri):
            query = self._table.search().select(["id"]).limit(max(self.count(), 1))
            found: list[str] = query.to_arrow()["id"].to_pylist()
        return found

    def scan(
        self, columns: Sequence[str], *, where: str | None = None, most: int = SCANNED
    ) -> Iterator[pa.RecordBatch]:
        """Yield these columns of all passages that meet a condition, in no order, ``most`` at a time."""
        with translated(self._uri):
            query = self._table.search().select(list(columns))
            yield from (query if where is None else query.where(where)).to_batches(most)

    def digests(self, ids: Sequence[str]) -> dict[str, str]:
        """Return the digests of existing passages, by id."""
        found = self._by_id(ids, ("id", "digest"))
        return dict(zip(found["id"].to_pylist(), found["digest"].to_pylist(), strict=True))

    def _by_id(self, ids: Sequence[str], columns: Sequence[str]) -> pa.Table:
        with translated(self._uri):
            wanted = f"id IN ({filtering.quoted(dict.fromkeys(ids))})"
            query = self._table.search().where(wanted).select(list(columns))
            return query.limit(max(len(ids), 1)).to_arrow()

    def _named(self, ranking: Ranking) -> Ranking:
        return rename(ranking, self.names(ranking.ids))

    def _has(self, label: str) -> bool:
        with translated(self._uri):
            query = self._table.search().where(
                f"array_has_any({filtering.COLUMN}, [{filtering.literal(label)}])"
            )
            return bool(query.select(["id"]).limit(1).to_arrow().num_rows)

    def _names_like(self, label: str) -> list[str]:
        """Return the names of a label's kind in the first :data:`SAMPLE` passages."""
        kind = label.partition(":")[0]
        column = "journal" if kind == "journal" else filtering.KINDS[kind]
        with translated(self._uri):
            found = self._table.search().select([column]).limit(SAMPLE).to_arrow()[column]
        if kind != "journal":
            found = found.combine_chunks().flatten()
        return [name for name in found.unique().to_pylist() if name]

    def _count(self, allowed: str) -> int:
        if allowed not in self._counts:
            if len(self._counts) >= COUNTED:
                self._counts.clear()
            self._counts[allowed] = int(self._table.count_rows(allowed))
        return self._counts[allowed]

    def _allowed(self, filters: Filters, *, retracted: bool) -> str | None:
        return filtering.where(filters, retracted=retracted or not self.retracted)

    @staticmethod
    def _run(query: Any, score: str, k: int, allowed: str | None) -> tuple[list[int], list[float]]:
        if allowed is not None:
            query = query.where(allowed, prefilter=True)
        found = query.limit(k).select([score]).with_row_id(with_row_id=True).to_arrow().to_pydict()
        return found[ROW], found[score]


def rename(ranking: Ranking, names: Mapping[str, str]) -> Ranking:
    """Return a ranking with ids in place of row numbers."""
    hits = (Hit(passage_id=names[hit.passage_id], score=hit.score) for hit in ranking.hits)
    return Ranking(method=ranking.method, hits=tuple(hits))


def _ranking(method: str, rows: Iterable[int], scores: Iterable[float]) -> Ranking:
    # the order of equal scores is undefined
    best = sorted(zip(rows, scores, strict=True), key=lambda hit: (-hit[1], hit[0]))
    hits = tuple(Hit(passage_id=str(row), score=float(score)) for row, score in best)
    return Ranking(method=method, hits=hits)
