"""Passages as data: fenced so that no text can close its own fence and pose as instructions."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Sequence
from dataclasses import dataclass

from posology.types import Excerpt, Passage

#: stands where sentences of the passage are not shown
OMISSION = " […] "
#: as models write labels: P1, p1, [P1], 1
_LABEL = re.compile(r"\[?[Pp]?([1-9][0-9]{0,3})\]?")


@dataclass(frozen=True, kw_only=True, slots=True)
class Fenced:
    """Excerpts as one block of text."""

    text: str
    #: what every fence of the block carries; occurs nowhere else in it
    code: str


def label(position: int) -> str:
    """The label of the excerpt at a position: ``P1`` for 0, and so on."""
    return f"P{position + 1}"


def position(given: str) -> int | None:
    """The position that a label stands for, counted from 0; ``None`` if it is no label."""
    match = _LABEL.fullmatch(given.strip())
    return int(match[1]) - 1 if match else None


def fence(excerpts: Sequence[Excerpt]) -> Fenced:
    """Fence excerpts in their order.

    The code derives from the content, so that the same call renders the same way, and is chosen so
    that no excerpt contains it.
    """
    bodies = [_body(excerpt) for excerpt in excerpts]
    code = _code(bodies)
    blocks = [
        f"[[{label(i)} {code}]]\n{body}\n[[/{label(i)} {code}]]" for i, body in enumerate(bodies)
    ]
    return Fenced(text="\n\n".join(blocks), code=code)


def shown(excerpt: Excerpt) -> str:
    """The excerpt's sentences in their order, with a mark where something between them is left out."""
    text = excerpt.passage.text
    parts: list[str] = []
    end: int | None = None
    for sentence in excerpt.sentences:
        if end is not None:
            between = text[end : sentence.start]
            parts.append(between if not between.strip() else OMISSION)
        elif text[: sentence.start].strip():
            parts.append(OMISSION.lstrip())
        parts.append(sentence.of(text))
        end = sentence.end
    if end is not None and text[end:].strip():
        parts.append(OMISSION.rstrip())
    return "".join(parts)


def _code(bodies: Sequence[str]) -> str:
    digest = hashlib.sha256("\0".join(bodies).encode("utf-8", "surrogatepass"))
    while any((code := digest.hexdigest()[:10]) in body for body in bodies):
        digest.update(b"+")
    return code


def _body(excerpt: Excerpt) -> str:
    passage = excerpt.passage
    head = [f"title: {_line(passage.title)}"] if passage.title else []
    if facts := _facts(passage):
        head.append(facts)
    return "\n".join([*head, f"text: {shown(excerpt)}"])


def _facts(passage: Passage) -> str:
    facts = []
    if passage.year is not None:
        facts.append(f"year: {passage.year}")
    if passage.publication_types:
        facts.append(f"type: {_line('; '.join(passage.publication_types))}")
    if passage.retracted:
        facts.append("RETRACTED")
    return " | ".join(facts)


def _line(value: str) -> str:
    return " ".join(value.split())
