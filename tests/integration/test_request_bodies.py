"""Bodies of requests to current models: effort, caching, temperature and schema, as the SDKs' own types accept them."""

from __future__ import annotations

from itertools import pairwise
from typing import Any, Literal

import pytest
from anthropic.types.message_create_params import MessageCreateParamsNonStreaming
from openai.types.chat.completion_create_params import CompletionCreateParamsNonStreaming
from pydantic import BaseModel, TypeAdapter

from posology.llm.models.effort import effort_of
from posology.llm.models.families import lanes_of
from posology.llm.providers.anthropic import AnthropicAdapter
from posology.llm.providers.openai import OpenAIAdapter
from posology.testing import Reply, StubProvider
from posology.types import Call, Stage
from tests.support.calls import call_to

pytestmark = pytest.mark.anyio


class Verdict(BaseModel):
    verdict: Literal["yes", "no"]


SCHEMA: dict[str, Any] = {
    "title": "Verdict",
    "type": "object",
    "properties": {"verdict": {"title": "Verdict", "enum": ["yes", "no"]}},
    "additionalProperties": False,
    "required": ["verdict"],
}
TYPED = SCHEMA | {"properties": {"verdict": SCHEMA["properties"]["verdict"] | {"type": "string"}}}
NO_CACHE = {"prompt_cache_options": {"mode": "explicit"}}
OFF, BETWEEN = {"thinking": {"type": "disabled"}}, {"thinking": {"type": "between_tools"}}
Body = dict[str, Any]
#: what distinguishes the bodies of an answer and of an extract: an effort in the provider's own field, and more
GOLDEN: dict[str, tuple[Body, Body]] = {
    "openai:gpt-4o-mini": ({"temperature": 0}, {"temperature": 0}),
    "openai:gpt-5-mini": ({"reasoning_effort": "low"}, {"reasoning_effort": "minimal"}),
    "openai:gpt-5.4-mini": (
        {"reasoning_effort": "low"},
        {"reasoning_effort": "none", "temperature": 0},
    ),
    "openai:gpt-5.5": ({"reasoning_effort": "low"}, {"reasoning_effort": "none", "temperature": 0}),
    "openai:gpt-5.6-luna": (
        {"reasoning_effort": "low", **NO_CACHE},
        {"reasoning_effort": "none", "temperature": 0, **NO_CACHE},
    ),
    "openai:gpt-6-luna": (
        {"reasoning_effort": "low", **NO_CACHE},
        {"reasoning_effort": "none", **NO_CACHE},
    ),
    "openai:gpt-6.1-sol": (
        {"reasoning_effort": "low", **NO_CACHE},
        {"reasoning_effort": "none", **NO_CACHE},
    ),
    "anthropic:claude-haiku-4-5": ({"temperature": 0}, {"temperature": 0}),
    "anthropic:claude-sonnet-4-6": (
        {"output_config": {"effort": "low"}, "temperature": 0},
        {"output_config": {"effort": "low"}, "temperature": 0},
    ),
    "anthropic:claude-opus-4-8": (
        {"output_config": {"effort": "low"}},
        {"output_config": {"effort": "low"}},
    ),
    "anthropic:claude-haiku-5-5": (
        {"output_config": {"effort": "low"}},
        {"output_config": {"effort": "low"}, **OFF},
    ),
    "anthropic:claude-sonnet-5-5": (
        {"output_config": {"effort": "low"}},
        {"output_config": {"effort": "low"}, **BETWEEN},
    ),
    "anthropic:claude-opus-5-5": (
        {"output_config": {"effort": "low"}},
        {"output_config": {"effort": "low"}},
    ),
    # nothing is known of it: nothing is sent that it could refuse
    "openai:gpt-7": ({}, {}),
    "anthropic:claude-novella-7": ({}, {}),
}
#: dropped by the SDK's types from 5 on, and taken by the API for the models before
OLD_FIELDS = {"temperature"}


def a_call(model: str, stage: Stage, **changes: Any) -> Call:
    given: dict[str, Any] = {
        "effort": effort_of(model, stage),
        "schema": Verdict,
        "max_tokens": 321,
    }
    return call_to(model, system="Answer from the passages.", stage=stage, **given, **changes)


async def sent(call: Call, **options: Any) -> Body:
    """The body that a provider receives, of a reply as a whole: what a stream adds is tested apart."""
    options = {"stream": False, **options}
    with StubProvider([Reply(text='{"verdict": "yes"}')]) as stub:
        adapter: OpenAIAdapter | AnthropicAdapter
        if call.model.startswith("openai:"):
            # as OpenAI's own address: what other servers get more is tested apart
            adapter = OpenAIAdapter(api_key="key", base_url=stub.openai_url, **options)
        else:
            adapter = AnthropicAdapter(api_key="key", base_url=stub.anthropic_url, **options)
        try:
            await adapter(call)
        finally:
            await adapter.aclose()
        return dict(stub.requests[-1].json)


def common(model: str) -> Body:
    provider, _, name = model.partition(":")
    user = {"role": "user", "content": "Does aspirin prevent stroke?"}
    if provider == "openai":
        schema = {"name": "Verdict", "schema": TYPED, "strict": True}
        return {
            "model": name,
            "messages": [{"role": "system", "content": "Answer from the passages."}, user],
            "max_completion_tokens": 321,
            "response_format": {"type": "json_schema", "json_schema": schema},
            # unsaid, it is the project's, which may be priority
            "service_tier": "default",
        }
    return {
        "model": name,
        "messages": [user],
        "system": "Answer from the passages.",
        "max_tokens": 321,
        "output_config": {"format": {"type": "json_schema", "schema": SCHEMA}},
        "service_tier": "standard_only",
    }


@pytest.mark.parametrize("model", GOLDEN)
@pytest.mark.parametrize("stage", [Stage.ANSWER, Stage.EXTRACT])
async def test_the_body_is_the_one_that_the_model_takes(model: str, stage: Stage) -> None:
    body = await sent(a_call(model, stage))
    expected = common(model)
    more = dict(GOLDEN[model][stage is Stage.EXTRACT])
    if "output_config" in more:
        more["output_config"] = {**expected["output_config"], **more["output_config"]}
    if model == "openai:gpt-7":
        # the stub is another server than OpenAI's, so a model that the table lacks is a local one
        more["temperature"] = 0
        del expected["service_tier"]
    assert body == {**expected, **more}
    if model.startswith("openai:"):
        TypeAdapter(CompletionCreateParamsNonStreaming).validate_python(body, strict=True)
    else:
        known = {key: value for key, value in body.items() if key not in OLD_FIELDS}
        TypeAdapter(MessageCreateParamsNonStreaming).validate_python(known, strict=True)


@pytest.mark.parametrize("model", [name for name in GOLDEN if "flex" in lanes_of(name)])
async def test_a_flex_call_says_so(model: str) -> None:
    body = await sent(a_call(model, Stage.ANSWER, tier="flex"))
    expected = {**common(model), **GOLDEN[model][0], "service_tier": "flex"}
    assert body == expected
    TypeAdapter(CompletionCreateParamsNonStreaming).validate_python(body, strict=True)


def test_most_current_models_of_openai_are_sold_in_flex() -> None:
    sold = {name for name in GOLDEN if "flex" in lanes_of(name)}
    assert sold == {name for name in GOLDEN if name.startswith("openai:gpt-5")} | {
        "openai:gpt-6-luna",
        "openai:gpt-6.1-sol",
    }


@pytest.mark.parametrize("model", ["openai:gpt-6-luna", "anthropic:claude-haiku-5-5"])
async def test_a_call_of_a_batch_names_no_tier(model: str) -> None:
    assert "service_tier" not in await sent(a_call(model, Stage.ANSWER, tier="batch"))


async def test_servers_with_models_of_their_own_are_sent_no_tier() -> None:
    assert "service_tier" not in await sent(a_call("openai:qwen3-8b", Stage.ANSWER))


TEXT = "Does aspirin prevent stroke?"
BREAK = {"prompt_cache_breakpoint": {"mode": "explicit"}}
CONTROL = {"cache_control": {"type": "ephemeral"}}


def parts(mark: Body, *ends: int) -> list[Body]:
    """The user's message in parts, each but the last with a mark at its end."""
    places = (0, *ends)
    marked = [{"type": "text", "text": TEXT[a:b], **mark} for a, b in pairwise(places)]
    rest = TEXT[places[-1] :]
    return [*marked, {"type": "text", "text": rest}] if rest else marked


@pytest.mark.parametrize("ends", [(4,), (4, 12), (4, len(TEXT))])
@pytest.mark.parametrize(
    ("model", "mark"),
    [
        ("openai:gpt-6-luna", BREAK),
        ("openai:gpt-5.6-luna", BREAK),
        ("anthropic:claude-haiku-5-5", CONTROL),
        ("anthropic:claude-sonnet-4-6", CONTROL),
        # caches are free, or nothing is known
        ("openai:gpt-4o-mini", None),
        ("openai:gpt-5-mini", None),
        ("openai:gpt-7", None),
        ("anthropic:claude-novella-7", None),
    ],
)
async def test_prefixes_are_marked_where_a_model_bills_their_writing(
    model: str, mark: Body | None, ends: tuple[int, ...]
) -> None:
    body = await sent(a_call(model, Stage.ANSWER, cached=ends))
    plain = await sent(a_call(model, Stage.ANSWER))
    if mark is not None:
        plain["messages"][-1] = {"role": "user", "content": parts(mark, *ends)}
    assert body == plain
    if model.startswith("openai:"):
        TypeAdapter(CompletionCreateParamsNonStreaming).validate_python(body)
    else:
        TypeAdapter(MessageCreateParamsNonStreaming).validate_python(
            {k: v for k, v in body.items() if k not in OLD_FIELDS}
        )
    assert "".join(_texts(body["messages"][-1]["content"])) == TEXT


def _texts(content: str | list[Body]) -> list[str]:
    return [content] if isinstance(content, str) else [one["text"] for one in content]
