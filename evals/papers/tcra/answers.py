"""TCRA-LLM, figure 3: right answers by the number of passages."""

from __future__ import annotations

from dataclasses import replace
from types import MappingProxyType

from evals import pooled
from evals.papers.bioasq import Literature, Question, short
from evals.papers.suite import Answered, Asked, Given, Item, Published, Values
from orchestrator.evaluation.simulation import is_right
from posology.llm.offline.replies import NOTICE
from posology.types import Answer, Dose, Refusal, Retrieval, Task

#: passages that are retrieved, and the paper's choice
MOST, K = 10, 3
CORPUS = (
    "The paper's 1,000 multiple-choice questions on infants' food are not published. These are BioASQ's factoid and list "
    "questions with exact answers, of the part that the packaged cross-encoder never saw; a passage is one article's "
    "expert snippets, 40 words in the mean."
)
RIGHT = "share of right answers: the answer has all words of an exact one, stemmed; of a simulated model, it cites the gold"


def asked_of(question: Question, retrieval: Retrieval) -> Asked:
    """Return a question as a reader is asked, in one call over all passages."""
    return Asked(
        task=Task(query=question.query, retrieval=retrieval, model="", max_tokens=None),
        dose=Dose(strategy="direct"),
        gold=question.gold,
    )


def right(question: Question, asked: Asked, answered: Answered) -> bool:
    """Return whether an answer is right."""
    if answered.profile is not None:
        return is_right(answered.outcome, asked.gold)
    outcome = answered.outcome
    return isinstance(outcome, Answer) and pooled.holds(
        outcome.text.replace(NOTICE, ""), question.answers
    )


def of_first(retrieval: Retrieval, k: int) -> Retrieval:
    """Return a retrieval of the first passages alone."""
    return replace(retrieval, passages=retrieval.passages[:k])


class Passages(Literature):
    """One to ten passages, in one call."""

    paper = "TCRA-LLM"
    name = "tcra-k"
    title = "right answers by the number of passages, 1 to 10"
    place = "figure 3 and table 4"
    questions = 121
    readers = ("simulated", "offline")
    measures = MappingProxyType(
        {
            "right": RIGHT,
            "refused": "share of questions that are refused",
            "retrieved": "share of questions of which a gold passage is shown",
        }
    )
    published = (
        Published(arm="k = 1", measure="right", value=0.891, of="GPT-3.5-turbo", source="table 4"),
        Published(arm="k = 3", measure="right", value=0.909, of="GPT-3.5-turbo", source="table 5"),
    )
    differences = (
        CORPUS,
        "Figure 3 is a picture, from 86 to 91 %, with its best at k = 3.",
        (
            "Retrieval is by all-MiniLM-L6-v2, without next-sentence prediction, which needs a BERT with its head "
            "(`POSOLOGY_RERANKER=nsp:FOLDER`)."
        ),
    )

    def items(self, given: Given) -> list[Item]:
        """Return every question with so many passages."""
        bench, asked = self.bench(given, short)
        found = bench.retrieve(asked, MOST, "dense")
        return [
            Item(question=one.id, arm=f"k = {k}", content=(one, of_first(found[one.id], k)))
            for one in asked
            for k in range(1, MOST + 1)
        ]

    def asked(self, item: Item) -> Asked:
        """Return an item as a reader is asked."""
        return asked_of(*item.content)

    def graded(self, item: Item, asked: Asked, answered: Answered) -> Values:
        """Return the measures of an answer."""
        question: Question = item.content[0]
        shown = [one.passage.id for one in asked.task.retrieval.passages]
        return {
            "right": float(right(question, asked, answered)),
            "refused": float(isinstance(answered.outcome, Refusal)),
            "retrieved": float(any(name in question.gold for name in shown)),
        }
