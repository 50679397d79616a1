"""Questions over the whole pool with the passages that a re-ranker would order, and what ranked them."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from evals.preflight_cases import build
from evals.retrieval import pubmedqa, scifact
from posology.index.embedders.sentence_transformer import SentenceTransformerEmbedder
from posology.index.search.fusion import fuse
from posology.index.search.retriever import DEPTH, RRF_K
from posology.index.store import Index
from posology.types import EncodedQuery, Retrieved

#: of the fused ranking, re-ranked
CANDIDATES = 20
#: questions of each set
TAKEN = {"SciFact": 350, "PubMedQA": 250}


@dataclass(frozen=True, kw_only=True, slots=True, eq=False)
class Asked:
    """A question, its key documents, and what was found for it."""

    origin: str
    text: str
    #: ids of the passages that answer it
    gold: frozenset[str]
    encoded: EncodedQuery
    #: best ids, at least :data:`CANDIDATES` of each where there are as many
    dense: tuple[str, ...]
    bm25: tuple[str, ...]
    fused: tuple[str, ...]
    #: of the fused ones, the larger the better, shape ``(len(fused),)``
    scores: tuple[float, ...]

    @property
    def candidates(self) -> tuple[str, ...]:
        """What is re-ranked, in the fused order."""
        return self.fused[:CANDIDATES]


def asked(data: Path, folder: Path, embedder: SentenceTransformerEmbedder) -> list[Asked]:
    """A seeded sample of both sets, mixed, so that any number of the first ones is one too.

    Args:
        data: see its README.
        folder: of an index of the pool with its given vectors; made where it is not there.
        embedder: that of the given vectors.
    """
    if not (folder / "complete").exists():
        build(data, folder, embedder)
    view = Index.open(folder / "index").view()
    rng = random.Random(6)
    drawn = []
    for origin, questions in (("SciFact", scifact(data)), ("PubMedQA", pubmedqa(data))):
        for place, question in enumerate(rng.sample(questions, min(TAKEN[origin], len(questions)))):
            drawn.append((place / TAKEN[origin], origin, question))
    found = []
    for _, origin, question in sorted(drawn, key=lambda one: one[:2]):
        encoded = embedder.encode_query(question.text)
        dense, bm25 = view.dense_rows(encoded.vector, DEPTH), view.bm25_rows(question.text, DEPTH)
        runs = [dense, bm25, fuse([dense, bm25], k=RRF_K)]
        best = [tuple(run.ids[:CANDIDATES]) for run in runs]
        names = view.names({row for run in best for row in run})
        by_dense, by_bm25, by_both = (tuple(names[row] for row in run) for run in best)
        found.append(
            Asked(
                origin=origin,
                text=question.text,
                gold=question.gold,
                encoded=encoded,
                dense=by_dense,
                bm25=by_bm25,
                fused=by_both,
                scores=tuple(hit.score for hit in runs[2].hits[:CANDIDATES]),
            )
        )
    return found


def passages(folder: Path, questions: Sequence[Asked]) -> dict[str, Retrieved]:
    """All candidates as the index has them: with their given vectors, without sentences' vectors."""
    view = Index.open(folder / "index").view()
    wanted = list(dict.fromkeys(i for q in questions for i in q.candidates))
    found: dict[str, Retrieved] = {}
    for begin in range(0, len(wanted), 500):
        part = wanted[begin : begin + 500]
        found.update(zip(part, view.fetch(part), strict=True))
    return found
