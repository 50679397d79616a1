"""TCRA-LLM, table 5: retrieval by meaning, by words, and in two stages."""

from __future__ import annotations

from types import MappingProxyType
from typing import TYPE_CHECKING

from evals.papers.bioasq import Literature
from evals.papers.suite import Given, Item, Published, Values
from evals.papers.tcra.answers import K

if TYPE_CHECKING:
    from posology.types import Mode

#: the arm, its mode, the passages of the first stage, and the paper's accuracy
STAGES: tuple[tuple[str, Mode, int, float], ...] = (
    ("dense", "dense", 10, 0.909),
    ("dense, then BM25 of 10", "dense>bm25", 10, 0.897),
    ("dense, then BM25 of 100", "dense>bm25", 100, 0.880),
    ("BM25", "bm25", 10, 0.747),
    ("BM25, then dense of 10", "bm25>dense", 10, 0.893),
    ("BM25, then dense of 100", "bm25>dense", 100, 0.898),
)
FUSED: Mode = "fused"
#: places that are looked at
_DEPTH = 10


class Stages(Literature):
    """Six ways to retrieve, and the fused one."""

    paper = "TCRA-LLM"
    name = "tcra-retrieval"
    title = "one and two stages of retrieval"
    place = "table 5"
    reads = False
    measures = MappingProxyType(
        {
            f"hit@{K}": f"share of questions of which a gold passage is among the first {K}",
            "MRR@10": "reciprocal place of the first gold passage among ten",
        }
    )
    published = tuple(
        Published(
            arm=arm,
            measure=f"hit@{K}",
            value=value,
            of="accuracy of GPT-3.5-turbo, another measure",
            source="table 5",
        )
        for arm, _, _, value in STAGES
    )
    differences = (
        (
            "The paper's measure is a language model's accuracy with the first 3 passages; this is the share of questions for "
            "which there is something to read. Only the order of the arms can be compared."
        ),
        (
            "BioASQ's questions that the packaged cross-encoder did not learn from, over the snippets of their articles; "
            "all-MiniLM-L6-v2 in place of the paper's embeddings."
        ),
        "Table 4 (next-sentence prediction) needs a BERT with its head: `POSOLOGY_RERANKER=nsp:FOLDER`.",
    )

    def items(self, given: Given) -> list[Item]:
        """Return every question by every way."""
        bench, asked = self.bench(given)
        ways = [(arm, mode, depth) for arm, mode, depth, _ in STAGES]
        ways.append((FUSED, FUSED, 100))
        found = {arm: bench.retrieve(asked, _DEPTH, mode, depth=depth) for arm, mode, depth in ways}
        return [
            Item(question=one.id, arm=arm, content=(one, found[arm][one.id]))
            for one in asked
            for arm in found
        ]

    def measured(self, item: Item) -> Values:
        """Return where the first gold passage is."""
        question, retrieval = item.content
        place = next(
            (i for i, p in enumerate(retrieval.passages, 1) if p.passage.id in question.gold), None
        )
        return {
            f"hit@{K}": float(place is not None and place <= K),
            "MRR@10": 1 / place if place else 0.0,
        }
