"""A process that opens an index and answers from it: time and memory of a worker, for :mod:`evals.scale`.

The questions' vectors are made beforehand: no model is loaded here. Prints one line of JSON.
"""

from __future__ import annotations

import argparse
import importlib
import json
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import anyio
import numpy as np

from evals.scale_build import peak
from posology.index.filtering import NONE
from posology.index.retriever import DEPTH, Retriever
from posology.index.store import Index
from posology.query import make_query
from posology.types import EncodedQuery, Filters

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from posology.seams import TokenCodec
    from posology.types import Encoded, Passage, Sentence

K = 16
#: questions that are asked before the clock starts, and with the clock on; with filters
WARM, TIMED, FILTERED = 20, 200, 50


class Known:
    """An embedder that knows the vectors of the questions, and no others."""

    def __init__(self, name: str, texts: Sequence[str], vectors: NDArray[np.float32]) -> None:
        self.name, self.dim = name, vectors.shape[1]
        self._vectors = dict(zip(texts, vectors, strict=True))

    def embed_queries(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """From memory."""
        return np.stack([self._vectors[text] for text in texts])

    def encode_query(self, text: str) -> EncodedQuery:
        """From memory."""
        return EncodedQuery(vector=self._vectors[text])

    def embed_passages(
        self,
        passages: Sequence[Passage],
        sentences: Sequence[Sequence[Sentence]],
        codec: TokenCodec | None = None,  # noqa: ARG002 (the protocol's)
    ) -> list[Encoded]:
        """Refuse: nothing is ingested here."""
        raise AssertionError(f"{len(passages)} passages, {len(sentences)}: only questions here")


def _timed(times: list[float], work: Callable[[], object]) -> None:
    started = time.perf_counter()
    work()
    times.append(time.perf_counter() - started)


def _quantiles(name: str, times: Sequence[float]) -> dict[str, float]:
    p50, p95 = np.percentile(np.array(times) * 1e3, [50, 95])
    return {f"{name}_p50_ms": round(float(p50), 2), f"{name}_p95_ms": round(float(p95), 2)}


async def _measure(where: Path, asked: dict[str, Any], named: dict[str, Filters]) -> dict[str, Any]:
    texts, vectors = asked["texts"], np.array(asked["vectors"], dtype=np.float32)
    found: dict[str, Any] = {"reader_libraries_mb": round(peak())}
    started = time.perf_counter()
    index = Index.open(where)
    retriever = Retriever(index, Known(index.meta.embedder, texts, vectors))
    found["open_s"] = round(time.perf_counter() - started, 3)
    await retriever.retrieve(make_query(texts[0]), K)
    found["cold_first_answer_s"] = round(time.perf_counter() - started, 3)
    started = time.perf_counter()
    index.warm()
    found["warm_s"] = round(time.perf_counter() - started, 3)
    found["reader_warm_mb"] = round(peak())
    for text in texts[:WARM]:
        await retriever.retrieve(make_query(text), K)
    whole: list[float] = []
    for text in texts[WARM : WARM + TIMED]:
        started = time.perf_counter()
        await retriever.retrieve(make_query(text), K)
        whole.append(time.perf_counter() - started)
    found |= _quantiles("retrieve", whole)
    view = index.view()
    parts: dict[str, list[float]] = {"dense": [], "bm25": [], "take": []}
    for text, vector in zip(texts[WARM : WARM + TIMED], vectors[WARM:], strict=False):
        rows = view.dense_rows(vector, K).ids
        _timed(parts["dense"], lambda vector=vector: view.dense_rows(vector, DEPTH))  # type: ignore[misc]
        _timed(parts["bm25"], lambda text=text: view.bm25_rows(text, DEPTH))  # type: ignore[misc]
        _timed(parts["take"], lambda rows=rows: view.take(rows))  # type: ignore[misc]
    for name, times in parts.items():
        found |= _quantiles(name, times)
    for name, filters in {"no filter": NONE, **named}.items():
        times = []
        for text in texts[: FILTERED + 5]:
            started = time.perf_counter()
            await retriever.retrieve(make_query(text), K, filters=filters)
            times.append(time.perf_counter() - started)
        found |= _quantiles(f"retrieve_{name}", times[5:])
    found["reader_peak_mb"] = round(peak())
    return found


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--index", type=Path, required=True)
    parser.add_argument("--work", type=Path, required=True, help="where asked.json lies")
    arguments = parser.parse_args()
    for library in ("lancedb", "lancedb.query", "rank_bm25"):
        importlib.import_module(library)
    asked = json.loads((arguments.work / "asked.json").read_text(encoding="utf-8"))
    named = {name: _filters(values) for name, values in asked["filters"].items()}
    print(json.dumps(anyio.run(_measure, arguments.index, asked, named)))


def _filters(values: dict[str, Any]) -> Filters:
    read: dict[str, Any] = {k: tuple(v) if isinstance(v, list) else v for k, v in values.items()}
    return Filters(**read)


if __name__ == "__main__":
    main()
