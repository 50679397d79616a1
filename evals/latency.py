"""Measures warm retrieval: ``python -m evals.latency --index DIR --data DIR``.

Retrieval here is all that comes after the query's vector: both searches, the fusion, the BM25
re-ranking, and fetching 16 passages with their sentences and vectors. Encoding is timed apart.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from functools import partial
from pathlib import Path

import anyio

from evals.clock import Precomputed, quantiles, retrieval_seconds, seconds
from posology.index.embedders import load
from posology.index.search.retriever import Retriever
from posology.index.store import Index
from training.gold import pubmedqa

K = 16
#: questions that are asked before the clock starts
WARM = 20


def _print(name: str, times: Sequence[float]) -> None:
    p50, p95 = quantiles(times)
    print(f"{name:32} p50 {p50:6.1f} ms   p95 {p95:6.1f} ms   n {len(times)}")


async def _run(index: Index, texts: Sequence[str]) -> None:
    embedder = load()
    known = Precomputed(embedder.name, {text: embedder.encode_query(text) for text in texts})
    retriever = Retriever(index, known)
    index.warm()
    await retrieval_seconds(retriever, texts[:WARM], K)
    times = await retrieval_seconds(retriever, texts, K)
    _print(f"retrieve {K} passages, no encoding", times)
    vectors = known.embed_queries(texts)
    view = index.view()
    parts: dict[str, list[float]] = {"encode": [], "dense": [], "bm25": [], "fetch": []}
    for text, vector in zip(texts, vectors, strict=True):
        parts["encode"].append(seconds(partial(embedder.encode_query, text)))
        parts["dense"].append(seconds(partial(view.dense, vector, 100)))
        parts["bm25"].append(seconds(partial(view.bm25, text, 100)))
        parts["fetch"].append(seconds(partial(view.fetch, view.dense(vector, K).ids)))
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
