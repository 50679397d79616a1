"""Rows of tables among a call's sentences: which row a question is about, and whether it comes before prose.

The reader learned from prose, and takes one row of a table for another: "IN67" for "IN64". Words tell them apart.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace

from posology.llm.offline.scores import Scored
from posology.text._lexicon import words
from posology.text.quoting.rows import Row, read
from posology.types import Excerpt

#: a question that may be for a value, and words of one that is
_ASKS = re.compile(r"\W*(?:what|which|how)\b", re.IGNORECASE)
_QUANTITY = re.compile(
    r"\b(?:how (?:many|much|long|often)|rate|ratio|percentage|proportion|share|number|mean|median|average|scores?|"
    r"(?:sero)?prevalence|incidence|odds|risk difference|hazard|coefficient|correlation|confidence interval|p[- ]value)\b",
    re.IGNORECASE,
)
_WORD = re.compile(r"[^\W_]+(?:-[^\W_]+)*")
#: characters of a word that tell it from others
_STEM = 6
#: words of a question that name neither a row nor a column
_EMPTY = words(
    "a an and are as at be between by did do does for from had has have how in is it its of on or than that the their there "
    "these this those to was were what when where which who with many much"
)


def ranked(question: str, excerpts: Sequence[Excerpt], scored: Sequence[Scored]) -> list[Scored]:
    """Return sentences, best first; the scores of a table's rows go to them by how many words of the question each has.

    The row that has more words of the question than any sentence of prose comes first, or as many where a quantity is asked
    for. A row's numbers are no words of it: "14" in an interval is not the age of 14.

    Args:
        question: its text.
        excerpts: of the call.
        scored: sentences of them.
    """
    asked = _stems(question) - _EMPTY
    passages = [excerpts[one.excerpt].passage for one in scored]
    texts = [one.sentence.of(of.text) for one, of in zip(scored, passages, strict=True)]
    tables: dict[tuple[str, str], list[int]] = {}
    # how well each row fits: words of the question, then few others
    fits: dict[int, tuple[int, int, float]] = {}
    for i, (passage, text) in enumerate(zip(passages, texts, strict=True)):
        if row := read(text):
            tables.setdefault((passage.parent or passage.id, row.label), []).append(i)
            named = _stems(_names(row))
            fits[i] = (len(asked & named), -len(_stems(row.name) - asked), scored[i].score)
    if not fits:
        return sorted(scored, key=lambda one: -one.score)
    scores = [one.score for one in scored]
    for rows in tables.values():
        given = sorted((scored[i].score for i in rows), reverse=True)
        for i, score in zip(sorted(rows, key=fits.__getitem__, reverse=True), given, strict=True):
            scores[i] = score
    first = max(fits, key=fits.__getitem__)
    if _ASKS.match(question):
        prose = (len(asked & _stems(text)) for i, text in enumerate(texts) if i not in fits)
        if fits[first][0] + bool(_QUANTITY.search(question)) > max(prose, default=0):
            scores[first] = max(scores)
    order = sorted(range(len(scored)), key=lambda i: (-scores[i], i != first))
    return [replace(scored[i], score=scores[i]) for i in order]


def _names(row: Row) -> str:
    """Return a row's name, its headings and values in words."""
    told = (one.text for one in row.values if any(map(str.isalpha, one.text)))
    return " ".join((row.name, *(one.heading for one in row.values), *told))


def _stems(text: str) -> frozenset[str]:
    return frozenset(word[:_STEM] for word in _WORD.findall(text.lower()))
