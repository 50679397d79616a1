"""Measures how often the gold passage is found: dense, BM25 and fused, on two sets of questions.

``python -m evals.retrieval --index DIR --data DIR`` with an index of ``pool.jsonl.gz``.

A question counts as hit when any of its gold passages is among the first n. PubMedQA: the abstract
that the question was made from. SciFact: the abstracts with evidence for or against the claim.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from posology.index.embedders import load
from posology.index.search.bm25 import rerank
from posology.index.search.rankings import fuse
from posology.index.search.retriever import DEPTH, RRF_K
from posology.index.store import Index
from training.gold import Question, pubmedqa, scifact

#: depth of the mean reciprocal rank; a gold passage below it counts 0
MRR_AT = 100
METHODS = ("dense", "bm25", "fused", "bm25_rerank")


@dataclass(frozen=True, kw_only=True)
class Score:
    """Shares between 0 and 1."""

    hit1: float
    hit3: float
    hit10: float
    mrr: float


def score(runs: Sequence[Sequence[str]], questions: Sequence[Question]) -> Score:
    """Hits and mean reciprocal rank of one method's rankings."""
    ranks = [
        next((rank for rank, i in enumerate(run, start=1) if i in question.gold), None)
        for run, question in zip(runs, questions, strict=True)
    ]

    def hit(n: int) -> float:
        return sum(rank is not None and rank <= n for rank in ranks) / len(ranks)

    mrr = sum(1 / rank for rank in ranks if rank is not None and rank <= MRR_AT) / len(ranks)
    return Score(hit1=hit(1), hit3=hit(3), hit10=hit(10), mrr=mrr)


def evaluate(index: Index, questions: Sequence[Question], *, rrf_k: float) -> dict[str, Score]:
    """Every method's score on one set."""
    embedder = load()
    index.require(embedder.name, embedder.dim)
    vectors = embedder.embed_queries([question.text for question in questions])
    view = index.view()
    runs: dict[str, list[tuple[str, ...]]] = {method: [] for method in METHODS}
    for question, vector in zip(questions, vectors, strict=True):
        dense, bm25 = view.dense(vector, DEPTH), view.bm25(question.text, DEPTH)
        found = [row.passage for row in view.fetch(dense.top(16).ids)]
        for ranking in (dense, bm25, fuse([dense, bm25], k=rrf_k), rerank(question.text, found)):
            runs[ranking.method].append(ranking.ids)
    return {method: score(run, questions) for method, run in runs.items()}


def _print(title: str, scores: dict[str, Score]) -> None:
    print(title)
    for method, s in scores.items():
        print(
            f"  {method:12} hit@1 {s.hit1:.3f}  hit@3 {s.hit3:.3f}  hit@10 {s.hit10:.3f}"
            f"  MRR@{MRR_AT} {s.mrr:.3f}"
        )


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--index", type=Path, required=True)
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--rrf-k", type=float, default=RRF_K)
    args = parser.parse_args()
    index = Index.open(args.index)
    sets = {"PubMedQA": pubmedqa(args.data), "SciFact": scifact(args.data)}
    results = {
        name: evaluate(index, questions, rrf_k=args.rrf_k) for name, questions in sets.items()
    }
    for name, scores in results.items():
        _print(f"{name}, {len(sets[name])} questions", scores)
    means = {
        method: Score(
            **{
                field: sum(getattr(scores[method], field) for scores in results.values())
                / len(results)
                for field in Score.__dataclass_fields__
            }
        )
        for method in METHODS
    }
    _print("mean of the two sets", means)


if __name__ == "__main__":
    main()
