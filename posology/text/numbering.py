"""Sentences under numbers: a model names its evidence by ``2.4``, sentence 4 of passage 2, and copies nothing.

A number means a place in what was shown. The whole sentence of the source is cited, also where only fragments of it
were shown, so that a citation never leaves out a negation that a compressor took for a detail. Summaries, titles and
headings have no numbers.
"""

from __future__ import annotations

import re
from collections.abc import Collection
from dataclasses import dataclass

from posology.text.figures import figures
from posology.text.quoting.edges import sentence_at
from posology.types import Excerpt, Sentence

#: most sentences that one range names: a longer one is no evidence for one statement
LONGEST_RANGE = 6
#: characters that end a sentence
_ENDS = frozenset(".!?…:;)]\"'”’")
_NUMBER = r"[PpFf]?([1-9][0-9]{0,3})\s*\.\s*([1-9][0-9]{0,3})"
#: names as models write them: 2.4, [2.4], P2.4, 2.3-2.5, [2.3]-[2.5], 2.3-5
_NAME = re.compile(
    rf"{_NUMBER}(?:\s*\]?\s*[-‐‑–—]\s*\[?\s*(?:{_NUMBER}|([1-9][0-9]{{0,3}})))?", re.ASCII
)
_PARTS = re.compile(r"[,;]|\]\s*\[")
#: a name that is longer than this is none
_LONGEST = 200
#: a name at the beginning, before a word that is no symbol of a unit
_LEADING = re.compile(rf"\[?({_NUMBER})\]?[.:)]?\s+(?=A\s|[A-Z][\w'’-]|[\"“(])", re.ASCII)
#: a name in square brackets within other words, with the space before it
_WITHIN = re.compile(rf"\s*\[{_NUMBER}\]", re.ASCII)


@dataclass(frozen=True, kw_only=True, slots=True)
class Place:
    """The place of a sentence in what was shown."""

    #: of the passage, from 0
    passage: int
    #: of the sentence within it, from 0
    sentence: int


def numbered(excerpt: Excerpt) -> tuple[tuple[Sentence, ...], ...]:
    """Return what an excerpt shows under each number, in order: a sentence, or fragments of one.

    Fragments with an omission between them have one number, unless the first ends as sentences do.
    """
    text = excerpt.passage.text
    found: list[tuple[Sentence, ...]] = []
    end = 0
    for span in excerpt.sentences:
        joins = found and text[end : span.start].strip() and text[end - 1] not in _ENDS
        found.append((*found.pop(), span) if joins else (span,))
        end = span.end
    return tuple(found)


def sentence_of(excerpt: Excerpt, place: int) -> Sentence | None:
    """Return the whole sentence of the passage under a number; ``None``: there is no such number.

    Args:
        excerpt: what was shown.
        place: of the number, from 0.
    """
    shown = numbered(excerpt)
    if place >= len(shown):
        return None
    text, start, end = excerpt.passage.text, shown[place][0].start, shown[place][-1].end
    if not text[start:end].strip():
        return None
    first, last = sentence_at(text, start), sentence_at(text, end - 1)
    return Sentence(start=min(first.start, start), end=max(last.end, end))


def name(passage: int, sentence: int) -> str:
    """Return the name of a sentence: ``1.1`` for the first of the first passage.

    Args:
        passage: place of the passage, from 0.
        sentence: place of the sentence within it, from 0.
    """
    return f"{passage + 1}.{sentence + 1}"


def places(given: str) -> tuple[Place, ...]:
    """Return the places that a name gives, in order; none if it is no name.

    Several names in one text, and ranges within one passage, are understood.
    """
    if len(given) > _LONGEST:
        return ()
    named: list[Place] = []
    for part in _PARTS.split(given):
        match = _NAME.fullmatch(part.strip().strip("[]() "))
        if match is None:
            return ()
        passage, first, other, last, short = match.groups()
        if other is not None and other != passage:
            return ()
        until = int(last or short or first)
        if not int(first) <= until < int(first) + LONGEST_RANGE:
            return ()
        named += [
            Place(passage=int(passage) - 1, sentence=at - 1) for at in range(int(first), until + 1)
        ]
    return tuple(dict.fromkeys(named))


def without_lead(text: str, names: Collection[str]) -> str:
    """Return a text without the name that it begins with, if that is one of those given: models copy it with its sentence.

    A quantity stays: ``2.5 Gy was given``.
    """
    lead = _LEADING.match(text)
    if lead is None:
        return text
    given = {place for one in names for place in places(one)}
    if given.isdisjoint(places(lead[1])) or any(
        one.start == 0 and one.unit for one in figures(text)
    ):
        return text
    return text[lead.end() :]


def without_names(text: str) -> tuple[str, tuple[str, ...]]:
    """Return a text without the names in square brackets that a model put into it, and the names.

    Lists and ranges stay, since intervals are written like them: ``1.3 [1.2-1.4]``.
    """
    names = tuple(f"{found[1]}.{found[2]}" for found in _WITHIN.finditer(text))
    return (_WITHIN.sub("", text).strip(), names) if names else (text, ())
