"""Phrases and clauses: the units that a compressor keeps or drops.

A phrase is a run of function words and the following run of content words, the chinks and chunks of Liberman and Church
(*Text analysis and word pronunciation in text-to-speech synthesis*, 1992), at most :data:`LONGEST` words; no tagger is
needed. Selective Context (Li 2023) filters a parser's noun phrases instead. Here a number stays together with its
unit, comparison and range, and a negation with what it negates, regardless of length.

A clause ends at a comma, semicolon or colon, at brackets and dashes, and before conjunctions that begin a clause;
but not where the next clause could be read without a negation that governs it
(:func:`posology.text.quoting.edges.drops_negation`).
"""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from operator import itemgetter

from posology.text.figures import figures
from posology.text.quoting.edges import GOVERNING_REACH, NEGATION_REACH, drops_negation
from posology.types import Sentence
from strategies.compression.wording.cues import Cue, cue

#: Maximum words of a phrase, unless more are held together.
LONGEST = 6
#: Maximum words and code points, even of words that are held together.
MOST_WORDS, MOST_CHARACTERS = 200, 60_000
#: Maximum code points of a word; a longer run is several words.
MOST_LETTERS = 1_000

#: Words after a negation in which a clause begins only if :func:`drops_negation` allows it: more than
#: :data:`NEGATION_REACH`, which counts words of letters only.
_NEAR = NEGATION_REACH + 6

_WORD = re.compile(rf"\S{{1,{MOST_LETTERS}}}")
_REMEMBERED = 100_000
_cues: dict[str, int] = {}

_FUNCTION, _NUMBER, _NEGATION = int(Cue.FUNCTION), int(Cue.NUMBER), int(Cue.NEGATION)
_DENIES = int(Cue.NEGATION | Cue.DOUBT)
_SYMBOL, _DASH, _ENDS, _COMMA = int(Cue.SYMBOL), int(Cue.DASH), int(Cue.ENDS), int(Cue.COMMA)
_OPENS, _TURNS, _JOINS, _RATE = int(Cue.OPENS), int(Cue.TURNS), int(Cue.JOINS), int(Cue.RATE)
_LEADS = int(Cue.COMPARES | Cue.LABEL | Cue.RATE)
_LABEL, _COMPARES, _BACK = int(Cue.LABEL), int(Cue.COMPARES), int(Cue.BACK)
_AUXILIARY, _TIME, _ARTICLE = int(Cue.AUXILIARY), int(Cue.TIME), int(Cue.ARTICLE)
_OPENER, _OF, _EVIDENCE, _ONLY = int(Cue.OPENER), int(Cue.OF), int(Cue.EVIDENCE), int(Cue.ONLY)
_CLINGS, _RELATIVE = int(Cue.CLINGS), int(Cue.RELATIVE)
_UNIT_END, _RANGE = int(Cue.UNIT_END), int(Cue.RANGE)
_DRUG = int(Cue.DRUG)
#: Cues that protect a phrase and the phrases beside it.
_PROTECTS = int(Cue.NUMBER | Cue.NEGATION | Cue.DOUBT | Cue.SYMBOL | Cue.BACK | Cue.REVERSES)


@dataclass(frozen=True, kw_only=True, slots=True)
class Segments:
    """The words, phrases and clauses of a passage."""

    #: start and end of each word, in code points of the passage's text
    starts: list[int] = field(default_factory=list)
    ends: list[int] = field(default_factory=list)
    #: first word of each sentence that has words
    sentences: list[int] = field(default_factory=list)
    #: first word of each phrase
    phrases: list[int] = field(default_factory=list)
    #: clause of each phrase, from 0, ascending
    clauses: list[int] = field(default_factory=list)
    #: whether each phrase has a negation, number, comparison or drug name, or is beside one of the first three in
    #: its clause
    protected: list[bool] = field(default_factory=list)


def segment(text: str, sentences: Sequence[Sentence]) -> Segments:
    """Divide the sentences of a passage into phrases.

    Each word, a run of characters without white space, is in exactly one phrase. No phrase crosses sentences.

    Args:
        text: the passage's text.
        sentences: its sentences, from :func:`posology.text.sentences.split`.
    """
    found = Segments()
    clause = -1
    for sentence in sentences:
        spans = [m.span() for m in _WORD.finditer(text, sentence.start, sentence.end)]
        if spans:
            clause = _add(found, text, sentence, spans, clause + 1)
    return found


def telling(
    text: str, sentence: Sentence, spans: Sequence[tuple[int, int]]
) -> tuple[list[bool], list[bool]]:
    """Return the bonds and the protection of the words of one sentence, consistent with :func:`segment`.

    Args:
        text: the passage's text.
        sentence: the sentence.
        spans: of its words, runs of characters without white space, in order.

    Returns:
        Whether each word is held together with the next; and whether it is part of a number, negation, doubt,
        comparison or drug name, without which its clause must not be shown.
    """
    cues = _cues_of(text[start:end] for start, end in spans)
    held, _ = _held(cues)
    marked = [bool(now & (_PROTECTS | _DRUG)) for now in cues]
    for first, last in _figures(text, sentence, spans, cues):
        held[first:last] = b"\1" * (last - first)
        marked[first : last + 1] = [True] * (last + 1 - first)
    for i, now in enumerate(cues[:-1]):
        if now & _DENIES and cues[i + 1] & _ONLY:
            marked[i] = bool(now & (_PROTECTS | _DRUG) & ~_DENIES)
    return [bool(one) for one in held], marked


def _figures(
    text: str, sentence: Sentence, spans: Sequence[tuple[int, int]], cues: Iterable[int]
) -> Iterator[tuple[int, int]]:
    """Yield the first and the last word of each figure of several words: "65 years or older"."""
    if not any(now & _NUMBER for now in cues):
        return
    for one in figures(sentence.of(text)):
        start, end = one.start + sentence.start, one.end + sentence.start
        first = bisect_right(spans, start, key=itemgetter(0)) - 1
        if first >= 0 and spans[first][1] < end:
            yield first, bisect_left(spans, end, key=itemgetter(0)) - 1


def _cues_of(words: Iterable[str]) -> list[int]:
    if len(_cues) > _REMEMBERED:
        _cues.clear()
    found = []
    for word in words:
        known = _cues.get(word)
        if known is None:
            known = _cues[word] = cue(word)
        found.append(known)
    return found


def _add(
    segments: Segments, text: str, sentence: Sentence, spans: list[tuple[int, int]], clause: int
) -> int:
    """Append one sentence whose first clause is ``clause``; return its last clause."""
    cues = _cues_of(text[start:end] for start, end in spans)
    held, governs = _held(cues)
    for first, last in _figures(text, sentence, spans, cues):
        held[first:last] = b"\1" * (last - first)
    base, begin = len(segments.starts), len(segments.phrases)
    segments.sentences.append(base)
    segments.starts.extend(start for start, _ in spans)
    segments.ends.extend(end for _, end in spans)
    own = ""
    #: up to this word, a preceding negation may govern a clause
    denied = 0
    #: cues of each phrase's words
    marks: list[int] = []
    first, content, mark = 0, False, 0
    for i, now in enumerate(cues):
        if i:
            before = cues[i - 1]
            parts = not held[i - 1]
            turn = parts and _is_turn(before, now)
            if turn and i < denied:
                own = own or sentence.of(text)
                turn = not drops_negation(own, spans[i][0] - sentence.start, len(own))
            if (
                turn
                or (parts and ((now & _FUNCTION and content) or i - first >= LONGEST))
                or i - first >= MOST_WORDS
                or spans[i][1] - spans[first][0] > MOST_CHARACTERS
            ):
                segments.phrases.append(base + first)
                segments.clauses.append(clause)
                marks.append(mark)
                clause += turn
                first, content, mark = i, False, 0
        if not now & _FUNCTION:
            content = True
        if now & _DENIES:
            if i + 1 < len(cues) and cues[i + 1] & _ONLY:
                mark |= now & ~_DENIES
                continue
            denied = max(denied, len(cues) if governs else i + _NEAR)
        mark |= now
    segments.phrases.append(base + first)
    segments.clauses.append(clause)
    marks.append(mark)
    segments.protected.extend(bool(one & _PROTECTS) for one in marks)
    _with_subjects(segments, begin)
    for i, one in enumerate(marks, begin):
        if one & _DRUG:
            segments.protected[i] = True
    return clause


def _with_subjects(segments: Segments, begin: int) -> None:
    """Protect the neighbours of protected phrases in their clause: a dose without its drug is dangerous.

    Args:
        segments: segments so far.
        begin: first phrase of the sentence.
    """
    own = segments.protected[begin:]
    clauses = segments.clauses[begin:]
    for i, protected in enumerate(own):
        if protected:
            for beside in (i - 1, i + 1):
                if 0 <= beside < len(own) and clauses[beside] == clauses[i]:
                    segments.protected[begin + beside] = True


def _is_turn(before: int, now: int) -> bool:
    """Return whether a clause ends between two words."""
    if now & _CLINGS:
        return False
    if before & (_ENDS | _DASH) or now & (_OPENS | _DASH):
        return True
    return bool(now & _TURNS or (now & _RELATIVE and not before & _FUNCTION))


def _held(cues: list[int]) -> tuple[bytearray, bool]:
    """Return whether each word is held together with the next, and whether any negation governs a clause."""
    n = len(cues)
    held = bytearray(n)
    #: whether the word is part of a number with its unit
    measure = False
    for i in range(n - 1):
        a, b = cues[i], cues[i + 1]
        measure = bool(a & _NUMBER) or (measure and bool(i and held[i - 1]))
        if (a | b) & _TELLING or (measure and (not b & _FUNCTION or b & (_ARTICLE | _RANGE))):
            c = cues[i + 2] if i + 2 < n else 0
            held[i] = _holds(a, b, c, measure=measure, chained=bool(i and held[i - 1]))
    governs = False
    for i, now in enumerate(cues):
        if now & _DENIES:
            governs |= _deny(cues, held, i)
    return held, governs


#: Cues without which, on either side, no words are held together.
_TELLING = int(
    Cue.NUMBER | Cue.SYMBOL | Cue.DASH | Cue.BACK | Cue.LABEL | Cue.RATE | Cue.TIME | Cue.COMPARES
)


def _holds(a: int, b: int, c: int, *, measure: bool, chained: bool) -> bool:
    """Return whether a number, a comparison or a unit holds two words together.

    Args:
        a: cues of the word.
        b: cues of the next.
        c: cues of the one after that.
        measure: whether ``a`` is part of a number with its unit.
        chained: whether ``a`` is held together with the word before it.
    """
    if a & _DASH:
        return bool(b & _NUMBER)
    if b & _DASH:
        return bool(a & _NUMBER and c & _NUMBER)
    if b & _NUMBER:
        return _holds_number(a, b, c, measure=measure, chained=chained)
    if a & _ENDS:
        # "5, 10 and 20 mg"; "12 (5%)" has its number in b
        return bool(a & _NUMBER and a & _COMMA and b & _JOINS and c & _NUMBER)
    if (a | b) & (_SYMBOL | _BACK) or a & b & _LABEL:
        return True
    if a & (_COMPARES | _LABEL) and b & _JOINS and c & _NUMBER:
        return True
    return measure and _holds_measure(a, b, c, chained=chained)


def _holds_number(a: int, b: int, c: int, *, measure: bool, chained: bool) -> bool:
    """Return whether a word is held together with the number ``b`` after it."""
    if a & _ENDS:
        return bool(a & _LABEL or (a & _NUMBER and a & _COMMA))
    return bool(
        a & (_LEADS | _NUMBER | _SYMBOL)
        or (a & _JOINS and chained)
        or (measure and (b | c) & _RATE)
    )


def _holds_measure(a: int, b: int, c: int, *, chained: bool) -> bool:
    """Return whether ``a``, part of a number with its unit, is held together with the word ``b`` after it."""
    if b & _OPENS:
        # "45% (placebo)", "500 mg (base)": one word that qualifies the number
        return bool((a & _NUMBER and b & _LABEL) or b & _ENDS)
    if a & _NUMBER and not b & _FUNCTION:
        return True
    # after a unit only "to": "20 patients and 30 controls" are two findings
    if b & (_JOINS if a & _NUMBER else _RANGE) and c & _NUMBER:
        return True
    if b & (_RATE | _UNIT_END) or (b & _ARTICLE and c & _TIME):
        return True
    return bool(chained and a & (_RATE | _ARTICLE) and not b & _FUNCTION)


def _deny(cues: list[int], held: bytearray, i: int) -> bool:
    """Hold a negation together with its auxiliary, the words after it, and the opener of the clause it governs.

    Returns:
        Whether it governs a following clause.
    """
    if i + 1 < len(cues) and cues[i + 1] & _ONLY:
        held[i] = 1
        return False
    if i and cues[i - 1] & _AUXILIARY and not cues[i - 1] & _ENDS:
        held[i - 1] = 1
    last = len(cues) - 1
    if cues[i] & _NEGATION:
        for j in range(i, min(i + NEGATION_REACH, last)):
            if cues[j] & _ENDS and not (j == i and cues[j] & _COMMA):
                break
            held[j] = 1
    for j in range(i + 1, min(i + 1 + GOVERNING_REACH + _NEAR, last + 1)):
        if cues[j] & _OPENER or (cues[j] & _OF and cues[j - 1] & _EVIDENCE):
            if j - i <= GOVERNING_REACH:
                # the opener stays with the word that it opens
                held[i : min(j + 1, last)] = b"\1" * (min(j + 1, last) - i)
            return True
    return False
