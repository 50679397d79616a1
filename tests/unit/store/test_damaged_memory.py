"""What a disk does to a file in the course of years: entries that say something else, and pages that say nothing."""

from __future__ import annotations

import logging
import sqlite3
from contextlib import closing, suppress
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from posology.errors import ConfigurationError
from posology.store.memory import SqliteMemory
from tests.support.examples import examples

VALUES = {b"key %d" % i: b"value %d " % i * 30 for i in range(60)}


def filled(path: Path) -> Path:
    memory = SqliteMemory(path)
    memory.put(VALUES)
    # the last who closes it writes all into the file itself
    memory.close()
    return path


def flip(path: Path, place: int, bit: int = 0) -> None:
    data = bytearray(path.read_bytes())
    data[place] ^= 1 << bit
    path.write_bytes(data)


def alter(path: Path, statement: str, *values: object) -> None:
    with closing(sqlite3.connect(path)) as connection, connection:
        assert connection.execute(statement, values).rowcount


def test_an_entry_that_is_damaged_is_told_of_once_and_kept_anew(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    path = filled(tmp_path / "memory.sqlite")
    for number in (7, 8):
        flip(path, path.read_bytes().index(VALUES[b"key %d" % number]) + 100)
    memory = SqliteMemory(path)
    kept = {key: value for key, value in VALUES.items() if key not in (b"key 7", b"key 8")}
    assert memory.get(list(VALUES)) == kept
    assert memory.get(list(VALUES)) == kept
    assert [record.levelno for record in caplog.records] == [logging.WARNING]
    assert str(path) in caplog.text
    memory.put({b"key 7": VALUES[b"key 7"]})
    assert memory.get([b"key 7", b"key 8"]) == {b"key 7": VALUES[b"key 7"]}
    assert len(caplog.records) == 1


@pytest.mark.parametrize(
    ("statement", "value"),
    [
        ("UPDATE kept SET value = ? WHERE key = ?", b""),
        ("UPDATE kept SET value = ? WHERE key = ?", VALUES[b"key 1"][:-1]),
        # another type: what it was, one bit of a record's header says
        ("UPDATE kept SET value = ? WHERE key = ?", VALUES[b"key 2"].decode()),
        ("UPDATE kept SET value = CAST(? AS TEXT) WHERE key = ?", b"\xff\xfe\xfd"),
        ("UPDATE kept SET value = ? WHERE key = ?", 7),
        ("UPDATE kept SET sum = ? WHERE key = ?", b""),
        ("UPDATE kept SET sum = ? WHERE key = ?", 7),
    ],
    ids=["empty", "short", "another's as text", "no text", "number", "no sum", "sum as number"],
)
def test_whatever_became_of_an_entry_only_that_one_is_gone(
    tmp_path: Path, statement: str, value: object
) -> None:
    path = filled(tmp_path / "memory.sqlite")
    alter(path, statement, value, b"key 1")
    memory = SqliteMemory(path)
    assert memory.get(list(VALUES)) == {k: v for k, v in VALUES.items() if k != b"key 1"}
    memory.put(VALUES)
    assert memory.get(list(VALUES)) == VALUES


def test_what_stands_under_another_key_is_not_taken_for_that_one_s(tmp_path: Path) -> None:
    path = filled(tmp_path / "memory.sqlite")
    alter(path, "DELETE FROM kept WHERE key = ?", b"key 2")
    alter(path, "UPDATE kept SET key = ? WHERE key = ?", b"key 2", b"key 1")
    assert SqliteMemory(path).get([b"key 1", b"key 2"]) == {}


def test_one_that_nobody_may_write_is_computed_anew_each_time(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    path = filled(tmp_path / "memory.sqlite")
    memory = SqliteMemory(path)
    memory.put({b"another": b"1"})
    alter(path, "UPDATE kept SET value = ? WHERE key = ?", b"", b"key 1")
    alter(
        path,
        "CREATE TRIGGER frozen BEFORE DELETE ON kept BEGIN SELECT RAISE(ABORT, 'frozen'); END",
    )
    for _ in range(2):
        assert b"key 1" not in memory.get(list(VALUES))
    assert len(caplog.records) == 2
    assert "damaged" in caplog.text
    assert "cannot be written" in caplog.text


def test_no_question_fails_for_a_page_that_is_damaged_and_the_log_names_the_file(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    path = filled(tmp_path / "memory.sqlite")
    size = 4_096
    data = path.read_bytes()
    # all but the first page, which says that it is a data base
    path.write_bytes(data[:size] + b"\x07" * (len(data) - size))
    memory = SqliteMemory(path)
    for _ in range(2):
        assert memory.get([b"key 1"]) == {}
        memory.put({b"new": b"1"})
    assert [record.levelno for record in caplog.records] == [logging.ERROR]
    assert str(path) in caplog.text
    assert "POSOLOGY_MEMORY" in caplog.text
    assert path.read_bytes()[size:] == b"\x07" * (len(data) - size)


def test_damage_is_told_of_although_something_else_was_before(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    path = filled(tmp_path / "memory.sqlite")
    memory = SqliteMemory(path)
    alter(
        path,
        "CREATE TRIGGER frozen BEFORE INSERT ON kept BEGIN SELECT RAISE(ABORT, 'frozen'); END",
    )
    for _ in range(2):
        memory.put({b"new": b"1"})
    memory.close()
    data = path.read_bytes()
    path.write_bytes(data[:4_096] + b"\x07" * (len(data) - 4_096))
    for _ in range(2):
        assert memory.get([b"key 1"]) == {}
    assert [record.levelno for record in caplog.records] == [logging.WARNING, logging.ERROR]
    assert "it is damaged" in caplog.records[1].getMessage()


def test_a_file_whose_beginning_is_damaged_is_an_error_that_names_it(tmp_path: Path) -> None:
    path = filled(tmp_path / "memory.sqlite")
    flip(path, 3)
    with pytest.raises(ConfigurationError, match="damaged") as caught:
        SqliteMemory(path)
    assert str(path) in str(caught.value)


@pytest.mark.parametrize("bit", range(8))
def test_a_description_that_is_damaged_is_refused_or_does_no_harm(tmp_path: Path, bit: int) -> None:
    """SQLite quotes it in its message, which Python cannot read where it is no text any more."""
    for place in range(0, 120, 7):
        path = filled(tmp_path / f"{place}.sqlite")
        flip(path, path.read_bytes().index(b"CREATE TABLE") + place, bit)
        with suppress(ConfigurationError):
            memory = SqliteMemory(path)
            assert memory.get(list(VALUES)).items() <= VALUES.items()
            memory.close()


@pytest.mark.parametrize("bit", [0, 2])
def test_a_page_that_points_into_the_midst_of_its_entries_gives_no_other_value(
    tmp_path: Path, bit: int
) -> None:
    """What stands there may be read as a key that is text, or none."""
    path = filled(tmp_path / "memory.sqlite")
    whole = path.read_bytes()
    for page in range(4_096, len(whole), 4_096):
        for pointer in range(20, 40, 4):
            path.write_bytes(whole)
            flip(path, page + pointer, bit)
            with suppress(ConfigurationError):
                memory = SqliteMemory(path)
                assert memory.get(list(VALUES)).items() <= VALUES.items()
                memory.close()


@examples(50)
@given(st.data())
def test_a_bit_anywhere_never_gives_another_value(
    tmp_path_factory: pytest.TempPathFactory, data: st.DataObject
) -> None:
    path = filled(tmp_path_factory.mktemp("memory") / "memory.sqlite")
    size = path.stat().st_size
    for _ in range(data.draw(st.integers(1, 4), label="bits")):
        flip(path, data.draw(st.integers(0, size - 1)), data.draw(st.integers(0, 7)))
    found: list[dict[bytes, bytes]] = []
    # and whatever else is raised is a defect
    with suppress(ConfigurationError):
        memory = SqliteMemory(path)
        found.append(memory.get(list(VALUES)))
        memory.put(VALUES)
        found.append(memory.get(list(VALUES)))
        memory.close()
    assert all(one.items() <= VALUES.items() for one in found)


def test_a_file_without_checksums_is_taken_over(tmp_path: Path) -> None:
    path = tmp_path / "memory.sqlite"
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute(
            "CREATE TABLE kept (key BLOB PRIMARY KEY, value BLOB NOT NULL) WITHOUT ROWID"
        )
        connection.executemany("INSERT INTO kept VALUES (?, ?)", VALUES.items())
        connection.execute("PRAGMA user_version = 1")
    memory = SqliteMemory(path)
    assert memory.get(list(VALUES)) == VALUES
    memory.close()
    flip(path, path.read_bytes().index(VALUES[b"key 7"]) + 1)
    assert SqliteMemory(path).get(list(VALUES)).keys() == VALUES.keys() - {b"key 7"}
