"""Finds the passages for a question: by meaning, by words, and by both."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Literal, TypeAlias, TypeVar

import anyio
import anyio.to_thread

from posology.errors import InvalidQuery
from posology.index.bm25 import rerank
from posology.index.fusion import fuse
from posology.index.store import Index
from posology.index.view import View, rename
from posology.seams import Embedder
from posology.types import Query, Ranking, Retrieval

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

Mode: TypeAlias = Literal["dense", "bm25", "fused"]
T = TypeVar("T")

#: passages that each method contributes to the fusion
DEPTH = 100
#: the constant of the fusion. Cormack's 60 was found for pools of many relevant documents; with
#: one or two, the first places should count for more (figures: decision 0004)
RRF_K = 10
#: the most passages that may be asked for
MAX_K = 1_000
#: threads that encode and search at one time
THREADS = 4


class Retriever:
    """Dense retrieval, BM25, and their reciprocal rank fusion, over one index.

    A choice question is searched for by its question alone: options other than the right one
    would call for passages about something else.
    """

    def __init__(self, index: Index, embedder: Embedder) -> None:
        """Put an index and its embedder together.

        Raises:
            IndexMismatch: the index was made with another embedder.
        """
        index.require(embedder.name, embedder.dim)
        self._index = index
        self._embedder = embedder
        self._limiter: anyio.CapacityLimiter | None = None

    async def retrieve(
        self,
        query: Query,
        k: int,
        mode: Mode = "fused",
        *,
        retracted: bool = False,
        depth: int = DEPTH,
    ) -> Retrieval:
        """The k best passages for a question, with every ranking that led to them.

        Args:
            query: the question.
            k: how many passages; fewer come when the index has no more, or, by ``bm25``, when
                no more share a word with the question.
            mode: the ranking that the passages are taken from, in its order.
            retracted: whether retracted passages may be among them.
            depth: how many passages each method contributes to the fusion; at least ``k``.

        Raises:
            InvalidQuery: ``k`` or ``mode`` cannot be.
            IndexFault: the index is not there any more.
        """
        if not 1 <= k <= MAX_K:
            raise InvalidQuery(f"k is {k}: ask for 1 to {MAX_K} passages", field="k")
        if mode not in ("dense", "bm25", "fused"):
            raise InvalidQuery(f"no mode {mode!r}: choose dense, bm25 or fused", field="mode")
        depth = max(depth, k)
        view = await self._thread(self._index.view)
        by_words: list[Ranking] = []
        failures: list[Exception] = []

        async def search_words() -> None:
            # kept out of the task group, which would wrap it in an ExceptionGroup
            try:
                by_words.append(
                    await self._thread(
                        lambda: view.bm25_rows(query.text, depth, retracted=retracted)
                    )
                )
            except Exception as error:  # noqa: BLE001 (raised again below)
                failures.append(error)

        def search_meaning() -> tuple[NDArray[np.float32], Ranking]:
            vector = self._embedder.embed_queries([query.text])[0]
            return vector, view.dense_rows(vector, depth, retracted=retracted)

        vector, by_meaning = None, None
        async with anyio.create_task_group() as group:
            group.start_soon(search_words)
            try:
                vector, by_meaning = await self._thread(search_meaning)
            except Exception as error:  # noqa: BLE001 (raised again below)
                failures.append(error)
        if failures:
            raise failures[0]
        assert vector is not None
        assert by_meaning is not None
        return await self._thread(
            lambda: _retrieval(
                view, query, k, mode, vector=vector, dense=by_meaning, bm25=by_words[0]
            )
        )

    async def _thread(self, work: Callable[[], T]) -> T:
        if self._limiter is None:
            self._limiter = anyio.CapacityLimiter(THREADS)
        return await anyio.to_thread.run_sync(work, limiter=self._limiter, abandon_on_cancel=True)


def _retrieval(
    view: View,
    query: Query,
    k: int,
    mode: Mode,
    *,
    vector: NDArray[np.float32],
    dense: Ranking,
    bm25: Ranking,
) -> Retrieval:
    # until here passages are row numbers: only those that are handed out are read
    rankings = (dense.top(k), bm25.top(k), fuse([dense, bm25], k=RRF_K).top(k))
    found = view.take(row for ranking in rankings for row in ranking.ids)
    names = {row: retrieved.passage.id for row, retrieved in found.items()}
    dense, bm25, fused = (rename(ranking, names) for ranking in rankings)
    asked = rankings[("dense", "bm25", "fused").index(mode)]
    return Retrieval(
        query=query,
        passages=tuple(found[row] for row in asked.ids),
        query_vector=vector,
        dense=dense,
        bm25_rerank=rerank(query.text, [found[row].passage for row in rankings[0].ids]),
        bm25=bm25,
        fused=fused,
        index_version=view.version,
    )
