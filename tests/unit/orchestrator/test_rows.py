from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from orchestrator.jobs.rows import MAX_ROW, check_defaults, read_row
from orchestrator.question.decider import Decider
from orchestrator.settings import Settings
from policies.router import Router
from posology.types import Filters


@given(st.one_of(st.binary(), st.text(), st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(
        st.sampled_from(["id", "question", "k", "options", "model"]) | st.text(), inner
    ),
).map(json.dumps)))  # fmt: skip
@settings(deadline=None)
def test_whatever_stands_in_a_row_it_is_a_request_or_an_error(raw: str | bytes) -> None:
    row = read_row(0, 1, raw, {}, Settings())
    assert (row.request is None) != (row.error is None)
    assert row.content.endswith(b"\n")
    if row.id is not None:
        json.loads(row.id)


def test_the_longest_request_fits_into_a_row() -> None:
    options = dict.fromkeys("ABCDE", "💊" * 500)
    raw = json.dumps({"question": "\U0001f48a" * 2_000, "options": options})
    assert len(raw) < MAX_ROW
    assert read_row(0, 1, raw, {}, Settings()).request is not None


def test_a_byte_order_mark_is_passed_over() -> None:
    assert read_row(0, 1, b'\xef\xbb\xbf{"question": "Why?"}', {}, Settings()).request is not None


def test_equal_rows_have_equal_content_however_they_are_written() -> None:
    first = read_row(0, 1, '{"question":"Why?","id":1}', {}, Settings())
    second = read_row(5, 9, b'{"id" : 1, "question" : "Why?", "k": 8}', {}, Settings())
    other = read_row(0, 1, '{"question":"Why?","id":"1"}', {}, Settings())
    assert first.content == second.content != other.content


BATCH_COMPRESSES = {"strategy": "compressed", "keep": 0.2, "compressor": "leancontext_top"}


@pytest.mark.parametrize(
    ("batch", "row", "has"),
    [
        ({"policy": "doubling"}, {"strategy": "direct"}, {"strategy": "direct", "policy": None}),
        ({"strategy": "direct"}, {"policy": "doubling"}, {"strategy": None, "policy": "doubling"}),
        ({"policy": "doubling"}, {}, {"strategy": None, "policy": "doubling"}),
        ({"strategy": "direct"}, {"policy": None}, {"strategy": "direct", "policy": None}),
        (BATCH_COMPRESSES, {"strategy": "direct"}, {"keep": None, "compressor": None}),
        (BATCH_COMPRESSES, {"policy": "doubling"}, {"keep": None, "compressor": None}),
        ({"keep": 0.2}, {"strategy": "compressed"}, {"keep": 0.2}),
        ({"filters": {"since": 2010}}, {}, {"filters": Filters(since=2010)}),
        (
            {"filters": {"since": 2010}},
            {"filters": {"until": 2005}},
            {"filters": Filters(until=2005)},
        ),
        ({"filters": {"since": 2010}}, {"filters": None}, {"filters": Filters()}),
    ],
)
def test_a_row_has_its_batch_s_word_where_it_says_nothing(
    batch: dict[str, Any], row: dict[str, Any], has: dict[str, Any]
) -> None:
    raw = json.dumps({"question": "Why?", **row})
    found = read_row(0, 1, raw, batch, Settings()).request
    assert found is not None
    settled = found.as_settled()
    assert {name: getattr(settled, name) for name in has} == has


#: what a row or a batch may say of each field, alone and where fields belong together
SAID: list[dict[str, Any]] = [
    {},
    {"strategy": "direct"},
    {"strategy": "briefcontext", "partition_size": 2},
    {"strategy": "compressed"},
    {"strategy": "compressed", "keep": 0.2},
    {"strategy": "compressed", "keep": 0.3, "compressor": "leancontext_top"},
    {"compressor": "leancontext"},
    {"policy": "doubling"},
    {"policy": "router:compressor=pruner,keep=0.1"},
    {"policy": "qtable", "compressor": "selective_context"},
    {"form": "yes_no", "k": 4, "mode": "dense", "model": "offline:extractive", "max_tokens": 100},
    {"form": "yes_no_maybe", "k": 5, "mode": "bm25", "model": "openai:gpt-4o", "max_tokens": 200},
    {"retracted": True, "index_version": 3, "deadline_seconds": 5.0, "max_cost_usd": "0.1"},
    {"retracted": False, "index_version": 4, "deadline_seconds": 6.0, "max_cost_usd": "0.2"},
    {"filters": {"since": 2010, "journals": ["BMJ"]}},
    {"filters": {"until": 2005}},
]
#: what only a row says: that it wants none of what its batch has, and options
NONE_OF_IT: list[dict[str, Any]] = [
    {"strategy": None},
    {"policy": None},
    {"compressor": None},
    {"filters": None, "index_version": None, "max_cost_usd": None},
    {"options": {"A": "yes", "B": "no"}},
]


@pytest.mark.parametrize("row", [*SAID, *NONE_OF_IT], ids=str)
def test_what_a_row_says_stands_whatever_the_batch_says(row: dict[str, Any]) -> None:
    raw = json.dumps({"question": "Why?", **row})
    alone = read_row(0, 1, raw, {}, Settings()).request
    assert alone is not None
    for default in SAID:
        check_defaults(default, Settings())
        found = read_row(0, 1, raw, default, Settings())
        assert found.error is None, default
        assert found.request is not None
        for name, value in row.items():
            # no policy: the one of the batch, or as configured
            if name != "policy" or value is not None:
                assert getattr(found.request, name) == getattr(alone, name), (name, default)


@pytest.mark.parametrize("row", [one for one in SAID if "policy" in one], ids=str)
def test_a_row_s_own_policy_decides_by_no_other_compressor_than_its_own(
    row: dict[str, Any],
) -> None:
    raw = json.dumps({"question": "Why?", **row})
    alone = read_row(0, 1, raw, {}, Settings()).request
    assert alone is not None
    own = Decider().policy(alone.as_settled())
    for default in SAID:
        found = read_row(0, 1, raw, default, Settings()).request
        assert found is not None
        assert Decider().policy(found.as_settled()) == own, default


@pytest.mark.parametrize(
    ("default", "row", "compressor"),
    [
        ({"policy": "router:compressor=pruner"}, {"compressor": "leancontext"}, "leancontext"),
        ({"compressor": "pruner"}, {"compressor": "leancontext"}, "leancontext"),
        # what a row does not say is the batch's to say
        ({"policy": "router:compressor=pruner"}, {}, "pruner"),
        ({"compressor": "pruner"}, {"k": 3}, "pruner"),
        ({"strategy": "direct"}, {"compressor": "leancontext"}, "leancontext"),
    ],
)
def test_the_nearest_word_names_the_compressor(
    default: dict[str, Any], row: dict[str, Any], compressor: str
) -> None:
    raw = json.dumps({"question": "Why?", **row})
    found = read_row(0, 1, raw, default, Settings()).request
    assert found is not None
    policy = Decider().policy(found.as_settled())
    assert isinstance(policy, Router)
    assert policy.compressor == compressor


@pytest.mark.parametrize(
    ("row", "default", "field"),
    [
        ({"strategy": "direct", "policy": "doubling"}, {}, "policy"),
        # a share without a strategy that compresses, whatever the batch
        ({"keep": 0.3}, {}, "keep"),
        ({"keep": 0.3}, {"strategy": "direct"}, "keep"),
        ({"keep": 0.3}, {"policy": "doubling"}, "keep"),
    ],
)
def test_what_does_not_go_together_is_refused(
    row: dict[str, Any], default: dict[str, Any], field: str
) -> None:
    found = read_row(0, 1, json.dumps({"question": "Why?", **row}), default, Settings())
    assert found.error is not None
    assert found.error.details["field"] == field
