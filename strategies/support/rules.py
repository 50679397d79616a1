"""Rules of support: reasons why quotes do not bear a sentence out that need no model.

A sentence that stands word for word in a quote passes. Any other must share words with its quotes, have its numbers with
comparison and unit, its drugs, its names with digits and its populations from them, and negate and point the same way. A
quote without a drug has its subject in an earlier sentence, so that the drug may stand anywhere in its passage; likewise
names with digits and populations. Figures: ``python -m evals.attacks``.

What is seldom a difference is none: small numbers in words ("one in five", "two thirds of"), "about 90 %" for 89 %, other names
of a drug, classes of drugs, and a negation where the quote says "similar" or "unchanged".
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal
from functools import lru_cache

from posology.text.figures import Figure, any_stated, blanked, figures, lacking, names
from posology.text.figures.units import TIMES
from posology.text.quotes import Span, locate
from posology.text.quoting.rows import read
from posology.types import Difference, Passage, Rule
from strategies.compression.checked import denial, parallels, stems, terms
from strategies.support.columns import parted, states, swapped
from strategies.support.inventions import uncited
from strategies.support.lexicon import (
    ALIASES,
    DIRECTIONS,
    INCLUDED,
    KIND,
    KINDS,
    is_older,
    nearly_denies,
    populations,
    substances,
)

#: content words that a quote shares with its sentence, at least; of a sentence with fewer, all
LEAST_SHARED = 2
#: words on either side of a word of direction that say what it is of
_REACH = 4
#: largest number that is no figure of a sentence where it is in words: "one of them", "seven of ten"
_SMALL = 12
#: relative distance up to which a number is "about" another
_NEAR = Decimal("0.05")
_ABOUT = re.compile(
    r"(?:\b(?:about|around|approximately|roughly|nearly|almost|close to|circa|ca\.)|[~≈])\s*\Z",
    re.IGNORECASE,
)
_UP = r"gain\w*|increas\w*|ris\w+|rose|higher|more|grew|grow\w*|improv\w*"
#: what is called a decrease: "fell by", "a reduction in weight of", "5 kg lower"
_DOWN_BY = re.compile(
    r"\b(?:fell|fall|falls|falling|drop(?:s|ped)?|decreas(?:es?|ed|ing)|reduc(?:es?|ed|ing|tions?)|declin(?:es?|ed|ing)|lower(?:s|ed|ing)?|"
    r"los(?:t|s|es?|ing)|diminish(?:es|ed)|shorten(?:s|ed)?)(?:(?:(?!\b(?:and|but|had|"
    rf"{_UP})\b)[^\d.;:]){{0,80}}\s(?:by|of))?"
    r"(?:\s+(?:by|of|an?|the|mean|median|average|further|about|around|approximately|roughly|nearly|almost|some|only|in))*\s+\Z",
    re.IGNORECASE,
)
_DOWN = re.compile(
    r"\s+(?:lower|less|fewer|smaller|shorter|decrease|reduction|decline|drop|fall)\b", re.IGNORECASE
)
#: between two figures of the same thing
_COMPARED = re.compile(
    rf"(?:(?!\b(?:{_UP})\b)[^\d.;:]){{0,60}}\b(?:and|or|versus|vs|compared (?:with|to)|than|against)\b"
    rf"(?:(?!\b(?:{_UP})\b)[^\d;:]){{0,60}}",
    re.IGNORECASE,
)
#: words of direction that are their opposite when they are negated: what is "not higher" need not be lower
_WHOLE = frozenset({"effective", "ineffective", "safe", "unsafe"})
#: numbers of a side that a finding shows
_SHOWN = 2
#: levels of confidence, which are no results
_CONFIDENCE = frozenset({95, 99})
_YEARS = range(1900, 2100)
_WORD = re.compile(r"[^\W\d_]+(?:['’][^\W\d_]+)?")
#: a subject that stands in an earlier sentence
_PRONOUN = re.compile(
    r"\W*(it|its|they|their|th(?:is|ese)(?:\s+(?:drug|agent|medication|treatment|therapy|compound)s?)?|the\s+(?:drug|agent|medication|dose))\b",
    re.IGNORECASE,
)


@dataclass(frozen=True, kw_only=True, slots=True)
class Pointing:
    """A word of direction in a text."""

    word: str
    #: number of its pair
    pair: int
    #: 1 or -1
    sign: int
    #: stems of the words around it
    of: frozenset[str]


def repeats(claim: str, quotes: Sequence[str]) -> bool:
    """Return whether a sentence stands in a quote word for word, see :func:`~posology.text.quotes.locate`."""
    return any(isinstance(locate(claim, quote), Span) for quote in quotes)


def completed(claim: str, question: str) -> str:
    """Return a claim, behind its question if it says something only together with it: "Yes."."""
    return claim if len(stems(claim)) >= LEAST_SHARED else f"{question} {claim}"


def touches(claim: str, sentence: str) -> bool:
    """Return whether a sentence is on the subject of a claim: it shares words, or a number."""
    wanted = stems(claim)
    if len(wanted & stems(sentence)) >= min(LEAST_SHARED, len(wanted)):
        return True
    there = figures(sentence)
    return any_stated(claim, sentence) or any(
        _lessened(one, claim, there) for one in figures(claim)
    )


def around_of(passages: Iterable[Passage]) -> str:
    """Return titles, texts and years of passages, in which the subject of their sentences may stand."""
    return "\n".join(f"{one.title}\n{one.text}\n{one.year or ''}" for one in passages)


def opposes(claim: str, sentence: str) -> frozenset[Rule]:
    """Return the rules by which a sentence speaks of something else than a claim, whatever else is named beside it.

    It has drugs, names or figures of the same kind, and none of those of the claim; or it has the claim's words and negates
    otherwise. One that has none of them may still be a part of what bears the claim out.
    """
    if repeats(claim, [sentence]):
        return frozenset()
    rules = {
        rule
        for rule, wanted, there in (
            (Rule.DRUG, substances(claim), substances(sentence)),
            (Rule.NAME, names(claim), names(sentence)),
        )
        if wanted and there and not wanted & there
    }
    there = [one for one in figures(sentence) if one.size not in _CONFIDENCE]
    stated = [
        one
        for one in figures(uncited(claim))
        if one.size not in _CONFIDENCE
        and not _vague(one, claim, there)
        and not _lessened(one, claim, there)
    ]
    units = {one.unit for one in there}
    if any(one.unit in units for one in stated) and not any_stated(claim, sentence):
        rules.add(Rule.NUMBER)
    alike = parallels(claim, sentence)
    if alike and not any(alike):
        rules.add(Rule.NEGATION)
    return frozenset(rules)


def denies_like(claim: str, quotes: Sequence[str]) -> bool:
    """Return whether a quote has nearly all words of a claim, and negates as it does."""
    return any(any(parallels(claim, one)) for one in quotes)


def guarded(claim: str, quotes: Sequence[str], around: str) -> Iterator[Difference]:
    """Yield the failures that cost a quote its place as a citation: numbers, their columns, drugs, names and negations.

    Args:
        claim: a sentence in the model's words.
        quotes: sentences of the sources that it rests on.
        around: titles and texts of their passages.
    """
    if repeats(claim, quotes):
        return
    text, (rows, prose) = _told(quotes), parted(quotes, around)
    others = unstated(claim, text, around)
    if missing := [one for one in others if not any(states(row, one) for row in rows)]:
        yield _other_numbers(claim, missing, text)
    if rows:
        yield from swapped(claim, rows, prose)
    there = substances(text)
    if other := substances(claim) - _words(text if there else around):
        yield Difference(rule=Rule.DRUG, said=_listed(other), quoted=_listed(there))
    # a source without any name may write it in words
    there = names(text) or names(around)
    if there and (other := names(claim) - there):
        yield Difference(rule=Rule.NAME, said=_listed(other), quoted=_listed(there))
    if denied := _denied(claim, text):
        yield denied


def failures(claim: str, quotes: Sequence[str], around: str) -> tuple[Difference, ...]:
    """Return every failure of a claim beside its quotes, see :func:`guarded`; none without quotes."""
    if not quotes or repeats(claim, quotes):
        return ()
    text = _told(quotes)
    found = list(guarded(claim, quotes, around))
    if not any(touches(claim, one) for one in quotes):
        found.insert(0, Difference(rule=Rule.SUBJECT))
    found += filter(None, (_turned(claim, text), _elsewhere(claim, text, around)))
    return tuple(found)


def other_subject(
    claim: str, quotes: Sequence[str], around: str, question: str
) -> Iterator[Difference]:
    """Yield the drug that "it" is in the sources of a claim, where the question asks for another that they never name.

    Also of a claim that repeats its quote: "It is contraindicated in renal failure" may stand in a passage on another drug.
    """
    pronoun = _PRONOUN.match(claim)
    if not quotes or pronoun is None:
        return
    asked, there = substances(question), substances(around)
    if asked and there and not asked & _words(around):
        named = substances("\n\n".join(quotes)) or there
        said = f"“{pronoun[1].lower()}”, which is {_listed(asked)} in the question"
        yield Difference(rule=Rule.DRUG, said=said, quoted=_listed(sorted(named)[:_SHOWN]))


def _told(quotes: Sequence[str]) -> str:
    """Return quotes as one text. The number of a table, in the label of its rows, is no number of the quote."""
    return "\n\n".join(row.said if (row := read(one)) else one for one in quotes)


def _words(text: str) -> set[str]:
    """Return the terms of a text, each drug by one name."""
    return {ALIASES.get(word, word) for word in terms(text)}


def unstated(claim: str, text: str, around: str) -> tuple[Figure, ...]:
    """Return the figures of a claim that a text does not state, without those that may well mean the same.

    A year may be that of the passage.
    """
    # "type 2 diabetes" is a population, and "Smith et al. (2013)" a name; "grade 3-4" goes on with a name's digits
    claim = KIND.sub(lambda kind: "x" * len(kind[0]), uncited(claim))
    there = figures(text)
    return tuple(
        one
        for one in lacking(claim, text)
        if not _vague(one, claim, there)
        and not _about(one, claim, there)
        and not _lessened(one, claim, there)
        and not (_is_year(one) and not lacking(str(one.value), around))
    )


@lru_cache(maxsize=256)
def pointings(text: str) -> tuple[Pointing, ...]:
    """Return the words of direction of a text, in order, with the stems around them."""
    # "no more than 5 mg" points nowhere
    said = [one[0].lower() for one in _WORD.finditer(blanked(text))]
    return tuple(_pointing(said, i) for i, word in enumerate(said) if word in DIRECTIONS)


def _pointing(said: Sequence[str], at: int) -> Pointing:
    pair, sign = DIRECTIONS[said[at]]
    # "not effective"
    turned = said[at] in _WHOLE and at > 0 and denial(said[at - 1]) != ""
    around = (*said[max(0, at - _REACH) : at], *said[at + 1 : at + 1 + _REACH])
    return Pointing(
        word=" ".join(said[at - turned : at + 1]),
        pair=pair,
        sign=-sign if turned else sign,
        of=stems(" ".join(around)),
    )


def _is_year(one: Figure) -> bool:
    return not one.unit and not one.comparison and one.value in _YEARS


def _vague(figure: Figure, claim: str, there: Sequence[Figure]) -> bool:
    """Return whether a figure is a small number in words, and the text has no other of its unit."""
    if figure.size > _SMALL or any(map(str.isdigit, claim[figure.number : figure.number_end])):
        return False
    if _often(figure):
        # "10 mg daily" may be once daily
        return not any(map(_often, there)) or (
            figure.value == 1
            and any(other.unit[1:] == figure.unit[1:] and not _often(other) for other in there)
        )
    if any(figure.size == other.size and _alike(figure.unit, other.unit) for other in there):
        # "six weeks" are not six months
        return False
    return not figure.unit or all(other.unit != figure.unit for other in there)


def _alike(one: Sequence[str], other: Sequence[str]) -> bool:
    """Return whether units differ, and are both of times or both of amounts."""
    return one != other and bool(one and other) and (one[0] in TIMES) == (other[0] in TIMES)


def _often(one: Figure) -> bool:
    """Return whether a figure says how often: "twice daily"."""
    return one.unit[:1] == ("fold",) and len(one.unit) > 1


def _lessened(one: Figure, claim: str, there: Sequence[Figure]) -> bool:
    """Return whether a figure is called a decrease, and the text has it with a minus: "fell by 5 kg" for "-5 kg"."""
    if one.start not in _decreases(claim):
        return False
    less = replace(one, value=-one.value)
    return one.value > 0 and any(less.says(other) for other in there)


@lru_cache(maxsize=256)
def _decreases(claim: str) -> frozenset[int]:
    """Return where the figures begin that a claim calls decreases, with those that they are compared with: "by 5.1, and by 2.4"."""
    starts: set[int] = set()
    before: Figure | None = None
    for figure in figures(claim):
        called = _DOWN_BY.search(claim, max(0, figure.start - 120), figure.start) or _DOWN.match(
            claim, figure.end
        )
        if called or (
            before is not None
            and before.start in starts
            and before.end <= figure.start
            and _COMPARED.fullmatch(claim, before.end, figure.start)
        ):
            starts.add(figure.start)
        before = figure
    return frozenset(starts)


def _about(one: Figure, claim: str, there: Sequence[Figure]) -> bool:
    """Return whether a figure is called approximate, and the text has one near it."""
    if not _ABOUT.search(claim, max(0, one.start - 20), one.start):
        return False
    return any(
        other.unit == one.unit and abs(other.value - one.value) <= _NEAR * abs(other.value)
        for other in there
    )


def _other_numbers(claim: str, missing: Sequence[Figure], text: str) -> Difference:
    """Return the figures that a text does not state, with its own of the same units that the claim does not state."""
    units = {one.unit for one in missing}
    instead = [
        one
        for one in lacking(text, claim)
        if one.unit in units or (_often(one) and any(map(_often, missing)))
    ]
    return Difference(
        rule=Rule.NUMBER,
        said=_listed(claim[one.start : one.end] for one in missing[:_SHOWN]),
        quoted=_listed(text[one.start : one.end] for one in instead[:_SHOWN]),
    )


def _denied(claim: str, text: str) -> Difference | None:
    """Return a negation that one side lacks: in a sentence of nearly the same words, or anywhere in the quotes."""
    mine, theirs = denial(claim), denial(text)
    if mine and not theirs:
        return None if nearly_denies(text) else Difference(rule=Rule.NEGATION, said=mine)
    alike = parallels(claim, text)
    if any(alike) or not alike:
        return None
    return Difference(rule=Rule.NEGATION, said=mine, quoted=theirs)


def _turned(claim: str, text: str) -> Difference | None:
    """Return an opposite direction of the same thing in quotes that never have the same direction of it."""
    there = pointings(text)
    for mine in pointings(claim):
        alike = [one for one in there if one.pair == mine.pair and one.of & mine.of]
        if any(one.word.split()[-1] in _WHOLE for one in (mine, *alike)) and (
            denial(claim) and denial(text)
        ):
            # "not found to be effective", "neither was effective": both deny
            continue
        told = there if mine.pair >= KINDS else alike
        if alike and all(one.sign != mine.sign for one in told if one.pair == mine.pair):
            return Difference(rule=Rule.DIRECTION, said=mine.word, quoted=alike[0].word)
    return None


def _elsewhere(claim: str, text: str, around: str) -> Difference | None:
    """Return a population of a group of which the quotes, or else their passages, name others."""
    for group, name in sorted(populations(claim), key=str):
        for source in (text, around):
            there = {other for kind, other in populations(source) if kind == group}
            if name in there or there & INCLUDED.get(name, frozenset()) or is_older(name, source):
                break
            if there:
                kind = f"{group} " if isinstance(group, str) else ""
                return Difference(
                    rule=Rule.POPULATION,
                    said=f"{kind}{name}",
                    quoted=_listed(f"{kind}{one}" for one in there),
                )
    return None


def _listed(some: Iterable[str]) -> str:
    return " and ".join(sorted(some)) if isinstance(some, set | frozenset) else " and ".join(some)
