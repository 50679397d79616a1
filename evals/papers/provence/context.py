"""A question with its passages, of which some sentences are gold."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache, cached_property

import numpy as np

from evals import pooled
from evals.papers.bioasq import Question
from posology.types import Retrieval
from strategies.compression.late.pruner import Pruner

#: passages a question, as in the paper
K = 5
PRUNER = "pruner"
CORPUS = (
    "BioASQ's file has no abstracts. A passage is one article's expert snippets, 40 words in the mean; snippets that "
    "experts chose for other questions count as not gold, though some may answer. Of 1,983 questions those are asked "
    "that the packaged cross-encoder did not learn from, over their articles."
)
TRAINED = (
    "The pruner is the packaged one: a head over stored token vectors, not a cross-encoder that reads question and "
    "passage together, and trained on human labels of other sets."
)


@dataclass(frozen=True, kw_only=True, eq=False)
class Context:
    """A question with what is compressed for it."""

    question: Question
    retrieval: Retrieval

    @cached_property
    def gold(self) -> list[np.ndarray]:
        """Which sentences of each passage bear the answer."""
        return [
            np.array([self.question.bears(one.passage.id, s) for s in one.sentences], np.bool_)
            for one in self.retrieval.passages
        ]

    @cached_property
    def left(self) -> dict[str, int]:
        """Number of sentences that the packaged pruner leaves of each passage; none: it is missing."""
        found = _pruner()(self.retrieval, None).excerpts
        return {one.passage.id: len(one.sentences) for one in found}

    @cached_property
    def answerable(self) -> bool:
        """Whether the passages hold an exact answer."""
        text = " ".join(one.passage.text for one in self.retrieval.passages)
        return pooled.holds(text, self.question.answers)


@cache
def _pruner() -> Pruner:
    return Pruner()
