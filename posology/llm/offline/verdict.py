"""Whether the sentences found say yes or no to a question, by a judge of support."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

from posology.llm.offline.wording import asks_for_a_side
from posology.seams import SupportJudge

#: Whether an answer says what the sentences lean to. It is off until it beats the majority class clearly on
#: questions kept aside: ``python -m evals.reader --only verdicts``.
SHOWN = False
#: Sentences that are judged, best first.
JUDGED = 3
#: A verdict of less probability is none.
LEAST = 0.50
#: Where yes and no both are at least as probable, the sentences disagree.
BOTH = 0.35


@dataclass(frozen=True, kw_only=True, slots=True)
class Leaning:
    """Probabilities that sentences say yes and no; the rest says neither."""

    yes: float
    no: float


@dataclass(frozen=True, kw_only=True, slots=True)
class Verdict:
    """The answer of sentences to a yes-no question."""

    choice: Literal["yes", "no", "maybe"]
    #: 0 to 1; of ``maybe``, that the sentences take different sides
    probability: float


def lean(question: str, sentences: Sequence[str], judge: SupportJudge) -> Leaning | None:
    """Judge the best sentences; ``None``: the question takes no yes or no, or there is no sentence. Blocking.

    A sentence is judged against the question answered yes and answered no: what supports one should contradict the
    other, and the mean of both cancels a judge's bias for either word.

    Args:
        question: of any form.
        sentences: best first; the first weighs most.
        judge: gives probabilities.
    """
    if not sentences or not asks_for_a_side(question):
        return None
    read = sentences[:JUDGED]
    asked = [(f"{question} {said}", text) for said in ("Yes.", "No.") for text in read]
    affirmed, denied = np.split(judge.judge(asked).astype(np.float64), 2)
    weights = 1 / np.arange(1, len(read) + 1)
    yes, no = (
        float(np.average((one[:, 0] + other[:, 1]) / 2, weights=weights))
        for one, other in ((affirmed, denied), (denied, affirmed))
    )
    return Leaning(yes=yes, no=no)


def verdict(question: str, sentences: Sequence[str], judge: SupportJudge) -> Verdict | None:
    """Return what the best sentences say; ``None``: they do not say. See :func:`lean`."""
    leaning = lean(question, sentences, judge)
    if leaning is None:
        return None
    likely, other = max(leaning.yes, leaning.no), min(leaning.yes, leaning.no)
    if other >= BOTH:
        return Verdict(choice="maybe", probability=2 * other / (likely + other))
    if likely < LEAST:
        return None
    return Verdict(choice="yes" if leaning.yes >= leaning.no else "no", probability=likely)
