"""The table of model families, against the SDKs' lists of models."""

from __future__ import annotations

import re
from datetime import date
from pathlib import Path
from typing import get_args

import pytest
from anthropic.resources.messages.messages import DEPRECATED_MODELS
from anthropic.types.model_param import ModelParam
from openai.types.shared import chat_model
from openai.types.shared.chat_model import ChatModel

from posology.llm.models.families import Capabilities, capabilities, families, retirement_warning
from posology.types import EFFORTS

#: OpenAI's models that answer no medical question in one chat completion, or are switched off by the end of 2026
ELSEWHERE = re.compile(
    r"audio|codex|search|-pro|chat-latest|^chatgpt|gpt-5\.1-mini|^gpt-(3|4$|4-)|^o1-"
)
CLAUDES = list(get_args(get_args(ModelParam)[0]))
GPTS = [name for name in get_args(ChatModel) if not ELSEWHERE.search(name)]


@pytest.mark.parametrize("name", GPTS)
def test_every_current_chat_model_of_openai_is_known(name: str) -> None:
    assert capabilities(f"openai:{name}").known


@pytest.mark.parametrize("name", [name for name in CLAUDES if name != "claude-mythos-preview"])
def test_every_model_of_anthropic_is_known(name: str) -> None:
    assert capabilities(f"anthropic:{name}").known


def announced() -> dict[str, date]:
    """The shutdown dates in the description of OpenAI's list of models."""
    source = Path(str(chat_model.__file__)).read_text(encoding="utf-8")
    return {
        model: date.fromisoformat(day)
        for names, day in re.findall(
            r'- ((?:"[^"]+",?\s*)+):\s+Announced shutdown\s+date:\s+(\d{4}-\d\d-\d\d)', source
        )
        for model in re.findall(r'"([^"]+)"', names)
    }


ANNOUNCED = announced()


@pytest.mark.parametrize("name", GPTS)
def test_openai_s_retirements_are_those_of_its_sdk(name: str) -> None:
    assert ANNOUNCED["gpt-4o-mini"] == date(2027, 1, 14)
    assert capabilities(f"openai:{name}").retirement(name) == ANNOUNCED.get(name)


def test_anthropic_s_retirements_are_those_of_its_sdk() -> None:
    row = capabilities("anthropic:claude-sonnet-4-5-20250929")
    assert DEPRECATED_MODELS["claude-sonnet-4-5"] == "November 30th, 2026"
    assert row.retirement("claude-sonnet-4-5-20250929") == date(2026, 11, 30)
    assert capabilities("anthropic:claude-haiku-5-5").retirement("claude-haiku-5-5") is None


@pytest.mark.parametrize("row", families(), ids=lambda row: row.match)
def test_rows_say_where_they_are_from_and_agree_with_themselves(row: Capabilities) -> None:
    assert row.source
    assert row.checked is not None
    re.compile(row.match)
    assert set(row.efforts) <= set(EFFORTS)
    assert (row.reasoning == "optional") == ("none" in row.efforts)
    assert row.default_effort is None or row.default_effort in row.efforts
    assert bool(row.off) <= (row.reasoning == "optional")
    assert row.cache != "unknown"
    assert row.tokenizer != "unknown"


@pytest.mark.parametrize(
    ("model", "match"),
    [
        ("openai:gpt-6-luna", "gpt-6"),
        (" OpenAI:GPT-5.4-mini-2026-03-17", "gpt-5"),
        ("openai:openai/gpt-6.1-sol", "gpt-6"),
        ("openai:ft:gpt-4o-mini-2024-07-18:org::id", "gpt-4o"),
        ("openai:gpt-oss-120b", "gpt-oss"),
        ("openai:meta-llama/Llama-4-Scout", "llama"),
        ("anthropic:claude-opus-4-5-20251101", "claude-opus-4-5"),
        ("anthropic:claude-haiku-4-5@20251001", "haiku"),
    ],
)
def test_names_find_their_family(model: str, match: str) -> None:
    assert match in capabilities(model).match.replace("\\", "")


@pytest.mark.parametrize(
    "model", ["openai:gpt-7", "anthropic:gpt-4o", "openai:gpt-4o-audio-preview"]
)
def test_an_unknown_model_gets_what_is_safe(model: str) -> None:
    row = capabilities(model)
    assert not row.known
    assert (row.efforts, row.cache, row.tokenizer) == ((), "unknown", "unknown")
    assert row.reasons(None)
    assert not row.takes_temperature(None)


def test_temperature_is_taken_where_nothing_is_reasoned() -> None:
    # live requests of 2026-09-04: UKGovernmentBEIS/inspect_ai#5242
    older, newer = capabilities("openai:gpt-5.4"), capabilities("openai:gpt-5.5")
    assert older.takes_temperature(None)
    assert not newer.takes_temperature(None)
    assert older.takes_temperature("none")
    assert newer.takes_temperature("none")
    assert not older.takes_temperature("low")
    assert capabilities("openai:gpt-4o").takes_temperature(None)
    assert not capabilities("anthropic:claude-opus-4-7").takes_temperature(None)


@pytest.mark.parametrize(
    ("day", "words"),
    [
        (date(2026, 8, 1), None),
        (date(2026, 9, 1), "in 90 days"),
        (date(2026, 11, 29), "in 1 days"),
        (date(2026, 11, 30), "switched it off"),
    ],
)
def test_a_model_s_end_is_announced_ninety_days_before(day: date, words: str | None) -> None:
    warning = retirement_warning("anthropic:claude-sonnet-4-5-20250929", day)
    assert (warning is None) if words is None else (warning is not None and words in warning)
    assert retirement_warning("openai:gpt-6-luna", day) is None


@pytest.mark.parametrize(
    ("model", "same"),
    [
        ("azure:gpt-6-luna", "openai:gpt-6-luna"),
        ("azure:gpt-4o-mini", "openai:gpt-4o-mini"),
        ("bedrock:anthropic.claude-sonnet-5", "anthropic:claude-sonnet-5"),
        ("bedrock:apac.anthropic.claude-opus-4-6-v1:0", "anthropic:claude-opus-4-6"),
        ("bedrock:us.anthropic.claude-haiku-4-5-20251001-v1:0", "anthropic:claude-haiku-4-5"),
        ("bedrock:us-gov.anthropic.claude-haiku-4-5-20251001-v1:0", "anthropic:claude-haiku-4-5"),
        ("vertex:claude-haiku-4-5@20251001", "anthropic:claude-haiku-4-5"),
        ("vertex:claude-haiku-5-5", "anthropic:claude-haiku-5-5"),
    ],
)
def test_a_cloud_s_model_can_do_what_its_maker_s_can(model: str, same: str) -> None:
    here, there = capabilities(model), capabilities(same)
    assert here.known
    for field in (
        "reasoning",
        "efforts",
        "default_effort",
        "off",
        "temperature",
        "context",
        "output",
        "tokenizer",
    ):
        assert getattr(here, field) == getattr(there, field), field
    assert (here.tiers, here.batch, here.retires) == (("standard",), False, {})
    assert here.cache == ("unknown" if there.cache == "declined" else there.cache)


@pytest.mark.parametrize(
    "model", ["azure:ours", "bedrock:meta.llama3", "bedrock:x", "vertex:gemini-3"]
)
def test_a_cloud_s_other_models_are_unknown(model: str) -> None:
    assert capabilities(model) == Capabilities(provider=model.partition(":")[0])
