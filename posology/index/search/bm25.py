"""BM25 among a handful of passages: the second opinion that the preflight check compares with.

Zhang et al. (BriefContext, section 5.2 under *Preflight check*) re-rank what the dense retriever
found with BM25 and compare the top places. Their idf is not given. Okapi's is
``log((N - n + 0.5) / (n + 0.5))``: over 16 passages on one subject it is negative for every word
that is in more than half of them, that is for the question's own subject. So this is BM25+ (Lv and Zhai,
*Lower-bounding term frequency normalization*, CIKM 2011, equation 10), whose ``log((N + 1) / n)`` is positive for every
word: a passage never ranks lower for holding a word of the question more often. Scores equal those of
``rank_bm25.BM25Plus`` to the bit; only the question's words are counted, which takes a third of the time.
"""

from __future__ import annotations

import math
import re
from collections.abc import Sequence

import numpy as np

from posology.types import Hit, Passage, Ranking

#: of BM25+, as in ``rank_bm25``
_K1, _B, _DELTA = 1.5, 0.75, 1

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
    scores = _scores(tokenise(question), documents)
    order = sorted(range(len(passages)), key=lambda i: -scores[i])
    hits = tuple(Hit(passage_id=passages[i].id, score=scores[i]) for i in order)
    return Ranking(method="bm25_rerank", hits=hits)


def _scores(question: Sequence[str], documents: Sequence[Sequence[str]]) -> list[float]:
    """Return the BM25+ scores of tokenised documents; 0 for all if none has a word."""
    total = sum(map(len, documents))
    if not total:
        return [0.0] * len(documents)
    asked = frozenset(question)
    counts: list[dict[str, int]] = []
    for document in documents:
        counts.append(found := dict.fromkeys(asked, 0))
        for word in document:
            if word in asked:
                found[word] += 1
    lengths = np.array([len(document) for document in documents])
    scale = _K1 * (1 - _B + _B * lengths / (total / len(documents)))
    scores = np.zeros(len(documents))
    for word in question:
        of = [found[word] for found in counts]
        holding = len(of) - of.count(0)
        if holding:
            # in this order of operations, so that equal questions keep their scores
            idf = math.log((len(documents) + 1) / holding)
            times = np.array(of)
            scores += idf * (_DELTA + (times * (_K1 + 1)) / (scale + times))
    return [float(score) for score in scores]
