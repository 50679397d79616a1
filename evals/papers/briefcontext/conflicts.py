"""BriefContext, supplementary table 2: conflicts between partitions, on RAMDocs and HealthVer."""

from __future__ import annotations

import random
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import islice
from typing import ClassVar

from evals.conflicts.cases import FILES, Case, healthver, ramdocs
from evals.papers.briefcontext.position import DOSES, PARTS, RAG
from evals.papers.briefcontext.resolution import CONFLICTS, conflict, versus
from evals.papers.literature import retrieval
from evals.papers.report import FITTED, PREDICTED
from evals.papers.rows import Result
from evals.papers.suite import Answered, Asked, Given, Item, Suite, Values
from orchestrator.evaluation.simulation import is_right
from posology.query import make_query
from posology.types import Answer, Dose, Form, Passage, Refusal, Sentence, Task
from strategies.briefcontext.answers import agree
from strategies.briefcontext.strategy import DEFAULT_SIZE
from training.gold import rows as rows_of
from training.pruner_cases import part_of

RAMDOCS, HEALTHVER = "RAMDocs", "HealthVer"


@dataclass(frozen=True, kw_only=True, slots=True, eq=False)
class Posed:
    """A case by one method, its passages in a drawn order."""

    case: Case
    dose: Dose
    #: passages that give a right answer
    right: tuple[Passage, ...]
    #: short answer or verdict of every passage that gives one, by its id
    answers: Mapping[str, str]


class Conflicts(Suite):
    """Questions whose passages contradict each other, by RAG and by BriefContext whose partitions answer."""

    name = "briefcontext-conflicts"
    title = "conflicts between partitions that answer, and BriefContext against RAG, on RAMDocs and HealthVer"
    paper, place = "BriefContext", "table S2 and figure 4"
    files = FILES
    questions = 1_000
    measures: ClassVar[Mapping[str, str]] = {
        "right": "share of right answers: RAMDocs a right answer and no wrong one, HealthVer the verdict of most of the evidence; of "
        "a simulated model, an answer that rests on a right passage",
        **CONFLICTS,
        "refused": "share of questions that are refused",
    }
    differences = (
        "The paper's conflicts are of 105 PubMedQA questions; that set-up is part of `briefcontext-position`.",
        "A simulated model takes a contradicting passage in as it does a right one.",
        "If both are taken in, it decides rightly at the rate of table S2, however many passages are on each side.",
        "The offline reader gives no short answers, so that it has no conflicts.",
        "HealthVer: only claims that no packaged model was trained on, with evidence that is not evenly split.",
    )

    def items(self, given: Given) -> list[Item]:
        """Return every case by both methods; at most so many of each set."""
        sets = {RAMDOCS: _ramdocs(given), HEALTHVER: _healthver(given)}
        return [
            Item(question=f"{name} {place}", arm=f"{method}, {name}", content=posed)
            for name, cases in sets.items()
            for place, (case, answers) in enumerate(islice(cases, given.questions))
            for method, posed in _posed(case, answers, given.seed)
        ]

    def asked(self, item: Item) -> Asked:
        """Return an item as a reader is asked."""
        posed: Posed = item.content
        query = make_query(posed.case.question, form=posed.case.form)
        return Asked(
            task=Task(
                query=query,
                retrieval=retrieval(query, posed.case.passages),
                model="",
                max_tokens=None,
                partitions="answer",
            ),
            dose=posed.dose,
            partition_size=DEFAULT_SIZE,
            gold={one.id: (Sentence(start=0, end=len(one.text)),) for one in posed.right},
            answers=posed.answers,
        )

    def graded(self, item: Item, asked: Asked, answered: Answered) -> Values:
        """Return the measures of an answer."""
        case, outcome = item.content.case, answered.outcome
        if answered.profile is not None:
            right = is_right(outcome, asked.gold)
        else:
            right = isinstance(outcome, Answer) and _holds(case, outcome)
        return {
            "right": float(right) if answered.verdicts or case.form is Form.FREE else None,
            **conflict(answered, right=right),
            "refused": float(isinstance(outcome, Refusal)),
        }

    def tables(self, rows: Sequence[Result]) -> Iterator[str]:
        """Yield conflicts, how they were resolved, and who wins."""
        settings = {name: (f"{PARTS}, {name}", f"{RAG}, {name}") for name in (RAMDOCS, HEALTHVER)}
        basis = (
            f"the rate at which a call resolves a conflict was *{FITTED}* to table S2; numbers of conflicts, wins, ties and losses "
            f"are *{PREDICTED}*"
        )
        return versus(rows, settings, basis)


def _ramdocs(given: Given) -> Iterator[tuple[Case, dict[str, str]]]:
    """Yield cases with what each document answers; documents of one question may give several right answers."""
    for case, row in zip(ramdocs(given.data), rows_of(given.data / FILES[1]), strict=True):
        yield (
            case,
            {
                passage.id: document["answer"]
                for passage, document in zip(case.passages, row["documents"], strict=True)
                if document["type"] in ("correct", "misinfo")
            },
        )


def _healthver(given: Given) -> Iterator[tuple[Case, dict[str, str]]]:
    """Yield claims that no packaged model was trained on, with the verdict of each evidence that takes a side."""
    for case in healthver(given.data):
        if case.right and part_of(f"healthver:{case.question}") != "train":
            (sides,) = case.claims.values()
            yield (
                case,
                dict.fromkeys(sides.supporting, "yes") | dict.fromkeys(sides.opposing, "no"),
            )


def _posed(case: Case, answers: Mapping[str, str], seed: int) -> Iterator[tuple[str, Posed]]:
    drawn = random.Random(f"{seed} {case.question}")
    case = replace(case, passages=tuple(drawn.sample(case.passages, len(case.passages))))
    right = tuple(one for one in case.passages if answers.get(one.id) in _sides(case, answers))
    for method, dose in DOSES.items():
        yield method, Posed(case=case, dose=dose, right=right, answers=answers)


def _sides(case: Case, answers: Mapping[str, str]) -> frozenset[str]:
    """Return the answers of passages that are right."""
    return (
        frozenset(case.right)
        if case.form is Form.YES_NO
        else frozenset(answers.values()) - frozenset(case.wrong)
    )


def _holds(case: Case, outcome: Answer) -> bool:
    """Return whether an answer gives a right answer, and none of the wrong ones."""
    if case.form is Form.YES_NO:
        return outcome.choice in case.right
    return any(agree(gold, outcome.text) for gold in case.right) and not any(
        agree(wrong, outcome.text) for wrong in case.wrong
    )
