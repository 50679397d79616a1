"""Second calls: with their first they cost no more than an allowance, and are made with the room that it leaves."""

from __future__ import annotations

from dataclasses import replace
from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import BaseModel

from posology import errors
from posology.budget.bounds.calls import CallBound
from posology.budget.prices.book import packaged
from posology.llm.second import REASONED, REPAIRED, SecondCalls, allowance
from posology.llm.structured import Structured, repair_messages
from posology.query import make_query
from posology.testing import ScriptedModel
from posology.testing.prices import FlatPrices
from posology.types import Call, Completion, Finish, Passage, QuoteForm, Stage, Usage
from prompts.lengths import REPLY_TOKENS
from strategies.direct import Direct
from tests.support.calls import a_call, asks
from tests.support.tasks import task_of

pytestmark = pytest.mark.anyio

PRICES = FlatPrices(token=Decimal(1))


class Verdict(BaseModel):
    """A form."""

    yes: bool


def length(call: Call) -> int:
    return sum(len(message.content) for message in call.messages)


def make(text: str = "x" * 100, max_tokens: int = 100, **other: object) -> Call:
    given_ = {"model": "openai:gpt-4o", "schema": Verdict, **other}
    return a_call(messages=asks(text), max_tokens=max_tokens, **given_)


def reply(read: int, said: int, text: str = "no", finish: Finish = Finish.STOP) -> Completion:
    usage = Usage(input=read, output=said)
    return Completion(text=text, usage=usage, finish=finish, served_model="x", latency=0.0)


@given(
    read=st.integers(0, 1_000),
    said=st.integers(1, 1_000),
    shares=st.tuples(st.floats(0, 1), st.floats(0, 1)),
    more=st.integers(0, 2_000),
    model=st.sampled_from(["openai:gpt-4o", "openai:gpt-6-luna"]),
    larger=st.integers(1, 4),
)
def test_both_cost_at_most_the_allowance(
    read: int, said: int, shares: tuple[float, float], more: int, model: str, larger: int
) -> None:
    call = make("x" * read, said, model=model)
    first = reply(int(shares[0] * read), int(shares[1] * said))
    repair = replace(make("x" * (read + more), larger * said, model=model))
    second = SecondCalls(prices=PRICES, bound=length)(call, first, repair)
    assert first.usage is not None
    charged = first.usage.total_input + first.usage.total_output
    most = allowance(call, Decimal(read + said))
    if second is None:
        least = min(larger * said, int(1.25 * first.usage.total_output) + 64)
        assert charged + read + more + least > most
    else:
        assert charged + read + more + second.max_tokens <= most
        assert second == replace(repair, max_tokens=second.max_tokens)


def test_calls_without_a_form_have_no_second() -> None:
    assert allowance(make(schema=None), Decimal(2)) == 2
    assert allowance(make(), Decimal(2)) == 2 * REPAIRED
    assert allowance(make(model="openai:gpt-6-luna", effort="low"), Decimal(2)) == 2 * REASONED
    assert allowance(make(model="openai:gpt-6-luna", effort="none"), Decimal(2)) == 2 * REPAIRED


async def test_a_repair_that_is_not_paid_for_is_not_made() -> None:
    model = ScriptedModel([reply(100, 90)])
    with pytest.raises(errors.SchemaViolation, match="a repair would cost more") as caught:
        await Structured(model, SecondCalls(prices=PRICES, bound=length))(make())
    assert len(model.calls) == 1
    assert caught.value.usage == Usage(input=100, output=90)


@pytest.mark.parametrize("model", ["openai:gpt-4o-mini", "anthropic:claude-haiku-4-5"])
@pytest.mark.parametrize("quotes", ["sentences", "copied"])
def test_an_ordinary_repair_is_paid_for_even_if_all_of_the_input_bound_is_read(
    model: str, quotes: QuoteForm
) -> None:
    text = "Aspirin 75 mg daily lowered the risk of stroke in 1,204 adults (HR 0.78). " * 18
    passages = [Passage(id=f"t:{i}", text=text) for i in range(8)]
    task = task_of(make_query("Does aspirin prevent stroke?"), passages, model=model, quotes=quotes)
    call = Direct().call(replace(task, max_tokens=REPLY_TOKENS[quotes][Stage.ANSWER]))
    assert call is not None
    first = reply(CallBound()(call), 250, "word " * 200)
    again = replace(call, messages=repair_messages(call, first.text, "- choice: " + "x" * 200))
    second = SecondCalls(prices=packaged(), bound=CallBound())(call, first, again)
    assert second is not None
    assert second.max_tokens >= 2 * 250, "twice the first reply"
    assert replace(second, max_tokens=call.max_tokens) == again


async def test_nor_is_one_after_a_reply_of_unknown_usage() -> None:
    model = ScriptedModel([replace(reply(1, 1), usage=None)])
    with pytest.raises(errors.SchemaViolation):
        await Structured(model, SecondCalls(prices=PRICES, bound=length))(make())


async def test_a_reply_that_reasoning_cut_gets_the_bound_that_is_left() -> None:
    call = make(model="openai:gpt-6-luna", effort="low", max_tokens=1_000)
    cut = replace(reply(60, 0, "", Finish.LENGTH), usage=Usage(input=60, reasoning=1_000))
    model = ScriptedModel([cut, reply(60, 9, '{"yes": true}')])
    found = await Structured(model, SecondCalls(prices=PRICES, bound=length))(call)
    assert found.parsed == Verdict(yes=True)
    # 3 times 1,100, less 1,060 for the first and 100 to read again
    assert model.calls[1].max_tokens == 2_140


async def test_a_free_model_has_all_the_room() -> None:
    model = ScriptedModel([reply(100, 100), reply(9, 9, '{"yes": true}')])
    free = SecondCalls(prices=FlatPrices(token=Decimal(0)), bound=length)
    await Structured(model, free)(make())
    assert model.calls[1].max_tokens == 100
