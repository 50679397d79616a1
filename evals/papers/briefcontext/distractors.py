"""BriefContext, figure 6: the key document in the middle, among similar documents or documents drawn at random."""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar

from evals.papers.briefcontext.position import DOSES, Position, Shown, placed
from evals.papers.literature import FILES, pubmedqa
from evals.papers.suite import Given, Item, Suite

KINDS = ("similar", "random")
_K, _MIDDLE = 16, 50


class Distractors(Position):
    """Similar and random documents around the key document."""

    name = "briefcontext-distractors"
    title = "the key document in the middle of 16, among similar and among random documents"
    place = "figure 6"
    files = FILES
    measures: ClassVar[Mapping[str, str]] = Position.measures
    published = ()
    differences = (
        "Figure 6 is a picture. Only its direction is known: random documents cost less accuracy than similar ones.",
        "**Simulated models cannot show it.** They know the place of the key document and the length, not its likeness to others.",
        "The offline reader scores each passage by itself, so that nothing is lost in the middle for it.",
        *Position.differences,
    )
    #: the paper has 105; the offline reader takes a second for each row
    questions = 30
    readers = ("strong", "offline")

    def items(self, given: Given) -> list[Item]:
        """Return every question with both kinds of documents, by both methods."""
        return [
            Item(
                question=case.id,
                arm=f"{method}, {kind}",
                content=Shown(case=case, passages=placed(case, others, _K, _MIDDLE), dose=dose),
            )
            for case in pubmedqa(given, _K)
            for kind, others in zip(KINDS, (case.near, case.drawn), strict=True)
            for method, dose in DOSES.items()
        ]

    tables = Suite.tables
