"""Helpers of retrieval benchmarks: an embedder of precomputed vectors, and timers."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np

from posology.index.search.filters import NONE
from posology.index.search.retriever import Retriever
from posology.query import make_query
from posology.types import EncodedQuery, Filters

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from posology.seams import TokenCodec
    from posology.types import Encoded, Passage, Sentence


class Precomputed:
    """An embedder that knows these questions, whose vectors were made before the clock started, and no others.

    Args:
        name: of the embedder that made them.
        encoded: by the question's text.
    """

    def __init__(self, name: str, encoded: Mapping[str, EncodedQuery]) -> None:
        self.name = name
        self.dim = len(next(iter(encoded.values())).vector)
        self._encoded = encoded

    def embed_queries(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """From memory."""
        return np.stack([self._encoded[text].vector for text in texts])

    def encode_query(self, text: str) -> EncodedQuery:
        """From memory."""
        return self._encoded[text]

    def embed_passages(
        self,
        passages: Sequence[Passage],
        sentences: Sequence[Sequence[Sentence]],
        codec: TokenCodec | None = None,  # noqa: ARG002 (the protocol's)
    ) -> list[Encoded]:
        """Refuse: where retrieval is timed nothing is ingested."""
        raise AssertionError(f"{len(passages)} passages, {len(sentences)}: only questions here")


def seconds(work: Callable[[], object]) -> float:
    """How long it takes."""
    started = time.perf_counter()
    work()
    return time.perf_counter() - started


async def retrieval_seconds(
    retriever: Retriever, texts: Sequence[str], k: int, filters: Filters = NONE
) -> list[float]:
    """How long each question's retrieval takes, one after the other."""
    times = []
    for text in texts:
        started = time.perf_counter()
        await retriever.retrieve(make_query(text), k, filters=filters)
        times.append(time.perf_counter() - started)
    return times


def quantiles(times: Sequence[float]) -> tuple[float, float]:
    """The median and the 95th percentile of seconds, in milliseconds."""
    p50, p95 = np.percentile(np.array(times) * 1e3, [50, 95])
    return float(p50), float(p95)
