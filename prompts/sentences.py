"""Passages whose sentences have numbers, and the form of a reply that names them."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Annotated, Any

from pydantic import WithJsonSchema

from posology.text.numbering import name, numbered
from posology.types import Excerpt
from prompts.fence import OMISSION, Fenced, body, enclose, line, seen

#: a text's own brackets that could be read as the number of a sentence
_POSE = re.compile(r"\[(\s*[A-Za-z]?\d+\s*\.\s*\d[^\[\]\n]{0,40})\]?")
#: passages up to which the pattern of a name says how many there are
_DIGIT = 9


def fence_numbered(excerpts: Sequence[Excerpt], *, question: str = "") -> Fenced:
    """Fence excerpts in their order under the labels 1, 2 and so on, each sentence behind its number.

    A summary has no numbers. Brackets of a text that could be read as a number become round.
    """
    bodies = [body(one, show(one, place), unposed) for place, one in enumerate(excerpts)]
    return enclose(bodies, "", question=question)


def numbers(excerpt: Excerpt, place: int) -> list[str]:
    """Return the sentences of an excerpt in order, each on one line behind its number.

    Args:
        excerpt: what is shown.
        place: of the excerpt among all, from 0.
    """
    text = excerpt.passage.text
    return [
        f"[{name(place, at)}] {unposed(line(OMISSION.join(span.of(text) for span in spans)))}"
        for at, spans in enumerate(numbered(excerpt))
    ]


def show(excerpt: Excerpt, place: int) -> str:
    """Return the sentences of an excerpt behind their numbers, with a mark for each omission.

    Args:
        excerpt: what is shown.
        place: of the excerpt among all, from 0.
    """
    text = excerpt.passage.text
    parts: list[str] = []
    end = 0
    for row, spans in zip(numbers(excerpt, place), numbered(excerpt), strict=True):
        if text[end : spans[0].start].strip():
            parts.append(OMISSION.strip())
        parts.append(row)
        end = spans[-1].end
    if parts and text[end:].strip():
        parts.append(OMISSION.strip())
    return " ".join(parts)


def unposed(text: str) -> str:
    """Return a text whose brackets cannot be read as the number of a sentence."""
    return _POSE.sub(r"(\1)", seen(text))


def sentence_name(passages: int) -> Any:
    """Return the type of a sentence's name in the schema of a reply.

    A pattern, not an enumeration: it is short, and the same for all questions with so many passages, so that a provider
    compiles it once. A number that was not shown costs its quote, not a repair.

    Args:
        passages: number of passages, or findings, that are shown.
    """
    first = f"[1-{passages}]" if 1 < passages <= _DIGIT else "1" if passages == 1 else "[1-9][0-9]*"
    return Annotated[str, WithJsonSchema({"type": "string", "pattern": rf"^{first}\.[1-9][0-9]?$"})]
