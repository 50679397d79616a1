"""Whether the texts of a call answer its question: the cross-encoder's probability and likeness in one line.

Fitted on dev documents of five sets, each counting the same: ``python -m evals.reader --dev`` (decision 49).
"""

from __future__ import annotations

import math
from typing import NamedTuple

#: Windows, the most probable first, whose likeness to the question is measured as well.
COMPARED = 3
#: Probabilities beyond are taken for these.
_LEAST = 1e-4


class Evidence(NamedTuple):
    """Figures by which it is decided whether texts answer a question."""

    #: log-odds of the window that answers most probably
    odds: float
    #: likeness of the best sentence of the :data:`COMPARED` windows, -1 to 1
    likeness: float
    #: logarithm of the number of the question's words: no sentence is like every word of a long one
    length: float

    @classmethod
    def of(cls, question: str, *, answers: float, likeness: float) -> Evidence:
        """Return the evidence.

        Args:
            question: its text.
            answers: probability that the best window answers.
            likeness: of the best sentence.
        """
        within = min(max(answers, _LEAST), 1 - _LEAST)
        return cls(
            odds=math.log(within / (1 - within)),
            likeness=likeness,
            length=math.log(max(1, len(question.split()))),
        )


#: slopes of the three, and offset
SLOPES, OFFSET = Evidence(odds=0.82, likeness=12.81, length=0.99), -10.92


def probability(evidence: Evidence) -> float:
    """Return the probability that the texts answer."""
    z = OFFSET + sum(a * b for a, b in zip(SLOPES, evidence, strict=True))
    return 1 / (1 + math.exp(-z))
