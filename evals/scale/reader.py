"""Reader process of :mod:`evals.scale`: opens an index and measures retrieval time and memory.

The questions' vectors are made beforehand, so no model is loaded. Prints one line of JSON.
"""

from __future__ import annotations

import argparse
import importlib
import json
import time
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any

import anyio
import numpy as np

from evals.scale.build import peak
from evals.scale.clock import Precomputed, quantiles, retrieval_seconds, seconds
from posology.index.search.filters import NONE
from posology.index.search.retriever import DEPTH, Retriever
from posology.index.store import Index
from posology.query import make_query
from posology.types import EncodedQuery, Filters

K = 16
#: questions that are asked before the clock starts, and with the clock on; with filters
WARM, TIMED, FILTERED = 20, 200, 50


def _quantiles(name: str, times: Sequence[float]) -> dict[str, float]:
    p50, p95 = quantiles(times)
    return {f"{name}_p50_ms": round(p50, 2), f"{name}_p95_ms": round(p95, 2)}


async def _measure(where: Path, asked: dict[str, Any], named: dict[str, Filters]) -> dict[str, Any]:
    texts, vectors = asked["texts"], np.array(asked["vectors"], dtype=np.float32)
    found: dict[str, Any] = {"reader_libraries_mb": round(peak())}
    started = time.perf_counter()
    index = Index.open(where)
    encoded = {
        text: EncodedQuery(vector=vector) for text, vector in zip(texts, vectors, strict=True)
    }
    retriever = Retriever(index, Precomputed(index.meta.embedder, encoded))
    found["open_s"] = round(time.perf_counter() - started, 3)
    await retriever.retrieve(make_query(texts[0]), K)
    found["cold_first_answer_s"] = round(time.perf_counter() - started, 3)
    started = time.perf_counter()
    index.warm()
    found["warm_s"] = round(time.perf_counter() - started, 3)
    found["reader_warm_mb"] = round(peak())
    await retrieval_seconds(retriever, texts[:WARM], K)
    whole = await retrieval_seconds(retriever, texts[WARM : WARM + TIMED], K)
    found |= _quantiles("retrieve", whole)
    view = index.view()
    parts: dict[str, list[float]] = {"dense": [], "bm25": [], "take": []}
    for text, vector in zip(texts[WARM : WARM + TIMED], vectors[WARM:], strict=False):
        rows = view.dense_rows(vector, K).ids
        parts["dense"].append(seconds(partial(view.dense_rows, vector, DEPTH)))
        parts["bm25"].append(seconds(partial(view.bm25_rows, text, DEPTH)))
        parts["take"].append(seconds(partial(view.take, rows)))
    for name, times in parts.items():
        found |= _quantiles(name, times)
    for name, filters in {"no filter": NONE, **named}.items():
        times = await retrieval_seconds(retriever, texts[: FILTERED + 5], K, filters)
        found |= _quantiles(f"retrieve_{name}", times[5:])
    found["reader_peak_mb"] = round(peak())
    return found


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--index", type=Path, required=True)
    parser.add_argument("--work", type=Path, required=True, help="where asked.json lies")
    arguments = parser.parse_args()
    for library in ("lancedb", "lancedb.query"):
        importlib.import_module(library)
    asked = json.loads((arguments.work / "asked.json").read_text(encoding="utf-8"))
    named = {name: _filters(values) for name, values in asked["filters"].items()}
    print(json.dumps(anyio.run(_measure, arguments.index, asked, named)))


def _filters(values: dict[str, Any]) -> Filters:
    read: dict[str, Any] = {k: tuple(v) if isinstance(v, list) else v for k, v in values.items()}
    return Filters(**read)


if __name__ == "__main__":
    main()
