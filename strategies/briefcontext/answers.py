"""Partitions that answer by themselves: which answers differ, and which of them prevails.

BriefContext, section 5.3: a conflict is that answers from different partitions of the same passages are inconsistent,
and the reduce call resolves it. Alternatively the rule of :mod:`strategies.briefcontext.conflicts` decides beforehand,
and only what it leaves unresolved is left to the call.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from itertools import chain

from posology.text._lexicon import words
from posology.text.figures import blanked, lacking
from posology.text.quoting.edges import DOUBTS, negates
from posology.types import Conflict, Resolution
from prompts.reduce import Sourced
from strategies.briefcontext.conflicts import Opposed, oppose, rule

#: maximum length of a partition's answer, characters: about ten words
LONGEST = 80
_WORD = re.compile(r"(?:(?<![^\W_])non[-‐‑ ])?[^\W_]+(?:['’.,][^\W_]+)*", re.IGNORECASE)
_NON = re.compile(r"\Anon[-‐‑ ]", re.IGNORECASE)
#: words that say nothing about which answer it is
_EMPTY = words("a an the of in on at by to for with and or it is was are were its")
#: beside these, the order of the words is the answer
_COMPARING = frozenset(
    word.removesuffix("s")
    for word in words("than superior inferior better worse more less versus over higher lower")
)


@dataclass(frozen=True, kw_only=True, slots=True)
class Group:
    """Partitions whose answers are the same."""

    #: of the best-ranked of them
    answer: str
    #: findings that explain it, in rank order
    findings: tuple[Sourced, ...]


def agree(one: str, other: str) -> bool:
    """Return whether two short answers are the same: one has every word and figure of the other, and both or neither deny."""
    mine, theirs = _words(one), _words(other)
    if not mine or not theirs:
        return mine == theirs
    return (_within(one, other) or _within(other, one)) and _denies(mine) == _denies(theirs)


def _within(one: str, other: str) -> bool:
    mine, theirs = _words(blanked(one)), _words(blanked(other))
    if not set(mine) <= set(theirs) or lacking(one, other):
        return False
    return _COMPARING.isdisjoint(mine) or mine == [word for word in theirs if word in mine]


def group(findings: Sequence[Sourced]) -> tuple[Group, ...]:
    """Group findings by the answers of their partitions, best-ranked first; more than one group is a conflict."""
    groups: list[tuple[str, list[Sourced]]] = []
    for finding in findings:
        if finding.answer is None:
            continue
        same = next((found for said, found in groups if agree(said, finding.answer)), None)
        if same is None:
            groups.append((finding.answer, [finding]))
        else:
            same.append(finding)
    return tuple(Group(answer=answer, findings=tuple(found)) for answer, found in groups)


def decided(groups: Sequence[Group]) -> Conflict | None:
    """Return the conflict of several answers as the rule resolves it; ``None`` if it does not, or there is none."""
    if len(groups) < 2:
        return None
    for one in groups:
        sides = _sides(one, groups)
        ruling = rule(sides.supporting, sides.opposing)
        if ruling.resolution is Resolution.SUPPORTING:
            return _conflict(one, groups, Resolution.SUPPORTING, ruling.how)
    return None


def resolved(groups: Sequence[Group], said: str | None) -> Conflict | None:
    """Return the conflict of several answers as a reduce call resolved it; ``None`` if there is none.

    Args:
        groups: the answers of the partitions.
        said: the call's own verdict or short answer; ``None``: it gave none.
    """
    if len(groups) < 2:
        return None
    won = None if said is None else _of(groups, said)
    if won is None:
        how = f"Not resolved: parts of the passages answer {told(groups)}, and the reduce call gives none of them."
        return _conflict(groups[0], groups, Resolution.UNRESOLVED, how)
    how = f"Resolved by the reduce call: parts of the passages answer {told(groups)}, and it gives “{won.answer}”."
    return _conflict(won, groups, Resolution.SUPPORTING, how)


def told(groups: Sequence[Group]) -> str:
    """Return the answers of groups in quotation marks."""
    return " and ".join(f"“{one.answer}”" for one in groups)


def _of(groups: Sequence[Group], said: str) -> Group | None:
    """Return the group of an answer: the one with the same words if several agree with it."""
    found = [one for one in groups if agree(one.answer, said)]
    exact = [one for one in found if set(_words(one.answer)) == set(_words(said))]
    return next(iter(exact or found), None) if len(found) == 1 or exact else None


def _conflict(one: Group, groups: Sequence[Group], resolution: Resolution, how: str) -> Conflict:
    sides = _sides(one, groups)
    return Conflict(
        claim=f"The answer is “{one.answer}”.",
        supporting=sides.supporting,
        opposing=sides.opposing,
        resolution=resolution,
        how=how,
    )


def _sides(one: Group, groups: Sequence[Group]) -> Opposed:
    others = chain.from_iterable(other.findings for other in groups if other is not one)
    return oppose(one.findings, list(others))


def _words(text: str) -> list[str]:
    """Return the words of a text without those that say nothing, singular, once each; of those that deny, as they are."""
    given = [_NON.sub("non", match[0]) for match in _WORD.finditer(text)]
    # "hepatitis A" is a kind of it, "A statin" is not
    found = ("A" if word == "A" and i else word.lower() for i, word in enumerate(given))
    said = (
        word if _denies([word]) else word.removesuffix("s") for word in found if word not in _EMPTY
    )
    return list(dict.fromkeys(said))


def _denies(found: Collection[str]) -> bool:
    return any(negates(word) or word in DOUBTS for word in found)
