"""Presets fill the fields of a request that are not given."""

from __future__ import annotations

from pathlib import Path
from typing import Any, get_args

import pytest

from orchestrator.question.request import PACKAGED, JobRequest, Preset
from orchestrator.settings import Settings
from orchestrator.settings.presets import PRESETS
from posology.errors import InvalidQuery
from prompts.template import load_own

TEMPLATE = "Answer.\n\n%% user %%\n\n$question $choices $code\n$passages\n"


def asked(**fields: Any) -> JobRequest:
    return JobRequest.parse({"question": "Why?", "model": "offline:extractive", **fields})


@pytest.mark.parametrize("name", get_args(Preset))
def test_each_preset_is_a_request_that_can_be_asked(name: str) -> None:
    assert PRESETS.keys() == set(get_args(Preset))
    request = asked(preset=name)
    assert {field: getattr(request, field) for field in PRESETS[name]} == PRESETS[name]
    made = request.to_request(Settings())
    assert (made.strategy is None) != (made.policy is None)
    settled = request.settled(Settings())
    assert JobRequest.model_validate_json(settled.model_dump_json()).as_settled() == made


def test_a_given_field_is_not_filled() -> None:
    assert asked(preset="briefcontext", k=8).k == 8
    assert asked(preset="tcra", keep=0.5).keep == 0.5
    one = asked(preset="pathway", strategy="direct")
    assert (one.strategy, one.policy) == ("direct", None)
    other = asked(preset="tcra", policy="router")
    assert (other.strategy, other.policy, other.keep) == (None, "router", None)
    other.to_request(Settings())


def test_another_preset_is_refused() -> None:
    with pytest.raises(InvalidQuery, match="preset"):
        asked(preset="gpt")


def test_a_job_keeps_the_templates_of_the_process_that_submitted_it(tmp_path: Path) -> None:
    (tmp_path / "answer.md").write_text(TEMPLATE, encoding="utf-8")
    digest = load_own(tmp_path)
    own, packaged = Settings(POSOLOGY_PROMPTS=str(tmp_path)), Settings()
    assert asked().to_request(own).prompts == digest
    assert asked(prompts=PACKAGED).to_request(own).prompts is None
    settled = asked().settled(own)
    assert settled.prompts == digest
    assert settled.as_settled().prompts == digest
    # a worker's own settings change nothing
    assert asked().settled(packaged).prompts == PACKAGED
    assert asked().settled(packaged).as_settled().prompts is None
    # a record from before there was the field
    assert asked(tier="standard").as_settled().prompts is None


def test_templates_are_named_by_a_digest() -> None:
    with pytest.raises(InvalidQuery, match="prompts"):
        asked(prompts="/etc")
