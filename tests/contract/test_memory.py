from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from posology.seams import Memory
from posology.store.memory import ProcessMemory, SqliteMemory

Make = Callable[[], Memory]
KINDS: dict[str, Callable[[Path], Memory]] = {
    "sqlite": lambda folder: SqliteMemory(folder / "memory.sqlite"),
    "process": lambda _: ProcessMemory(),
}


@pytest.fixture(params=KINDS)
def memory(request: pytest.FixtureRequest, tmp_path: Path) -> Memory:
    return KINDS[request.param](tmp_path)


@given(
    values=st.dictionaries(st.binary(max_size=30), st.binary(max_size=50)),
    others=st.lists(st.binary(max_size=30)),
)
def test_what_is_put_is_got_and_nothing_else(
    memory: Memory, values: dict[bytes, bytes], others: list[bytes]
) -> None:
    own = {b"own" + key: value for key, value in values.items()}
    memory.put(own)
    first = memory.get(list(own))
    assert first.keys() == own.keys()
    strangers = [b"other" + key for key in others]
    assert memory.get([*strangers, *own]) == first


def test_what_is_there_stays_as_it_is(memory: Memory) -> None:
    memory.put({b"a": b"1"})
    memory.put({b"a": b"2", b"b": b"3"})
    assert memory.get([b"a", b"b", b"c"]) == {b"a": b"1", b"b": b"3"}


def test_nothing_may_be_asked_and_put(memory: Memory) -> None:
    memory.put({})
    assert memory.get([]) == {}


def test_more_keys_than_a_statement_takes(memory: Memory) -> None:
    values = {i.to_bytes(4, "big"): bytes([i % 256]) for i in range(40_000)}
    memory.put(values)
    assert memory.get(list(values)) == values


def test_threads_may_use_it_at_once(memory: Memory) -> None:
    def work(worker: int) -> None:
        for i in range(50):
            memory.put({b"%d" % i: b"same", b"%d-%d" % (worker, i): b"%d" % worker})
            assert memory.get([b"%d" % i]) == {b"%d" % i: b"same"}

    with ThreadPoolExecutor(8) as pool:
        list(pool.map(work, range(8)))
    assert len(memory.get([b"%d-%d" % (w, i) for w in range(8) for i in range(50)])) == 400
