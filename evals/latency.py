"""How long warm retrieval takes: ``python -m evals.latency --index DIR --data DIR``.

Retrieval here is all that comes after the query's vector: both searches, the fusion, the BM25
re-ranking, and fetching 16 passages with their sentences and vectors. Encoding is timed apart.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import anyio
import numpy as np

from evals.retrieval import pubmedqa
from posology.index.embedders import load
from posology.index.retriever import Retriever
from posology.index.store import Index
from posology.query import make_query
from posology.seams import Embedder, TokenCodec
from posology.types import Encoded, EncodedQuery, Passage, Sentence

if TYPE_CHECKING:
    from numpy.typing import NDArray

K = 16


class Precomputed:
    """Gives the vectors that were made before the clock started."""

    def __init__(self, embedder: Embedder, texts: Sequence[str]) -> None:
        self.name, self.dim = embedder.name, embedder.dim
        self._encoded = {text: embedder.encode_query(text) for text in texts}

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
        """Refuse: a latency of retrieval has no ingest in it."""
        raise AssertionError(f"{len(passages)} passages, {len(sentences)}: only questions here")


def _timed(times: list[float], work: Callable[[], object]) -> None:
    start = time.perf_counter()
    work()
    times.append(time.perf_counter() - start)


def _print(name: str, times: Sequence[float]) -> None:
    p50, p95 = np.percentile(np.array(times) * 1e3, [50, 95])
    print(f"{name:32} p50 {p50:6.1f} ms   p95 {p95:6.1f} ms   n {len(times)}")


async def _run(index: Index, texts: Sequence[str]) -> None:
    embedder = load()
    retriever = Retriever(index, Precomputed(embedder, texts))
    index.warm()
    for text in texts[:20]:
        await retriever.retrieve(make_query(text), K)
    times: list[float] = []
    for text in texts:
        start = time.perf_counter()
        await retriever.retrieve(make_query(text), K)
        times.append(time.perf_counter() - start)
    _print(f"retrieve {K} passages, no encoding", times)
    vectors = Precomputed(embedder, texts).embed_queries(texts)
    view = index.view()
    parts: dict[str, list[float]] = {"encode": [], "dense": [], "bm25": [], "fetch": []}
    for text, vector in zip(texts, vectors, strict=True):
        _timed(parts["encode"], lambda text=text: embedder.encode_query(text))  # type: ignore[misc]
        _timed(parts["dense"], lambda vector=vector: view.dense(vector, 100))  # type: ignore[misc]
        _timed(parts["bm25"], lambda text=text: view.bm25(text, 100))  # type: ignore[misc]
        ids = view.dense(vector, K).ids
        _timed(parts["fetch"], lambda ids=ids: view.fetch(ids))  # type: ignore[misc]
    for name, part in parts.items():
        _print(f"  {name}", part)


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--index", type=Path, required=True)
    parser.add_argument("--data", type=Path, required=True)
    args = parser.parse_args()
    texts = [question.text for question in pubmedqa(args.data)]
    anyio.run(_run, Index.open(args.index), texts)


if __name__ == "__main__":
    main()
