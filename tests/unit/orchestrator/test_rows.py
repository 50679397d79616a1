from __future__ import annotations

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from orchestrator.jobs.rows import MAX_ROW, read_row
from orchestrator.settings import Settings


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


@pytest.mark.parametrize(
    ("default", "row", "strategy", "policy"),
    [
        ({"policy": "doubling"}, {"strategy": "direct"}, "direct", None),
        ({"strategy": "direct"}, {"policy": "doubling"}, None, "doubling"),
        ({"policy": "doubling"}, {}, None, "doubling"),
        ({"strategy": "direct"}, {}, "direct", None),
        ({"strategy": "direct"}, {"policy": None}, "direct", None),
    ],
)
def test_a_row_s_own_word_is_not_refused_for_a_default(
    default: dict[str, str], row: dict[str, str], strategy: str | None, policy: str | None
) -> None:
    found = read_row(0, 1, json.dumps({"question": "Why?", **row}), default, Settings()).request
    assert found is not None
    assert (found.strategy, found.policy) == (strategy, policy)


@pytest.mark.parametrize(
    "row", [{"strategy": "direct"}, {"policy": "doubling"}, {"strategy": "briefcontext"}]
)
def test_a_row_is_not_refused_for_a_batch_that_compresses(row: dict[str, str]) -> None:
    batch = {"strategy": "compressed", "keep": 0.2, "compressor": "leancontext_top"}
    found = read_row(0, 1, json.dumps({"question": "Why?", **row}), batch, Settings()).request
    assert found is not None
    assert found.keep is None
    assert found.compressor == ("leancontext_top" if "policy" in row else None)


def test_a_row_has_the_batch_s_compressor_where_it_compresses() -> None:
    raw = json.dumps({"question": "Why?", "strategy": "compressed"})
    found = read_row(0, 1, raw, {"keep": 0.2, "compressor": "pruner"}, Settings()).request
    assert found is not None
    assert (found.keep, found.compressor) == (0.2, "pruner")


def test_a_row_that_says_both_is_refused() -> None:
    raw = json.dumps({"question": "Why?", "strategy": "direct", "policy": "doubling"})
    found = read_row(0, 1, raw, {}, Settings())
    assert found.error is not None
    assert found.error.details["field"] == "policy"
