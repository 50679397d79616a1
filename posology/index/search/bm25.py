"""BM25 among a handful of passages: the second opinion that the preflight check compares with.

Zhang et al. (BriefContext, section 5.2 under *Preflight check*) re-rank what the dense retriever
found with BM25 and compare the top places. Their idf is not given. Okapi's is
``log((N - n + 0.5) / (n + 0.5))``: over 16 passages on one subject it is negative for every word
that is in more than half of them, that is for the question's own subject. So this is BM25+ (Lv and Zhai,
*Lower-bounding term frequency normalization*, CIKM 2011, equation 10), whose ``log((N + 1) / n)`` is positive for every
word: a passage never ranks lower for holding a word of the question more often. Of 16 abstracts it takes 1.5 ms.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from rank_bm25 import BM25Plus

from posology.types import Hit, Passage, Ranking

_WORD = re.compile(r"[^\W_]+")
# a word, or several that are joined; it never gives back, so that a word without end costs linear time
_JOINED = re.compile(r"[^\W_]++(?:[-‐‑'’][^\W_]++)*+")
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
    tokens: list[str] = []
    compounds: list[str] = []
    for found in _JOINED.findall(text.lower()):
        if found.isalnum():
            if found not in _STOP:
                tokens.append(found)
            continue
        words = _WORD.findall(found)
        tokens += [word for word in words if word not in _STOP]
        compounds.append("".join(words))
    return tokens + compounds


def rerank(question: str, passages: Sequence[Passage]) -> Ranking:
    """Return the same passages, ordered by BM25 among themselves.

    Args:
        question: any text.
        passages: in the order of the ranking that found them; it settles equal scores.

    Returns:
        Method ``bm25_rerank``, every passage in it.
    """
    documents = [tokenise(f"{passage.title}\n{passage.text}") for passage in passages]
    # of texts without any word, it would divide by their mean length
    scored = BM25Plus(documents).get_scores(tokenise(question)) if any(documents) else []
    scores = [float(one) for one in scored] or [0.0] * len(documents)
    order = sorted(range(len(passages)), key=lambda i: -scores[i])
    hits = tuple(Hit(passage_id=passages[i].id, score=scores[i]) for i in order)
    return Ranking(method="bm25_rerank", hits=hits)
