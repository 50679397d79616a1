"""Passages whose sentences have numbers, and the form of a reply that names them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Any

from pydantic import WithJsonSchema

from posology.text.numbering import name, numbered
from posology.types import Excerpt
from prompts.fence import OMISSION, Fenced, body, enclose, line

#: passages up to which the pattern of a name says how many there are
_DIGIT = 9


def fence_numbered(excerpts: Sequence[Excerpt], *, question: str = "") -> Fenced:
    """Fence excerpts in their order under the labels 1, 2 and so on, each sentence on a line behind its number.

    A summary has no numbers. No text can pose as a number: one that begins a line is ours.
    """
    bodies = [body(one, "\n".join(show(one, place))) for place, one in enumerate(excerpts)]
    return enclose(bodies, "", question=question)


def numbers(excerpt: Excerpt, place: int) -> list[str]:
    """Return the sentences of an excerpt in order, each on one line behind its number.

    Args:
        excerpt: what is shown.
        place: of the excerpt among all, from 0.
    """
    text = excerpt.passage.text
    return [
        f"{name(place, at)} {line(OMISSION.join(span.of(text) for span in spans))}"
        for at, spans in enumerate(numbered(excerpt))
    ]


def show(excerpt: Excerpt, place: int) -> list[str]:
    """Return the lines of an excerpt: its sentences behind their numbers, and a mark for each omission.

    Args:
        excerpt: what is shown.
        place: of the excerpt among all, from 0.
    """
    text = excerpt.passage.text
    lines: list[str] = []
    end = 0
    for row, spans in zip(numbers(excerpt, place), numbered(excerpt), strict=True):
        if text[end : spans[0].start].strip():
            lines.append(OMISSION.strip())
        lines.append(row)
        end = spans[-1].end
    if lines and text[end:].strip():
        lines.append(OMISSION.strip())
    return lines


def sentence_name(passages: int) -> Any:
    """Return the type of a sentence's name in the schema of a reply.

    A pattern, not an enumeration: it is short, and the same for all questions with so many passages, so that a provider
    compiles it once. A number that was not shown costs its quote, not a repair.

    Args:
        passages: number of passages, or findings, that are shown.
    """
    return Annotated[
        str,
        WithJsonSchema({"type": "string", "pattern": rf"^{_first(passages)}\.[1-9][0-9]?$"}),
    ]


def place_name(findings: int) -> Any:
    """Return the type of a finding's number in the schema of a reply, see :func:`sentence_name`."""
    return Annotated[str, WithJsonSchema({"type": "string", "pattern": f"^{_first(findings)}$"})]


def _first(places: int) -> str:
    if places == 1:
        return "1"
    return f"[1-{places}]" if 1 < places <= _DIGIT else "[1-9][0-9]*"
