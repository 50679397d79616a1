"""Whether other words for what a question says help to find its passage, on two sets of questions.

``python -m evals.expansion --data DIR``: abbreviations as the literature itself defines them (Schwartz and Hearst
2003), added to the words that are searched for, to what is encoded, or to both; with ``--mesh FILE``, NLM's
descriptors, their headings too. Over the 44,581 pooled abstracts, whose vectors are given.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from evals.pooled import WORK, shown
from evals.preflight_cases import FILES, build
from evals.retrieval import Question, pubmedqa, scifact
from posology.index.embedders import load
from posology.index.schema import FORMAT, SPLITTER
from posology.index.search.expansion import Abbreviations, Expander, Headings
from posology.index.search.fusion import fuse
from posology.index.search.retriever import DEPTH, RRF_K
from posology.index.store import Index
from posology.index.view import View
from posology.seams import Embedder
from posology.types import Ranking

#: which of the two searches is given the words
WAYS = ("neither", "words", "meaning", "both")


@dataclass(frozen=True, kw_only=True, slots=True)
class Asked:
    """A question and what was added to it."""

    question: Question
    added: tuple[str, ...]

    @property
    def wide(self) -> str:
        """The question with the words."""
        return f"{self.question.text} {' '.join(self.added)}".strip()


def runs(view: View, embedder: Embedder, asked: Sequence[Asked]) -> Mapping[str, list[Ranking]]:
    """Every question's fused ranking, for each of :data:`WAYS`."""
    plain = embedder.embed_queries([one.question.text for one in asked])
    wide = embedder.embed_queries([one.wide for one in asked])
    found: dict[str, list[Ranking]] = {way: [] for way in WAYS}
    for i, one in enumerate(asked):
        words = view.bm25(one.question.text, DEPTH), view.bm25(one.wide, DEPTH)
        meaning = view.dense(plain[i], DEPTH), view.dense(wide[i], DEPTH)
        for way in WAYS:
            dense, bm25 = meaning[way in ("meaning", "both")], words[way in ("words", "both")]
            found[way].append(fuse([dense, bm25], k=RRF_K))
    return found


def hits(found: Sequence[Ranking], asked: Sequence[Asked], n: int) -> np.ndarray:
    """Whether each question's passage is among the first n."""
    pairs = zip(found, asked, strict=True)
    return np.array([bool(one.question.gold & set(r.ids[:n])) for r, one in pairs], dtype=float)


def reciprocal(found: Sequence[Ranking], asked: Sequence[Asked]) -> np.ndarray:
    """One over the place of each question's passage; 0 where it is not there."""
    return np.array(
        [
            next((1 / place for place, i in enumerate(r.ids, 1) if i in one.question.gold), 0.0)
            for r, one in zip(found, asked, strict=True)
        ]
    )


def main() -> None:
    """Print a table for each expander and set."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--mesh", type=Path, help="NLM's descriptors as XML")
    where = WORK / f"pool-vectors-{FORMAT}-{SPLITTER}"
    parser.add_argument("--index", type=Path, default=where, help="made where it is not there")
    args = parser.parse_args()
    if missing := [name for name in FILES if not (args.data / name).exists()]:
        sys.exit(f"{args.data} has no {missing[0]}: name the data sets' folder with --data")
    embedder = load()
    if not (args.index / "complete").exists():
        build(args.data, args.index, embedder)
    view = Index.open(args.index / "index").view()
    expanders: dict[str, Expander] = {
        "short forms": Abbreviations(),
        "short and long forms": Abbreviations(back=True),
    }
    if args.mesh is not None:
        from posology.corpus.mesh import read_terms

        expanders["headings"] = Headings(read_terms(args.mesh))
    for name, expand in expanders.items():
        for title, questions in (
            ("PubMedQA", pubmedqa(args.data)),
            ("SciFact", scifact(args.data)),
        ):
            asked = [Asked(question=q, added=expand(q.text, view)) for q in questions]
            wider = [one for one in asked if one.added]
            print(f"{name}, {title}: {len(asked)} questions, {len(wider)} of them with other words")
            found = runs(view, embedder, asked)
            none = {n: hits(found["neither"], asked, n) for n in (1, 10)}
            before = reciprocal(found["neither"], asked)
            for way in WAYS:
                one, ten = (hits(found[way], asked, n) for n in (1, 10))
                mrr = reciprocal(found[way], asked)
                print(
                    f"  {way:8} hit@1 {one.mean():.3f}  hit@10 {ten.mean():.3f}  MRR {mrr.mean():.3f}"
                    f"  more hit@1 {shown(one - none[1], '+.4f')}  hit@10 {shown(ten - none[10], '+.4f')}"
                    f"  MRR {shown(mrr - before, '+.4f')}"
                )


if __name__ == "__main__":
    main()
