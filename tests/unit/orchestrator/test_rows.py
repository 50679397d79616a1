from __future__ import annotations

import json

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
