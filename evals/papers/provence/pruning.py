"""Provence, figure 2 and table 9: gold kept and tokens left on BioASQ."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import lru_cache, partial
from types import MappingProxyType

import numpy as np

from evals import pooled
from evals.compressors.measure import Chance, Whole
from evals.papers.bioasq import Literature
from evals.papers.provence.context import CORPUS, PRUNER, TRAINED, Context, K
from evals.papers.suite import Given, Item, Published, Values
from posology.seams import Compressor, Rewriter
from posology.types import Compressed, Retrieval, Retrieved, Sentence
from prompts.fence import shown
from strategies.compression import make
from strategies.compression.late.pruner import Pruner
from strategies.compression.leancontext import LeanContext
from strategies.compression.parts import Parts
from strategies.compression.results import of_sentences
from strategies.evidence import whole


def compressors() -> dict[str, tuple[Callable[[], Compressor], float | None]]:
    """Return what is compared, by the name of the arm: what makes it, and the share that it keeps."""
    parts = Parts()
    found: dict[str, tuple[Callable[[], Compressor], float | None]] = {
        "whole": (Whole, None),
        PRUNER: (Pruner, None),
    }
    for keep in (0.1, 0.2, 0.4):
        found |= {
            f"{PRUNER}, keep {keep}": (Pruner, keep),
            f"leancontext, keep {keep}": (LeanContext, keep),
            f"nearest sentences, keep {keep}": (LeanContext.top, keep),
            f"chance, keep {keep}": (Chance, keep),
        }
    for n in (1, 2, 3):
        found[f"top {n} of each passage"] = (partial(TopOfEach, n), None)
    found["selective_context_sentence, keep 0.4"] = (
        lambda: _compressor("selective_context_sentence", parts),
        0.4,
    )
    return found


def _compressor(name: str, parts: Parts) -> Compressor:
    made = make(name, parts)
    assert not isinstance(made, Rewriter)
    return made


class TopOfEach:
    """Leaves the n sentences of each passage that are nearest to the question, as the extractive RECOMP does."""

    extractive = True

    def __init__(self, n: int) -> None:
        self.n = n
        self.name = f"top_{n}_of_each"

    def __call__(self, retrieval: Retrieval, keep: float | None) -> Compressed:  # noqa: ARG002
        """Return whole sentences."""
        kept = [np.zeros(0, np.bool_)]
        for one in retrieval.passages:
            scores = one.sentence_vectors.astype(np.float32) @ retrieval.query_vector
            flags = np.zeros(len(one.sentences), np.bool_)
            flags[np.argsort(-scores, kind="stable")[: self.n]] = True
            kept.append(flags)
        return of_sentences(retrieval, np.concatenate(kept), compressor=self.name)

    def expected_ratio(self, keep: float | None) -> float:  # noqa: ARG002
        """Unknown beforehand: all."""
        return 1.0

    def seconds(self, retrieval: Retrieval, keep: float | None) -> float:  # noqa: ARG002
        """None to speak of."""
        return 0.0


class Pruning(Literature):
    """Tokens left and gold kept, by the pruner and by simpler choices of sentences."""

    paper = "Provence"
    reads = False
    name = "provence"
    title = "gold kept and tokens left on BioASQ, out of the pruner's domain"
    place = "figure 2 and table 9 (BioASQ)"
    measures = MappingProxyType(
        {
            "compression": "share of the context's tokens that is pruned",
            "gold": "share of the retrieved gold sentences that is left whole",
            "all gold": "whether every retrieved gold sentence is left",
            "answer": "whether an exact answer (factoid and list questions) that the context holds is left",
            "emptied": "share of the passages without gold of which nothing is left",
        }
    )
    published = tuple(
        Published(arm=PRUNER, measure="compression", value=value, of=of, source="table 9 (BioASQ)")
        for value, of in (
            (0.490, "Provence with re-ranker, T = 0.1"),
            (0.674, "Provence with re-ranker, T = 0.5"),
            (0.513, "Provence alone, T = 0.1"),
        )
    ) + tuple(
        Published(
            arm=f"top {n} of each passage",
            measure="compression",
            value=value,
            of=f"RECOMP extractive, top {n}",
            source="table 9 (BioASQ)",
        )
        for n, value in ((3, 0.422), (2, 0.548), (1, 0.697))
    )
    differences = (
        CORPUS,
        TRAINED,
        (
            "The paper's other axis, the judged answers of Llama-2-7B (80.7 whole, 80.6 pruned), needs a language model. Gold "
            "kept stands in its place: what is lost there, no reader can answer from."
        ),
        "Passages are the fused ranking's first 5, not SPLADE-v3 re-ranked.",
        "LLMLingua, RECOMP's and DSLR's models are not compared; RECOMP's rule is, by the packaged sentence vectors.",
    )

    def items(self, given: Given) -> list[Item]:
        """Return every question in every arm."""
        bench, asked = self.bench(given)
        found = bench.retrieve(asked, K)
        made = {name: (make(), keep) for name, (make, keep) in compressors().items()}
        contexts = [Context(question=one, retrieval=found[one.id]) for one in asked]
        return [
            Item(question=one.question.id, arm=arm, content=(one, compressor, keep))
            for one in contexts
            for arm, (compressor, keep) in made.items()
        ]

    def measured(self, item: Item) -> Values:
        """Return what one compressor leaves of one question's context."""
        context, compressor, keep = item.content
        return left(context, compressor(context.retrieval, keep))


def left(context: Context, compressed: Compressed) -> Values:
    """Return what is left of a context."""
    passages = context.retrieval.passages
    spans = {one.passage.id: one.sentences for one in compressed.excerpts}
    kept = [
        _whole(one, s) if (s := spans.get(one.passage.id, ())) else np.zeros(len(one.sentences))
        for one in passages
    ]
    gold = context.gold
    bearing = np.concatenate([k[g] for k, g in zip(kept, gold, strict=True)] or [np.zeros(0)])
    others = [one.passage.id for one, g in zip(passages, gold, strict=True) if not g.any()]
    before = sum(_tokens(shown(one)) for one in whole(passages))
    after = sum(_tokens(shown(one)) for one in compressed.excerpts)
    said = " ".join(s.of(e.passage.text) for e in compressed.excerpts for s in e.sentences)
    return {
        "compression": 1 - after / before if before else None,
        "gold": float(bearing.mean()) if len(bearing) else None,
        "all gold": float(bearing.all()) if len(bearing) else None,
        "answer": (
            float(pooled.holds(said, context.question.answers)) if context.answerable else None
        ),
        "emptied": float(np.mean([name not in spans for name in others])) if others else None,
    }


def _whole(one: Retrieved, spans: Sequence[Sentence]) -> np.ndarray:
    return np.array(
        [any(s.start <= x.start and x.end <= s.end for s in spans) for x in one.sentences], float
    )


@lru_cache(maxsize=50_000)
def _tokens(text: str) -> int:
    return pooled.counter()(text)
