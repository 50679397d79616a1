"""Choice of the sentences that the offline reader quotes, or keeps of passages to shorten.

The figures behind the numbers: ``docs/concepts/offline-reader.md``.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import accumulate, takewhile
from typing import TYPE_CHECKING

from posology.llm.offline.scores import Scored

if TYPE_CHECKING:
    from posology.seams import TokenCounter
    from posology.types import Excerpt

#: A question whose best sentence scores less is refused. For the packaged MiniLM: the highest score that
#: keeps 90 % of the answerable questions of each dev set (decision 6).
THRESHOLD = 0.60
#: Sentences that score this much less than the best are not quoted: a choice, not fitted.
MARGIN = 0.03
#: The same for the best sentence of another passage. It is wider, because what is nearly as close
#: and stands elsewhere may contradict the best, and a reader that cannot judge must not hide it.
MARGIN_ELSEWHERE = 0.10
#: Maximum number of quotes.
MAX_QUOTES = 3
#: Share of a call's ``max_tokens`` that is filled where passages are shortened: a bound is set above what is wanted,
#: so that no reply is cut, and how many words are wanted stands only in the messages.
FILLED = 0.5


def choose(scored: list[Scored], *, judged: bool = False) -> list[Scored]:
    """Return the sentences to quote, best first; none if the best is below the threshold.

    Args:
        scored: best first.
        judged: they were chosen once before, in their passages: alone they score otherwise, so the
            threshold is not for them.
    """
    least_of_all = -1.0 if judged else THRESHOLD
    if not scored or scored[0].score < least_of_all:
        return []
    best, chosen, quoted = scored[0].score, [scored[0]], {scored[0].excerpt}
    for one in scored[1:]:
        again = one.excerpt in quoted
        # the threshold tells whether there is an answer; once there is, what stands against it is
        # to be seen, too
        least = max(least_of_all, best - MARGIN) if again else best - MARGIN_ELSEWHERE
        if len(chosen) < MAX_QUOTES and one.score >= least:
            chosen.append(one)
            quoted.add(one.excerpt)
    return chosen


def fill(
    scored: list[Scored], excerpts: Sequence[Excerpt], count: TokenCounter, tokens: int
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
    return scored[: max(1, fit)]
