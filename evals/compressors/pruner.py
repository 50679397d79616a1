"""Measures the pruner and Provence on held-out documents: shares of gold sentences, thresholds, ranks of passages.

``python -m evals.compressors.pruner --data DIR --work DIR``. Encodes the passages of held-out questions first. Figures: ``strategies/compression/models/MODEL_CARD.md``.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias

import numpy as np

from posology.index.embedders import load
from posology.types import Retrieved
from strategies.compression import provence
from strategies.compression.late.codec import LateCodec
from strategies.compression.late.features import NAMES
from strategies.compression.late.head import Head
from training.gold import WORK
from training.pruner_corpora import Corpus, coded, open_corpora
from training.pruner_scores import SHARES, Recorded, observed, together

if TYPE_CHECKING:
    from numpy.typing import NDArray

#: scores of the sentences and of the passages at some places of a case
Scorer: TypeAlias = Callable[
    [Recorded, Sequence[int]], "tuple[NDArray[np.float32], NDArray[np.float32]]"
]


def by(feature: str, of_passages: str) -> Scorer:
    """Scores sentences by one feature, and passages by another."""
    own, whole = NAMES.index(feature), NAMES.index(of_passages)

    def score(
        record: Recorded, places: Sequence[int]
    ) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
        features, sizes, _ = record.of(places)
        return features[:, own], features[np.cumsum(sizes) - sizes, whole]

    return score


def by_head(head: Head) -> Scorer:
    """Scores by the pruner."""

    def score(
        record: Recorded, places: Sequence[int]
    ) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
        features, sizes, _ = record.of(places)
        return head(features, sizes)

    return score


def by_provence(corpus: Corpus) -> Scorer:
    """Scores by Provence with the packaged cross-encoder."""
    judge = provence.judge(None)

    def score(
        record: Recorded, places: Sequence[int]
    ) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
        numbers = [record.case.passages[i] for i in places]
        shown = [
            Retrieved(
                passage=corpus.texts.passages[n],
                sentences=corpus.texts.sentences[n],
                # only words are read
                vector=np.zeros(0, np.float32),
                sentence_vectors=np.zeros((0, 0), np.int8),
            )
            for n in numbers
        ]
        judged = judge(record.case.question, shown)
        means = [one.means(len(p.sentences)) for one, p in zip(judged, shown, strict=True)]
        return (
            np.concatenate(means).astype(np.float32),
            np.array([one.score for one in judged], np.float32),
        )

    return score


def table(name: str, records: Sequence[Recorded], scorer: Scorer, threshold: float | None) -> None:
    """Print a line of shares, and what the threshold does; ``None``: the one that keeps .90."""
    scores, chars, gold, ranks = [], [], [], []
    emptied: dict[str, list[float]] = {"hard": [], "random": []}
    for record in records:
        _, sizes, rows = record.of(record.main)
        of_sentences, of_passages = scorer(record, record.main)
        scores.append(of_sentences)
        chars.append(record.chars[rows])
        gold.append(record.gold[rows])
        kinds = [record.case.kinds[i] for i in record.main]
        best = np.maximum.reduceat(of_sentences, np.cumsum(sizes) - sizes)
        emptied["hard"] += [b for b, kind in zip(best, kinds, strict=True) if kind == "hard"]
        order = np.argsort(-of_passages, kind="stable").tolist()
        ranks.append(1 / (1 + min(order.index(i) for i, k in enumerate(kinds) if k == "gold")))
        stranger = [i for i, k in enumerate(record.case.kinds) if k == "random"][-1:]
        if stranger:
            emptied["random"].append(float(scorer(record, stranger)[0].max()))
    s, c, g = np.concatenate(scores), np.concatenate(chars), np.concatenate(gold)
    order = np.argsort(-s, kind="stable")
    at = int(np.searchsorted(np.cumsum(g[order]) / g.sum(), 0.9))
    needed = np.cumsum(c[order])[at] / c.sum()
    cut = float(s[order][at]) if threshold is None else threshold
    shares = " ".join(f"{share:.2f}" for share in together(s, c, g))
    nothing = ", ".join(f"{k} {np.mean(np.array(v) < cut):.1%}" for k, v in emptied.items() if v)
    print(
        f"  {name:10s} {shares} | .90 needs {needed:.1%} | keeps {g[s >= cut].sum() / g.sum():.3f} of gold"
        f" in {c[s >= cut].sum() / c.sum():.1%}, empties {nothing} | MRR of 5 {np.mean(ranks):.3f}"
    )


def main() -> None:
    """Print the tables."""
    parser = argparse.ArgumentParser(prog="evals.compressors.pruner", description=__doc__)
    parser.add_argument("--data", type=Path, default=Path("../shared/data"))
    parser.add_argument("--work", type=Path, default=WORK / "pruner")
    parser.add_argument("--questions", type=int, help="maximum of each set")
    given = parser.parse_args()
    codec, head = LateCodec.packaged(), Head.packaged()
    print(f"codec {codec.name}, head {head.version}, threshold {head.threshold:.3f}")
    print("gold sentences kept in", " ".join(f"{s:.0%}" for s in SHARES), "of the characters")
    for corpus in open_corpora(given.data, given.work, load(None), given.questions, ("test",)):
        codes = coded(corpus.bank, codec)
        for origin in dict.fromkeys(case.origin for case in corpus.cases):
            cases = [c for c in corpus.cases if c.origin == origin and c.part == "test"]
            if origin == "squad2" or not cases:
                continue
            records = [observed(case, corpus, codes, codec, head.weights) for case in cases]
            print(f"{origin}, {len(records)} questions")
            table("cosine", records, by("cosine", "cosine_passage"), None)
            table("maxsim", records, by("maxsim_idf", "coverage"), None)
            table("pruner", records, by_head(head), head.threshold)
            table("provence", records, by_provence(corpus), provence.THRESHOLD)


if __name__ == "__main__":
    main()
