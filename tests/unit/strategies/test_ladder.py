from __future__ import annotations

from collections.abc import Callable, Sequence
from decimal import Decimal
from typing import Any

import anyio
import pytest
from hypothesis import given
from hypothesis import strategies as st

from policies.doubling import Doubling
from posology import errors
from posology.llm.structured import Structured
from posology.query import make_query
from posology.testing import ScriptedModel
from posology.types import (
    Answer,
    Call,
    Completion,
    Compressed,
    Dose,
    Finish,
    Passage,
    Refusal,
    Retrieval,
    Task,
    Usage,
)
from prompts.answer import AnswerReply
from strategies.compressed import CompressedRag
from strategies.direct import Direct
from strategies.ladder import Ladder, step_tasks
from tests.support.guess import GUESS
from tests.support.replies import copying as reply
from tests.support.rewriters import Stated
from tests.support.tasks import task_of

pytestmark = pytest.mark.anyio

_EXHAUSTED = errors.BudgetExhausted(
    "no",
    scope="job",
    cap=Decimal(1),
    spent=Decimal(1),
    reserved=Decimal(0),
    asked=Decimal(1),
    resets=None,
)
_TOO_LONG = errors.ContextTooLong("no", provider="openai", model="openai:test")
_TOO_LARGE = errors.CallTooLarge("no", model="openai:test", tokens=9, limit=8)


def passages(n: int) -> tuple[Passage, ...]:
    return tuple(
        Passage(id=f"n:{i}", text=f"Drug {i} lowered mortality. It was tolerated.")
        for i in range(n)
    )


def task(n: int = 16) -> Task:
    return task_of(make_query("Which drug lowered mortality?"), passages(n))


def places(call: Call) -> list[int]:
    """Which of the passages a call shows."""
    return [int(e.passage.id.removeprefix("n:")) for e in call.excerpts]


REFUSED = reply("It is not said.", answerable=False)
UNQUOTED = reply("Drug 3 did.", ("P1", "Nobody ever wrote this."))


def told_by(place: int) -> Callable[[Call], AnswerReply]:
    """Answers once the passage at that place is shown, and refuses before."""

    def answer(call: Call) -> AnswerReply:
        shown = places(call)
        if place not in shown:
            return REFUSED
        label = f"P{shown.index(place) + 1}"
        return reply(f"Drug {place}.", (label, f"Drug {place} lowered mortality."))

    return answer


async def climb(
    model: ScriptedModel,
    rungs: Sequence[int] = (2, 4, 8, 16),
    *,
    of: int = 16,
    overlapping: bool = True,
) -> Answer | Refusal:
    ladder = Ladder(Direct(), rungs=rungs, overlapping=overlapping)
    return await ladder(task(of), Structured(model))


async def answered(script: Sequence[Any], rungs: Sequence[int] = (2, 4, 8, 16)) -> Answer:
    answer = await climb(ScriptedModel(script), rungs)
    assert isinstance(answer, Answer)
    return answer


async def test_it_stops_at_the_first_answer_whose_quotes_stand() -> None:
    model = ScriptedModel(told_by(3))
    answer = await climb(model)
    assert isinstance(answer, Answer)
    assert [len(call.excerpts) for call in model.calls] == [2, 4]
    assert [(r.passages, r.first, r.refused) for r in answer.rungs] == [(2, 0, True), (4, 0, False)]
    assert answer.citations[0].passage_id == "n:3"
    assert answer.strategy == "direct"
    assert "Answered from the first 4 of 16 passages (step 2 of the ladder's 4)." in answer.notes


async def test_without_an_answer_the_last_refusal_has_all_rungs() -> None:
    replies = [reply(f"Not in {n}.", answerable=False) for n in (2, 4, 8, 16)]
    refusal = await climb(ScriptedModel(replies))
    assert isinstance(refusal, Refusal)
    assert refusal.reason == "Not in 16."
    assert [(r.passages, r.refused) for r in refusal.rungs] == [(n, True) for n in (2, 4, 8, 16)]
    assert "Refused in 4 steps of the ladder, which read all passages (16)." in refusal.notes


@pytest.mark.parametrize(
    ("said", "refused"), [(reply("I could not find an answer"), True), (UNQUOTED, False)]
)
async def test_a_refusal_in_words_and_an_answer_without_a_standing_quote_go_on(
    said: AnswerReply, refused: bool
) -> None:
    answer = await answered([said, reply("Drug 3.", ("P4", "Drug 3 lowered mortality."))])
    assert answer.supported
    assert [r.refused for r in answer.rungs] == [refused, False]


async def test_an_answer_without_a_standing_quote_is_given_when_nothing_better_comes() -> None:
    answer = await answered([UNQUOTED, REFUSED, REFUSED, REFUSED])
    assert not answer.supported
    assert [r.refused for r in answer.rungs] == [False, True, True, True]
    assert "Answered from the first 2 of 16 passages (step 1 of the ladder's 4)." in answer.notes
    assert any(
        "None of its quotes could be verified; the next 3 steps of the ladder gave no answer"
        in note
        for note in answer.notes
    )


async def test_of_answers_without_a_standing_quote_the_last_is_given() -> None:
    second = reply("Drug 5 did.")
    answer = await answered([UNQUOTED, second], (2, 4))
    assert answer.text == "Drug 5 did."
    assert not any("None of its quotes could be verified" in note for note in answer.notes)


async def test_an_unknown_usage_stays_unknown_whatever_else_a_rung_calls() -> None:
    class Twice(Direct):
        async def __call__(self, task: Task, complete: object) -> Answer | Refusal:
            await super().__call__(task, complete)  # type: ignore[arg-type]
            return await super().__call__(task, complete)  # type: ignore[arg-type]

    def completion(usage: Usage | None) -> Completion:
        return Completion(
            text=REFUSED.model_dump_json(), usage=usage, finish=Finish.STOP, served_model="test"
        )

    given = [None, Usage(input=1), Usage(input=2), Usage(input=3, output=1)]
    model = ScriptedModel([completion(usage) for usage in given])
    refusal = await Ladder(Twice(), rungs=(2, 4))(task(), Structured(model))
    assert [r.usage for r in refusal.rungs] == [None, Usage(input=5, output=1)]


@pytest.mark.parametrize(
    ("error", "cause"),
    [
        (_EXHAUSTED, "the budget (BudgetExhausted)"),
        (errors.NothingAffordable("no", partitions=2), "the budget (NothingAffordable)"),
        (_TOO_LARGE, "the budget (CallTooLarge)"),
        (_TOO_LONG, "the model's window (ContextTooLong)"),
    ],
)
async def test_what_cannot_be_paid_or_held_ends_it_between_two_rungs(
    error: errors.PosologyError, cause: str
) -> None:
    refusal = await climb(ScriptedModel([REFUSED, REFUSED, error]))
    assert isinstance(refusal, Refusal)
    assert [r.passages for r in refusal.rungs] == [2, 4]
    assert (
        "Refused in 2 steps of the ladder, which read the first 4 of 16 passages." in refusal.notes
    )
    assert f"The ladder ended there because of {cause}." in refusal.notes


async def test_an_unsupported_answer_is_given_when_the_budget_ends_it() -> None:
    answer = await answered([UNQUOTED, REFUSED, _EXHAUSTED])
    assert [r.refused for r in answer.rungs] == [False, True]
    assert any("The ladder ended there" in note for note in answer.notes)


@pytest.mark.parametrize("error", [_EXHAUSTED, _TOO_LONG])
async def test_a_first_rung_that_cannot_be_paid_or_held_is_an_error(
    error: errors.PosologyError,
) -> None:
    with pytest.raises(type(error)):
        await climb(ScriptedModel([error]))


@pytest.mark.parametrize(
    "error",
    [
        errors.HeadroomReserved("wait", scope="job", asked=None, place=0),
        errors.RateLimited("wait", provider="openai", model="openai:test"),
        errors.StoreUnavailable("no", address="redis://x"),
        ZeroDivisionError("a defect"),
    ],
    ids=lambda error: type(error).__name__,
)
@pytest.mark.parametrize("rung", [0, 2])
async def test_everything_else_comes_out_as_it_is(error: Exception, rung: int) -> None:
    with pytest.raises(type(error)):
        await climb(ScriptedModel([REFUSED] * rung + [error]))


async def test_without_passages_it_refuses_and_spends_nothing() -> None:
    model = ScriptedModel([])
    ladder = Ladder(Direct(), rungs=(2, 4))
    refusal = await ladder(task(0), Structured(model))
    assert isinstance(refusal, Refusal)
    assert refusal.rungs == ()
    assert model.calls == []
    assert list(ladder.calls(task(0), GUESS)) == []
    assert step_tasks(task(0), Dose(strategy="direct", rungs=(2, 4))) == ()


async def test_no_rung_shows_what_was_all_shown_before() -> None:
    refusal = await climb(ScriptedModel(lambda _: REFUSED), (2, 4, 8, 16), of=3)
    assert [r.passages for r in refusal.rungs] == [2, 3]
    refusal = await climb(ScriptedModel(lambda _: REFUSED), (2, 4, 8), of=5, overlapping=False)
    assert [(r.first, r.passages) for r in refusal.rungs] == [(0, 2), (2, 3)]


async def test_apart_it_says_which_passages_answered() -> None:
    model = ScriptedModel(told_by(4))
    answer = await climb(model, (2, 4, 8, 2), overlapping=False)
    assert isinstance(answer, Answer)
    assert [places(call) for call in model.calls] == [[0, 1], [2, 3, 4, 5]]
    assert "Answered from passages 3 to 6 of 16 (step 2 of the ladder's 4)." in answer.notes
    (citation,) = answer.citations
    assert citation.passage_id == "n:4"


async def test_its_calls_are_known_beforehand() -> None:
    ladder = Ladder(Direct(), rungs=(2, 4, 8, 16))
    model = ScriptedModel(lambda _: REFUSED)
    await ladder(task(), Structured(model))
    planned = list(ladder.calls(task(), GUESS))
    assert [one.call for one in planned] == model.calls
    assert [one.step for one in planned] == [0, 1, 2, 3]
    assert ladder.count(task()) == 4


async def test_its_rungs_keep_the_rankings_of_the_whole_retrieval() -> None:
    seen: list[Task] = []

    class Watching(Direct):
        async def __call__(self, task: Task, complete: object) -> Answer | Refusal:
            seen.append(task)
            return await super().__call__(task, complete)  # type: ignore[arg-type]

    asked = task()
    await Ladder(Watching(), rungs=(2, 4))(asked, Structured(ScriptedModel(lambda _: REFUSED)))
    assert [len(one.retrieval.passages) for one in seen] == [2, 4]
    for one in seen:
        assert one.retrieval.dense is asked.retrieval.dense
        assert one.retrieval.bm25_rerank is asked.retrieval.bm25_rerank


async def test_a_safety_refusal_ends_it_and_never_becomes_an_answer() -> None:
    def filtered(_: Call) -> Completion:
        return Completion(
            text="I cannot.", usage=Usage(input=1), finish=Finish.FILTERED, served_model="m"
        )

    model = ScriptedModel(filtered)
    refusal = await climb(model)
    assert isinstance(refusal, Refusal)
    assert "safety" in refusal.reason
    # it says nothing of the passages, so more of them are of no use
    assert len(model.calls) == 1


async def test_a_rung_of_which_compression_leaves_nothing_costs_nothing() -> None:
    class Nothing(Stated):
        name = "nothing"

        def __call__(self, retrieval: Retrieval, keep: float | None) -> Compressed:
            del keep
            n = sum(len(p.sentences) for p in retrieval.passages)
            return Compressed(excerpts=(), kept=0, sentences=n, compressor=self.name)

    model = ScriptedModel([])
    ladder = Ladder(CompressedRag(compressor=Nothing()), rungs=(2, 4))
    refusal = await ladder(task(), Structured(model))
    assert [r.usage for r in refusal.rungs] == [Usage(), Usage()]
    assert list(ladder.calls(task(), GUESS)) == []


@pytest.mark.parametrize("rungs", [(), (0, 2), (2, -1)])
def test_rungs_that_show_nothing_are_refused(rungs: tuple[int, ...]) -> None:
    with pytest.raises(ValueError, match="at least one passage"):
        Ladder(Direct(), rungs=rungs)


def test_overlapping_rungs_that_do_not_grow_are_refused() -> None:
    with pytest.raises(ValueError, match="one before"):
        Ladder(Direct(), rungs=(2, 2, 4))
    apart = Dose(strategy="direct", rungs=(2, 4, 2), overlapping=False)
    assert [len(one.retrieval.passages) for one in step_tasks(task(8), apart)] == [2, 4, 2]


@given(
    start=st.integers(1, 5),
    factor=st.sampled_from([1.5, 2, 3]),
    rounds=st.none() | st.integers(1, 4),
    overlapping=st.booleans(),
    n=st.integers(1, 20),
    place=st.integers(0, 25),
)
def test_each_call_shows_what_its_rung_says(
    *, start: int, factor: float, rounds: int | None, overlapping: bool, n: int, place: int
) -> None:
    doubling = Doubling(start=start, factor=factor, rounds=rounds, overlapping=overlapping)
    rungs = doubling.rungs(n)
    model = ScriptedModel(told_by(place))
    asked = task(n)
    ladder = Ladder(Direct(), rungs=rungs, overlapping=overlapping)
    outcome = anyio.run(ladder, asked, Structured(model))

    shown = [places(call) for call in model.calls]
    assert shown == [list(range(r.first, r.first + r.passages)) for r in outcome.rungs]
    assert [r.passages for r in outcome.rungs] == list(rungs[: len(outcome.rungs)])
    assert all((r.first == 0) or not overlapping for r in outcome.rungs)
    read = {i for one in shown for i in one}
    assert isinstance(outcome, Answer) == (place in read)
    # never on after an answer, never short of the last rung without one
    assert [r.refused for r in outcome.rungs[:-1]] == [True] * (len(outcome.rungs) - 1)
    if isinstance(outcome, Answer):
        (citation,) = outcome.citations
        text = asked.retrieval.passages[place].passage.text
        assert citation.passage_id == f"n:{place}"
        assert text[citation.start : citation.end] == citation.quote
    else:
        assert len(outcome.rungs) == len(rungs)


async def test_it_tells_how_much_was_shown_repetitions_included() -> None:
    assert (await climb(ScriptedModel(told_by(3)))).shown == pytest.approx((2 + 4) / 16)
    assert (await climb(ScriptedModel([REFUSED] * 4))).shown == pytest.approx(30 / 16)
