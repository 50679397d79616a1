"""Bodies as the providers document them, the buckets they stand for, and their price by hand."""

from __future__ import annotations

from dataclasses import dataclass, field
from decimal import Decimal
from typing import Any

import httpx2
import pytest

from posology.budget.prices.book import packaged
from posology.llm.anthropic_adapter import AnthropicAdapter
from posology.llm.openai_adapter import OpenAIAdapter
from posology.types import Finish, Usage

pytestmark = pytest.mark.anyio

MILLION = Decimal(10**6)


@dataclass(frozen=True, kw_only=True)
class Case:
    """One reply, and what is to be made of it."""

    name: str
    model: str
    #: as it stands in the body; ``...``: the body has none
    usage: Any
    #: ``None``: unknown
    expected: Usage | None
    #: dollars, in the list prices of the model
    cost: Decimal | None
    #: the message of a chat completion, or the content blocks of a message
    said: Any = field(default="Yes.")
    stop: str = "stop"
    finish: Finish = Finish.STOP
    text: str = "Yes."


def openai_body(case: Case) -> dict[str, Any]:
    said = {"content": case.said, "refusal": None} if isinstance(case.said, str) else case.said
    body: dict[str, Any] = {
        "id": "chatcmpl-B9MHDbslfkBeAs8l4bebGdFOJ6PeG",
        "object": "chat.completion",
        "created": 1741570283,
        "model": case.model.partition(":")[2],
        "choices": [
            {
                "index": 0,
                "message": {"role": "assistant", "annotations": []} | said,
                "logprobs": None,
                "finish_reason": case.stop,
            }
        ],
        "service_tier": "default",
        "system_fingerprint": "fp_fc9f1d7035",
    }
    return body if case.usage is ... else body | {"usage": case.usage}


def anthropic_body(case: Case) -> dict[str, Any]:
    said = [{"type": "text", "text": case.said}] if isinstance(case.said, str) else case.said
    body: dict[str, Any] = {
        "id": "msg_013Zva2CMHLNnXjNJJKqJ2EF",
        "type": "message",
        "role": "assistant",
        "model": case.model.partition(":")[2],
        "content": said,
        "stop_reason": case.stop,
        "stop_sequence": None,
    }
    return body if case.usage is ... else body | {"usage": case.usage}


MINI, O3, NEWEST = "openai:gpt-4o-mini", "openai:o3-mini", "openai:gpt-5.6"
OPENAI = (
    Case(
        name="plain, as in the API reference",
        model=MINI,
        usage={
            "prompt_tokens": 19,
            "completion_tokens": 10,
            "total_tokens": 29,
            "prompt_tokens_details": {"cached_tokens": 0, "audio_tokens": 0},
            "completion_tokens_details": {
                "reasoning_tokens": 0,
                "audio_tokens": 0,
                "accepted_prediction_tokens": 0,
                "rejected_prediction_tokens": 0,
            },
        },
        expected=Usage(input=19, output=10),
        cost=(19 * Decimal("0.15") + 10 * Decimal("0.6")) / MILLION,
    ),
    Case(
        name="prompt cache, as in the guide",
        model=MINI,
        usage={
            "prompt_tokens": 2006,
            "completion_tokens": 300,
            "total_tokens": 2306,
            "prompt_tokens_details": {"cached_tokens": 1920},
            "completion_tokens_details": {"reasoning_tokens": 0},
        },
        expected=Usage(input=86, cache_read=1920, output=300),
        cost=(86 * Decimal("0.15") + 1920 * Decimal("0.075") + 300 * Decimal("0.6")) / MILLION,
    ),
    Case(
        name="cache writes, priced apart",
        model=NEWEST,
        usage={
            "prompt_tokens": 5000,
            "completion_tokens": 40,
            "total_tokens": 5040,
            "prompt_tokens_details": {
                "cached_tokens": 1024,
                "cache_write_tokens": 3000,
                "text_tokens": 5000,
                "image_tokens": 0,
            },
        },
        expected=Usage(input=976, cache_read=1024, cache_write_5m=3000, output=40),
        cost=(976 * Decimal(4) + 1024 * Decimal("0.4") + 3000 * Decimal(5) + 40 * Decimal(20))
        / MILLION,
    ),
    Case(
        name="a long input takes every token to the higher step",
        model=NEWEST,
        usage={"prompt_tokens": 300_000, "completion_tokens": 100, "total_tokens": 300_100},
        expected=Usage(input=300_000, output=100),
        cost=(300_000 * Decimal(8) + 100 * Decimal(30)) / MILLION,
    ),
    Case(
        name="reasoning and cache, cut at the bound with nothing to show",
        model=O3,
        usage={
            "prompt_tokens": 1117,
            "completion_tokens": 4096,
            "total_tokens": 5213,
            "prompt_tokens_details": {"cached_tokens": 1024},
            "completion_tokens_details": {"reasoning_tokens": 4096},
        },
        expected=Usage(input=93, cache_read=1024, reasoning=4096),
        cost=(93 * Decimal("1.1") + 1024 * Decimal("0.55") + 4096 * Decimal("4.4")) / MILLION,
        said={"content": None, "refusal": None},
        stop="length",
        finish=Finish.LENGTH,
        text="",
    ),
    Case(
        name="reasoning beside the completion, by the sum",
        model=O3,
        usage={
            "prompt_tokens": 100,
            "completion_tokens": 50,
            "total_tokens": 170,
            "completion_tokens_details": {"reasoning_tokens": 20},
        },
        expected=Usage(input=100, output=50, reasoning=20),
        cost=(100 * Decimal("1.1") + (50 + 20) * Decimal("4.4")) / MILLION,
    ),
    Case(
        name="reasoning beside the completion, since it exceeds it",
        model=O3,
        usage={
            "prompt_tokens": 100,
            "completion_tokens": 5,
            "completion_tokens_details": {"reasoning_tokens": 64},
        },
        expected=Usage(input=100, output=5, reasoning=64),
        cost=(100 * Decimal("1.1") + (5 + 64) * Decimal("4.4")) / MILLION,
    ),
    Case(
        name="cache beside the prompt, since it exceeds it",
        model=MINI,
        usage={
            "prompt_tokens": 86,
            "completion_tokens": 10,
            "total_tokens": 96,
            "prompt_tokens_details": {"cached_tokens": 1920},
        },
        expected=Usage(input=86, cache_read=1920, output=10),
        cost=(86 * Decimal("0.15") + 1920 * Decimal("0.075") + 10 * Decimal("0.6")) / MILLION,
    ),
    Case(
        name="cache and reasoning beside, by the sum",
        model=O3,
        usage={
            "prompt_tokens": 500,
            "completion_tokens": 60,
            "total_tokens": 500 + 60 + 200 + 30,
            "prompt_tokens_details": {"cached_tokens": 200},
            "completion_tokens_details": {"reasoning_tokens": 30},
        },
        expected=Usage(input=500, cache_read=200, output=60, reasoning=30),
        cost=(500 * Decimal("1.1") + 200 * Decimal("0.55") + (60 + 30) * Decimal("4.4")) / MILLION,
    ),
    Case(
        name="predictions are output, used or not",
        model=MINI,
        usage={
            "prompt_tokens": 300,
            "completion_tokens": 90,
            "total_tokens": 390,
            "prompt_tokens_details": {"cached_tokens": 0},
            "completion_tokens_details": {
                "reasoning_tokens": 0,
                "accepted_prediction_tokens": 40,
                "rejected_prediction_tokens": 30,
            },
        },
        expected=Usage(input=300, output=90),
        cost=(300 * Decimal("0.15") + 90 * Decimal("0.6")) / MILLION,
    ),
    Case(
        name="audio in: it has a price of its own and no bucket",
        model=MINI,
        usage={
            "prompt_tokens": 300,
            "completion_tokens": 9,
            "total_tokens": 309,
            "prompt_tokens_details": {"audio_tokens": 200},
        },
        expected=None,
        cost=None,
    ),
    Case(
        name="audio out",
        model=MINI,
        usage={
            "prompt_tokens": 300,
            "completion_tokens": 90,
            "completion_tokens_details": {"audio_tokens": 80, "text_tokens": 10},
        },
        expected=None,
        cost=None,
    ),
    Case(
        name="a refusal",
        model=MINI,
        usage={"prompt_tokens": 81, "completion_tokens": 11, "total_tokens": 92},
        expected=Usage(input=81, output=11),
        cost=(81 * Decimal("0.15") + 11 * Decimal("0.6")) / MILLION,
        said={"content": None, "refusal": "I'm sorry, I cannot assist with that request."},
        finish=Finish.FILTERED,
        text="I'm sorry, I cannot assist with that request.",
    ),
    Case(
        name="a content filter that left nothing",
        model=MINI,
        usage={"prompt_tokens": 81, "completion_tokens": 0, "total_tokens": 81},
        expected=Usage(input=81),
        cost=81 * Decimal("0.15") / MILLION,
        said={"content": None},
        stop="content_filter",
        finish=Finish.FILTERED,
        text="",
    ),
    Case(
        name="cut at the bound",
        model=MINI,
        usage={"prompt_tokens": 10, "completion_tokens": 321, "total_tokens": 331},
        expected=Usage(input=10, output=321),
        cost=(10 * Decimal("0.15") + 321 * Decimal("0.6")) / MILLION,
        stop="length",
        finish=Finish.LENGTH,
    ),
    Case(
        name="details that are null",
        model=MINI,
        usage={
            "prompt_tokens": 10,
            "completion_tokens": 5,
            "total_tokens": None,
            "prompt_tokens_details": None,
            "completion_tokens_details": {"reasoning_tokens": None, "audio_tokens": None},
        },
        expected=Usage(input=10, output=5),
        cost=(10 * Decimal("0.15") + 5 * Decimal("0.6")) / MILLION,
    ),
    Case(
        name="details that are no counts stay in the totals, at their full price",
        model=MINI,
        usage={
            "prompt_tokens": 10,
            "completion_tokens": 5,
            "prompt_tokens_details": {"cached_tokens": "8"},
            "completion_tokens_details": {"reasoning_tokens": -3},
        },
        expected=Usage(input=10, output=5),
        cost=(10 * Decimal("0.15") + 5 * Decimal("0.6")) / MILLION,
    ),
    Case(name="none", model=MINI, usage=..., expected=None, cost=None),
    Case(name="null", model=MINI, usage=None, expected=None, cost=None),
    Case(
        name="one total missing",
        model=MINI,
        usage={"prompt_tokens": 10, "total_tokens": 15},
        expected=None,
        cost=None,
    ),
    Case(
        name="all zero is told, so it is known",
        model=MINI,
        usage={"prompt_tokens": 0, "completion_tokens": 0, "total_tokens": 0},
        expected=Usage(),
        cost=Decimal(0),
    ),
)

HAIKU, SONNET = "anthropic:claude-haiku-4-5", "anthropic:claude-sonnet-4-5"
THOUGHT = [
    {"type": "thinking", "thinking": "Strokes are …", "signature": "WaUjzkypQ2mUEVM36O2Txu"},
    {"type": "redacted_thinking", "data": "EmwKAhgBEgy3va3pzix"},
    {"type": "text", "text": "Yes."},
]
ANTHROPIC = (
    Case(
        name="plain, with everything that the reference lists",
        model=HAIKU,
        usage={
            "cache_creation": {"ephemeral_1h_input_tokens": 0, "ephemeral_5m_input_tokens": 0},
            "cache_creation_input_tokens": 0,
            "cache_read_input_tokens": 0,
            "inference_geo": "not_available",
            "input_tokens": 2095,
            "output_tokens": 503,
            "output_tokens_details": {"thinking_tokens": 0},
            "server_tool_use": {"web_fetch_requests": 0, "web_search_requests": 0},
            "service_tier": "standard",
            "speed": "standard",
        },
        expected=Usage(input=2095, output=503),
        cost=(2095 * Decimal(1) + 503 * Decimal(5)) / MILLION,
        stop="end_turn",
    ),
    Case(
        name="cache read and written for both lifetimes",
        model=HAIKU,
        usage={
            "input_tokens": 2048,
            "cache_read_input_tokens": 1800,
            "cache_creation_input_tokens": 248,
            "output_tokens": 503,
            "cache_creation": {"ephemeral_5m_input_tokens": 148, "ephemeral_1h_input_tokens": 100},
        },
        expected=Usage(
            input=2048, cache_read=1800, cache_write_5m=148, cache_write_1h=100, output=503
        ),
        cost=(
            2048 * Decimal(1)
            + 1800 * Decimal("0.1")
            + 148 * Decimal("1.25")
            + 100 * Decimal(2)
            + 503 * Decimal(5)
        )
        / MILLION,
        stop="end_turn",
    ),
    Case(
        name="cache writes without lifetimes",
        model=HAIKU,
        usage={"input_tokens": 21, "cache_creation_input_tokens": 188_086, "output_tokens": 393},
        expected=Usage(input=21, cache_write_5m=188_086, output=393),
        cost=(21 * Decimal(1) + 188_086 * Decimal("1.25") + 393 * Decimal(5)) / MILLION,
        stop="end_turn",
    ),
    Case(
        name="lifetimes without their sum",
        model=HAIKU,
        usage={
            "input_tokens": 21,
            "output_tokens": 3,
            "cache_creation_input_tokens": None,
            "cache_creation": {"ephemeral_5m_input_tokens": 10, "ephemeral_1h_input_tokens": 20},
        },
        expected=Usage(input=21, cache_write_5m=10, cache_write_1h=20, output=3),
        cost=(21 * Decimal(1) + 10 * Decimal("1.25") + 20 * Decimal(2) + 3 * Decimal(5)) / MILLION,
        stop="end_turn",
    ),
    Case(
        name="what is cached counts for the step of the price",
        model=SONNET,
        usage={"input_tokens": 1000, "cache_read_input_tokens": 200_000, "output_tokens": 100},
        expected=Usage(input=1000, cache_read=200_000, output=100),
        cost=(1000 * Decimal(6) + 200_000 * Decimal("0.6") + 100 * Decimal("22.5")) / MILLION,
        stop="end_turn",
    ),
    Case(
        name="thinking, broken down",
        model=SONNET,
        usage={
            "input_tokens": 50,
            "output_tokens": 900,
            "output_tokens_details": {"thinking_tokens": 850},
        },
        expected=Usage(input=50, output=50, reasoning=850),
        cost=(50 * Decimal(3) + (50 + 850) * Decimal(15)) / MILLION,
        said=THOUGHT,
        stop="end_turn",
    ),
    Case(
        name="thinking, not broken down, is output",
        model=SONNET,
        usage={"input_tokens": 50, "output_tokens": 900},
        expected=Usage(input=50, output=900),
        cost=(50 * Decimal(3) + 900 * Decimal(15)) / MILLION,
        said=THOUGHT,
        stop="end_turn",
    ),
    Case(
        name="more thinking than output never makes more of the bill",
        model=SONNET,
        usage={
            "input_tokens": 50,
            "output_tokens": 90,
            "output_tokens_details": {"thinking_tokens": 92},
        },
        expected=Usage(input=50, reasoning=90),
        cost=(50 * Decimal(3) + 90 * Decimal(15)) / MILLION,
        stop="end_turn",
    ),
    Case(
        name="a refusal",
        model=SONNET,
        usage={"input_tokens": 564, "output_tokens": 8, "service_tier": "standard"},
        expected=Usage(input=564, output=8),
        cost=(564 * Decimal(3) + 8 * Decimal(15)) / MILLION,
        said=[],
        stop="refusal",
        finish=Finish.FILTERED,
        text="",
    ),
    Case(
        name="cut at the bound while thinking",
        model=SONNET,
        usage={
            "input_tokens": 50,
            "output_tokens": 321,
            "output_tokens_details": {"thinking_tokens": 321},
        },
        expected=Usage(input=50, reasoning=321),
        cost=(50 * Decimal(3) + 321 * Decimal(15)) / MILLION,
        said=THOUGHT[:1],
        stop="max_tokens",
        finish=Finish.LENGTH,
        text="",
    ),
    Case(
        name="a paused turn with searches, which cost money beside the tokens",
        model=SONNET,
        usage={
            "input_tokens": 105,
            "output_tokens": 200,
            "server_tool_use": {"web_search_requests": 2, "web_fetch_requests": 0},
        },
        expected=None,
        cost=None,
        stop="pause_turn",
        finish=Finish.OTHER,
    ),
    Case(
        name="fetches cost nothing but tokens",
        model=SONNET,
        usage={
            "input_tokens": 105,
            "output_tokens": 200,
            "server_tool_use": {"web_search_requests": 0, "web_fetch_requests": 3},
        },
        expected=Usage(input=105, output=200),
        cost=(105 * Decimal(3) + 200 * Decimal(15)) / MILLION,
        stop="end_turn",
    ),
    Case(
        name="nulls, as older models send them",
        model=HAIKU,
        usage={
            "input_tokens": 10,
            "output_tokens": 5,
            "cache_creation": None,
            "cache_creation_input_tokens": None,
            "cache_read_input_tokens": None,
            "output_tokens_details": None,
            "server_tool_use": None,
            "service_tier": None,
        },
        expected=Usage(input=10, output=5),
        cost=(10 * Decimal(1) + 5 * Decimal(5)) / MILLION,
        stop="end_turn",
    ),
    Case(
        name="a count that adds and is none",
        model=HAIKU,
        usage={"input_tokens": 10, "output_tokens": 5, "cache_read_input_tokens": "1800"},
        expected=None,
        cost=None,
        stop="end_turn",
    ),
    Case(
        name="a lifetime that is none",
        model=HAIKU,
        usage={
            "input_tokens": 10,
            "output_tokens": 5,
            "cache_creation_input_tokens": 50,
            "cache_creation": {"ephemeral_1h_input_tokens": -50},
        },
        expected=None,
        cost=None,
        stop="end_turn",
    ),
    Case(name="none", model=HAIKU, usage=..., expected=None, cost=None, stop="end_turn"),
    Case(name="null", model=HAIKU, usage=None, expected=None, cost=None, stop="end_turn"),
    Case(
        name="one half missing",
        model=HAIKU,
        usage={"input_tokens": 10},
        expected=None,
        cost=None,
        stop="end_turn",
    ),
)
CASES = [*OPENAI, *ANTHROPIC]


@pytest.mark.parametrize("case", CASES, ids=[f"{c.model}: {c.name}" for c in CASES])
async def test_a_reply_is_counted_and_priced_as_the_provider_bills_it(
    case: Case, make_call: Any
) -> None:
    openai = case.model.startswith("openai:")
    body = openai_body(case) if openai else anthropic_body(case)
    replies = httpx2.MockTransport(lambda _: httpx2.Response(200, json=body))
    async with httpx2.AsyncClient(transport=replies) as client:
        kind = OpenAIAdapter if openai else AnthropicAdapter
        adapter = kind(api_key="none", base_url="http://127.0.0.1:9", client=client)
        completion = await adapter(make_call(model=case.model))
    assert completion.usage == case.expected
    assert packaged().cost(case.model, completion.usage) == case.cost
    assert (completion.finish, completion.text) == (case.finish, case.text)
