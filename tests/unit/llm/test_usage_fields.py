"""No field of the usage that an SDK knows of is passed over without anybody having said why."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from enum import Enum
from typing import Any, get_args

import pytest
from anthropic.types import Usage as AnthropicUsage
from openai.types import CompletionUsage
from pydantic import BaseModel

from posology.llm.providers.anthropic import usage_of as anthropic_usage
from posology.llm.providers.openai import usage_of as openai_usage
from posology.types import Usage


class Treatment(Enum):
    """What becomes of a field when it says something."""

    #: changes a bucket
    COUNTED = "counted"
    #: part of a total that is counted, at the price of the rest
    WITHIN = "within a total"
    #: billed apart, and no bucket holds it: the usage is unknown
    UNKNOWN = "unknown"
    #: says which price holds, not how much there was. We never ask for another than the standard
    #: one; where an account has one by default, its prices go into the user's file of prices
    PRICE = "price"
    #: costs nothing but the tokens that are counted
    FREE = "free"
    #: holds other fields
    HOLDS = "holds"


T = Treatment
OPENAI = {
    "prompt_tokens": T.COUNTED,
    "completion_tokens": T.COUNTED,
    # decides whether a part stands beside its total
    "total_tokens": T.COUNTED,
    "prompt_tokens_details": T.HOLDS,
    "prompt_tokens_details.cached_tokens": T.COUNTED,
    "prompt_tokens_details.cache_write_tokens": T.COUNTED,
    "prompt_tokens_details.text_tokens": T.WITHIN,
    "prompt_tokens_details.audio_tokens": T.UNKNOWN,
    "prompt_tokens_details.image_tokens": T.UNKNOWN,
    "completion_tokens_details": T.HOLDS,
    "completion_tokens_details.reasoning_tokens": T.COUNTED,
    "completion_tokens_details.text_tokens": T.WITHIN,
    "completion_tokens_details.accepted_prediction_tokens": T.WITHIN,
    "completion_tokens_details.rejected_prediction_tokens": T.WITHIN,
    "completion_tokens_details.audio_tokens": T.UNKNOWN,
}
ANTHROPIC = {
    "input_tokens": T.COUNTED,
    "output_tokens": T.COUNTED,
    "cache_read_input_tokens": T.COUNTED,
    "cache_creation_input_tokens": T.COUNTED,
    "cache_creation": T.HOLDS,
    "cache_creation.ephemeral_5m_input_tokens": T.COUNTED,
    "cache_creation.ephemeral_1h_input_tokens": T.COUNTED,
    "output_tokens_details": T.HOLDS,
    "output_tokens_details.thinking_tokens": T.COUNTED,
    "server_tool_use": T.HOLDS,
    "server_tool_use.web_search_requests": T.UNKNOWN,
    "server_tool_use.web_fetch_requests": T.FREE,
    "service_tier": T.PRICE,
    "speed": T.PRICE,
    "inference_geo": T.PRICE,
}
Read = Callable[[Any], Usage | None]
SDKS: list[tuple[type[BaseModel], Mapping[str, Treatment], Read, dict[str, Any]]] = [
    (
        CompletionUsage,
        OPENAI,
        openai_usage,
        {
            "prompt_tokens": 100,
            "completion_tokens": 50,
            "total_tokens": 157,
            "completion_tokens_details": {"reasoning_tokens": 7},
        },
    ),
    (AnthropicUsage, ANTHROPIC, anthropic_usage, {"input_tokens": 100, "output_tokens": 50}),
]


def fields(
    model: type[BaseModel], prefix: str = ""
) -> Iterator[tuple[str, type[BaseModel] | None]]:
    """Every field by its path, with the model that it holds."""
    for name, info in model.model_fields.items():
        kinds = get_args(info.annotation) or (info.annotation,)
        held = [k for k in kinds if isinstance(k, type) and issubclass(k, BaseModel)]
        path = prefix + (info.alias or name)
        yield path, held[0] if held else None
        for inner in held:
            yield from fields(inner, path + ".")


def with_field(usage: dict[str, Any], path: str, value: Any) -> dict[str, Any]:
    """The same usage, one field of which says something else."""
    name, _, rest = path.partition(".")
    return usage | {name: with_field(usage.get(name) or {}, rest, value) if rest else value}


@pytest.mark.parametrize(("model", "known"), [(s[0], s[1]) for s in SDKS])
def test_every_field_of_the_sdk_is_known(
    model: type[BaseModel], known: Mapping[str, Treatment]
) -> None:
    new = {path for path, _ in fields(model)} - set(known)
    assert not new, f"{model.__module__} has new fields: say in this table what becomes of them"


@pytest.mark.parametrize(("model", "known"), [(s[0], s[1]) for s in SDKS])
def test_what_holds_fields_is_what_the_sdk_says(
    model: type[BaseModel], known: Mapping[str, Treatment]
) -> None:
    for path, held in fields(model):
        assert (known[path] is T.HOLDS) == (held is not None), path


CLAIMS = [
    pytest.param(treatment, path, read, plain, id=f"{model.__module__.split('.')[0]}: {path}")
    for model, known, read, plain in SDKS
    for path, treatment in known.items()
]


@pytest.mark.parametrize(("treatment", "path", "read", "plain"), CLAIMS)
def test_the_table_says_what_becomes_of_a_field(
    treatment: Treatment, path: str, read: Read, plain: dict[str, Any]
) -> None:
    before = read({"usage": plain})
    assert before is not None
    after = read({"usage": with_field(plain, path, "fast" if treatment is T.PRICE else 9)})
    match treatment:
        case T.COUNTED:
            assert after not in (None, before)
        case T.UNKNOWN:
            assert after is None
        case T.HOLDS:
            # a number where an object should be holds nothing
            assert after is not None
            assert after.total_input == before.total_input
        case _:
            assert after == before
