from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from orchestrator.training.qtable.learner import (
    Graded,
    Lesson,
    Recipe,
    Taught,
    centroids,
    learn,
    states_of,
    tabulate,
    taught,
)
from policies.qtable import STATES, QTable, nearest, reward, state_vector
from posology.errors import InputError
from tests.support.qtables import updated
from tests.unit.learning.runs import asked, begin, explored, replied
from tests.unit.policies.tables import retrieval, table

ARMS = {0.1: "a", 1.0: "b"}


def test_without_right_answers_the_whole_contexts_answer_is_the_reference() -> None:
    run = explored(begin(), asked("q", ARMS), replied("a", "two words"), replied("b", "two apples"))
    (lesson,) = taught(run, "rouge1").lessons
    assert lesson.best == 1
    assert lesson.grades[0].r == pytest.approx(0.5)
    assert lesson.grades[0].tau == 0.1
    assert lesson.grades[1] == Graded(keep=1.0, tau=1.0, r=1.0)


def test_right_answers_grade_the_whole_contexts_answer_too() -> None:
    question = asked("q", ARMS, references=("aspirin", "two apples"))
    run = explored(begin(), question, replied("a", "aspirin"), replied("b", "two words"))
    (lesson,) = taught(run, "rouge1").lessons
    assert lesson.best == pytest.approx(0.5)
    assert [grade.r for grade in lesson.grades] == [1.0, pytest.approx(0.5)]


def test_refusals_are_as_good_as_the_whole_contexts() -> None:
    refused = replied("b", "there is nothing", refused=True)
    run = explored(begin(), asked("q", {0.0: None, **ARMS}), replied("a", "an answer"), refused)
    (lesson,) = taught(run, "rouge1").lessons
    # what leaves nothing to ask about refuses without a call
    assert [grade.r for grade in lesson.grades] == [1.0, 0.0, 1.0]
    assert lesson.grades[0].tau == 0


def test_an_answer_without_words_is_as_good_as_itself() -> None:
    run = explored(begin(), asked("q", ARMS), replied("a", "…"), replied("b", "…"))
    (lesson,) = taught(run, "rouge1").lessons
    assert [grade.r for grade in lesson.grades] == [1.0, 1.0]


def test_a_question_without_an_answer_from_the_whole_context_teaches_nothing() -> None:
    run = explored(begin(), asked("q", ARMS, line=4), asked("r", {1.0: "c"}), replied("a", "A"))
    found = taught(run, "rouge1")
    assert not found.lessons
    assert set(found.without) == {1, 4}
    with pytest.raises(InputError):
        learn(found, run.begin, Recipe())


def test_an_action_that_failed_is_left_out_alone() -> None:
    run = explored(begin(), asked("q", ARMS), replied("b", "B"))
    found = taught(run, "rouge1")
    learned = learn(found, run.begin, Recipe())
    assert learned.visits.tolist() == [[0, 1]]


def test_the_questions_and_their_references_are_what_a_table_is_of() -> None:
    def data(*references: str) -> str:
        run = explored(begin(), asked("q", ARMS, references=references), replied("b", "B"))
        return taught(run, "rouge1").data

    assert data("x") == data("x")
    assert data("x") != data("y")


def lessons(*grades: tuple[float, float, float], n: int = 1) -> list[Lesson]:
    """Lessons at two places: 0.1 of the tokens gives r there, the whole gives 1."""
    return [
        Lesson(
            digest=f"{x}-{i}",
            vectors=np.array([x, y, 0, 0], np.float32),
            best=1.0,
            grades=(Graded(keep=0.1, tau=0.1, r=r), Graded(keep=1.0, tau=1.0, r=1.0)),
        )
        for x, y, r in grades
        for i in range(n)
    ]


def learned(found: list[Lesson], recipe: Recipe) -> QTable:
    return learn(
        Taught(lessons=tuple(found), without={}, actions=(0.1, 1.0), data="d"), begin(), recipe
    )


def test_each_state_learns_what_is_best_in_it() -> None:
    # in one place a tenth is as good as all, in the other it is worth nothing
    of = learned(lessons((1, 0, 1.0), (0, 1, 0.0), n=6), Recipe(states=2, alpha=0.9))
    easy, _ = nearest(of.centroids, np.array([1, 0], np.float32))
    hard, _ = nearest(of.centroids, np.array([0, 1], np.float32))
    assert {easy, hard} == {0, 1}
    assert of.best(easy) == 0
    assert of.best(hard) == 1
    assert of.q[hard, 0] == pytest.approx(reward(tau=0.1, r=0, best=1, alpha=0.9))
    assert of.visits.tolist() == [[6, 6], [6, 6]]


def test_a_weight_that_cares_for_tokens_alone_keeps_the_least() -> None:
    of = learned(lessons((1, 0, 0.0), n=6), Recipe(states=1, alpha=0))
    assert of.best(0) == 0


def test_too_few_rewards_leave_a_state_unknown() -> None:
    of = learned(lessons((1, 0, 1.0), n=4), Recipe(states=1))
    assert of.best(0) is None
    assert learned(lessons((1, 0, 1.0), n=4), Recipe(states=1, least_visits=4)).best(0) == 0


@given(
    st.lists(
        st.tuples(st.integers(0, 2), st.floats(0, 1), st.floats(0, 1), st.floats(0, 1)),
        min_size=1,
        max_size=12,
    ),
    st.floats(0, 1),
)
def test_a_table_is_what_the_rewards_one_by_one_make(
    rows: list[tuple[int, float, float, float]], alpha: float
) -> None:
    empty = table(q=np.full((3, 10), np.nan), visits=np.zeros((3, 10), np.int64), alpha=alpha)
    dim = empty.centroids.shape[1]
    found = [
        Lesson(
            digest=str(i),
            vectors=np.concatenate([empty.centroids[state], np.zeros(dim, np.float32)]),
            best=best,
            grades=(Graded(keep=0.0, tau=tau, r=r), Graded(keep=0.4, tau=1.0, r=best)),
        )
        for i, (state, tau, r, best) in enumerate(rows)
    ]
    one_by_one = empty
    for lesson, (state, *_) in zip(found, rows, strict=True):
        for grade in lesson.grades:
            action = empty.actions.index(grade.keep)
            one_by_one = updated(one_by_one, state, action, lesson.reward(grade, alpha))
    at_once = tabulate(found, empty)
    assert np.array_equal(at_once.visits, one_by_one.visits)
    assert np.allclose(at_once.q, one_by_one.q, equal_nan=True)


@pytest.mark.parametrize("kind", STATES)
def test_a_lessons_state_is_the_retrievals(kind: str) -> None:
    of = retrieval([0, 1], [0.6, 0.8], [1, 0])
    lesson = Lesson(digest="", vectors=state_vector(of, "concatenation"), best=1, grades=())
    assert np.array_equal(lesson.state(kind), state_vector(of, kind))


@pytest.mark.parametrize(
    ("questions", "wanted", "states"),
    [(5, None, 1), (35, None, 3), (400, None, 8), (400, 32, 32), (1, None, 1)],
)
def test_a_state_has_ten_questions_unless_it_is_said(
    questions: int, wanted: int | None, states: int
) -> None:
    assert states_of(questions, wanted) == states


def test_centroids_are_seeded_and_no_more_than_vectors_differ() -> None:
    vectors = np.repeat(np.array([[0, 0], [5, 5]], np.float32), [2, 5], axis=0)
    found = centroids(vectors, 8, 0)
    assert found.tolist() == [[5, 5], [0, 0]]
    random = np.random.default_rng(0).normal(size=(60, 3)).astype(np.float32)
    assert np.array_equal(centroids(random, 4, 1), centroids(random, 4, 1))


@pytest.mark.parametrize(
    "wrong",
    [
        {"alpha": 1.5},
        {"fallback": -1.0},
        {"kind": "sum"},
        {"score": "bleu"},
        {"states": 0},
        {"least_visits": 0},
    ],
)
def test_a_recipe_that_cannot_be_is_refused(wrong: dict[str, float]) -> None:
    with pytest.raises(InputError):
        Recipe(**wrong)  # type: ignore[arg-type]


def test_a_table_may_have_some_of_the_actions() -> None:
    run = explored(begin(), asked("q", ARMS), replied("a", "A"), replied("b", "B"))
    found = taught(run, "rouge1")
    assert learn(found, run.begin, Recipe(), (0.1,)).actions == (0.1,)
    with pytest.raises(InputError, match=r"0\.1, 1"):
        learn(found, run.begin, Recipe(), (0.3,))


def test_centroids_are_the_same_whatever_the_number_of_threads(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    from threadpoolctl import threadpool_limits

    # else no more are taken than there are cores
    monkeypatch.setenv("OMP_NUM_THREADS", "8")
    vectors = np.random.default_rng(1).normal(size=(1_500, 64)).astype(np.float32)
    with threadpool_limits(8):
        found = [centroids(vectors, 8, 0) for _ in range(3)]
    assert all(np.array_equal(one, found[0]) for one in found)
