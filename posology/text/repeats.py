"""Repetitions in a reply: what a model says twice is shown once, and a loop is cut to one round.

Texts repeat each other if they have the same words in the same order, but for case, punctuation, articles and forms of "be".
Numbers, signs, negations and prepositions that change a meaning count.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

from posology.text._lexicon import words
from posology.text.sentences import split

#: rounds from which on clauses in a row are a loop: a list may name one thing twice
_ROUNDS = 3
#: clauses of one round at most, and words at least
_CLAUSES, _LEAST = 4, 3
_TOKEN = re.compile(r"[^\W_]+(?:[-.,·'’][^\W_]+)*|[<>≤≥≠±%/]|[-−](?=\d)")
_CLAUSE = re.compile(r"(?<=[,;:.!?])\s+|\s(?=and\s)")
#: The last characters by which earlier rounds are found, and how often they may stand in one round; rounds that are no longer a
#: reply, and their characters at least: a list of single words may have as many rounds.
_NEEDLE, _WITHIN, _ENDLESS, _LONG = 40, 4, 4, 480
_ASKING = words("what which who whom whose where when why how")
_YES_OR_NO = re.compile(
    r"(?:^|[:;,.?!]\s)\W*(?:do|does|did|is|are|was|were|can|could|should|will|would|has|have|had|may|might|must)\b",
    re.IGNORECASE,
)
_EMPTY = words(
    "the a an that this these those is are was were be been being has have had of for in also and furthermore moreover additionally "
    "overall thus therefore"
)


def key(text: str) -> tuple[str, ...]:
    """Return what two texts that repeat each other have in common."""
    return tuple(word for one in _TOKEN.findall(text) if (word := one.casefold()) not in _EMPTY)


def echoes(reply: str, question: str) -> bool:
    """Return whether a reply asks the question again: it has its interrogative, and no word that the question lacks.

    A question for yes or no has none: "when" is a conjunction there, and its own words affirm it.
    """
    told = key(reply)
    if _ASKING.isdisjoint(told) or _YES_OR_NO.search(question):
        return False
    return set(told) <= set(key(question))


def unlooped(text: str) -> str:
    """Return a text in which clauses that follow on each other three times or more stand once."""
    starts = [0, *(gap.end() for gap in _CLAUSE.finditer(text)), len(text)]
    clauses = [text[a:b] for a, b in pairwise(starts)]
    keys = [key(clause) for clause in clauses]
    kept, i = list[str](), 0
    while i < len(clauses):
        length, end = _loop(keys, i)
        kept += clauses[i : i + length]
        i = end
    if len(kept) == len(clauses):
        return text
    short = "".join(kept).rstrip(" ,;:\n")
    return short if short.endswith((".", "!", "?")) else f"{short}."


def loops(text: str) -> bool:
    """Return whether clauses of a text follow on each other three times or more."""
    return unlooped(text) != text


def endless(text: str) -> bool:
    """Return whether a text that is still being written ends in one part, character for character, again and again.

    Equal items of a list in JSON do not count: many cells of a table may be empty.
    """
    end = len(text)
    for _ in range(_WITHIN):
        at = text.rfind(text[-_NEEDLE:], 0, end - 1)
        period = len(text) - _NEEDLE - at
        span = text[-max(_ENDLESS * period, _LONG) :]
        if at < 0 or len(text) <= len(span) or "{" in span:
            return False
        if span[period:] == span[:-period]:
            return True
        end = at + _NEEDLE
    return False


def _loop(keys: Sequence[tuple[str, ...]], i: int) -> tuple[int, int]:
    """Return the clauses of a round that begins at a clause, and where its loop ends; one clause, without a loop."""
    for length in range(1, _CLAUSES + 1):
        once = keys[i : i + length]
        if sum(map(len, once)) < _LEAST:
            continue
        end = i + length
        while keys[end : end + length] == once:
            end += length
        if end - i < _ROUNDS * length:
            continue
        # the last round of a reply that was cut
        if end < len(keys) and keys[end] == once[0][: len(keys[end])]:
            end += 1
        return length, end
    return 1, i + 1


@dataclass(frozen=True, kw_only=True, slots=True)
class New:
    """The part of a text that was not said before."""

    #: empty: nothing
    text: str
    #: place of the text that said its first sentence first, which may be its own
    first: int


def unsaid(text: str, seen: dict[tuple[str, ...], int], place: int) -> New:
    """Return a text without the sentences that were said before, and without loops.

    Args:
        text: of one or more sentences.
        seen: keys of the sentences until here, with the place of the text that said each first; grows.
        place: of the text.
    """
    text = unlooped(text)
    sentences = [span.of(text) for span in split(text)]
    new = []
    firsts = []
    for one in sentences:
        found = key(one)
        if not found or found not in seen:
            seen[found] = place
            new.append(one)
        firsts.append(seen[found])
    return New(
        text=text if len(new) == len(sentences) else " ".join(new), first=min(firsts, default=place)
    )


def once(text: str) -> str:
    """Return a text with each of its sentences once, and without loops."""
    return unsaid(text, {}, 0).text


def remark(repeats: int) -> tuple[str, ...]:
    """Return the remark on repetitions that were left out."""
    if not repeats:
        return ()
    return (
        f"The model repeated itself: {repeats} {'repetition is' if repeats == 1 else 'repetitions are'} left out.",
    )
