from __future__ import annotations

import json
import os
import stat
from pathlib import Path

import pytest

from orchestrator.stack.folder import (
    StackInfo,
    opened_lock,
    own_folder,
    read_stack,
    try_lock,
    write_private,
    write_stack,
)
from posology.errors import ConfigurationError, StackRuns

INFO = StackInfo(
    pid=os.getpid(),
    redis_url="redis://:secret@127.0.0.1:1/0",
    api_url="http://127.0.0.1:2",
    started="2026-01-01T00:00:00+00:00",
    version="0.1.0",
)


def test_a_running_stack_is_found_and_a_stopped_one_is_not(tmp_path: Path) -> None:
    folder = tmp_path / "deep" / "data"
    assert read_stack(folder) is None
    with own_folder(folder):
        assert read_stack(folder) is None
        write_stack(folder, INFO)
        assert read_stack(folder) == INFO
    assert read_stack(folder) is None
    assert not (folder / "stack.json").exists()


def test_only_the_owner_can_read_where_the_stack_is(tmp_path: Path) -> None:
    old = os.umask(0)
    try:
        with own_folder(tmp_path):
            write_stack(tmp_path, INFO)
            assert stat.S_IMODE((tmp_path / "stack.json").stat().st_mode) == 0o600
            assert [p.name for p in tmp_path.iterdir() if "." in p.name] == ["stack.json"]
    finally:
        os.umask(old)


def test_nobody_else_looks_into_a_new_folder(tmp_path: Path) -> None:
    old = os.umask(0o022)
    try:
        with own_folder(tmp_path / "data"):
            assert stat.S_IMODE((tmp_path / "data").stat().st_mode) == 0o700
    finally:
        os.umask(old)


def test_the_password_is_not_shown() -> None:
    assert "secret" not in repr(INFO)


def test_a_second_stack_is_refused(tmp_path: Path) -> None:
    with own_folder(tmp_path):
        write_stack(tmp_path, INFO)
        match = f"pid {os.getpid()}, API at http"
        with pytest.raises(StackRuns, match=match) as at, own_folder(tmp_path):
            pass
        assert at.value.details == {"pid": os.getpid(), "api": INFO.api_url}
        assert at.value.exit_code == ConfigurationError.exit_code
        assert read_stack(tmp_path) == INFO


def test_a_second_stack_is_refused_while_the_first_one_starts(tmp_path: Path) -> None:
    not_ready = pytest.raises(StackRuns, match=f"pid {os.getpid()}, not ready yet")
    with own_folder(tmp_path), not_ready, own_folder(tmp_path):
        pass


def test_what_a_crash_left_is_no_stack_and_is_replaced(tmp_path: Path) -> None:
    write_stack(tmp_path, INFO)
    (tmp_path / "lock").write_text("1", encoding="utf-8")
    assert read_stack(tmp_path) is None
    with own_folder(tmp_path):
        assert read_stack(tmp_path) is None
        write_stack(tmp_path, INFO)
        assert read_stack(tmp_path) == INFO


@pytest.mark.parametrize("text", ["", "{", "[]", "{}", '{"pid": 1, "more": 2}'])
def test_a_file_that_cannot_be_read_is_no_stack(tmp_path: Path, text: str) -> None:
    with own_folder(tmp_path):
        (tmp_path / "stack.json").write_text(text, encoding="utf-8")
        assert read_stack(tmp_path) is None


def test_a_look_does_not_turn_a_stack_away(tmp_path: Path) -> None:
    import fcntl
    import threading

    descriptor = os.open(tmp_path / "lock", os.O_RDWR | os.O_CREAT)
    fcntl.flock(descriptor, fcntl.LOCK_SH)
    threading.Timer(0.1, os.close, [descriptor]).start()
    with own_folder(tmp_path):
        pass


def test_a_folder_that_cannot_be_made_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("", encoding="utf-8")
    match = r"file/data \(Not a directory"
    with pytest.raises(ConfigurationError, match=match), own_folder(tmp_path / "file" / "data"):
        pass


def test_a_lock_lasts_as_long_as_its_last_holder(tmp_path: Path) -> None:
    with opened_lock(tmp_path / "lock") as other:
        with opened_lock(tmp_path / "lock") as first:
            assert try_lock(first)
            assert not try_lock(other)
            inherited = os.dup(first)
        assert not try_lock(other)
        os.close(inherited)
        assert try_lock(other)


def test_a_private_file_is_replaced_at_once(tmp_path: Path) -> None:
    path = tmp_path / "file"
    write_private(path, "1")
    (tmp_path / f"file.{os.getpid()}").write_text("left by a crash", encoding="utf-8")
    write_private(path, json.dumps({"a": 1}))
    assert path.read_text(encoding="utf-8") == '{"a": 1}'
    assert list(tmp_path.iterdir()) == [path]
