"""Exploration over a scripted model: what is asked, what is kept, what is paid for, and what stops it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from decimal import Decimal
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import anyio
import pytest

from orchestrator.training.paid.calls import Purchase
from orchestrator.training.qtable.learner import Recipe, learn, taught
from orchestrator.training.qtable.plan import Actions, Plan, Planner
from orchestrator.training.qtable.questions import Example
from orchestrator.training.qtable.rows import Explored, open_run, read_run
from orchestrator.training.qtable.run import Exploration
from posology.budget.ledger.memory import MemoryLedger
from posology.errors import BudgetExhausted, QuotaExhausted, RequestRejected, SchemaViolation
from posology.llm.calls import Caller
from posology.llm.retry import RetryPolicy
from posology.llm.stack import build
from posology.query import make_query
from posology.seams import Complete, Journal
from posology.testing import ScriptedModel
from posology.testing.prices import FlatPrices, by_bytes
from posology.text.tokens import approximate
from posology.types import Call, Passage, Query, Retrieval, Usage
from prompts.answer import AnswerReply
from strategies.compression.leancontext import LeanContext
from tests.support.replies import in_form
from tests.support.tasks import retrieval_of
from tests.unit.learning.runs import begin

if TYPE_CHECKING:
    from posology.testing.model import ScriptedReply

pytestmark = pytest.mark.anyio
SHARES = (0.0, 0.2, 0.25, 0.5, 1.0)
#: of one answer, by the prices of these tests
PAID = Decimal("0.0022")


async def retrieve(query: Query) -> Retrieval:
    """Four sentences, of which 20 % and 25 % are the same one."""
    if query.text == "Nothing?":
        return retrieval_of(query, ())
    text = f"{query.text[:-1]} it does. Rest helps a little. Water does not. Nobody knows why."
    return retrieval_of(query, [Passage(id="p", text=text)])


def actions() -> Actions:
    return Actions(shares=SHARES, compressor=LeanContext.top(), model="openai:x", max_tokens=200)


async def planned(*questions: str) -> Plan:
    examples = [
        Example(line=line, query=make_query(text), references=())
        for line, text in enumerate(questions, 1)
    ]
    return await Planner(retrieve=retrieve, actions=actions(), count=approximate)(examples)


def answer(call: Call) -> ScriptedReply:
    return in_form(
        call,
        AnswerReply(
            answerable=True, answer=f"{call.query.text[:-1]} it does.", choice=None, quotes=[]
        ),
    )


class Bench:
    """A model, and money to ask it."""

    def __init__(self, script: Callable[[Call], ScriptedReply] = answer) -> None:
        self.model = ScriptedModel(script, usage=Usage(input=200, output=20))
        self.ledger = MemoryLedger()

    def completes(self, _model: str, journal: Journal, *_: Caller) -> Complete:
        return build(
            self.model,
            journal=journal,
            prices=FlatPrices(token=Decimal("0.00001")),
            bound=by_bytes,
            retry=RetryPolicy(attempts=1),
        )

    async def explore(
        self, plan: Plan, path: Path, *, cap: Decimal | None = None, at_once: int = 3
    ) -> list[int]:
        """What it was told."""
        told: list[int] = []
        with open_run(path) as run:
            purchase = Purchase(
                completes=self.completes, ledger=self.ledger, cap=cap, at_once=at_once
            )
            await Exploration(run, plan, actions(), begin()).buy(purchase, told.append)
        return told

    def asked(self) -> Counter[str]:
        return Counter(call.messages[-1].content for call in self.model.calls)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "t.run.jsonl"


async def test_each_action_is_asked_once_of_each_question_and_equal_calls_once(path: Path) -> None:
    plan, bench = await planned("One?", "Two?"), Bench()
    told = await bench.explore(plan, path)
    # nothing is left of a share of 0, and two shares show the same sentence
    assert len(bench.model.calls) == sum(told) == plan.calls == 6
    assert set(bench.asked().values()) == {1}
    found = read_run(path)
    arms = found.questions[next(iter(plan.grounds))].arms
    assert arms[0].call is None
    assert arms[1].call == arms[2].call != arms[3].call
    assert arms[0].tokens == 0 < arms[1].tokens < arms[3].tokens < arms[4].tokens
    assert found.spent == 6 * PAID


async def test_what_was_explored_teaches_a_table(path: Path) -> None:
    plan, bench = await planned("One?", "Two?"), Bench()
    await bench.explore(plan, path)
    found = read_run(path)
    table = learn(taught(found, "rouge1"), found.begin, Recipe(least_visits=2))
    assert table.visits.tolist() == [[2] * len(SHARES)]
    # each answer is the same, so the least that is asked at all is best
    assert table.best(0) == SHARES.index(0.2)


async def test_going_on_asks_for_nothing_that_was_answered(path: Path) -> None:
    plan, bench = await planned("One?", "Two?"), Bench()
    await bench.explore(plan, path)
    await bench.explore(plan, path)
    more = await planned("Three?", "Two?")
    with open_run(path) as run:
        todo = Exploration(run, more, actions(), begin()).todo
        assert {asked.line for _, asked, _ in todo} == {1}
    await bench.explore(more, path)
    assert set(bench.asked().values()) == {1}
    assert list(read_run(path).questions) == list(more.grounds)


async def test_a_question_without_passages_is_told_and_not_asked(path: Path) -> None:
    plan = await planned("Nothing?", "One?")
    assert [example.line for example in plan.without] == [1]
    assert len(plan.grounds) == 1


async def test_what_one_call_is_refused_for_does_not_stop_the_others(path: Path) -> None:
    def script(call: Call) -> ScriptedReply:
        if call.query.text == "One?" and call.strategy == "direct":
            return RequestRejected("no", provider="openai", model="x", usage=Usage(input=5))
        return answer(call)

    plan, bench = await planned("One?", "Two?"), Bench(script)
    await bench.explore(plan, path)
    found = read_run(path)
    assert [failed.error for failed in found.failures.values()] == ["RequestRejected"]
    assert found.spent == 5 * PAID + 5 * Decimal("0.00001")
    # the call that failed is made again, and the others are not
    again = Bench()
    await again.explore(plan, path)
    assert len(again.model.calls) == 1
    assert not read_run(path).failures


async def test_what_stops_every_call_stops_the_run_and_keeps_what_was_under_way(path: Path) -> None:
    replies = iter(range(100))

    def script(call: Call) -> ScriptedReply:
        if next(replies) == 1:
            return QuotaExhausted("no credit", provider="openai", model="x", usage=Usage())
        return answer(call)

    plan, bench = await planned("One?", "Two?"), Bench(script)
    with pytest.raises(QuotaExhausted):
        await bench.explore(plan, path)
    # what was under way has ended, and nothing more was begun
    asked = len(bench.model.calls)
    assert 3 <= asked < plan.calls
    assert len(read_run(path).replies) == asked - 1


async def test_a_spent_budget_is_told_and_what_it_paid_for_is_kept(path: Path) -> None:
    plan, bench = await planned("One?", "Two?", "Three?"), Bench()
    cap = Decimal("0.03")
    with pytest.raises(BudgetExhausted):
        await bench.explore(plan, path, cap=cap, at_once=1)
    first = read_run(path)
    assert 0 < len(first.replies) == len(bench.model.calls) < plan.calls
    assert first.spent == len(first.replies) * PAID <= cap
    # the cap is the run's, however often it is begun
    asked = len(bench.model.calls)
    again = Bench()
    with pytest.raises(BudgetExhausted):
        await again.explore(plan, path, cap=cap, at_once=1)
    assert not again.model.calls
    await bench.explore(plan, path, cap=Decimal(1))
    assert len(bench.model.calls) == plan.calls > asked
    assert set(bench.asked().values()) == {1}


async def test_a_cap_that_is_passed_already_pays_for_nothing(path: Path) -> None:
    plan, bench = await planned("One?"), Bench()
    with pytest.raises(BudgetExhausted):
        await bench.explore(plan, path, cap=Decimal(0))
    assert not bench.model.calls


async def test_what_is_interrupted_is_paid_for_and_asked_again(path: Path) -> None:
    plan, bench = await planned("One?", "Two?"), Bench()
    bench.model = ScriptedModel(answer, usage=Usage(input=200, output=20), latency=60)
    with anyio.CancelScope() as scope:
        async with anyio.create_task_group() as group:
            group.start_soon(partial(bench.explore, plan, path, at_once=2))
            with anyio.fail_after(90):
                while len(bench.model.calls) < 2:  # noqa: ASYNC110 - a model has no event for it
                    await anyio.sleep(0.01)
            scope.cancel()
    assert scope.cancelled_caught
    found = read_run(path)
    # nobody knows whether they were billed, so they are charged at their bounds
    assert len(found.failures) == 2
    assert found.spent > 2 * PAID
    again = Bench()
    await again.explore(plan, path)
    assert len(again.model.calls) == plan.calls


async def test_a_reply_that_cannot_be_used_is_paid_for_and_told(path: Path) -> None:
    plan = await planned("One?")
    bench = Bench()
    bench.model = ScriptedModel(lambda _: "no JSON", usage=Usage(input=200, output=20))
    await bench.explore(plan, path)
    found: Explored = read_run(path)
    assert {failed.error for failed in found.failures.values()} == {SchemaViolation.__name__}
    # each was repaired once, in vain
    assert found.spent == 2 * plan.calls * PAID
