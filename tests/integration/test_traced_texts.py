"""Texts are attributes of spans only where they are asked for."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest
from opentelemetry.sdk.trace import ReadableSpan

from orchestrator.logs import texts
from posology.llm.stack import build
from posology.testing import FlatPrices, ScriptedModel, by_bytes
from posology.types import Call, Completion, Finish, Stage, Usage
from tests.integration.jobs_store.helpers import MODEL, Bench, answer
from tests.integration.test_traces import by_name, traced
from tests.support.calls import call_to
from workers.engine.journal import JobJournal

pytestmark = pytest.mark.anyio

PROMPT, REPLY = "Does zyxomab help? [1] Zyxomab helped.", '{"answer": "Zyxomab helps."}'
SYSTEM = "Answer from the passages."


@pytest.fixture(autouse=True)
def not_afterwards() -> Iterator[None]:
    yield
    texts.allow_texts(allowed=False)


def call(prompt: str = PROMPT, stage: Stage = Stage.ANSWER) -> Call:
    return call_to(MODEL, prompt, system=SYSTEM, stage=stage)


async def answered(
    bench: Bench, asked: Call, *replies: str | Completion
) -> dict[str, ReadableSpan]:
    """The spans of a job whose worker makes a call and succeeds."""
    with traced() as (spans, _):
        held = await bench.running()
        journal = JobJournal(bench.worker(), held)
        model = texts.Remembering(ScriptedModel(replies))
        complete = build(model, journal=journal, prices=FlatPrices(), bound=by_bytes)
        await complete(asked)
        await bench.worker().succeed(held, answer("Zyxomab helps."))
        return by_name(spans)


def said(span: ReadableSpan, name: str) -> list[dict[str, Any]]:
    found = (span.attributes or {})[name]
    assert isinstance(found, str)
    messages: list[dict[str, Any]] = json.loads(found)
    return messages


def part(text: str) -> list[dict[str, str]]:
    return [{"type": "text", "content": text}]


async def test_by_default_no_text_is_in_any_span(bench: Bench) -> None:
    spans = await answered(bench, call(), REPLY)
    assert {"chat gpt-4o-mini", "job"} <= spans.keys()
    for span in spans.values():
        assert "yxomab" not in span.to_json()
        assert SYSTEM not in span.to_json()
        assert not any(name.endswith("messages") for name in span.attributes or {})


async def test_where_it_is_asked_for_spans_have_messages(bench: Bench) -> None:
    texts.allow_texts(allowed=True)
    spans = await answered(bench, call(), REPLY)
    chat, job = spans["chat gpt-4o-mini"], spans["job"]
    assert said(chat, "gen_ai.input.messages") == [
        {"role": "system", "parts": part(SYSTEM)},
        {"role": "user", "parts": part(PROMPT)},
    ]
    assert said(chat, "gen_ai.output.messages") == [
        {"role": "assistant", "parts": part(REPLY), "finish_reason": "stop"}
    ]
    assert said(job, "gen_ai.input.messages") == [{"role": "user", "parts": part("Does it help?")}]
    assert said(job, "gen_ai.output.messages") == [
        {"role": "assistant", "parts": part("Zyxomab helps."), "finish_reason": "stop"}
    ]


async def test_long_texts_keep_their_ends(bench: Bench) -> None:
    texts.allow_texts(allowed=True)
    spans = await answered(bench, call(f"begin {'x' * 50_000} end"), f"{'y' * 50_000}.")
    for name, first, last in (("input", "begin", "end"), ("output", "y", ".")):
        found = said(spans["chat gpt-4o-mini"], f"gen_ai.{name}.messages")[-1]
        content = found["parts"][0]["content"]
        assert texts.LIMIT - 1 <= len(content) <= texts.LIMIT
        assert content.startswith(first)
        assert content.endswith(last)
        assert "[…]" in content


async def test_a_prompt_belongs_to_its_own_attempt_and_vectors_are_no_message() -> None:
    texts.allow_texts(allowed=True)
    said = Completion(text="no", usage=Usage(), finish=Finish.FILTERED, served_model="m")
    await texts.Remembering(ScriptedModel([said]))(call(), attempt_id="one")
    assert set(texts.of_attempt("one", Stage.ANSWER, None)) == {"gen_ai.input.messages"}
    # a reply of a provider's batch, which another process sent
    (other,) = texts.of_attempt("other", Stage.ANSWER, said).items()
    assert other[0] == "gen_ai.output.messages"
    assert json.loads(other[1])[0]["finish_reason"] == "content_filter"
    assert texts.of_attempt("one", Stage.EMBED, said) == {}
