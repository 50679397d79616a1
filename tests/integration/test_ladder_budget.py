"""Ladders that a budget does not pay for to the end: real accounting, a real ledger, one process."""

from __future__ import annotations

from collections.abc import Sequence
from decimal import Decimal

import anyio
import pytest
from hypothesis import given
from hypothesis import strategies as st

from policies.doubling import Doubling
from posology.budget.ledger.journal import LedgerJournal
from posology.budget.ledger.memory import MemoryLedger
from posology.errors import BudgetExhausted, HeadroomReserved
from posology.llm import stack
from posology.llm.accounting import Account
from posology.llm.calls import Caller
from posology.query import make_query
from posology.seams import Complete, Journal
from posology.testing import FlatPrices, ScriptedModel, by_bytes
from posology.types import (
    Answer,
    Attempt,
    Call,
    Completion,
    Finish,
    Limits,
    Opening,
    Passage,
    Refusal,
    Task,
    Usage,
)
from prompts.answer import AnswerReply
from strategies.direct import Direct
from strategies.ladder import Ladder
from tests.support.adapters import sending
from tests.support.guess import GUESS
from tests.support.tasks import task_of

pytestmark = pytest.mark.anyio

PRICES = FlatPrices()
#: what each call really costs: 110 tokens at a cent
COST = Decimal("1.10")
RUNGS = Doubling().rungs(16)
REFUSED = AnswerReply(answerable=False, answer="It is not said.", choice=None, quotes=[])


class Watched:
    """A journal that looks at every balance whenever one may have changed."""

    def __init__(self, inner: Journal, ledger: MemoryLedger, run: str | None) -> None:
        self._inner = inner
        self._ledger = ledger
        self._run = run
        self.looks = 0

    async def open(self, opening: Opening) -> int:
        number = await self._inner.open(opening)
        await self._look()
        return number

    async def close(self, attempt: Attempt, completion: Completion | None) -> None:
        await self._inner.close(attempt, completion)
        await self._look()

    async def _look(self) -> None:
        self.looks += 1
        for balance in await self._ledger.balances(self._run):
            assert balance.cap is None or balance.spent + balance.reserved <= balance.cap


class Kept:
    """A journal that keeps replies: the :class:`~posology.seams.Recall` of what runs again."""

    def __init__(self, inner: Journal) -> None:
        self._inner = inner
        self._keys: dict[str, str] = {}
        self.replies: dict[str, Completion] = {}

    async def open(self, opening: Opening) -> int:
        self._keys[opening.id] = opening.key
        return await self._inner.open(opening)

    async def close(self, attempt: Attempt, completion: Completion | None) -> None:
        if completion is not None:
            self.replies[self._keys[attempt.id]] = completion
        await self._inner.close(attempt, completion)

    async def recall(self, key: str, /) -> Completion | None:
        return self.replies.get(key)


def task() -> Task:
    passages = [
        Passage(id=f"n:{i}", text=f"Drug {i} was given to {i + 20} patients at noon.")
        for i in range(16)
    ]
    return task_of(make_query("Which drug lowered mortality?"), passages)


def ladder(rungs: Sequence[int] = RUNGS) -> Ladder:
    return Ladder(Direct(), rungs=rungs)


AT_ONCE = Caller(wait_timeout=0.0)


def worst(call: Call) -> Decimal:
    """What a rung sets aside."""
    return PRICES.worst(call.model, input_tokens=by_bytes(call), output_tokens=call.max_tokens)


WORST = [worst(one.call) for one in ladder().calls(task(), GUESS)]


def complete(model: Complete, journal: Journal, caller: Caller = AT_ONCE) -> Complete:
    return stack.build(
        sending(model), journal=journal, prices=PRICES, bound=by_bytes, caller=caller
    )


async def test_it_stops_between_two_rungs() -> None:
    """Two rungs are paid for; the third would fit but for a cent."""
    cap = 2 * COST + WORST[2] - Decimal("0.01")
    ledger, account = MemoryLedger(), Account()
    journal = LedgerJournal(ledger, account, cap=cap)
    watched = Watched(journal, ledger, journal.run)
    model = ScriptedModel(lambda _: REFUSED)

    refusal = await ladder()(task(), complete(model, watched))

    assert isinstance(refusal, Refusal)
    assert [rung.passages for rung in refusal.rungs] == [2, 4]
    assert [rung.usage for rung in refusal.rungs] == [Usage(input=100, output=10)] * 2
    assert "The ladder ended there because of the budget (BudgetExhausted)." in refusal.notes
    assert len(model.calls) == 2
    assert account.charged == 2 * COST
    assert watched.looks == 4
    *_, job = await ledger.balances(journal.run)
    assert (job.spent, job.reserved) == (2 * COST, Decimal(0))


@given(cents=st.integers(0, int(100 * (3 * COST + WORST[3])) + 100))
def test_the_cap_is_never_passed_and_says_how_far_it_goes(cents: int) -> None:
    cap = Decimal(cents) / 100
    affordable = 0
    while affordable < len(WORST) and affordable * COST + WORST[affordable] <= cap:
        affordable += 1

    async def run() -> None:
        ledger, account = MemoryLedger(), Account()
        journal = LedgerJournal(ledger, account, cap=cap)
        watched = Watched(journal, ledger, journal.run)
        climbing = ladder()(task(), complete(ScriptedModel(lambda _: REFUSED), watched))
        if not affordable:
            with pytest.raises(BudgetExhausted):
                await climbing
        else:
            refusal = await climbing
            assert [rung.passages for rung in refusal.rungs] == list(RUNGS[:affordable])
        assert account.charged == affordable * COST <= cap

    anyio.run(run)


async def test_an_unknown_usage_is_charged_at_its_bound_and_ends_the_ladder_earlier() -> None:
    cap = 2 * COST + WORST[2]
    assert WORST[0] + WORST[1] > cap, "else a bound would pay for two rungs"
    ledger, account = MemoryLedger(), Account()
    journal = LedgerJournal(ledger, account, cap=cap)
    model = ScriptedModel(lambda _: REFUSED, usage=None)
    refusal = await ladder()(task(), complete(model, Watched(journal, ledger, journal.run)))
    assert [(rung.passages, rung.usage) for rung in refusal.rungs] == [(2, None)]
    assert account.charged == WORST[0]


async def test_ladders_that_share_a_day_s_limit_never_pass_it() -> None:
    day = 4 * COST + 2 * WORST[1]
    ledger, account = MemoryLedger(Limits(day=day)), Account()
    outcomes: list[Answer | Refusal | BudgetExhausted] = []

    async def climb(n: int) -> None:
        journal = LedgerJournal(ledger, account, run=f"run_{n}")
        model = ScriptedModel(lambda _: REFUSED, latency=0.005)
        watched = Watched(journal, ledger, journal.run)
        try:
            outcomes.append(
                await ladder()(task(), complete(model, watched, Caller(wait_timeout=20.0)))
            )
        except BudgetExhausted as error:
            outcomes.append(error)

    async with anyio.create_task_group() as group:
        for n in range(6):
            group.start_soon(climb, n)

    rungs = [rung for one in outcomes if isinstance(one, Refusal) for rung in one.rungs]
    assert len(outcomes) == 6
    assert account.charged == len(rungs) * COST <= day
    assert any(isinstance(one, Refusal) and len(one.rungs) < len(RUNGS) for one in outcomes)
    for balance in await ledger.balances():
        assert balance.reserved == 0


async def test_a_ladder_that_must_wait_goes_on_later_without_paying_twice() -> None:
    """Others hold the money when the second rung is due; the same task run again replays the first."""
    ledger, account = MemoryLedger(Limits(day=COST + WORST[1])), Account()
    journal = Kept(LedgerJournal(ledger, account, run="run_1"))
    other = LedgerJournal(ledger, Account(), run="run_2")
    held: list[Opening] = []

    async def reply(call: Call) -> Completion:
        if len(call.excerpts) == RUNGS[0]:
            # as soon as the first rung is under way, another job sets a cent aside
            held.append(_opening())
            await other.open(held[0])
        return Completion(
            text=REFUSED.model_dump_json(),
            usage=Usage(input=100, output=10),
            finish=Finish.STOP,
            served_model="test",
        )

    def again() -> Complete:
        return stack.build(
            sending(reply),
            journal=journal,
            prices=PRICES,
            bound=by_bytes,
            caller=Caller(recall=journal.recall, wait_timeout=0.0),
        )

    with pytest.raises(HeadroomReserved):
        await ladder((2, 4))(task(), again())
    assert account.charged == COST
    await ledger.release(held[0].id)

    refusal = await ladder((2, 4))(task(), again())
    assert [rung.usage for rung in refusal.rungs] == [Usage(input=100, output=10)] * 2
    assert account.charged == 2 * COST
    assert len(held) == 1


def _opening() -> Opening:
    call = Direct().call(task())
    assert call is not None
    return Opening(
        id="theirs",
        call=None,
        attempt=1,
        stage=call.stage,
        model=call.model,
        prompt=call.prompt,
        key="k",
        started=1.0,
        reserved=Decimal("0.01"),
    )
