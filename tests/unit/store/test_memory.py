from __future__ import annotations

import multiprocessing
import os
import sqlite3
import stat
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from posology.errors import ConfigurationError
from posology.store.memory import ProcessMemory, SqliteMemory


def _fill(path: Path, worker: int) -> None:
    memory = SqliteMemory(path)
    for i in range(40):
        memory.put({b"%d-%d" % (worker, i): b"x" * 100, b"shared-%d" % i: b"%d" % i})


def test_it_outlives_its_process(tmp_path: Path) -> None:
    path = tmp_path / "memory.sqlite"
    SqliteMemory(path).put({b"a": b"1"})
    assert SqliteMemory(path).get([b"a"]) == {b"a": b"1"}


def test_nobody_else_may_read_it(tmp_path: Path) -> None:
    before = os.umask(0o022)
    try:
        memory = SqliteMemory(tmp_path / "memory.sqlite")
        memory.put({b"k": b"v"})
        modes = {path.name: stat.S_IMODE(path.stat().st_mode) for path in tmp_path.iterdir()}
        memory.close()
    finally:
        os.umask(before)
    assert "memory.sqlite-wal" in modes
    assert set(modes.values()) == {0o600}, modes


def test_processes_may_write_at_once(tmp_path: Path) -> None:
    path = tmp_path / "memory.sqlite"
    # all of them make the file
    spawn = multiprocessing.get_context("spawn")
    workers = [spawn.Process(target=_fill, args=(path, i)) for i in range(3)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    assert [worker.exitcode for worker in workers] == [0, 0, 0]
    memory = SqliteMemory(path)
    assert len(memory.get([b"%d-%d" % (w, i) for w in range(3) for i in range(40)])) == 120
    assert memory.get([b"shared-7"]) == {b"shared-7": b"7"}


def test_whoever_opens_a_new_file_at_the_same_time_waits(tmp_path: Path) -> None:
    for number in range(15):
        path, ready = tmp_path / f"{number}.sqlite", threading.Barrier(8)

        def start(path: Path = path, ready: threading.Barrier = ready) -> bool:
            ready.wait()
            memory = SqliteMemory(path)
            memory.put({b"a": b"1"})
            found = memory.get([b"a"]) == {b"a": b"1"}
            memory.close()
            return found

        with ThreadPoolExecutor(8) as pool:
            assert all(one.result() for one in [pool.submit(start) for _ in range(8)])


_FORKED = """
import os, sys
from pathlib import Path
from posology.store.memory import SqliteMemory
memory = SqliteMemory(Path(sys.argv[1]))
memory.put({b"a": b"1"})
child = os.fork()
if not child:
    kept = memory.get([b"a"]) == {b"a": b"1"}
    memory.put({b"b": b"2"})
    os._exit(0 if kept else 1)
assert os.waitpid(child, 0)[1] == 0
assert memory.get([b"a", b"b"]) == {b"a": b"1", b"b": b"2"}
"""


def test_a_process_that_is_forked_opens_the_file_anew(tmp_path: Path) -> None:
    # in a process of its own: this one has threads, which do not survive a fork
    run = [sys.executable, "-c", _FORKED, str(tmp_path / "memory.sqlite")]
    assert subprocess.run(run, check=False).returncode == 0


def test_a_closed_memory_opens_again(tmp_path: Path) -> None:
    memory = SqliteMemory(tmp_path / "memory.sqlite")
    memory.put({b"a": b"1"})
    memory.close()
    memory.close()
    assert memory.get([b"a"]) == {b"a": b"1"}


def test_a_file_of_something_else_is_refused_and_left_alone(tmp_path: Path) -> None:
    path = tmp_path / "memory.sqlite"
    path.write_bytes(b"these are my notes, not a data base" * 100)
    with pytest.raises(ConfigurationError, match="POSOLOGY_MEMORY"):
        SqliteMemory(path)
    assert path.read_bytes().startswith(b"these are my notes")


def test_a_data_base_of_something_else_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "other.sqlite"
    connection = sqlite3.connect(path)
    connection.execute("CREATE TABLE recipes (name TEXT)")
    connection.close()
    with pytest.raises(ConfigurationError, match="this version"):
        SqliteMemory(path)


def test_a_folder_that_is_not_there_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match="nowhere"):
        SqliteMemory(tmp_path / "nowhere" / "memory.sqlite")


def test_a_file_that_breaks_later_counts_as_empty_and_is_told_once(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    path = tmp_path / "memory.sqlite"
    memory = SqliteMemory(path)
    connection = sqlite3.connect(path)
    connection.execute("DROP TABLE kept")
    connection.close()
    assert memory.get([b"a"]) == {}
    memory.put({b"a": b"1"})
    assert len(caplog.records) == 1
    assert str(path) in caplog.text


def test_a_process_forgets_what_was_used_longest_ago() -> None:
    memory = ProcessMemory(entries=2)
    memory.put({b"a": b"1", b"b": b"2"})
    assert memory.get([b"a"])
    memory.put({b"c": b"3"})
    assert memory.get([b"a", b"b", b"c"]) == {b"a": b"1", b"c": b"3"}
