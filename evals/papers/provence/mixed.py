"""Provence, figure 3, left and right: a gold sentence at places of passages of several lengths."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import product
from types import MappingProxyType

import numpy as np

from evals.compressors.pruner_latency import retrieval as encoded
from evals.papers.bioasq import Bench, Literature, Question
from evals.papers.provence.context import TRAINED, K
from evals.papers.suite import Given, Item, Values
from posology.text.sentences import split
from posology.types import Passage
from strategies.compression.late.codec import LateCodec
from strategies.compression.late.pruner import Pruner

#: passages whose sentences fill a mixture
DEPTH = 50


@dataclass(frozen=True, kw_only=True, slots=True, eq=False)
class Mixture:
    """A gold sentence among sentences of other passages."""

    question: Question
    gold: str
    others: tuple[str, ...]
    #: texts of the other passages of the context
    beside: tuple[str, ...]

    def texts(self, length: int, place: float) -> list[str]:
        """Return the context: a passage of so many sentences with the gold one at a place, and the others."""
        filling = list(self.others[: length - 1])
        filling.insert(round(place * len(filling)), self.gold)
        return [" ".join(filling), *(" ".join(sentences(t)[:length]) for t in self.beside)]


def sentences(text: str) -> list[str]:
    """Return the sentences of a text."""
    return [one.of(text) for one in split(text)]


class Mixed(Literature):
    """A suite over passages that are put together from a gold sentence and sentences of other articles."""

    questions = 40
    measures = MappingProxyType(
        {
            "gold": "whether the gold sentence is left",
            "compression": "share of the sentences that is pruned",
        }
    )
    differences = (
        TRAINED,
        (
            "Passages are put together, because BioASQ's file has no abstracts: one gold sentence, and sentences of the "
            "passages that were retrieved next for the question. Four passages of such sentences stand beside it."
        ),
    )
    #: sentences a passage, and places of the gold one, from 0, the first, to 1, the last
    lengths: Sequence[int] = (6,)
    places: Sequence[float] = (0.5,)
    #: filling sentences that a question must have
    fewest = 10

    def arm(self, length: int, place: float) -> str:
        """Return the name of an arm."""
        return f"{length} sentences, gold at {place:.0%}"

    def items(self, given: Given) -> list[Item]:
        """Return every question with its gold sentence at every place of passages of every length."""
        bench, asked = self.bench(
            given=Given(data=given.data, work=given.work, questions=10**6, seed=given.seed)
        )
        kitchen = Kitchen(bench=bench)
        found: list[Mixture] = []
        for one in asked:
            if len(found) == given.questions:
                break
            found += kitchen.mixture(one, self.fewest)
        return [
            Item(
                question=one.question.id,
                arm=self.arm(length, place),
                content=(one.question.text, one.gold, one.texts(length, place), kitchen),
            )
            for one in found
            for length, place in product(self.lengths, self.places)
        ]

    def measured(self, item: Item) -> Values:
        """Return whether the gold sentence is left."""
        asked, gold, texts, kitchen = item.content
        found: Values = kitchen.pruned(asked, texts, [gold])
        return found


@dataclass(frozen=True, kw_only=True, slots=True, eq=False)
class Kitchen:
    """Puts passages together and prunes them."""

    bench: Bench
    codec: LateCodec = field(default_factory=LateCodec.packaged)
    pruner: Pruner = field(default_factory=Pruner)

    def mixture(self, question: Question, fewest: int) -> Iterator[Mixture]:
        """Yield a mixture, if the question has a gold sentence of one sentence and enough others are retrieved."""
        texts = self.bench.corpus.texts
        gold = [
            text
            for name, spans in question.gold.items()
            for span in spans
            if len(sentences(text := span.of(texts[name]))) == 1
        ]
        found = self.bench.retrieve([question], DEPTH)[question.id]
        others = [one.passage.text for one in found.passages if one.passage.id not in question.gold]
        filling = [s for text in others for s in sentences(text)]
        if gold and len(filling) >= 5 * fewest:
            groups = [filling[i * fewest : (i + 1) * fewest] for i in range(K)]
            yield Mixture(
                question=question,
                gold=gold[0],
                others=tuple(groups[0]),
                beside=tuple(" ".join(group) for group in groups[1:]),
            )

    def pruned(self, asked: str, texts: Sequence[str], needles: Sequence[str]) -> Values:
        """Return what the pruner leaves of texts, of which the first holds the needles."""
        passages = [Passage(id=f"made:{i}", text=text) for i, text in enumerate(texts)]
        retrieval = encoded(asked, passages, self.bench.embedder, self.codec)
        compressed = self.pruner(retrieval, None)
        first = next((e for e in compressed.excerpts if e.passage.id == "made:0"), None)
        said = " ".join(s.of(first.passage.text) for s in first.sentences) if first else ""
        return {
            "gold": float(np.mean([needle in said for needle in needles])),
            "compression": 1 - compressed.kept / compressed.sentences,
        }


class Place(Mixed):
    """The gold sentence at five places of a passage."""

    paper = "Provence"
    reads = False
    name = "provence-position"
    title = "the gold sentence at 0, 25, 50, 75 and 100 % of a passage of 6 sentences"
    place = "figure 3, left (with questions of experts for needles)"
    places = (0.0, 0.25, 0.5, 0.75, 1.0)


class Length(Mixed):
    """Passages of 2, 6 and 10 sentences."""

    paper = "Provence"
    reads = False
    name = "provence-length"
    title = "passages of 2, 6 and 10 sentences"
    place = "figure 3, right"
    lengths = (2, 6, 10)
