"""Rules of support: reasons why quotes do not bear a sentence out that need no model.

A sentence that stands word for word in a quote passes. Any other must share words with its quotes, have its numbers with
comparison and unit, its drugs, its names with digits and its populations from them, and negate and point the same way. A
quote without a drug has its subject in an earlier sentence, so that the drug may stand anywhere in its passage; likewise
names with digits and populations. Figures: ``python -m evals.attacks``.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache

from posology.text.figures import any_stated, blanked, lacking, names
from posology.text.quotes import Span, locate
from posology.types import Passage, Rule
from strategies.compression.checked import drugs, negates_alike, stems, terms
from strategies.support.lexicon import DIRECTIONS, populations

#: content words that a quote shares with its sentence, at least; of a sentence with fewer, all
LEAST_SHARED = 2
#: words on either side of a word of direction that say what it is of
_REACH = 4
_WORD = re.compile(r"[^\W\d_]+(?:['’][^\W\d_]+)?")


@dataclass(frozen=True, kw_only=True, slots=True)
class Pointing:
    """A word of direction in a text."""

    #: number of its pair
    pair: int
    #: 1 or -1
    sign: int
    #: stems of the words around it
    of: frozenset[str]


def repeats(claim: str, quotes: Sequence[str]) -> bool:
    """Return whether a sentence stands in a quote word for word, see :func:`~posology.text.quotes.locate`."""
    return any(isinstance(locate(claim, quote), Span) for quote in quotes)


def touches(claim: str, sentence: str) -> bool:
    """Return whether a sentence is on the subject of a claim: it shares words, or a number."""
    wanted = stems(claim)
    if len(wanted & stems(sentence)) >= min(LEAST_SHARED, len(wanted)):
        return True
    return any_stated(claim, sentence)


def around_of(passages: Iterable[Passage]) -> str:
    """Return titles and texts of passages, in which the subject of their sentences may stand."""
    return "\n".join(f"{one.title}\n{one.text}" for one in passages)


def guarded(claim: str, quotes: Sequence[str], around: str) -> Iterator[Rule]:
    """Yield the rules that cost a quote its place as a citation: numbers, drugs, names and negations.

    Args:
        claim: a sentence in the model's words.
        quotes: sentences of the sources that it rests on.
        around: titles and texts of their passages.
    """
    if repeats(claim, quotes):
        return
    text = "\n\n".join(quotes)
    if lacking(claim, text):
        yield Rule.NUMBER
    if not drugs(claim) <= terms(text if drugs(text) else around):
        yield Rule.DRUG
    if not names(claim) <= names(text if names(text) else around):
        yield Rule.NAME
    if not negates_alike(claim, text, text):
        yield Rule.NEGATION


def failures(claim: str, quotes: Sequence[str], around: str) -> tuple[Rule, ...]:
    """Return every rule that a claim fails beside its quotes, see :func:`guarded`; none without quotes."""
    if not quotes or repeats(claim, quotes):
        return ()
    text = "\n\n".join(quotes)
    found = list(guarded(claim, quotes, around))
    if not any(touches(claim, one) for one in quotes):
        found.insert(0, Rule.SUBJECT)
    if _turns(claim, text):
        found.append(Rule.DIRECTION)
    if _elsewhere(claim, text, around):
        found.append(Rule.POPULATION)
    return tuple(found)


@lru_cache(maxsize=256)
def pointings(text: str) -> tuple[Pointing, ...]:
    """Return the words of direction of a text, in order, with the stems around them."""
    # "no more than 5 mg" points nowhere
    said = [one[0].lower() for one in _WORD.finditer(blanked(text))]
    return tuple(
        Pointing(
            pair=DIRECTIONS[word][0],
            sign=DIRECTIONS[word][1],
            of=stems(" ".join((*said[max(0, i - _REACH) : i], *said[i + 1 : i + 1 + _REACH]))),
        )
        for i, word in enumerate(said)
        if word in DIRECTIONS
    )


def _turns(claim: str, text: str) -> bool:
    """Return whether quotes have an opposite direction of the same thing, and never the same direction of it."""
    there = pointings(text)
    for mine in pointings(claim):
        alike = [one for one in there if one.pair == mine.pair and one.of & mine.of]
        if alike and all(one.sign != mine.sign for one in alike):
            return True
    return False


def _elsewhere(claim: str, text: str, around: str) -> bool:
    """Return whether a claim names a population of a group of which the quotes, or else their passages, name others."""
    for group, name in populations(claim):
        for source in (text, around):
            there = {other for kind, other in populations(source) if kind == group}
            if name in there:
                break
            if there:
                return True
    return False
