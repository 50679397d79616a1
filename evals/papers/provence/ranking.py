"""Provence, tables 4 and 7: the pruner's scores as a re-ranker."""

from __future__ import annotations

import math
from collections.abc import Sequence
from types import MappingProxyType

import numpy as np

from evals.papers.bioasq import Literature
from evals.papers.provence.context import CORPUS, PRUNER, TRAINED
from evals.papers.suite import Given, Item, Values
from strategies.compression.late.pruner import LateReranker

#: passages that are re-ranked
DEPTH = 50


class Ranking(Literature):
    """The pruner's scores as a re-ranker of 50 passages."""

    paper = "Provence"
    reads = False
    name = "provence-reranking"
    title = "the pruner as a re-ranker of 50 passages"
    place = "tables 4 and 7"
    measures = MappingProxyType(
        {
            "MRR@10": "reciprocal place of the first gold passage among ten",
            "R@5": "share of the gold passages among the first five, of five at most",
            "nDCG@10": "normalised discounted gain of ten places",
        }
    )
    differences = (
        CORPUS,
        TRAINED,
        (
            "The paper's sets are NQ, HotpotQA, MS MARCO, TREC DL 2019 and BEIR, re-ranked from SPLADE-v3 (nDCG@10 on BEIR 55.4 "
            "by DeBERTa-v3, 55.9 by Provence): other questions and documents, so their figures are no counterpart."
        ),
    )

    def items(self, given: Given) -> list[Item]:
        """Return every question in every order."""
        bench, asked = self.bench(given)
        found = bench.retrieve(asked, DEPTH)
        reranker = LateReranker()
        return [
            Item(question=one.id, arm=arm, content=(one, found[one.id], reranker))
            for one in asked
            for arm in ("dense", "bm25", "fused", PRUNER)
        ]

    def measured(self, item: Item) -> Values:
        """Return how one order ranks the gold passages."""
        question, retrieval, reranker = item.content
        if item.arm == PRUNER:
            order = np.argsort(-reranker(retrieval), kind="stable")
            names = [retrieval.passages[i].passage.id for i in order]
        else:
            names = list(getattr(retrieval, item.arm).ids)
        return ranked(names, set(question.gold))


def ranked(names: Sequence[str], gold: set[str]) -> Values:
    """Return how well an order ranks gold passages."""
    hits = [name in gold for name in names[:10]]
    first = next((place for place, hit in enumerate(hits, 1) if hit), None)
    best = sum(1 / math.log2(place + 1) for place in range(1, min(10, len(gold)) + 1))
    gain = sum(1 / math.log2(place + 1) for place, hit in enumerate(hits, 1) if hit)
    return {
        "MRR@10": 1 / first if first else 0.0,
        "R@5": sum(hits[:5]) / min(5, len(gold)),
        "nDCG@10": gain / best,
    }
