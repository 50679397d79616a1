"""Measures LeanContext: how long it takes when a question is asked, and what it leaves to read.

Usage: ``python -m evals.leancontext [--data PATH] [--questions N] [--read N]``.

1. Latency. PubMedQA questions, each with the 16 abstracts of the pool whose given vectors are nearest.
   Sentence vectors and phrases are computed beforehand, as ingest does, and the query is embedded. Beside
   it, in the same run, the published way: every sentence is embedded when the question is asked, by the
   same packaged model; ranking and reduction are the same (the paper computes the self-information then,
   too, which is left out here).
2. What is left. SQuAD's pooled paragraphs, one question a paragraph, 16 passages retrieved: share of the
   text's tokens and of the prompt's that are left, of the sentences of the question's own paragraph that
   hold the gold answer how many are left whole, how often the answer's words are left anywhere in that
   paragraph, and how often the offline reader's answer holds them. For each keep, with the stretches between
   reduced by self-information (of an n-gram model of these paragraphs) and with nothing of them.

Intervals are 95 % bootstrap intervals over questions. An extractive reader scores each sentence by itself,
so it loses nothing in a long context; what a language model gains from a short one it cannot show.
"""

from __future__ import annotations

import argparse
import gzip
import json
import os
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import islice
from pathlib import Path
from typing import Any

import anyio
import numpy as np

from evals import pooled
from posology.index.embedders.sentence_transformer import SentenceTransformerEmbedder
from posology.llm.offline.reader import NAME, ExtractiveReader
from posology.llm.offline.replies import NOTICE
from posology.query import make_query
from posology.text.sentences import split
from posology.types import (
    Answer,
    Compressed,
    Excerpt,
    Passage,
    Ranking,
    Retrieval,
    Retrieved,
    Sentence,
    Task,
)
from prompts.fence import shown
from strategies.compressed import CompressedRag
from strategies.compression.leancontext import LeanContext
from strategies.compression.reduction import Nothing
from strategies.compression.self_information import make_annotator
from strategies.evidence import whole

K = 16
KEEPS = (0.0, 0.05, 0.1, 0.2, 0.4, 1.0)
#: milliseconds that compressing 16 abstracts may take in the middle
GOAL = 5.0
_POOL, _VECTORS, _ASKED = "pool.jsonl.gz", "pool.minilm.f16.npy", "pubmedqa_train.jsonl.gz"
#: abstracts that the n-gram model of the first part learns from
_LEARNED = 2_000
_REPEATS = 5
_TIMED = (0.0, 0.1, 0.2, 0.4)


def _rows(path: Path, n: int | None = None) -> list[dict[str, Any]]:
    with gzip.open(path, "rt", encoding="utf-8") as lines:
        return [json.loads(line) for line in islice(lines, n)]


def abstracts(data: Path, embedder: SentenceTransformerEmbedder, n: int) -> list[Retrieval]:
    """The first PubMedQA questions, each with its nearest abstracts as an index gives them."""
    pool = _rows(data / _POOL)
    vectors = np.load(data / _VECTORS).astype(np.float32)
    asked = [make_query(row["question"]) for row in _rows(data / _ASKED, n)]
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
        f"1. Latency: {len(asked)} questions, {K} abstracts each: in the middle "
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


@dataclass(frozen=True, kw_only=True, slots=True)
class Left:
    """What one setting leaves of the context of one question."""

    #: share of the passages' tokens, marks of omission included
    text: float
    #: share of the prompt's tokens
    prompt: float
    #: share of the sentences of its own paragraph that hold the gold answer that is left whole; ``None``:
    #: the paragraph was not retrieved
    whole: float | None
    #: whether the gold answer's words are left in that paragraph; ``None``: it was not retrieved
    answer: bool | None
    #: whether the offline reader's answer holds the gold answer; ``None``: it was not asked
    right: bool | None


async def _left(
    question: pooled.Question,
    retrieval: Retrieval,
    compress: LeanContext,
    keep: float,
    reader: ExtractiveReader | None,
) -> Left:
    strategy = CompressedRag(compressor=compress, keep=keep)
    task = Task(query=question.query, retrieval=retrieval, model=NAME, max_tokens=None)
    call = strategy.call(task)
    full = CompressedRag(compressor=compress, keep=1.0).call(task)
    assert full is not None
    excerpts = call.excerpts if call else ()
    outcome = await strategy(task, reader) if reader else None
    count = pooled.counter()

    def tokens(texts: Sequence[str]) -> int:
        return sum(map(count, texts))

    own = next((p for p in retrieval.passages if p.passage.id == question.passage), None)
    kept = next((e.sentences for e in excerpts if e.passage.id == question.passage), ())
    gold = _bearing(own, question.answers) if own else []
    return Left(
        text=tokens([shown(e) for e in excerpts])
        / tokens([shown(e) for e in whole(retrieval.passages)]),
        prompt=tokens([m.content for m in call.messages])
        / tokens([m.content for m in full.messages])
        if call
        else 0.0,
        whole=sum(sentence in kept for sentence in gold) / len(gold) if gold else None,
        answer=_says(Excerpt(passage=own.passage, sentences=kept), question.answers)
        if own
        else None,
        right=None
        if outcome is None
        else isinstance(outcome, Answer)
        and pooled.holds(outcome.text.replace(NOTICE, ""), question.answers),
    )


def _bearing(own: Retrieved, answers: Sequence[str]) -> list[Sentence]:
    """The sentences that hold a gold answer as it is written."""
    return [s for s in own.sentences if any(a in s.of(own.passage.text) for a in answers)]


def _says(excerpt: Excerpt, answers: Sequence[str]) -> bool:
    return any(a in s.of(excerpt.passage.text) for s in excerpt.sentences for a in answers)


async def leaves(pool: pooled.Pool, n: int, read: int) -> None:
    """Print what each setting leaves."""
    questions = pool.sample("test", n)
    retrievals = [await pool.retrieve(question, K) for question in questions]
    got = sum(q.passage in r.fused.ids for q, r in zip(questions, retrievals, strict=True))
    print(
        f"\n2. What is left: {n} questions, {K} of {len(pool.questions)} paragraphs each, the question's own "
        f"among them for {got}; the reader reads {min(n, read)}"
    )
    await tabulate(questions, retrievals, pooled.offline_reader(pool.embedder), read)


async def tabulate(
    questions: Sequence[pooled.Question],
    retrievals: Sequence[Retrieval],
    reader: ExtractiveReader,
    read: int,
) -> None:
    """Print a line a setting."""
    print(
        f"{'between':<9}{'keep':>5}  "
        + "  ".join(
            f"{head:>20}"
            for head in (
                "tokens of text",
                "of prompt",
                "answering whole",
                "answer left",
                "reader right",
            )
        )
    )
    for compress in (LeanContext(), LeanContext.top()):
        for keep in KEEPS:
            if keep == 1 and isinstance(compress.reducer, Nothing):
                continue
            rows = [
                await _left(q, r, compress, keep, reader if i < read else None)
                for i, (q, r) in enumerate(zip(questions, retrievals, strict=True))
            ]
            print(_line(compress.reducer.name, keep, rows), flush=True)


def _line(between: str, keep: float, rows: Sequence[Left]) -> str:
    name = {"self_information": "phrases"}.get(between, between)
    columns = [
        [row.text for row in rows],
        [row.prompt for row in rows],
        [row.whole for row in rows if row.whole is not None],
        [float(row.answer) for row in rows if row.answer is not None],
        [float(row.right) for row in rows if row.right is not None],
    ]
    return f"{name:<9}{keep:>5}  " + "  ".join(f"{pooled.shown(c):>20}" for c in columns)


def main(argv: list[str] | None = None) -> int:
    """Print both parts; the exit status is 1 where the goal is missed."""
    parser = argparse.ArgumentParser(prog="evals.leancontext", description=__doc__)
    parser.add_argument("--data", type=Path, default=Path("../shared/data"))
    parser.add_argument("--questions", type=int, default=200, help="of the second part")
    parser.add_argument("--read", type=int, default=200, help="of these, by the offline reader")
    parser.add_argument("--timed", type=int, default=32, help="questions of the first part")
    parser.add_argument("--work", type=Path, default=pooled.WORK)
    given = parser.parse_args(argv)
    for name in (_POOL, _VECTORS, _ASKED, pooled.FILE):
        if not (given.data / name).exists():
            sys.exit(f"{given.data} has no {name}: name the data sets' folder with --data")
    pool = pooled.open_pool(given.data, given.work)
    met = latency(given.data, pool.embedder, given.timed)
    anyio.run(leaves, pool, given.questions, given.read)
    return 0 if met else 1


if __name__ == "__main__":
    raise SystemExit(main())
