"""Situations for tests of policies: what might be retrieved, what is left, and what doses cost."""

from __future__ import annotations

import zlib
from collections.abc import Callable, Sequence
from decimal import Decimal

import numpy as np
from hypothesis import strategies as st

from orchestrator.question.machine import task_of
from orchestrator.question.request import Request
from posology.query import make_query
from posology.testing.models.embedder import HashEmbedder
from posology.types import (
    Dose,
    Hit,
    Passage,
    Query,
    Ranking,
    Retrieval,
    Retrieved,
    Rung,
    Sentence,
    Situation,
    Task,
)

#: length of every vector; the tables of ``tests/unit/policies/tables.py`` are of the same
DIM = 4
TEXT = "It helps. It does not harm."
QUERY = make_query("Does it help adults?")
_SENTENCES = (Sentence(start=0, end=9), Sentence(start=10, end=27))


def retrieved(
    orders: Sequence[Sequence[int]], scores: Sequence[float], seed: int, index: str = "index@3"
) -> Retrieval:
    """As many passages as the orders have places; their vectors come from the seed.

    Args:
        orders: of dense, BM25 among the same, BM25 and fused; the passages come in the last.
        scores: of each place, falling.
        seed: of the vectors.
        index: name and version.
    """
    random = np.random.default_rng(seed)
    count = len(orders[0])
    vectors = random.normal(size=(count + 1, DIM)).astype(np.float32)
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)

    def ranking(method: str, order: Sequence[int]) -> Ranking:
        hits = (
            Hit(passage_id=f"p{i}", score=score) for i, score in zip(order, scores, strict=True)
        )
        return Ranking(method=method, hits=tuple(hits))

    dense, rerank, bm25, fused = (
        ranking(name, order)
        for name, order in zip(("dense", "bm25_rerank", "bm25", "fused"), orders, strict=True)
    )
    return Retrieval(
        query=QUERY,
        passages=tuple(
            Retrieved(
                passage=Passage(id=f"p{i}", text=TEXT),
                sentences=_SENTENCES,
                vector=vectors[i],
                sentence_vectors=np.zeros((len(_SENTENCES), DIM), np.int8),
            )
            for i in orders[3]
        ),
        query_vector=vectors[count],
        dense=dense,
        bm25_rerank=rerank,
        bm25=bm25,
        fused=fused,
        index_version=index,
    )


class Library:
    """A retriever whose rankings agree, or share nothing at the top, as the question says."""

    #: computes here, so that nothing is bought
    embedder = HashEmbedder()

    def __init__(self, index: str = "library@1", shift: float = 0.0) -> None:
        self._index = index
        self._shift = shift

    async def withdrawn(self, *_: object) -> tuple[str, ...]:
        return ()

    async def retrieve(self, query: Query, *, k: int, **_: object) -> Retrieval:
        places = list(range(k))
        other = places[::-1] if "apart" in query.text else places
        scores = [1.0 / (place + 1) + self._shift for place in places]
        seed = zlib.crc32(query.text.encode())
        orders = [places, other, places, places]
        return retrieved(orders, scores, seed, index=self._index)

    async def search(self, query: Query, *, k: int, **_: object) -> Retrieval:
        return await self.retrieve(query, k=k)

    @property
    def pipeline(self) -> Library:
        """As a service has one, that searches no further."""
        return self

    async def foreseen(self, request: Request, retrieval: Retrieval, _: Dose) -> Task:
        return task_of(request, retrieval)


def by_passages(each: Decimal, passages: int) -> Callable[[Dose], Decimal]:
    """Prices that grow with what is read; BriefContext reads all in three calls."""

    def quote(dose: Dose) -> Decimal:
        read = dose.rungs[0] if dose.rungs else dose.passages or passages
        share = Decimal(str(dose.keep)) if dose.keep is not None else Decimal(1)
        calls = 3 if dose.strategy == "briefcontext" else 1
        return each * calls * (1 + read * max(share, Decimal("0.2")))

    return quote


@st.composite
def retrievals(draw: st.DrawFn, least: int = 0) -> Retrieval:
    """0 to 12 passages in any orders."""
    count = draw(st.integers(least, 12))
    places = list(range(count))
    orders = [draw(st.permutations(places)) for _ in range(4)]
    scores = sorted(draw(st.lists(st.floats(-5, 20), min_size=count, max_size=count)), reverse=True)
    return retrieved(orders, scores, draw(st.integers(0, 2**20)))


@st.composite
def wild_quotes(draw: st.DrawFn) -> Callable[[Dose], Decimal]:
    """Any price for any dose, the same one each time."""
    seed = draw(st.integers(0, 2**20))

    def quote(dose: Dose) -> Decimal:
        key = (dose.strategy, dose.passages, dose.keep, dose.rungs, dose.escalate)
        # of text: the hash of a string differs from process to process
        number = sum((place + 1) * ord(c) for place, c in enumerate(repr((seed, key)))) % 10_007
        return Decimal(number) / 10_000

    return quote


@st.composite
def situations(draw: st.DrawFn) -> Situation:
    """Everything that a policy may be asked about."""
    retrieval = draw(retrievals())
    count = len(retrieval.passages)
    remaining = draw(
        st.none()
        | st.sampled_from([Decimal(0), Decimal("1e-9"), Decimal("0.01"), Decimal(1_000)])
        | st.decimals(0, 2, places=6)
    )
    price = draw(st.sampled_from([Decimal("0.0001"), Decimal("0.01"), Decimal("0.5")]))
    quote = draw(st.just(by_passages(price, count)) | wild_quotes())
    tried = count > 0 and draw(st.booleans())
    refused = Rung(passages=count, first=0, usage=None, refused=True)
    return Situation(
        query=QUERY,
        retrieval=retrieval,
        remaining=remaining,
        quote=None if remaining is None and draw(st.booleans()) else quote,
        tried=(refused,) if tried else (),
    )
