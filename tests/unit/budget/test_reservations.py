"""What is reserved for a call bounds what it may cost, in every lane, for every model with a price."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from functools import cache
from itertools import product
from types import SimpleNamespace
from typing import Any, cast

import pytest
from hypothesis import given
from hypothesis import strategies as st

from orchestrator.lane.collector import Collector
from orchestrator.lane.records import Wanted
from posology.budget.prices.book import listed_models, packaged
from posology.errors import UnpricedModel
from posology.llm.accounting import open_attempt
from posology.llm.models.families import capabilities
from posology.llm.providers.table import PROVIDERS
from posology.seams.batches import BatchLine
from posology.types import EFFORTS, Call, Effort, Opening, Served, Tier, Usage
from tests.support.calls import a_call, asks
from tests.support.examples import examples
from workers.engine.lane.calls import LaneCalls

BOOK = packaged()
TIERS: Sequence[Tier] = ("standard", "flex", "batch")
#: tiers that a reply may name, by the one that the call was sent in
SERVED: dict[Tier, Sequence[Served]] = {
    "standard": ("standard",), "flex": ("flex", "standard"), "batch": ("batch",),
}  # fmt: skip
LANES = ("at once", "batch of a run", "batch of jobs")
MODELS = tuple(name for name in listed_models() if not PROVIDERS[name.partition(":")[0]].free)


def call_of(model: str, tier: Tier, *, cached: bool, effort: Effort | None, output: int) -> Call:
    return a_call(
        model=model,
        messages=asks("Does it? " * 9),
        max_tokens=output,
        tier=tier,
        effort=effort,
        cached=(12, 40) if cached else (),
    )


def opened(call: Call, bound: int, lane: str) -> Opening:
    if lane != "batch of jobs":
        return open_attempt(
            call, number=1, attempt=1, bound=bound, prices=BOOK, tier=call.tier, started=0.0
        )
    nothing = cast("Any", SimpleNamespace(tenant="t"))
    calls = LaneCalls(
        nothing,
        line=lambda one: BatchLine(model=one.model, path="/", body="{}"),
        prices=BOOK,
        bound=lambda _: bound,
        live=None,
        tenant="t",
    )
    plan = json.loads(calls._plan("key", call))
    return Collector(nothing, nothing, BOOK)._opening(Wanted(job="j", key="key", plan=plan))


def read_into(model: str, *, cached: bool) -> list[str]:
    """Return the buckets that input may fall into."""
    caching = capabilities(model).cache
    if caching == "unknown":
        return ["input", "cache_read", "cache_write_5m", "cache_write_1h"]
    writes = cached and caching != "free"
    return ["input", "cache_read"] + ["cache_write_5m"] * writes


@cache
def sold(tier: Tier) -> tuple[str, ...]:
    """Return the models that a reservation can be made for in a tier."""
    found = []
    for model in MODELS:
        try:
            BOOK.worst(model, input_tokens=1, output_tokens=1, tier=tier)
        except UnpricedModel:
            continue
        found.append(model)
    return tuple(found)


def lanes_of(tier: Tier) -> Sequence[str]:
    return LANES[1:] if tier == "batch" else LANES[:1]


def test_no_usage_of_any_model_costs_more_than_was_reserved() -> None:
    tried = 0
    for tier in TIERS:
        for model, cached, lane in product(sold(tier), (False, True), lanes_of(tier)):
            call = call_of(model, tier, cached=cached, effort=None, output=700)
            opening = opened(call, 4_270, lane)
            buckets = product(read_into(model, cached=cached), ("output", "reasoning"))
            for (read, said), served in product(buckets, SERVED[tier]):
                cost = BOOK.cost(model, Usage(**{read: 4_270, said: 700}), served)
                assert cost is None or cost <= opening.reserved, (model, tier, lane, read)
                tried += 1
    assert tried > 5_000


@given(data=st.data())
@examples(200)
def test_no_usage_within_the_bounds_costs_more_than_was_reserved(data: st.DataObject) -> None:
    tier = data.draw(st.sampled_from(TIERS))
    model, lane = data.draw(st.sampled_from(sold(tier))), data.draw(st.sampled_from(lanes_of(tier)))
    cached, effort = data.draw(st.booleans()), data.draw(st.sampled_from((None, *EFFORTS)))
    read, said = data.draw(st.integers(0, 2_000_000)), data.draw(st.integers(0, 200_000))
    call = call_of(model, tier, cached=cached, effort=effort, output=said)
    opening = opened(call, read, lane)
    assert (opening.effort, opening.tier) == (effort, tier)
    left, usage = read, Usage()
    for bucket in read_into(model, cached=cached):
        share = data.draw(st.integers(0, left))
        usage, left = replace(usage, **{bucket: share}), left - share
    hidden = data.draw(st.integers(0, said))
    shown = data.draw(st.integers(0, said - hidden))
    usage = replace(usage, reasoning=hidden, output=shown)
    for served in SERVED[tier]:
        cost = BOOK.cost(model, usage, served)
        assert cost is None or cost <= opening.reserved


def test_a_plan_of_version_0_1_is_taken_to_cache() -> None:
    model = "anthropic:claude-sonnet-4-5"
    call = call_of(model, "batch", cached=True, effort=None, output=768)
    new = opened(call, 4_270, "batch of jobs")
    plan = {"line": {}, "opening": {
        "key": "key", "stage": "answer", "model": model, "prompt": {"name": "answer", "digest": "0" * 16},
        "strategy": "", "input_bound": 4_270, "max_tokens": 768, "tier": "batch",
    }}  # fmt: skip
    nothing = cast("Any", SimpleNamespace(tenant="t"))
    old = Collector(nothing, nothing, BOOK)._opening(Wanted(job="j", key="key", plan=plan))
    assert old.reserved == new.reserved


@pytest.mark.parametrize("effort", EFFORTS)
def test_the_lane_of_jobs_records_the_effort(effort: Effort) -> None:
    call = call_of("anthropic:claude-opus-4-6", "batch", cached=False, effort=effort, output=9)
    assert opened(call, 9, "batch of jobs").effort == effort
