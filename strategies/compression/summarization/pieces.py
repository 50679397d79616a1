"""Splitting of a text into pieces that fit a model, without truncation."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from posology.text.sentences import split

#: counts the tokens of each text
Count = Callable[[Sequence[str]], list[int]]


def pieces(text: str, count: Count, limit: int) -> tuple[str, ...]:
    """Split a text into pieces of whole sentences; white space is collapsed.

    Args:
        text: to split.
        count: counts tokens. The sum over sentences is used as the count of a piece.
        limit: maximum tokens of a piece, >= 1. Longer sentences are split between words, longer words within.
    """
    parts = [" ".join(sentence.of(text).split()) for sentence in split(text)]
    fitting = [
        part for sentence in _counted(parts, count) for part in _fit(*sentence, count, limit)
    ]
    found: list[str] = []
    size = limit
    for part, tokens in fitting:
        if size + tokens > limit:
            found.append(part)
            size = tokens
        else:
            found[-1] += f" {part}"
            size += tokens
    return tuple(found)


def _fit(part: str, tokens: int, count: Count, limit: int) -> Iterator[tuple[str, int]]:
    """Halve a part until each piece fits."""
    if tokens <= limit or len(part) < 2:
        yield part, tokens
        return
    middle = len(part) // 2
    space = part.rfind(" ", 1, middle + 1)
    at = space if space > 0 else middle
    halves = [half for half in (part[:at].strip(), part[at:].strip()) if half]
    for half in _counted(halves, count):
        yield from _fit(*half, count, limit)


def _counted(parts: Sequence[str], count: Count) -> list[tuple[str, int]]:
    return list(zip(parts, count(parts), strict=True)) if parts else []
