"""Bodies as Anthropic documents them, the buckets they stand for, and their price by hand."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

from posology.types import Finish, Usage
from tests.unit.llm.usage_case import MILLION, Case


def anthropic_body(case: Case) -> dict[str, Any]:
    said = [{"type": "text", "text": case.said}] if isinstance(case.said, str) else case.said
    body: dict[str, Any] = {
        "id": "msg_013Zva2CMHLNnXjNJJKqJ2EF",
        "type": "message",
        "role": "assistant",
        "model": case.model.partition(":")[2],
        "content": said,
        "stop_reason": case.stop or "end_turn",
        "stop_sequence": None,
    }
    return body if case.usage is ... else body | {"usage": case.usage}


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
    ),
    Case(
        name="cache writes without lifetimes",
        model=HAIKU,
        usage={"input_tokens": 21, "cache_creation_input_tokens": 188_086, "output_tokens": 393},
        expected=Usage(input=21, cache_write_5m=188_086, output=393),
        cost=(21 * Decimal(1) + 188_086 * Decimal("1.25") + 393 * Decimal(5)) / MILLION,
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
    ),
    Case(
        name="what is cached counts for the step of the price",
        model=SONNET,
        usage={"input_tokens": 1000, "cache_read_input_tokens": 200_000, "output_tokens": 100},
        expected=Usage(input=1000, cache_read=200_000, output=100),
        cost=(1000 * Decimal(6) + 200_000 * Decimal("0.6") + 100 * Decimal("22.5")) / MILLION,
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
    ),
    Case(
        name="thinking, not broken down, is output",
        model=SONNET,
        usage={"input_tokens": 50, "output_tokens": 900},
        expected=Usage(input=50, output=900),
        cost=(50 * Decimal(3) + 900 * Decimal(15)) / MILLION,
        said=THOUGHT,
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
    ),
    Case(
        name="a count that adds and is none",
        model=HAIKU,
        usage={"input_tokens": 10, "output_tokens": 5, "cache_read_input_tokens": "1800"},
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
    ),
    Case(
        name="all zero",
        model=HAIKU,
        usage={"input_tokens": 0, "output_tokens": 0, "cache_read_input_tokens": 0},
    ),
    Case(name="no text has 0 tokens", model=HAIKU, usage={"input_tokens": 900, "output_tokens": 0}),
    Case(
        name="no input but what was read from the cache",
        model=HAIKU,
        usage={"input_tokens": 0, "cache_read_input_tokens": 1000, "output_tokens": 60},
        expected=Usage(cache_read=1000, output=60),
        cost=(1000 * Decimal("0.1") + 60 * Decimal(5)) / MILLION,
    ),
    Case(name="none", model=HAIKU, usage=...),
    Case(name="null", model=HAIKU, usage=None),
    Case(name="one half missing", model=HAIKU, usage={"input_tokens": 10}),
)
