"""Computation of a Q-table from an exploration (Arefeen et al., "LeanContext", algorithm 1)."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING

import numpy as np

from orchestrator.training.qtable.plan import unpacked
from orchestrator.training.qtable.rewards import SCORES, Said, quality
from orchestrator.training.qtable.rows import Arm, Asked, Begin, Explored
from policies.qtable import FALLBACK, LEAST_VISITS, STATES, QTable, merged, nearest, reward
from posology.errors import InputError

if TYPE_CHECKING:
    from numpy.typing import NDArray

#: Weight of quality in a reward: both terms of equation 1 weigh the same. One point of quality is worth
#: 2α/(1−α) points of tokens, here 2. The paper does not give its α. Figures: ``docs/concepts/q-tables.md``.
ALPHA = 0.5
#: default maximum of states
MOST_STATES = 8
#: minimum questions for each state
PER_STATE = 10
#: initialisations of k-means; the best result is used
_STARTS = 10
#: characters of a digest
_DIGEST = 16


@dataclass(frozen=True, kw_only=True, slots=True)
class Recipe:
    """How a table is computed from an exploration.

    Raises:
        InputError: a value is out of range or unknown.
    """

    #: weight of quality, 0 to 1
    alpha: float = ALPHA
    #: number of states; ``None``: one for each :data:`PER_STATE` questions, at most :data:`MOST_STATES`
    states: int | None = None
    #: one of :data:`~policies.qtable.STATES`
    kind: str = "difference"
    #: one of :data:`~orchestrator.training.qtable.rewards.SCORES`
    score: str = "rouge1"
    #: of k-means
    seed: int = 0
    least_visits: int = LEAST_VISITS
    fallback: float = FALLBACK

    def __post_init__(self) -> None:
        if not 0 <= self.alpha <= 1 or not 0 <= self.fallback <= 1:
            raise InputError(
                f"--alpha and --fallback must be from 0 to 1 (got {self.alpha:g} and {self.fallback:g})."
            )
        if self.kind not in STATES:
            raise InputError(
                f"--state-kind must be one of {', '.join(STATES)} (got {self.kind!r})."
            )
        if self.score not in SCORES:
            raise InputError(f"--score must be one of {', '.join(SCORES)} (got {self.score!r}).")
        if self.least_visits < 1 or (self.states is not None and self.states < 1):
            raise InputError("--states and --least-visits must be >= 1.")


@dataclass(frozen=True, kw_only=True, slots=True)
class Graded:
    """Tokens and quality of one action on one question."""

    keep: float
    #: share of the context's tokens in the call
    tau: float
    #: quality of the answer, 0 to 1
    r: float


@dataclass(frozen=True, kw_only=True, slots=True, eq=False)
class Lesson:
    """Grades of one question."""

    #: identity of the question
    digest: str
    #: vectors of its context and of itself, concatenated, shape ``(2 * dim,)``, float32
    vectors: NDArray[np.float32]
    #: r*, the quality of the answer from the whole context
    best: float
    #: of the answered actions
    grades: tuple[Graded, ...]

    def state(self, kind: str) -> NDArray[np.float32]:
        """Return the state, as :func:`~policies.qtable.state_vector` does for a retrieval."""
        dim = len(self.vectors) // 2
        context, query = self.vectors[:dim], self.vectors[dim:]
        match kind:
            case "difference":
                return np.subtract(context, query)
            case "cosine":
                return np.array([context @ query], np.float32)
            case _:
                return self.vectors

    def reward(self, grade: Graded, alpha: float) -> float:
        """Return the reward R of a grade."""
        return reward(tau=grade.tau, r=grade.r, best=self.best, alpha=alpha)


@dataclass(frozen=True, kw_only=True, slots=True)
class Taught:
    """Graded answers of a run."""

    lessons: tuple[Lesson, ...]
    #: reason for each line whose question has no grades
    without: Mapping[int, str]
    #: explored actions, ascending
    actions: tuple[float, ...]
    #: digest of the questions with their references
    data: str


def taught(explored: Explored, score: str) -> Taught:
    """Grade all answers of a run.

    If a question has references, its answers are graded by them, that of the whole context included. Otherwise the
    whole context's answer is the reference, and r* is 1 ("Details of RL", reward).

    Args:
        explored: a run, complete or not.
        score: one of :data:`~orchestrator.training.qtable.rewards.SCORES`.
    """
    lessons: list[Lesson] = []
    without: dict[int, str] = {}
    for asked in explored.questions.values():
        lesson = _lesson(asked, explored, score)
        if isinstance(lesson, str):
            without[asked.line] = lesson
        else:
            lessons.append(lesson)
    known = {lesson.digest for lesson in lessons}
    said = [[a.digest, a.references] for a in explored.questions.values() if a.digest in known]
    return Taught(
        lessons=tuple(lessons),
        without=without,
        actions=tuple(sorted({a.keep for q in explored.questions.values() for a in q.arms})),
        data=hashlib.sha256(json.dumps([score, said]).encode()).hexdigest()[:_DIGEST],
    )


def _lesson(asked: Asked, explored: Explored, score: str) -> Lesson | str:
    answers: list[tuple[Arm, Said]] = []
    for arm in asked.arms:
        said = _said(arm, explored)
        if said is not None:
            answers.append((arm, said))
    whole = next((said for arm, said in answers if arm.keep == 1), None)
    if whole is None:
        return "no answer from the whole context"
    references = [Said.reference(text, asked.choices) for text in asked.references] or [whole]
    return Lesson(
        digest=asked.digest,
        vectors=unpacked(asked.vectors),
        best=quality(whole, references, score) if asked.references else 1.0,
        grades=tuple(
            Graded(
                keep=arm.keep,
                tau=arm.tokens / asked.tokens,
                # the whole context's answer compared with itself, even without a word to score
                r=1.0
                if said == whole and not asked.references
                else quality(said, references, score),
            )
            for arm, said in answers
        ),
    )


def _said(arm: Arm, explored: Explored) -> Said | None:
    if arm.call is None:
        return Said(text="", refused=True)
    reply = explored.replies.get(arm.call)
    if reply is None:
        return None
    return Said(text=reply.text, choice=reply.choice, refused=reply.refused)


def states_of(questions: int, wanted: int | None) -> int:
    """Return the number of states for a number of questions."""
    return wanted or max(1, min(MOST_STATES, questions // PER_STATE))


def centroids(vectors: NDArray[np.float32], states: int, seed: int) -> NDArray[np.float32]:
    """Cluster states by k-means (algorithm 1, line 6), the largest cluster first.

    Args:
        vectors: shape ``(n, width)``.
        states: number of clusters; fewer if there are fewer distinct vectors.
        seed: equal seeds give equal centroids.

    Returns:
        Shape ``(states, width)``.
    """
    from sklearn.cluster import KMeans
    from threadpoolctl import threadpool_limits

    different = len(np.unique(vectors, axis=0))
    means = KMeans(n_clusters=min(states, different), n_init=_STARTS, random_state=seed)
    # the order of threads would change the last digits
    with threadpool_limits(1):
        labels = means.fit_predict(vectors)
    order = np.argsort(-np.bincount(labels), kind="stable")
    found: NDArray[np.float32] = means.cluster_centers_[order].astype(np.float32)
    return found


def tabulate(lessons: Sequence[Lesson], empty: QTable) -> QTable:
    """Average all rewards (algorithm 1, lines 7 to 15, every action on every question).

    Args:
        lessons: in any order.
        empty: table without rewards.
    """
    places = {keep: place for place, keep in enumerate(empty.actions)}
    counts = np.zeros((empty.states, len(places)), np.int64)
    sums = np.zeros(counts.shape)
    for lesson in lessons:
        state, _ = nearest(empty.centroids, lesson.state(empty.kind))
        for grade in lesson.grades:
            if (place := places.get(grade.keep)) is not None:
                counts[state, place] += 1
                sums[state, place] += lesson.reward(grade, empty.alpha)
    return merged(empty, counts, sums)


def learn(
    graded: Taught, begin: Begin | None, recipe: Recipe, actions: Sequence[float] | None = None
) -> QTable:
    """Compute the states, then the values (algorithm 1).

    Args:
        graded: answers of a run.
        begin: how the questions were asked; ``None``: none was asked.
        recipe: how the table is computed.
        actions: of the table; ``None``: all explored ones.

    Raises:
        InputError: no question has grades, or an action was not explored.
    """
    if begin is None or not graded.lessons:
        raise InputError(
            "no question was answered from its whole context, so there is no table to compute."
        )
    shares = tuple(sorted(set(actions or graded.actions)))
    if unknown := [keep for keep in shares if keep not in graded.actions]:
        explored = ", ".join(f"{keep:g}" for keep in graded.actions)
        raise InputError(
            f"--actions must be among the explored shares {explored} (got {unknown[0]:g})."
        )
    vectors = np.stack([lesson.state(recipe.kind) for lesson in graded.lessons])
    places = centroids(vectors, states_of(len(vectors), recipe.states), recipe.seed)
    shape = (len(places), len(shares))
    empty = QTable(
        kind=recipe.kind,
        centroids=places,
        actions=shares,
        q=np.full(shape, np.nan),
        visits=np.zeros(shape, np.int64),
        alpha=recipe.alpha,
        embedder=begin.embedder,
        compressor=begin.compressor,
        model=begin.model,
        k=begin.k,
        prompts=begin.prompts,
        data=graded.data,
        least_visits=recipe.least_visits,
        fallback=recipe.fallback,
        created=datetime.now(UTC).replace(microsecond=0),
    )
    return tabulate(graded.lessons, empty)
