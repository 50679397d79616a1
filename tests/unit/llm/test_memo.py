from __future__ import annotations

from dataclasses import replace

import pytest
from pydantic import BaseModel

from posology.errors import ProviderUnreachable
from posology.llm.accounting import Account
from posology.llm.calls import Caller
from posology.llm.memo import Answered, Memo, call_key
from posology.llm.stack import build
from posology.seams import Complete, Recall
from posology.testing import FlatPrices, ScriptedModel, by_bytes
from posology.types import Attempt, Completion, Finish, Message, Opening, Outcome, Role, Usage
from tests.support.calls import a_call

pytestmark = pytest.mark.anyio

REPLY = Completion(
    text='{"yes": true}', usage=Usage(input=20, output=3), finish=Finish.STOP, served_model="m"
)


class Remembering(Account):
    """A journal that recalls every reply that it was given."""

    def __init__(self) -> None:
        super().__init__()
        self._keys: dict[str, str] = {}
        self._replies: dict[str, Completion] = {}

    async def open(self, opening: Opening) -> int:
        self._keys[opening.id] = opening.key
        return await super().open(opening)

    async def close(self, attempt: Attempt, completion: Completion | None) -> None:
        await super().close(attempt, completion)
        if completion is not None:
            self._replies[self._keys[attempt.id]] = completion

    async def recall(self, key: str) -> Completion | None:
        return self._replies.get(key)


async def forget(_key: str) -> None:
    return None


async def at_once(_seconds: float) -> None:
    return None


def built(model: ScriptedModel, journal: Account, recall: Recall) -> Complete:
    caller = Caller(recall=recall, sleep=at_once)
    return build(model, journal=journal, prices=FlatPrices(), bound=by_bytes, caller=caller)


class Verdict(BaseModel):
    yes: bool


class Other(BaseModel):
    no: bool


async def test_the_same_call_is_sent_once() -> None:
    journal, model = Remembering(), ScriptedModel(["yes"])
    complete = built(model, journal, journal.recall)
    first = await complete(a_call())
    assert await complete(a_call()) == first
    assert len(model.calls) == len(journal.attempts) == 1


async def test_a_reply_that_needed_a_repair_is_replayed_with_it() -> None:
    said = replace(REPLY, text="no JSON")
    journal, model = Remembering(), ScriptedModel([said, '{"yes": true}'])
    complete = built(model, journal, journal.recall)
    call = a_call(schema=Verdict)
    first = await complete(call)
    again = await complete(call)
    assert first.parsed == again.parsed == Verdict(yes=True)
    assert len(model.calls) == len(journal.attempts) == 2


class Late(Account):
    """A journal that has another worker's reply when a second attempt is opened."""

    def __init__(self, reply: Completion) -> None:
        super().__init__()
        self._reply = reply

    async def open(self, opening: Opening) -> int:
        if opening.attempt > 1:
            raise Answered(self._reply)
        return await super().open(opening)


async def test_a_reply_that_came_to_another_worker_is_used_instead_of_a_retry() -> None:
    journal = Late(REPLY)
    model = ScriptedModel([ProviderUnreachable("cut", provider="test", model="m")])
    found = await built(model, journal, forget)(a_call(schema=Verdict))
    assert found.parsed == Verdict(yes=True)
    assert [attempt.outcome for attempt in journal.attempts] == [Outcome.FAILED]


async def test_nothing_is_replayed_that_nobody_remembers() -> None:
    model = ScriptedModel([REPLY, REPLY])
    complete = Memo(model, recall=forget)
    for _ in range(2):
        assert await complete(a_call()) is REPLY
    assert len(model.calls) == 2


def test_a_key_covers_all_that_is_sent() -> None:
    call = a_call(schema=Verdict)
    changed = [
        replace(call, model="openai:other"),
        replace(call, messages=(*call.messages, Message(role=Role.USER, content="more"))),
        replace(call, schema=Other),
        replace(call, schema=None),
        replace(call, max_tokens=call.max_tokens + 1),
        replace(call, temperature=0.5),
    ]
    keys = {call_key(one) for one in (call, *changed)}
    assert len(keys) == 1 + len(changed)
    assert call_key(replace(call)) == call_key(call)
    assert len(call_key(call)) == 32


def test_a_key_is_the_same_in_every_tier() -> None:
    call = a_call()
    assert {call_key(replace(call, tier=tier)) for tier in ("flex", "batch")} == {call_key(call)}


def test_messages_cannot_pose_as_each_other() -> None:
    def of(*contents: str) -> str:
        messages = tuple(Message(role=Role.USER, content=c) for c in contents)
        return call_key(replace(a_call(), messages=messages))

    assert len({of("a", "b"), of("ab"), of("a,b"), of('a", "b')}) == 4
