"""Choice of the sentences that the offline reader quotes, or keeps of passages to shorten.

The figures behind the numbers: ``docs/concepts/offline-reader.md``.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import accumulate, takewhile
from typing import TYPE_CHECKING

from posology.llm.offline.scores import Scored

if TYPE_CHECKING:
    from posology.seams import TokenCounter
    from posology.types import Excerpt, Sentence

#: A question whose best sentence scores less is refused. For the packaged MiniLM: the highest score that
#: keeps 90 % of the answerable questions of each dev set (decision 6).
THRESHOLD = 0.60
#: Sentences that score this much less than the best are not quoted: a choice, not fitted.
MARGIN = 0.03
#: The same for the best sentence of another passage. It is wider, because what is nearly as close
#: and stands elsewhere may contradict the best, and a reader that cannot judge must not hide it.
MARGIN_ELSEWHERE = 0.10
#: A question is refused if its texts answer it less probably (``posology/llm/offline/answering.py``): the highest that
#: keeps 90 % of the answerable questions of each of five dev sets (``python -m evals.reader --dev``, decision 49).
ANSWERS = 0.25
#: Sentences whose probability is this much less than that of the best are not quoted: a choice, not fitted.
LESS_PROBABLE = 0.20
#: The same for the best sentence of another passage.
LESS_PROBABLE_ELSEWHERE = 0.30
#: Maximum number of quotes.
MAX_QUOTES = 3
#: Share of a call's ``max_tokens`` that is filled where passages are shortened: a bound is set above what is wanted,
#: so that no reply is cut, and how many words are wanted stands only in the messages.
FILLED = 0.5


@dataclass(frozen=True, kw_only=True, slots=True)
class Rule:
    """Scores that sentences need to be quoted."""

    #: a question whose best score is less is refused
    threshold: float
    margin: float
    margin_elsewhere: float
    #: least score of a second sentence of the same passage
    least: float


#: for scores of likeness
LIKENESS = Rule(
    threshold=THRESHOLD, margin=MARGIN, margin_elsewhere=MARGIN_ELSEWHERE, least=THRESHOLD
)
#: for probabilities of answering
PROBABILITY = Rule(
    threshold=ANSWERS, margin=LESS_PROBABLE, margin_elsewhere=LESS_PROBABLE_ELSEWHERE, least=0.0
)


@dataclass(frozen=True, kw_only=True, slots=True)
class Said:
    """The words of an excerpt that answer a question."""

    #: sentence that they stand in, scored by the probability that its excerpt answers
    sentence: Scored
    #: their place in the passage's text
    span: Sentence


@dataclass(frozen=True, kw_only=True)
class Scores:
    """Scores of a call's sentences, and the rule that they are quoted by."""

    #: best first
    read: list[Scored]
    #: sentences that were shown and not read
    unread: list[Scored] = field(default_factory=list)
    #: makes :attr:`best`, which not every stage of a job needs
    weigh: Callable[[], float]
    rule: Rule
    #: answers by a reader that finds their words, most probable first
    said: Sequence[Said] = ()

    @cached_property
    def best(self) -> float:
        """Return the score that the rule's threshold is for."""
        return self.weigh()


def choose(scores: Scores, *, judged: bool = False) -> list[Scored]:
    """Return the sentences to quote, best first; none if the best is below the threshold.

    Args:
        scores: of a call's sentences.
        judged: they were chosen once before, in their passages: alone they score otherwise, so the
            threshold is not for them.
    """
    scored, rule = scores.read, scores.rule
    if not scored or (not judged and scores.best < rule.threshold):
        return []
    top, least_of_all = scored[0].score, -1.0 if judged else rule.least
    chosen, quoted = [scored[0]], {scored[0].excerpt}
    for one in scored[1:]:
        again = one.excerpt in quoted
        # the threshold tells whether there is an answer; once there is, what stands against it is
        # to be seen, too
        least = max(least_of_all, top - rule.margin) if again else top - rule.margin_elsewhere
        if len(chosen) < MAX_QUOTES and one.score >= least:
            chosen.append(one)
            quoted.add(one.excerpt)
    return chosen


def fill(
    scored: Sequence[Scored], excerpts: Sequence[Excerpt], count: TokenCounter, tokens: int
) -> list[Scored]:
    """Return the best sentences that fit :data:`FILLED` of so many tokens, at least one.

    Args:
        scored: best first.
        excerpts: that they are of.
        count: of tokens.
        tokens: that the reply may have.
    """
    texts = (one.sentence.of(excerpts[one.excerpt].passage.text) for one in scored)
    sums = accumulate(map(count, texts))
    fit = sum(1 for _ in takewhile(lambda total: total <= FILLED * tokens, sums))
    return list(scored[: max(1, fit)])
