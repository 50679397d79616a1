"""Measures how long LeanContext takes when a question is asked; exits with 1 above :data:`GOAL` milliseconds.

Usage: ``python -m evals.leancontext [--data PATH] [--timed N]``.

PubMedQA questions, each with the 16 abstracts of the pool whose given vectors are nearest. Sentence vectors and
phrases are computed beforehand, as ingest does, and the query is embedded. Beside it, in the same run, the published
way: every sentence is embedded when the question is asked, by the same packaged model; ranking and reduction are
the same. (The paper computes the self-information then, too; that is left out here.) What is left of the text, and
what that costs in answers: ``python -m evals.compressors --only leancontext leancontext_top``.
"""

from __future__ import annotations

import argparse
import os
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from posology.index.embedders import load
from posology.index.embedders.sentence_transformer import SentenceTransformerEmbedder
from posology.query import make_query
from posology.text.sentences import split
from posology.types import (
    Compressed,
    Passage,
    Ranking,
    Retrieval,
    Retrieved,
)
from strategies.compression.leancontext import LeanContext
from strategies.compression.self_information import make_annotator
from training.gold import rows

K = 16
#: milliseconds that compressing 16 abstracts may take in the middle
GOAL = 5.0
_POOL, _VECTORS, _ASKED = "pool.jsonl.gz", "pool.minilm.f16.npy", "pubmedqa_train.jsonl.gz"
#: abstracts that the n-gram model of the first part learns from
_LEARNED = 2_000
_REPEATS = 5
_TIMED = (0.0, 0.1, 0.2, 0.4)


def abstracts(data: Path, embedder: SentenceTransformerEmbedder, n: int) -> list[Retrieval]:
    """The first PubMedQA questions, each with its nearest abstracts as an index gives them."""
    pool = rows(data / _POOL)
    vectors = np.load(data / _VECTORS).astype(np.float32)
    asked = [make_query(row["question"]) for row in rows(data / _ASKED)[:n]]
    queries = embedder.embed_queries([query.text for query in asked])
    near = np.argsort(-(queries @ vectors.T), axis=1)[:, :K]
    passages = {
        i: Passage(id=pool[i]["id"], text=pool[i]["text"], title=pool[i].get("title") or "")
        for i in sorted(set(near.ravel().tolist()))
    }
    sentences = [split(passage.text) for passage in passages.values()]
    encoded = embedder.embed_passages(list(passages.values()), sentences)
    annotator = make_annotator()
    annotator.learn(Passage(id=row["id"], text=row["text"]) for row in pool[:_LEARNED])
    phrases = annotator(list(passages.values()), sentences)
    known = {
        i: Retrieved(
            passage=passage,
            sentences=of,
            vector=vectors[i],
            sentence_vectors=_int8(e.sentence_vectors),
            phrases=p,
        )
        for (i, passage), of, e, p in zip(
            passages.items(), sentences, encoded, phrases, strict=True
        )
    }
    none = Ranking(method="dense", hits=())
    return [
        Retrieval(
            query=query,
            passages=tuple(known[i] for i in row.tolist()),
            query_vector=vector,
            dense=none,
            bm25_rerank=none,
            bm25=none,
            fused=none,
            index_version="none",
        )
        for query, vector, row in zip(asked, queries, near, strict=True)
    ]


def _int8(vectors: np.ndarray) -> np.ndarray:
    return np.round(vectors * 127).astype(np.int8)


def published(
    retrieval: Retrieval, embedder: SentenceTransformerEmbedder, keep: float
) -> Compressed:
    """As the paper has it: the sentences are embedded when the question is asked."""
    texts = [s.of(one.passage.text) for one in retrieval.passages for s in one.sentences]
    vectors = iter(_int8(embedder.embed_queries(texts)))
    passages = tuple(
        replace(one, sentence_vectors=np.array([next(vectors) for _ in one.sentences]))
        for one in retrieval.passages
    )
    return LeanContext()(replace(retrieval, passages=passages), keep)


def latency(data: Path, embedder: SentenceTransformerEmbedder, n: int) -> bool:
    """Print how long compressing takes both ways; whether the goal is met."""
    asked = abstracts(data, embedder, n)
    counts = {
        "sentences": [sum(len(p.sentences) for p in one.passages) for one in asked],
        "phrases": [sum(len(p.phrases.starts) for p in one.passages if p.phrases) for one in asked],
    }
    print(
        f"{len(asked)} questions, {K} abstracts each: in the middle "
        + ", ".join(f"{np.median(v):.0f} {name}" for name, v in counts.items())
        + f"; load {os.getloadavg()[0]:.1f} on {os.cpu_count()} cores\n"
        f"{'':<34} p50 ms   p95 ms  p50 of processor time"
    )
    rows: dict[str, Timed] = {}
    compress, top = LeanContext(), LeanContext.top()
    for keep in _TIMED:
        rows[f"keep {keep}"] = _timed(lambda one, k=keep: compress(one, k), asked, _REPEATS)
    rows["keep 0.1, nothing between"] = _timed(lambda one: top(one, 0.1), asked, _REPEATS)
    last = "keep 0.1, embedding all sentences"
    rows[last] = _timed(lambda one: published(one, embedder, 0.1), asked[: max(1, n // 8)], 1)
    for name, took in rows.items():
        print(
            f"{name:<34}{took.median:>7.2f}  {np.percentile(took.wall, 95):>7.2f}  "
            f"{np.median(took.processor):>7.2f}"
        )
    print(
        f"the published way takes {rows[last].median / rows['keep 0.1'].median:.0f} times as long"
    )
    worst = max(rows[f"keep {keep}"].median for keep in _TIMED)
    print(f"goal: p50 at most {GOAL} ms: {'met' if worst <= GOAL else 'MISSED'} ({worst:.2f})")
    return worst <= GOAL


@dataclass(frozen=True, kw_only=True, slots=True)
class Timed:
    """Milliseconds of each call."""

    wall: list[float]
    #: of the calling thread, which a busy machine does not lengthen as much
    processor: list[float]

    @property
    def median(self) -> float:
        """Of the wall's."""
        return float(np.median(self.wall))


def _timed(compress: Any, asked: Sequence[Retrieval], repeats: int) -> Timed:
    """Each call timed, after one that is not counted."""
    compress(asked[0])
    took = Timed(wall=[], processor=[])
    for _ in range(repeats):
        for one in asked:
            began, used = time.perf_counter(), time.thread_time()
            compress(one)
            took.processor.append((time.thread_time() - used) * 1e3)
            took.wall.append((time.perf_counter() - began) * 1e3)
    return took


def main(argv: list[str] | None = None) -> int:
    """Print the times; return 1 if the goal is missed."""
    parser = argparse.ArgumentParser(prog="evals.leancontext", description=__doc__)
    parser.add_argument("--data", type=Path, default=Path("../shared/data"))
    parser.add_argument("--timed", type=int, default=32, help="questions")
    given = parser.parse_args(argv)
    for name in (_POOL, _VECTORS, _ASKED):
        if not (given.data / name).exists():
            sys.exit(f"{given.data} has no {name}. Pass --data with the folder of the data sets.")
    return 0 if latency(given.data, load(), given.timed) else 1


if __name__ == "__main__":
    raise SystemExit(main())
