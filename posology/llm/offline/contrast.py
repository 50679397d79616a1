"""Quoted sentences that contradict each other: by a judge of support, by their answers, or else by their wording.

A yes-no question and a statement have two sides, which a trained judge assigns. Any other question has as many as there are
answers: passages in which a trained reader finds different words are on different sides. Without these models, wording
decides, which is a stated heuristic and no judgement.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace

from posology.llm.offline.choice import Said, Scores
from posology.llm.offline.scores import Scored
from posology.llm.offline.wording import Stance, asks_for_a_side, coverage, is_question, stance
from posology.seams import SupportJudge
from posology.text.figures import Figure, blanked, figures
from posology.types import Call

#: A sentence with less of the question's words, its title's included, is about something else: the
#: lowest tenth at which nothing false was reported of PubMedQA (decision 0007).
COVERS = 0.60
#: Maximum sentences that are judged, best first.
JUDGED = 16
#: words of a longer answer are no name, number or date
LONGEST = 6
#: Share of the words of two answers, of which more is common if they are the same.
COMMON = 0.5
_WORD = re.compile(r"\d+(?:[.,]\d+)*|[^\W_]+")
_EMPTY = frozenset(
    [
        "a",
        "an",
        "the",
        "of",
        "in",
        "on",
        "at",
        "by",
        "for",
        "to",
        "and",
        "or",
        "was",
        "were",
        "is",
        "are",
        "it",
        "its",
    ]
)


@dataclass(frozen=True, kw_only=True, slots=True)
class Limits:
    """Least probabilities of a side. A contradiction that is missed is better than one that is made up.

    Those of answers are fitted on dev documents by ``python -m evals.reader.conflicts``. No limits of a claim put .80 of the
    dev passages on their right sides, so these are cautious ones, not fitted.
    """

    #: that a sentence supports or contradicts the claim at all
    sided: float = 0.6
    #: of support among both, from which a sentence is for the claim, and up to which it is against it
    supports: float = 0.90
    contradicts: float = 0.10
    #: that an excerpt answers the question
    answers: float = 0.75


LIMITS = Limits()


@dataclass(frozen=True, kw_only=True, slots=True)
class Contrast:
    """Sentences of different passages for and against, nearest to the question first."""

    speaking_for: tuple[Scored, ...]
    speaking_against: tuple[Scored, ...]
    #: whether a judge of support assigned the sides
    judged: bool = False
    #: words that answer on the one side and on the other; ``None``: the sides are not those of answers
    answers: tuple[str, str] | None = None


def contrast(
    call: Call, scores: Scores, judge: SupportJudge | None = None, limits: Limits = LIMITS
) -> Contrast | None:
    """Find contradicting sentences; ``None``: there are none.

    Args:
        call: whose question and excerpts they are of.
        scores: of its sentences.
        judge: assigns the sides of a yes-no question or a statement; ``None``: wording does. Blocking.
        limits: least probabilities.
    """
    if judge is None:
        return _by_wording(call, scores.read)
    question = call.query.text
    if is_question(question) and not asks_for_a_side(question):
        return _by_answers(call, scores.said, limits)
    read = scores.read[:JUDGED]
    if len({_id(call, one) for one in read}) < 2:
        return None
    claim = claim_of(question)
    found = judge.judge([(claim, _words(call, one)) for one in read])
    sides = zip(read, (_likely(row.tolist(), limits) for row in found), strict=True)
    pair = _opposed(call, [(one, side) for one, side in sides if side is not None])
    return None if pair is None else replace(pair, judged=True)


def claim_of(question: str) -> str:
    """Return the claim that sentences are judged against: a yes-no question with yes, or a statement.

    The judge was trained on questions with their answers as on statements.
    """
    return f"{question} Yes." if asks_for_a_side(question) else question


def _by_answers(call: Call, said: Sequence[Said], limits: Limits) -> Contrast | None:
    """Find two answers that differ: the most probable one, and the next that its passages do not give.

    A number differs from a number and a name from a name; a passage that names the other side's answer, too, is on neither.
    """
    groups: list[list[Said]] = []
    for answer in said:
        if (
            answer.sentence.score < limits.answers
            or not 0 < len(_content(_answer(call, answer))) <= LONGEST
        ):
            continue
        for group in groups:
            if _same(_key(_answer(call, group[0])), _key(_answer(call, answer))):
                group.append(answer)
                break
        else:
            groups.append([answer])
    for group in groups[1:]:
        best = groups[0]
        if _numeric(call, best[0]) != _numeric(call, group[0]):
            continue
        apart = [one for one in group if not any(_named(call, one, other) for other in best)]
        taken = [(one.sentence, Stance.FOR) for one in best]
        pair = _opposed(call, [*taken, *((one.sentence, Stance.AGAINST) for one in apart)])
        if pair is not None:
            words = (_answer(call, best[0]), _answer(call, apart[0]))
            return replace(pair, judged=True, answers=words)
    return None


def _answer(call: Call, one: Said) -> str:
    return one.span.of(call.excerpts[one.sentence.excerpt].passage.text)


@dataclass(frozen=True, kw_only=True, slots=True)
class _Key:
    """Figures and other words of an answer, which are compared with those of another."""

    figures: tuple[Figure, ...]
    #: its other words
    words: frozenset[str]


def _key(text: str) -> _Key:
    return _Key(figures=figures(text), words=_content(blanked(text)))


def _content(text: str) -> frozenset[str]:
    return frozenset(_WORD.findall(text.lower())) - _EMPTY


def _numeric(call: Call, one: Said) -> bool:
    return any(letter.isdigit() for letter in _answer(call, one))


def _same(one: _Key, other: _Key) -> bool:
    """Return whether two answers have a number in common, if both have any, and most words or all of one of them."""
    if one.figures and other.figures and not any(_agrees(n, other.figures) for n in one.figures):
        return False
    mine, others = one.words, other.words
    return (
        mine <= others
        or others <= mine
        or 2 * len(mine & others) > COMMON * (len(mine) + len(others))
    )


def _agrees(figure: Figure, others: Sequence[Figure]) -> bool:
    """Return whether a number is one of others by its value; comparisons aside, and units if one has none."""
    bare = replace(figure, comparison="")
    return any(
        bare.says(replace(one, comparison=""))
        or (one.size == figure.size and not (one.unit and figure.unit))
        for one in others
    )


def _named(call: Call, one: Said, other: Said) -> bool:
    """Return whether the shown text behind one of two answers has the words and numbers of the other."""
    for answer, place in ((one, other), (other, one)):
        key, shown = _key(_answer(call, answer)), _key(_shown(call, place))
        if key.words <= shown.words and all(_agrees(n, shown.figures) for n in key.figures):
            return True
    return False


def _shown(call: Call, one: Said) -> str:
    excerpt = call.excerpts[one.sentence.excerpt]
    return " ".join(sentence.of(excerpt.passage.text) for sentence in excerpt.sentences)


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


def _likely(probabilities: Sequence[float], limits: Limits) -> Stance | None:
    supports, contradicts, _ = probabilities
    if supports + contradicts < limits.sided:
        return None
    share = supports / (supports + contradicts)
    if share >= limits.supports:
        return Stance.FOR
    return Stance.AGAINST if share <= limits.contradicts else None


def _side(call: Call, one: Scored) -> Stance | None:
    passage = call.excerpts[one.excerpt].passage
    words = _words(call, one)
    covers = coverage(call.query.text, f"{passage.title} {words}")
    return stance(words) if covers >= COVERS else None


def _id(call: Call, one: Scored) -> str:
    return call.excerpts[one.excerpt].passage.id


def _words(call: Call, one: Scored) -> str:
    return one.sentence.of(call.excerpts[one.excerpt].passage.text)
