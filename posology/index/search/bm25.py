"""BM25 among a handful of passages: the second opinion that the preflight check compares with.

Zhang et al. (BriefContext, section 5.2 under *Preflight check*) re-rank what the dense retriever
found with BM25 and compare the top places. Their idf is not given. Okapi's is
``log((N - n + 0.5) / (n + 0.5))``: over 16 passages on one subject it is negative for every word
that is in more than half of them, that is for the question's own subject, and the library's
stand-in for negative values (a share of the mean idf) can be negative itself. So this uses
``rank_bm25.BM25Plus``, whose ``log((N + 1) / n)`` is positive for every word: a passage never
ranks lower for holding a word of the question more often.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from posology.types import Hit, Passage, Ranking

_WORD = re.compile(r"[^\W_]+")
# begins at a word's start and never gives back, so that a word without end costs linear time
_COMPOUND = re.compile(r"(?<![^\W_])[^\W_]++(?:[-‐‑'’][^\W_]++)+")
# only what every question has: "no", "not" and "without" carry the meaning of a finding
_STOP = frozenset(
    re.findall(
        r"\w+",
        "a an and are as at be been by can could did do does for from had has have how in into is "
        "it its of on or s should than that the their there these this those to was were what "
        "when where whether which who why will with would",
    )
)


def tokenise(text: str) -> list[str]:
    """Return the words of a text in lower case, without stop words; ``IL-6`` gives ``il``, ``6`` and ``il6``.

    Compounds come after the words: BM25 does not look at the order.
    """
    lower = text.lower()
    tokens = [word for word in _WORD.findall(lower) if word not in _STOP]
    tokens.extend("".join(_WORD.findall(compound)) for compound in _COMPOUND.findall(lower))
    return tokens


def rerank(question: str, passages: Sequence[Passage]) -> Ranking:
    """Return the same passages, ordered by BM25 among themselves.

    Args:
        question: any text.
        passages: in the order of the ranking that found them; it settles equal scores.

    Returns:
        Method ``bm25_rerank``, every passage in it.
    """
    documents = [tokenise(f"{passage.title}\n{passage.text}") for passage in passages]
    scores = [0.0] * len(passages)
    if any(documents):
        from rank_bm25 import BM25Plus

        scores = [float(s) for s in BM25Plus(documents).get_scores(tokenise(question))]
    order = sorted(range(len(passages)), key=lambda i: -scores[i])
    hits = tuple(Hit(passage_id=passages[i].id, score=scores[i]) for i in order)
    return Ranking(method="bm25_rerank", hits=hits)
