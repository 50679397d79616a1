"""Bodies as OpenAI documents them, the buckets they stand for, and their price by hand."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

from posology.types import Finish, Usage
from tests.unit.llm.usage_case import MILLION, Case


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
                "finish_reason": case.stop or "stop",
            }
        ],
        "service_tier": "default",
        "system_fingerprint": "fp_fc9f1d7035",
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
    ),
    Case(
        name="audio out",
        model=MINI,
        usage={
            "prompt_tokens": 300,
            "completion_tokens": 90,
            "completion_tokens_details": {"audio_tokens": 80, "text_tokens": 10},
        },
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
    Case(name="none", model=MINI, usage=...),
    Case(name="null", model=MINI, usage=None),
    Case(name="one total missing", model=MINI, usage={"prompt_tokens": 10, "total_tokens": 15}),
    Case(
        name="no prompt has 0 tokens",
        model=MINI,
        usage={"prompt_tokens": 0, "completion_tokens": 60, "total_tokens": 60},
    ),
    Case(
        name="all zero",
        model=MINI,
        usage={"prompt_tokens": 0, "completion_tokens": 0, "total_tokens": 0},
    ),
    Case(
        name="no text has 0 tokens",
        model=MINI,
        usage={"prompt_tokens": 900, "completion_tokens": 0, "total_tokens": 900},
    ),
    Case(
        name="a filter's refusal without a text has none",
        model=MINI,
        usage={"prompt_tokens": 1000, "completion_tokens": 0, "total_tokens": 1000},
        expected=Usage(input=1000),
        cost=1000 * Decimal("0.15") / MILLION,
        said="",
        stop="content_filter",
        finish=Finish.FILTERED,
        text="",
    ),
    Case(
        name="a prompt of cached tokens alone, counted beside the total",
        model=MINI,
        usage={
            "prompt_tokens": 0,
            "completion_tokens": 60,
            "total_tokens": 60,
            "prompt_tokens_details": {"cached_tokens": 1000},
        },
        expected=Usage(cache_read=1000, output=60),
        cost=(1000 * Decimal("0.075") + 60 * Decimal("0.6")) / MILLION,
    ),
)
