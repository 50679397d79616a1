"""Quoted sentences that contradict each other: by a judge of support, or else by their wording.

The judge is a trained model; wording is a stated heuristic and no judgement.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from posology.llm.offline.scores import Scored
from posology.llm.offline.wording import Stance, asks_for_a_side, coverage, is_question, stance
from posology.seams import SupportJudge
from posology.types import Call

#: A sentence with less of the question's words, its title's included, is about something else: the
#: lowest tenth at which nothing false was reported of PubMedQA (decision 0007).
COVERS = 0.60
#: Least probability of a side by a judge: a contradiction that is missed is better than one that is made up.
SURE = 0.60
#: Maximum sentences that are judged, best first.
JUDGED = 16


@dataclass(frozen=True, kw_only=True, slots=True)
class Contrast:
    """Sentences of different passages for and against, nearest to the question first."""

    speaking_for: tuple[Scored, ...]
    speaking_against: tuple[Scored, ...]
    #: whether a judge of support assigned the sides
    judged: bool = False


def contrast(
    call: Call, scored: Sequence[Scored], judge: SupportJudge | None = None
) -> Contrast | None:
    """Find contradicting sentences; ``None``: there are none.

    Args:
        call: whose question and excerpts they are of.
        scored: sentences, best first.
        judge: assigns the sides; ``None``: their wording does. Blocking.
    """
    if judge is None:
        return _by_wording(call, scored)
    texts = [_words(call, one) for one in scored[:JUDGED]]
    if len({_id(call, one) for one in scored[:JUDGED]}) < 2:
        return None
    claim = claim_of(call.query.text, texts[0])
    found = judge.judge([(claim, text) for text in texts])
    sides = zip(scored[:JUDGED], (_likely(row.tolist()) for row in found), strict=True)
    pair = _opposed(call, [(one, side) for one, side in sides if side is not None])
    return None if pair is None else replace(pair, judged=True)


def claim_of(question: str, best: str) -> str:
    """Return the claim that sentences are judged against: a yes-no question with yes, a statement, or the best sentence.

    The judge was trained on questions with their answers as on statements.
    """
    if asks_for_a_side(question):
        return f"{question} Yes."
    return best if is_question(question) else question


def _by_wording(call: Call, scored: Sequence[Scored]) -> Contrast | None:
    """Find contradicting sentences by their wording.

    Only yes-no questions have sides, and only sentences with the question's words take one. Passages with sentences
    of both sides are left out, because wording alone does not show which one they support.
    """
    if not asks_for_a_side(call.query.text):
        return None
    taken = [(one, side) for one in scored if (side := _side(call, one)) is not None]
    return _opposed(call, taken)


def _opposed(call: Call, taken: Sequence[tuple[Scored, Stance]]) -> Contrast | None:
    sides: dict[str, set[Stance]] = {}
    for one, side in taken:
        sides.setdefault(_id(call, one), set()).add(side)
    clear = [(one, side) for one, side in taken if len(sides[_id(call, one)]) == 1]
    for_ = tuple(one for one, side in clear if side is Stance.FOR)
    against = tuple(one for one, side in clear if side is Stance.AGAINST)
    return Contrast(speaking_for=for_, speaking_against=against) if for_ and against else None


def _likely(probabilities: Sequence[float]) -> Stance | None:
    supports, contradicts, _ = probabilities
    if supports >= SURE:
        return Stance.FOR
    return Stance.AGAINST if contradicts >= SURE else None


def _side(call: Call, one: Scored) -> Stance | None:
    passage = call.excerpts[one.excerpt].passage
    words = _words(call, one)
    covers = coverage(call.query.text, f"{passage.title} {words}")
    return stance(words) if covers >= COVERS else None


def _id(call: Call, one: Scored) -> str:
    return call.excerpts[one.excerpt].passage.id


def _words(call: Call, one: Scored) -> str:
    return one.sentence.of(call.excerpts[one.excerpt].passage.text)
