"""Recall of an approximate index against exact search, measured on the table itself when it is built."""

from __future__ import annotations

import random
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from posology.index.search.ann import Search, overlap

if TYPE_CHECKING:
    from numpy.typing import NDArray

#: number of nearest rows
NEAREST = 16
#: questions of a sample
QUERIES = 200
#: vectors compared at a time
_BATCH = 8_192
#: cosine between a passage without sentences and a random question for it; with the packaged embedder, the median is 0.73
#: between PubMedQA's questions and their abstracts, and 0.63 between SciFact's claims and theirs
_COSINE = 0.7


@dataclass(frozen=True, kw_only=True, slots=True, eq=False)
class Sample:
    """Questions to a table, and the nearest rows of each.

    Single sentences serve as questions: they have a question's length, come from the same embedder, and are not vectors of
    the index themselves.
    """

    #: shape ``(n, dim)``, unit length
    queries: NDArray[np.float32]
    #: row numbers, shape ``(n, min(NEAREST, rows))``, the nearest first
    nearest: NDArray[np.int64]

    @classmethod
    def of(cls, table: Any, *, queries: int = QUERIES, seed: int = 0) -> Self:
        """Draw questions, and compare each with every vector of the table, in one pass.

        Args:
            table: LanceDB's.
            queries: number of questions; fewer if there are fewer rows.
            seed: seed of the draw.
        """
        drawn = _draw(table, queries, seed)
        return cls(queries=drawn, nearest=nearest(table, drawn))

    def recall(self, table: Any, search: Search) -> float:
        """Return the mean recall of a search."""
        k = self.nearest.shape[1]
        found = []
        for vector, rows in zip(self.queries, self.nearest.tolist(), strict=True):
            query = table.search(vector, vector_column_name="vector").distance_type("dot")
            query = search.apply(query).limit(k).select(["_distance"]).with_row_id(with_row_id=True)
            found.append(overlap(query.to_arrow()["_rowid"].to_pylist(), rows))
        return float(np.mean(found))


def nearest(
    table: Any, queries: NDArray[np.float32], k: int = NEAREST, *, allowed: str | None = None
) -> NDArray[np.int64]:
    """Return the row numbers of the k vectors of a table with the largest inner products, exactly, in constant memory.

    Args:
        table: LanceDB's.
        queries: shape ``(n, dim)``.
        k: number of rows; fewer if the table is smaller.
        allowed: predicate of the rows to compare; ``None``: all.

    Returns:
        Shape ``(n, min(k, rows))``, the nearest first.
    """
    best = np.full((len(queries), 0), -np.inf, dtype=np.float32)
    rows = np.zeros((len(queries), 0), dtype=np.int64)
    reader = table.search().select(["vector"]).with_row_id(with_row_id=True)
    if allowed is not None:
        reader = reader.where(allowed)
    for batch in reader.limit(max(1, table.count_rows())).to_batches(_BATCH):
        column = batch.column("vector")
        vectors = column.flatten().to_numpy(zero_copy_only=False).reshape(len(column), -1)
        numbers = batch.column("_rowid").to_numpy().astype(np.int64)
        best = np.concatenate([best, queries @ vectors.T], axis=1)
        rows = np.concatenate(
            [rows, np.broadcast_to(numbers, (len(queries), len(numbers)))], axis=1
        )
        if best.shape[1] > k:
            kept = np.argpartition(-best, k, axis=1)[:, :k]
            best, rows = np.take_along_axis(best, kept, 1), np.take_along_axis(rows, kept, 1)
    return np.take_along_axis(rows, np.argsort(-best, axis=1, kind="stable"), 1)


def _draw(table: Any, queries: int, seed: int) -> NDArray[np.float32]:
    rows = int(table.count_rows())
    places = sorted(random.Random(seed).sample(range(rows), min(queries, rows)))  # noqa: S311 (a sample)
    found = table.take_offsets(places).select(["vector", "sentence_vectors"]).to_arrow()
    rng = np.random.default_rng(seed)
    drawn = []
    for vector, blob in zip(found["vector"], found["sentence_vectors"], strict=True):
        own = vector.values.to_numpy()
        sentences = np.frombuffer(blob.as_py(), np.int8).reshape(-1, len(own)).astype(np.float32)
        sentences = sentences[np.any(sentences, axis=1)]
        drawn.append(
            sentences[rng.integers(len(sentences))] if len(sentences) else _beside(own, rng)
        )
    stacked = np.stack(drawn).astype(np.float32)
    return np.asarray(stacked / np.linalg.norm(stacked, axis=1, keepdims=True), dtype=np.float32)


def _beside(vector: NDArray[np.float32], rng: np.random.Generator) -> NDArray[np.float32]:
    # only the direction counts: the lengths of some embedders' vectors differ
    direction = vector / (np.linalg.norm(vector) or 1.0)
    noise = rng.normal(size=vector.shape)
    noise -= (noise @ direction) * direction
    noise /= np.linalg.norm(noise) or 1.0
    return np.asarray(_COSINE * direction + np.sqrt(1 - _COSINE**2) * noise, dtype=np.float32)
