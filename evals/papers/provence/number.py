"""Provence, figure 3, middle: how many sentences are left of a passage, beside its gold ones."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import replace
from types import MappingProxyType

from evals.papers.bioasq import Literature
from evals.papers.provence.context import CORPUS, TRAINED, Context, K
from evals.papers.rows import Result
from evals.papers.suite import Given, Item, Values
from posology.types import Retrieval


class Number(Literature):
    """The number of sentences that the pruner leaves of a passage, beside the number of gold ones."""

    paper = "Provence"
    reads = False
    name = "provence-sentences"
    title = "sentences left of a passage, beside its gold sentences"
    place = "figure 3, middle"
    questions = 400
    measures = MappingProxyType(
        {
            "gold": "gold sentences of the passage",
            "left": "sentences of it that the pruner leaves",
            "off by at most one": "whether the two numbers differ by at most one",
        }
    )
    differences = (
        CORPUS,
        TRAINED,
        "The experts' snippets stand for the labels of Llama-3-8B.",
        "A passage without gold sentences is retrieved for the question, or drawn from the corpus (`drawn`).",
    )
    #: more count as this many
    most = 4

    def items(self, given: Given) -> list[Item]:
        """Return every retrieved passage of every question, and one that is drawn."""
        bench, asked = self.bench(given)
        found = bench.retrieve(asked, K)
        items = []
        for one, other in zip(asked, [*asked[1:], asked[0]], strict=True):
            context = Context(question=one, retrieval=found[one.id])
            stranger = Context(question=one, retrieval=_beside(found[one.id], found[other.id]))
            for at, gold in enumerate(context.gold):
                arm = "with gold" if gold.any() else "retrieved, without gold"
                items.append(Item(question=f"{one.id}/{at}", arm=arm, content=(context, at)))
            if not stranger.gold[-1].any():
                items.append(Item(question=f"{one.id}/drawn", arm="drawn", content=(stranger, -1)))
        return items

    def measured(self, item: Item) -> Values:
        """Return the numbers of one passage."""
        context, at = item.content
        gold = int(context.gold[at].sum())
        kept = context.left.get(context.retrieval.passages[at].passage.id, 0)
        return {
            "gold": float(gold),
            "left": float(kept),
            "off by at most one": float(abs(gold - kept) <= 1),
        }

    def tables(self, rows: Sequence[Result]) -> Iterator[str]:
        """Yield the shares of passages with so many gold sentences that were left with so many."""
        counts = Counter(
            (min(self.most, int(r.values["gold"] or 0)), min(self.most, int(r.values["left"] or 0)))
            for r in rows
        )
        numbers = range(self.most + 1)
        names = [*map(str, numbers[:-1]), f"{self.most} or more"]
        yield from ("", "## Sentences left, of passages with so many gold ones", "")
        yield f"| gold | passages | {' | '.join(f'{name} left' for name in names)} |"
        yield f"| --- | ---: |{' ---: |' * len(names)}"
        for gold, name in zip(numbers, names, strict=True):
            own = [counts[gold, kept] for kept in numbers]
            cells = " | ".join(f"{n / sum(own):.2f}" if sum(own) else "–" for n in own)
            yield f"| {name} | {sum(own)} | {cells} |"


def _beside(own: Retrieval, other: Retrieval) -> Retrieval:
    """Return a retrieval with the first passage of another in place of its last."""
    stranger = other.passages[0]
    kept = [one for one in own.passages[:-1] if one.passage.id != stranger.passage.id]
    return replace(own, passages=(*kept, stranger))
