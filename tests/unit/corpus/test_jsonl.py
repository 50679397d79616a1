from __future__ import annotations

import errno
import gzip
import json
import tempfile
import tracemalloc
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from posology.corpus import jsonl
from posology.corpus.folders import expand
from posology.corpus.items import Record
from posology.corpus.jsonl import count_rows, read
from posology.errors import BadFile, BadRecord

LINES = [json.dumps({"id": f"n:{i}", "text": f"Text {i}."}).encode() for i in range(5)]


def write(path: Path, *lines: bytes, end: bytes = b"\n") -> Path:
    content = end.join(lines) + end
    path.write_bytes(gzip.compress(content) if path.suffix == ".gz" else content)
    return path


def ids(path: Path, *, after: int = 0) -> list[str]:
    return [item.passage.id for item in read(path, after=after) if isinstance(item, Record)]


def test_tells_gzip_from_its_content_not_its_name(tmp_path: Path) -> None:
    plain = tmp_path / "plain.jsonl.gz"
    plain.write_bytes(LINES[0])
    packed = tmp_path / "packed.jsonl"
    packed.write_bytes(gzip.compress(LINES[1]))
    assert ids(plain) + ids(packed) == ["n:0", "n:1"]


@pytest.mark.parametrize("end", [b"\n", b"\r\n", b"\n\n \t\n"])
def test_line_ends_blank_lines_and_byte_order_marks(tmp_path: Path, end: bytes) -> None:
    path = write(tmp_path / "a.jsonl", b"\xef\xbb\xbf" + LINES[0], *LINES[1:], end=end)
    assert ids(path) == [f"n:{i}" for i in range(5)]


def test_a_last_line_without_an_end_counts(tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl"
    path.write_bytes(b"\n".join(LINES))
    assert len(ids(path)) == 5


def test_a_bad_line_is_reported_in_its_place_and_the_rest_goes_on(tmp_path: Path) -> None:
    path = write(tmp_path / "a.jsonl", LINES[0], b"", b"{oops", LINES[1])
    first, bad, second = read(path)
    assert isinstance(first, Record)
    assert isinstance(second, Record)
    assert isinstance(bad, BadRecord)
    assert (bad.path, bad.line) == (str(path), 3)
    assert str(bad).startswith(f"{path}:3: not JSON")
    assert (first.line, first.row, second.line, second.row) == (1, 0, 4, 2)


def test_a_bad_line_is_named_by_its_id_where_it_has_one(tmp_path: Path) -> None:
    path = write(tmp_path / "a.jsonl", b'{"id": "n:7"}', b'{"id": " n:8", "text": "a"}', b"[]")
    assert [bad.record for bad in read(path) if isinstance(bad, BadRecord)] == ["n:7", None, None]


def test_going_on_after_a_line_keeps_the_count_of_rows(tmp_path: Path) -> None:
    path = write(tmp_path / "a.jsonl", LINES[0], b"", LINES[1], LINES[2])
    records = [item for item in read(path, after=3) if isinstance(item, Record)]
    assert [(r.passage.id, r.line, r.row) for r in records] == [("n:2", 4, 2)]


def test_a_line_beyond_the_bound_is_never_held(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(jsonl, "MAX_LINE", 100_000)
    long = b'{"id": "long", "text": "' + b"x" * 20_000_000 + b'"}'
    path = write(tmp_path / "a.jsonl.gz", LINES[0], long, LINES[1])
    del long
    tracemalloc.start()
    first, bad, second = read(path)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert isinstance(first, Record)
    assert isinstance(second, Record)
    assert isinstance(bad, BadRecord)
    assert bad.reason == "longer than 100,000 bytes"
    assert peak < 5_000_000


def test_what_is_not_there_is_a_bad_file(tmp_path: Path) -> None:
    missing, empty = expand([tmp_path / "none.jsonl", tmp_path])
    assert isinstance(missing, BadFile)
    assert "no such file" in str(missing)
    assert isinstance(empty, BadFile)
    assert ".jsonl" in str(empty)


def test_what_cannot_be_looked_at_is_a_bad_file_and_the_others_go_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    closed = tmp_path / "closed"
    closed.mkdir()
    last = write(tmp_path / "a.jsonl", LINES[0])
    listed = Path.iterdir

    def iterdir(path: Path) -> Iterator[Path]:
        if path == closed:  # the tests may run as root, whom no mode keeps out
            raise PermissionError(errno.EACCES, "Permission denied")
        return listed(path)

    monkeypatch.setattr(Path, "iterdir", iterdir)
    long = tmp_path / ("x" * 300)
    first, second, file = expand([long, closed, last])
    assert isinstance(first, BadFile)
    assert first.path == str(long)
    assert isinstance(second, BadFile)
    assert second.reason == "Permission denied"
    assert second.path == str(closed)
    assert file == last


_CONTENT = st.lists(st.sampled_from([*LINES, b"\n", b"\r\n", b"{", b"\x1f\x8b", b"\xff", b"\0"]))


@given(st.one_of(st.binary(), _CONTENT.map(b"".join)))
def test_nothing_is_raised_and_every_line_is_accounted_for(content: bytes) -> None:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "any.jsonl"
        path.write_bytes(content)
        items = list(read(path))
        rows = count_rows(path)
    if content.startswith(b"\x1f\x8b"):
        return
    lines = content.removeprefix(b"\xef\xbb\xbf").split(b"\n")
    expected = [number for number, line in enumerate(lines, start=1) if line.strip()]
    assert [getattr(item, "line", None) for item in items] == expected
    assert rows == len(expected)
