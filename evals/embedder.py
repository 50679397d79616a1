"""Measures the default embedder: sentence vectors, precision, agreement, throughput.

Usage: ``python -m evals.embedder [--data PATH] [--questions N] [--abstracts N]``.

* Sentences: SQuAD 1.1 questions against their paragraph and the 4 nearest of the same article, by
  the cosine of question and sentence, for three ways to make a sentence's vector.
* Precision: bfloat16 against float32, as vectors and as PubMedQA retrieval over part of the pool.
* Agreement of the passages' vectors with ``pool.minilm.f16.npy``.
* Throughput on abstracts of the pool. Other work on the machine lowers it, and by a lot.
"""

from __future__ import annotations

import argparse
import gzip
import json
import random
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from posology.index.embedders import PACKAGED
from posology.index.embedders.models import load_folder
from posology.index.embedders.options import Precision
from posology.index.embedders.sentence_transformer import ALONE, SentenceTransformerEmbedder
from posology.text.sentences import split
from posology.types import Encoded, Passage

_KEPT = (0.1, 0.2, 0.3)
_WAYS = {"in context": 0.0, "mixed": ALONE, "alone": 1.0}


def _embedder(
    *, precision: Precision = "auto", alone: float = ALONE
) -> SentenceTransformerEmbedder:
    folder = PACKAGED["minilm"]()
    loaded = load_folder(folder, embedder="minilm", precision=precision)
    return SentenceTransformerEmbedder(loaded, alone=alone)


def _rows(path: Path) -> list[dict[str, Any]]:
    with gzip.open(path, "rt", encoding="utf-8") as lines:
        return [json.loads(line) for line in lines]


def _embed(embedder: SentenceTransformerEmbedder, passages: list[Passage]) -> list[Encoded]:
    return embedder.embed_passages(passages, [split(p.text) for p in passages])


def _sentences(data: Path, n: int) -> None:
    rows = _rows(data / "squad11_dev_part1.jsonl.gz")
    passages = [Passage(id=str(i), text=row["context"]) for i, row in enumerate(rows)]
    asked = [(i, qa) for i, row in enumerate(rows) for qa in row["qas"]]
    random.Random(0).shuffle(asked)
    asked = asked[:n]
    queries = _embedder().embed_queries([qa["question"] for _, qa in asked])
    print(f"\nsentence vectors, {len(asked)} questions: best sentence of the paragraph holds the")
    print("answer; answer sentence kept at 10, 20, 30 % of the characters of 5 paragraphs")
    for way, share in _WAYS.items():
        encoded = _embed(_embedder(alone=share), passages)
        for half in (0, 1):
            scores = [
                _score(rows, passages, encoded, asked[k], queries[k])
                for k in range(half, len(asked), 2)
            ]
            print(f"{way:11} {('dev', 'held')[half]:5}", np.round(np.mean(scores, axis=0), 3))


def _score(
    rows: list[dict[str, Any]],
    passages: list[Passage],
    encoded: list[Encoded],
    asked: tuple[int, dict[str, Any]],
    query: NDArray[np.float32],
) -> list[float]:
    gold, qa = asked
    answers = {a["answer_start"] for a in qa["answers"]}
    others = [j for j, r in enumerate(rows) if r["title"] == rows[gold]["title"] and j != gold]
    others.sort(key=lambda j: -float(encoded[j].vector @ query))
    ranked = []
    for j in [gold, *others[:4]]:
        cosines = encoded[j].sentence_vectors @ query
        for sentence, cosine in zip(split(passages[j].text), cosines, strict=True):
            holds = j == gold and any(sentence.start <= a < sentence.end for a in answers)
            ranked.append((-float(cosine), j != gold, holds, sentence.end - sentence.start))
    ranked.sort()
    total = sum(length for *_, length in ranked)
    scores = [float(next(holds for _, other, holds, _ in ranked if not other))]
    for share in _KEPT:
        used, kept = 0, False
        for _, _, holds, length in ranked:
            if used and used + length > share * total:
                break
            used += length
            kept |= holds
        scores.append(float(kept))
    return scores


def _precision(data: Path, n: int, abstracts: int) -> None:
    pool = _rows(data / "pool.jsonl.gz")
    stored = np.load(data / "pool.minilm.f16.npy").astype(np.float32)
    stored /= np.linalg.norm(stored, axis=1, keepdims=True)
    place = {row["id"]: i for i, row in enumerate(pool)}
    asked = [r for r in _rows(data / "pubmedqa_train.jsonl.gz") if f"pmid:{r['pmid']}" in place]
    gold = [place[f"pmid:{row['pmid']}"] for row in asked]
    picked = random.Random(1).sample(range(len(pool)), abstracts)
    passages = [
        Passage(id=pool[i]["id"], title=pool[i].get("title") or "", text=pool[i]["text"])
        for i in picked
    ]
    exact: list[Encoded] = []
    precisions: tuple[Precision, ...] = ("float32", "bfloat16")
    for precision in precisions:
        embedder = _embedder(precision=precision)
        embedder.embed_queries(["warm up"])
        started = time.perf_counter()
        encoded = _embed(embedder, passages)
        speed = len(passages) / (time.perf_counter() - started)
        exact = exact or encoded
        vectors = np.array([e.vector for e in encoded])
        queries = embedder.embed_queries([row["question"] for row in asked[:n]])
        hits = [
            g in np.argsort(-(stored @ q))[:10]
            for g, q in zip(gold[: len(queries)], queries, strict=True)
        ]
        pairs = list(zip(encoded, exact, strict=True))
        within = np.concatenate(
            [(a.sentence_vectors * b.sentence_vectors).sum(1) for a, b in pairs]
        )
        same = (vectors * np.array([b.vector for _, b in pairs])).sum(axis=1)
        print(f"\n{precision}: {speed:.1f} abstracts/s; hit@10 {np.mean(hits):.3f} of {len(hits)}")
        print(f"  with float32: passages min {same.min():.5f}, sentences min {within.min():.5f}")
        _agreement(passages, (vectors * stored[picked]).sum(axis=1))


def _agreement(passages: list[Passage], cosines: NDArray[np.float32]) -> None:
    """The stored vectors end every title by a stop of their own, this embedder only once."""
    ended = np.array([p.title.endswith((".", "?", "!")) for p in passages])
    bare = np.array([not p.title for p in passages])
    for name, mask in (("open title", ~ended & ~bare), ("ended title", ended), ("no title", bare)):
        if mask.any():
            part = cosines[mask]
            print(f"  with stored, {name}: mean {part.mean():.5f}, min {part.min():.5f}")


def main(argv: list[str] | None = None) -> int:
    """Print all measurements."""
    parser = argparse.ArgumentParser(prog="evals.embedder", description=__doc__)
    parser.add_argument("--data", type=Path, default=Path("../shared/data"))
    parser.add_argument("--questions", type=int, default=500)
    parser.add_argument("--abstracts", type=int, default=200)
    arguments = parser.parse_args(argv)
    if not (arguments.data / "pool.jsonl.gz").exists():
        sys.exit(f"{arguments.data} has no pool.jsonl.gz: name the data sets' folder with --data")
    _precision(arguments.data, arguments.questions, arguments.abstracts)
    _sentences(arguments.data, arguments.questions)
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
