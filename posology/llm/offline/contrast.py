"""Quoted sentences whose wording contradicts each other: a stated heuristic, no judgement."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from posology.llm.offline.scores import Scored
from posology.llm.offline.wording import Stance, asks_for_a_side, coverage, stance
from posology.types import Call

#: A sentence with less of the question's words, its title's included, is about something else: the
#: lowest tenth at which nothing false was reported of PubMedQA (decision 0007).
COVERS = 0.60


@dataclass(frozen=True, kw_only=True, slots=True)
class Contrast:
    """Sentences of different passages for and against, nearest to the question first."""

    speaking_for: tuple[Scored, ...]
    speaking_against: tuple[Scored, ...]


def contrast(call: Call, scored: Sequence[Scored]) -> Contrast | None:
    """Find contradicting sentences by their wording; ``None``: there are none.

    Only yes-no questions have sides, and only sentences with the question's words take one. Passages with sentences
    of both sides are left out, because wording alone does not show which one they support.
    """
    if not asks_for_a_side(call.query.text):
        return None
    taken = [(one, side) for one in scored if (side := _side(call, one)) is not None]
    sides: dict[str, set[Stance]] = {}
    for one, side in taken:
        sides.setdefault(_id(call, one), set()).add(side)
    clear = [(one, side) for one, side in taken if len(sides[_id(call, one)]) == 1]
    for_ = tuple(one for one, side in clear if side is Stance.FOR)
    against = tuple(one for one, side in clear if side is Stance.AGAINST)
    return Contrast(speaking_for=for_, speaking_against=against) if for_ and against else None


def _side(call: Call, one: Scored) -> Stance | None:
    passage = call.excerpts[one.excerpt].passage
    words = one.sentence.of(passage.text)
    covers = coverage(call.query.text, f"{passage.title} {words}")
    return stance(words) if covers >= COVERS else None


def _id(call: Call, one: Scored) -> str:
    return call.excerpts[one.excerpt].passage.id
