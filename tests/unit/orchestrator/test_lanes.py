"""Tiers of questions: what is accepted, and what is the default."""

from __future__ import annotations

import pytest

from orchestrator.question.checks import check_awaited
from orchestrator.question.request import AskRequest, JobRequest
from orchestrator.settings import Settings
from posology.budget.prices.book import listed_models, packaged
from posology.errors import InvalidQuery, UnpricedModel
from posology.llm.models.families import lanes_of

FLEX, PLAIN = "openai:gpt-6-luna", "anthropic:claude-haiku-5-5"


def asked(**fields: object) -> AskRequest:
    return AskRequest.parse({"question": "Does it help?", **fields})


def test_a_tier_that_the_model_lacks_is_refused_with_those_that_it_has() -> None:
    with pytest.raises(InvalidQuery, match="use standard or batch") as refused:
        asked(model=PLAIN, tier="flex").to_request(Settings())
    assert refused.value.field == "tier"
    with pytest.raises(InvalidQuery, match="use standard"):
        asked(model="openai:gpt-7", tier="batch").to_request(Settings())
    with pytest.raises(InvalidQuery, match="tier"):
        asked(model=FLEX, tier="priority")


def test_the_configured_tier_holds_for_models_that_are_sold_in_it() -> None:
    settings = Settings.model_validate({"POSOLOGY_TIER": "flex-then-standard"})
    assert asked(model=FLEX).to_request(settings).tier == "flex-then-standard"
    assert asked(model=PLAIN).to_request(settings).tier == "standard"
    assert asked(model=FLEX, tier="standard").to_request(settings).tier == "standard"


def test_a_job_keeps_its_tier() -> None:
    job = JobRequest.parse({"question": "Why?", "model": FLEX, "tier": "flex"}).settled(Settings())
    assert JobRequest.model_validate_json(job.model_dump_json()).as_settled().tier == "flex"
    # records from before there were tiers
    assert JobRequest(question="Why?", model=FLEX).as_settled().tier == "standard"


def test_an_answer_that_is_waited_for_is_not_asked_for_in_a_batch() -> None:
    check_awaited("flex")
    with pytest.raises(InvalidQuery, match="submit"):
        check_awaited("batch")


def test_every_model_that_is_sold_in_flex_has_a_price_there() -> None:
    found = [model for model in listed_models() if "flex" in lanes_of(model)]
    unpriced = []
    for model in found:
        try:
            packaged().check(model, "flex")
        except UnpricedModel:
            unpriced.append(model)
    assert found
    assert not unpriced
