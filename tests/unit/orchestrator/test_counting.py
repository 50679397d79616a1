"""Counting of the records of uploaded files: all of a file is read once, within limits."""

from __future__ import annotations

import gzip
from pathlib import Path

import pytest

from orchestrator.ingest.uploads.counting import SMALL, Bounds, count
from posology.errors import BadFile

BOUNDS = Bounds(mib=8, records=20_000, seconds=60)
ROW = b'{"id": "a", "text": "Salt helped."}\n'


def made(tmp_path: Path, content: bytes, name: str = "a.jsonl") -> list[Path]:
    path = tmp_path / name
    path.write_bytes(content)
    return [path]


def unlooked() -> None:
    pass


@pytest.mark.parametrize("rows", [3, 2 * SMALL // len(ROW)])
def test_records_are_counted_in_this_process_or_another(tmp_path: Path, rows: int) -> None:
    assert count(made(tmp_path, ROW * rows), BOUNDS, unlooked) == rows
    assert count(made(tmp_path, gzip.compress(ROW * rows)), BOUNDS, unlooked) == rows


@pytest.mark.parametrize("name", ["a.jsonl", "a.jsonl.gz"])
@pytest.mark.parametrize(("rows", "limit"), [(3, 2), (9_000, 8_999)])
def test_a_file_of_too_many_records_is_refused(
    tmp_path: Path, name: str, rows: int, limit: int
) -> None:
    content = ROW * rows
    files = made(tmp_path, gzip.compress(content) if name.endswith(".gz") else content, name)
    bounds = Bounds(mib=8, records=limit, seconds=60)
    with pytest.raises(BadFile, match=rf"<= {limit:,} records \(got {rows:,}\)"):
        count(files, bounds, unlooked)


def test_a_small_file_that_unpacks_to_a_large_one_is_refused(tmp_path: Path) -> None:
    files = made(tmp_path, gzip.compress(b"\n" * (8 * 1024 * 1024 + 1)), "a.txt.gz")
    with pytest.raises(BadFile, match="<= 8 MiB, unpacked"):
        count(files, BOUNDS, unlooked)


def test_a_file_that_takes_too_long_to_be_read_is_refused(tmp_path: Path) -> None:
    files = made(tmp_path, gzip.compress(b"a. " * 2_000_000), "a.txt.gz")
    with pytest.raises(BadFile, match="<= 1 s of processor time"):
        count(files, Bounds(mib=8, records=20_000, seconds=1), unlooked)


def test_a_count_ends_when_the_work_is_to_end(tmp_path: Path) -> None:
    class Ended(Exception):
        pass

    def look() -> None:
        raise Ended

    files = made(tmp_path, gzip.compress(b"a. " * 2_000_000), "a.txt.gz")
    with pytest.raises(Ended):
        count(files, BOUNDS, look)


def test_what_is_damaged_is_its_readers_to_say(tmp_path: Path) -> None:
    assert count(made(tmp_path, gzip.compress(ROW * 9)[:-9]), BOUNDS, unlooked) in range(10)
