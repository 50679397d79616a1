from __future__ import annotations

from collections import Counter
from contextlib import suppress
from decimal import Decimal
from itertools import count
from typing import Any

import anyio
import anyio.lowlevel
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import BaseModel

from posology import errors
from posology.budget.prices.book import packaged
from posology.llm.accounting import Account, Accounting, open_attempt
from posology.llm.admission import Limiter
from posology.llm.calls import CallState
from posology.llm.memo import call_key
from posology.llm.providers.places import Places
from posology.llm.retry import Retry, RetryPolicy
from posology.llm.structured import verdict
from posology.testing import FlatPrices, ScriptedModel, by_bytes
from posology.types import Attempt, Call, Completion, Finish, Opening, Outcome, Tier, Usage
from tests.support.adapters import fails
from tests.support.calls import a_call

pytestmark = pytest.mark.anyio

USAGE = Usage(input=100, output=10)


CENTS = FlatPrices()


def accounting(model: Any, journal: Account, **given: Any) -> Accounting:
    return Accounting(model, journal=journal, **{"prices": CENTS, "bound": by_bytes, **given})


async def no_wait(_seconds: float) -> None:
    await anyio.lowlevel.checkpoint()


async def test_a_success_is_accounted_for() -> None:
    account = Account()
    clock = count(5.0, 0.25)
    completion = Completion(
        text="yes", usage=USAGE, finish=Finish.STOP, served_model="m", request_id="r"
    )
    complete = accounting(
        ScriptedModel([completion]), account, clock=lambda: next(clock), now=lambda: 7.0
    )
    call = a_call()
    assert await complete(call, CallState()) is completion
    assert account.attempts == (
        Attempt(
            id=account.attempts[0].id,
            call=1,
            attempt=1,
            stage=call.stage,
            model=call.model,
            prompt=call.prompt,
            outcome=Outcome.OK,
            error=None,
            usage=USAGE,
            cost=Decimal("1.1"),
            started=7.0,
            latency=0.25,
            request_id="r",
            input_bound=by_bytes(call),
            max_tokens=200,
            reserved=Decimal("2.53"),
            prices="flat",
            served="standard",
        ),
    )


@pytest.mark.parametrize(
    ("error", "outcome", "usage", "cost"),
    [
        (fails(), Outcome.FAILED, None, None),
        (fails(errors.RateLimited, usage=Usage()), Outcome.FAILED, Usage(), Decimal(0)),
        (fails(errors.MalformedReply), Outcome.UNUSABLE, None, None),
        (fails(errors.MalformedReply, usage=USAGE), Outcome.UNUSABLE, USAGE, Decimal("1.1")),
        (errors.ConfigurationError("no"), Outcome.FAILED, Usage(), Decimal(0)),
        (KeyError("a bug"), Outcome.FAILED, None, None),
    ],
)
async def test_a_failure_is_accounted_for_and_raised(
    error: Exception, outcome: Outcome, usage: Usage | None, cost: Decimal | None
) -> None:
    account = Account()
    complete = accounting(ScriptedModel([error]), account)
    with pytest.raises(type(error)) as caught:
        await complete(a_call(), CallState())
    assert caught.value is error
    (attempt,) = account.attempts
    assert (attempt.outcome, attempt.error) == (outcome, type(error).__name__)
    assert (attempt.usage, attempt.cost) == (usage, cost)


async def test_a_cancelled_attempt_is_accounted_for_and_stays_cancelled() -> None:
    account = Account()
    complete = accounting(ScriptedModel(["late"], latency=30.0), account)
    with anyio.move_on_after(1.0) as scope:
        await complete(a_call(), CallState())
    assert scope.cancelled_caught
    (attempt,) = account.attempts
    assert attempt.outcome is Outcome.CANCELLED
    assert (attempt.usage, attempt.cost) == (None, None)
    assert attempt.latency >= 0.01


async def test_a_deadline_accounts_for_the_attempt_that_it_cuts_off() -> None:
    account = Account()
    accounted = accounting(ScriptedModel(["late"], latency=30.0), account)
    with pytest.raises(errors.DeadlineExceeded):
        await Retry(accounted, policy=RetryPolicy(deadline=0.02))(a_call())
    assert [a.outcome for a in account.attempts] == [Outcome.CANCELLED]


async def test_a_reply_that_needs_a_repair_is_unusable() -> None:
    class Verdict(BaseModel):
        verdict: str

    account = Account()
    script: list[Any] = ["no object", Verdict(verdict="yes")]
    complete = accounting(ScriptedModel(script), account, verdict=verdict)
    for _ in script:
        await complete(a_call(schema=Verdict), CallState())
    assert [(a.outcome, a.error) for a in account.attempts] == [
        (Outcome.UNUSABLE, "SchemaViolation"),
        (Outcome.OK, None),
    ]
    assert account.cost == Decimal("2.2")


async def test_what_was_turned_away_costs_nothing_and_what_nobody_counted_its_bound() -> None:
    account = Account()
    uncounted = Completion(text="yes", usage=None, finish=Finish.STOP, served_model="m")
    script: list[Any] = [fails(errors.RateLimited, usage=Usage()), uncounted]
    complete = accounting(ScriptedModel(script), account, bound=lambda _: 1_000)
    with pytest.raises(errors.RateLimited):
        await complete(a_call(), CallState())
    await complete(a_call(), CallState())
    assert [a.cost for a in account.attempts] == [Decimal(0), None]
    assert [a.reserved for a in account.attempts] == [Decimal(12), Decimal(12)]
    assert [a.charged for a in account.attempts] == [Decimal(0), Decimal(12)]
    assert account.charged == Decimal(12)


async def test_what_nobody_knows_the_price_of_is_not_sent() -> None:
    model, account = ScriptedModel(["yes"]), Account()
    complete = accounting(model, account, prices=FlatPrices(token=None))
    with pytest.raises(errors.UnpricedModel):
        await complete(a_call(), CallState())
    assert not model.calls
    assert not account.attempts


async def test_a_call_that_exceeds_its_bound_is_charged_in_full_and_told(
    caplog: pytest.LogCaptureFixture,
) -> None:
    account = Account()
    reply = Completion(text="yes", usage=USAGE, finish=Finish.STOP, served_model="m")
    complete = accounting(ScriptedModel([reply]), account, bound=lambda _: 1)
    await complete(a_call(max_tokens=2), CallState())
    (attempt,) = account.attempts
    assert attempt.over_bound
    assert attempt.charged == Decimal("1.10") > attempt.reserved == Decimal("0.03")
    assert "bound_usd=" in caplog.text


@pytest.mark.parametrize("end", ["fails", "cancelled", "bug"])
async def test_an_attempt_at_a_free_model_is_free_however_it_ends(end: str) -> None:
    account = Account()
    replies: dict[str, str | BaseException] = {
        "fails": fails(),
        "cancelled": "late",
        "bug": KeyError("a bug"),
    }
    complete = accounting(
        ScriptedModel([replies[end]], latency=30.0 if end == "cancelled" else 0.0),
        account,
        prices=packaged(),
    )
    with anyio.move_on_after(0.02), suppress(errors.ProviderError, KeyError):
        await complete(a_call(model="offline:extractive"), CallState())
    (attempt,) = account.attempts
    assert (attempt.usage, attempt.cost) == (None, Decimal(0))
    assert account.cost == Decimal(0)


async def test_stacks_that_share_a_journal_share_their_numbers() -> None:
    account = Account()
    model = ScriptedModel(lambda _: "yes")
    stacks = [accounting(model, account) for _ in range(2)]
    for complete in (*stacks, *stacks):
        await complete(a_call(), CallState())
    assert [a.call for a in account.attempts] == [1, 2, 3, 4]


class Recording(Account):
    """Keeps what it is told, in order."""

    def __init__(self, refusal: errors.PosologyError | None = None) -> None:
        super().__init__()
        self.told: list[Opening | Attempt] = []
        self.kept: list[Completion | None] = []
        self._refusal = refusal

    async def open(self, opening: Opening) -> int:
        if self._refusal is not None:
            raise self._refusal
        self.told.append(opening)
        return await super().open(opening)

    async def close(self, attempt: Attempt, completion: Completion | None) -> None:
        # a store takes a while, in which a cancellation may come
        await anyio.lowlevel.checkpoint()
        self.told.append(attempt)
        self.kept.append(completion)
        await super().close(attempt, completion)


async def test_an_attempt_is_entered_before_it_is_sent_and_after() -> None:
    journal = Recording()
    accounted = accounting(ScriptedModel([fails(), "yes"]), journal, now=lambda: 7.0)
    complete = Retry(accounted, sleep=no_wait)
    call = a_call()
    completion = await complete(call)
    first, failed, second, good = journal.told
    assert isinstance(first, Opening)
    assert isinstance(second, Opening)
    assert isinstance(failed, Attempt)
    assert isinstance(good, Attempt)
    assert (first.call, first.attempt, second.call, second.attempt) == (None, 1, 1, 2)
    assert first.key == second.key == call_key(call)
    assert (first.id, second.id) == (failed.id, good.id)
    assert first.id != second.id
    assert (first.started, good.started) == (7.0, 7.0)
    assert journal.kept == [None, completion]


async def test_what_the_journal_refuses_is_not_sent() -> None:
    refusal = errors.JobCancelled("the job was cancelled", job="j")
    model = ScriptedModel(["never"])
    complete = accounting(model, Recording(refusal))
    with pytest.raises(errors.JobCancelled):
        await complete(a_call(), CallState())
    assert model.calls == []


async def test_what_is_cancelled_before_it_is_sent_costs_nothing() -> None:
    journal, model = Recording(), ScriptedModel(["never"])
    complete = accounting(model, journal)
    with anyio.CancelScope() as scope:
        scope.cancel()
        await complete(a_call(), CallState())
    assert model.calls == []
    (attempt,) = journal.attempts
    assert (attempt.outcome, attempt.usage, attempt.cost) == (
        Outcome.CANCELLED,
        Usage(),
        Decimal(0),
    )


@given(st.lists(st.integers(0, 5), min_size=1, max_size=12), st.integers(1, 4))
def test_concurrent_retried_calls_are_numbered_each_on_its_own(
    failures: list[int], places: int
) -> None:
    account = Account()
    left = dict(enumerate(failures, start=1))
    #: which call the account gave which numbers, by the token bound that marks it
    marks: list[int] = []

    class Marking(ScriptedModel):
        async def __call__(self, call: Call, *, attempt_id: str | None = None) -> Completion:
            try:
                return await super().__call__(call, attempt_id=attempt_id)
            finally:
                marks.append(call.max_tokens)

    def reply(call: Call) -> Any:
        if left[call.max_tokens] == 0:
            return "yes"
        left[call.max_tokens] -= 1
        return fails()

    async def run() -> None:
        limiter = Places(places)
        accounted = accounting(Marking(reply), account)
        complete = Retry(
            Limiter(accounted, places=limiter),
            policy=RetryPolicy(attempts=6, deadline=None),
            sleep=no_wait,
        )
        async with anyio.create_task_group() as group:
            for n in range(1, len(failures) + 1):
                group.start_soon(complete, a_call(max_tokens=n))

    anyio.run(run)
    numbers = {mark: a.call for mark, a in zip(marks, account.attempts, strict=True)}
    assert sorted(numbers.values()) == list(range(1, len(failures) + 1))
    for n, failed in enumerate(failures, start=1):
        own = [a for mark, a in zip(marks, account.attempts, strict=True) if mark == n]
        assert {a.call for a in own} == {numbers[n]}
        assert [a.attempt for a in own] == list(range(1, failed + 2))
    assert Counter(a.outcome for a in account.attempts)[Outcome.OK] == len(failures)


async def test_an_account_adds_up() -> None:
    account = Account()
    assert account.usage == Usage()
    assert [account.cost, account.known_cost] == [Decimal(0), Decimal(0)]
    complete = accounting(ScriptedModel(["a", "b", fails()]), account)
    for _ in range(2):
        await complete(a_call(), CallState())
    assert [account.cost] == [Decimal("2.2")]
    with pytest.raises(errors.ProviderOverloaded):
        await complete(a_call(), CallState())
    assert account.usage == Usage(input=200, output=20)
    assert (account.cost, account.known_cost, account.unknown) == (None, Decimal("2.2"), 1)
    assert account.outcomes == {
        Outcome.OK: 2,
        Outcome.FAILED: 1,
        Outcome.UNUSABLE: 0,
        Outcome.CANCELLED: 0,
        Outcome.LOST: 0,
    }


@pytest.mark.parametrize("tier", ["standard", "batch"])
async def test_what_a_call_writes_to_a_cache_is_reserved(tier: Tier) -> None:
    call = a_call(model="anthropic:claude-sonnet-4-5", cached=(10,))
    book = packaged()
    opening = open_attempt(
        call, number=None, attempt=1, bound=1_000, prices=book, tier=tier, started=0.0
    )
    written = book.cost(call.model, Usage(cache_write_5m=1_000, output=call.max_tokens), tier)
    assert opening.reserved == written
