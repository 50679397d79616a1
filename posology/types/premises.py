"""Texts that a language model judges claims beside: sentences of a document, behind its title and the sentence before them.

Title and sentence before say what "it" and "the drug" of a sentence are.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from operator import attrgetter

from posology.types.literature import Excerpt


def premise(text: str, *, title: str = "", before: str = "") -> str:
    """Return sentences behind the title of their document and the sentence before them."""
    title = title.strip().strip("[]").rstrip(".")
    return " ".join(part for part in (title and f"{title}.", before.strip(), text.strip()) if part)


def surroundings(excerpt: Excerpt, start: int, end: int) -> tuple[str, str, str]:
    """Return the title of an excerpt's passage, the sentence before a part of it, and the whole sentences of the part.

    Args:
        excerpt: the excerpt.
        start: first code point of the part in the passage's text.
        end: one past its last code point.
    """
    spans, text = excerpt.sentences, excerpt.passage.text
    first = bisect_right(spans, start, key=attrgetter("end"))
    last = bisect_left(spans, end, key=attrgetter("start"))
    start = min([start, *(one.start for one in spans[first:last])])
    end = max([end, *(one.end for one in spans[first:last])])
    before = spans[first - 1].of(text) if first else ""
    return excerpt.passage.title, before, text[start:end]
