"""Dense search of our index against FAISS IndexFlatIP: ``python -m evals.dense_peers --data ../shared/data``.

The same 44,581 vectors and the same questions. Told: how often the first 16 are the same passages, which share of them
is on average, how often the very first is, and the time of one question (one thread for FAISS, as LanceDB takes for one
partition; and with all cores). Vectors that are equal change places freely: a set counts as the same where what differs
has the score of the 16th.
"""

from __future__ import annotations

import argparse
import time
from pathlib import Path

import numpy as np

from evals.peers_index import library, milliseconds, peers, resident
from evals.pooled import WORK
from posology.index.embedders import load

K = 16
#: scores that differ by less are one score: FAISS and LanceDB add up float32 in other orders
TIE = 1e-5
WARM = 5


def main() -> None:
    """Print the comparison."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--data", type=Path, default=Path("../shared/data"))
    parser.add_argument("--work", type=Path, default=WORK, help="where the index is kept")
    parser.add_argument("--questions", type=int, help="of each set; default: all")
    arguments = parser.parse_args()
    faiss = library("faiss", "faiss-cpu")
    found = peers(arguments.data, arguments.work, questions=arguments.questions)
    texts = [q.text for questions in found.questions.values() for q in questions]
    vectors = load().embed_queries(texts)
    before = resident()
    view = found.index.view()
    found.index.warm()
    ours, times = [], []
    for vector in vectors[:WARM]:
        view.dense(vector, K, retracted=True)
    for vector in vectors:
        started = time.perf_counter()
        ours.append(view.dense_rows(vector, K, retracted=True))
        times.append(time.perf_counter() - started)
    names = view.names({row for ranking in ours for row in ranking.ids})
    info = found.index.info()
    print(
        f"{len(found.ids):,} vectors, {len(texts)} questions, index of vectors: {info.vector_index}"
    )
    print(f"{'':24} {'p50 ms':>7} {'p95 ms':>7}  memory MB")
    print(f"{'posology':24} {milliseconds(times)}  {resident() - before:9.0f}", flush=True)
    if faiss is None:
        return
    before = resident()
    flat = faiss.IndexFlatIP(found.vectors.shape[1])
    flat.add(found.vectors)
    grown = resident() - before
    cores = faiss.omp_get_max_threads()
    for threads in dict.fromkeys((1, cores)):
        faiss.omp_set_num_threads(threads)
        times, scores, places = [], [], []
        for vector in vectors:
            started = time.perf_counter()
            score, place = flat.search(vector[None], K)
            times.append(time.perf_counter() - started)
            scores.append(score[0])
            places.append(place[0])
        print(
            f"{f'FAISS flat, {threads} threads':24} {milliseconds(times)}  {grown:9.0f}", flush=True
        )
    same, shared, first = [], [], []
    for ranking, score, place in zip(ours, scores, places, strict=True):
        mine = {names[hit.passage_id]: hit.score for hit in ranking.hits}
        theirs = {found.ids[i]: float(s) for i, s in zip(place, score, strict=True)}
        last = min(theirs.values())
        odd = {
            **{i: s for i, s in mine.items() if i not in theirs},
            **{i: s for i, s in theirs.items() if i not in mine},
        }
        same.append(all(abs(value - last) <= TIE for value in odd.values()))
        shared.append(len(mine.keys() & theirs.keys()) / K)
        first.append(abs(ranking.hits[0].score - float(score[0])) <= TIE)
    print(f"the same {K} passages:      {np.mean(same):.4f} of the questions")
    print(f"share of the {K} in common: {np.mean(shared):.4f}")
    print(f"the same first passage:   {np.mean(first):.4f}")


if __name__ == "__main__":
    main()
