"""Retrieval of passages for a question: dense, BM25, and fused."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import TypeVar

import anyio
import anyio.to_thread

from posology.errors import InvalidQuery
from posology.index.search import filters as filtering
from posology.index.search.bm25 import rerank
from posology.index.search.completion import Completion
from posology.index.search.expansion import Expander
from posology.index.search.folding import SPARE, Fold, fold
from posology.index.search.rankings import by_meaning, by_words, fuse
from posology.index.store import Index
from posology.index.view import View, rename
from posology.seams import Embedder, Reranker, TokenCodec
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

#: passages of each method that enter the fusion
DEPTH = 100
#: the constant of the fusion. Cormack's 60 was found for pools of many relevant documents; with
#: one or two, the first places should count for more (figures: decision 0004)
RRF_K = 10
#: passages that a re-ranker scores
RERANK_DEPTH = 50
#: maximum number of passages that can be requested
MAX_K = 1_000
#: maximum number of threads that encode and search
THREADS = 4


@dataclass(frozen=True, kw_only=True, slots=True)
class _Search:
    """Conditions of a search. Its rankings have row numbers for ids."""

    view: View
    #: passages of a ranking
    depth: int
    #: whether to include retracted passages
    retracted: bool
    filters: Filters

    def bm25(self, text: str) -> Ranking:
        return self.view.bm25_rows(text, self.depth, retracted=self.retracted, filters=self.filters)

    def dense(self, encoded: EncodedQuery) -> Ranking:
        return self.view.dense_rows(
            encoded.vector, self.depth, retracted=self.retracted, filters=self.filters
        )


@dataclass(frozen=True, kw_only=True, slots=True, eq=False)
class _Found:
    """Rankings of a question by meaning and by words, with row numbers for ids."""

    view: View
    encoded: EncodedQuery
    dense: Ranking
    bm25: Ranking


class Retriever:
    """Dense retrieval, BM25, and their reciprocal rank fusion, over one index.

    A choice question is searched without its options: wrong options would find unrelated passages.

    With a re-ranker the requested ranking is a first stage: its best passages are scored, and the best of these are
    returned. The dense and BM25 rankings are the same with and without it.
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
        codec: Callable[[], TokenCodec | None] = lambda: None,
    ) -> None:
        """Combine an index with its embedder.

        Args:
            index: the index to search.
            embedder: the embedder that the index was made with.
            reranker: orders the returned passages; ``None``: the requested ranking does.
            rerank_depth: number of passages of the requested ranking to re-rank; more if more are requested.
            fold: which records count as one, before passages are returned or re-ranked.
            expander: adds synonyms to a question; ``None``: only its own words are searched.
            codec: returns the codec of the index, for passages whose tokens are not encoded yet.

        Raises:
            IndexMismatch: the index was made with another embedder.
            ValueError: ``rerank_depth`` is not at least 1.
        """
        index.require(embedder.name, embedder.dim)
        if rerank_depth < 1:
            raise ValueError(f"rerank_depth must be >= 1 (got {rerank_depth})")
        self._index = index
        self._embedder = embedder
        self._reranker = reranker
        self._rerank_depth = rerank_depth
        self._fold = fold
        self._expander = expander
        self._completion = Completion(embedder, codec)
        self._limiter: anyio.CapacityLimiter | None = None

    @property
    def embedder(self) -> Embedder:
        """Return the embedder of questions."""
        return self._embedder

    def order(self, mode: Mode = "fused") -> str:
        """Return the name of the order of the passages that a mode returns, see :class:`Retrieval`."""
        return mode if self._reranker is None else _reranked(self._reranker, mode)

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
        """Return the k best passages for a question, with every ranking that led to them.

        Args:
            query: the question.
            k: maximum number of passages; fewer if the index has no more, or, for ``bm25``, if no more share a word with
                the question.
            mode: the ranking that passages are taken from, in its order unless they are re-ranked. ``dense>bm25``: the
                best ``depth`` by meaning, ordered by words; ``bm25>dense``: by words, ordered by meaning (TCRA-LLM,
                table 5).
            retracted: whether to include retracted passages.
            filters: conditions that passages must meet. k passages are returned if k match; with words first, only those
                that also share a word.
            depth: number of passages that each method gives to the fusion, or the first stage to the second; at least
                ``k``, and at least as many as are re-ranked.
            encoded: the question's vectors, if they are known; ``None``: the embedder computes them.
            version: version of the index, see :meth:`~posology.index.reader.Reader.view_at`; ``None``: the newest.

        Raises:
            InvalidQuery: ``k``, ``mode`` or the filters are invalid, or the index lacks a name in them.
            VersionGone: the version was removed, or never published.
            IndexFault: the index was removed.
        """
        if not 1 <= k <= MAX_K:
            raise InvalidQuery(f"k must be 1 to {MAX_K} (got {k})", field="k")
        if mode not in MODES:
            raise InvalidQuery(
                f"unknown mode {mode!r}: choose one of {', '.join(MODES)}", field="mode"
            )
        pool = k if self._reranker is None else max(k, self._rerank_depth)
        filtering.check(filters)
        view = await self._thread(lambda: self._index.view_at(version))
        if filters:
            await self._thread(lambda: view.require(filters))
        added: tuple[str, ...] = ()
        if (expand := self._expander) is not None:
            added = await self._thread(lambda: expand(query.text, view))
        search = _Search(view=view, depth=max(depth, pool), retracted=retracted, filters=filters)
        candidates = await self._search(search, query.text, added, encoded)
        read = await self._thread(lambda: self._read(query, k, pool, mode, candidates))
        return replace(read, filters=filters, added=added)

    async def further(self, before: Retrieval, k: int, *, retracted: bool = False) -> Retrieval:
        """Return a retrieval with up to k passages more, the next of the fused ranking of the same question.

        No other ranking has more of what the first passages of the fused one miss, and for those of the one by meaning
        it has most (``python -m evals.policy.search``).

        Args:
            before: the first retrieval.
            k: maximum number of passages to add.
            retracted: whether to include retracted passages.

        Returns:
            The passages of ``before``, then the others; its rankings are as long as both together.

        Raises:
            VersionGone: the version of ``before`` was removed.
            IndexFault: the index was removed.
        """
        mode: Mode = "fused" if before.query_vector.any() else "bm25"
        wider = await self.retrieve(
            before.query,
            min(MAX_K, len(before.passages) + k),
            mode,
            retracted=retracted,
            filters=before.filters,
            encoded=EncodedQuery(vector=before.query_vector, tokens=before.query_tokens),
            version=before.index_version,
        )
        known = {one.passage.id for one in before.passages} | {one.id for one in before.folded}
        # a record of the same work as one that was read
        read = known | {one.into for one in wider.folded if one.id in known}
        passages = (
            *before.passages,
            *[one for one in wider.passages if one.passage.id not in read][:k],
        )
        returned = {one.passage.id for one in passages}
        also = (one for one in wider.folded if one.into in returned and one.id not in known)
        return replace(
            wider,
            passages=passages,
            folded=(*before.folded, *also),
            order=before.order,
            reranked=before.reranked,
        )

    async def withdrawn(self, of: Retrieval, k: int, mode: Mode = "fused") -> tuple[str, ...]:
        """Return the ids of the retracted articles that a retrieval has left out of its k best passages, the best first.

        Args:
            of: a retrieval without retracted passages.
            k: number of passages that were asked for.
            mode: the ranking that they were taken from.

        Raises:
            VersionGone: the version of ``of`` was removed.
            IndexFault: the index was removed.
        """
        view = await self._thread(lambda: self._index.view_at(of.index_version))
        if not await self._thread(lambda: view.retracted):
            return ()
        wider = await self.retrieve(
            of.query,
            k,
            mode,
            retracted=True,
            filters=of.filters,
            encoded=EncodedQuery(vector=of.query_vector, tokens=of.query_tokens),
            version=of.index_version,
        )
        passages = (one.passage for one in wider.passages if one.passage.retracted)
        return tuple(dict.fromkeys(one.parent or one.id for one in passages))

    async def _search(
        self, search: _Search, text: str, added: tuple[str, ...], encoded: EncodedQuery | None
    ) -> _Found:
        """Search by words and by meaning at the same time."""
        wide = " ".join((text, *added))
        bm25: list[Ranking] = []
        failures: list[Exception] = []

        async def search_words() -> None:
            # kept out of the task group, which would wrap it in an ExceptionGroup
            try:
                bm25.append(await self._thread(lambda: search.bm25(wide)))
            except Exception as error:  # noqa: BLE001 (raised again below)
                failures.append(error)

        def search_meaning() -> tuple[EncodedQuery, Ranking]:
            asked = encoded or self._embedder.encode_query(text)
            return asked, search.dense(asked)

        asked, dense = None, None
        async with anyio.create_task_group() as group:
            group.start_soon(search_words)
            try:
                asked, dense = await self._thread(search_meaning)
            except Exception as error:  # noqa: BLE001 (raised again below)
                failures.append(error)
        if failures:
            raise failures[0]
        assert asked is not None
        assert dense is not None
        return _Found(view=search.view, encoded=asked, dense=dense, bm25=bm25[0])

    def _read(self, query: Query, k: int, pool: int, mode: Mode, candidates: _Found) -> Retrieval:
        """Fold and cut the rankings, and read the passages that are returned or re-ranked."""
        # until here passages are row numbers
        view, dense, bm25 = candidates.view, candidates.dense, candidates.bm25
        rankings = {"dense": dense, "bm25": bm25, "fused": fuse([dense, bm25], k=RRF_K)}
        if mode == "dense>bm25":
            rankings[mode] = by_words(view, query.text, dense)
        elif mode == "bm25>dense":
            rankings[mode] = by_meaning(view, candidates.encoded.vector, bm25)
        wanted = {name: pool if name == mode else k for name in rankings}
        rankings, folded = self._once(view, rankings, wanted)
        cut = {name: ranking.top(wanted[name]) for name, ranking in rankings.items()}
        rows = view.take(row for ranking in cut.values() for row in ranking.ids)
        names = {row: retrieved.passage.id for row, retrieved in rows.items()}
        best_by_meaning = [rows[row].passage for row in cut["dense"].top(k).ids]
        retrieval = Retrieval(
            query=query,
            passages=self._completion([rows[row] for row in cut[mode].ids]),
            query_vector=candidates.encoded.vector,
            dense=rename(cut["dense"], names),
            bm25_rerank=rerank(query.text, best_by_meaning),
            bm25=rename(cut["bm25"], names),
            fused=rename(cut["fused"], names),
            index_version=view.version,
            query_tokens=candidates.encoded.tokens,
            codec=self._index.meta.codec,
            growth=view.growth,
            order=mode,
        )
        if self._reranker is not None:
            retrieval = reorder(retrieval, self._reranker, k)
        returned = {one.passage.id for one in retrieval.passages}
        return replace(retrieval, folded=tuple(one for one in folded if one.into in returned))

    def _once(
        self, view: View, rankings: dict[str, Ranking], wanted: Mapping[str, int]
    ) -> tuple[dict[str, Ranking], tuple[Folded, ...]]:
        """Return the heads of the rankings with one place per work, and the folded records."""
        if self._fold is Fold.OFF:
            return rankings, ()
        deep = SPARE
        while True:
            # the place of a folded record goes to the next one
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
    """Return the k best passages by a re-ranker's scores; of equal scores the earlier comes first. Blocking.

    Args:
        retrieval: holds the passages that are scored; its rankings are cut to k.
        reranker: scores them.
        k: number of passages to return, at least 1.

    Raises:
        ValueError: the scores are not one number per passage.
    """
    import numpy as np

    scores = np.asarray(reranker(retrieval), dtype=np.float64)
    if scores.shape != (len(retrieval.passages),) or np.isnan(scores).any():
        raise ValueError(
            f"{reranker.name} must return one number per passage, {len(retrieval.passages)} in all (got shape "
            f"{scores.shape}, or NaN)"
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
        order=_reranked(reranker, retrieval.order),
    )


def _reranked(reranker: Reranker, order: str | None) -> str:
    return f"{reranker.name} of {order or 'unknown'}"
