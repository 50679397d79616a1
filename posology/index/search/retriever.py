"""Finds the passages for a question: by meaning, by words, and by both."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import TypeVar

import anyio
import anyio.to_thread

from posology.errors import InvalidQuery
from posology.index.search import filters as filtering
from posology.index.search import stages
from posology.index.search.bm25 import rerank
from posology.index.search.expansion import Expander
from posology.index.search.folding import SPARE, Fold, fold
from posology.index.search.fusion import fuse
from posology.index.store import Index
from posology.index.view import View, rename
from posology.seams import Embedder, Reranker
from posology.types import (
    MODES,
    EncodedQuery,
    Filters,
    Folded,
    Hit,
    Mode,
    Query,
    Ranking,
    Retrieval,
    Retrieved,
)

T = TypeVar("T")

#: passages that each method contributes to the fusion
DEPTH = 100
#: the constant of the fusion. Cormack's 60 was found for pools of many relevant documents; with
#: one or two, the first places should count for more (figures: decision 0004)
RRF_K = 10
#: passages that are re-ranked, where there is a re-ranker
RERANK_DEPTH = 50
#: the most passages that may be asked for
MAX_K = 1_000
#: threads that encode and search at one time
THREADS = 4


class Retriever:
    """Dense retrieval, BM25, and their reciprocal rank fusion, over one index.

    A choice question is searched for by its question alone: options other than the right one
    would call for passages about something else.

    With a re-ranker the asked ranking is a first stage: its best are read and scored, and the best of
    these are handed out. The rankings by meaning and by words stay what they are without it.
    """

    def __init__(
        self,
        index: Index,
        embedder: Embedder,
        reranker: Reranker | None = None,
        rerank_depth: int = RERANK_DEPTH,
        *,
        fold: Fold = Fold.WORKS,
        expander: Expander | None = None,
    ) -> None:
        """Put an index and its embedder together.

        Args:
            index: where from.
            embedder: the one that the index was made with.
            reranker: settles the order of what is handed out; ``None``: the asked ranking does.
            rerank_depth: how many passages of the asked ranking are re-ranked; more when more are asked for.
            fold: which records count as one, before anything is handed out or re-ranked.
            expander: gives other words for what a question says; ``None``: its own are searched for alone.

        Raises:
            IndexMismatch: the index was made with another embedder.
            ValueError: ``rerank_depth`` is not at least 1.
        """
        index.require(embedder.name, embedder.dim)
        if rerank_depth < 1:
            raise ValueError(f"re-ranking {rerank_depth} passages makes no sense: 1 or more")
        self._index = index
        self._embedder = embedder
        self._reranker = reranker
        self._rerank_depth = rerank_depth
        self._fold = fold
        self._expander = expander
        self._limiter: anyio.CapacityLimiter | None = None

    @property
    def embedder(self) -> Embedder:
        """What encodes questions."""
        return self._embedder

    async def retrieve(
        self,
        query: Query,
        k: int,
        mode: Mode = "fused",
        *,
        retracted: bool = False,
        filters: Filters = filtering.NONE,
        depth: int = DEPTH,
        encoded: EncodedQuery | None = None,
        version: int | str | None = None,
    ) -> Retrieval:
        """The k best passages for a question, with every ranking that led to them.

        Args:
            query: the question.
            k: how many passages; fewer come when the index has no more, or, by ``bm25``, when
                no more share a word with the question.
            mode: the ranking that the passages are taken from, in its order unless they are re-ranked.
                ``dense>bm25``: the best ``depth`` by meaning, ordered by words; ``bm25>dense``: by words,
                ordered by meaning (TCRA-LLM, table 5).
            retracted: whether retracted passages may be among them.
            filters: which others may; wherever k match, k come, but by words first as many as share a word.
            depth: how many passages each method contributes to the fusion, or the first stage to the
                second; at least ``k``, and at least as many as are re-ranked.
            encoded: the question's vectors, where they were had before; ``None``: the embedder computes them.
            version: of the index, see :meth:`~posology.index.reader.Reader.view_at`; ``None``: the newest.

        Raises:
            InvalidQuery: ``k``, ``mode`` or the filters cannot be, or no passage has a name that they ask for.
            VersionGone: the index does not hold that version (any more).
            IndexFault: the index is not there any more.
        """
        if not 1 <= k <= MAX_K:
            raise InvalidQuery(f"k is {k}: ask for 1 to {MAX_K} passages", field="k")
        if mode not in MODES:
            raise InvalidQuery(f"no mode {mode!r}: choose {', '.join(MODES)}", field="mode")
        pool = k if self._reranker is None else max(k, self._rerank_depth)
        depth = max(depth, pool)
        filtering.check(filters)
        view = await self._thread(lambda: self._index.view_at(version))
        if filters:
            await self._thread(lambda: view.require(filters))
        added: tuple[str, ...] = ()
        if (expand := self._expander) is not None:
            added = await self._thread(lambda: expand(query.text, view))
        wide = " ".join((query.text, *added))
        by_words: list[Ranking] = []
        failures: list[Exception] = []

        async def search_words() -> None:
            # kept out of the task group, which would wrap it in an ExceptionGroup
            try:
                by_words.append(
                    await self._thread(
                        lambda: view.bm25_rows(wide, depth, retracted=retracted, filters=filters)
                    )
                )
            except Exception as error:  # noqa: BLE001 (raised again below)
                failures.append(error)

        def search_meaning() -> tuple[EncodedQuery, Ranking]:
            asked = encoded or self._embedder.encode_query(query.text)
            dense = view.dense_rows(asked.vector, depth, retracted=retracted, filters=filters)
            return asked, dense

        asked, by_meaning = None, None
        async with anyio.create_task_group() as group:
            group.start_soon(search_words)
            try:
                asked, by_meaning = await self._thread(search_meaning)
            except Exception as error:  # noqa: BLE001 (raised again below)
                failures.append(error)
        if failures:
            raise failures[0]
        assert asked is not None
        assert by_meaning is not None
        found = await self._thread(
            lambda: self._read(
                view, query, k, pool, mode, encoded=asked, dense=by_meaning, bm25=by_words[0]
            )
        )
        return replace(found, filters=filters, added=added)

    def _read(
        self,
        view: View,
        query: Query,
        k: int,
        pool: int,
        mode: Mode,
        *,
        encoded: EncodedQuery,
        dense: Ranking,
        bm25: Ranking,
    ) -> Retrieval:
        # until here passages are row numbers: only those that are handed out or re-ranked are read
        rankings = {"dense": dense, "bm25": bm25, "fused": fuse([dense, bm25], k=RRF_K)}
        if mode == "dense>bm25":
            rankings[mode] = stages.by_words(view, query.text, dense)
        elif mode == "bm25>dense":
            rankings[mode] = stages.by_meaning(view, encoded.vector, bm25)
        wanted = {name: pool if name == mode else k for name in rankings}
        rankings, folded = self._once(view, rankings, wanted)
        cut = {name: ranking.top(wanted[name]) for name, ranking in rankings.items()}
        found = view.take(row for ranking in cut.values() for row in ranking.ids)
        names = {row: retrieved.passage.id for row, retrieved in found.items()}
        best_by_meaning = [found[row].passage for row in cut["dense"].top(k).ids]
        retrieval = Retrieval(
            query=query,
            passages=tuple(found[row] for row in cut[mode].ids),
            query_vector=encoded.vector,
            dense=rename(cut["dense"], names),
            bm25_rerank=rerank(query.text, best_by_meaning),
            bm25=rename(cut["bm25"], names),
            fused=rename(cut["fused"], names),
            index_version=view.version,
            query_tokens=encoded.tokens,
            codec=self._index.meta.codec,
        )
        if self._reranker is not None:
            retrieval = reorder(retrieval, self._reranker, k)
        there = {one.passage.id for one in retrieval.passages}
        return replace(retrieval, folded=tuple(one for one in folded if one.into in there))

    def _once(
        self, view: View, rankings: dict[str, Ranking], wanted: Mapping[str, int]
    ) -> tuple[dict[str, Ranking], tuple[Folded, ...]]:
        """The heads of the rankings, in which each work has one place; and what was folded."""
        if self._fold is Fold.OFF:
            return rankings, ()
        deep = SPARE
        while True:
            # whatever is folded leaves its place to the next
            heads = {name: one.top(deep * wanted[name]) for name, one in rankings.items()}
            of = view.works(row for head in heads.values() for row in head.ids)
            shown, folded = fold(heads, of, how=self._fold)
            if all(
                len(shown[name].hits) >= wanted[name] or len(head.hits) == len(rankings[name].hits)
                for name, head in heads.items()
            ):
                return shown, folded
            deep *= SPARE

    async def _thread(self, work: Callable[[], T]) -> T:
        if self._limiter is None:
            self._limiter = anyio.CapacityLimiter(THREADS)
        return await anyio.to_thread.run_sync(work, limiter=self._limiter, abandon_on_cancel=True)


def reorder(retrieval: Retrieval, reranker: Reranker, k: int) -> Retrieval:
    """The k best passages by a re-ranker's scores; of equal scores the earlier comes first. Blocking.

    Args:
        retrieval: holds the passages that are scored; its rankings are cut to k.
        reranker: scores them.
        k: how many are left, at least 1.

    Raises:
        ValueError: the scores are not one number a passage.
    """
    import numpy as np

    scores = np.asarray(reranker(retrieval), dtype=np.float64)
    if scores.shape != (len(retrieval.passages),) or np.isnan(scores).any():
        raise ValueError(
            f"{reranker.name} gave scores of shape {scores.shape} for {len(retrieval.passages)} "
            "passages, or some that are no numbers: one a passage is wanted"
        )
    best = np.argsort(-scores, kind="stable")[:k]
    passages: tuple[Retrieved, ...] = tuple(retrieval.passages[i] for i in best)
    hits = tuple(
        Hit(passage_id=one.passage.id, score=float(scores[i]))
        for i, one in zip(best, passages, strict=True)
    )
    return replace(
        retrieval,
        passages=passages,
        dense=retrieval.dense.top(k),
        bm25=retrieval.bm25.top(k),
        fused=retrieval.fused.top(k),
        reranked=Ranking(method="reranked", hits=hits),
    )
