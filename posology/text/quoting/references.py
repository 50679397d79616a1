"""References in a text to passages, by their ids: ``[pmid:123, pmid:456]``.

Ids are looked for as they are: a file's name or a DOI may hold the comma, semicolon or bracket that divides others.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import lru_cache


@dataclass(frozen=True, kw_only=True, slots=True)
class Reference:
    """A bracket that names at least one passage."""

    #: first code point, that of the bracket
    start: int
    #: one past its last code point
    end: int
    #: the ids, and what else stands between commas and semicolons, in order
    items: tuple[str, ...]


def references(text: str, ids: Iterable[str]) -> Iterator[Reference]:
    """Yield the references of a text, in order.

    Args:
        text: the text.
        ids: of the passages that it may name.
    """
    known = frozenset(ids)
    if not known or "[" not in text:
        return
    bracket, item = _patterns(known)
    for found in bracket.finditer(text):
        items = tuple(
            one[1].rstrip() for one in item.finditer(text, found.start() + 1, found.end())
        )
        if not known.isdisjoint(items):
            yield Reference(start=found.start(), end=found.end(), items=items)


def without_references(text: str, ids: Iterable[str]) -> str:
    """Return a text without its references: ids are no words of an answer.

    Args:
        text: the text.
        ids: of the passages that it may name.
    """
    for one in reversed(list(references(text, ids))):
        after = text[one.end :]
        text = text[: one.start].rstrip() + " " * after[:1].isalnum() + after
    return text


@lru_cache(maxsize=64)
def _patterns(ids: frozenset[str]) -> tuple[re.Pattern[str], re.Pattern[str]]:
    known = "|".join(map(re.escape, sorted(ids, key=lambda one: (-len(one), one))))
    # atomic: what is an id is never read in another way
    item = rf"(?>\s*((?:{known})(?=\s*[,;\]])|[^\[\],;]*)\s*)"
    return re.compile(rf"\[{item}(?:[,;]{item})*+\]"), re.compile(rf"{item}[,;\]]")
