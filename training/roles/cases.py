"""Abstracts with the roles of their sentences, for the head of :mod:`posology.text.roles.head`.

Roles come from the headings of structured abstracts, which are then removed. Parts are by document: 15 % test, 15 % dev,
the rest training. PubMedQA's abstracts, whose sections have labels, are for tests alone.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from posology.text.roles.headings import headings, named_roles
from posology.text.sentences import split
from posology.types import Passage, Sentence, SentenceRole
from training.gold import rows
from training.pruner_cases import POOL, part_of

BACKGROUND, AIM = SentenceRole.BACKGROUND, SentenceRole.AIM
PUBMEDQA = "pubmedqa_train.jsonl.gz"
#: abstracts of the pool that are used: to encode one takes longer than to learn from it
MOST = 1_664
#: headings with roles that make a structured abstract
LEAST = 3
_OPENING = frozenset({BACKGROUND, AIM})
_SAYS_AIM = re.compile(
    r"\b(?:aims?|aimed|objectives?|purpose|goals?|hypothesi[sz]ed?|hypotheses|sought|set out|wished|intended)\b"
    r"|\bresearch questions?\b"
    r"|\b(?:this|our|the present|the current|present|current|these) (?:\w+[ -]){0,4}?"
    r"(?:study|studies|trial|paper|article|review|report|investigation|work|analysis|experiments?)\b.{0,60}?"
    r"\b(?:investigat|examin|evaluat|assess|compar|determin|explor|describ|report|test|analy[sz]|address|undertaken"
    r"|conducted|performed|designed|carried out|review|present|focus)"
    r"|\bwe (?:\w+ly |therefore |thus |here |also |now |have |then ){0,2}"
    r"(?:investigat|examin|evaluat|assess|compar|determin|explor|describ|report|test|analy[sz]|address|stud(?:y|ied)"
    r"|ask|present|conduct|perform|design|undertook|review|characteri[sz]|measur|hypothes|tried|attempt|want)"
    r"|^(?:therefore|thus|hence|here)\b.{0,20}\bwe\b",
    re.IGNORECASE,
)
_BEGINS_AIM = re.compile(r"^to [a-z]+", re.IGNORECASE)
#: what a removed half of a double heading left: "MATERIAL/ To assess …"
_REST = re.compile(
    r"(?:^|(?<=[.?!)\]]))\s*(?:MATERIALS?|PATIENTS|SUBJECTS|BACKGROUND|CONCLUSIONS?|RESULTS|METHOD(?:S|OLOGY)?)"
    r"\s*(?:/|AND\b|&)\s*(?=$|[A-Z0-9])"
)
#: where a heading is missing but for its colon
_LOST = re.compile(r"[.?!)] ?: [A-Z]")


@dataclass(frozen=True, kw_only=True, slots=True)
class Abstract:
    """An abstract without headings, and the roles of its sentences."""

    passage: Passage
    sentences: tuple[Sentence, ...]
    #: ``None``: its section says nothing of its role, or two roles at once
    roles: tuple[SentenceRole | None, ...]
    #: the same by headings alone, without regard to the sentence's words
    by_heading: tuple[SentenceRole | None, ...]
    #: ``train``, ``dev`` or ``test``
    part: str


@dataclass(frozen=True, kw_only=True, slots=True)
class _Section:
    text: str
    named: frozenset[SentenceRole]


def abstracts(data: Path, most: int = MOST) -> list[Abstract]:
    """Return the first structured abstracts of the pool, with the roles that their headings give.

    Args:
        data: folder of the data sets.
        most: maximum number.
    """
    found: list[Abstract] = []
    for row in rows(data / POOL):
        sections = _sections(row["text"])
        if sum(bool(one.named) for one in sections) >= LEAST and not _LOST.search(row["text"]):
            found.append(_abstract(row["id"], row.get("title") or "", sections, part_of(row["id"])))
        if len(found) == most:
            break
    return found


def pubmedqa(data: Path) -> list[Abstract]:
    """Return PubMedQA's abstracts with the labels of their sections, all of part ``test``: no head is trained on them."""
    return [_labelled(row) for row in rows(data / PUBMEDQA)]


def _sections(text: str) -> list[_Section]:
    marks = headings(text)
    ends = [*(one.start for one in marks), len(text)]
    sections = [_Section(text=text[: ends[0]], named=frozenset())]
    sections += [
        _Section(text=text[one.end : end], named=one.roles)
        for one, end in zip(marks, ends[1:], strict=True)
    ]
    return [one for one in sections if one.text.strip()]


def _labelled(row: dict[str, Any]) -> Abstract:
    pairs = [*zip(row["contexts"], row["labels"], strict=True)]
    pairs.append((row["long_answer"], "CONCLUSION"))
    sections = [_Section(text=text, named=named_roles(label)) for text, label in pairs]
    return _abstract(f"pmid:{row['pmid']}", row["question"], sections, "test")


def _abstract(name: str, title: str, sections: Sequence[_Section], part: str) -> Abstract:
    """Join sections to a text without headings, split it, and label each sentence by where it begins."""
    text, starts = "", []
    for one in sections:
        starts.append(len(text))
        text += " ".join(_REST.sub(" ", one.text).split()) + " "
    text = text.rstrip()
    sentences = split(text)
    own = [max(k for k, start in enumerate(starts) if start <= s.start) for s in sentences]
    roles: list[SentenceRole | None] = []
    for k, section in enumerate(sections):
        inside = [s.of(text) for s, place in zip(sentences, own, strict=True) if place == k]
        roles += by_words(inside, section.named)
    return Abstract(
        passage=Passage(id=name, title=title, text=text),
        sentences=sentences,
        roles=tuple(roles),
        by_heading=tuple(next(iter(n)) if len(n := sections[k].named) == 1 else None for k in own),
        part=part,
    )


def by_words(sentences: Sequence[str], named: frozenset[SentenceRole]) -> list[SentenceRole | None]:
    """Return the roles of a section's sentences.

    An opening section has background up to the first sentence that says an aim. Where none does, a section that is headed as
    background, or as aim, has that role, and one headed as both is left out.

    Args:
        sentences: of the section, in order.
        named: roles that its heading names.
    """
    if not named or not named <= _OPENING:
        return [next(iter(named)) if len(named) == 1 else None] * len(sentences)
    aims = [bool(_SAYS_AIM.search(s)) for s in sentences]
    if AIM in named:
        aims = [aim or bool(_BEGINS_AIM.match(s)) for aim, s in zip(aims, sentences, strict=True)]
    if not any(aims):
        return [next(iter(named)) if len(named) == 1 else None] * len(sentences)
    first = aims.index(True)
    # under an aim's heading, what follows the aim explains it
    after = [aim or AIM in named for aim in aims[first:]]
    before: list[SentenceRole | None] = [BACKGROUND] * first
    return before + [AIM if aim else BACKGROUND for aim in after]
