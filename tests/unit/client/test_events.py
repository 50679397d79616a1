from __future__ import annotations

from collections.abc import AsyncIterator
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from posology.client.events import ServerSent, TooLong, parse

pytestmark = pytest.mark.anyio

STREAM = (
    b": hello\r\n\r\nid: 1\r\nevent: state\r\ndata: {\xe2\x80\xa8}\r\n\r\n"
    b"data:a\ndata:  b\n\n: ping\n\ndata\r\rid\revent: x\r\rid: 3\ndata: c\n\nid: 4\ndata: cut off"
)
EVENTS = [
    ServerSent(id="1", event="state", data="{\u2028}"),
    ServerSent(id="1", event="message", data="a\n b"),
    ServerSent(id="1", event="message", data=""),
    ServerSent(id="3", event="message", data="c"),
]


async def _pieces(cuts: list[int]) -> AsyncIterator[bytes]:
    places = sorted({0, len(STREAM), *cuts})
    for start, end in pairwise(places):
        yield STREAM[start:end]


@given(cuts=st.lists(st.integers(min_value=0, max_value=len(STREAM))))
async def test_events_do_not_depend_on_where_the_stream_is_cut(cuts: list[int]) -> None:
    assert [event async for event in parse(_pieces(cuts))] == EVENTS


async def test_byte_by_byte() -> None:
    assert [event async for event in parse(_pieces(list(range(len(STREAM)))))] == EVENTS


async def test_a_line_without_end_is_refused() -> None:
    async def endless() -> AsyncIterator[bytes]:
        while True:
            yield b"a" * 1_000_000

    with pytest.raises(TooLong):
        async for _ in parse(endless()):
            pass
