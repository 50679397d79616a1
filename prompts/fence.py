"""Passages as data: fenced so that no text can close its own fence and pose as instructions."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Sequence
from dataclasses import dataclass
from unicodedata import normalize

from posology.text.quotes import UNSEEN
from posology.types import Excerpt, Passage

#: stands between two blocks
BETWEEN = "\n\n"
#: mark of omitted sentences
OMISSION = " […] "
#: prefix of a summary, which must not be quoted
SUMMARY = "summary (a model's words, not to be quoted): "
#: hexadecimal digits of a code; no text holds it, whatever its length, however it is spelled
_CODE = 6
#: control characters; those that separate words become spaces
_CONTROLS = {
    code: " " if chr(code).isspace() else None
    for code in (*range(0x20), *range(0x7F, 0xA0))
    if chr(code) not in "\t\n\r"
}
#: tags can spell a text which only a model reads, and overrides of the reading direction one which only a person does
_UNSEEN = re.compile(f"[{UNSEEN}]+")
#: a digit of another script
_DIGIT = re.compile(r"[^\x00-\x7f\D]")
#: what may stand between the digits of a code
_NO_DIGIT = re.compile(r"[^0-9a-f]+")
#: labels as models write them: P1, p1, [P1], 1
_LABEL = re.compile(r"\[?([A-Za-z]?)([1-9][0-9]{0,3})\]?")


@dataclass(frozen=True, kw_only=True, slots=True)
class Fenced:
    """Blocks of quoted text as one text."""

    #: each with its fences
    blocks: tuple[str, ...]
    #: code of every fence of the block; occurs nowhere else in it
    code: str

    @property
    def text(self) -> str:
        """The blocks as one text."""
        return BETWEEN.join(self.blocks)


def label(position: int, letter: str = "P") -> str:
    """Return the label of a position: ``P1`` for 0, and so on."""
    return f"{letter}{position + 1}"


def position(given: str, letter: str = "P") -> int | None:
    """Return the position of a label, from 0; ``None`` if it is not a label."""
    match = _LABEL.fullmatch(given.strip())
    if match is None or match[1].upper() not in {"", letter}:
        return None
    return int(match[2]) - 1


def fence(excerpts: Sequence[Excerpt], *, question: str = "") -> Fenced:
    """Fence excerpts in their order, under the labels P1, P2 and so on.

    A summary follows its passage's text, or replaces it if no sentence is shown.
    """
    return enclose([body(one, f"text: {shown(one)}") for one in excerpts], question=question)


def enclose(bodies: Sequence[str], letter: str = "P", *, question: str = "") -> Fenced:
    """Fence texts in their order, without characters that nobody sees.

    The code derives from the question and the first text, so that the same call renders the same way, and one with
    more texts begins as the one with fewer. It is chosen so that neither a text nor the question contains it.
    """
    bodies = [seen(body) for body in bodies]
    code = _code(bodies, question)
    blocks = tuple(
        f"[[{label(i, letter)} {code}]]\n{body}\n[[/{label(i, letter)} {code}]]"
        for i, body in enumerate(bodies)
    )
    return Fenced(blocks=blocks, code=code)


def shown(excerpt: Excerpt) -> str:
    """Join an excerpt's sentences in their order, with a mark for each omission."""
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


def _code(bodies: Sequence[str], question: str) -> str:
    first = "\0".join((question, *bodies[:1]))
    digest = hashlib.sha256(first.encode("utf-8", "surrogatepass"))
    # the question and the first text are known to others, and so is the code: a later text may spell it, in forms of
    # digits that a model reads as these, or with signs between them
    written = [_spelled(text) for text in (*bodies, question)]
    while any((code := digest.hexdigest()[:_CODE]) in text for text in written):
        digest.update(b"+")
    return code


def _spelled(text: str) -> str:
    """Return the hexadecimal digits of a text, of every script, and no more."""
    plain = _DIGIT.sub(lambda found: str(int(found[0])), normalize("NFKC", text).lower())
    return _NO_DIGIT.sub("", plain)


def heading(passage: Passage, *more: str) -> list[str]:
    """Return the heading of a passage: its title, and its facts including ``more``."""
    lines = [f"title: {line(passage.title)}"] if passage.title else []
    facts = []
    if passage.year is not None:
        facts.append(f"year: {passage.year}")
    if passage.publication_types:
        facts.append(f"type: {line('; '.join(passage.publication_types))}")
    if passage.section:
        facts.append(f"section: {line(passage.section)}")
    if passage.trials:
        # two passages of one trial are not two trials
        facts.append(f"trial: {line('; '.join(passage.trials))}")
    facts.extend(more)
    if passage.retracted:
        facts.append("RETRACTED")
    elif passage.concern:
        facts.append("EXPRESSION OF CONCERN")
    return [*lines, " | ".join(facts)] if facts else lines


def seen(text: str) -> str:
    """Return a text without characters that nobody sees."""
    return _UNSEEN.sub("", text.translate(_CONTROLS))


def line(value: str) -> str:
    """Put a text on one line, so that it cannot pose as lines of the prompt."""
    return " ".join(value.split())


def body(excerpt: Excerpt, text: str) -> str:
    """Return what stands in a fence: the passage's heading, its text, its summary.

    Args:
        excerpt: what is shown.
        text: its sentences as they are shown.
    """
    lines = heading(excerpt.passage)
    if excerpt.sentences or excerpt.summary is None:
        lines.append(text)
    if excerpt.summary is not None:
        # on one line: a summary with a line "text:" would pose as the passage
        lines.append(SUMMARY + line(excerpt.summary))
    return "\n".join(lines)
