"""TCRA-LLM's ways to retrieve: by meaning, by words, one after the other, and next-sentence prediction.

Usage: ``python -m evals.tcra_retrieval [--data PATH] [--index DIR] [--nsp MODEL]``.

Table 5 of the paper, and table 4 where a BERT with its next-sentence head is at hand, on the PubMedQA questions
and the SciFact claims, over all abstracts of the pool with their given vectors. The second of two methods orders
the best q of the first. A question is hit when any of its gold passages is among the first n. The paper's
measure is the share of right answers, of a language model that reads the first three; this is the share of
questions for which there is something to read.

Differences are to dense retrieval, on the same questions, with 95 % bootstrap intervals.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from evals.pooled import WORK, interval
from evals.preflight_cases import FILES, build
from evals.retrieval import Question, pubmedqa, scifact
from posology.index.embedders import load
from posology.index.rerankers import nsp
from posology.index.schema import FORMAT, SPLITTER
from posology.index.search.fusion import fuse
from posology.index.search.retriever import DEPTH, RRF_K
from posology.index.search.stages import by_meaning, by_words
from posology.index.store import Index
from posology.index.view import View
from posology.types import Passage, Ranking

#: places in the first stage (table 5)
STAGES = (10, 100)
#: places that next-sentence prediction orders: the paper's best (figure 3), and more
NEXT = (3, 10)
#: depth of the mean reciprocal rank
MRR_AT = 10
HITS = (1, 3, 10)


def rankings(
    view: View,
    question: Question,
    vector: NDArray[np.float32],
    reranker: nsp.NextSentence | None,
) -> Iterator[tuple[str, Ranking]]:
    """Every configuration's ranking for one question, by row numbers."""
    dense, bm25 = view.dense_rows(vector, DEPTH), view.bm25_rows(question.text, DEPTH)
    yield "dense", dense
    yield from (
        (f"dense>bm25, q = {q}", by_words(view, question.text, dense.top(q))) for q in STAGES
    )
    yield "bm25", bm25
    yield from ((f"bm25>dense, q = {q}", by_meaning(view, vector, bm25.top(q))) for q in STAGES)
    yield "fused", fuse([dense, bm25], k=RRF_K)
    if reranker is not None:
        for name, first in (("dense", dense), ("bm25", bm25)):
            for k in NEXT:
                yield f"{name} + NSP of {k}", _next(view, question, first.top(k), reranker)


def _next(view: View, question: Question, first: Ranking, reranker: nsp.NextSentence) -> Ranking:
    documents = view.documents(first.ids)
    passages = [Passage(id=row, text=documents[row]) for row in first.ids]
    scores = reranker.probabilities(question.text, passages)
    order = np.argsort(-scores, kind="stable")
    return Ranking(method="nsp", hits=tuple(first.hits[i] for i in order))


def places(
    index: Index,
    questions: Sequence[Question],
    vectors: NDArray[np.float32],
    reranker: nsp.NextSentence | None,
) -> dict[str, NDArray[np.float64]]:
    """By configuration, the place of each question's first gold passage; infinite where none is found."""
    view = index.view()
    found: dict[str, list[float]] = {}
    for number, (question, vector) in enumerate(zip(questions, vectors, strict=True)):
        runs = dict(rankings(view, question, vector, reranker))
        names = view.names({row for ranking in runs.values() for row in ranking.ids})
        for name, ranking in runs.items():
            hits = (
                place
                for place, row in enumerate(ranking.ids, start=1)
                if names[row] in question.gold
            )
            found.setdefault(name, []).append(next(hits, np.inf))
        if number % 50 == 0:
            print(f"\r{number} of {len(questions)}", end="", file=sys.stderr, flush=True)
    print("\r" + " " * 20, end="\r", file=sys.stderr)
    return {name: np.array(of) for name, of in found.items()}


def reciprocal(of: NDArray[np.float64]) -> NDArray[np.float64]:
    """One over the place, 0 beyond :data:`MRR_AT`."""
    return np.where(of <= MRR_AT, 1 / of, 0.0)


def _print(title: str, found: dict[str, NDArray[np.float64]]) -> None:
    print(title)
    for name, of in found.items():
        hits = "  ".join(f"hit@{n} {np.mean(of <= n):.3f}" for n in HITS)
        print(f"  {name:20} {hits}  MRR@{MRR_AT} {reciprocal(of).mean():.3f}", end="")
        if name != "dense":
            beside = reciprocal(of) - reciprocal(found["dense"])
            low, high = interval(beside)
            print(f"  {beside.mean():+.3f} [{low:+.3f}, {high:+.3f}]", end="")
        print()


def main() -> int:
    """Print the tables."""
    parser = argparse.ArgumentParser(
        prog="evals.tcra_retrieval",
        description=__doc__,
        formatter_class=argparse.RawTextHelpFormatter,
    )
    parser.add_argument("--data", type=Path, default=Path("../shared/data"))
    parser.add_argument(
        "--index",
        type=Path,
        default=WORK / f"pool-vectors-{FORMAT}-{SPLITTER}",
        help="of the pool with its given vectors; made where it is not there",
    )
    parser.add_argument("--nsp", metavar="MODEL", help="a folder or hub name: bert-base-uncased")
    args = parser.parse_args()
    missing = [name for name in FILES if not (args.data / name).exists()]
    if missing:
        print(f"not here: {', '.join(missing)}", file=sys.stderr)
        return 1
    embedder = load()
    if not (args.index / "complete").exists():
        build(args.data, args.index, embedder)
    index = Index.open(args.index / "index")
    reranker = None if args.nsp is None else nsp.load(args.nsp)
    everything: dict[str, list[NDArray[np.float64]]] = {}
    for title, questions in (
        ("PubMedQA", pubmedqa(args.data)),
        ("SciFact", scifact(args.data)),
    ):
        began = time.perf_counter()
        vectors = embedder.embed_queries([question.text for question in questions])
        found = places(index, questions, vectors, reranker)
        taken = time.perf_counter() - began
        _print(f"{title}, {len(questions)} questions, {taken:.0f} s", found)
        for name, of in found.items():
            everything.setdefault(name, []).append(of)
    _print("both", {name: np.concatenate(of) for name, of in everything.items()})
    if reranker is None:
        print("next-sentence prediction was not measured: name a model with --nsp")
    return 0


if __name__ == "__main__":
    sys.exit(main())
