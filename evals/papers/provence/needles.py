"""Provence, figure 3, left: needles of our own in passages that have nothing to do with them."""

from __future__ import annotations

import random
from types import MappingProxyType

from evals.papers.bioasq import Literature, open_bench
from evals.papers.provence.context import TRAINED
from evals.papers.provence.mixed import Kitchen, sentences
from evals.papers.suite import Given, Item, Values

#: question; its answer in one sentence; and in two
NEEDLES = (
    (
        "Which drug was given against the altitude headache?",
        "The climbers were given ibuprofen against the altitude headache.",
        "Against the altitude headache the climbers were given a drug. It was ibuprofen.",
    ),
    (
        "How many nurses took part in the handwashing survey?",
        "The handwashing survey was answered by 214 nurses.",
        "Nurses took part in a survey on handwashing. There were 214 of them.",
    ),
    (
        "Who designed the folding wheelchair?",
        "The folding wheelchair was designed by Marta Lindqvist.",
        "The folding wheelchair had one designer. Her name was Marta Lindqvist.",
    ),
    (
        "Does green tea shorten the healing of burns?",
        "Green tea did not shorten the healing of burns.",
        "The healing of burns was compared with and without green tea. It took as long with the tea.",
    ),
    (
        "When was the vaccination ward of Tromsø opened?",
        "The vaccination ward of Tromsø was opened in March 1957.",
        "Tromsø has a vaccination ward. It was opened in March 1957.",
    ),
)


class Needles(Literature):
    """Needles of our own in passages that have nothing to do with them."""

    paper = "Provence"
    reads = False
    name = "provence-needles"
    title = "five needles of one and of two sentences at five places of a passage"
    place = "figure 3, left"
    #: passages
    questions = 10
    places = (0.0, 0.25, 0.5, 0.75, 1.0)
    measures = MappingProxyType(
        {
            "gold": "share of the needle's sentences that is left",
            "compression": "share of the sentences that is pruned",
        }
    )
    differences = (
        TRAINED,
        "Needles are our own; hay is BioASQ's passages of five to nine sentences, one at a time.",
    )

    def arm(self, length: int, place: float) -> str:
        """Return the name of an arm."""
        return f"{length} sentence{'s' if length > 1 else ''}, at {place:.0%}"

    def items(self, given: Given) -> list[Item]:
        """Return every needle at every place of every passage."""
        bench = open_bench(given.data, given.work)
        kitchen = Kitchen(bench=bench)
        hay = [p.text for p in bench.corpus.passages if 5 <= len(sentences(p.text)) <= 9]
        random.Random(given.seed).shuffle(hay)
        return [
            Item(
                question=f"{number}/{needle}",
                arm=self.arm(length, place),
                content=(NEEDLES[needle], length, place, text, kitchen),
            )
            for number, text in enumerate(hay[: given.questions])
            for needle in range(len(NEEDLES))
            for length in (1, 2)
            for place in self.places
        ]

    def measured(self, item: Item) -> Values:
        """Return which sentences of a needle are left."""
        (asked, *answers), length, place, text, kitchen = item.content
        hay, needle = sentences(text), answers[length - 1]
        hay.insert(round(place * len(hay)), needle)
        found: Values = kitchen.pruned(asked, [" ".join(hay)], sentences(needle))
        return found
