"""Measures what a second search finds: gold abstracts that are not among the first passages, by the ranking that is read on.

Usage: ``python -m evals.policy.search [--data PATH] [--questions N] [--k K]``.

Written questions and questions of PubMedQA are asked of the whole pool of abstracts, by the vectors that come with it, by BM25,
and by the fusion of both with the retriever's own constants. Where the gold abstract is not among the first k, the next k
passages that a ranking adds are looked at, as :meth:`~posology.index.search.retriever.Retriever.further` adds them. Nothing
here was learned from; intervals are 95 % bootstrap ones over questions.
"""

from __future__ import annotations

import argparse
import random
import re
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from evals.support.measure import over_documents
from posology.index.embedders import load
from posology.index.search.rankings import fuse
from posology.index.search.retriever import DEPTH, RRF_K
from posology.text._lexicon import words
from posology.types import Hit, Ranking
from training.gold import DATA, rows
from training.pruner_cases import POOL
from training.reader.abstracts import PUBMEDQA, WRITTEN

if TYPE_CHECKING:
    from numpy.typing import NDArray

VECTORS = "pool.minilm.f16.npy"
#: of BM25: saturation of a word's count, and the weight of a text's length
_K1, _B = 1.2, 0.75
_WORD = re.compile(r"[a-z0-9]+(?:-[a-z0-9]+)*")
_STOP = words(
    "the of and in to a is for with on that by as are was were at from this be an or not do "
    "does did can what which how who why when between among than it its"
)


@dataclass(frozen=True, kw_only=True, slots=True)
class Missed:
    """A question whose gold abstract is not among the first passages of a ranking."""

    question: str
    #: whether the abstract is among the next ones, by the ranking that is read on
    found: dict[str, bool]


class Words:
    """BM25 (Robertson and Zaragoza 2009, equation 3.15) over texts."""

    def __init__(self, texts: Sequence[str]) -> None:
        postings: dict[str, list[tuple[int, int]]] = defaultdict(list)
        lengths = np.zeros(len(texts))
        for i, text in enumerate(texts):
            counts = Counter(_words(text))
            lengths[i] = counts.total()
            for word, count in counts.items():
                postings[word].append((i, count))
        penalty = _K1 * (1 - _B + _B * lengths / lengths.mean())
        self._size = len(texts)
        self._parts = {
            word: (
                places,
                self._weight(len(places)) * counts * (_K1 + 1) / (counts + penalty[places]),
            )
            for word, some in postings.items()
            for places, counts in [np.array(some).T]
        }

    def _weight(self, texts: int) -> float:
        return float(np.log1p((self._size - texts + 0.5) / (texts + 0.5)))

    def scores(self, question: str) -> NDArray[np.float64]:
        """Return the score of each text, shape ``(texts,)``."""
        found = np.zeros(self._size)
        for word in dict.fromkeys(_words(question)):
            if word in self._parts:
                places, scores = self._parts[word]
                found[places] += scores
        return found


def _words(text: str) -> Iterator[str]:
    return (word for word in _WORD.findall(text.lower()) if word not in _STOP)


def _ranking(method: str, scores: NDArray[Any]) -> Ranking:
    best = np.argsort(-scores, kind="stable")[:DEPTH]
    return Ranking(
        method=method, hits=tuple(Hit(passage_id=str(i), score=float(scores[i])) for i in best)
    )


def missed(rankings: dict[str, Ranking], first: str, gold: str, k: int) -> dict[str, bool] | None:
    """Return which rankings have the gold text among the next k that they add; ``None``: it is among the first k."""
    shown = rankings[first].ids[:k]
    if gold in shown:
        return None
    return {
        name: gold in [one for one in ranking.ids if one not in shown][:k]
        for name, ranking in rankings.items()
    }


def main() -> None:
    """Print the shares."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--data", type=Path, default=DATA)
    parser.add_argument("--questions", type=int, default=3_000)
    parser.add_argument("--k", type=int, default=8)
    given = parser.parse_args()
    pool = rows(given.data / POOL)
    places = {row["id"]: str(i) for i, row in enumerate(pool)}
    asked = [(row["question"], row["id"]) for row in rows(given.data / WRITTEN)]
    asked += [(row["question"], f"pmid:{row['pmid']}") for row in rows(given.data / PUBMEDQA)]
    asked = [one for one in asked if one[1] in places]
    random.Random(0).shuffle(asked)
    asked = asked[: given.questions]
    vectors = np.load(given.data / VECTORS).astype(np.float32)
    texts = Words([f"{row.get('title') or ''} {row['text']}" for row in pool])
    queries = load().embed_queries([question for question, _ in asked])
    misses: dict[str, list[Missed]] = {"fused": [], "dense": []}
    for (question, document), vector in zip(asked, queries, strict=True):
        dense = _ranking("dense", vectors @ vector)
        bm25 = _ranking("bm25", texts.scores(question))
        rankings = {"fused": fuse([dense, bm25], k=RRF_K), "dense": dense, "bm25": bm25}
        for first, some in misses.items():
            found = missed(rankings, first, places[document], given.k)
            if found is not None:
                some.append(Missed(question=question, found=found))
    for first, some in misses.items():
        print(f"{first}: {len(some)} of {len(asked)} not among the first {given.k}")
        for name in ("fused", "dense", "bm25"):
            share = over_documents([(one.question, one.found[name]) for one in some])
            print(f"  among the next {given.k} of {name}: {share}")


if __name__ == "__main__":
    main()
