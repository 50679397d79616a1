"""Adaptive RAG: right answers, refusals and hallucinations by the number of passages, and cost against accuracy."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import ClassVar

import numpy as np

from evals.papers.literature import retrieval
from evals.papers.paragraphs import FILES, Case, squad
from evals.papers.rows import Result
from evals.papers.suite import Answered, Asked, Given, Item, Published, Suite, Values
from evals.pooled import holds, shown
from orchestrator.evaluation.simulation import is_right
from orchestrator.evaluation.simulation.profiles import PUBLISHED, read
from policies.doubling import Doubling
from posology.types import Answer, Dose, Refusal, Task

#: paragraphs at hand
MOST = 64
FIXED, OVERLAPPING, APART, LINEAR = (
    "fixed",
    "doubling, overlapping",
    "doubling, apart",
    "linear by 5",
)
_STEP = 5


def fixed(k: int) -> tuple[str, Dose]:
    """Return the arm of one call over k passages."""
    return f"{FIXED}, k {k}", Dose(strategy="direct", passages=k)


def doubling(to: int, start: int = 1) -> tuple[str, Dose]:
    """Return the arm of a ladder whose steps repeat what was shown."""
    name = OVERLAPPING if start == 1 else f"{OVERLAPPING} from {start}"
    rungs = Doubling(start=start).rungs(to)
    return f"{name}, to {to}", Dose(strategy="direct", passages=to, rungs=rungs)


def apart(to: int) -> tuple[str, Dose]:
    """Return the arm of a ladder whose steps show only the next passages."""
    rungs = Doubling(start=1, overlapping=False).rungs(to)
    dose = Dose(strategy="direct", passages=to, rungs=rungs, overlapping=False)
    return f"{APART}, to {to}", dose


def linear(to: int) -> tuple[str, Dose]:
    """Return the arm of a ladder that grows by five passages, overlapping."""
    rungs = (*range(_STEP, to, _STEP), to)
    return f"{LINEAR}, to {to}", Dose(strategy="direct", passages=to, rungs=rungs)


class _Ladders(Suite):
    """One question a paragraph, over the paragraphs nearest to it."""

    paper = "Adaptive RAG (Pathway)"
    files = FILES
    questions = 100
    arms: ClassVar[Mapping[str, Dose]]
    measures: ClassVar[Mapping[str, str]] = {
        "right": "share of answers that hold the stemmed words of a gold answer; of a simulated model, that rest on the sentence "
        "with the answer and are not misread",
        "refused": "share of questions that are refused (do not know)",
        "wrong": "share of questions that are answered wrongly (hallucinations)",
        "retrieved": "share of questions whose paragraph is among those at hand",
        "passages": "passages shown in all calls together",
    }
    differences: Sequence[str] = (
        "913 paragraphs of 24 articles, not about 2,500 of 50; all-MiniLM-L6-v2, not ADA-002; up to 64 paragraphs, not 100.",
        "Profiles follow models of other publications, not `gpt-3.5-turbo-0613`. Beyond 20 passages they are extrapolated.",
        "Refusals were fitted to the errors among the article's ten example questions, two profiles with an assumed shift.",
    )

    def items(self, given: Given) -> list[Item]:
        """Return every question in every arm."""
        return [
            Item(question=case.id, arm=arm, content=case)
            for case in squad(given, MOST)
            for arm in self.arms
        ]

    def asked(self, item: Item) -> Asked:
        """Return an item as a reader is asked."""
        case: Case = item.content
        return Asked(
            task=Task(
                query=case.query,
                retrieval=retrieval(case.query, case.near),
                model="",
                max_tokens=None,
            ),
            dose=self.arms[item.arm],
            gold={case.key: case.spans},
        )

    def graded(self, item: Item, asked: Asked, answered: Answered) -> Values:
        """Return the measures of an answer."""
        case: Case = item.content
        outcome, dose = answered.outcome, asked.dose
        refused = isinstance(outcome, Refusal)
        if answered.profile is None:
            right = isinstance(outcome, Answer) and holds(outcome.text, case.answers)
        else:
            right = is_right(outcome, asked.gold)
        at_hand = case.near[: dose.passages]
        return {
            "right": float(right),
            "refused": float(refused),
            "wrong": float(not right and not refused),
            "retrieved": float(any(one.id == case.key for one in at_hand)),
            "passages": float(sum(rung.passages for rung in outcome.rungs) or len(at_hand)),
        }


def _article() -> tuple[Published, ...]:
    told = read(PUBLISHED)["accuracy_by_passages"]
    return tuple(
        Published(
            arm=fixed(point["passages"])[0],
            measure="right",
            value=point["accuracy"] / 100,
            of=told["model"],
            source="text beside figure 1",
        )
        for point in told["points"]
    )


class ByPassages(_Ladders):
    """Accuracy, refusals and hallucinations by the number of passages."""

    name = "doubling-k"
    title = (
        "right answers, refusals and hallucinations by passages to 64, fixed, overlapping and apart"
    )
    place = "figures 1 and 2, and *How subsequent prompts relate?*"
    published = _article()
    arms: ClassVar[Mapping[str, Dose]] = dict(
        [
            *map(fixed, (1, 2, 5, 10, 20, 50, MOST)),
            *map(doubling, (2, 8, 16, MOST)),
            *map(apart, (3, 7, 15, MOST)),
        ]
    )


class Curve(_Ladders):
    """Cost against accuracy, linear beside geometric."""

    name = "doubling-curve"
    title = "cost against accuracy: fixed numbers, geometric and linear ladders to 64"
    place = "the figure of cost against accuracy, and *How to expand the prompt?*"
    arms: ClassVar[Mapping[str, Dose]] = dict(
        [
            *map(fixed, (1, 2, 4, 8, 16, 32, MOST)),
            *map(doubling, (4, 16, MOST)),
            doubling(MOST, start=2),
            *map(linear, (10, 20, MOST)),
            apart(MOST),
        ]
    )
    differences = (
        "The figure is a picture. Its text: a quarter of the cost at good accuracy; apart is clearly less accurate.",
        "Also: overlapping is as accurate as fixed to about 20 passages, and 1 point less at 50; linear costs grow as a square.",
        *_Ladders.differences,
    )

    def tables(self, rows: Sequence[Result]) -> Iterator[str]:
        """Yield each ladder's cost and accuracy beside fixed numbers and beside the geometric ladder."""
        yield from ("", "## Ladders beside fixed numbers, question by question", "")
        yield "| reader | ladder | beside | tokens | right, difference | wrong, difference |"
        yield "| --- | --- | --- | ---: | ---: | ---: |"
        found: dict[tuple[str, str], dict[str, Result]] = {}
        for row in rows:
            found.setdefault((row.reader, row.arm), {})[row.question] = row
        geometric = doubling(MOST)[0]
        for reader in dict.fromkeys(row.reader for row in rows):
            for one, other in (
                *((geometric, fixed(k)[0]) for k in (16, 32, MOST)),
                (linear(MOST)[0], geometric),
                (apart(MOST)[0], geometric),
            ):
                mine, theirs = found.get((reader, one), {}), found.get((reader, other), {})
                pairs = [(mine[name], theirs[name]) for name in mine if name in theirs]
                if pairs:
                    yield f"| {reader} | {one} | {other} | {_beside(pairs)} |"


def _beside(pairs: Sequence[tuple[Result, Result]]) -> str:
    def of(measure: str) -> np.ndarray:
        return np.array([[row.values[measure] or 0.0 for row in pair] for pair in pairs])

    tokens = of("tokens").sum(axis=0)
    differences = [shown(of(name) @ (1, -1), "+.3f") for name in ("right", "wrong")]
    return f"×{tokens[0] / tokens[1]:.2f} | {' | '.join(differences)}"
