"""Abbreviations and their definitions in a text.

Schwartz and Hearst, *A simple algorithm for identifying abbreviation definitions in biomedical text*, Pacific
Symposium on Biocomputing 2003: candidates are a short form and a long form beside a pair of brackets (section
3.1), and the long form is the shortest run of words that holds the short form's letters in order, the first of
them at the start of a word (section 3.2). It knows no list of words and needs no training.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from posology.types import Sentence

#: minimum and maximum number of characters of a short form (section 3.1)
SHORTEST, LONGEST = 2, 10
#: maximum number of words of a short form (section 3.1)
SHORT_WORDS = 2

# what stands in brackets, up to where a comment on it begins
_BRACKETS = re.compile(r"[(\[]([^()\[\]]{1,400})[)\]]")
# characters before brackets in which a short form, or the words of a long one, are looked for
_BEFORE = 1_000
_COMMENT = re.compile(r"[;,]|\s+(?:or|and)\s")
_WORD = re.compile(r"\S+")
_QUOTES = "\"'“”‘’"


@dataclass(frozen=True, kw_only=True, slots=True)
class Abbreviation:
    """A short form with its long form, as written in the text."""

    short: str
    long: str


def abbreviations(text: str, sentences: Sequence[Sentence]) -> tuple[Abbreviation, ...]:
    """Return the abbreviations that a text defines, in its order, each once.

    Args:
        text: any.
        sentences: of the text; a definition does not cross them.
    """
    found = (pair for sentence in sentences for pair in _pairs(sentence.of(text)))
    return tuple(dict.fromkeys(found))


def _pairs(sentence: str) -> Iterator[Abbreviation]:
    for brackets in _BRACKETS.finditer(sentence):
        since = max(0, brackets.start() - _BEFORE)
        before = sentence[since : brackets.start()].rstrip()
        if since:
            # its first word may be the end of one
            before = before.partition(" ")[2]
        inner = _COMMENT.split(brackets[1], maxsplit=1)[0].strip().strip(_QUOTES).strip()
        if is_short_form(inner):
            if (long := long_form(inner, _candidate(before, inner))) is not None:
                yield Abbreviation(short=inner, long=long)
        else:
            # the other way about: `MI (myocardial infarction)`
            last = before.split()[-1].strip(_QUOTES) if before else ""
            if is_short_form(last) and (long := long_form(last, inner)) == inner:
                yield Abbreviation(short=last, long=inner)


def is_short_form(text: str) -> bool:
    """Return whether a text has the form of an abbreviation: short, of one or two words, with a letter.

    It begins with a letter or a digit and holds a capital letter or a digit, without which brackets hold words.
    """
    return (
        SHORTEST <= len(text) <= LONGEST
        and len(text.split()) <= SHORT_WORDS
        and text[0].isalnum()
        and any(character.isalpha() for character in text)
        and any(character.isupper() or character.isdigit() for character in text)
    )


def _candidate(before: str, short: str) -> str:
    """Return the words before the brackets among which the long form is looked for: at most min(A + 5, 2 A) of them.

    A is the number of the short form's characters (section 3.1).
    """
    words = list(_WORD.finditer(before))
    most = min(len(short) + 5, 2 * len(short))
    return before[words[-most:][0].start() :] if words else ""


def long_form(short: str, candidate: str) -> str | None:
    """Return the shortest end of ``candidate`` that ``short`` can stand for; ``None``: none can (section 3.2).

    Letters and digits of the short form are looked for from the right; that of its beginning must begin a word.
    """
    at = len(candidate)
    for i in range(len(short) - 1, -1, -1):
        wanted = short[i].lower()
        if not wanted.isalnum():
            continue
        at -= 1
        while at >= 0 and (
            candidate[at].lower() != wanted or (i == 0 and at > 0 and candidate[at - 1].isalnum())
        ):
            at -= 1
        if at < 0:
            return None
    start = candidate.rfind(" ", 0, at + 1) + 1
    return _accepted(short, candidate[start:].strip())


def _accepted(short: str, long: str) -> str | None:
    """Return a cleaned long form; ``None``: it is no longer than the short form or contains it as a word."""
    words = re.split(r"[\s\-/]+", long)
    if len(long) <= len(short) or short in words or long.count("(") != long.count(")"):
        return None
    return long.strip(_QUOTES + ",;:") or None
